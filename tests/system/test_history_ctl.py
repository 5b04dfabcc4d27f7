# SPDX-License-Identifier: MIT
"""heartwheelctl history, outages, uptime: the reports of a real heartwheel-history, page by page."""
import csv
import io
import json
import os
import re
import signal
import subprocess
import threading
from concurrent.futures import Future

import pytest

from hw_build import HEARTWHEELCTL
from hw_history import BUILT, History, Scribe, Sqlite, wait_read
from hw_screen import Terminal
from hw_wait import now_ms, throughout, wait_until, wait_within

pytestmark = pytest.mark.skipif(not BUILT, reason="heartwheel-history is not built: SQLite is missing")
DAY = 86_400_000
ODD = "a,\"b\u202e"


@pytest.fixture(scope="module")
def kept(base, shared_broker, shared_redis):
    """Two days of three devices, seen from end to end; d2 has more transitions than a page holds."""
    from hw_env import Env
    e = Env(shared_broker, shared_redis, base)
    e.check_events = False
    s = Scribe(e, 1, devices=3, groups=3)
    t = s.t = (now_ms() - 2 * DAY) // 1000 * 1000
    s.write([s.entry("d0", "online", t), s.entry("d0", "offline", t + 3_600_000), s.entry("d0", "online", t + 5_400_000),
             s.entry("d1", "online", t), s.entry("status", "online", t), s.entry(ODD, "online", t),
             s.entry(ODD, "offline", t + 1000, "will")])
    s.write([s.entry("d2", ("online", "offline")[i % 2], t + 1000 * i) for i in range(1301)])
    s.saw("seeing", t, now_ms())
    h = History(e, Sqlite(e.own_dir("db"))).start()
    wait_read(h, e)
    wait_read(h, e, "device:sight")
    h.scribe = s
    yield h
    h.stop()
    e.close()
    e.remove()


def ctl(*args, conf=None, env=None, ok=True):
    where = ["-c", str(conf)] if conf else []
    r = subprocess.run([HEARTWHEELCTL, *where, *args], capture_output=True, text=True, timeout=30, encoding="utf-8",
                       env={**os.environ, "HEARTWHEEL_SOCKET": "", "TZ": "UTC", **(env or {})})
    assert not ok or (r.returncode == 0 and not r.stderr), r
    return r


def test_a_devices_transitions(kept):
    c = kept.conf
    r = ctl("history", "d0", conf=c).stdout.splitlines()
    assert r[0].startswith("d0, group g0, online since ") and r[1].split() == ["TIME", "STATE", "LASTED", "REASON", "NODE"]
    assert [l.split()[2:] for l in r[2:]] == [["online", "1d22h", "heartbeat", "n"], ["offline", "30m", "timeout", "n"],
                                              ["online", "1h", "heartbeat", "n"]]
    rows = [json.loads(l) for l in ctl("history", "--json", "d2", conf=c).stdout.splitlines()]
    want = [e for e in kept.scribe.written.values() if e["id"] == "d2"][::-1]
    assert [(str(x["seq"]), x["state"]) for x in rows] == [(e["seq"], e["state"]) for e in want]
    table = list(csv.DictReader(io.StringIO(ctl("history", "--csv", "d2", conf=c).stdout)))
    assert [x["seq"] for x in table] == [e["seq"] for e in want]
    assert len(ctl("history", "--limit", "1100", "d2", conf=c).stdout.splitlines()) == 1102
    assert len(ctl("history", "--limit", "3", "--csv", "d2", conf=c).stdout.splitlines()) == 4
    assert ctl("history", "--", "status", conf=c).stdout.startswith("status, group default, online")


@pytest.mark.parametrize("columns", [40, 46, 60, 76, 80, 100])
def test_a_line_stays_one_on_a_narrow_terminal(kept, columns):
    for args, first, head in ((["history", "--limit", "5", "d2"], "d2, group", 2 if columns >= 100 else 3), (["outages", "--limit", "5"], "FROM", 1),
                              (["uptime", "--limit", "5"], "From", 2)):
        t = Terminal([str(HEARTWHEELCTL), "-c", str(kept.conf), *args], 40, columns, TERM="linux", LC_ALL="C.UTF-8", TZ="UTC")
        try:
            assert os.WEXITSTATUS(t.wait()) == 0
            lines = [l for l in t.lines if l]
            if args[0] != "outages" and columns < 80:  # a sentence above the table may be longer
                lines = lines[[l.split()[0] in ("TIME", "UPTIME") for l in lines].index(True):]
                head = 1
            assert len(lines) == head + 5 + (args[0] == "uptime"), "%s at %d columns:\n%s" % (args, columns, t.text)
            if args[0] == "outages":  # an id of two letters has room beside its group, and one of forty is worth more than that
                assert lines[head].endswith("d0 (g0)"), t.text
        finally:
            t.close()


def test_transitions_on_a_narrow_terminal(env):
    """A node with a long name, and a transition that was restored after a gap and says so: each stays one line."""
    env.own_redis()
    s = Scribe(env, 1, devices=1)
    s.now = now_ms() - DAY
    node = {"node": "monitor-a.plant-7.example.com"}
    s.write([{**s.next(), **node} for _ in range(4)])
    h = History(env, Sqlite(env.own_dir("db"))).start()
    wait_read(h, env)
    h.stop()
    s.write([{**s.next(), **node} for _ in range(4)])
    env.redis.xtrim(s.stream, maxlen=0, approximate=False)
    h.start()
    wait_until(lambda: "after a gap" in ctl("history", "d0", conf=h.conf).stdout, what="the last one to be read back")
    for columns in (40, 46, 52, 60, 76, 80, 99, 100, 120):
        t = Terminal([str(HEARTWHEELCTL), "-c", str(h.conf), "history", "d0"], 40, columns, TERM="linux", LC_ALL="C.UTF-8", TZ="UTC")
        try:
            assert os.WEXITSTATUS(t.wait()) == 0
            lines = [l for l in t.lines if l]
            lines = lines[[l.split()[0] == "TIME" for l in lines].index(True) + 1:]
            assert len(lines) == 5 and lines[0].endswith("  (restored after a gap)" if columns >= 100 else "  (gap)"), "%d columns:\n%s" % (columns, t.text)
            assert all(l.endswith(".com") for l in lines[1:]) or columns < 76, t.text
        finally:
            t.close()


def test_an_id_is_worth_more_than_its_group(env):
    env.own_redis()
    s = Scribe(env, 1, devices=0)
    s.group = {i: "a-group-of-some-length" for i in ("hall-1.sensor-0001", "hall-1.sensor-0002")}
    t = now_ms() - DAY
    s.write([s.entry(i, state, t + k * 1000) for k, state in enumerate(("online", "offline", "online")) for i in s.group])
    h = History(env, Sqlite(env.own_dir("db"))).start()
    wait_read(h, env)
    for columns in (40, 80):
        t = Terminal([str(HEARTWHEELCTL), "-c", str(h.conf), "outages"], 40, columns, TERM="linux", LC_ALL="C.UTF-8")
        try:
            assert os.WEXITSTATUS(t.wait()) == 0
            lines = [l for l in t.lines if l][1:]
            assert sorted(l[-4:] for l in lines) == ["0001", "0002"], t.text
        finally:
            t.close()


def test_status(kept):
    text = ctl("history", "status", conf=kept.conf).stdout
    assert "sqlite:" in text and "%s entries read" % "{:,}".format(len(kept.scribe.written)) in text and "none" in text
    assert json.loads(ctl("history", "status", "--json", conf=kept.conf).stdout)["n"] == len(kept.scribe.written)


def test_outages(kept):
    c, t = kept.conf, kept.scribe.t
    rows = ctl("outages", "d0", conf=c).stdout.splitlines()
    assert len(rows) == 2 and "30m" in rows[1] and rows[1].endswith("d0 (g0)")
    rows = [json.loads(l) for l in ctl("outages", "--group", "g2", "--json", conf=c).stdout.splitlines()]
    assert len(rows) == 650 and {x["down_s"] for x in rows} == {1}
    rows = ctl("outages", "--min", "2s", conf=c).stdout
    assert len(rows.splitlines()) == 3 and "it lasts" in rows and "a,\"b\\u202e (default)" in rows
    table = list(csv.DictReader(io.StringIO(ctl("outages", "--csv", "--min", "2s", conf=c).stdout)))
    assert [(x["id"], x["from_ms"], x["reason"]) for x in table] == [("d0", str(t + 3_600_000), "timeout"),
                                                                  (ODD, str(t + 1000), "will")]


def test_uptime(kept):
    c, t = kept.conf, kept.scribe.t
    window = ["--since", str(t), "--until", str(t + 7_200_000)]
    head, titles, one = ctl("uptime", *window, "d0", conf=c).stdout.splitlines()
    assert one.split() == ["75.000", "%", "100.000", "%", "30m", "1", "1h30m", "30m", "d0", "(g0)"], (head, one)
    lines = ctl("uptime", *window, "--limit", "2", conf=c).stdout.splitlines()
    assert len(lines) == 5 and lines[4].endswith("all 5 devices") and lines[2].endswith("\\u202e (default)")
    report = json.loads(ctl("uptime", *window, "--json", conf=c).stdout)
    assert report["all"]["devices"] == len(report["devices"]) == 5 and "next_offset" not in report
    table = list(csv.DictReader(io.StringIO(ctl("uptime", *window, "--csv", conf=c).stdout)))
    assert {x["id"]: x["uptime"] for x in table}["d0"] == "0.750000000"
    assert len(ctl("uptime", *window, "--group", "g1", conf=c).stdout.splitlines()) == 4


def test_where_it_is_asked_and_what_is_refused(kept, tmp_path):
    c = kept.conf
    assert ctl("-s", str(kept.socket), "uptime", "--since", "3d", "d1").stdout.endswith("d1 (g1)\n")
    assert ctl("uptime", "--since", "3d", "d1", env={"HEARTWHEEL_SOCKET": str(kept.socket)}).stdout.endswith("d1 (g1)\n")
    nowhere = tmp_path / "monitor.conf"  # what else is wrong in it is not its business
    nowhere.write_text("[what]\nis = this\n[history]\nsocket = %s\n" % (tmp_path / "h.sock"))
    r = ctl("outages", conf=nowhere, env={"HEARTWHEEL_SOCKET": str(kept.socket)}, ok=False)
    assert r.returncode == 1 and "heartwheel-history at %s" % (tmp_path / "h.sock") in r.stderr, r
    for args, word in [(["history", "nobody"], "no such device"), (["uptime", "--group", "nobody"], "nobody"),
                       (["uptime", "--since", "tomorrow"], "since"), (["uptime", "--csv", "nobody"], "has nothing about")]:
        r = ctl(*args, conf=c, ok=False)
        assert r.returncode == 1 and word in r.stderr and not r.stdout and len(r.stderr.splitlines()) == 1, r
    for args in (["history"], ["uptime", "--min", "1s"], ["outages", "a", "b"], ["outages", "--json", "--csv"], ["uptime", ""],
                 ["history", "status", "--csv"], ["uptime", "--limit", "0"], ["uptime", "--month", "2026-01", "--since", "1d"],
                 ["outages", "--group", "g", "d0"], ["outages", "--what"], ["outages", "--since"]):
        r = ctl(*args, conf=c, ok=False)
        assert r.returncode == 2 and r.stderr and not r.stdout, (args, r)


def test_without_redis_a_report_says_as_of_when_it_is(env):
    """Without Redis the report ends where the history has read to: an outage lasts as long as is known, and stderr says until
    when."""
    env.check_events = False
    env.own_redis()
    s, t = Scribe(env, 1, devices=0), now_ms() - 3_600_000
    s.group = {"d": "g"}
    s.write([s.entry("d", "online", t), s.entry("d", "offline", t + 1_800_000)])
    h = History(env, Sqlite(env.own_dir("db"))).start()
    wait_read(h, env)
    paths = ["/v1/history/outages", "/v1/history/uptime", "/v1/history/devices/d", "/v1/history/events",
             "/v1/history/bars?device=d&since=1d"]
    for path in paths:
        wait_until(lambda: abs((h.get(path).json()["as_of_ms"] or 0) - now_ms()) < 3000, what=path)
    ctl("outages", conf=h.conf)
    env.redis_server.stop()
    wait_until(lambda: h.status()["redis"] != "up", what="Redis to be away")
    old = wait_until(lambda: (r := ctl("outages", conf=h.conf, ok=False)).stderr and r, what="the report to be old")
    assert old.returncode == 0 and re.fullmatch(r"heartwheelctl: this report is as of \d{4}-\S+ \S+( UTC)?, \d+s ago: .*\n", old.stderr)
    as_of = h.get("/v1/history/outages").json()["as_of_ms"]
    for path in paths:
        assert h.get(path).json()["as_of_ms"] == as_of
    assert as_of <= now_ms() - 5000
    [outage] = h.get("/v1/history/outages").json()["outages"]
    assert outage["to_ms"] is None and outage["down_s"] == (as_of - t - 1_800_000) / 1000
    csv_report = h.get("/v1/history/uptime", Accept="text/csv")
    assert csv_report.headers["Heartwheel-As-Of"] == str(as_of)
    for args in (["uptime"], ["uptime", "--csv"], ["history", "d"], ["outages", "--json"]):
        assert "this report is as of" in ctl(*args, conf=h.conf, ok=False).stderr, args
    assert not ctl("outages", "--until", str(as_of), conf=h.conf).stderr  # that report is whole
    env.redis_server.start()
    wait_until(lambda: h.get("/v1/history/outages").json()["as_of_ms"] > as_of and not ctl("outages", conf=h.conf, ok=False).stderr, what="the report to be of now again")


def offline_since(env, t):
    """A device that is offline since `t`, in a Redis of the test's own, and a history that has read this."""
    env.check_events = False
    env.own_redis()
    s = Scribe(env, 1, devices=0)
    s.group = {"d": "g"}
    s.write([s.entry("d", "online", t - 1_800_000), s.entry("d", "offline", t)])
    h = History(env, Sqlite(env.own_dir("db"))).start()
    wait_read(h, env)
    wait_until(lambda: abs((outages(h)["as_of_ms"] or 0) - now_ms()) < 3000, what="a report of now")
    return s, h


def outages(h):
    return h.get("/v1/history/outages").json()


def test_a_redis_that_hangs_is_away_and_a_report_is_as_of_its_last_answer(env):
    """A Redis that hangs still takes each new connection, since its kernel does, and answers nothing."""
    t = now_ms() - 1_800_000
    _, h = offline_since(env, t)
    env.redis_server.signal(signal.SIGSTOP)
    stopped_ms = now_ms() + 100

    def as_of():
        report = outages(h)
        [outage] = report["outages"]
        assert report["as_of_ms"] <= stopped_ms and outage["down_s"] <= (stopped_ms - t) / 1000, report
        return report["as_of_ms"]

    wait_within(lambda: as_of() and h.status()["redis"] != "up", 20, "Redis to be away")
    throughout(lambda: as_of() and "has not answered" in h.status()["redis"], 10, "Redis to be away")
    assert h.get("/readyz").status == 503
    assert "this report is as of" in ctl("outages", conf=h.conf, ok=False).stderr
    env.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: h.status()["redis"] == "up" and outages(h)["as_of_ms"] > stopped_ms, what="a report of now again")
    assert h.log().count("Redis: connected") == 2, h.log()


def test_a_history_that_was_frozen_answers_as_of_then(env):
    """The answer has the outage's end, or names a time before it as `as of`."""
    s, h = offline_since(env, now_ms() - 60_000)
    for _ in range(10):
        h.signal(signal.SIGSTOP)
        asked = Future()
        [at] = s.write([s.entry("d", "online", now_ms())])
        thread = threading.Thread(target=lambda: asked.set_result(outages(h)))
        thread.start()
        wait_until(lambda: env.redis.time()[0] * 1000 > int(at.split("-")[0]) + 500, what="time to pass")
        h.signal(signal.SIGCONT)
        thread.join()
        report = asked.result()
        assert report["outages"][0]["to_ms"] or report["as_of_ms"] <= int(at.split("-")[0]), report
        s.write([s.entry("d", "offline", now_ms())])
        wait_read(h, env)


def test_times_name_their_zone_and_uptime_its_order(kept, tmp_path):
    assert ctl("outages", conf=kept.conf).stdout.splitlines()[0].split()[:2] == ["FROM", "(UTC)"]
    assert ctl("uptime", "--since", "7d", conf=kept.conf).stdout.splitlines()[0].endswith(" UTC. Longest time offline first.")
    assert " UTC" in ctl("history", "d0", conf=kept.conf).stdout.splitlines()[0]
    r = ctl("-s", str(tmp_path / "control.sock"), "outages", ok=False)  # whose socket that is, the name does not say
    assert r.returncode == 1 and "cannot reach a daemon at" in r.stderr and "heartwheel-history" not in r.stderr
