# SPDX-License-Identifier: MIT
"""Labels that a group gives to its devices: in the API, in searches, in Redis, for matchers; over restarts and reloads."""
import json

import pytest

from hw_alert import Alert, Inbox
from hw_env import NO_STALL, NO_STANDSTILL
from hw_wait import throughout, wait_until
from test_config import check_text
from test_inventory import ids, put


def valves(env, heartbeat="plant/{site}/+/{id}", **keys):
    return [("valves", {"heartbeat": "%s/%s" % (env.root, heartbeat), "timeout": "1s", **keys}),
            ("others", {"heartbeat": env.root + "/others/{id}", "timeout": "1h", "first_within": "1s", "label": "kind other"})]


def daemon(env, label, store="redis", **keys):
    monitor = {"inventory": env.own_dir("inventory") / "inventory.ndjson"} if store == "memory" else {}
    d = env.daemon(groups=valves(env, label=label, **keys), store={"type": store}, monitor={**NO_STALL, **monitor}, mqtt=NO_STANDSTILL)
    wait_until(lambda: d.get("/v1/inventory").status == 200, what="the inventory to be read")
    return d


def beat(env, site, device):
    env.publisher.publish("%s/plant/%s/x/%s" % (env.root, site, device), b"", 1)


def labels(d, device):
    return d.device(device).get("labels")


def stored(env, device):
    return json.loads(env.hash(device).get("labels", "null"))


LINES = ["site {site}", "kind valve", "tag {id}-{site}"]


def test_labels_from_topics(env):
    d = daemon(env, LINES, timeout="1h")
    beat(env, "north", "v1")
    beat(env, "south", "v2")
    wait_until(lambda: d.state("v1") == d.state("v2") == "online")
    assert labels(d, "v1") == {"kind": "valve", "site": "north", "tag": "v1-north"}
    wait_until(lambda: stored(env, "v1") == labels(d, "v1"))
    assert json.loads(env.events("v1")[-1]["labels"])["site"] == "north"
    assert ids(d, "label=site=n*") == {"v1"} and ids(d, "search=SOUTH") == {"v2"} and ids(d, "label=kind=valve") == {"v1", "v2"}
    put(d, "id,label.site,label.floor\nv1,attic,2\nnever,,\n")
    wait_until(lambda: labels(d, "v1") == {"floor": "2", "kind": "valve", "site": "attic", "tag": "v1-north"})
    wait_until(lambda: stored(env, "v1")["site"] == "attic")
    assert ids(d, "search=north") == {"v1"} and ids(d, "label=site=north") == set()  # the tag has it
    beat(env, "east", "v1")
    beat(env, "east", "v2")
    wait_until(lambda: labels(d, "v2")["site"] == stored(env, "v2")["site"] == "east")
    assert labels(d, "v1") == {"floor": "2", "kind": "valve", "site": "attic", "tag": "v1-east"}
    assert "site=east" in d.ctl("show", "v2").stdout


def test_an_unseen_device_has_what_is_known(env):
    d = daemon(env, LINES)
    put(d, "id,group,timeout\nnever,others,1s\n")
    wait_until(lambda: ids(d, "state=unseen") == {"never"}, 20)
    assert ids(d, "state=unseen&label=kind=other") == {"never"}


def test_offline_devices_keep_theirs_over_a_restart(env):
    d = daemon(env, LINES)
    beat(env, "north", "v1")
    wait_until(lambda: d.state("v1") == "offline")
    wait_until(lambda: env.hash("v1").get("captures") == "site=north")
    d.stop()
    d.start()
    wait_until(lambda: d.state("v1") == "offline" and labels(d, "v1") == {"kind": "valve", "site": "north", "tag": "v1-north"})


def test_a_reload_changes_them(env):
    d = daemon(env, LINES, timeout="1h")
    beat(env, "north", "v1")
    wait_until(lambda: stored(env, "v1") == {"kind": "valve", "site": "north", "tag": "v1-north"})
    d.edit("label = kind valve\n", "label = kind pump\n")
    d.edit("label = tag {id}-{site}\n", "")
    assert d.ctl("reload").returncode == 0
    assert labels(d, "v1") == {"kind": "pump", "site": "north"}
    wait_until(lambda: stored(env, "v1") == {"kind": "pump", "site": "north"})


def test_with_memory(env):
    d = daemon(env, LINES, store="memory", timeout="1h")
    beat(env, "north", "v1")
    wait_until(lambda: d.state("v1") == "online" and labels(d, "v1")["site"] == "north")
    put(d, "id,label.site\nv1,attic\n")
    wait_until(lambda: labels(d, "v1")["site"] == "attic" and ids(d, "label=site=attic") == {"v1"})


@pytest.mark.parametrize("store", ["redis", "memory"])
def test_matchers_see_them(env, store):
    memory = store == "memory"
    if memory:
        env.check_events = False
        env.own_redis(start=False)
    north = Inbox(env, "north")
    d = daemon(env, LINES, store)
    a = Alert(env, receivers={"north": north.receiver(match="label:site=n*")}, memory=memory and d.socket).start()
    beat(env, "north", "v1")
    beat(env, "south", "v2")
    wait_until(lambda: d.state("v1") == d.state("v2") == "offline")
    north.wait(("opened", "v1"), timeout=20)
    throughout(lambda: len(north.ids("opened")) == 1, 2)
    a.stop()


def test_wrong_lines(env):
    wrong = (("site", "has no value after its name"), ("Site x", "is no label: give NAME VALUE"), ("a {nope}", "{nope}: no filter of this group has it"),
             ("kind again", "of this group has this label too"))
    path, r = check_text(env, env.text(groups=valves(env, label=["kind a"] + [line for line, _ in wrong])))
    assert r.returncode == 2
    for line, what in wrong:
        number = next(k for k, l in enumerate(path.read_text().splitlines(), 1) if l == "label = " + line)
        assert any(l.startswith("%s:%d: key 'label': " % (path, number)) and what in l for l in r.stderr.splitlines()), r.stderr
