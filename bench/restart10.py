#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The start of bench/restart with ten million devices in Redis: whether each costs what one of a million does. It needs
some 9 GB of memory, and five minutes for filling Redis; where there is less, as many millions as there is room for.
"""
import measure
import restart

MILLIONS = 10
KB_A_MILLION = 900000  # Redis, the monitor, and what they need beside it
SPARE_KB = 2 << 20
GOAL_S = 4.4  # a million


def available_kb():
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("MemAvailable:"))


def run(o):
    millions = max(1, min(MILLIONS, (available_kb() - SPARE_KB) // KB_A_MILLION))
    plan = restart.Plan(o.smoke, 30000 if o.smoke else millions * 1000000)
    with measure.world() as (env, _):
        seen, deaths = restart.start(o, env, plan)
    many, target = plan.name + " devices in Redis", "9 restart"
    measure.conditions("timeout %d s, JSON, %d heartbeats in each timeout of %s devices" % (
        restart.TIMEOUT_S, restart.TIMEOUT_S // plan.interval, format(plan.live, ",d")))
    measure.figure(target, "start with %s: reads heartbeats after" % many, seen.heard, "s", ("<=", 1))
    measure.figure(target, "start with %s: all loaded after, a million" % many, seen.loaded / plan.devices * 1e6, "s",
                   None if o.smoke else ("<=", GOAL_S), "in all %.1f s" % seen.loaded)
    measure.figure(target, "start with %s: CPU of daemon and Redis, a million" % many,
                   (seen.daemon_s + seen.redis_s) / plan.devices * 1e6, "s", None,
                   "until all is loaded: daemon %.1f s, Redis %.1f s" % (seen.daemon_s, seen.redis_s))
    measure.figure(target, "start with %s: slowest answer of the API meanwhile" % many, seen.slowest_ms, "ms")
    measure.figure(target, "start with %s: RSS" % many, seen.rss * 1024 / plan.all, "bytes", None, "a device, all told")
    measure.figure(target, "start with %s: who beats and is called offline" % many, deaths.wrong, "", ("<=", 0), None, True)
    measure.figure(target, "start with %s: who is dead and not called offline" % many, deaths.missing, "", ("<=", 0), None,
                   True)


if __name__ == "__main__":
    run(measure.options(__doc__))
