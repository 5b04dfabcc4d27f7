# SPDX-License-Identifier: MIT
"""What each of several nodes reports about all of them, and which requests it passes on to a device's owner."""
import json
import signal
import threading

import pytest

from hw_nodes import PARTITIONS, Mirror
from hw_process import free_port
from hw_wait import now_ms, throughout, wait_until


@pytest.fixture
def mirror(env):
    mirrors = []

    def make(**options):
        mirrors.append(Mirror(env, **{"timeout": 3600, **options}))
        mirrors[-1].start().wait_calm()
        return mirrors[-1]

    yield make
    for m in mirrors:
        m.close()


def nodes(d):
    """{NODE_ID: what this daemon reports about that node}"""
    return {n["node"]: n for n in json.loads(d.get("/v1/nodes").body)["nodes"]}


def gauge(d, name, **labels):
    return d.metrics().get(name, **labels)


def test_each_says_the_same_of_all(env, mirror):
    m = mirror(n=3)
    env.beat("a")
    wait_until(lambda: all(d.device("a") for d in m.nodes))
    for d in m.nodes:
        said = wait_until(lambda: all(n["devices"] == 1 for n in nodes(d).values()) and nodes(d), 10, "all to know the device")
        assert set(said) == {n.node for n in m.nodes}
        assert [n["node"] for n in said.values() if n["self"]] == [d.node]
        assert {n["state"] for n in said.values()} == {"ready"} and sum(n["owns"] for n in said.values()) == PARTITIONS
        assert all(n["mode"] == "mirror" and n["differs"] == [] and abs(now_ms() - n["since_ms"]) < 60000 for n in said.values())
        cluster = d.status()["cluster"]
        assert (cluster["member"], cluster["nodes"], cluster["ready"], cluster["lost"], cluster["unowned"]) == (True, 3, 3, 0, 0)
        assert cluster["owned"] == said[d.node]["owns"] == gauge(d, "partitions_owned")
        assert gauge(d, "nodes", state="ready") == 3 and gauge(d, "nodes", state="lost") == 0
        assert d.get("/readyz").status == 200
        shown = d.ctl("nodes").stdout
        assert shown.count(" ready ") == 3 and d.node + " (this)" in shown, shown
        owner = m.owner("a").node
        assert d.device("a")["node"] == owner and " owner      %s\n" % owner in d.ctl("show", "a").stdout
    assert sum(gauge(d, "partitions_owned") for d in m.nodes) == PARTITIONS


class Listening(Mirror):
    """Nodes with an address: one is configured by a name, one by its address, one listens on all addresses."""

    def configuration(self, name):
        ports = self.__dict__.setdefault("ports", {})
        port = ports.setdefault(name, free_port())
        more = {"a": {"listen": "127.0.0.1:%d" % port, "names": "fleet.example, other"}, "b": {"listen": "127.0.0.1:%d" % port},
                "c": {"listen": "0.0.0.0:%d" % port}}
        return {**super().configuration(name), "http": more[name[-1]]}


def test_each_knows_where_the_others_pages_are(env):
    m = Listening(env, n=3, timeout=3600)
    try:
        m.start().wait_calm()
        a, b, c = (d.node for d in m.nodes)
        want = {a: "http://fleet.example:%d/" % m.ports[a], b: "http://127.0.0.1:%d/" % m.ports[b], c: None}
        for d in m.nodes:
            wait_until(lambda: {k: n["url"] for k, n in nodes(d).items()} == want, what="the addresses at %s" % d.node)  # noqa: B023
            overview = json.loads(d.get("/v1/overview").body)
            assert {n["node"]: n["url"] for n in overview["nodes"]["nodes"]} == want
            assert overview["status"]["cluster"]["ready"] == 3 and [g["name"] for g in overview["groups"]] == ["default"]
    finally:
        m.close()


def test_those_with_many_long_client_ids_say_all_of_themselves(env):
    m = Mirror(env, n=0, timeout=3600, mqtt={"readers": 16, "client_id_prefix": "p" * 64})
    a = m.add((env.node + "-a").ljust(64, "a"))
    m.timeout = 1800
    b = m.add((env.node + "-b").ljust(64, "b"))
    m.start()
    entry = m.members()[a.node]
    assert len(entry["client_ids"]) == 18 and "%s-%s-bar" % ("p" * 64, a.node) in entry["client_ids"], entry
    assert entry["lease_ms"] == 1000 and entry["listen"] == "", entry
    for one, other in (a, b), (b, a):
        wait_until(lambda: nodes(one)[other.node]["differs"] == ["config"], what="the other's groups to differ")
        wait_until(lambda: "'%s' has another config than this one" % other.node in one.log(), what="the log to name it")


def test_one_that_is_cut_from_redis(env, mirror):
    """The node says that what it shows is as last known; the other node shows no share of it, and reports an eviction."""
    m = mirror(n=2, cuttable=True)
    a, b = m.nodes
    m.env.beat("a")
    wait_until(lambda: a.device("a") and b.device("a"), what="both to have the device")
    assert not a.status()["cluster"]["lapsed"] and "as last known" not in a.ctl("status").stdout
    assert a.get("/readyz").status == 200 and a.status()["cluster"]["as_of_ms"] is None
    began = now_ms()
    for way in m.from_redis(a):
        way.cut()
    wait_until(lambda: a.status()["cluster"]["lapsed"], what="it to notice")
    assert "nodes       Redis is out of reach, so as last known: " in a.ctl("status").stdout
    assert "states and shares are from then" in a.ctl("nodes").stdout
    wait_until(lambda: a.status()["cluster"]["state"] == "lapsed", what="its lease to be over")
    assert "nodes       Redis is out of reach, so as last known: 1 ready of 2" in a.ctl("status").stdout
    assert nodes(a)[a.node]["state"] == "lapsed" and gauge(a, "nodes", state="lapsed") == 1
    said, view = a.get("/readyz"), json.loads(a.get("/v1/nodes").body)
    assert said.status == 503 and "Redis was not reached for " in str(said.body), said.body
    assert began - 1000 <= view["as_of_ms"] <= now_ms() - 1000 and view["lapsed"], (began, view)
    for path in "/v1/devices?limit=1", "/v1/groups", "/v1/status", "/metrics":
        assert abs(int(a.get(path).headers["Heartwheel-As-Of"]) - view["as_of_ms"]) < 100, path
        assert b.get(path).headers["Heartwheel-As-Of"] is None, path
    for command in ["list"], ["list", "--state", "offline"], ["groups"], ["show", "a"]:
        assert "this is as of " in a.ctl(*command).stderr and "as of" not in b.ctl(*command).stderr
    assert "watching    yes" not in a.ctl("status").stdout and "watching    yes" in b.ctl("status").stdout
    wait_until(lambda: m.is_shared([b]), what="the other to take all over")
    assert b.get("/readyz").status == 200 and b.status()["cluster"]["as_of_ms"] is None
    publisher = m.members()[b.node]["client_ids"][0]

    def evict():
        env.raw(client_id=publisher).die()
        return "disconnected this node" in b.log()
    wait_until(evict, what="the reason", interval=0.3)
    assert "ach monitor needs its own node_id" not in b.log() and "give each monitor its own" not in b.log()
    line = next(l for l in b.ctl("nodes").stdout.splitlines() if l.startswith(a.node + " "))
    assert "%" not in line, line
    for way in m.from_redis(a):
        way.mend()
    wait_until(lambda: a.get("/readyz").status == 200 and nodes(a)[a.node]["state"] == "ready", what="it to be ready again")


def test_one_that_dies_is_lost_and_one_that_stops_is_not(env, mirror):
    m = mirror(n=3)
    a, b, c = m.nodes
    owned, before = gauge(b, "partitions_owned"), [gauge(d, "takeovers_total", kind="unclean") for d in (a, c)]
    m.crash(b)
    wait_until(lambda: all(nodes(d)[b.node]["state"] == "lost" for d in (a, c)), 20, "it to be lost")
    wait_until(lambda: all(d.status()["cluster"]["unowned"] == 0 and nodes(d)[b.node]["owns"] == 0 for d in (a, c)), 20)
    for d in (a, c):
        assert gauge(d, "nodes", state="lost") == 1 and gauge(d, "nodes", state="ready") == 2
        assert "node %s was lost " % b.node in d.ctl("nodes").stdout
        assert d.get("/readyz").status == 200
    def taken():
        return sum(gauge(d, "takeovers_total", kind="unclean") for d in (a, c)) - sum(before)
    wait_until(lambda: taken() >= owned)
    assert taken() == owned
    wait_until(lambda: any(0 < gauge(d, "takeover_seconds") < 20 for d in (a, c)))
    b.start(seeing=False)
    wait_until(lambda: all(nodes(d)[b.node]["state"] == "ready" for d in (a, c)), 20, "it to be back")
    m.wait_shared()
    c.stop()
    wait_until(lambda: all(c.node not in nodes(d) for d in (a, b)), 20, "it to be gone")
    assert all(gauge(d, "nodes", state="lost") == 0 for d in (a, b))


def owned_by_another(m, d):
    """A device that another node than this one owns, once this node knows that, and its owner."""
    device, owner = next((name, m.owner(name)) for name in map("dev%d".__mod__, range(100)) if m.owner(name) is not d)
    m.env.beat(device)
    wait_until(lambda: all(n.device(device) for n in m.nodes) and d.device(device)["node"] == owner.node)
    return device, owner


def test_forgetting_is_passed_on_to_the_owner(env, mirror):
    m = mirror(n=2)
    for d in m.nodes:
        device, owner = owned_by_another(m, d)
        wait_until(lambda: env.topic(device, "status") in env.retained(env.topic("+", "status")))
        assert d.forget(device).status == 204
        wait_until(lambda: not any(n.device(device) for n in m.nodes))
        wait_until(lambda: not env.redis.exists(env.key("state", device)))
        told = [e for _, e in env.redis.xrange(env.key("events")) if e["id"] == device]
        assert [e["state"] for e in told] == ["online", "forgotten"] and told[1]["node"] == owner.node, told
        wait_until(lambda: env.topic(device, "status") not in env.retained(env.topic("+", "status")))
        assert d.forget(device).status == 404


def test_an_owner_that_does_not_answer(env, mirror):
    m = mirror(n=2, lease=10)
    d = m.nodes[0]
    device, owner = owned_by_another(m, d)
    owner.signal(signal.SIGSTOP)
    at = now_ms()
    # What an earlier run was answered is nothing to this one.
    stale = {"answer": "forget", "from": owner.node, "run": "0123456789abcdef", "ticket": 1, "what": "forgotten"}
    timer = threading.Timer(.5, lambda: env.redis.publish(env.key("node", d.node), json.dumps(stale)))
    timer.start()
    a = d.forget(device)
    took = now_ms() - at
    timer.join()
    owner.signal(signal.SIGCONT)
    assert a.status == 503 and json.loads(a.body)["error"] == "node '%s' owns this device and does not answer" % owner.node
    assert took >= 1900, took
    # It read the request when it woke up: too late to say so, but it is what was asked for.
    wait_until(lambda: not any(n.device(device) for n in m.nodes))


GARBAGE = ["", "x", "{", "[]", "1", "null", "\0", "{}", '{"ask":"forget"}', '{"ask":1}', '{"ask":"forget","from":"","id":"a","ticket":1}',
           '{"ask":"forget","from":"x","run":"1","id":"a","ticket":"1"}', '{"ask":"forget","from":"x","id":"\\u0000","ticket":-1e300}',
           '{"answer":"forget"}', '{"answer":"forget","ticket":1e300,"what":"forgotten"}', '{"ask":"other","from":"x"}', "[" * 5000]


def test_what_anybody_may_publish(env, mirror):
    """A request from a client that is no member has no effect, however long its name is; a member's request after all of these
    is carried out."""
    m = mirror(n=2)
    d = m.nodes[0]
    device, owner = owned_by_another(m, d)
    other, _ = owned_by_another(m, owner)
    channel, ask = env.key("node", owner.node), {"ask": "forget", "run": "0123456789abcdef", "ticket": 1, "id": device}
    stranger = [json.dumps(dict(ask, **{"from": name})) for name in ("x", "x" * 240, "x" * 2000, "x" * 200000, d.node + "x", "*", "")]
    for text in GARBAGE + stranger + ["self" * 1000]:
        assert env.redis.publish(channel, text) == 1
    for text in ("attend " + "x" * 2000, "left " + "x" * 2000, "attend ", "left", "x" * 200000):
        assert env.redis.publish(env.key("node", "*"), text) == 2
    env.redis.publish(channel, json.dumps(dict(ask, **{"from": d.node, "id": "no device " + "x" * 5000})))
    assert d.forget(other).status == 204  # both have read what came before
    assert owner.device(device) and d.device(device)
    assert not [e for _, e in env.redis.xrange(env.key("events")) if e["id"] == device and e["state"] == "forgotten"]
    assert "the sender is not a member" in owner.log()
    heard = env.redis.pubsub()
    heard.subscribe(env.key("node", d.node))
    env.redis.publish(channel, json.dumps(dict(ask, **{"from": d.node})))
    wait_until(lambda: not any(n.device(device) for n in m.nodes))
    answers = []
    wait_until(lambda: answers.append(heard.get_message(ignore_subscribe_messages=True)) or any(
        a and json.loads(a["data"]).get("what") == "forgotten" for a in answers if a and a["data"] != "self"))
    heard.close()
    for n in m.nodes:
        assert n.get("/readyz").status == 200
