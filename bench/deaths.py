#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A million devices that die at once: how fast Redis has them marked and the broker their retained statuses, next to
what Redis and the broker do when nothing else is asked of them.

Every device is brought online by a heartbeat through the broker. Then a reload makes their timeout a second: they are
all overdue at that moment, which is as much at once as it can be. Meanwhile other devices go on beating. Marking is
seen in Redis (the cardinality of device:offline), statuses by a subscriber; each from its first to its last. What the
event stream has of each device is read from it afterwards, and a new subscriber asks the broker for each retained status. `store`:
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

from hw_env import Env  # noqa: E402
from hw_wait import wait_until  # noqa: E402

DEVICES = 20000 if O.smoke else 1000000
SAMPLE = 4000 if O.smoke else 200000  # of the baselines
FIRST_TRY = 2000 if O.smoke else 40000  # statuses by which each form of a publisher is told from the others
FINALISTS = 3
OTHERS, OTHERS_S = (1000, 1) if O.smoke else (10000, 1)  # that go on beating, and how often
QUIET_S = 1 if O.smoke else 3
RECOMMENDED = ("max_inflight_messages 1000",)  # conf/mosquitto-heartwheel.conf: with MQTT 5 that many statuses may be on their way
PER_CALL, DEPTH = 64, 8  # as heartwheel: HW_CALL_ITEMS, HW_TRANSITION_CALLS


def program(name, *arguments):
    return [str(O.build / "bench" / name), *map(str, arguments)]


def figure(label, value, unit, goal=None, note=None, worst=False):
    measure.figure(TARGET, label, value, unit, goal, note, worst)


class Place:
    """Private servers in a directory of their own, for one part of the bench."""

    def __init__(self, redis, settings=()):
        self.dir = tempfile.mkdtemp(prefix="hwb-", dir="/tmp")
        self.env = Env(None, None, self.dir)
        self.env.check_events = False
        self.env.root, self.env.prefix = "fleet", "device:"
        self.env.own_broker(settings=settings)
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
            "redis": {"events_max": 3 * (DEVICES + OTHERS)},  # so that the stream can be asked for every death
            "monitor": {"log_level": "notice", "max_devices": DEVICES + OTHERS, "stop_timeout": "1s"}}


def all_online(place, d, n, rate):
    """Each beats once, so many a second; over again if the broker has dropped any."""
    seconds = max(1, n // rate)
    for _ in range(5):
        assert place.start("pace", place.port, "fleet", n, seconds * 1000, 1, 1).wait(180) == 0
        time.sleep(0.3)
        if d.get("/v1/status").json()["online"] >= n:
            break
    wait_until(lambda: d.status()["online"] == n and d.status()["owed"] == 0, 180, "all to be online", 0.1)


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
    """Looks how many are marked offline in Redis, all the time, until they all are; or, of as many that are,
    until only `stay` others are left, if that is given."""

    def __init__(self, env, n, limit_s, stay=None):
        super().__init__(daemon=True)
        self.n, self.stay = n, stay
        self.redis, self.key, self.until = env.redis_server.client(), env.key("offline"), time.monotonic() + limit_s
        self.first = self.last = None
        self.seen = 0

    def run(self):
        while self.seen < self.n and time.monotonic() < self.until:
            before = time.monotonic()
            n = self.redis.zcard(self.key)
            n = n if self.stay is None else self.n - max(0, n - self.stay)
            if n and not self.first:
                self.first = before
            if n > self.seen:
                self.seen, self.last = n, time.monotonic()
            time.sleep(0.02)


def turns(m, clock):
    """How many turns of the loop took at most so many seconds, by that clock: {bound: n}."""
    found = {}
    for (name, labels), value in m.samples.items():
        if name == "heartwheel_loop_turn_%sseconds_bucket" % clock:
            found[float(dict(labels)["le"].replace("+Inf", "inf"))] = value
    return found


def worst_turn(before, after, clock):
    """The least bound that holds for every turn between the two, in ms."""
    then, now = turns(before, clock), turns(after, clock)
    n = {bound: now[bound] - then[bound] for bound in now}
    return min(b for b in n if n[b] == n[float("inf")]) * 1000


def deaths_told(place):
    """(devices whose death the stream has, those whose death it has more than once)"""
    told = measure.relay(O, "script", "stream", place.env.redis_server.port, "device:", "d", DEVICES)
    return told["died"], told["twice"]


def never_entered(name, m):
    """Of all that the daemon has done so far: they come online, too."""
    figure("%s: transitions that are left out of the event stream" % name, m.get("redis_transitions_dropped_total"), "", ("<=", 0),
           "by the daemon's count, since its start", True)


# --- the parts --------------------------------------------------------------------------------------------------------


def redis_benchmark(port):
    """Redis' own tool, with the same calls: how many devices a second. Each is drawn at random, so that one in ten or so
    has died before, which costs less."""
    call = subprocess.run(program("script", "call", port, "device:", PER_CALL), check=True, stdout=subprocess.PIPE,
                          text=True).stdout.split("\n")[:-1]
    argv = ["redis-benchmark", "-p", str(port), "-c", str(DEPTH), "-n", str(max(1, SAMPLE // PER_CALL)), "-r", str(DEVICES),
            "--csv", *call]
    said = subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return float(said.splitlines()[-1].split('","')[1].strip('"')) * PER_CALL


def bare_redis():
    """The script in other hands, in calls of as many devices as ours; and of one device with 128 in flight."""
    with Place(True) as place:
        port = place.env.redis_server.port
        subprocess.run(program("script", "fill", port, "device:", DEVICES), check=True)
        one = measure.relay(O, "script", "die", port, "device:", 0, SAMPLE, 1, 128)["rate"]
        many = measure.relay(O, "script", "die", port, "device:", SAMPLE, SAMPLE, PER_CALL, DEPTH)["rate"]
        tool = redis_benchmark(port)
    figure("script alone, %d devices a call, %d in flight" % (PER_CALL, DEPTH), many, "/s")
    figure("script alone, the same calls by redis-benchmark, %d connections" % DEPTH, tool, "/s")
    figure("script alone, one device a call, 128 in flight", one, "/s")
    return max(many, tool)


def forms():
    """The ways to publish: (name, words of bench/publisher before and behind the devices). MQTT 5 has the Receive Maximum
    that the broker grants, 3.1.1 no bound; without the library, acknowledgements are read one by one or by half a window."""
    windows = (20, 100, 500, 1000)
    for protocol, window in [(5, 1000)] + [(4, w) for w in windows]:
        name = "MQTT %s, %s in flight" % ((5, "as many as granted") if protocol == 5 else ("3.1.1", window))
        for wait, how in ((1, "as they come"), (window // 2, "half a window at once")):
            wait = 10 if protocol == 5 and wait > 1 else wait
            yield "batched writes, acknowledgements read %s, %s" % (how, name), ("batch", protocol, window), (wait,)
    for protocol, window in (5, 20), (5, 100), (4, 20), (4, 100), (4, 500):
        yield "libmosquitto, MQTT %s, window %d" % (5 if protocol == 5 else "3.1.1", window), ("send", protocol, window), ()


class Publishing:
    """Bare publishers at one broker, each of statuses that are new to it."""

    def __init__(self, port):
        self.port, self.first = port, 0

    def rate(self, form, n):
        _, (what, protocol, window), behind = form
        self.first += n
        return measure.relay(O, "publisher", what, self.port, protocol, window, self.first - n, n, "fleet", *behind)["rate"]


def bare_mqtt(label, company=None):
    """The best bare publisher: all forms try with a few statuses, the best of them with as many as count; the same
    subscriber is attached. `company`: the others beat meanwhile, and a subscriber that only reads has this filter."""
    every = list(forms())
    with Place(False) as place:
        if company:
            place.start("publisher", "company", place.port, company).stdout.readline()
            place.start("pace", place.port, "others", OTHERS, OTHERS_S * 1000, 8)
            time.sleep(1)
        all_statuses = len(every) * FIRST_TRY + (FINALISTS + 1) * SAMPLE
        place.start("publisher", "watch", place.port, "fleet", all_statuses, 600).stdout.readline()
        bare = Publishing(place.port)
        tried = sorted(((bare.rate(form, FIRST_TRY), form) for form in every), reverse=True)
        by_library = next(form for _, form in tried if form[1][0] == "send")
        best = [form for _, form in tried[:FINALISTS] if form != by_library] + [by_library]
        last = sorted(((bare.rate(form, SAMPLE), form) for form in best), reverse=True)
    rate, form = last[0]
    figure(label, rate, "/s", None, "the best of %d: %s" % (len(every), form[0]))
    rate_by_library, form = next((rate, form) for rate, form in last if form[1][0] == "send")
    figure(label + ", by libmosquitto", rate_by_library, "/s", None, form[0])
    return rate


class Watch:
    """Who sees the fleet's statuses with a word arrive."""

    def __init__(self, place, n, limit_s, *word):
        self.p = place.start("publisher", "watch", place.port, "fleet", n, limit_s, *word)
        self.p.stdout.readline()

    def seen(self):
        """{"seen", "first", "last"}, once all were."""
        return {key: float(value) for key, value in (self.p.stdout.readline().split() for _ in range(3))}

    def again(self):
        """How many statuses came of devices that had one before. It is the end."""
        self.p.terminate()
        return int(self.p.stdout.readline().split()[1])


def retained_that_lack(place, n):
    """How many devices have no retained status of QoS 1 that says that they are offline."""
    return n - measure.relay(O, "publisher", "retained", place.port, "fleet", n)["right"]


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
        watch = Watch(place, n, limit_s) if status else None
        marks = Marks(env, n, limit_s) if store == "redis" else None
        before, told = d.metrics(), {}
        spent = measure.Spent({"the monitor": d.pid, "the broker": env.broker.pid,
                               **({"Redis": env.redis_server.pid} if marks else {})})

        def death():
            if marks:
                marks.start()
            assert d.request("POST", "/v1/reload").status == 200
            if marks:
                marks.join()
            if watch:
                told.update(watch.seen())
            spent.end()
        heard = others.measured(death)
        wait_until(lambda: d.status()["owed"] == 0, limit_s, "all to be written", 0.1)
        after = d.metrics()
    marked = n / (marks.last - marks.first) if marks else 0
    lost = marks and marks.seen < n or watch and told["seen"] < n
    if lost:
        print("only %s marked, %s told" % (marks and marks.seen, told.get("seen")), file=sys.stderr)
    assert not lost
    if store == "redis":
        died, twice = deaths_told(place)
        figure("%s: deaths that the event stream lacks" % name, n - died, "", ("<=", 0), "asked by device", True)
        figure("%s: deaths that the event stream has twice" % name, twice, "", ("<=", 0), "asked by device", True)
        never_entered(name, after)
    if watch:
        figure("%s: statuses told twice" % name, watch.again(), "", ("<=", 0), "seen by a subscriber", True)
        figure("%s: retained statuses that are missing or wrong" % name, retained_that_lack(place, n), "", ("<=", 0),
               "asked for by device; QoS 1, offline", True)
    for who, us in spent.us.items():
        figure("%s: CPU of %s, a death" % (name, who), us / n, "us", None, "in %.1f s, in which %s" % (spent.wall, spent.note()))
    for clock, what in (("cpu_", "CPU"), ("", "wall")):
        figure("%s: longest turn of the loop, %s" % (name, what), worst_turn(before, after, clock), "ms", ("<=", 10),
               "the histogram's bound above it", True)
    figure("%s: others heard, share of the quiet rate" % name, heard / quiet, "x", (">=", 0.8),
           "%.0f/s, %.3f of them when quiet" % (others.rate, quiet))
    return marked, n / (told["last"] - told["first"]) if watch else 0


def main():
    measure.conditions("%s devices, no status" % format(DEVICES, ",d"))
    script = bare_redis()
    measure.conditions("%s statuses; the broker with its defaults" % format(SAMPLE, ",d"))
    bare = bare_mqtt("bare QoS 1 publisher")
    beside = {back: bare_mqtt("bare QoS 1 publisher beside the others' heartbeats" + (", statuses back" if back else ""),
                              "#" if back else "others/#") for back in (True, False)}
    parts = (("store", DEVICES, "redis", False, True, ()), ("status", DEVICES, "memory", True, True, ()),
             ("both", DEVICES, "redis", True, True, ()), ("status apart", DEVICES, "memory", True, False, ()),
             ("status as recommended", DEVICES, "memory", True, True, RECOMMENDED),
             ("both as recommended", DEVICES, "redis", True, True, RECOMMENDED))
    for name, n, store, status, back, settings in parts:
        measure.conditions("%s devices stop at once, JSON; %s others send, %d heartbeats in each timeout; the broker %s" % (
            format(n, ",d"), format(OTHERS, ",d"), 3600 // OTHERS_S, "with " + ", ".join(settings) if settings else "as it comes"))
        with Place(store == "redis", settings) as place:
            marked, told = die(place, name, n, store, status, back)
        if marked:
            figure("%s: marked in Redis" % name, marked, "/s")
            figure("%s: marked, next to the script alone" % name, marked / script, "x", (">=", 0.7),
                   "the fastest of those in calls of as many devices")
        if told:
            figure("%s: statuses told" % name, told, "/s")
            figure("%s: told, next to the bare publisher" % name, told / bare, "x",
                   (">=", 0.7 if store == "redis" else 0.9))
            figure("%s: told, next to the bare publisher in the same company" % name, told / beside[back], "x")


if __name__ == "__main__":
    main()
