# SPDX-License-Identifier: MIT
"""The table of docs/brokers.md, from what the runs found out: a row for each thing that a broker may lack."""
import json

from adapters import ADAPTERS, TITLES

BEGIN, END = "<!-- brokers: begin -->", "<!-- brokers: end -->"


def order(qos):
    """Where a barrier came that was published behind 3,600 waiting messages."""
    def cell(r):
        before, behind, lost = r["order"][qos]
        if behind is None:
            return "no: it is dropped, with %s of them" % format(lost, ",")
        return "yes" if not behind else "no: %s came after it" % format(behind, ",")
    return cell


ROWS = [
    ("MQTT 5 (`protocol = 5`)", lambda r: "yes" if r["v5"] else "no: `3.1.1`"),
    ("shared subscriptions (`readers` over 1)",
     lambda r: "yes" if r["shared"]["3.1.1"] and (r["shared"]["5"] or not r["v5"]) else "no: `readers = 1`"),
    ("a filter such as `nodes/+/status` brings the retained statuses", lambda r: "yes" if r["retained"]["wildcard"]
     else "no: the topic itself does" if r["retained"]["exact"] else "no"),
    ("several nodes (`mode = mirror`)", lambda r: {True: "yes", False: "no: Redis alone has the states", None: "-"}[r.get("mirror")]),
    ("stopped, it publishes the devices' wills", lambda r: {True: "yes", False: "no", None: "-"}[r.get("wills_at_stop")]),
    ("a barrier keeps its place behind 3,600 waiting messages, QoS 0", order("0")),
    ("the same, QoS 1", order("1")),
    ("cases passed", lambda r: "%d of %d" % (r["passed"], r["passed"] + r["failed"])),
]


def results(directory):
    """Of the brokers that were run, in the order of the adapters."""
    found = {}
    for name in ADAPTERS:
        path = directory / (name + ".json")
        if path.exists():
            found[name] = json.loads(path.read_text())
    return found


def table(found):
    head = "| | %s |" % " | ".join("%s %s" % (TITLES[n], r["version"]) for n, r in found.items())
    lines = [head, "|---|%s" % ("---|" * len(found))]
    for label, cell in ROWS:
        lines.append("| %s | %s |" % (label, " | ".join(cell(r) for r in found.values())))
    return "\n".join(lines)


def write(path, directory):
    """Puts the table between the markers. Returns an exit status."""
    found = results(directory)
    if not found:
        print("no results in %s: run make brokers first" % directory)
        return 1
    text = path.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        print("%s has no lines %s and %s" % (path, BEGIN, END))
        return 1
    path.write_text(before + BEGIN + "\n" + table(found) + "\n" + END + after)
    return 0
