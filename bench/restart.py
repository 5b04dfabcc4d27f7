#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A start with a million devices in Redis, as an earlier run has left them, which saw last two timeouts before: one in ten
offline, some of the others beating. How long until heartbeats are read, and until everybody is loaded.

Among them are devices with a timeout of seconds, all of which passed while the monitor was away. Half of these beat on:
none of them may be called offline. The others are dead: each is to be called offline when its timeout is over, which
counts from the moment when the monitor sees again, and no later than any other death; but nobody is judged before all is
loaded, so that from then on if that took longer. When it was written is told by Redis, as the id of its entry in the
event stream; when the monitor saw, by its API, and so not earlier than the last answer that said "blind".
"""
import socket
import threading
import time

import measure
import refresh

TIMEOUT_S = 600
LATE_MS = 53  # one tick, 33 ms, and 20 ms
QUICK = "q-"  # before the ids of those with a timeout of seconds


class Pipe:
    """Commands into a Redis as fast as they can be put together; the answers are only counted, by a thread."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sent = self.got = 0
        self.error = None
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        while True:
            some = self.sock.recv(1 << 18)
            if not some:
                return
            self.got += some.count(b"\r\n")
            if b"-" in some:
                self.error = some

    def send(self, data, commands):
        self.sent += commands
        self.sock.sendall(data)

    def close(self):
        while self.got < self.sent and not self.error:
            time.sleep(0.01)
        assert not self.error, self.error[:200]
        self.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.sock.close()


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def record(prefix, ident, state, reason, group, timeout_s, last_seen, since, node):
    return command(b"HSET", prefix + b"state:" + ident, b"state", state, b"since", since, b"last_seen", last_seen,
                   b"reason", reason, b"group", group, b"node", node, b"seq", since, b"timeout",
                   b"%d" % (timeout_s * 1000), b"source", b"mqtt")


def online(prefix, ident, at, node, group=b"default", timeout_s=TIMEOUT_S, last_seen=None):
    state = record(prefix, ident, b"online", b"heartbeat", group, timeout_s, last_seen or at, at, node)
    return state + command(b"SET", prefix + b"connected:" + ident, ident, b"PX", b"%d" % (3000 * TIMEOUT_S)), 2


def offline(prefix, ident, at, node):
    state = record(prefix, ident, b"offline", b"timeout", b"default", TIMEOUT_S, at, at, node)
    key = command(b"SET", prefix + b"disconnected:" + ident, ident)
    return state + key + command(b"ZADD", prefix + b"offline", at, ident), 3


def fill_bulk(pipe, prefix, at, node, devices):
    """Devices d0, d1, ...: one in ten is offline."""
    for first in range(0, devices, 1000):
        some = range(first, min(devices, first + 1000))
        data, commands = [], 0
        # The text of one device of a chunk serves for those whose ids are as long.
        texts = {}
        for i in some:
            ident = b"d%d" % i
            kind = (i % 10 == 9, len(ident))
            if kind not in texts:
                make = offline if kind[0] else online
                texts[kind] = make(prefix, b"@" * len(ident), b"%d" % at, node)
            text, n = texts[kind]
            data.append(text.replace(b"@" * len(ident), ident))
            commands += n
        pipe.send(b"".join(data), commands)


def fill(env, plan):
    """What the scripts would have written, by a run that saw last `plan.down_s` ago; returns how many are online."""
    pipe, prefix, node = Pipe(env.redis_server.port), env.prefix.encode(), env.node.encode()
    at = int((time.time() - plan.down_s) * 1000)
    fill_bulk(pipe, prefix, at, node, plan.devices)
    for i in range(2 * plan.quick):
        # Heard last at any time of the timeout before.
        seen = at - int(plan.timeout_s * 1000 * (i % plan.quick) / plan.quick)
        pipe.send(*online(prefix, b"%sd%d" % (QUICK.encode(), i), b"%d" % at, node, b"quick", plan.timeout_s, b"%d" % seen))
    pipe.send(command(b"SET", prefix + b"monitor:" + node, b"0000000000000001 %d" % at), 1)
    pipe.close()
    return plan.devices - plan.devices // 10 + 2 * plan.quick


class Seen:
    """What the API said while all was loaded."""

    def __init__(self, d):
        self.began, self.heard, self.loaded, self.slowest_ms = d.started, None, None, 0
        self.loaded_ms = None  # by the wall clock
        # By the wall clock: when the last answer that said "blind" was asked for, and when the first other one was there.
        self.blind_ms, self.sees_ms = time.time() * 1000, None

    def note(self, asked, asked_wall_ms, s):
        now = time.monotonic()
        self.slowest_ms = max(self.slowest_ms, (now - asked) * 1000)
        if self.heard is None and s["heartbeats_total"] > 0:
            self.heard = now - self.began
        if s["blind"]:
            self.blind_ms, self.sees_ms = asked_wall_ms, None
        elif self.sees_ms is None:
            self.sees_ms = time.time() * 1000


def watch(d, devices, patience):
    """Polls the API until all is loaded."""
    seen = Seen(d)
    while time.monotonic() - seen.began < patience:
        asked, wall_ms = time.monotonic(), time.time() * 1000
        try:
            s = d.status()
        except OSError:
            time.sleep(0.005)
            continue
        seen.note(asked, wall_ms, s)
        if seen.heard and not s.get("loading") and s["devices"] >= devices:
            seen.loaded = time.monotonic() - seen.began
            seen.loaded_ms = wall_ms
            return seen
        time.sleep(0.02)
    raise AssertionError("not loaded within %d s: %s" % (patience, d.status()))


class Deaths:
    """What the event stream says of those with a timeout of seconds."""

    def __init__(self, env, plan, seen):
        died = {}
        for entry, e in env.redis.xrange(env.key("events")):
            if e["state"] == "offline":
                assert e["id"] not in died, "twice: " + e["id"]
                died[e["id"]] = int(entry.split("-")[0])
        beating = {"%sd%d" % (QUICK, i) for i in range(plan.quick)}
        dead = {"%sd%d" % (QUICK, i) for i in range(plan.quick, 2 * plan.quick)}
        self.wrong = len(set(died) - dead)
        assert not set(died) - dead - beating, "devices whose timeout is not over"
        self.missing = len(dead - set(died))
        due = max(seen.blind_ms + plan.timeout_s * 1000, seen.loaded_ms)
        late = [died[i] - due for i in died.keys() & dead]
        self.latest, self.p99 = (max(late), measure.percentile(late, 99)) if late else (float("inf"),) * 2


class Plan:
    def __init__(self, smoke, devices=None):
        self.devices, self.live, self.interval = (20000, 2000, 1) if smoke else (1000000, 20000, 5)
        self.devices = devices or self.devices
        self.name = "%g M" % (self.devices / 1e6) if self.devices >= 1e6 else "%d" % self.devices
        self.patience_s = 120 + self.devices / 20000
        self.quick, self.timeout_s, self.down_s = (200, 4, 8) if smoke else (2000, 10, 20)
        self.came = self.live // 10  # who were offline and beat: d9, d19, ...
        self.all = self.devices + 2 * self.quick


def groups(env, plan):
    def group(root, timeout_s, **more):
        return {"heartbeat": root + "/{id}/heartbeat", "status": root + "/{id}/status", "timeout": "%ds" % timeout_s, **more}
    return [("default", group(env.root, TIMEOUT_S)), ("quick", group("quick", plan.timeout_s, id_prefix=QUICK))]


def start(o, env, plan):
    from hw_wait import wait_until
    n_online = fill(env, plan)
    r = env.redis
    d = env.configure(groups=groups(env, plan), monitor={"log_level": "info", "max_devices": plan.all + 1000})
    with refresh.Load(o, env.broker, env.root, plan.live, plan.interval) as load, \
            refresh.Load(o, env.broker, "quick", plan.quick, plan.timeout_s / 4):
        load.at(0.2)
        redis_clock = measure.Stopwatch(env.redis_server.pid)
        d.start(seeing=False, ready=False)
        seen = watch(d, plan.all, plan.patience_s)
        seen.redis_s, seen.daemon_s, seen.rss = redis_clock.cpu(), measure.cpu_s(d.pid), measure.rss_kb(d.pid)
        expected = plan.came + plan.quick
        try:
            wait_until(lambda: r.xlen(env.key("events")) >= expected, 3 * plan.timeout_s, interval=0.1)
        except AssertionError:
            pass  # counted below
        time.sleep(plan.timeout_s / 2)  # whoever is called offline wrongly
        s = d.status()
    deaths = Deaths(env, plan, seen)
    assert s["devices"] == plan.all and r.zcard(env.key("offline")) == s["offline"], s
    assert deaths.wrong or deaths.missing or s["online"] == n_online + plan.came - plan.quick, (s, n_online, plan.came)
    d.kill()
    d.awaited = True
    return seen, deaths


def run(o):
    plan = Plan(o.smoke)
    with measure.world() as (env, _):
        seen, deaths = start(o, env, plan)
    target, many = "9 restart", plan.name + " devices in Redis"
    measure.conditions("timeout %d s, JSON, %d heartbeats in each timeout of %s devices" % (
        TIMEOUT_S, TIMEOUT_S // plan.interval, format(plan.live, ",d")))
    measure.figure(target, "start with %s: reads heartbeats after" % many, seen.heard, "s", ("<=", 1))
    measure.figure(target, "start with %s: all loaded after" % many, seen.loaded, "s", ("<=", 10),
                   "CPU: daemon %.1f s, Redis %.1f s" % (seen.daemon_s, seen.redis_s))
    measure.figure(target, "start with %s: slowest answer of the API meanwhile" % many, seen.slowest_ms, "ms")
    measure.figure(target, "start with %s: RSS" % many, seen.rss * 1024 / plan.all, "bytes", None, "a device, all told")
    measure.conditions("among them %d devices, timeout %d s, down for %d s; half beat on, JSON, 4 heartbeats in each timeout" % (
        2 * plan.quick, plan.timeout_s, plan.down_s))
    measure.figure(target, "restart: who beats and is called offline", deaths.wrong, "", ("<=", 0), None, True)
    measure.figure(target, "restart: who is dead and not called offline", deaths.missing, "", ("<=", 0), None, True)
    goal = ("<=", LATE_MS + seen.sees_ms - seen.blind_ms)
    note = "from the last answer of the API that said blind, or from the end of loading; the next came %.0f ms later" % (seen.sees_ms - seen.blind_ms)
    measure.figure(target, "restart: timeout to the mark in Redis, p99", deaths.p99, "ms", goal, note)
    measure.figure(target, "restart: timeout to the mark in Redis, the latest", deaths.latest, "ms", None, note)


if __name__ == "__main__":
    run(measure.options(__doc__))
