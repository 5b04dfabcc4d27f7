#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A heartbeat in the core, as the daemon does it, beside timers of libevent, libev and libuv, beside a wheel that
links at each heartbeat, and beside the machine's limit: the cache lines that a heartbeat touches, and nothing else.

The contenders take short turns, so that they meet the same machine; ratios are formed turn by turn. Ours is from topic
and payload to the record. libevent's is given the event itself, or the id, which a hash table finds (see
timers_libevent.c); each one by one, and in batches, which is the best that it can.

The others have done all with that: the lazy wheel links an entry anew when it comes due, once a timeout. Ratios that say
so have a third of that in them, for three heartbeats a timeout.
"""
import statistics
import subprocess

import measure

TURNS = 7
CONTENDERS = ("core", "timers_libevent", "timers_libev", "timers_libuv", "lines")
OURS = ("core", "empty_batch")
BEATS_A_TIMEOUT = 3
WHOLE = ("core", "whole")  # OURS and its share of the re-linking
SHOWN = tuple(
    ("core", "%s_%s" % (kind, way), "from topic and %s payload, %s" % (kind_name, way_name))
    for kind, kind_name in (("empty", "empty"), ("plain", "plain"), ("json", "JSON"))
    for way, way_name in (("batch", "in batches"), ("one", "one by one"))) + (
    ("core", "find_batch", "the look-up of the id in that, in batches"),
    ("core", "relink", "what the lazy wheel puts off: a re-link, once a timeout"),
    ("core", "whole", "from topic and empty payload, in batches, and its share of the re-link"),
    ("core", "eager_batch", "eager wheel: looked up in batches, linked anew at each heartbeat"),
    ("core", "eager_one", "eager wheel, one by one"),
    ("timers_libevent", "heap_batch", "libevent's min-heap, id looked up, in batches"),
    ("timers_libevent", "heap_one", "libevent's min-heap, id looked up, one by one"),
    ("timers_libevent", "heap", "libevent's min-heap, no look-up"),
    ("timers_libevent", "common_batch", "libevent, one common timeout (a list), id looked up, in batches"),
    ("timers_libevent", "common_one", "libevent, one common timeout, id looked up, one by one"),
    ("timers_libevent", "common", "libevent, one common timeout, no look-up"),
    ("timers_libev", "again", "libev: ev_timer_again(), no look-up"),
    ("timers_libuv", "again", "libuv: uv_timer_again(), no look-up"),
    ("lines", "two", "limit: two random cache lines in batches, slot and record, of a short id"),
    ("lines", "three", "limit: three, slot, record and id, of a longer one or of a device that reports fields"),
    ("lines", "one", "limit: one random cache line in batches"),
)
# What is asked for, and what it is compared with.
RATIOS = (
    ("libevent without a look-up / heartwheel, in batches", ("timers_libevent", "heap"), OURS, (">=", 15),
     "event_add() of an event that is known, against topic, payload and look-up"),
    ("libevent with a look-up / heartwheel, both in batches", ("timers_libevent", "heap_batch"), OURS, (">=", 15),
     "event_add() of an event that uthash finds"),
    ("libevent with a look-up / heartwheel, both one by one", ("timers_libevent", "heap_one"), ("core", "empty_one"), None,
     "event_add() of an event that uthash finds"),
    ("libevent without a look-up / heartwheel with its re-links", ("timers_libevent", "heap"), WHOLE, None, None),
    ("libevent with a look-up / heartwheel with its re-links", ("timers_libevent", "heap_batch"), WHOLE, None, None),
    ("libevent's list with a look-up / heartwheel, both in batches", ("timers_libevent", "common_batch"), OURS, None,
     "where all devices share a few timeouts"),
    ("libev without a look-up / heartwheel", ("timers_libev", "again"), OURS, None, None),
    ("libuv without a look-up / heartwheel", ("timers_libuv", "again"), OURS, None, None),
    ("the look-up of the id / two random cache lines", ("core", "find_batch"), ("lines", "two"), None,
     "how far the look-up is from the machine's limit"),
    ("libevent without a look-up / two random cache lines", ("timers_libevent", "heap"), ("lines", "two"), None,
     "what the first row of these ratios could be if nothing but memory took time"),
    ("eager wheel / heartwheel with its re-links, in batches", ("core", "eager_batch"), WHOLE, None,
     "the eager one is given the id: no topic, no payload"),
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
    for t in turns:
        t[WHOLE] = t[OURS] + t["core", "relink"] / BEATS_A_TIMEOUT
    for c in contenders:
        c.close()
    return turns


def tell(turns, name):
    measure.conditions("%s devices, in random order" % name)
    for program, key, what in SHOWN:
        measure.figure("1", "heartbeat, %s: %s" % (name, what), statistics.median(t[program, key] for t in turns), "ns")
    measure.conditions("%s devices, empty payload; re-links: %d heartbeats in each timeout" % (name, BEATS_A_TIMEOUT))
    for what, other, own, goal, note in RATIOS:
        measure.figure("1", "heartbeat, %s: %s" % (name, what), statistics.median(t[other] / t[own] for t in turns), "x",
                       goal, note)


def main():
    o = measure.options(__doc__)
    for devices, beats, name in ((20000, 20000, "20 k"),) if o.smoke else (
            (1000000, 300000, "1 M"), (5000000, 300000, "5 M")):
        tell(race(o, devices, beats), name)


main()
