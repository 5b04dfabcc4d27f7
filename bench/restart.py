#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A start with a million devices in Redis, as an earlier run has left them: one in ten offline, some of the others
beating. How long until heartbeats are read, and until everybody is loaded; and that nobody is taken offline by it."""
import socket
import threading
import time

import measure
import refresh

SINCE_MS = 1700000000000
TIMEOUT_S = 600


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


def online(prefix, ident, since, node):
    state = command(b"HSET", prefix + b"state:" + ident, b"state", b"online", b"since", since, b"last_seen", since,
                    b"reason", b"heartbeat", b"group", b"default", b"node", node, b"seq", since, b"timeout",
                    b"%d" % (TIMEOUT_S * 1000), b"source", b"mqtt")
    key = command(b"SET", prefix + b"connected:" + ident, ident, b"PX", b"%d" % (3000 * TIMEOUT_S))
    return state + key, 2


def offline(prefix, ident, since, node):
    state = command(b"HSET", prefix + b"state:" + ident, b"state", b"offline", b"since", since, b"last_seen", since,
                    b"reason", b"timeout", b"group", b"default", b"node", node, b"seq", since, b"timeout",
                    b"%d" % (TIMEOUT_S * 1000), b"source", b"mqtt")
    key = command(b"SET", prefix + b"disconnected:" + ident, ident)
    return state + key + command(b"ZADD", prefix + b"offline", since, ident), 3


def fill(port, prefix, node, devices):
    """What the scripts would have written of devices d0, d1, ...; returns how many of them are online."""
    pipe, prefix = Pipe(port), prefix.encode()
    now = b"%d" % int(time.time() * 1000)
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
                texts[kind] = make(prefix, b"@" * len(ident), now, node.encode())
            text, n = texts[kind]
            data.append(text.replace(b"@" * len(ident), ident))
            commands += n
        pipe.send(b"".join(data), commands)
    pipe.send(command(b"SET", prefix + b"monitor:" + node.encode(), b"0000000000000001 " + now), 1)
    pipe.close()
    return devices - devices // 10


def watch(d, devices, patience):
    """Polls the API until all is loaded: (s until a heartbeat was counted, s until loaded, slowest answer in ms)."""
    began, heard, slowest = d.started, None, 0
    while time.monotonic() - began < patience:
        asked = time.monotonic()
        try:
            s = d.status()
        except OSError:
            time.sleep(0.005)
            continue
        now = time.monotonic()
        slowest = max(slowest, now - asked)
        if heard is None and s["heartbeats_total"] > 0:
            heard = now - began
        if heard and not s.get("loading") and s["devices"] >= devices:
            return heard, now - began, slowest * 1000
        time.sleep(0.02)
    raise AssertionError("not loaded within %d s: %s" % (patience, d.status()))


def start(o, env, devices, live, interval):
    from hw_env import wait_until
    n_online = fill(env.redis_server.port, env.prefix, env.node, devices)
    r = env.redis
    gone = r.zcard(env.key("offline"))
    d = env.configure(timeout="%ds" % TIMEOUT_S, monitor={"log_level": "info", "max_devices": devices + 1000})
    with refresh.Load(o, env.broker, env.root, live, interval) as load:
        load.at(0.2)
        redis_clock = measure.Stopwatch(env.redis_server.pid)
        d.start(seeing=False, ready=False)
        heard, loaded, slowest = watch(d, devices, 120)
        redis_s, daemon_s, rss = redis_clock.cpu(), measure.cpu_s(d.pid), measure.rss_kb(d.pid)
        # Devices d9, d19, ... of those that beat were offline, and come back: nobody else changes.
        came = live // 10
        wait_until(lambda: r.xlen(env.key("events")) >= came, 3 * interval, "who beats to be online", 0.1)
        s = d.status()
    lost = s["offline"] - (gone - came)
    events = r.xlen(env.key("events"))
    assert s["devices"] == devices and r.zcard(env.key("offline")) == s["offline"], s
    assert lost > 0 or (events == came and s["online"] == n_online + came), (s, events, came)
    d.kill()
    d.awaited = True
    return heard, loaded, slowest, redis_s, daemon_s, rss, lost


def run(o):
    devices, live, interval = (20000, 2000, 1) if o.smoke else (1000000, 20000, 5)
    with measure.world() as (env, _):
        heard, loaded, slowest, redis_s, daemon_s, rss, lost = start(o, env, devices, live, interval)
    target, many = "9 restart", "%d devices in Redis" % devices if o.smoke else "1 M devices in Redis"
    measure.figure(target, "start with %s: reads heartbeats after" % many, heard, "s", ("<=", 1))
    measure.figure(target, "start with %s: all loaded after" % many, loaded, "s", ("<=", 10),
                   "CPU: daemon %.1f s, Redis %.1f s" % (daemon_s, redis_s))
    measure.figure(target, "start with %s: taken offline by it" % many, lost, "", ("<=", 0))
    measure.figure(target, "start with %s: slowest answer of the API meanwhile" % many, slowest, "ms")
    measure.figure(target, "start with %s: RSS" % many, rss * 1024 / devices, "bytes", None, "a device, all told")


if __name__ == "__main__":
    run(measure.options(__doc__))
