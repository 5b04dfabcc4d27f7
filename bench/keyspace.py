#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the keyspace listener costs for each key and each notification, and how late it is, beside Redis' own `expired`.

Another program (this one) keeps 100,000 keys in Redis, each written once in its time to live of 3 s, evenly; then it
stops. As many others stay, since Redis finds what has expired by looking at keys at random. An observer on a connection
of its own notes when the mark of each death is written. The same keys are written to two bare Redis servers, and an
observer subscribes to their `expired`: one server as it comes, one told to look for expired keys as hard as it can (hz
100, active-expire-effort 10). When a key's time is over is known exactly: it is written with PXAT, which is told in the
same words as PX.

CPU is what the processes used, by the kernel's count; of Redis what it used for this, its answers to us among it.
"""
import bisect
import re
import socket
import sys
import threading
import time

import measure

TARGET = "14 keyspace"
SMOKE = "--smoke" in sys.argv
TTL_MS, LONG_MS = 1000 if SMOKE else 3000, 600000
TUNED = ("--hz", "100", "--active-expire-effort", "10")
MESSAGE = re.compile(rb"\$7\r\nmessage\r\n\$\d+\r\n([^\r]+)\r\n\$\d+\r\n([^\r]+)\r\n")
LATE_MS = 1000 / 31 + 20
IDLE_S = 1 if SMOKE else 5
WAIT_S = 20  # for what Redis tells late


def now_ms():
    return time.time() * 1000


class Observer(threading.Thread):
    """Notes when Redis told of what happened to a key. What was read is taken apart afterwards: to be late itself would
    be to blame Redis for it."""

    def __init__(self, server, *events):
        super().__init__(daemon=True)
        self.chunks = []
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.sendall(b"SUBSCRIBE " + b" ".join(b"__keyevent@0__:" + e for e in events) + b"\r\n")
        self.start()

    def run(self):
        while True:
            data = self.socket.recv(1 << 20)
            if not data:
                return
            self.chunks.append((now_ms(), data))

    def stop(self):
        """{key: wall ms}"""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.join()
        self.socket.close()
        ends, total = [], 0
        for _, data in self.chunks:
            total += len(data)
            ends.append(total)
        said = b"".join(data for _, data in self.chunks)
        return {m[2].decode(): self.chunks[bisect.bisect_left(ends, m.end())][0] for m in MESSAGE.finditer(said)}


def write(server, prefix, n, ttl_ms, over_ms=0):
    """SETs n keys, pipelined, evenly over some time; returns {key: wall ms of its end}."""
    ends, began, batch = {}, time.monotonic(), 500
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        for first in range(0, n, batch):
            wait_s = began + over_ms / 1000 * first / n - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            keys = ["%sd%d" % (prefix, i) for i in range(first, min(n, first + batch))]
            end = int(now_ms()) + ttl_ms
            s.sendall("".join("*5\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\nx\r\n$4\r\nPXAT\r\n$%d\r\n%d\r\n" % (
                len(k), k, len(str(end)), end) for k in keys).encode())
            owed = 5 * len(keys)  # "+OK\r\n" each
            while owed:
                got = s.recv(owed)
                assert got and got[:1] != b"-", got
                owed -= len(got)
            ends.update(dict.fromkeys(keys, end))
    return ends


def show(label, value, unit, goal=None, note=None, worst=False):
    measure.figure(TARGET, label, value, unit, goal, note, worst)


def delays(who, ends, came, note=None):
    """Prints how long after their ends the keys' deaths came; returns the p99. What has not come counts with what has
    passed."""
    now = now_ms()
    late = [came.get(k, now) - end for k, end in ends.items()]
    ours = who == "a key's death, mark in Redis"
    show(who + ", the earliest", min(late), "ms", (">=", 0) if ours else None, None, True)
    show(who + ", p50", measure.percentile(late, 50), "ms")
    p99 = measure.percentile(late, 99)
    show(who + ", p99", p99, "ms", ("<=", LATE_MS) if ours else None, note)
    show(who + ", the latest", max(late), "ms")
    return p99


# --- Redis alone


def bare(server, n, who):
    """A server that nobody looks at; returns its p99."""
    from hw_wait import wait_until
    r = server.client()
    write(server, "live:", n, LONG_MS)
    seen = Observer(server, b"expired")
    ends = write(server, "bare:", n, TTL_MS, TTL_MS)
    try:
        wait_until(lambda: r.info("stats")["expired_keys"] >= n, WAIT_S, interval=0.2)
    except AssertionError:
        pass
    time.sleep(0.2)
    came = seen.stop()
    return delays(who, ends, came, "%d of %d had not come when the run ended, and count with what had passed" % (
        n - len(came), n))


def bare_writes(server, n):
    """What a notification costs Redis with a subscriber that only counts."""
    seen = Observer(server, b"set", b"expire")
    write(server, "bare:", n, LONG_MS)
    watch = measure.Stopwatch(server.pid)
    write(server, "bare:", n, LONG_MS)
    used = watch.cpu()
    seen.stop()
    show("a notification, Redis alone", used * 1e6 / (2 * n), "us", note="the SET that caused it is half of it")
    server.client().flushall()


# --- with heartwheel


class Phase:
    """CPU of the daemon and of Redis, for each of `n`."""

    def __init__(self, d, server):
        self.watches = [measure.Stopwatch(d.pid), measure.Stopwatch(server.pid)]

    def end(self, what, n):
        for who, watch in zip(("the daemon", "Redis"), self.watches):
            show("%s, %s" % (what, who), watch.cpu() * 1e6 / n, "us")


def settle(d):
    """Until the sweep that follows every start is over."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < 1:
        now = d.metrics().get("redis_refreshes_total")
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.1)


def idle(d, server):
    watches = [measure.Stopwatch(d.pid), measure.Stopwatch(server.pid)]
    time.sleep(IDLE_S)
    for who, watch in zip(("the daemon", "Redis"), watches):
        show("nobody writes, " + who, watch.cpu() / watch.wall() * 100, "% of a core")


def keep(env, d, n):
    """Keys come, and are kept."""
    from hw_wait import wait_until
    server, prefix, before = env.redis_server, env.key("connected", ""), measure.rss_kb(d.pid)
    phase = Phase(d, server)
    write(server, prefix, n, LONG_MS)
    wait_until(lambda: d.status()["online"] == n and d.status()["owed"] == 0, 120, interval=0.1)
    phase.end("a new key", n)
    show("memory a key", (measure.rss_kb(d.pid) - before) * 1024 / n, "bytes")
    settle(d)
    m = d.metrics()
    seen, looks = m.get("notifications_total"), m.get("keyspace_looks_total")
    phase = Phase(d, server)
    write(server, prefix, n, LONG_MS)
    wait_until(lambda: d.metrics().get("notifications_total") >= seen + 2 * n
               and d.metrics().get("keyspace_looks_waiting") == 0, 120, interval=0.1)
    phase.end("a notification", 2 * n)
    show("looks a notification", (d.metrics().get("keyspace_looks_total") - looks) / (2 * n), "")


def die(env, d, n):
    """Each key is written once in its time to live, and then no more; returns the p99."""
    from hw_wait import wait_until
    write(env.redis_server, env.key("connected", "live-"), n, LONG_MS)
    write(env.redis_server, env.key("connected", ""), n, TTL_MS + 1000, TTL_MS)
    seen = Observer(env.redis_server, b"set")
    ends = write(env.redis_server, env.key("connected", ""), n, TTL_MS, TTL_MS)
    phase = Phase(d, env.redis_server)
    wait_until(lambda: d.status()["online"] == n and d.status()["owed"] == 0, 120, interval=0.1)
    phase.end("a death", n)
    came = seen.stop()
    mark = env.key("disconnected", "")
    came = {env.key("connected", k[len(mark):]): at for k, at in came.items() if k.startswith(mark)}
    events = [e for _, e in env.redis.xrange(env.key("events")) if e["state"] == "offline"]
    assert len(events) == n and {e["reason"] for e in events} == {"keyspace"}, "not one each: %d" % len(events)
    assert len(came) == n, "%d of %d marks were seen" % (len(came), n)
    m = d.metrics()
    for what in ("missed", "repaired", "looks_dropped"):
        show("keys %s" % what.replace("_", " "), m.get("keyspace_%s_total" % what), "", ("<=", 0), None, True)
    return delays("a key's death, mark in Redis", ends, came)


def listen(env, n):
    from hw_wait import wait_until
    d = env.configure(timeout="1h", group={"status": ""}, keyspace={"enabled": "yes"}, monitor={"log_level": "info"})
    d.start()
    wait_until(lambda: d.metrics().get("keyspace_resyncs_total") >= 1, 20)
    keep(env, d, n)
    idle(d, env.redis_server)
    return die(env, d, n)


def run(o):
    n = 2000 if o.smoke else 100000
    measure.conditions("%s keys, time to live %.0f s, one write a time to live; as many that stay" % (
        format(n, ",d"), TTL_MS / 1000))
    events = ("--notify-keyspace-events", "Exg$e")
    with measure.world(events, bare=(events, events + TUNED)) as (env, raws):
        env.check_events = False
        p99 = listen(env, n)
        for server, who in zip(raws, ("Redis' expired for a key", "Redis' expired at hz 100, effort 10, for a key")):
            server.start()
            if server is raws[0]:
                bare_writes(server, n)
            show("%s, p99 / heartwheel's, at least" % who, bare(server, n, who) / p99, "x")
            server.kill()


if __name__ == "__main__":
    run(measure.options(__doc__))
