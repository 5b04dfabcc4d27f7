#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How late the death of a device is told, with 100,000 live ones around it; and Redis' own word for as many keys.

The fleet (detect.c) beats every 10 s; 1,500 devices fall silent at random moments. Their timeout, 12 s, is short for
the sake of the run's length: it makes Redis be refreshed more often than the usual 30 s would. At the same time, two
bare Redis servers hold the same fleet as keys with that time to live, refreshed at the same moments, and an observer
subscribes to their `expired` notifications: one server as it comes, one told to look for expired keys as hard as it
can (hz 100, active-expire-effort 10).

`idle`: a fleet that hardly says anything, so that what is left is the way itself: from a timeout, and from a goodbye, to
the status. `beside 50,000`, `beside 100,000`: the same fleet, while others send so many heartbeats a second through the
same broker; how many were heard says whether the broker kept up.
"""
import contextlib
import subprocess
import time

import measure

BROKER = ("set_tcp_nodelay true", "max_queued_messages 100000", "max_inflight_messages 1000")
AS_ADVISED = "the broker: " + ", ".join(BROKER)
TUNED = ("--hz", "100", "--active-expire-effort", "10")
GOAL_MS = 53  # one tick, 33 ms, and 20 ms
TICK_MS = 1000 / 31
CROWD = 100000  # devices that beat beside


def watch(o, env, raws, devices, interval_ms, timeout_ms, dead, seconds, strict=True, leaving=0, beside=None):
    """What was seen; `strict`: it must be right, too. `beside`: a context manager, of (the daemon), for others who beat
    meanwhile, which says how many were heard a second."""
    own = {"heartbeat": [env.root + "/{id}/heartbeat", env.root + "/{id}/status"], "status": env.root + "/{id}/status",
           "timeout": "%dms" % timeout_ms}
    crowd = {"heartbeat": "crowd/{id}/heartbeat", "status": "", "timeout": "1h", "id_prefix": "c-"}
    d = env.configure(groups=[("default", own), ("crowd", crowd)], monitor={"log_level": "info"})
    d.start()
    with_raws = [s.port for s in raws]
    with (beside or contextlib.nullcontext)(*([d] if beside else [])) as heard:
        clock = measure.Stopwatch(d.pid)
        seen = measure.relay(o, "detect", env.broker.port, env.redis_server.port, env.root, env.prefix, devices,
                             interval_ms, timeout_ms, dead, leaving, seconds, *with_raws)
        seen["core"] = clock.cpu() / clock.wall() * 100
        seen["crowd"] = heard() if heard else 0
    wrong = {k: v for k, v in seen.items() if k.split("_")[0] in ("status", "mark", "goodbye") and k.split("_")[-1] in
             ("missing", "wrong") and v}
    assert seen["online"] == devices, (seen, d.status())
    assert not strict or not wrong and d.status()["offline"] == dead + leaving, (wrong, seen, d.status())
    blind = d.metrics().get("blind_seconds_total")
    seen["blind_ms"] = blind * 1000
    d.stop()
    return seen


def report(seen):
    for key, what in (("status", "to the PUBLISH"), ("mark", "to the mark in Redis")):
        measure.figure(3, "timeout %s, the earliest" % what, seen[key + "_min"], "ms", (">=", 0), None, True)
        measure.figure(3, "timeout %s, p50" % what, seen[key + "_p50"], "ms")
        measure.figure(3, "timeout %s, p99" % what, seen[key + "_p99"], "ms", ("<=", GOAL_MS))
        measure.figure(3, "timeout %s, the latest" % what, seen[key + "_max"], "ms")
    late = max(seen["status_p99"], seen["mark_p99"])
    for key, what, goal in (("raw0", "Redis' expired", (">=", 100)),
                            ("raw1", "Redis' expired at hz 100, effort 10", None)):
        note = "%d had not come when the run ended, and count with what had passed" % seen[key + "_missing"]
        measure.figure(3, "%s, p50, at least" % what, seen[key + "_p50"], "ms", note=note)
        measure.figure(3, "%s, p99, at least" % what, seen[key + "_p99"], "ms", note=note)
        measure.figure(3, "%s, p99 / heartwheel, at least" % what, seen[key + "_p99"] / late, "x", goal)
    measure.figure(3, "the daemon meanwhile", seen["core"], "% of a core",
                   note="the fleet was at most %.1f ms behind its plan; blind for %.0f ms" % (
                       seen["behind_ms"], seen["blind_ms"]))


class Crowd:
    """Others who beat so many times a second, all known before what is measured begins."""

    def __init__(self, o, env, rate, devices):
        self.o, self.env, self.rate, self.devices = o, env, rate, devices

    def __call__(self, d):
        self.d = d
        return self

    def pace(self, rate):
        return subprocess.Popen([str(self.o.build / "bench" / "pace"), str(self.env.broker.port), "crowd", str(self.devices),
                                 str(int(self.devices / rate * 1000)), "16"], stdout=subprocess.PIPE, text=True)

    def count(self):
        return self.d.metrics().get("heartbeats_total", group="crowd")

    def __enter__(self):
        from hw_wait import wait_until
        first = self.pace(min(self.rate, 20000))
        wait_until(lambda: self.d.metrics().get("devices", group="crowd", state="online") == self.devices, 60, "the others", 0.2)
        wait_until(lambda: self.d.status()["owed"] == 0, 60, "Redis to know them", 0.2)
        first.terminate()
        first.wait()
        self.p, self.began, self.before = self.pace(self.rate), time.monotonic(), self.count()
        return lambda: (self.count() - self.before) / (time.monotonic() - self.began)

    def __exit__(self, *exc):
        self.p.terminate()
        self.p.wait()


def last_milliseconds(name, seen, goals):
    """Of a fleet that is otherwise quiet. `goals`: (p50, p99) of a timeout, in ms above which it is missed, or None."""
    for key, what in (("status", "timeout to the PUBLISH"), ("mark", "timeout to the mark in Redis")):
        p50, p99 = goals if key == "status" else (None, None)
        measure.figure(3, "%s: %s, the earliest" % (name, what), seen[key + "_min"], "ms", (">=", 0), None, True)
        measure.figure(3, "%s: %s, p50" % (name, what), seen[key + "_p50"], "ms", p50 and ("<=", round(p50, 1)))
        measure.figure(3, "%s: %s, p99" % (name, what), seen[key + "_p99"], "ms", p99 and ("<=", round(p99, 1)))
        measure.figure(3, "%s: %s, the latest" % (name, what), seen[key + "_max"], "ms")


def goodbyes(seen):
    for part, what, goal in (("p50", "p50", 2), ("p99", "p99", 2), ("max", "the latest", None)):
        measure.figure(3, "idle: goodbye to the PUBLISH, " + what, seen["goodbye_" + part], "ms", goal and ("<=", goal))
        measure.figure(3, "idle: goodbye to the mark in Redis, " + what, seen["goodbye_mark_" + part], "ms")


def quiet_fleet(o):
    """The same for all that follows: (devices, ms between heartbeats, timeout in ms, who die, seconds), who say goodbye."""
    return ((200, 1000, 1500, 40, 6), 20) if o.smoke else ((2000, 10000, 12000, 1000, 38), 500)


def idle(o):
    sizes, leaving = quiet_fleet(o)
    with measure.world(settings=BROKER) as (env, _):
        env.check_events = False
        measure.conditions(conditions(*sizes) + ", %d send a goodbye; no other load" % leaving)
        seen = watch(o, env, (), *sizes, leaving=leaving)
        last_milliseconds("idle", seen, (TICK_MS / 2 + 2, TICK_MS + 3))
        goodbyes(seen)


def beside(o, rate, goal):
    sizes, _ = quiet_fleet(o)
    devices = CROWD // 50 if o.smoke else CROWD
    rate = rate // 50 if o.smoke else rate
    with measure.world(settings=BROKER) as (env, _):
        env.check_events = False
        name = "beside " + format(rate, ",d")
        measure.conditions(conditions(*sizes) + "; %s others send %s heartbeats a second" % (
            format(devices, ",d"), format(rate, ",d")))
        broker = measure.Stopwatch(env.broker.pid)
        seen = watch(o, env, (), *sizes, strict=False, beside=Crowd(o, env, rate, devices))
        load = broker.cpu() / broker.wall() * 100
        last_milliseconds(name, seen, (None, goal))
        measure.figure(3, name + ": beats, and is called offline", seen["status_wrong"] + seen["mark_wrong"], "", ("<=", 0),
                       "by the PUBLISH or by the mark in Redis", True)
        measure.figure(3, name + ": dead, and not called offline", seen["status_missing"] + seen["mark_missing"], "",
                       ("<=", 0), "by the PUBLISH or by the mark in Redis", True)
        measure.figure(3, name + ": of these, heard", seen["crowd"], "/s", (">=", 0.98 * rate), "the broker: %.0f %% of a core" % load)
        measure.figure(3, name + ": CPU of the daemon, a heartbeat heard", seen["core"] * 1e4 / max(1, seen["crowd"]), "us",
                       note="all it does meanwhile; blind for %.0f ms" % seen["blind_ms"])


def conditions(devices, interval_ms, timeout_ms, dead, _seconds):
    return "%s devices, JSON with the time, timeout %g s, %g heartbeats in each timeout; %s stop; %s" % (
        format(devices, ",d"), timeout_ms / 1000, timeout_ms / interval_ms, format(dead, ",d"), AS_ADVISED)


def run(o):
    sizes = (1000, 1000, 1500, 100, 6) if o.smoke else (100000, 10000, 12000, 1500, 38)
    events = ("--notify-keyspace-events", "Ex")
    with measure.world(bare=(events, events + TUNED), settings=BROKER) as (env, raws):
        env.check_events = False
        for server in raws:
            server.start()
        measure.conditions(conditions(*sizes))
        report(watch(o, env, raws, *sizes))
    idle(o)
    if not o.smoke:
        beside(o, 50000, None)
    beside(o, 100000, TICK_MS + 10)


if __name__ == "__main__":
    run(measure.options(__doc__))
