#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How late the death of a device is told, with 100,000 live ones around it; and Redis' own word for as many keys.

The fleet (detect.c) beats every 10 s; 1,500 devices fall silent at random moments. Their timeout, 12 s, is short for
the sake of the run's length: it makes Redis be refreshed more often than the usual 30 s would. At the same time, two
bare Redis servers hold the same fleet as keys with that time to live, refreshed at the same moments, and an observer
subscribes to their `expired` notifications: one server as it comes, one told to look for expired keys as hard as it
can (hz 100, active-expire-effort 10).
"""

import measure

BROKER = ("set_tcp_nodelay true", "max_queued_messages 100000", "max_inflight_messages 1000")
TUNED = ("--hz", "100", "--active-expire-effort", "10")
GOAL_MS = 53  # one tick, 33 ms, and 20 ms


def watch(o, env, raws, devices, interval_ms, timeout_ms, dead, seconds, strict=True):
    """What was seen; `strict`: it must be right, too."""
    d = env.configure(timeout="%dms" % timeout_ms, monitor={"log_level": "info"})
    d.start()
    with_raws = [s.port for s in raws]
    clock = measure.Stopwatch(d.pid)
    seen = measure.relay(o, "detect", env.broker.port, env.redis_server.port, env.root, env.prefix, devices,
                         interval_ms, timeout_ms, dead, seconds, *with_raws)
    seen["core"] = clock.cpu() / clock.wall() * 100
    wrong = {k: v for k, v in seen.items() if k.split("_")[0] in ("status", "mark") and k.split("_")[1] in
             ("missing", "wrong") and v}
    assert seen["online"] == devices, (seen, d.status())
    assert not strict or not wrong and d.status()["offline"] == dead, (wrong, seen, d.status())
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


def conditions(devices, interval_ms, timeout_ms, dead, _seconds):
    return "%s devices, JSON that tells the time, timeout %g s, %g heartbeats a timeout; %s die" % (
        format(devices, ",d"), timeout_ms / 1000, timeout_ms / interval_ms, format(dead, ",d"))


def run(o):
    sizes = (1000, 1000, 1500, 100, 6) if o.smoke else (100000, 10000, 12000, 1500, 38)
    events = ("--notify-keyspace-events", "Ex")
    with measure.world(bare=(events, events + TUNED), settings=BROKER) as (env, raws):
        env.check_events = False
        for server in raws:
            server.start()
        measure.conditions(conditions(*sizes))
        report(watch(o, env, raws, *sizes))


if __name__ == "__main__":
    run(measure.options(__doc__))
