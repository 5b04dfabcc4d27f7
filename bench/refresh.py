#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a heartbeat costs the whole system: heartwheel, and the scheme that it replaces (oldway.c), under the same load.

A fleet (pace.c) beats evenly through a real mosquitto; each way has a Redis of its own. CPU is what the program and its
Redis use, for each heartbeat, over a whole timeout in which nobody comes or goes; the broker is shown beside it. The old
way runs three times: in large pipelines, which is as fast as it goes; besides with the batched reading of heartwheel's
reader; and as it is commonly written, with nothing held back. The same with one heartbeat a timeout; and what a refresh
costs Redis where many are due in each slot, so that waking for a few does not count, also of devices that report seven
members. And the interval that fits worst into a timeout: there a look is due as soon as the one heartbeat behind the last
look has been there, once in an interval.

Redis' own count of PEXPIRE is held against the daemon's of refreshes, and the keys of a thousand devices have to live
for more than two timeouts when it ends, as they do when they are refreshed once in each.

Besides, a bare Redis at a steady pace, in turns: plain refreshes as the monitor sends them (PEXPIRE, 256 in one write);
PEXPIRE by a script, 60 in a call; and SETEX and DEL for each of three heartbeats.
"""
import itertools
import random
import socket
import statistics
import subprocess
import time

import measure

CONNECTIONS = 16
BATCH = 256
LOOKS_S = 13000  # devices a second that the monitor is given for looking after all when Redis was away; it does 20,000
TTL_FACTOR, TTL_LEAST_MS, SAMPLE = 3, 10000, 1000  # as shipped
GATHER_MS = 250  # for which a refresh may wait for others


class Load:
    """A fleet that beats as long as the block lasts; .at(s) waits until that long after its begin."""

    def __init__(self, o, broker, root, devices, interval, payload=()):
        self.argv = [o.build / "bench" / "pace", broker.port, root, devices, int(interval * 1000), CONNECTIONS,
                     *([0, payload] if payload else [])]

    def __enter__(self):
        self.proc = subprocess.Popen([str(a) for a in self.argv], stdout=subprocess.PIPE, text=True)
        self.began = time.monotonic()
        return self

    def at(self, seconds):
        time.sleep(max(0, self.began + seconds - time.monotonic()))

    def __exit__(self, *exc):
        self.proc.terminate()
        self.said = dict(line.split() for line in self.proc.communicate()[0].splitlines())


class Use:
    """What some processes and a Redis do within a while, for each heartbeat."""

    def __init__(self, broker, program, redis):
        self.redis = redis.client()
        self.redis.config_resetstat()
        self.pids = {"program": program, "Redis": redis.pid, "broker": broker.pid}
        self.used = {k: measure.cpu_us(pid) for k, pid in self.pids.items()}
        self.began = time.monotonic()

    def end(self, rate):
        self.heartbeats = rate * (time.monotonic() - self.began)
        self.us = {k: (measure.cpu_us(pid) - self.used[k]) / self.heartbeats for k, pid in self.pids.items()}
        calls = {k[8:]: v["calls"] for k, v in self.redis.info("commandstats").items()}
        own = {k: n for k, n in calls.items() if k.split("|")[0] not in ("config", "info", "client", "ping")}
        self.scripts = own.get("evalsha", 0) / self.heartbeats
        self.commands = sum(own.values()) / self.heartbeats - self.scripts
        self.calls = own
        return self

    @property
    def total(self):
        return self.us["program"] + self.us["Redis"]


def warm(interval, timeout, devices):
    """When all have been looked after since they were heard twice, in intervals of no look: (begin of that, its end)."""
    begin = interval * 2.02
    for k in itertools.count(2):
        at = interval * (k + 0.8)
        if at >= begin + devices / LOOKS_S and (timeout < 2 * interval or k % round(timeout / interval)):
            return begin, at


def keys_live(env, devices, timeout):
    """Asserted of a sample, when each has been refreshed within one timeout. How long they live must not be a whole timeout
    less than as of now."""
    ttl_ms = max(TTL_FACTOR * timeout * 1000, TTL_LEAST_MS)
    pipe = env.redis.pipeline(transaction=False)
    for i in range(0, devices, max(1, devices // SAMPLE)):
        pipe.pttl(env.key("connected", "d%d" % i))
    left = pipe.execute()
    assert ttl_ms - timeout * 1000 - GATHER_MS < min(left) and max(left) <= ttl_ms, ("keys that nobody refreshed", min(left), max(left))


def ours(o, env, devices, interval, timeout, payload=()):
    d = env.configure(timeout="%dms" % (timeout * 1000), monitor={"log_level": "info"})
    d.start()
    rate = devices / interval
    begin, ready = warm(interval, timeout, devices)
    with Load(o, env.broker, env.root, devices, interval, payload) as load:
        # The first refresh of a device is one in full. Here all have it once they have been heard twice, since the
        # monitor looks after everything when Redis was away: otherwise the steady state begins a timeout later. The
        # window begins and ends where no refresh is due, so that it holds one of each device.
        load.at(begin)
        env.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        load.at(ready)
        by_wheel = devices * int((ready - interval) / timeout)  # each look at all takes an interval
        assert d.metrics().get("redis_refreshes_total") >= 0.99 * (devices + by_wheel), "the warm-up was too short"
        use, before = Use(env.broker, d.pid, env.redis_server), d.metrics()
        load.at(ready + timeout)
        after = d.metrics()
        use.end(rate)
        keys_live(env, devices, timeout)
    heard = after.get("heartbeats_total") - before.get("heartbeats_total")
    assert abs(heard - use.heartbeats) < 0.02 * use.heartbeats + rate * 0.1, (heard, use.heartbeats, load.said)
    assert d.status()["online"] == devices, d.status()
    refreshed = after.get("redis_refreshes_total") - before.get("redis_refreshes_total")
    expiries = use.calls.get("pexpire", 0)
    assert abs(expiries - refreshed) < 0.05 * refreshed + devices * 0.01, ("PEXPIRE", expiries, "of", refreshed)
    use.refreshes = refreshed / devices
    use.redis_a_refresh = use.us["Redis"] * use.heartbeats / refreshed
    d.stop()
    return use


def old(o, env, devices, interval, timeout, gather_ms, batch, warm_up):
    argv = [o.build / "bench" / "oldway", env.broker.port, env.redis_server.port, env.root, max(1, round(timeout)),
            gather_ms, batch]
    proc = subprocess.Popen([str(a) for a in argv])
    try:
        with Load(o, env.broker, env.root, devices, interval) as load:
            load.at(warm_up)
            use = Use(env.broker, proc.pid, env.redis_server)
            load.at(warm_up + interval)
            use.end(devices / interval)
    finally:
        proc.terminate()
    assert proc.wait(10) == 0
    done = use.calls.get("setex", 0)
    assert abs(done - use.heartbeats) < 0.02 * use.heartbeats + devices / interval * 0.1, (done, use.heartbeats)
    assert abs(use.calls["del"] - done) <= 2, use.calls
    return use


# --- a bare Redis at a steady pace

SCRIPT = "local answer = {} for i = 1, #KEYS do answer[i] = redis.call('PEXPIRE', KEYS[i], ARGV[1]) end return answer"
CONNECTED, TTL_MS = b"device:connected:d%d", b"90000"


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def by_script(devices):
    return command(b"EVAL", SCRIPT.encode(), b"%d" % len(devices), *[CONNECTED % i for i in devices], TTL_MS)


def plain(devices):
    return b"".join(command(b"PEXPIRE", CONNECTED % i, TTL_MS) for i in devices)


def set_and_delete(devices):
    return b"".join(command(b"SETEX", CONNECTED % i, b"90", b"d%d" % i) + command(b"DEL", b"device:disconnected:d%d" % i)
                    for i in devices)


# How many in one write, the write, the lines of its answer for each and besides, and how often in a timeout.
WAYS = {"PEXPIRE": (BATCH, plain, 1, 0, 1), "script": (60, by_script, 1, 1, 1), "SETEX and DEL": (BATCH, set_and_delete, 2, 0, 3)}


def send(s, data, lines):
    s.sendall(data)
    while lines > 0:
        answer = s.recv(1 << 16)
        assert answer and b"-" not in answer, answer[:200]
        lines -= answer.count(b"\n")


def paced(s, redis, way, devices, rate, seconds):
    """CPU of Redis, for what one of these does in a timeout."""
    size, make, each, more, often = WAYS[way]
    order = random.sample(range(devices), devices)
    n = max(1, int(rate * often * seconds) // size)
    writes = [make([order[(k * size + i) % devices] for i in range(size)]) for k in range(n)]
    began, used = time.monotonic(), measure.cpu_us(redis.pid)
    for k, data in enumerate(writes + [None]):
        time.sleep(max(0, began + k * size / rate / often - time.monotonic()))
        if data:
            send(s, data, size * each + more)
    return (measure.cpu_us(redis.pid) - used) / (n * size) * often


def ways(o):
    devices, seconds, rounds = (1000, 0.5, 1) if o.smoke else (100000, 4, 5)
    with measure.world() as (env, _):
        s = socket.create_connection(("127.0.0.1", env.redis_server.port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(0, devices, 1000):
            send(s, set_and_delete(range(i, i + 1000)), 2000)
        for rate in (5000, 3333):
            us = {way: [] for way in WAYS}
            for way in list(WAYS) * rounds:
                us[way].append(paced(s, env.redis_server, way, devices, rate, seconds))
            yield rate, us
        s.close()


def report_ways(devices, rate, us):
    def ratio(a, b):
        return statistics.median(x / y for x, y in zip(us[a], us[b]))
    of = ", %s a second" % format(rate, ",d")
    measure.conditions("a bare Redis with %s keys, %d rounds in turns" % (format(devices, ",d"), len(us["script"])))
    measure.figure("6 refresh", "CPU of Redis, PEXPIRE, 256 in one write" + of, statistics.median(us["PEXPIRE"]), "us")
    measure.figure("6 refresh", "CPU of Redis, PEXPIRE / by a script, 60 a call" + of, ratio("PEXPIRE", "script"), "x",
                   ("<=", 0.55))
    measure.figure("6 refresh", "CPU of Redis, SETEX and DEL of three heartbeats / one PEXPIRE" + of,
                   ratio("SETEX and DEL", "PEXPIRE"), "x", (">=", 4))


# --- heartwheel, and what it replaces


def report(name, use):
    measure.figure("6 refresh", "CPU a heartbeat, %s" % name, use.total, "us",
                   note="program %.2f, Redis %.2f; the broker %.2f beside it" % (
                       use.us["program"], use.us["Redis"], use.us["broker"]))
    measure.figure("6 refresh", "Redis commands a heartbeat, %s" % name, use.commands, "",
                   note="script calls: %.4f a heartbeat" % use.scripts if use.scripts else None)


def loaded(devices, interval, timeout, name, payload="with the time"):
    """The conditions of the figures that follow; and how labels name this load."""
    measure.conditions("%s devices, JSON %s, timeout %g s, %.3g heartbeats in each timeout" % (
        format(devices, ",d"), payload, timeout, timeout / interval))
    return "" if not name else ", " + name


def refreshes(wheel, of, goal, most=("<=", 1)):
    measure.figure("6 refresh", "CPU of Redis, a refresh" + of, wheel.redis_a_refresh, "us", goal,
                   "all that Redis does, and wakes for, in that while")
    measure.figure("6 refresh", "refreshes of a device in one timeout" + of, wheel.refreshes, "", most,
                   "a device whose heartbeat is read just after its slot was due is looked at again an interval early")


def run(o):
    devices, interval, timeout = (2000, 0.5, 1.5) if o.smoke else (100000, 10, 30)
    seldom = timeout * 0.9  # of one heartbeat a timeout: late ones are no deaths
    dense = (devices, interval, timeout) if o.smoke else (devices, 2, 6)
    worst = (devices, 0.8, timeout) if o.smoke else (20000, 16, timeout)
    for rate, us in ways(o):
        report_ways(1000 if o.smoke else 100000, rate, us)
    with measure.world() as (env, _):
        wheel = ours(o, env, devices, interval, timeout)
        env.own_redis()
        plain = old(o, env, devices, interval, timeout, 0, BATCH, interval * 1.1)
        # The keys are there from now on.
        read = old(o, env, devices, interval, timeout, 2, BATCH, interval * 0.1)
        single = old(o, env, devices, interval, timeout, 0, 1, interval * 0.1)
    with measure.world() as (env, _):
        rare = ours(o, env, devices, seldom, timeout)
        env.own_redis()
        rare_plain = old(o, env, devices, seldom, timeout, 0, BATCH, seldom * 1.1)
    with measure.world() as (env, _):
        many = ours(o, env, *dense)
    with measure.world() as (env, _):
        seven = ours(o, env, *dense, payload=measure.SEVEN)
    with measure.world() as (env, _):
        often = ours(o, env, *worst)

    of = loaded(devices, interval, timeout, "")
    report("heartwheel", wheel)
    ways = [("SETEX and DEL", plain, (">=", 5)), ("SETEX and DEL, batched reading", read, None),
            ("SETEX and DEL, one by one", single, None)]
    for name, use, goal in ways:
        report(name, use)
        measure.figure("6 refresh", "CPU of %s / heartwheel" % name, use.total / wheel.total, "x", goal,
                       "their reader is libmosquitto as it comes, unless reading is batched, as heartwheel's is")
    refreshes(wheel, of, None)
    of = loaded(devices, seldom, timeout, "one heartbeat a timeout")
    report("heartwheel" + of, rare)
    report("SETEX and DEL" + of, rare_plain)
    measure.figure("6 refresh", "CPU of SETEX and DEL / heartwheel" + of, rare_plain.total / rare.total, "x", (">=", 3))
    refreshes(rare, of, None)
    so_many = "%s a second" % format(round(dense[0] / dense[2]), ",d")
    refreshes(many, loaded(*dense, so_many), ("<=", 1.5))
    refreshes(seven, loaded(*dense, so_many + ", seven members reported", "of seven members"), None, None)
    refreshes(often, loaded(*worst, "the worst interval"), None)


if __name__ == "__main__":
    run(measure.options(__doc__))
