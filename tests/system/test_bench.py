# SPDX-License-Identifier: MIT
"""What bench/run computes from figures: medians, verdicts, tables, docs/performance.md, CSV and the drawing. Nothing is
measured here."""
import csv
import importlib.machinery
import importlib.util
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from hw_build import SRC
from hw_wait import wait_until

BENCH = SRC / "bench"
if not (BENCH / "run").exists():
    pytest.skip("no %s" % BENCH, allow_module_level=True)
sys.path.insert(0, str(BENCH))
import picture  # noqa: E402
import report  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def load_run():
    loader = importlib.machinery.SourceFileLoader("bench_run", str(BENCH / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(module)
    return module


def fig(label, value, unit="ns", goal=None, target="1", **more):
    return {"target": target, "label": label, "value": value, "unit": unit, "goal": goal, "note": None, **more}


def results(*runs, smoke=False, failed=()):
    bench = {"date": "2026-01-02", "commit": "abcdef1", "seconds": [1.0] * len(runs), "failed": list(failed),
             "figures": report.combine(runs)}
    machine = {"cpu": "A <fast> & small CPU", "cores": 2, "kernel": "6.1", "memory_gb": 8.2,
               "versions": {"mosquitto": "2.0.11"}}
    return {"machine": machine, "smoke": smoke, "benches": {"core": bench}}


# --- medians and verdicts


def test_the_median_of_the_runs_counts():
    f, = report.combine([[fig("a", v)] for v in (9, 1, 5, 100, 4)])
    assert (f["median"], f["min"], f["max"], f["values"]) == (5, 1, 100, [9, 1, 5, 100, 4])
    assert f["goal"] is None and f["met"] is None


def test_of_an_even_number_the_middle_of_the_middle_two():
    assert report.combine([[fig("a", v)] for v in (1, 2, 4, 9)])[0]["median"] == 3


@pytest.mark.parametrize("sign,value,met", [(">=", 15, True), (">=", 14.9, False), ("<=", 15, True), ("<=", 15.1, False)])
def test_a_goal_is_judged_by_its_sign_and_a_tie_meets_it(sign, value, met):
    assert report.combine([[fig("a", value, "x", [sign, 15])]])[0]["met"] is met


def test_one_bad_run_of_five_misses_no_goal():
    assert report.combine([[fig("a", v, "x", [">=", 10])] for v in (11, 12, 2, 13, 14)])[0]["met"]


def test_where_the_worst_run_is_judged_one_bad_run_misses():
    runs = [[fig("lost", v, "", ["<=", 0], worst=True), fig("earliest", e, "ms", [">=", 0], worst=True)]
            for v, e in ((0, 1), (3, 2), (0, 3))]
    lost, earliest = report.combine(runs)
    assert not lost["met"] and report.judged(lost) == 3 and earliest["met"] and report.judged(earliest) == 1
    assert report.goal(lost) == "<= 0, every run"


def test_each_run_is_held_to_its_own_goal_where_the_worst_is_judged():
    f, = report.combine([[fig("late", v, "ms", ["<=", g], worst=True)] for v, g in ((60, 61), (54, 53), (50, 53))])
    assert not f["met"]


def test_a_goal_that_was_counted_in_each_run_counts_with_its_median():
    f, = report.combine([[fig("wake-ups", v, "", ["<=", g])] for v, g in ((10, 9), (30, 31), (50, 60))])
    assert f["goal"] == ["<=", 31] and f["met"]


def test_a_figure_that_is_missing_from_a_run_has_a_value_less():
    a, b = report.combine([[fig("a", 1), fig("b", 2)], [fig("a", 3)]])
    assert a["values"] == [1, 3] and b["values"] == [2]


@pytest.mark.parametrize("sign,wanted,value,times", [(">=", 15, 30, 2), (">=", 15, 7.5, 0.5), ("<=", 53, 26.5, 2)])
def test_the_margin_is_how_many_times_better_than_the_goal(sign, wanted, value, times):
    assert report.margin(report.combine([[fig("a", value, "x", [sign, wanted])]])[0]) == times


def test_there_is_no_margin_to_nothing():
    assert report.margin(report.combine([[fig("a", 1)]])[0]) is None
    assert report.margin(report.combine([[fig("lost", 0, "", ["<=", 0])]])[0]) is None
    assert report.margin(report.combine([[fig("late", 0, "ms", ["<=", 5])]])[0]) == float("inf")


# --- the table


@pytest.mark.parametrize("value,text", [(0, "0"), (0.00123, "0.00123"), (1.236, "1.24"), (24.04, "24.0"), (184.6, "185"),
                                        (1234567, "1,234,567"), (-3, "-3"), (5.0, "5"), (float("inf"), "inf")])
def test_a_number_has_the_digits_that_count(value, text):
    assert report.number(value) == text


def test_the_table_has_each_figure_under_its_target():
    runs = [[fig("late", 2, "ms", target="10"), fig("fast", 20, "x", [">=", 15]), fig("other", 1, target="own words"),
             fig("slow", 3, "x", [">=", 15], "2")]] * 3
    lines = report.table(results(*runs)).splitlines()
    heads = [i for i, line in enumerate(lines) if i and not line.startswith(" ")]
    assert [lines[i] for i in heads] == ["1. A heartbeat in the core", "2. Memory", "10. Growth", "own words"]
    assert lines[heads[0] + 1].split() == ["fast", "20", "x", ">=", "15", "met"]
    assert lines[heads[1] + 1].split() == ["slow", "3", "x", ">=", "15", "MISSED"]


def test_a_target_goes_by_its_number():
    assert [report.target_of(t) for t in (6, "6", "6 refresh", "10. growth", "own words")] == ["6", "6", "6", "10", "own words"]


def test_extremes_are_shown_where_the_runs_differ():
    assert "1 - 9" in report.table(results([fig("a", 1)], [fig("a", 4)], [fig("a", 9)]))


def test_small_sizes_are_not_judged():
    r = results([fig("a", 1, "x", [">=", 15])], smoke=True)
    assert "MISSED" not in report.table(r) and "missed" not in report.closing(r)


def test_the_closing_line_counts_goals_and_names_what_failed():
    r = results([fig("a", 1, "x", [">=", 15]), fig("b", 1, "x", ["<=", 15]), fig("c", 1)], failed=["run 2: died"])
    assert report.closing(r) == "1 goals met, 1 missed; failed: core"
    assert report.failures(r) == [("core", "run 2: died")]


def test_no_figures_are_no_error():
    r = results(failed=["run 1: died"])
    assert report.table(r) == "no figures\n"
    ET.fromstring(picture.draw(r))


# --- the page


def ten(*values, conditions="1,000 devices", **more):
    """The results of runs in which the first of the ten numbers has these values."""
    return results(*[[fig(report.TEN[0][1], v, "us", conditions=conditions, **more)] for v in values])


def test_the_page_has_ten_numbers_and_the_machine():
    assert len(report.TEN) == 10
    section = report.section(ten(20, 22, 21, 25, 24))
    assert section.startswith(report.BEGIN) and section.endswith(report.END)
    assert "A <fast> & small CPU" in section and "; 2026-01-02, commit abcdef1." in section
    assert "| %s | 22 us | 20 - 25 | 1 |" % report.TEN[0][0] in section and "1. 1,000 devices." in section
    assert section.count("not measured yet") == 9


def test_a_number_of_too_few_runs_is_marked():
    assert "| 21 us | 20 - 22† |" in report.section(ten(20, 22)) and "| 20 us | one run† |" in report.section(ten(20))
    assert "| 20 us | 20 |" in report.section(ten(20, 20, 20, 20, 20))


def test_the_comparison_says_what_is_worse():
    ours, theirs = report.PAIRS[0][1:3]
    for mine, other, words in ((2, 4, "2 times better"), (4, 2, "**2 times worse**")):
        section = report.section(results([fig(ours, mine, "us"), fig(theirs, other, "us")]))
        assert "| %s |" % words in section
    rate = next(p for p in report.PAIRS if "published" in p[0])
    section = report.section(results([fig(rate[1], 2, "/s"), fig(rate[2], 4, "/s")]))
    assert "| **2 times worse** |" in section, "of a rate more is better"


def test_every_label_of_the_page_is_one_that_a_bench_prints():
    """The labels are compared with those in bench/results, and for bench rates with its format."""
    known = {row["label"] for path in (BENCH / "results").glob("*.csv") for row in csv.DictReader(path.open())}
    known |= {"rates: CPU %s, %s a second" % (what, n) for n in ("1,000", "10,000", "100,000")
              for what in ("a heartbeat", "of Redis a heartbeat", "a message of a plain subscriber")}
    known = {re.sub(r"^rates: CPU (.*), ", r"rates: CPU \1, ", label) for label in known}
    asked = {label for _, label in report.TEN} | {label for pair in report.PAIRS for label in pair[1:3]}
    assert asked <= known, asked - known
    assert all(any(label % n in known for n in (10000, 1000000)) for _, label in report.GROWTH)


def test_all_rows_go_to_csv():
    r = ten(20, 22, conditions="a, b")
    rows = list(csv.DictReader(io.StringIO(report.csv_of("core", r["benches"]["core"]))))
    assert [(row["run"], row["value"], row["conditions"], row["commit"]) for row in rows] == [
        ("1", "20", "a, b", "abcdef1"), ("2", "22", "a, b", "abcdef1")]


def test_ten_stands_for_its_benches(tmp_path, monkeypatch):
    run = load_run()
    (tmp_path / "heartwheeld").touch()
    monkeypatch.setattr(sys, "argv", ["run", "--build", str(tmp_path), "--only", "ten"])
    assert set(run.options()[1].names) == set(report.TEN_BENCHES) <= set(run.BENCHES)


def test_rows_of_several_commits_say_of_which():
    r = results([fig("a", 1)])
    r["benches"]["other"] = dict(r["benches"]["core"], commit="1234567")
    assert "; 2026-01-02, commits abcdef1 (core), 1234567 (other)." in report.section(r)


def test_a_section_takes_the_place_of_the_one_before():
    page = "before\n%s\nold\n%s\nafter\n" % (report.BEGIN, report.END)
    section = report.section(results([fig("a", 1)]))
    once = report.put_between(page, section)
    assert once == "before\n" + section + "\nafter\n" == report.put_between(once, section)


def test_a_page_without_markers_is_left_alone():
    with pytest.raises(ValueError):
        report.put_between("nothing\n", "section")


# --- the drawing


def test_the_drawing_has_a_bar_for_each_goal_in_the_colour_of_its_verdict():
    root = ET.fromstring(picture.draw(results([
        fig("fast & <small>", 30, "x", [">=", 15]), fig("slow", 5, "x", [">=", 15]), fig("no goal", 5),
        fig("none lost", 0, "", ["<=", 0])])))
    rects = [r for r in root.iter(SVG + "rect") if r.get("fill") in (picture.MET, picture.MISSED)]
    assert [r.get("fill") for r in rects] == [picture.MET, picture.MISSED]
    words = [t.text for t in root.iter(SVG + "text")]
    assert "fast & <small>" in words and "no goal" not in words


def test_a_longer_bar_is_a_greater_margin_and_none_leaves_the_drawing():
    root = ET.fromstring(picture.draw(results([
        fig("a", 30, "x", [">=", 15]), fig("b", 300, "x", [">=", 15]), fig("c", 1e9, "x", [">=", 15]),
        fig("d", 1e-9, "x", [">=", 15])])))
    rects = [r for r in root.iter(SVG + "rect") if r.get("fill") in (picture.MET, picture.MISSED)]
    a, b, c, d = (float(r.get("width")) for r in rects)
    assert 0 < a < b < c and d > 0
    assert all(0 <= float(r.get("x")) and float(r.get("x")) + float(r.get("width")) <= picture.WIDTH for r in rects)


def test_growth_is_drawn_from_labels():
    runs = [[fig("growth: heartbeat, %d devices" % n, 20 + n / 1e6, "ns") for n in (10000, 1000000, 100000)] +
            [fig("growth: memory, 10,000 devices", 90, "bytes"), fig("growth: nothing that counts", 1)]] * 2
    r = results(*runs)
    found = picture.series(r)
    assert [n for n, _ in found["ns"]["heartbeat"]] == [10000, 100000, 1000000]
    assert [n for n, _ in found["bytes"]["memory"]] == [10000]
    lines = list(ET.fromstring(picture.draw(r)).iter(SVG + "polyline"))
    assert len(lines) == 2
    xs = [float(p.split(",")[0]) for p in lines[0].get("points").split()]
    assert len(xs) == 3 and xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2), "a logarithmic axis"


# --- running


def bench_in(tmp_path, **scripts):
    """bench/run, with benches of the test's own."""
    run = load_run()
    run.HERE, run.BENCHES = tmp_path, tuple(scripts)
    run.TOP = tmp_path
    for name, text in scripts.items():
        (tmp_path / (name + ".py")).write_text(text)
    return run


GOOD = "print('{\"target\": 1, \"label\": \"a\", \"value\": 4, \"unit\": \"ns\", \"goal\": [\"<=\", 5], \"note\": null}')"


def run_them(run, tmp_path, monkeypatch, *arguments):
    (tmp_path / "heartwheeld").touch()
    monkeypatch.setattr(sys, "argv", ["run", "--build", str(tmp_path), "--out", str(tmp_path / "out"), *arguments])
    return run.main(), json.loads((tmp_path / "out" / "results.json").read_text())


def test_a_bench_that_fails_is_named_and_stops_no_other(tmp_path, monkeypatch, capsys):
    run = bench_in(tmp_path, dies="print('no luck', file=__import__('sys').stderr); raise SystemExit(7)", says_nothing="pass", babbles="print('{no')", good=GOOD)
    status, r = run_them(run, tmp_path, monkeypatch, "--runs", "3")
    assert status == 1
    assert r["benches"]["good"]["figures"][0]["values"] == [4, 4, 4] and r["benches"]["good"]["figures"][0]["met"]
    assert r["benches"]["dies"]["failed"] == ["run %d: exit status 7: no luck" % k for k in (1, 2)], "given up after two"
    assert r["benches"]["says_nothing"]["failed"][0] == "run 1: no figures"
    assert r["benches"]["babbles"]["failed"][0].startswith("run 1: not a figure")
    assert capsys.readouterr().out.splitlines()[-1] == "1 goals met, 0 missed; failed: babbles, dies, says_nothing"
    ET.parse(tmp_path / "out" / "results.svg")


def test_all_well_is_status_0_and_benches_take_turns(tmp_path, monkeypatch):
    trace = "open(%r, 'a').write(__file__[-4])\n" % str(tmp_path / "trace")
    run = bench_in(tmp_path, a=trace + GOOD, b=trace + GOOD.replace('"a', '"b'))
    status, _ = run_them(run, tmp_path, monkeypatch, "--runs", "2")
    assert status == 0 and (tmp_path / "trace").read_text() == "abab"


def test_what_is_counted_runs_once(tmp_path, monkeypatch):
    run = bench_in(tmp_path, counts=GOOD, measures=GOOD.replace('"a', '"b'))
    run.ONCE = ("counts",)
    _, r = run_them(run, tmp_path, monkeypatch, "--runs", "3")
    assert [len(b["seconds"]) for b in r["benches"].values()] == [1, 3]


def test_nothing_is_begun_that_would_not_end_in_time(tmp_path, monkeypatch, capsys):
    run = bench_in(tmp_path, quick=GOOD, slow="import time\ntime.sleep(5)\n" + GOOD.replace('"a', '"b'))
    status, r = run_them(run, tmp_path, monkeypatch, "--runs", "3", "--within", "0.15")
    assert status == 0 and len(r["benches"]["slow"]["seconds"]) == 1, "begun once, whatever it takes"
    assert 2 <= len(r["benches"]["quick"]["seconds"]) <= 3
    assert "slow          not run again" in capsys.readouterr().err
    r["benches"]["slow"]["seconds"] = [2.0] * 4
    assert report.how_many_runs(r) == ("medians of %d to 4 runs" % len(r["benches"]["quick"]["seconds"]))
    r["benches"]["slow"]["seconds"] = [2.0]
    assert report.how_many_runs(r).endswith("runs (slow: 1)")


def test_only_some_leaves_the_others_as_they_were(tmp_path, monkeypatch):
    run = bench_in(tmp_path, a=GOOD, b=GOOD.replace('"a', '"b').replace("4", "5"))
    run_them(run, tmp_path, monkeypatch, "--runs", "2")
    (tmp_path / "b.py").write_text(GOOD.replace('"a', '"b').replace("4", "3"))
    _, r = run_them(run, tmp_path, monkeypatch, "--runs", "1", "--only", "b")
    assert {f["label"]: f["values"] for f in report.figures(r)} == {"a": [4, 4], "b": [3]}
    _, r = run_them(run, tmp_path, monkeypatch, "--smoke", "--only", "b")
    assert list(r["benches"]) == ["b"], "small sizes do not mix with others"


def test_a_bench_that_hangs_is_ended_with_what_it_started(tmp_path, monkeypatch):
    run = bench_in(tmp_path, hangs="import subprocess, sys\np = subprocess.Popen(['sleep', '1000'])\n"
                   "open(%r, 'w').write(str(p.pid))\np.wait()" % str(tmp_path / "pid"))
    run.SMOKE_LIMIT_S = 1
    status, r = run_them(run, tmp_path, monkeypatch, "--smoke")
    assert status == 1 and "longer than 1 s" in r["benches"]["hangs"]["failed"][0]
    pid = (tmp_path / "pid").read_text()

    def state():
        return subprocess.run(["ps", "-o", "stat=", "-p", pid], stdout=subprocess.PIPE, text=True).stdout.strip()
    wait_until(lambda: state() in ("", "Z"), 5, "the process that it started to end")


def test_every_bench_is_in_the_list():
    """Each file that can be started is in the list; the other files are modules that the benches share."""
    assert {p.stem for p in BENCH.glob("*.py") if "__main__" in p.read_text()} <= set(load_run().BENCHES)
