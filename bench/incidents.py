#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The engine of incidents in virtual time: how much is sent of what happens, and what an entry costs."""
import measure


def main():
    o = measure.options(__doc__)
    n, children = (50, 20) if o.smoke else (1000, 100)
    measure.conditions("%s gateways with %d children each fail once, in any order of deadlines; mass = 0" %
                       (format(n, ",d"), children))
    said = measure.relay(o, "incidents", "gateways", n, children)
    measure.figure("incidents", "incidents: openings too many or too few", abs(said["opened"] - n), "", ("<=", 0), None, True)
    measure.figure("incidents", "incidents: ends too many or too few", abs(said["closed"] - n), "", ("<=", 0), None, True)
    measure.figure("incidents", "incidents: news of children", said["children"], "", ("<=", 0), None, True)
    measure.figure("incidents", "incidents: an entry, with its changes", said["entry_ns"] / 1e3, "µs")
    n, hours = (100, 1) if o.smoke else (1000, 4)
    measure.conditions("%s devices with a transition each 30 s for %d h; mass = 0" % (format(n, ",d"), hours))
    said = measure.relay(o, "incidents", "flapping", n, hours)
    measure.figure("incidents", "incidents: news, flapping devices", 100 * said["news"] / said["entries"],
                   "% of the transitions", ("<=", 5), None, True)
    n = 50000 if o.smoke else 1000000
    measure.conditions("%s devices of a group go offline and return" % format(n, ",d"))
    said = measure.relay(o, "incidents", "mass", n)
    measure.figure("incidents", "incidents: an entry of a mass death, with its changes", said["entry_ns"] / 1e3, "µs")
    measure.figure("incidents", "incidents: memory, a member", said["bytes"], "bytes")
    measure.figure("incidents", "incidents: longest turn after 1,000 entries of a mass death", said["longest_ms"], "ms")


main()
