# SPDX-License-Identifier: MIT
"""The name of a device in the inventory stands in its incidents: sentences, messages, the API and heartwheelctl; with both
stores, over a change of the name, restarts, and with several nodes."""
import json
import time

import pytest

from hw_alert import Alert, Inbox, see, set_online
from hw_wait import throughout, wait_until
from test_group_labels import beat, daemon
from test_inventory import put
from test_nodes_mirror import Pair

LINES = ["site {site}"]
LONGEST = "Ü" * 64  # 128 bytes


def rig(env, store):
    """(heartwheeld, heartwheel-alert, its inbox)"""
    memory = store == "memory"
    if memory:
        env.check_events = False
        env.own_redis(start=False)
    inbox = Inbox(env)
    d = daemon(env, LINES, store)
    a = Alert(env, receivers={"ops": inbox.receiver()}, memory=memory and d.socket, mass="0").start()
    return d, a, inbox


def rename(d, device, name):
    assert d.request("PATCH", "/v1/devices/" + device, json.dumps({"name": name}), {"Content-Type": "application/json"}).status in (200, 201)


def go_offline(env, d, *devices):
    for device in devices:
        beat(env, "north", device)
    wait_until(lambda: all(d.state(device) == "offline" for device in devices))


def incidents(inbox, what="opened"):
    """{device: the incident of the last such news}"""
    return {n["incident"]["device"]: n["incident"] for m in inbox.messages() for n in m["news"] if n["what"] == what}


@pytest.mark.parametrize("store", ["redis", "memory"])
def test_names_in_messages(env, store):
    d, a, inbox = rig(env, store)
    put(d, 'id,name\nv1,Pump 7\nv2,%s\nv3,"<b>x</b> & ""y"""\nv4,v4\n' % LONGEST)
    go_offline(env, d, "v1", "v2", "v3", "v4", "v5")
    inbox.wait(*[("opened", "v%d" % k) for k in range(1, 6)], timeout=20)
    found = incidents(inbox)
    shown = {"v1": "Pump 7 (v1)", "v2": LONGEST + " (v2)", "v3": '<b>x</b> & "y" (v3)', "v4": "v4", "v5": "v5"}
    for device, text in shown.items():
        assert found[device]["sentence"].startswith("device %s of group valves is offline since" % text)
        assert found[device]["name"] == (text[:-5] if text.endswith(")") else text)
        assert found[device]["labels"] == {"site": "north"}
    assert {i["device"]: i["name"] for i in a.incidents()} == {k: i["name"] for k, i in found.items()}
    one = a.json("/v1/incidents/" + found["v1"]["id"])
    assert [(m["id"], m.get("name")) for m in one["members"]] == [("v1", "Pump 7")]
    assert "name" not in a.json("/v1/incidents/" + found["v5"]["id"])["members"][0]
    listed = d.ctl("incidents", socket_path=a.socket).stdout
    assert "device Pump 7 (v1) of group valves" in listed and "device v5 of group valves" in listed
    assert "Pump 7 (v1), since" in d.ctl("incident", found["v1"]["id"], socket_path=a.socket).stdout


@pytest.mark.parametrize("store", ["redis", "memory"])
def test_a_changed_name(env, store):
    """The open incident has the new name after a restart, or with the next transition. It stays the same incident, and its
    labels do not change. A name that is removed is gone."""
    d, a, inbox = rig(env, store)
    put(d, "id,name\nv1,Pump 7\nv2,Pump 8\n")
    go_offline(env, d, "v1", "v2")
    inbox.wait(("opened", "v1"), ("opened", "v2"), timeout=20)
    first = incidents(inbox)
    rename(d, "v1", "Pump 9")
    rename(d, "v2", None)
    assert d.device("v1")["name"] == "Pump 9"
    if store == "redis":
        wait_until(lambda: env.hash("v1")["name"] == "Pump 9" and "name" not in env.hash("v2"))
        a.stop()
        a.start()
        wait_until(lambda: {i["device"]: i["name"] for i in a.incidents()} == {"v1": "Pump 9", "v2": "v2"})
        wait_until(lambda: env.redis.hget(env.key("incident", first["v1"]["id"]), "name") == "Pump 9")
        throughout(lambda: len(inbox.tries()) == len(inbox.messages()) and set(n[0] for n in inbox.news()) == {"opened"}, 1)
    beat(env, "north", "v1")
    beat(env, "north", "v2")
    wait_until(lambda: {"v1", "v2"} <= set(incidents(inbox, "closed")), 20)
    last = incidents(inbox, "closed")
    for device in ("v1", "v2"):
        assert last[device]["id"] == first[device]["id"] and last[device]["labels"] == first[device]["labels"]
    assert last["v1"]["sentence"].startswith("device Pump 9 (v1) of group valves was offline from")
    assert last["v2"]["sentence"].startswith("device v2 of group valves was offline from")


def test_what_is_written(env):
    """A device without a name has no field for it, in no write. A device with a name has it in its hash and in its entries, also
    beside labels and parents."""
    d = daemon(env, LINES, timeout="1h", parent="gate-{site}")
    beat(env, "north", "v1")
    wait_until(lambda: env.hash("v1").get("labels"))
    assert "name" not in env.hash("v1") and "name" not in env.events("v1")[-1]
    put(d, "id,name,parent\nv1,Pump 7,gate-x\nv2,Pump 8,gate-x\ngate-x,Gate,\n")
    wait_until(lambda: env.hash("v1").get("name") == "Pump 7")
    beat(env, "north", "gate-x")
    wait_until(lambda: d.state("gate-x") == "online")
    beat(env, "north", "v2")
    wait_until(lambda: env.hash("v2").get("name") == "Pump 8")
    entry = env.events("v2")[-1]
    assert (entry["name"], json.loads(entry["labels"]), entry["parent"]) == ("Pump 8", {"site": "north"}, "gate-x")
    assert d.request("DELETE", "/v1/inventory/v1").status == 204
    wait_until(lambda: "name" not in env.hash("v1"))
    assert json.loads(env.hash("v1")["labels"]) == {"site": "north"}
    wait_until(lambda: env.redis.hget(env.key("state", "v2"), "name") == "Pump 8")


@pytest.mark.parametrize("name", ["x" * 129, "a\nb", "a\r\nBcc: all@example.org", "\x1b[31mred", "\x00", "\xff"])
def test_a_name_that_is_not_ours(env, name):
    """Another program has written a name that no import accepts: it counts as none."""
    env.check_events = False  # the client of the tests reads UTF-8 only
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()}).start()
    see(env)
    raw = name.encode("latin-1")
    set_online(env, "v1", False, name=raw)
    inbox.wait(("opened", "v1"))
    assert incidents(inbox)["v1"]["name"] == "v1" and "device v1 of group default is offline" in incidents(inbox)["v1"]["sentence"]
    env.redis.hset(env.key("state", "v1"), "name", raw)
    a.stop()
    a.start()
    assert [i["name"] for i in a.incidents()] == ["v1"]


def test_several_nodes(env):
    """The name is imported at one node. The other one owns the device, and writes it."""
    inbox = Inbox(env)
    nodes = Pair(env, timeout="1s").nodes
    a = Alert(env, receivers={"ops": inbox.receiver()}, mass="0").start()
    put(nodes[0], "id,name\n" + "".join("v%d,Pump %d\n" % (k, k) for k in range(8)))
    for k in range(8):
        env.beat("v%d" % k)
    inbox.wait(*[("opened", "v%d" % k) for k in range(8)], timeout=30)
    assert len({env.events("v%d" % k)[-1]["node"] for k in range(8)}) == 2
    assert {device: i["name"] for device, i in incidents(inbox).items()} == {"v%d" % k: "Pump %d" % k for k in range(8)}


@pytest.mark.parametrize("store", ["redis", "memory"])
def test_unseen_devices(env, store):
    """Matchers see the labels of an unseen device, from the inventory and from its group. Members have their names, also after a
    restart of heartwheel-alert."""
    memory = store == "memory"
    if memory:
        env.check_events = False
        env.own_redis(start=False)
    north, others = Inbox(env, "north"), Inbox(env, "others")
    d = daemon(env, LINES, store)
    a = Alert(env, receivers={"north": north.receiver(match="label:site=n*"), "others": others.receiver(match="label:kind=other")},
              memory=memory and d.socket).start()
    put(d, "id,group,timeout,name,label.site\nnever1,others,1s,Pump 1,north\nnever2,others,1s,,\n")
    north.wait(("opened", "unseen"), timeout=20)
    others.wait(("opened", "unseen"), timeout=20)
    wait_until(lambda: a.incidents()[0]["down"] == 2)

    def names():
        return {m["id"]: m.get("name") for m in a.json("/v1/incidents/" + a.incidents()[0]["id"])["members"]}
    assert names() == {"never1": "Pump 1", "never2": None}
    if not memory:
        a.stop()
        a.start()
        assert names() == {"never1": "Pump 1", "never2": None}
        assert a.request("POST", "/v1/silences", {"match": "label:site=north", "until": int(1000 * time.time()) + 60000}).status == 201
        wait_until(lambda: a.incidents()[0]["silenced"] == 1)
