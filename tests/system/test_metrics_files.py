# SPDX-License-Identifier: MIT
"""What is made for Prometheus and Grafana: the metrics page, the alert rules, the Grafana dashboard. promtool is in Debian's
package prometheus."""
import json
import re
import shutil
import subprocess

import pytest

from hw_env import SRC, wait_until

PROMTOOL = shutil.which("promtool")
RULES = SRC / "conf" / "heartwheel-alerts.yml"
GRAFANA = SRC / "conf" / "grafana-heartwheel.json"
needs_promtool = pytest.mark.skipif(not PROMTOOL, reason="no promtool (Debian package: prometheus)")


def promtool(*args, text=""):
    return subprocess.run([PROMTOOL, *map(str, args)], input=text, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def metrics(base, shared_broker, shared_redis):
    """The page of a daemon with some life in it."""
    from hw_env import Env
    env = Env(shared_broker, shared_redis, base)
    d = env.daemon(timeout="500ms")
    env.beat("a")
    env.beat("b", b"{broken")
    wait_until(lambda: d.status()["offline"] == 2)
    yield d.get("/metrics").body.decode()
    wrong = env.close()
    env.remove()
    if wrong:
        raise wrong


@needs_promtool
def test_the_page_is_without_fault(metrics):
    r = promtool("check", "metrics", text=metrics)
    assert r.returncode == 0 and not r.stdout and not r.stderr, r


def named(text):
    return set(re.findall(r"\bheartwheel_[a-z_]+", text))


def test_everything_that_is_asked_for_is_there(metrics):
    there = named(metrics)
    grafana = json.loads(GRAFANA.read_text())
    exprs = [t["expr"] for p in grafana["panels"] for t in p["targets"]] + [
        a["expr"] for a in grafana["annotations"]["list"]]
    asked = named("\n".join(exprs)) | {n for n in named(RULES.read_text())}
    assert asked and asked <= there, asked - there
    # And by its right labels.
    for metric, label in re.findall(r"sum by \((\w+)\) \((?:rate\(|increase\()?(heartwheel_\w+)", "\n".join(exprs)):
        labels = set(re.findall(r"(\w+)=", " ".join(re.findall(r"^%s\{(.*)\}" % label, metrics, re.M))))
        assert metric in labels or metric in ("le",), (metric, label)


def test_grafana_dashboard():
    d = json.loads(GRAFANA.read_text())
    assert len({p["id"] for p in d["panels"]}) == len(d["panels"]) > 10
    taken = set()
    for p in d["panels"]:
        g = p["gridPos"]
        cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
        assert not cells & taken and g["x"] + g["w"] <= 24, p["title"]
        taken |= cells
        assert p["datasource"]["uid"] == "${datasource}"


@needs_promtool
def test_rules():
    r = promtool("check", "rules", RULES)
    assert r.returncode == 0 and "SUCCESS" in r.stdout, r


def case(series, at, alert, labels):
    """A test of promtool's: the alert fires with these labels, or (None) does not. What it says is for people."""
    samples = []
    if labels is not None:
        all_labels = dict(labels, alertname=alert, alertstate="firing")
        samples.append({"labels": "ALERTS{%s}" % ",".join('%s="%s"' % kv for kv in all_labels.items()), "value": 1})
    return {"interval": "1m", "input_series": [{"series": s, "values": v} for s, v in series],
            "promql_expr_test": [{"expr": 'ALERTS{alertname="%s",alertstate="firing"}' % alert, "eval_time": at,
                                  "exp_samples": samples}]}


@needs_promtool
def test_rules_fire_when_they_should(tmp_path):
    build = ('heartwheel_build_info{instance="m",job="h",node="n",version="1"}', "1x20")
    off, on = 'heartwheel_devices{instance="m",group="g",state="offline"}', 'heartwheel_devices{instance="m",group="g",state="online"}'
    blind = {"severity": "critical", "instance": "m"}
    cases = [
        case([('heartwheel_blind{instance="m"}', "0x5 1x10")], "6m", "HeartwheelBlind", None),
        case([('heartwheel_blind{instance="m"}', "0x5 1x10")], "8m", "HeartwheelBlind", blind),
        case([build], "15m", "HeartwheelMonitorGone", None),
        case([(build[0], "1x10 stale _x10")], "13m", "HeartwheelMonitorGone",
             {"severity": "critical", "instance": "m", "job": "h"}),
        # Another version is the same monitor.
        case([(build[0], "1x10 stale _x10"), (build[0].replace('"1"', '"2"'), "_x10 1x10")], "13m", "HeartwheelMonitorGone", None),
        case([("other", "1x20")], "15m", "HeartwheelNoMonitor", {"severity": "critical"}),
        case([(off, "0x9 50x10"), (on, "100x9 50x10")], "11m", "HeartwheelMassOffline",
             {"severity": "critical", "instance": "m", "group": "g"}),
        case([(off, "0x9 5x10"), (on, "1000x9 995x10")], "11m", "HeartwheelMassOffline", None),
        case([(off, "0x9 5x10"), (on, "8x9 3x10")], "11m", "HeartwheelMassOffline", None),
        case([(off, "50x20"), (on, "50x20")], "11m", "HeartwheelMassOffline", None),
        case([('heartwheel_link_up{instance="m",link="redis"}', "1x3 0x10")], "8m", "HeartwheelLinkDown",
             {"severity": "warning", "instance": "m", "link": "redis"}),
        case([('heartwheel_owed_oldest_seconds{instance="m"}', "0x3 90x10")], "8m", "HeartwheelOwing",
             {"severity": "warning", "instance": "m"}),
    ]
    path = tmp_path / "tests.yml"
    path.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": cases}))
    r = promtool("test", "rules", path)
    assert r.returncode == 0, r.stdout + r.stderr
