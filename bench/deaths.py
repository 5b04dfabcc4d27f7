#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A million devices that die at once: how fast Redis has them marked and the broker their retained statuses, next to
what Redis and the broker do when nothing else is asked of them.

Every device is brought online by a heartbeat through the broker. Then a reload makes their timeout a second: they are
all overdue at that moment, which is as much at once as it can be. Meanwhile other devices go on beating. Marking is
seen in Redis (the cardinality of device:offline), statuses by a subscriber; each from its first to its last. `store`:
Redis alone, no statuses. `status`: no Redis. `both`: as shipped. `status apart`: devices' statuses are no heartbeats,
so that the broker need not send each one back to the monitor.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import measure  # noqa: E402

TARGET = 7
HEARTBEAT, STATUS = "fleet/{id}/heartbeat", "fleet/{id}/status"
O = measure.options(__doc__.splitlines()[0])

from hw_env import Broker, Env, Redis, wait_until  # noqa: E402

DEVICES = 20000 if O.smoke else 1000000
SAMPLE = 4000 if O.smoke else 200000  # of the baselines
OTHERS, OTHERS_S = (1000, 1) if O.smoke else (10000, 1)  # that go on beating, and how often
QUIET_S = 1 if O.smoke else 3
LUA = str(measure.TESTS.parents[1] / "src" / "redis" / "scripts" / "transition.lua")


def program(name, *arguments):
    return [str(O.build / "bench" / name), *map(str, arguments)]


def figure(label, value, unit, goal=None, note=None):
    measure.figure(TARGET, label, value, unit, goal, note)


class Place:
    """Private servers in a directory of their own, for one part of the bench."""

    def __init__(self, redis):
        self.dir = tempfile.mkdtemp(prefix="hwb-", dir="/tmp")
        self.env = Env(None, None, self.dir)
        self.env.check_events = False
        self.env.root, self.env.prefix = "fleet", "device:"
        self.env.own_broker(settings=())  # as it comes
        self.env.own_redis(start=redis)
        self.port, self.children = self.env.broker.port, []

    def start(self, name, *arguments):
        p = subprocess.Popen(program(name, *arguments), stdout=subprocess.PIPE, text=True)
        self.children.append(p)
        return p

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for p in self.children:
            p.kill()
            p.wait()
        for d in self.env.daemons:
            d.kill()
        self.env.close()
        shutil.rmtree(self.dir, ignore_errors=True)


# --- the daemon -------------------------------------------------------------------------------------------------------


def groups(timeout, status, back):
    heartbeat = [HEARTBEAT, STATUS] if back else [HEARTBEAT]
    return [("fleet", {"heartbeat": heartbeat, "status": STATUS if status else "", "timeout": timeout}),
            ("others", {"heartbeat": "others/{id}/heartbeat", "status": "", "timeout": "1h", "id_prefix": "o-"})]


def configuration(store, timeout, status, back):
    return {"groups": groups(timeout, status, back), "store": {"type": store}, "mqtt": {"republish_rate": 0},
            "monitor": {"log_level": "notice", "max_devices": DEVICES + OTHERS, "stop_timeout": "1s"}}


def all_online(place, d, n, rate):
    """Each beats once, so many a second; over again if the broker has dropped any."""
    seconds = max(1, n // rate)
    for _ in range(5):
        fleet = place.start("pace", place.port, "fleet", n, seconds * 1000, 1)
        time.sleep(seconds + 0.3)
        fleet.terminate()
        fleet.wait()
        if d.get("/v1/status").json()["online"] >= n:
            break
    wait_until(lambda: d.status()["online"] == n and d.status()["owed"] == 0, 60, "all to be online", 0.1)


class Others:
    """The heartbeats of those who live: how many were sent, and how many heard."""

    def __init__(self, place, d):
        self.d, self.place = d, place
        self.rate = OTHERS / OTHERS_S

    def count(self):
        return self.d.metrics().get("heartbeats_total", group="others")

    def __enter__(self):
        self.pace = self.place.start("pace", self.place.port, "others", OTHERS, OTHERS_S * 1000, 8)
        return self

    def measured(self, action):
        """The rate at which they are heard while `action` runs, as a share of the rate at which they are sent."""
        began, before = time.monotonic(), self.count()
        action()
        return (self.count() - before) / (time.monotonic() - began) / self.rate

    def __exit__(self, *exc):
        self.pace.terminate()
        self.pace.wait()


class Marks(threading.Thread):
    """Looks how many are marked offline in Redis, all the time, until they all are."""

    def __init__(self, env, n, limit_s):
        super().__init__(daemon=True)
        self.n = n
        self.redis, self.key, self.until = env.redis_server.client(), env.key("offline"), time.monotonic() + limit_s
        self.first = self.last = None
        self.seen = 0

    def run(self):
        while self.seen < self.n and time.monotonic() < self.until:
            before = time.monotonic()
            n = self.redis.zcard(self.key)
            if n and not self.first:
                self.first = before
            if n > self.seen:
                self.seen, self.last = n, time.monotonic()
            time.sleep(0.02)


def turns(m):
    """How many turns of the loop took at most so many seconds of CPU: {bound: n}."""
    found = {}
    for (name, labels), value in m.samples.items():
        if name == "heartwheel_loop_turn_cpu_seconds_bucket":
            found[float(dict(labels)["le"].replace("+Inf", "inf"))] = value
    return found


def worst_turn(before, after):
    """The least bound that holds for every turn between the two, in ms."""
    n = {bound: after[bound] - before[bound] for bound in after}
    return min(b for b in n if n[b] == n[float("inf")]) * 1000


# --- the parts --------------------------------------------------------------------------------------------------------


def bare_redis():
    """The best of the script in other hands: one device a call with 128 in flight, and many devices a call."""
    with Place(True) as place:
        port = place.env.redis_server.port
        subprocess.run(program("script", "fill", port, "device:", DEVICES), check=True)
        one = measure.relay(O, "script", "die", port, "device:", LUA, 0, SAMPLE, 1, 128)["rate"]
        many = measure.relay(O, "script", "die", port, "device:", LUA, SAMPLE, SAMPLE, 64, 8)["rate"]
    figure("script alone, one device a call, 128 in flight", one, "/s")
    figure("script alone, 64 devices a call, 8 in flight", many, "/s")
    return one


def bare_mqtt(label, company=None):
    """The best bare publisher, with as many in flight as does it most good, and the same subscriber attached. `company`:
    the others beat meanwhile, and a subscriber that only counts has this filter."""
    best = (0, 0)
    with Place(False) as place:
        windows = (20, 100, 500)
        if company:
            place.start("counter", place.port, company, os.path.join(place.dir, "counts"), 1)
            place.start("pace", place.port, "others", OTHERS, OTHERS_S * 1000, 8)
            time.sleep(1)
        place.start("publisher", "watch", place.port, "fleet", len(windows) * SAMPLE, 60).stdout.readline()
        for i, window in enumerate(windows):
            rate = measure.relay(O, "publisher", "send", place.port, 5, window, i * SAMPLE, SAMPLE, "fleet")["rate"]
            best = max(best, (rate, window))
    figure(label, best[0], "/s", None, "%d in flight" % best[1])
    return best[0]


def die(place, name, n, store, status, back=True):
    """Returns how many a second were marked and told; 0: not asked for. `back`: statuses come back to the monitor, as
    they match its heartbeat filters."""
    env = place.env
    d = env.daemon(**configuration(store, "1h", False, back))
    all_online(place, d, n, 60000 if store == "redis" else 120000)
    d.rewrite(env.text(directory=d.dir, **configuration(store, "1s", status, back)))
    limit_s = 20 + n / 10000
    with Others(place, d) as others:
        wait_until(lambda: d.status()["online"] == n + OTHERS, 60, "the others to be online", 0.1)
        quiet = others.measured(lambda: time.sleep(QUIET_S))
        watch = place.start("publisher", "watch", place.port, "fleet", n, limit_s) if status else None
        marks = Marks(env, n, limit_s) if store == "redis" else None
        if watch:
            watch.stdout.readline()
        before = d.metrics()

        def death():
            if marks:
                marks.start()
            assert d.request("POST", "/v1/reload").status == 200
            if marks:
                marks.join()
            if watch:
                watch.wait()
        heard = others.measured(death)
        wait_until(lambda: d.status()["owed"] == 0, limit_s, "all to be written", 0.1)
        after = d.metrics()
    told = dict(line.split() for line in watch.stdout.read().splitlines()) if watch else {}
    marked = n / (marks.last - marks.first) if marks else 0
    lost = marks and marks.seen < n or watch and int(told["seen"]) < n
    if lost:
        print("only %s marked, %s told" % (marks and marks.seen, told.get("seen")), file=sys.stderr)
    assert not lost
    if store == "redis":
        dropped = after.get("redis_edges_dropped_total") - before.get("redis_edges_dropped_total")
        figure("%s: deaths that the event stream lacks" % name, dropped, "", ("<=", 0))
    figure("%s: longest turn of the loop, CPU" % name, worst_turn(turns(before), turns(after)), "ms", ("<=", 10))
    figure("%s: others heard, share of the quiet rate" % name, heard / quiet, "x", (">=", 0.8),
           "%.0f/s, %.3f of them when quiet" % (others.rate, quiet))
    return marked, n / (float(told["last"]) - float(told["first"])) if watch else 0


def main():
    script = bare_redis()
    bare = bare_mqtt("bare QoS 1 publisher")
    beside = {back: bare_mqtt("bare QoS 1 publisher beside the others' heartbeats" + (", statuses back" if back else ""),
                              "#" if back else "others/#") for back in (True, False)}
    need = min(100000 / script, 0.7)
    parts = (("store", DEVICES, "redis", False, True), ("status", DEVICES, "memory", True, True),
             ("both", DEVICES, "redis", True, True), ("status apart", DEVICES // 5, "memory", True, False))
    for name, n, store, status, back in parts:
        with Place(store == "redis") as place:
            marked, told = die(place, name, n, store, status, back)
        if marked:
            figure("%s: marked in Redis" % name, marked, "/s")
            figure("%s: marked, next to the script alone" % name, marked / script, "x", (">=", round(need, 3)))
        if told:
            figure("%s: statuses told" % name, told, "/s", None, None if n == DEVICES else "of %d devices" % n)
            figure("%s: told, next to the bare publisher" % name, told / bare, "x", (">=", 0.8))
            figure("%s: told, next to the bare publisher in the same company" % name, told / beside[back], "x")


if __name__ == "__main__":
    main()
