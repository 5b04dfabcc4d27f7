# SPDX-License-Identifier: MIT
"""The reports of heartwheel-history (uptime, outages, transitions) are compared with a simple recount of the same entries."""
import contextlib
import csv
import datetime
import io
import os
import random
import re
import signal
import shutil
import sqlite3
import subprocess
import time
import xml.dom.minidom

import pytest

from hw_build import SRC
from hw_history import BUILT, History, Scribe, Sqlite, wait_read
from hw_http import Metrics
from hw_wait import now_ms, wait_until

pytestmark = pytest.mark.skipif(not BUILT, reason="heartwheel-history is not built: SQLite is missing")
DAY = 86_400_000
PROMTOOL = shutil.which("promtool")


@pytest.fixture
def redis(env):
    env.check_events = False
    return env.own_redis()


def month_begin(text):
    return int(datetime.datetime.strptime(text, "%Y-%m").replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)


def months_back(n):
    """The names of the last n whole months and this one."""
    day, out = datetime.datetime.now(datetime.timezone.utc).replace(day=1), []
    for _ in range(n + 1):
        out.append(day.strftime("%Y-%m"))
        day = (day - datetime.timedelta(days=1)).replace(day=1)
    return out[::-1]


def cut(spans, a, b):
    return [(max(x, a), min(y, b)) for x, y in spans if max(x, a) < min(y, b)]


def length(spans):
    return sum(y - x for x, y in spans)


def both(one, other):
    """The intersection of two lists of disjoint spans, each span compared with each."""
    return [(max(a, x), min(b, y)) for a, b in one for x, y in other if max(a, x) < min(b, y)]


def without(spans, off):
    for x, y in off:
        spans = [p for a, b in spans for p in ((a, min(b, x)), (max(a, y), b)) if p[0] < p[1]]
    return spans


class Recount:
    """Each device's periods, recorded while they were made up, and the times in which a node saw."""

    def __init__(self):
        self.known, self.down, self.saw = {}, {}, []
        self.planned = {}

    def uptime(self, device, a, b):
        """known, seen, down in ms; outages; planned in ms."""
        known = cut(self.known[device], a, b)
        seen = both(known, self.saw)
        down = both(cut(self.down[device], a, b), seen)
        planned = both(cut(self.planned.get(device, []), a, b), down)
        return length(known), length(seen), length(down), sum(a <= x < b for x, _ in self.down[device]), length(planned)


def make_up(s, rng, begin, end, outages):
    """Makes up periods for all devices, as spans, and their transitions in the order of time."""
    r, edges = Recount(), []
    for d in s.devices:
        t = begin + rng.randrange(5 * DAY)
        known, down = [], []
        edges.append((t, d, "online"))
        start = t
        for _ in range(rng.randrange(outages)):
            t += rng.choice([rng.randrange(1, 3_600_000), rng.randrange(1, 12 * DAY)])
            if t >= end:
                break
            kind = rng.random()
            if kind < 0.08:  # forgotten, to come back
                edges.append((t, d, "forgotten"))
                known.append((start, t))
                t = start = t + rng.randrange(1, 5 * DAY)
                if t >= end:
                    start = None
                    break
                edges.append((t, d, "online"))
                continue
            edges.append((t, d, "offline"))
            from_ms, t = t, t + rng.choice([rng.randrange(1, 600_000), rng.randrange(1, 9 * DAY)])
            if t >= end:
                down.append((from_ms, 1 << 60))
                break
            down.append((from_ms, t))
            edges.append((t, d, "forgotten" if kind > 0.95 else "online"))
            if kind > 0.95:
                known.append((start, t))
                start = None
                break
        if start is not None:
            known.append((start, 1 << 60))
        r.known[d], r.down[d] = known, down
    edges.sort()
    return r, edges


def plan(s, r, rng, end):
    """Some outages get planned parts, which may cross a month; one is written twice, as by a restored Redis."""
    for d in s.devices:
        for x, y in r.down[d]:
            y = min(y, end)
            while rng.random() < 0.4 and y - x > 10:
                x += rng.randrange(y - x)
                until = x + rng.randrange(y - x)
                if until > x:
                    r.planned.setdefault(d, []).append((x, until))
                    for _ in range(rng.choice([1, 1, 2])):
                        s.plan(d, x, until)
                x = until
    assert len(r.planned) > len(s.devices) / 4


def see(s, r, rng, begin, end):
    """Two nodes, each with times in which it did not see; some times are reported in pieces that grow."""
    union = []
    for node in "n1", "n2":
        t, saw, not_seen = begin + rng.randrange(DAY), [], []
        while t < end:
            until = min(end, t + rng.randrange(1, 9 * DAY))
            s.saw("seeing", t, t + (until - t) // 2, node=node)
            s.saw("seeing", t, until, node=node)
            saw.append((t, until))
            t = until
            blind = rng.randrange(1, rng.choice([5000, 3 * DAY]))
            state = rng.choice(["blind", "down"])
            back = rng.randrange(0, min(1000, until - saw[-1][0]))  # the mark of one that was killed is a little older
            s.saw(state, until - back if state == "down" else until, min(end, until + blind), "link" if state == "blind" else "",
                  node=node)
            if state == "down":
                not_seen.append((until - back, until))
            t = min(end, until + blind)
        union += without(saw, not_seen)
    r.saw = []
    for a, b in sorted(union):
        if r.saw and a <= r.saw[-1][1]:
            r.saw[-1] = (r.saw[-1][0], max(b, r.saw[-1][1]))
        else:
            r.saw.append((a, b))


def compare(said, want, unsaid=None):
    known, seen, down, outages, planned = want
    assert round(said["planned_s"] * 1000) == planned, (said, want, unsaid)
    assert round(said["down_s"] * 1000) == down and round(said["window_s"] * 1000) == seen, (said, want, unsaid)
    assert said["outages"] == outages, (said, want, unsaid)
    close = {"uptime": (seen - down, seen), "seen": (seen, known), "mtbf_s": (seen - down, outages * 1000),
             "mttr_s": (down, outages * 1000)}
    for key, (over, under) in close.items():
        if under == 0:
            assert said[key] is None, (key, said, want)
        else:
            assert said[key] == pytest.approx(over / under, rel=1e-12), (key, said, want)


def all_devices(h, query):
    out, offset = {}, 0
    while offset is not None:
        page = h.get("/v1/history/uptime?%s&limit=1000&offset=%d" % (query, offset)).json()
        out.update({d["id"]: d for d in page["devices"]})
        offset = page.get("next_offset")
    return page["all"], out


def check_bars(h, r, device, a, b, step):
    answer = h.get("/v1/history/bars?device=%s&since=%d&until=%d&step=%dms" % (device, a, b, step)).json()
    bars = answer["bars"]
    assert [x["from_ms"] for x in bars] == list(range(a, b, step)) and bars[-1]["to_ms"] == b
    for x in bars:
        have = tuple(round(x[k] * 1000) for k in ("known_s", "seen_s", "down_s")) + (x["outages"], round(x["planned_s"] * 1000))
        assert have == r.uptime(device, x["from_ms"], x["to_ms"]), (device, x)


def check_counts(h, r, a, b, step):
    counts = h.get("/v1/history/counts?since=%d&until=%d&step=%dms" % (a, b, step)).json()["counts"]
    assert [c["time_ms"] for c in counts] == list(range(a, b, step))
    for c in counts:
        t = c["time_ms"]
        down = sum(bool(cut(r.down[d], t, t + 1)) for d in r.down)
        online = sum(bool(cut(r.known[d], t, t + 1)) for d in r.known) - down
        want = (online, down) if cut(r.saw, t, t + 1) else (None, None)
        assert (c["online"], c["offline"]) == want, c


@pytest.mark.parametrize("gappy", [False, True], ids=["always", "pieces"])
def test_uptime_is_what_a_naive_recount_says(env, redis, gappy):
    seed = int(os.environ.get("HW_SEED") or random.randrange(1 << 30))
    print("HW_SEED=%d" % seed)
    rng = random.Random(seed)
    months = months_back(3)
    begin, end = month_begin(months[0]) - 3 * DAY, now_ms() - 1000
    s = Scribe(env, seed, devices=int(os.environ.get("HW_DEVICES", "150")))
    r, edges = make_up(s, rng, begin, end, 12)
    for i in range(0, len(edges), 1000):
        s.write([s.entry(d, state, t) for t, d, state in edges[i:i + 1000]])
    if gappy:
        see(s, r, rng, begin, end)
    else:
        r.saw = [(begin - DAY, end)]
        s.saw("seeing", begin - DAY, end)
    plan(s, r, rng, end)
    h = History(env, Sqlite(env.own_dir("db")), keep="0", keep_outages="0").start()
    for stream in "device:events", "device:sight", "device:incident_events":
        wait_read(h, env, stream)
    windows = [("month=" + m, month_begin(m), month_begin(n)) for m, n in zip(months, months[1:])]
    windows.append(("month=" + months[-1], month_begin(months[-1]), end))
    for _ in range(3):
        a = begin + rng.randrange(end - begin - 2)
        b = a + rng.randrange(1, end - a)
        windows.append(("since=%d&until=%d" % (a, b), a, b))
    for query, a, b in windows:
        for more, devices in [("", s.devices), ("&group=g1", [d for d in s.devices if s.group[d] == "g1"])]:
            want = {d: r.uptime(d, a, b) for d in devices}
            whole, each = all_devices(h, query + more)
            if b == end:  # it goes on until now, unseen: only the time that is known grows
                want = {d: (round(each[d]["window_s"] * 1000 / each[d]["seen"]) if d in each and each[d]["seen"] else w[0], *w[1:])
                        for d, w in want.items()}
                for d, said in each.items():
                    want[d] = (want[d][0], *want[d][1:])
                    said = {**said, "seen": None if want[d][0] == 0 else want[d][1] / want[d][0]}
                    compare(said, want[d], (query, d))
                continue
            assert set(each) == {d for d, w in want.items() if w[0] > 0}, query
            for d in each:
                compare(each[d], want[d], (query, d))
            compare(whole, tuple(sum(w[i] for d, w in want.items() if d in each) for i in range(5)), query)
            assert whole["devices"] == len(each)
        device = rng.choice(s.devices)
        check_bars(h, r, device, a, min(b, end), max(1000, (b - a) // 17))
        check_counts(h, r, a, min(b, end), max(1000, (b - a) // 300))
        one = h.get("/v1/history/uptime?%s&device=%s" % (query, device))
        if one.status == 200:
            assert {k: v for k, v in one.json()["devices"][0].items() if k not in ("seen",)} == \
                {k: v for k, v in all_devices(h, query)[1][device].items() if k not in ("seen",)}


def test_what_nobody_saw_is_neither_up_nor_down(env, redis):
    t = now_ms() - 10 * DAY
    s = Scribe(env, 1, devices=2)
    s.write([s.entry("d0", "online", t), s.entry("d1", "online", t), s.entry("d0", "offline", t + 1000),
             s.entry("d0", "online", t + 5000)])
    h = History(env, Sqlite(env.own_dir("db"))).start()
    wait_read(h, env)
    asked = "since=%d&until=%d" % (t, t + 10_000)
    _, each = all_devices(h, asked)
    assert each["d0"]["uptime"] is None and each["d0"]["seen"] == 0 and each["d0"]["down_s"] == 0, "nobody has said that he saw"
    s.saw("seeing", t, t + 2000)
    s.saw("blind", t + 2000, t + 4000, "link")
    s.saw("seeing", t + 4000, t + 8000)
    s.saw("stopped", t + 8000, t + 8000)
    wait_read(h, env, "device:sight")
    whole, each = all_devices(h, asked)
    assert each["d0"] == {"id": "d0", "group": "g0", "uptime": 4 / 6, "seen": 0.6, "window_s": 6, "down_s": 2, "planned_s": 0, "outages": 1,
                          "mtbf_s": 4, "mttr_s": 2}
    assert each["d1"]["uptime"] == 1 and each["d1"]["mtbf_s"] is None
    assert whole["uptime"] == 10 / 12
    lines = list(csv.reader(io.StringIO(h.get("/v1/history/uptime?" + asked, Accept="text/csv").body.decode())))
    assert lines == [["id", "group", "uptime", "seen", "down_s", "outages", "mtbf_s", "mttr_s", "gaps", "planned_s"],
                     ["d0", "g0", "0.666666667", "0.600000000", "2.000", "1", "4.000", "2.000", "0", "0.000"],
                     ["d1", "g1", "1.000000000", "0.600000000", "0.000", "0", "", "", "0", "0.000"]]


def test_a_count_in_a_gap_or_after_the_last_read_is_not_known(env, redis):
    """Entries are missing around a moment: the count there is unknown. So is a count after as_of_ms; later moments get their
    counts once they are read."""
    t = now_ms() - 100_000
    s = Scribe(env, 1, devices=3)
    h = History(env, Sqlite(env.own_dir("db"))).start()
    s.write([s.entry(d, "online", t) for d in s.devices])
    s.saw("seeing", t, t + 200_000)
    wait_read(h, env)
    wait_read(h, env, "device:sight")

    def counts(since, until):
        answer = h.get("/v1/history/counts?since=%d&until=%d&step=1s" % (since, until)).json()
        return answer["as_of_ms"], {c["time_ms"]: (c["online"], c["offline"]) for c in answer["counts"]}
    _, before = counts(t, t + 5000)
    assert list(before.values()) == [(3, 0)] * 5
    h.stop()
    read = int(env.redis.xrevrange(s.stream, count=1)[0][0].split("-")[0])
    s.write([s.entry("d0", "offline", now_ms())])
    wait_until(lambda: now_ms() > read + 3000, what="a gap of some length")
    s.write([s.entry("d1", "offline", now_ms())])
    env.redis.xtrim(s.stream, maxlen=1, approximate=False)
    end = int(env.redis.xrevrange(s.stream, count=1)[0][0].split("-")[0])
    h.start()
    wait_read(h, env)
    _, after = counts(read - 1000, end + 2000)
    assert list(after.values()) == [(3, 0), *[(None, None)] * (1 + (end - read) // 1000), *[(1, 2)] * (len(after) - 2 - (end - read) // 1000)], (after, read, end)
    # Redis hangs: as_of_ms stands still.
    env.redis_server.signal(signal.SIGSTOP)
    try:
        at = wait_until(lambda: (c := counts(end + 1, now_ms())) and c[0] < now_ms() - 3000 and c, what="the report to be old")
        assert all((n == (1, 2)) == (moment <= at[0]) for moment, n in at[1].items()), at
        assert (None, None) in at[1].values()
    finally:
        env.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: (None, None) not in counts(end + 1, at[0] + 2500)[1].values(), what="the moments to be known")


def test_who_is_unreliable_and_what_is_seen_now(env, redis):
    t = now_ms() - 3_600_000
    s = Scribe(env, 1, devices=3)
    for i, d in enumerate(s.devices):  # d0 is down once and long, d1 often and short, d2 never
        s.write([s.entry(d, "online", t + i)])
    s.write([s.entry("d0", "offline", t + 10), s.entry("d0", "online", t + 900_010)])
    for i in range(5):
        s.write([s.entry("d1", "offline", t + 20 + 2000 * i), s.entry("d1", "online", t + 1020 + 2000 * i)])
    s.write([s.entry("d2", "offline", now_ms() - 60_000)])
    s.saw("seeing", t, now_ms() - 120_000)  # the monitor's last word is two minutes old
    h = History(env, Sqlite(env.own_dir("db"))).start()
    wait_read(h, env)
    wait_read(h, env, "device:sight")

    def first(sort):
        return [d["id"] for d in h.get("/v1/history/uptime?since=7d&limit=2" + sort).json()["devices"]]
    assert first("") == first("&sort=down") == ["d0", "d1"] and first("&sort=outages") == ["d1", "d0"]

    def bar(live):
        return h.get("/v1/history/bars?device=d2&since=10m&step=1h&live=%d" % live).json()["bars"][0]
    assert bar(0)["down_s"] == 0 and 470 < bar(0)["seen_s"] < 481
    assert 60 <= bar(1)["down_s"] < 70 and bar(1)["seen_s"] == bar(1)["known_s"] == 600 and bar(1)["outages"] == 1
    s.saw("stopped", now_ms() - 1000, now_ms() - 1000)  # its last word is not that it sees
    wait_read(h, env, "device:sight")
    assert bar(1)["down_s"] == 0


def csv_pages(h, path, limit):
    """All rows of a report as CSV, page by page, as the header says."""
    rows, after = [], ""
    while after is not None:
        a = h.get("%slimit=%d%s" % (path, limit, after), Accept="text/csv")
        assert a.status == 200 and a.headers["Content-Type"] == "text/csv; charset=utf-8", a
        some = list(csv.DictReader(io.StringIO(a.body.decode())))
        assert 0 < len(some) <= limit
        rows += some
        if path.endswith("after=0-0&"):
            path = path.replace("after=0-0&", "")
        after = "&after=" + a.headers["Heartwheel-Next"] if a.headers["Heartwheel-Next"] else None
    return rows


def in_csv(key, value):
    """A member of JSON as CSV has it."""
    if value is None:
        return ""
    return "%d" % value if isinstance(value, bool) else "%.3f" % value if key in ("down_s", "planned_s") else str(value)


def test_a_page_of_events_says_what_is_missing(env, redis):
    """A page says how far the stream was read, since when it is kept, and which gaps lie after the page's begin."""
    s = Scribe(env, 5, devices=4)
    db = Sqlite(env.own_dir("db"))
    h = History(env, db).start()
    empty = h.get("/v1/history/events")
    assert empty.status == 503 or (empty.json()["from"], empty.json()["gaps"]) == (None, [])
    s.some(10)
    wait_read(h, env)
    h.stop()
    first = list(s.written)
    s.some(30)
    env.redis.xtrim(s.stream, maxlen=12, approximate=False)
    oldest = env.redis.xrange(s.stream, count=1)[0][0]
    h.start()
    wait_read(h, env)
    gap = {"after": first[-1], "before": oldest, "lost": 18}
    page = h.get("/v1/history/events?limit=4").json()
    assert (page["from"], page["at"], page["gaps"], page["next"]) == (first[0], list(s.written)[-1], [gap], first[3])
    page = h.get("/v1/history/events?after=" + first[-1]).json()
    assert page["gaps"] == [gap] and page["events"][0]["event"] == oldest and "next" not in page
    assert h.get("/v1/history/events?after=" + oldest).json()["gaps"] == []
    assert b"gaps" not in h.get("/v1/history/events?limit=4", Accept="text/csv").body


def test_a_page_of_events_does_not_pass_all_that_was_found(env, redis):
    """After a gap the devices' hashes give one row for each device; these rows have no offset in the stream."""
    s = Scribe(env, 8, devices=4)
    s.some(20)
    h = History(env, Sqlite(env.own_dir("db"))).start()
    wait_read(h, env)
    db = sqlite3.connect(h.database.path, timeout=20)
    with db:
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) INSERT INTO transition"
                   " (dev, seq, at_ms, state, reason, last_seen_ms, grp, node, found, entry)"
                   " SELECT 1000 + i, 1, ?, 'offline', 'timeout', 0, 'g0', 'n', 1, 0 FROM n", (now_ms(),))
    db.close()
    took = []
    for _ in range(5):
        begun = time.monotonic()
        page = h.get("/v1/history/events?after=0-0&limit=4").json()
        took.append(time.monotonic() - begun)
        assert page["from"] == page["events"][0]["event"] == next(iter(s.written))
    assert min(took) < 0.1, took


def test_transitions_outages_events_and_the_badge(env, redis):
    s = Scribe(env, 4, devices=4)
    s.some(300)
    odd = "a/\"<&,\u00e4"
    s.write([s.entry(odd, "online", s.now + 1), s.entry(odd, "offline", s.now + 2, "will")])
    s.saw("seeing", s.now - 40 * DAY, now_ms())
    h = History(env, Sqlite(env.own_dir("db"))).start()
    wait_read(h, env)
    wait_read(h, env, "device:sight")
    want = [e for e in s.written.values() if e["id"] == "d2"][::-1]
    have, after = [], ""
    while after is not None:
        page = h.get("/v1/history/devices/d2?limit=7" + after).json()
        assert page["id"] == "d2" and page["state"] == s.state["d2"]
        have += page["transitions"]
        after = "&after=%d" % page["next"] if "next" in page else None
    assert [(str(e["seq"]), e["state"], str(e["time_ms"]), e["reason"]) for e in have] == \
        [(e["seq"], e["state"], e["time_ms"], e["reason"]) for e in want]
    events, after = [], "0-0"
    while after is not None:
        page = h.get("/v1/history/events?limit=50&after=" + after).json()
        events += page["events"]
        after = page.get("next")
    assert [(e["event"], e["id"], e["state"]) for e in events] == [(k, e["id"], e["state"]) for k, e in s.written.items()]
    outages, after = [], ""
    while after is not None:
        page = h.get("/v1/history/outages?limit=9" + after).json()
        outages += page["outages"]
        after = "&after=" + page["next"] if "next" in page else None
    assert len(outages) == sum(e["state"] == "offline" for e in s.written.values())
    assert [o["from_ms"] for o in outages] == sorted((o["from_ms"] for o in outages), reverse=True)
    assert {(o["id"], o["reason"]) for o in outages if o["to_ms"] is None} >= {(odd, "will")}
    some = h.get("/v1/history/outages?group=g1&min=2s&limit=1000").json()["outages"]
    assert [o for o in outages if o["group"] == "g1" and o["down_s"] >= 2] == \
        [{**o, "down_s": next(x["down_s"] for x in outages if (x["id"], x["from_ms"]) == (o["id"], o["from_ms"]))} for o in some]
    for path, rows in [("events?after=0-0&", events), ("outages?", outages), ("devices/d2?", have)]:
        want = [{k: in_csv(k, v) for k, v in row.items()} for row in rows]
        for i, row in enumerate(csv_pages(h, "/v1/history/" + path, 40)):
            if row.get("to_ms") == "":  # it lasts
                row["down_s"] = want[i]["down_s"]
            assert row == want[i], path
        assert i + 1 == len(want)
    badge = h.get("/v1/history/badge/%s.svg?days=50" % "a%2F%22%3C%26%2C%C3%A4")
    assert badge.status == 200 and "0.00 %" in xml.dom.minidom.parseString(badge.body).documentElement.toxml()
    assert b"unknown" in h.get("/v1/history/badge/nobody.svg").body


@pytest.mark.parametrize("path, status", [
    ("/v1/history/devices/nobody", 404), ("/v1/history/devices/%zz", 400), ("/v1/history/devices/a?limit=0", 400),
    ("/v1/history/uptime?month=2026-13", 400), ("/v1/history/uptime?month=9999-01", 400), ("/v1/history/uptime?device=nobody", 404),
    ("/v1/history/uptime?since=tomorrow", 400), ("/v1/history/uptime?what=1", 400), ("/v1/history/outages?after=x", 400),
    ("/v1/history/outages?min=-1", 400), ("/v1/history/events?after=1", 400), ("/v1/history/badge/a.png", 404),
    ("/v1/history/badge/a.svg?days=0", 400), ("/v1/history/outages?group=" + "x" * 300, 400), ("/v1/history", 404),
    ("/v1/history/uptime?since=2026-02-01&until=2026-01-01", 400), ("/v1/history/uptime?sort=id", 400),
    ("/v1/history/bars?since=1d", 400), ("/v1/history/bars?device=a", 400), ("/v1/history/bars?device=nobody&since=1d", 404),
    ("/v1/history/bars?device=a&since=1001d&step=1d", 400), ("/v1/history/bars?device=a&since=1d&step=1ms", 400),
    ("/v1/history/bars?device=a&since=1d&live=yes", 400), ("/v1/history/counts", 400), ("/v1/history/counts?since=1001m", 400),
    ("/v1/history/counts?since=1h&step=1ms", 400), ("/v1/history/counts?since=1h&live=1", 400), ("/v1/history/counts?since=1h&device=a", 400)])
def test_what_cannot_be_answered_is_refused(history, path, status):
    a = history.get(path)
    assert a.status == status and a.json()["error"], (path, a)


@pytest.fixture(scope="module")
def history(base, shared_broker, shared_redis):
    from hw_env import Env
    e = Env(shared_broker, shared_redis, base)
    e.check_events = False
    h = History(e, Sqlite(e.own_dir("db"))).start()
    wait_until(lambda: h.get("/v1/history/devices/nobody").status == 404, what="the tables to be made")
    yield h
    e.close()


def test_a_window_is_read_from_its_key_alone(history):
    """The value of another key may contain the text "since=": the window is still this month."""
    plain = history.get("/v1/history/uptime?group=g").json()
    odd = history.get("/v1/history/uptime?group=a-since=b").json()
    assert odd["since_ms"] == plain["since_ms"] > 0, (odd, plain)


def test_what_it_answers_is_documented(history):
    routes = re.findall(r'EVHTTP_REQ_GET, "([^"]+)"', (SRC / "src" / "history" / "api.c").read_text())
    docs, manual = ((SRC / path).read_text() for path in ("docs/history.md", "man/heartwheel-history.8"))
    for path in routes:
        assert "`%s" % path in docs and re.search(r"^\.It Cm GET (.* , )?%s" % path, manual.replace("\\", ""), re.M), path
    page = history.get("/v1/history/metrics").body.decode()
    assert set(Metrics(page).types) == set(Metrics(history.get("/metrics").body.decode()).types)
    named = {name for name in Metrics(page).types if name.startswith("heartwheel_history_")}
    assert named == set(re.findall(r"^\.It (heartwheel_\w+)", manual, re.M)) and len(named) > 8
    if PROMTOOL:
        r = subprocess.run([PROMTOOL, "check", "metrics"], input=page, capture_output=True, text=True, timeout=60)
        assert r.returncode == 0 and not r.stdout and not r.stderr, r


def test_before_there_are_tables_reports_say_so(env, redis):
    db = Sqlite(env.own_dir("db"))
    with contextlib.closing(sqlite3.connect(db.path)) as other:
        other.execute("CREATE VIEW device AS SELECT 1")  # the worker cannot make its tables
    h = History(env, db).start()
    wait_until(lambda: "views" in h.status()["sql"], what="the worker to give up")
    for path in ("uptime", "outages", "devices/d1", "events", "badge/d1.svg"):
        a = h.get("/v1/history/" + path)
        assert a.status == 503 and "the database has no tables" in a.json()["error"], (path, a)
    with contextlib.closing(sqlite3.connect(db.path)) as other:
        other.execute("DROP VIEW device")
    wait_until(lambda: h.get("/v1/history/uptime").status == 200, what="the tables to be made")


def test_a_report_that_nobody_waits_for_hurts_nobody(env, redis):
    s = Scribe(env, 5)
    s.some(500)
    h = History(env, Sqlite(env.own_dir("db"))).start()
    wait_read(h, env)
    from hw_http import UnixHTTP
    for _ in range(100):
        c = UnixHTTP(h.socket)
        c.request("GET", "/v1/history/uptime")
        c.close()
    wait_until(lambda: h.get("/v1/history/outages").status == 200, what="an answer")
    h.stop()
