# SPDX-License-Identifier: MIT
"""The last hour on the dashboard after a start of the monitor: what the monitor has not counted itself comes from
heartwheel-history, or is a gap; it is never 0. Needs what test_dashboard.py needs."""
import json
import re
import signal

import pytest

from hw_browser import missing
from hw_history import BUILT, History, Scribe, Sqlite, wait_read
from hw_past import HOUR, MINUTE, QUIET_TIMES
from hw_process import free_port
from hw_wait import now_ms, pass_time, wait_until
from test_dashboard import say_nothing

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()),
              pytest.mark.skipif(not BUILT, reason="heartwheel-history is not built: SQLite is missing")]
DEVICES = "abcd"


def start_after(env, history, **options):
    port = free_port()
    d = env.daemon(http={"listen": "127.0.0.1:%d" % port}, history={"socket": history.socket},
                   groups=[("pumps", {"heartbeat": env.root + "/p/{id}", "timeout": "1h"})], **{**QUIET_TIMES, **options})
    d.url = "http://127.0.0.1:%d/" % port
    return d


class Past:
    """The past of an hour: a and b were down for ten minutes each, d appeared and was forgotten; no monitor saw for five
    minutes."""

    def __init__(self, env):
        env.check_events = False
        env.own_redis()
        now = self.now = now_ms()
        s = self.scribe = Scribe(env, 1, devices=0)
        s.group = {d: "pumps" for d in DEVICES}
        edges = [(now - 2 * HOUR, d, "online") for d in "abc"]
        edges += [(now - 50 * MINUTE, "a", "offline"), (now - 40 * MINUTE, "a", "online"), (now - 30 * MINUTE, "b", "offline"),
                  (now - 20 * MINUTE, "b", "online"), (now - 45 * MINUTE, "d", "online"), (now - 5 * MINUTE, "d", "forgotten")]
        s.write([s.entry(d, state, t) for t, d, state in sorted(edges)])
        self.unseen = (now - 15 * MINUTE, now - 10 * MINUTE)
        s.saw("seeing", now - 2 * HOUR, self.unseen[0])
        s.saw("seeing", self.unseen[1], now)
        s.saw("stopped", now, now)
        self.history = History(env, Sqlite(env.own_dir("db")))

    def start_history(self, env):
        self.history.start()
        wait_read(self.history, env)
        wait_read(self.history, env, "device:sight")
        return self.history

    def counts(self, t):
        """The counts online and offline at a moment of the hour; None: unknown."""
        def within(a, b):
            return self.now - a * MINUTE <= t < self.now - b * MINUTE
        if t >= self.now or self.unseen[0] <= t < self.unseen[1]:
            return None
        offline = within(50, 40) + within(30, 20)
        return 3 + within(45, 5) - offline, offline


def line(b, chart):
    return [(p["x"], p["y"]) for p in b.get('Chart.getChart("chart-%s").data.datasets[0].data' % chart)]


def gaps(b, chart="online"):
    return b.get('Chart.getChart("chart-%s").unknown' % chart)


def first_sample(d):
    return wait_until(lambda: d.get("/v1/samples").json()["samples"], what="a sample")[0]["time_ms"]


def note(b):
    return b.text("#chart-since")


def drawn(b, chart):
    """All that a chart shows at one moment, since the page redraws often: the axis, the gaps and the line."""
    low, high, unknown, data = b.get("""((c) => [c.scales.x.min, c.scales.x.max, c.unknown, c.data.datasets[0].data.map((p) => [p.x, p.y])])
        (Chart.getChart("chart-%s"))""" % chart)
    return low, high, unknown, [tuple(p) for p in data]


def is_a_gap_until(b, first):
    """The whole time before the first sample is a gap, the axis is an hour long, and no line is drawn in the gap."""
    for chart in "online", "offline", "delay":
        low, high, (gap, *_), points = drawn(b, chart)
        assert HOUR <= high - low <= HOUR * 1.02, chart
        assert gap["begin"] == low and gap["end"] == first and re.match(r"not known before \d\d:\d\d:\d\d$", gap["text"]), (chart, gap, first)
        assert all(x >= first for x, y in points if y is not None), chart


def test_the_hour_before_is_of_the_history(env, browser):
    past = Past(env)
    d = start_after(env, past.start_history(env))
    first = first_sample(d)
    b = browser(timezoneId="Europe/Berlin")
    b.open(d.url)
    wait_until(lambda: re.match(r"Until \d\d:\d\d:\d\d from heartwheel-history.$", note(b)), what="the history's counts")
    for chart, i in ("online", 0), ("offline", 1):
        before = {x: y for x, y in line(b, chart) if y is not None and x < first}
        begin = min(before)
        assert begin < now_ms() - HOUR + 20_000 and (first - begin) % 10_000 == 0, chart
        want = {t: past.counts(t) for t in range(begin, first, 10_000)}
        assert before == {t: n[i] for t, n in want.items() if n}, chart
    # What no monitor saw is a gap with a word, and breaks the line; so is the moment between the runs.
    _, _, unknown, points = drawn(b, "online")
    gap = unknown[0]
    assert abs(gap["begin"] - past.unseen[0]) <= 10_000 and abs(gap["end"] - past.unseen[1]) <= 10_000 and gap["text"] == "not known"
    assert sum(y is None for _, y in points) == len(unknown)
    assert gaps(b, "delay")[0]["end"] == first, "no history has delays"
    # A restart: what the monitor itself had counted is in the history, too.
    wait_until(lambda: len(d.get("/v1/samples").json()["samples"]) >= 3, 60, "two samples more")
    old = d.get("/v1/samples").json()["samples"]
    d.stop()
    d.start()
    again = first_sample(d)
    assert again > first
    wait_until(lambda: any(first + 1000 < x < again for x, y in line(b, "online") if y == 3), 40, "the counts before the restart")
    assert all(y in (2, 3, 4, None) for _, y in line(b, "online")), "never 0"
    assert old[-1]["online"] == 3
    say_nothing(b, also=["ERR_", "Failed to load", "net::"])


def test_without_a_history_it_is_not_known(env, browser):
    """Without heartwheel-history the past is unknown and is not requested, since a browser logs each error answer. Once
    heartwheel-history starts, the page finds it."""
    past = Past(env)
    d = start_after(env, past.history)
    first = first_sample(d)
    b = browser()
    b.open(d.url)
    wait_until(lambda: re.match(r"From \d\d:\d\d:\d\d on: .*heartwheel-history is not running.$", note(b)))
    wait_until(lambda: gaps(b, "online") and gaps(b, "delay"))
    is_a_gap_until(b, first)
    say_nothing(b)
    past.start_history(env)
    wait_until(lambda: note(b).startswith("Until ") and any(y == 4 for x, y in line(b, "online") if x < first), 40)
    say_nothing(b)


@pytest.mark.parametrize("how", ["refuses", "wants a token", "hangs", "answers nonsense"])
def test_a_history_that_gives_nothing_leaves_a_gap(env, browser, how):
    past = Past(env)
    d = start_after(env, past.start_history(env))
    first = first_sample(d)
    b = browser()
    if how == "hangs":
        past.history.signal(signal.SIGSTOP)
        text = "heartwheel-history does not answer"
    else:
        status, text = {"refuses": (403, "no right to ask heartwheel-history (403)"), "wants a token": (401, "no right to ask heartwheel-history (401)"),
                        "answers nonsense": (200, "heartwheel-history's answer is malformed")}[how]
        b.run('await page.route("**/v1/history/counts*", (r) => r.fulfill({ status: %d, contentType: "text/html", body: "<b>no</b>" }))' % status)
    b.open(d.url)
    if how == "hangs":  # the rest of the page does not wait
        wait_until(lambda: note(b).endswith("the time before is being loaded from heartwheel-history."))
        assert b.text("#online") == "3" and line(b, "online")[-1][1] == 3
    wait_until(lambda: note(b).endswith(" on: %s." % text), 40, "why")
    is_a_gap_until(b, first)
    assert not b.get('document.getElementById("token").open')
    say_nothing(b, also=["40", "Failed to load"])
    if how == "hangs":
        past.history.signal(signal.SIGCONT)


def test_before_the_devices_are_loaded_nothing_is_drawn(env, browser):
    """While Redis hangs at the start the charts draw nothing: otherwise they would show 0 devices."""
    past = Past(env)
    past.start_history(env)
    env.redis_server.signal(signal.SIGSTOP)
    try:
        d = start_after(env, past.history, seeing=False, mqtt={**QUIET_TIMES["mqtt"], "reconnect_grace": "5m"})
        b = browser()
        b.run("await page.goto(%s)" % json.dumps(d.url))
        wait_until(lambda: b.text("#watching") == "Starting" and not d.status()["loading"] and gaps(b), what="the monitor to go on without Redis")
        pass_time(2.5)  # a status more
        _, _, unknown, points = drawn(b, "online")
        assert points == [(g["begin"] + 1, None) for g in unknown] and len(unknown) == 1 and unknown[0]["end"] - unknown[0]["begin"] == HOUR
    finally:
        env.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: line(b, "online")[-1][1] == 3 and note(b).startswith("Until "), 40)


def test_what_is_a_gap(env, browser):
    """A count that is null is a gap, and so are samples that are too far apart, as after a suspend; two samples that are a
    little late are not."""
    past = Past(env)
    d = start_after(env, past.history)
    b = browser()
    b.open(d.url)

    def found(counts, end):
        return b.get("""import("./web/charts.js").then((m) => m.findGaps(%s.map(([time_ms, online]) => ({ time_ms, online })), 1000, %d, 35)
            .map((g) => [g.begin, g.end, g.text.slice(0, 16)]))""" % (json.dumps(counts), end))
    assert found([(1000 + 10 * i, 0) for i in range(10)], 1100) == []
    assert found([(1005, 1), (1040, 1), (1075, 1)], 1110) == []
    assert found([(1000, 1), (1010, 1), (1050, 1)], 1086) == [[1010, 1050, "not known"], [1050, 1086, "not known"]]
    assert found([(990, 1), (1000, 1), (1010, None), (1020, 1)], 1020) == [[1000, 1020, "not known"]]
    assert found([(1000, None), (1010, None), (1020, 7)], 1020) == [[1000, 1020, "not known before"]]
    assert found([], 1100) == [[1000, 1100, "not known before"]]
