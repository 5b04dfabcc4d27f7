#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the daemon does while nothing happens: 100,000 devices are online, and none is due for an hour.

A wake-up is a voluntary context switch, of any thread of the daemon: what the kernel counts, in /proc, and not what the
daemon says of itself (heartwheel_wakeups_total is shown beside it). The contract is that it sleeps until something is
due: a slot of the wheel (here none is), a steady barrier, or the tick of each second. Each of these is a row of its own,
and one wake-up for each is the goal, although a barrier goes through three threads and the tick has an answer of Redis
to take. CPU is what the scheduler counts, in nanoseconds.
"""
import subprocess
import time
from pathlib import Path

import measure

BROKER = ("set_tcp_nodelay true", "max_queued_messages 100000", "max_inflight_messages 1000")
CPU_GOAL = 0.1  # % of a core


def threads(pid):
    """{thread: (name, voluntary switches, ns on a CPU)}"""
    found = {}
    for task in Path("/proc/%d/task" % pid).iterdir():
        status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        found[task.name] = (status["Name"], int(status["voluntary_ctxt_switches"]),
                            int((task / "schedstat").read_text().split()[0]))
    return found


def fill(o, env, devices, interval_ms):
    """Every device beats at least once."""
    argv = [o.build / "bench" / "pace", env.broker.port, env.root, devices, interval_ms, 16]
    pace = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL)
    time.sleep(interval_ms / 1000 + 0.5)
    pace.terminate()
    assert pace.wait(10) == 0


def settle(d, devices):
    """Until everything is written and published, and Redis is swept after the start."""
    from hw_wait import wait_until
    wait_until(lambda: d.status()["online"] == devices and d.status()["owed"] == 0, 60, "all to be online",
               interval=0.2)
    last = None
    while last != (last := d.metrics().get("redis_refreshes_total")):
        time.sleep(1.5)


def rest(d, seconds):
    """What happened in so many seconds in which nobody asked anything."""
    before, m0 = threads(d.pid), d.metrics()
    time.sleep(0.3)  # until that answer is over
    before, began = threads(d.pid), time.monotonic()
    time.sleep(seconds)
    after, seconds = threads(d.pid), time.monotonic() - began
    m1 = d.metrics()
    assert set(before) == set(after), "threads came or went"
    used = {after[t][0]: (after[t][1] - before[t][1], after[t][2] - before[t][2]) for t in after}
    return used, seconds, {n: m1.get(n) - m0.get(n) for n in
                           ("barriers_sent_total", "wakeups_total", "relinks_total", "transitions_total")}


def report(used, seconds, counted):
    wakes, cpu_ns = (sum(u[i] for u in used.values()) for i in (0, 1))
    # A due entry is re-linked or makes a transition; several may share a slot, so this is at least as many.
    due, barriers = counted["relinks_total"] + counted["transitions_total"], counted["barriers_sent_total"]
    each = ", ".join("%s %.2f" % (name, n / seconds) for name, (n, _) in sorted(used.items()))
    span = "in %d s" % round(seconds)
    measure.figure(8, "due slots " + span, due, "", note="at most")
    measure.figure(8, "steady barriers " + span, barriers, "")
    measure.figure(8, "ticks of a second " + span, round(seconds), "")
    measure.figure(8, "wake-ups %s, all threads" % span, wakes, "", ("<=", due + barriers + round(seconds)),
                   "a second: %s; the goal: due slots, barriers and ticks" % each)
    measure.figure(8, "wake-ups %s, by the daemon's own count" % span, counted["wakeups_total"], "",
                   note="of the loop and the readers, those of asking it included")
    measure.figure(8, "CPU, all threads", cpu_ns / seconds / 1e7, "% of a core", ("<=", CPU_GOAL))


def run(o):
    devices, interval_ms, seconds = (2000, 500, 3) if o.smoke else (100000, 6000, 20)
    with measure.world(settings=BROKER) as (env, _):
        env.check_events = False
        d = env.configure(timeout="1h", monitor={"log_level": "info"})
        d.start()
        fill(o, env, devices, interval_ms)
        settle(d, devices)
        measure.conditions("%s devices online, silent, timeout 1 h; the broker: %s" % (
            format(devices, ",d"), ", ".join(BROKER)))
        report(*rest(d, seconds))
        d.stop()


if __name__ == "__main__":
    run(measure.options(__doc__))
