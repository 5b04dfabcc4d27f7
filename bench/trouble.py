#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What trouble on the machine does to detection: the same fleet, and the same deaths, three times in turn.

`quiet`: nothing else. `disk`: the disk under Redis stalls for 200 ms, every 2 s; Redis writes to it before it answers
(appendfsync always), so that nothing of it goes on meanwhile. `neighbour`: as many processes as there are cores do
nothing but turn round. Redis writes to the disk in all three. Nobody who beats may be called offline in any of them.
"""
import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

import detection
import measure

STALL_MS, EVERY_MS = 200, 2000
DISK = ("--appendonly", "yes", "--appendfsync", "always")
TARGET = "11 trouble"


@contextlib.contextmanager
def slow_disk():
    """What is started meanwhile has a disk that stalls."""
    with tempfile.TemporaryDirectory(prefix="hwb-") as base:
        library = Path(base) / "slowdisk.so"
        subprocess.run([os.environ.get("CC") or "cc", "-std=gnu17", "-O1", "-shared", "-fPIC", "-o", str(library),
                        str(Path(__file__).with_name("slowdisk.c"))], check=True)
        mine = {"LD_PRELOAD": str(library), "HW_STALL_MS": str(STALL_MS), "HW_STALL_EVERY_MS": str(EVERY_MS)}
        os.environ.update(mine)
        try:
            yield
        finally:
            for name in mine:
                del os.environ[name]


@contextlib.contextmanager
def neighbours():
    """One on each core."""
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for p in busy:
            p.kill()
            p.wait()


@contextlib.contextmanager
def world(stalls):
    """Broker and Redis; the disk stalls for Redis alone."""
    with measure.world(DISK, settings=detection.BROKER) as (env, _):
        if stalls:
            with slow_disk():
                env.own_redis(options=DISK)
        env.check_events = False
        yield env


def report(name, seen):
    wrong = seen["status_wrong"] + seen["mark_wrong"]
    missing = seen["status_missing"] + seen["mark_missing"]
    note = "the fleet was at most %.0f ms behind its plan; the monitor blind for %.0f ms" % (seen["behind_ms"], seen["blind_ms"])
    measure.figure(TARGET, "%s: beats, and is called offline" % name, wrong, "", ("<=", 0), None, True)
    measure.figure(TARGET, "%s: dead, and not called offline" % name, missing, "", ("<=", 0), None, True)
    for key, what in (("status", "to the PUBLISH"), ("mark", "to the mark in Redis")):
        for part, of in (("p50", "p50"), ("p99", "p99"), ("max", "the latest")):
            measure.figure(TARGET, "%s: timeout %s, %s" % (name, what, of), seen["%s_%s" % (key, part)], "ms", None, note)


def run(o):
    sizes = (1000, 1000, 1500, 100, 6) if o.smoke else (20000, 4000, 8000, 500, 22)
    measure.conditions(detection.conditions(*sizes))
    for name, stalls, company in (("quiet", False, contextlib.nullcontext), ("disk", True, contextlib.nullcontext),
                                  ("neighbour", False, neighbours)):
        with world(stalls) as env, company():
            report(name, detection.watch(o, env, (), *sizes, strict=False))


if __name__ == "__main__":
    run(measure.options(__doc__))
