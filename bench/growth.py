#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How the core's costs grow with the number of devices: per heartbeat, per re-link, per expiry, and in memory."""
import measure

BEATS = 2000000
KINDS = (("heartbeat", "ns"), ("relink", "ns"), ("expiry", "ns"), ("memory", "bytes"))


def main():
    o = measure.options(__doc__)
    measure.conditions("empty payload, timeout 30 s, 3 heartbeats in each timeout")
    for devices in (10000, 30000) if o.smoke else (10000, 100000, 1000000, 10000000):
        said = measure.relay(o, "growth", devices, BEATS // 20 if o.smoke else BEATS)
        for kind, unit in KINDS:
            measure.figure("10", "growth: %s, %d devices" % (kind, devices), said[kind], unit)


main()
