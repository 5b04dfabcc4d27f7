# SPDX-License-Identifier: MIT
"""Parents that the inventory gives to single devices: in force at once, on every node, and for incidents."""
import pytest

from hw_alert import Alert, Inbox
from hw_env import NO_STALL, NO_STANDSTILL
from hw_wait import wait_until
from test_inventory import patch, put
from test_nodes_mirror import Pair


def daemon(env, store="redis", **keys):
    beat = lambda name: "%s/%s/{id}" % (env.root, name)  # noqa: E731
    groups = [("gateways", {"heartbeat": beat("gw"), "timeout": "2s"}), ("valves", {"heartbeat": beat("v"), "timeout": "2s", **keys})]
    monitor = {"inventory": env.own_dir("inventory") / "inventory.ndjson"} if store == "memory" else {}
    d = env.daemon(groups=groups, store={"type": store}, monitor={**NO_STALL, **monitor}, mqtt=NO_STANDSTILL)
    wait_until(lambda: d.get("/v1/inventory").status == 200, what="the inventory to be read")
    return d


def beat(env, topic, payload=b""):
    env.publisher.publish("%s/%s" % (env.root, topic), payload, 1)


def parents(d, device):
    return [p["id"] for p in d.device(device)["parents"]]


@pytest.mark.parametrize("store", ["redis", "memory"])
def test_an_entry_gives_and_takes_parents(env, store):
    d = daemon(env, store)
    beat(env, "v/v1")
    wait_until(lambda: d.state("v1") == "online")
    assert put(d, "id,parent\nv1,ga|gb\nv2,ga\n").status == 200
    wait_until(lambda: parents(d, "v1") == ["ga", "gb"])
    for topic in ("gw/ga", "v/v2", "v/v1"):
        beat(env, topic)
    wait_until(lambda: d.state("v2") == "online" and d.device("ga")["children"] == 2)
    assert d.device("v2")["parents"] == [{"id": "ga", "state": "online"}]
    if store == "redis":
        wait_until(lambda: env.hash("v2").get("parent") == env.hash("v1").get("parent") == "ga")
    assert patch(d, "v2", {"parent": None}).status == 200
    wait_until(lambda: parents(d, "v2") == [])
    if store == "redis":
        wait_until(lambda: "parent" not in env.hash("v2"))
    d.request("DELETE", "/v1/inventory/v1")
    wait_until(lambda: parents(d, "v1") == [] and d.device("ga")["children"] == 0)


@pytest.mark.parametrize("store", ["redis", "memory"])
def test_a_restart_keeps_them(env, store):
    d = daemon(env, store)
    assert put(d, "id,parent\nv1,ga\n").status == 200
    beat(env, "gw/ga")
    beat(env, "v/v1")
    wait_until(lambda: d.state("v1") == d.state("ga") == "online")
    d.stop()
    d.start()
    beat(env, "gw/ga")
    beat(env, "v/v1")
    wait_until(lambda: d.state("v1") == "online" and parents(d, "v1") == ["ga"])


def test_a_circle_is_named_in_the_log(env):
    d = daemon(env)
    for topic in ("v/a", "v/b"):
        beat(env, topic)
    wait_until(lambda: d.state("a") == d.state("b") == "online")
    assert put(d, "id,parent\na,b\nb,a\n").status == 200
    wait_until(lambda: sorted(parents(d, "a") + parents(d, "b")) in (["a"], ["b"]))
    wait_until(lambda: "it depends on the device itself; check `parent` in its group and in the inventory" in d.log())


def test_children_take_part_in_the_parents_incident(env):
    """The group has no parent: the inventory alone says that the devices depend on the gateway."""
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()}).start()
    d = daemon(env, parent_death="take")
    assert put(d, "id,parent\nv1,ga\nv2,ga\n").status == 200
    for topic in ("gw/ga", "v/v1", "v/v2", "v/v3"):
        beat(env, topic)
    wait_until(lambda: [d.state(x) for x in ("ga", "v1", "v2", "v3")] == ["online"] * 4)
    beat(env, "gw/ga", b'{"online":false}')
    wait_until(lambda: [d.state(x) for x in ("ga", "v1", "v2")] == ["offline"] * 3)
    wait_until(lambda: [(i["device"], i["unreachable"]) for i in a.incidents() if i["device"] == "ga"] == [("ga", 2)], 20)
    assert not [i for i in a.incidents() if i["device"] in ("v1", "v2")]


def test_every_node_knows_them(env):
    """An import at one node is in force at the other, which owns the device and writes its parent."""
    pair = Pair(env, timeout="1h", mqtt=NO_STANDSTILL)
    a, b = pair.nodes
    child = pair.device_of(b)
    for device in (child, "ga"):
        env.beat(device)
    for d in (a, b):
        wait_until(lambda: d.state(child) == d.state("ga") == "online")
    assert put(a, "id,parent\n%s,ga\n" % child).status == 200
    for d in (a, b):
        wait_until(lambda: parents(d, child) == ["ga"])
    wait_until(lambda: env.hash(child).get("parent") == "ga")
    assert a.request("DELETE", "/v1/inventory/" + child).status == 204
    for d in (a, b):
        wait_until(lambda: parents(d, child) == [])
    wait_until(lambda: "parent" not in env.hash(child))
