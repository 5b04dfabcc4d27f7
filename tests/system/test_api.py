# SPDX-License-Identifier: MIT
"""Each route of the API: the manual shows a request and a real answer, and docs/openapi.json has its schema. `pytest --write`
writes both from this test."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import hw_api
from hw_alert import Alert
from hw_api import ALERT, ALIASES, API, HISTORY, ROUTES
from hw_build import SRC
from hw_env import NO_STALL, NO_STANDSTILL, Env
from hw_history import BUILT, History, Sqlite
from hw_http import Metrics, UnixHTTP
from hw_process import free_port
from hw_tasks import Sender, Tasks
from hw_wait import wait_until

VALIDATOR = Path(os.environ.get("HW_NODE") or "none") / "node_modules/@seriousme/openapi-schema-validator/bin/validate-api-cli.js"
OPENAPI = SRC / "docs" / "openapi.json"


class Answer:
    def __init__(self, path, response, body):
        self.path, self.status, self.body = path, response.status, body
        self.kind = response.headers.get("Content-Type") or ""


def ask(program, method, path, body=None, kind="application/json"):
    c = UnixHTTP(program.socket)
    try:
        c.request(method, path, body if body is None or isinstance(body, str) else json.dumps(body),
                  {"Content-Type": kind} if method in ("POST", "PUT", "PATCH") else {})
        response = c.getresponse()
        if response.headers.get("Content-Type") != "text/event-stream":
            return Answer(path, response, response.read())
        text = b""  # the first event
        while b"data:" not in text or not text.endswith(b"\n\n"):
            line = response.readline()
            text = line if line == b"\n" and b"data:" not in text else (text + line).lstrip(b"\n")
            if text.startswith(b":"):
                text = b""
        return Answer(path, response, text.rstrip(b"\n") + b"\n")
    finally:
        c.close()


@pytest.fixture(scope="module")
def programs(base):
    """The three daemons, with devices, tasks and transitions."""
    if not BUILT:
        pytest.skip("heartwheel-history is not built")
    env = Env(None, None, base)
    env.own_broker()
    env.own_redis()
    env.root, env.prefix, env.node = "nodes", "device:", "monitor1"
    db = Sqlite(env.own_dir("db"))
    d = env.daemon(timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL, group={"learn": "show"})
    env.beat("pump-7", {"battery": 87, "rssi": -61.5, "version": "1.4.2"})
    env.beat("pump-9")
    env.wait_store("pump-9", "online")
    env.beat("pump-9", {"online": False})
    env.wait_store("pump-9", "offline")
    h = History(env, db).start()
    t = Tasks(env, allow="* * *", publish=["pumps/#", "nodes/+/set"], answers=["pumps/+/reply"]).start()
    a = Alert(env, receivers={"program": {"type": "exec", "program": "/bin/true"}}).start()
    d.request("PATCH", "/v1/devices/pump-8", json.dumps({"name": "Pump 8"}), {"Content-Type": "application/json"})
    env.beat("pump-8")
    env.wait_store("pump-8", "online")
    env.beat("pump-8", {"online": False})
    wait_until(lambda: a.incidents() and a.incidents()[0].get("name") == "Pump 8", what="the newest incident, with a name")
    d.request("DELETE", "/v1/inventory/pump-8")  # the incident keeps the name; the examples of the inventory begin with pump-7
    wait_until(lambda: h.get("/v1/history/devices/pump-9").json().get("transitions"), what="the history to have the outage")
    wait_until(lambda: h.get("/v1/history/incidents").json().get("incidents"), what="the history to have an incident")
    wait_until(lambda: d.get("/v1/samples").json()["samples"], 20, "a sample")
    answering = env.client()
    answering.client.on_message = lambda client, _, m: client.publish(m.topic.replace("/get", "/reply"), '{"level":3}')
    answering.subscribe("pumps/+/get")
    env.settle(d)
    Sender(t, "app-1").ask("follow", {})
    env.prefix, env.node = "other:", "monitor2"  # a node of a cluster, of another fleet, for GET /v1/nodes
    node = env.daemon(timeout="1h", cluster={"mode": "mirror", "lease": "1s"}, http={"listen": "127.0.0.1:%d" % free_port()})
    wait_until(lambda: node.get("/v1/nodes").json()["nodes"][0]["owns"] == 256, what="the node to own all partitions")
    env.prefix, env.node = "device:", "monitor1"
    found = {"heartwheeld": d, "heartwheel-tasks": t, "heartwheel-history": h, "heartwheel-alert": a, "node": node}
    found["redis"] = env.redis
    yield found
    wrong = env.close()
    env.remove()
    if wrong:
        raise wrong


@pytest.fixture(scope="module")
def answers(programs):
    """{route: its answer}, in the order of the table."""
    found, names = {}, {}
    for route in ROUTES:
        path = route.path.format(**names)
        if route.name == "GET /v1/tasks/status":
            wait_until(lambda: json.loads(ask(programs[route.daemon], "GET", path).body)["waiting"] == 1, what="a count")
        if route.name == "GET /v1/incidents":
            names["incident"] = programs[route.daemon].incidents()[0]["id"]
        if route.name in ("GET /v1/tasks/events", "GET /v1/incidents/events"):
            path += "?after=0-0" if "after" in route.query else ""
            answer = first_task_event(programs[route.daemon], path)
        else:
            answer = ask(programs["node" if route.name == "GET /v1/nodes" else route.daemon], route.method, path, route.body, route.kind)
        assert answer.status < 300, (route.name, answer.status, answer.body)
        if route.name == "POST /v1/tasks":
            names["task"] = json.loads(answer.body)["task"]
        if route.name == "POST /v1/silences":
            names["silence"] = json.loads(answer.body)["id"]
        found[route] = answer
    return found


def first_task_event(program, path):
    c = UnixHTTP(program.socket)
    try:
        c.request("GET", path, headers={"Last-Event-ID": "0"})
        response, text = c.getresponse(), b""
        while b"data:" not in text:
            line = response.readline()
            text = b"" if line.startswith(b":") or line == b"\n" else text + line
        return Answer(path, response, text)
    finally:
        c.close()


def test_the_table_has_every_route():
    assert {r.key for r in ROUTES} | set(ALIASES) == hw_api.in_source()


def test_the_manuals_show_each_route_as_it_is(answers, request):
    made = {r.key: hw_api.shown(r, a) for r, a in answers.items()}
    if request.config.getoption("--write"):
        for manual in (API, HISTORY, ALERT):
            hw_api.write_pairs(manual, made)
    found = {**hw_api.pairs(API), **hw_api.pairs(HISTORY), **hw_api.pairs(ALERT)}
    assert set(found) == set(made), "marks .\\\" pair DAEMON METHOD PATH"
    wrong = {key: (hw_api.skeleton(found[key]), hw_api.skeleton(made[key])) for key in made
             if hw_api.skeleton(found[key]) != hw_api.skeleton(made[key])}
    assert not wrong, "run this test with --write"


def members(v):
    if isinstance(v, dict):
        return set(v) | {k for x in v.values() for k in members(x)}
    return {k for x in v for k in members(x)} if isinstance(v, list) else set()


def test_the_manuals_describe_each_member(answers):
    """Each member of an answer is described above that answer, at a device, or at the events."""
    everywhere = members(json.loads(next(a.body for r, a in answers.items() if r.name == "GET /v1/devices"))) | {"now_ms", "error"}
    labels = {"floor", "site"}
    windows = {"as_of_ms", "since_ms", "until_ms"}  # below the list of reports
    head, texts = r"^\.It (?:Cm )?(?:GET|POST|PUT|PATCH|DELETE) ", {}
    for manual in (API, HISTORY, ALERT):
        for item in re.findall(head + r".*?(?=%s|^\.Sh )" % head, (SRC / manual).read_text(), re.M | re.S):
            for daemon, name, _ in hw_api.BLOCK.findall(item):
                texts[daemon, name] = hw_api.BLOCK.sub("", item)
    texts["heartwheel-tasks", "GET /v1/tasks"] += texts["heartwheel-tasks", "GET /v1/tasks/TASK"]  # to which it points
    lacks = {}
    for route, answer in answers.items():
        if answer.kind.startswith("application/json") and not route.name.endswith(("/overview", "/reload")):
            of_tests = {"level", "open"} if route.daemon == "heartwheel-tasks" else labels if route.daemon == "heartwheeld" else windows if route.daemon == "heartwheel-history" else set()
            missing = {m for m in members(json.loads(answer.body)) - everywhere - of_tests
                       if not re.search(r"(?<![\w])%s\b" % m, texts[route.key])}
            if missing:
                lacks[route.key] = missing
    assert not lacks, "\n".join("%s %s: %s" % (*key, " ".join(sorted(missing))) for key, missing in lacks.items())


def test_openapi_says_the_same(answers, request):
    text = hw_api.openapi(answers)
    if request.config.getoption("--write"):
        OPENAPI.write_text(text)
    assert json.loads(OPENAPI.read_text()) == json.loads(text), "run this test with --write"


def test_aliases_answer_alike(programs, answers):
    by_key = {r.key: a for r, a in answers.items()}
    for (daemon, name), other in ALIASES.items():
        if not other:
            continue
        method, path = name.split(" ")
        a, b = ask(programs[daemon], method, path), by_key[other]
        assert (a.status, a.kind) == (b.status, b.kind), (daemon, name)
        if a.kind == "application/json":
            assert set(json.loads(a.body)) == set(json.loads(b.body)), (daemon, name)


def test_parameters_are_those_that_are_taken(programs, answers):
    for route in ROUTES:
        if route.method != "GET":
            continue
        plain = route.path.split("?")[0]
        if "{" in plain or route.name in ("GET /", "GET /metrics", "GET /healthz", "GET /readyz"):
            continue
        for name, (_, value) in route.query.items():
            if value is not None:
                given = "device=pump-9&" if route.pattern.endswith("/bars") and name != "device" else ""
                given += "since=1h&" if route.pattern.endswith(("/bars", "/counts")) and name != "since" else ""
                a = ask(programs[route.daemon], "GET", "%s?%s%s=%s" % (plain, given, name, value))
                assert a.status == 200, (route.name, name, a.body)
        if route.query and "/events" not in route.name:
            a = ask(programs[route.daemon], "GET", plain + "?no-such=1")
            assert a.status == 400 and b"unknown" in a.body, (route.name, a.body)


@pytest.mark.skipif(not VALIDATOR.exists(), reason="no validator: run npm ci in a copy of tests/node, and name it in HW_NODE")
def test_openapi_is_valid(tmp_path):
    r = subprocess.run(["node", str(VALIDATOR), str(OPENAPI)], capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stdout + r.stderr
    wrong = json.loads(OPENAPI.read_text())
    wrong["paths"]["/v1/status"]["get"]["responses"] = []
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    r = subprocess.run(["node", str(VALIDATOR), str(tmp_path / "wrong.json")], capture_output=True, text=True, timeout=60)
    assert r.returncode != 0 or '"valid": true' not in r.stdout, "it finds nothing"


def test_the_manuals_list_the_metrics_of_heartwheel_tasks(programs):
    """The metrics of heartwheeld are in test_metrics_files.py, those of heartwheel-history in test_history_reports.py."""
    page = Metrics(programs["heartwheel-tasks"].get("/metrics").body.decode())
    there = {name.removeprefix("heartwheel_") for name in page.types if name.startswith("heartwheel_")}
    listed = (SRC / API).read_text().split("\n.Sh TASKS\n")[1].split("\n.Sh ")[0]
    names = set(re.findall(r"^\.Ql (tasks?(?:_\w+)?)(?:\{\w+\})? ,", listed.split("The metrics are")[1], re.M))
    assert names == {n for n in there if n.startswith("task")} | {"task_watched"}, "that one with [tasks] watch alone"


def test_the_manual_lists_the_metrics_of_heartwheel_alert(programs):
    there = {name for name in Metrics(programs["heartwheel-alert"].get("/metrics").body.decode()).types
             if name.startswith("heartwheel_")}
    metrics = (SRC / ALERT).read_text().split("\n.Sh METRICS\n")[1].split("\n.Sh ")[0]
    names = re.findall(r"heartwheel_\w+", " ".join(re.findall(r"^\.It (heartwheel_.*)", metrics, re.M)))
    assert len(names) > 8 and set(names) == there


def test_every_key_in_redis_is_documented(programs, answers):
    """Each key stands in docs/redis.md, or in heartwheel-tasks(8) with its prefixes."""
    redis_md, manual = ((SRC / p).read_text() for p in ("docs/redis.md", "man/heartwheel-tasks.8"))
    names = set(re.findall(r"device:[\w:]+", " ".join(re.findall(r"^\| (.*?) \|", redis_md, re.M))))
    names |= {name for line in re.findall(r"^\.It Cm (.*:.*)$", manual, re.M) for name in line.split(" , ")}
    known = re.compile("|".join(re.sub(r":(?:[A-Z_]+)(?=:|$)", ":[^:]+", name) for name in names) + "$")
    keys = programs["redis"].keys("*")
    wrong = [k for k in keys if not known.fullmatch(re.sub(r"^(t\d+:)?task:", "task:", re.sub("^other:", "device:", k)))]
    assert len(keys) > 20 and not wrong, wrong
