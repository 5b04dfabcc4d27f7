#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a heartbeat costs the whole system: heartwheel, and the scheme that it replaces (oldway.c), under the same load.

A fleet (pace.c) beats evenly through a real mosquitto; each way has a Redis of its own. CPU is what the program and its
Redis use, for each heartbeat, over a whole timeout in which nobody comes or goes; the broker is shown beside it. The old
way runs three times: in large pipelines, which is as fast as it goes; besides with the batched reading of heartwheel's
reader; and as it is commonly written, with nothing held back. The same with one heartbeat a timeout; and what a refresh
costs Redis where many are due in each slot, so that waking for a few does not count.
"""
import math
import subprocess
import time
from pathlib import Path

import measure

CONNECTIONS = 16
BATCH = 256
LOOKS_S = 20000  # devices a second that the monitor is given for looking after all when Redis was away


class Load:
    """A fleet that beats as long as the block lasts; .at(s) waits until that long after its begin."""

    def __init__(self, o, broker, root, devices, interval):
        self.argv = [o.build / "bench" / "pace", broker.port, root, devices, int(interval * 1000), CONNECTIONS]

    def __enter__(self):
        self.proc = subprocess.Popen([str(a) for a in self.argv], stdout=subprocess.PIPE, text=True)
        self.began = time.monotonic()
        return self

    def at(self, seconds):
        time.sleep(max(0, self.began + seconds - time.monotonic()))

    def __exit__(self, *exc):
        self.proc.terminate()
        self.said = dict(line.split() for line in self.proc.communicate()[0].splitlines())


def cpu_us(pid):
    """CPU time of a process that neither begins nor ends a thread meanwhile: finer than measure.cpu_s()."""
    return sum(int(t.read_text().split()[0]) for t in Path("/proc/%d/task" % pid).glob("*/schedstat")) / 1000


class Use:
    """What some processes and a Redis do within a while, for each heartbeat."""

    def __init__(self, broker, program, redis):
        self.redis = redis.client()
        self.redis.config_resetstat()
        self.pids = {"program": program, "Redis": redis.pid, "broker": broker.pid}
        self.used = {k: cpu_us(pid) for k, pid in self.pids.items()}
        self.began = time.monotonic()

    def end(self, rate):
        self.heartbeats = rate * (time.monotonic() - self.began)
        self.us = {k: (cpu_us(pid) - self.used[k]) / self.heartbeats for k, pid in self.pids.items()}
        calls = {k[8:]: v["calls"] for k, v in self.redis.info("commandstats").items()}
        own = {k: n for k, n in calls.items() if k.split("|")[0] not in ("config", "info", "client", "ping")}
        self.scripts = own.get("evalsha", 0) / self.heartbeats
        self.commands = sum(own.values()) / self.heartbeats - self.scripts
        self.calls = own
        return self

    @property
    def total(self):
        return self.us["program"] + self.us["Redis"]


def ours(o, env, devices, interval, timeout):
    d = env.configure(timeout="%dms" % (timeout * 1000), monitor={"log_level": "info"})
    d.start()
    rate = devices / interval
    with Load(o, env.broker, env.root, devices, interval) as load:
        # The first refresh of a device is one in full. Here all have it once they have been heard twice, since the
        # monitor looks after everything when Redis was away: otherwise the steady state begins a timeout later. The
        # window begins and ends where no refresh is due, so that it holds one of each device.
        load.at(interval * 2.02)
        env.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        ready = interval * (2.8 + max(0, math.ceil(devices / LOOKS_S / interval - 0.78)))
        load.at(ready)
        assert d.metrics().get("redis_refreshes_total") >= devices, "the warm-up was too short"
        use, before = Use(env.broker, d.pid, env.redis_server), d.metrics()
        load.at(ready + timeout)
        after = d.metrics()
        use.end(rate)
    heard = after.get("heartbeats_total") - before.get("heartbeats_total")
    assert abs(heard - use.heartbeats) < 0.02 * use.heartbeats + rate * 0.1, (heard, use.heartbeats, load.said)
    assert d.status()["online"] == devices, d.status()
    refreshed = after.get("redis_refreshes_total") - before.get("redis_refreshes_total")
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


def report(name, use):
    measure.figure("6 refresh", "CPU a heartbeat, %s" % name, use.total, "us",
                   note="program %.2f, Redis %.2f; the broker %.2f beside it" % (
                       use.us["program"], use.us["Redis"], use.us["broker"]))
    measure.figure("6 refresh", "Redis commands a heartbeat, %s" % name, use.commands, "",
                   note="script calls: %.4f a heartbeat" % use.scripts if use.scripts else None)


def loaded(devices, interval, timeout, name):
    """The conditions of the figures that follow; and how labels name this load."""
    measure.conditions("%s devices, JSON that tells the time, timeout %g s, %.2g heartbeats a timeout" % (
        format(devices, ",d"), timeout, timeout / interval))
    return "" if not name else ", " + name


def refreshes(wheel, of, goal):
    measure.figure("6 refresh", "CPU of Redis, a refresh" + of, wheel.redis_a_refresh, "us", goal,
                   "all that Redis does, and wakes for, in that while")
    measure.figure("6 refresh", "refreshes of a device in one timeout" + of, wheel.refreshes, "", ("<=", 1),
                   "a device whose heartbeat is read just after its slot was due is looked at again an interval early")


def run(o):
    devices, interval, timeout = (2000, 0.5, 1.5) if o.smoke else (100000, 10, 30)
    seldom = timeout * 0.9  # of one heartbeat a timeout: late ones are no deaths
    dense = (devices, interval, timeout) if o.smoke else (devices, 2, 6)
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

    of = loaded(devices, interval, timeout, "")
    report("heartwheel", wheel)
    ways = [("SETEX and DEL", plain, (">=", 5)), ("SETEX and DEL, batched reading", read, None),
            ("SETEX and DEL, one by one", single, None)]
    for name, use, goal in ways:
        report(name, use)
        measure.figure("6 refresh", "CPU of %s / heartwheel" % name, use.total / wheel.total, "x", goal)
    refreshes(wheel, of, None)
    of = loaded(devices, seldom, timeout, "one heartbeat a timeout")
    report("heartwheel" + of, rare)
    report("SETEX and DEL" + of, rare_plain)
    measure.figure("6 refresh", "CPU of SETEX and DEL / heartwheel" + of, rare_plain.total / rare.total, "x", (">=", 3))
    refreshes(rare, of, None)
    refreshes(many, loaded(*dense, "%s a second" % format(round(dense[0] / dense[2]), ",d")), ("<=", 1.5))


if __name__ == "__main__":
    run(measure.options(__doc__))
