#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Instructions of a heartbeat and of an expiry in the core, counted by callgrind: the same on a machine however noisy."""
import re
import subprocess

import measure

DEVICES, BEATS = 20000, 20480


def count(o, function):
    """The instructions of all calls of a function."""
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no",
         "--toggle-collect=" + function, str(o.build / "bench" / "instructions"), str(DEVICES), str(BEATS)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = re.search(r"Collected *: *(\d+)", done.stdout)
    if done.returncode or not found:
        raise RuntimeError("callgrind failed:\n" + done.stdout[-2000:])
    return int(found.group(1))


def main():
    o = measure.options(__doc__)
    measure.conditions("%s devices, empty payload" % format(DEVICES, ",d"))
    measure.figure("instructions", "instructions: heartbeat", count(o, "count_heartbeats") / BEATS, "instructions",
                   None, "from topic and payload, in batches, %d devices" % DEVICES)
    measure.figure("instructions", "instructions: heartbeat, a JSON object of seven members",
                   count(o, "count_reports") / BEATS, "instructions", None, "all of which mean something")
    measure.figure("instructions", "instructions: expiry", count(o, "count_expiries") / DEVICES, "instructions", None,
                   "from the due entry to the transition pulled out, %d devices" % DEVICES)


main()
