# SPDX-License-Identifier: MIT
"""From the figures of several runs to medians, a verdict on each goal, a table, CSV, and the tables of docs/performance.md.

Nothing here measures or runs anything. Results are what results.json holds:
  {"machine": {...}, "smoke": false, "benches": {NAME: bench}}, in the order in which they are shown, and a bench:
  {"date", "commit", "seconds": [one a run], "failed": ["run 2: ..."], "figures": [figure]}, and a figure:
  {"target", "label", "unit", "note", "conditions", "values": [one a run], "median", "min", "max",
  "goal": [">=", 15] or null, "worst": whether the worst run is judged, and not the median,
  "met": true, false, or null where there is nothing to judge}.
"""
import csv
import io
import re
import statistics

TITLES = {"1": "A heartbeat in the core", "2": "Memory", "3": "Detection delay", "4": "Ingest behind mosquitto",
          "5": "Ingest without a broker", "6": "Refreshing, against SETEX and DEL for each heartbeat",
          "7": "A million deaths at once", "8": "Idle", "9": "Restart", "10": "Growth",
          "11": "Detection in trouble", "12": "Several nodes", "13": "Everybody returns",
          "14": "Keyspace path", "history": "History in SQL", "tasks": "Tasks, beside BullMQ", "incidents": "Incidents", "inventory": "Inventory",
          "instructions": "Instructions in the core, counted by callgrind", "rates": "A heartbeat, at the paces of a fleet"}
TEN_BENCHES = ("rates", "detection", "memory", "returns", "restart", "idle")
ENOUGH = 5  # runs; a number of fewer is marked
# The ten numbers of the page: what a reader calls each, and its label.
TEN = (("CPU of heartwheeld for a heartbeat, 1,000 a second", "rates: CPU a heartbeat, 1,000 a second"),
       ("CPU of heartwheeld for a heartbeat, 10,000 a second", "rates: CPU a heartbeat, 10,000 a second"),
       ("CPU of heartwheeld for a heartbeat, 100,000 a second", "rates: CPU a heartbeat, 100,000 a second"),
       ("CPU of Redis for a heartbeat, 10,000 a second", "rates: CPU of Redis a heartbeat, 10,000 a second"),
       ("From the timeout to the published status, half of the devices within", "idle: timeout to the PUBLISH, p50"),
       ("The same beside 100,000 heartbeats a second, 99 of 100 devices within", "beside 100,000: timeout to the PUBLISH, p99"),
       ("Memory of heartwheeld for a device, of a million", "memory, 1 M devices: a device"),
       ("A million devices stop at once: statuses published", "all die: statuses told"),
       ("Start with a million devices in Redis: all are loaded after", "start with 1 M devices in Redis: all loaded after"),
       ("CPU of heartwheeld while 100,000 online devices are silent", "CPU, all threads"))
# The comparison: what is compared, heartwheel's label, the other's label, the other's name. Less is better, except for rates.
PAIRS = (("CPU a heartbeat, 10,000 a second", "rates: CPU a heartbeat, 10,000 a second",
          "rates: CPU a message of a plain subscriber, 10,000 a second", "a libmosquitto subscriber that only counts"),
         ("CPU a heartbeat, as fast as the broker sends", "ingest: CPU, heartwheeld, all threads", "ingest: CPU, plain subscriber",
          "a libmosquitto subscriber that only counts"),
         ("Timeout to the mark, 99 of 100 within", "timeout to the mark in Redis, p99", "Redis' expired, p99, at least",
          "Redis' `expired` notification"),
         ("The same", "timeout to the mark in Redis, p99", "Redis' expired at hz 100, effort 10, p99, at least",
          "the same with `hz 100`, `active-expire-effort 10`"),
         ("CPU of program and Redis a heartbeat", "CPU a heartbeat, heartwheel", "CPU a heartbeat, SETEX and DEL, one by one",
          "SETEX and DEL for each heartbeat, as commonly written"),
         ("The same", "CPU a heartbeat, heartwheel", "CPU a heartbeat, SETEX and DEL, batched reading",
          "SETEX and DEL in pipelines of 256, read in batches"),
         ("The same, one heartbeat a timeout", "CPU a heartbeat, heartwheel, one heartbeat a timeout",
          "CPU a heartbeat, SETEX and DEL, one heartbeat a timeout", "SETEX and DEL in pipelines of 256"),
         ("Memory a device, of a million", "memory, 1 M devices: a device",
          "memory, 1 M devices: a Redis key with a time to live, RSS", "a Redis key with a time to live"),
         ("A heartbeat in the timers alone", "heartbeat, 1 M: from topic and empty payload, in batches",
          "heartbeat, 1 M: libev: ev_timer_again(), no look-up", "libev's timer, without a look-up of the device"),
         ("Statuses published when a million devices stop", "both as recommended: statuses told", "bare QoS 1 publisher",
          "a program that publishes and does nothing else"),
         ("CPU of the broker a heartbeat, two nodes", "carried: CPU of the broker, 2 nodes",
          "carried: CPU of the broker, a monitor by itself", "a single monitor"),
         ("A task that is due: half of them sent within", "tasks: late, p50", "BullMQ: late, p50", "BullMQ"))
GROWTH = (("A heartbeat in the core", "growth: heartbeat, %d devices"), ("A device that goes offline, in the core", "growth: expiry, %d devices"),
          ("Memory for a device", "growth: memory, %d devices"))
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def target_of(text):
    """A target by its number, whatever word stands behind it ("6 refresh")."""
    found = re.match(r"(\d+)\b", str(text))
    return found[1] if found else str(text)


def title(target):
    return TITLES.get(target, target)


def as_line(text):
    """What a median is called in the table: nothing of it may break a row."""
    return " ".join(str(text).split())


# --- figures


def combine(runs):
    """The figures of a bench's runs, [[what figure() printed, ...], ...], as one list with medians, in order of first
    appearance. A figure that is missing from a run has a value less."""
    found = {}
    for run in runs:
        for f in run:
            have = found.setdefault(f["label"], {"target": target_of(f["target"]), "label": f["label"], "unit": f["unit"],
                                                 "note": f.get("note"), "conditions": f.get("conditions") or "",
                                                 "worst": bool(f.get("worst")), "values": [], "goals": []})
            have["values"].append(f["value"])
            if f.get("goal"):
                have["goals"].append(f["goal"])
    return [judge(f) for f in found.values()]


def judge(f):
    """Median, extremes and verdict. A goal that differs from run to run (what it allows was counted in the run) counts
    with its median; but where the worst run is judged, each run is held to its own."""
    goals, values = f.pop("goals"), f["values"]
    f.update(median=statistics.median(values), min=min(values), max=max(values), goal=None, met=None)
    if not goals:
        return f
    sign = goals[0][0]
    f["goal"] = [sign, statistics.median([g[1] for g in goals])]
    if f["worst"]:
        f["met"] = all(meets(v, g) for v, g in zip(values, goals))
    else:
        f["met"] = meets(f["median"], f["goal"])
    return f


def meets(value, goal):
    return value >= goal[1] if goal[0] == ">=" else value <= goal[1]


def judged(f):
    """The value that is held against the goal."""
    if not f.get("worst"):
        return f["median"]
    return f["max"] if f["goal"] and f["goal"][0] == "<=" else f["min"]


def margin(f):
    """How many times better than its goal a figure is; below 1 it missed. None where that cannot be said."""
    if not f["goal"] or f["goal"][1] <= 0 or judged(f) < 0:
        return None
    better, worse = (judged(f), f["goal"][1]) if f["goal"][0] == ">=" else (f["goal"][1], judged(f))
    return better / worse if worse > 0 else float("inf")


def figures(results):
    """Every figure, those of one target side by side, targets in order of their number, or else of appearance."""
    every = [f for b in results["benches"].values() for f in b["figures"]]
    order = {}
    for f in every:
        order.setdefault(f["target"], (0, int(f["target"])) if f["target"].isdigit() else (1, len(order)))
    return sorted(every, key=lambda f: order[f["target"]])


def failures(results):
    """[(bench, what went wrong)]"""
    return [(name, why) for name, b in results["benches"].items() for why in b["failed"]]


# --- text


def number(v):
    """Three digits that count, and thousands in groups."""
    if v is None:
        return "-"
    if v != v or v in (float("inf"), float("-inf")):
        return str(v)
    if abs(v) >= 100 or v == int(v):
        return format(round(v), ",d")
    return format(v, ".1f") if abs(v) >= 10 else format(v, ".2f") if abs(v) >= 1 else format(v, ".3g")


def span(f):
    return "%s - %s" % (number(f["min"]), number(f["max"])) if f["min"] != f["max"] else ""


def goal(f):
    return "%s %s%s" % (f["goal"][0], number(f["goal"][1]), ", every run" if f.get("worst") else "") if f["goal"] else ""


def verdict(f, smoke=False):
    return "" if f["met"] is None else "-" if smoke else "met" if f["met"] else "MISSED"


def table(results):
    """The one table, as text."""
    rows = [("", "median", "min - max", "unit", "goal", "")]
    for f in figures(results):
        rows.append((f["target"], as_line(f["label"]), number(f["median"]), span(f), f["unit"], goal(f),
                     verdict(f, results["smoke"])))
    if len(rows) == 1:
        return "no figures\n"
    wide = [max(len(r[i]) for r in rows[1:]) for i in range(1, 7)]
    wide = [max(w, len(h)) for w, h in zip(wide, rows[0])]
    head = "  %-*s  %*s  %*s  %-*s  %-*s" % (
        wide[0], "", wide[1], "median", wide[2], "min - max", wide[3], "unit", wide[4], "goal")
    out, target = [head.rstrip()], None
    for t, label, median, extremes, unit, wanted, met in rows[1:]:
        if t != target:
            out.append(("%s. %s" % (t, title(t))) if t in TITLES else title(t))
            target = t
        out.append(("  %-*s  %*s  %*s  %-*s  %-*s  %s" % (
            wide[0], label, wide[1], median, wide[2], extremes, wide[3], unit, wide[4], wanted, met)).rstrip())
    return "\n".join(out) + "\n"


def closing(results):
    """One line: how many goals hold, and what failed."""
    judged = [f for f in figures(results) if f["met"] is not None]
    failed = sorted({name for name, _ in failures(results)})
    if results["smoke"]:
        text = "%d figures (small sizes: goals are not judged)" % len(figures(results))
    else:
        text = "%d goals met, %d missed" % (sum(f["met"] for f in judged), sum(not f["met"] for f in judged))
    return text + ("; failed: " + ", ".join(failed) if failed else "")


def machine_line(results):
    m = results["machine"]
    versions = ", ".join("%s %s" % pair for pair in m["versions"].items())
    return "%s, %d cores, %s GB, Linux %s; %s" % (m["cpu"], m["cores"], number(m["memory_gb"]), m["kernel"], versions)


def cell(text):
    return as_line(text).replace("|", "/").replace("<", "&lt;")


def value(f):
    return number(f["median"]) + ("x" if f["unit"] == "x" else " " + f["unit"] if f["unit"] else "")


def spread(f):
    """The extremes; or that there are too few runs."""
    n = len(f["values"])
    return span(f) or number(f["median"]) if n >= ENOUGH else "%s†" % (span(f) or "one run" if n == 1 else span(f))


def which_commits(results):
    """"commit 0123456"; or, where benches were run at several, each with its benches, so that no row seems to be of the same
    program as another."""
    names = {}
    for name, b in results["benches"].items():
        names.setdefault(b["commit"], []).append(name)
    if len(names) < 2:
        return "commit " + (next(iter(names)) if names else "?")
    return "commits " + ", ".join("%s (%s)" % (commit, ", ".join(of)) for commit, of in names.items())


def how_many_runs(results):
    """"medians of 2 to 3 runs (memory: 1)", or "one run of each"."""
    n = {name: len(b["seconds"]) for name, b in results["benches"].items() if b["seconds"]}
    several = sorted(set(n.values()) - {1})
    if not several:
        return "one run of each" if n else "no run"
    once = [name for name in n if n[name] == 1 < several[0]]
    text = "medians of " + " to ".join(map(str, dict.fromkeys((several[0], several[-1])))) + " runs"
    return text + (" (%s: 1)" % ", ".join(once) if once else "")


class Notes:
    """Conditions, each with its number."""

    def __init__(self):
        self.texts = []

    def of(self, *some):
        found = [f["conditions"] for f in some if f and f.get("conditions")]
        for text in found:
            if text not in self.texts:
                self.texts.append(text)
        return ", ".join(str(self.texts.index(text) + 1) for text in dict.fromkeys(found))

    def lines(self):
        return ["%d. %s." % (n, cell(text)) for n, text in enumerate(self.texts, 1)]


def compared(ours, theirs):
    """How many times better or worse ours is."""
    better = ours["median"] / theirs["median"] if ours["unit"] == "/s" else theirs["median"] / ours["median"]
    return "%s times better" % number(better) if better >= 1 else "**%s times worse**" % number(1 / better)


def section(results):
    """The tables of docs/performance.md, between its markers: the ten numbers, the comparison, what grows, and the conditions."""
    by_label = {f["label"]: f for f in figures(results)}
    dates = sorted({b["date"] for b in results["benches"].values()}) or ["never"]
    notes = Notes()
    out = ["%s; %s, %s." % (machine_line(results), " to ".join(dict.fromkeys((dates[0], dates[-1]))), which_commits(results)), "",
           "| | median | lowest - highest run | conditions |", "|---|--:|--:|--:|"]
    for text, label in TEN:
        f = by_label.get(label)
        out.append("| %s | %s | %s | %s |" % (text, value(f) if f else "not measured yet", spread(f) if f else "", notes.of(f)))
    out += ["", "† Fewer than five runs: to be measured again.", "", "## Comparison", "",
            "| | heartwheel | the other way | | conditions |", "|---|--:|---|---|--:|"]
    for text, ours, theirs, name in PAIRS:
        a, b = by_label.get(ours), by_label.get(theirs)
        if a and b:
            out.append("| %s | %s | %s: %s | %s | %s |" % (text, value(a), name, value(b), compared(a, b), notes.of(a, b)))
    sizes = sorted({int(m[1]) for m in (re.match(r"growth: heartbeat, (\d+) devices", label) for label in by_label) if m})
    if sizes:
        out += ["", "## What grows", "", "| devices | %s |" % " | ".join(format(n, ",d") for n in sizes), "|---|" + "--:|" * len(sizes)]
        for text, label in GROWTH:
            row = [by_label.get(label % n) for n in sizes]
            out.append("| %s | %s |" % (text, " | ".join(value(f) if f else "" for f in row)))
        out += ["", "Conditions: %s." % notes.of(*(by_label.get(GROWTH[0][1] % n) for n in sizes))]
    out += ["", "## Conditions", ""] + notes.lines()
    return "\n".join([BEGIN, *out, END])


def csv_of(name, bench):
    """All figures of a bench, a row for each run."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("date", "commit", "run", "label", "value", "unit", "conditions", "note"))
    for f in bench["figures"]:
        for n, v in enumerate(f["values"], 1):
            rows.writerow((bench["date"], bench["commit"], n, f["label"], v, f["unit"], f.get("conditions") or "", f.get("note") or ""))
    return out.getvalue()


def put_between(text, section):
    """`text` with the section in the place of the one that is there; ValueError if its markers are not."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError("no lines %s and %s" % (BEGIN, END))
    return head + section + tail
