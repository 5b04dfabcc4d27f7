#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the keyspace listener costs for each key and each notification, and how late it is, beside Redis' own `expired`.

    HW_BUILD=build python3 bench/keyspace.py [KEYS ...]        (default: 2000 100000)

Everything is private: a broker, a Redis and the daemon on free ports, in a temporary directory. Another program (this
one) writes the keys. CPU is user + system time of the process, from /proc.
"""
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "system"))

from hw_env import Broker, Env, Redis, wait_until  # noqa: E402

TTL_MS = 3000
HZ = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    fields = Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / HZ


def rss_kb(pid):
    for line in Path("/proc/%d/status" % pid).read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def percentiles(ms):
    ms = sorted(ms)
    return "p50 %6d  p99 %6d  max %6d ms" % (ms[len(ms) // 2], ms[len(ms) * 99 // 100], ms[-1]) if ms else "none"


def write(r, prefix, n, ttl_ms, ends=False):
    """SET with a time to live for every key; returns {key: wall ms of its end} if asked for."""
    found = {}
    for first in range(0, n, 1000):
        keys = ["%sd%d" % (prefix, i) for i in range(first, min(n, first + 1000))]
        p = r.pipeline(transaction=False)
        for k in keys:
            p.set(k, "x", px=ttl_ms)
            if ends:
                p.execute_command("PEXPIRETIME", k)
        answers = p.execute()
        if ends:
            found.update(zip(keys, answers[1::2]))
    return found


def raw(server, n):
    """How late Redis' own notification is, with nobody looking at the keys."""
    came, stop = {}, threading.Event()
    r = server.client()
    sub = server.client().pubsub()
    sub.subscribe("__keyevent@0__:expired")

    def hear():
        while not stop.is_set():
            m = sub.get_message(timeout=0.2)
            if m and m["type"] == "message":
                came[m["data"]] = time.time() * 1000
    thread = threading.Thread(target=hear)
    thread.start()
    ends = write(r, "raw:", n, TTL_MS, True)
    try:
        wait_until(lambda: len(came) >= n, 60, interval=0.2)
    except AssertionError:
        pass
    stop.set()
    thread.join()
    print("  Redis' own `expired` alone     %s  (%d of %d came)" % (
        percentiles([came[k] - ends[k] for k in came if k in ends]), len(came), n))


def settle(d):
    """Until the sweep that follows every start is over."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < 1:
        now = d.metrics().get("redis_refreshes_total")
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.1)


class Phase:
    """CPU of the daemon and of Redis from its begin to its end, for each of `n`."""

    def __init__(self, d, server):
        self.pids = (d.pid, server.pid)
        self.cpu = [cpu_s(p) for p in self.pids]

    def end(self, what, n, each):
        daemon, redis = [(cpu_s(p) - c) * 1e6 / n for p, c in zip(self.pids, self.cpu)]
        print("  %-30s daemon %6.1f us  Redis %6.1f us  a %s" % (what, daemon, redis, each))


def listener(env, n):
    d = env.configure(timeout="1h", group={"status": ""}, keyspace={"enabled": "yes"}, monitor={"log_level": "info"})
    d.start()
    wait_until(lambda: d.metrics().get("keyspace_resyncs_total") >= 1, 20)
    r, prefix, before = env.redis, env.key("connected", ""), rss_kb(d.pid)

    def online():
        return d.status()["online"]

    phase = Phase(d, env.redis_server)
    write(r, prefix, n, 600000)
    wait_until(lambda: online() == n and d.status()["owed"] == 0, 120, interval=0.1)
    phase.end("a new key (goes online)", n, "key")
    print("  %-30s %.0f bytes a key" % ("memory", (rss_kb(d.pid) - before) * 1024 / n))

    settle(d)
    seen = d.metrics().get("notifications_total")
    looks = d.metrics().get("keyspace_looks_total")
    phase = Phase(d, env.redis_server)
    write(r, prefix, n, 600000)
    wait_until(lambda: d.metrics().get("notifications_total") >= seen + 2 * n
               and d.metrics().get("keyspace_looks_waiting") == 0, 120, interval=0.1)
    phase.end("a renewed key", 2 * n, "notification")
    print("  %-30s %.2f for each notification" % ("looks", (d.metrics().get("keyspace_looks_total") - looks) / (2 * n)))

    phase = Phase(d, env.redis_server)
    time.sleep(5)
    daemon, redis = [(cpu_s(p) - c) * 100 / 5 for p, c in zip(phase.pids, phase.cpu)]
    print("  %-30s daemon %6.1f %%   Redis %6.1f %%   of a core" % ("nobody writes", daemon, redis))

    ends = write(r, prefix, n, TTL_MS, True)
    phase = Phase(d, env.redis_server)
    wait_until(lambda: online() == 0 and d.status()["owed"] == 0, 120, interval=0.1)
    phase.end("an expired key (goes offline)", n, "key")
    events = [e for _, e in r.xrange(env.key("events")) if e["state"] == "offline"]
    assert len(events) == n and {e["reason"] for e in events} == {"keyspace"}, "not one each: %d" % len(events)
    print("  heartwheel's transition        %s  (%d of %d, once each)" % (
        percentiles([int(e["time_ms"]) - ends[prefix + e["id"]] for e in events]), len(events), n))
    m = d.metrics()
    print("  missed %d, repaired %d, dropped %d, lag %.1f ms" % (
        m.get("keyspace_missed_total"), m.get("keyspace_repaired_total"), m.get("keyspace_looks_dropped_total"),
        m.get("keyspace_lag_seconds") * 1000))


def run(n):
    base = tempfile.mkdtemp(prefix="hwb-", dir="/tmp")
    os.mkdir(base + "/mq")
    broker = Broker(base + "/mq").start()
    env = Env(broker, None, base)
    try:
        env.own_redis(options=["--notify-keyspace-events", "Exg$e"])
        print("%d keys, written with PX %d" % (n, TTL_MS))
        raw(env.redis_server, n)
        listener(env, n)
    finally:
        env.close()
        broker.kill()
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    for count in [int(a) for a in sys.argv[1:]] or [2000, 100000]:
        run(count)
