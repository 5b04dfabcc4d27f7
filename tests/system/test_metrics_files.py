# SPDX-License-Identifier: MIT
"""What is made for Prometheus and Grafana: the metrics page, the alert rules, the Grafana dashboard. promtool is in Debian's
package prometheus."""
import json
import re
import shutil
import socket
import subprocess
import time

import pytest

from hw_build import SRC
from hw_env import Env
from hw_http import Metrics
from hw_process import free_port
from hw_wait import wait_until

PROMTOOL = shutil.which("promtool")
RULES = SRC / "conf" / "heartwheel-alerts.yml"
GRAFANA = SRC / "conf" / "grafana-heartwheel.json"
needs_promtool = pytest.mark.skipif(not PROMTOOL, reason="no promtool (Debian package: prometheus)")


def promtool(*args, text=""):
    return subprocess.run([PROMTOOL, *map(str, args)], input=text, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def metrics(base, shared_broker, shared_redis):
    """The metrics page of a daemon with devices and transitions."""
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


@pytest.fixture
def of_several(env):
    """The metrics page of one of several nodes."""
    d = env.configure()
    d.rewrite(d.conf.read_text() + "[cluster]\nmode = mirror\n")
    return d.start(seeing=False).get("/metrics").body.decode()


@needs_promtool
def test_the_page_is_without_fault(metrics, of_several):
    for page in (metrics, of_several):
        r = promtool("check", "metrics", text=page)
        assert r.returncode == 0 and not r.stdout and not r.stderr, r


def named(text):
    return set(re.findall(r"\bheartwheel_[a-z_]+", text))


def test_everything_that_is_asked_for_is_there(metrics, of_several):
    there = named(metrics) | named(of_several)
    grafana = json.loads(GRAFANA.read_text())
    exprs = [t["expr"] for p in grafana["panels"] for t in p["targets"]] + [
        a["expr"] for a in grafana["annotations"]["list"]]
    asked = named("\n".join(exprs)) | {n for n in named(RULES.read_text())}
    assert asked and asked <= there, asked - there
    # And by its right labels.
    for metric, label in re.findall(r"sum by \((\w+)\) \((?:rate\(|increase\()?(heartwheel_\w+)", "\n".join(exprs)):
        labels = set(re.findall(r"(\w+)=", " ".join(re.findall(r"^%s\{(.*)\}" % label, metrics + of_several, re.M))))
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


@needs_promtool
def test_rules_fire_when_they_should():
    r = promtool("test", "rules", SRC / "tests" / "system" / "heartwheel-alerts.test.yml")
    assert r.returncode == 0 and "SUCCESS" in r.stdout, r.stdout + r.stderr


# --- the list in the manual

MANUAL = SRC / "man" / "heartwheel-api.7"


def listed():
    """{name: (type, labels)} of the manual's section METRICS."""
    section = MANUAL.read_text().split(".Sh METRICS\n")[1].split("\n.Sh ")[0]
    items = re.findall(r"^\.It (\w+)(?:\{([\w,]+)\})?\n(counter|gauge|histogram): ", section, re.M)
    assert len(items) == len(re.findall(r"^\.It (?!Ql )", section, re.M)), "an item that is none"
    return {name: (kind, frozenset(labels.split(",")) - {""}) for name, labels, kind in items}


def printed(text):
    m = Metrics(text)
    there = {}
    for name, kind in m.types.items():
        samples = [dict(labels) for (n, labels) in m.samples
                   if n == name or (kind == "histogram" and n in (name + "_bucket", name + "_sum", name + "_count"))]
        there[name] = (kind, frozenset(k for s in samples for k in s) - {"le"})
    return there


def test_the_manual_lists_every_metric(env):
    """The list is compared with a daemon in which each feature with own metrics is on, and with a node that has peers."""
    env.own_redis(options=["--notify-keyspace-events", "KEA"])
    d = env.daemon(timeout="1h", mqtt={"homeassistant": "yes"}, keyspace={"enabled": "yes", "group": "default"},
                   http={"listen": "127.0.0.1:%d" % free_port()})
    env.beat("a")
    env.wait_store("a", "online")
    there = printed(d.get("/metrics").body.decode())
    d.stop()
    d.rewrite(d.conf.read_text().replace("enabled = yes", "enabled = no") + "[cluster]\nmode = mirror\n")
    d.start(seeing=False)
    both = printed(d.get("/metrics").body.decode())
    assert {name for name in both if name not in there} == {"heartwheel_" + name for name in (
        "nodes", "partitions_owned", "partitions_unowned", "takeovers_total", "takeover_seconds", "fenced_total",
        "evictions_total", "peer_messages_total", "stream_lag_seconds")}
    d.stop()
    d.edit("mode = mirror", "mode = standby")
    d.start(seeing=False)
    alone = printed(d.get("/metrics").body.decode())
    assert {name for name in alone if name not in both} == {"heartwheel_standing_by"}
    assert listed() == {**both, **there, **alone}


def test_what_the_process_uses(env):
    d = env.daemon(timeout="1h")

    def used():
        m = d.metrics()
        return {n[len("process_"):]: v for (n, _), v in m.samples.items() if n.startswith("process_")}
    first, pid = used(), d.pid
    stat = (lambda text: text[text.rindex(")") + 2:].split())(open("/proc/%d/stat" % pid).read())
    now = time.time()
    assert now - 60 < first["start_time_seconds"] <= now + 1, first
    assert abs(first["virtual_memory_bytes"] - int(stat[20])) < 64 << 20, (first, stat)
    assert 1 << 20 < first["resident_memory_bytes"] < first["virtual_memory_bytes"]
    wait_until(lambda: used()["cpu_seconds_total"] > first["cpu_seconds_total"], 20, "CPU time to be used")
    connections, before = [], used()["open_fds"]
    for _ in range(5):
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(d.socket))
        connections.append(s)
    wait_until(lambda: used()["open_fds"] == before + 5, 5, "five more descriptors")
    for s in connections:
        s.close()
    soft = [line.split()[3] for line in open("/proc/%d/limits" % pid) if line.startswith("Max open files")][0]
    assert first["max_fds"] == float(soft)
