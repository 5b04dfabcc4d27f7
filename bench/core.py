#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A heartbeat in the core, beside timers of libevent, libev and libuv, and beside a wheel that links at each heartbeat.

The contenders take short turns, so that they meet the same machine; ratios are formed turn by turn.
"""
import statistics
import subprocess

import measure

TURNS = 7
CONTENDERS = ("core", "timers_libevent", "timers_libev", "timers_libuv")
SHOWN = (
    ("core", "find_batch", "from id to touched record, in batches"),
    ("core", "find_one", "from id to touched record, one by one"),
    ("core", "messages_batch", "from topic and payload, in batches, as the daemon does it"),
    ("core", "messages_one", "from topic and payload, one by one"),
    ("core", "eager_batch", "eager wheel: looked up in batches, linked anew at each heartbeat"),
    ("core", "eager_one", "eager wheel, one by one"),
    ("timers_libevent", "heap", "libevent: event_add(), min-heap, no look-up"),
    ("timers_libevent", "common", "libevent: event_add(), one common timeout (a list), no look-up"),
    ("timers_libev", "again", "libev: ev_timer_again(), no look-up"),
    ("timers_libuv", "again", "libuv: uv_timer_again(), no look-up"),
)


class Contender:
    """A program that says "ready", and for each line it is given what a heartbeat costs it."""

    def __init__(self, o, program, devices, beats):
        self.name = program
        self.proc = subprocess.Popen([str(o.build / "bench" / program), str(devices), str(beats)], text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self):
        said = {}
        for line in self.proc.stdout:
            if line == "ready\n":
                return said
            key, value = line.split()
            said[self.name, key] = float(value)
        raise RuntimeError("%s ended with status %s" % (self.name, self.proc.wait()))

    def turn(self):
        self.proc.stdin.write("go\n")
        self.proc.stdin.flush()
        return self.read()

    def close(self):
        self.proc.stdin.close()
        self.proc.wait()


def race(o, devices, beats):
    """[{(contender, key): ns}], an element a turn."""
    contenders = []
    for name in CONTENDERS:  # one after the other: each has the machine for itself while it is made
        contenders.append(Contender(o, name, devices, beats))
        contenders[-1].read()
    turns = [{key: ns for c in contenders for key, ns in c.turn().items()} for _ in range(TURNS)]
    for c in contenders:
        c.close()
    return turns


def tell(turns, name):
    ours, libevent = ("core", "find_batch"), ("timers_libevent", "heap")

    def ratio(other, own=ours):
        return statistics.median(t[other] / t[own] for t in turns)

    for program, key, what in SHOWN:
        measure.figure("1", "heartbeat, %s: %s" % (name, what), statistics.median(t[program, key] for t in turns), "ns")
    measure.figure("1", "heartbeat, %s: libevent / heartwheel" % name, ratio(libevent), "x", (">=", 15),
                   "id to touched record, batches, against event_add() on the min-heap")
    measure.figure("1", "heartbeat, %s: libevent / heartwheel from topic and payload" % name,
                   ratio(libevent, ("core", "messages_batch")), "x", None,
                   "ours with topic match and payload, libevent's without any look-up")
    for other, label in ((("timers_libev", "again"), "libev"), (("timers_libuv", "again"), "libuv"),
                         (("core", "eager_batch"), "eager wheel"), (("core", "eager_one"), "eager wheel one by one")):
        measure.figure("1", "heartbeat, %s: %s / heartwheel" % (name, label), ratio(other), "x")


def main():
    o = measure.options(__doc__)
    for devices, beats, name in ((20000, 20000, "20 k"),) if o.smoke else (
            (1000000, 300000, "1 M"), (5000000, 300000, "5 M")):
        tell(race(o, devices, beats), name)


main()
