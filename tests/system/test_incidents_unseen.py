# SPDX-License-Identifier: MIT
"""Unseen devices become incidents, with the labels of the inventory."""
import json
import time

from hw_alert import Alert, Inbox, see, set_online
from hw_wait import throughout, wait_until
from test_unseen import CALM, expect, group, wait_unseen


def test_an_unseen_incident(env):
    """One incident of a group, also over a restart of heartwheel-alert; it ends when none of its devices is unseen."""
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()}).start()
    d = env.daemon(timeout="1s", **group(env), **CALM)
    expect(env, "u1", "u2", group="default")
    wait_unseen(env, d, ["u1", "u2"])
    wait_until(lambda: [(i["kind"], i["group"], i["down"]) for i in a.incidents()] == [("unseen", "default", 2)], 20)
    wait_until(lambda: ("opened", "unseen") in inbox.news(), 20)
    incident = a.incidents()[0]["id"]
    a.stop()
    a.start()
    throughout(lambda: [(i["id"], i["down"]) for i in a.incidents()] == [(incident, 2)], 3)
    env.beat("u1")
    wait_until(lambda: [i["down"] for i in a.incidents()] == [1], 20)
    env.beat("u2")
    wait_until(lambda: incident not in [i["id"] for i in a.incidents()], 60)


def test_matchers_see_labels(env):
    """A receiver gets only the devices whose labels in the inventory match."""
    north, south = Inbox(env, "north"), Inbox(env, "south")
    a = Alert(env, receivers={"north": north.receiver(match="label:site=n*"), "south": south.receiver(match="label:site=south")}).start()
    d = env.daemon(timeout="1s", **CALM)
    expect(env, "a", labels={"floor": "2", "site": "north"})
    expect(env, "b", labels={"site": "south"})
    wait_until(lambda: d.get("/v1/status") is not None)
    env.beat("a")
    env.beat("b")
    north.wait(("opened", "a"), timeout=20)
    south.wait(("opened", "b"), timeout=20)
    throughout(lambda: len(north.ids("opened")) == len(south.ids("opened")) == 1, 2)
    a.stop()


def test_the_unseen_devices_cannot_be_read(env):
    """device:unseen has another type: /readyz says so, deaths are sent, and an incident of unseen devices stays open."""
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()}).start()
    see(env)
    r, key, now = env.redis, env.key("unseen"), int(time.time() * 1000)
    r.hset(env.key("expected"), "u1", json.dumps({"group": "default"}))
    r.zadd(key, {"u1": now})
    r.xadd(env.key("events"), {"id": "u1", "state": "unseen", "reason": "never_seen", "time_ms": now, "last_seen_ms": 0,
                               "group": "default", "node": env.node, "seq": now})
    inbox.wait(("opened", "unseen"), timeout=20)
    a.stop()
    r.rename(key, key + "-kept")
    r.set(key, "text")
    a.start(ready=False)
    text = "cannot read which devices are unseen: " + key + ": a key holds a type"
    wait_until(lambda: text in a.get("/readyz").body.decode(), what="the reason at /readyz")
    set_online(env, "p1", False)
    inbox.wait(("opened", "unseen"), ("opened", "p1"), timeout=20)
    assert sorted((i["kind"], i["group"], i["down"]) for i in a.incidents()) == [("device", "default", 1), ("unseen", "default", 1)]
    r.rename(key + "-kept", key)
    wait_until(a.ready, 40, "the unseen devices to be read")
    set_online(env, "u1", True)
    r.zrem(key, "u1")
    inbox.wait(("opened", "unseen"), ("opened", "p1"), ("closed", "unseen"), timeout=20)


def test_scores_of_another_program(env):
    """A score in device:unseen that is not a time in milliseconds: the device keeps its id, and is unseen from now on."""
    a, began = Alert(env), int(time.time() * 1000)
    see(env)
    env.redis.hset(env.key("expected"), mapping={"u1": "{}", "u2": "{}", "u3": "{}"})
    env.redis.zadd(env.key("unseen"), {"u1": 1e20, "u2": 1.5, "u3": "-inf"})
    a.start()
    members = [m for i in a.wait_open(3) for m in a.json("/v1/incidents/" + i["id"])["members"]]
    assert sorted(m["id"] for m in members) == ["u1", "u2", "u3"]
    assert all(m["since_ms"] >= began for m in members)


def test_the_first_message_is_a_goodbye(env):
    """An unseen device that was only listed at the first start, and becomes offline without a return: its death is sent."""
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()})
    see(env)
    env.redis.hset(env.key("expected"), "u1", "{}")
    env.redis.zadd(env.key("unseen"), {"u1": int(time.time() * 1000)})
    a.start()
    assert [i["kind"] for i in a.wait_open()] == ["unseen"]
    set_online(env, "u1", False)
    env.redis.zrem(env.key("unseen"), "u1")
    inbox.wait(("opened", "u1"), timeout=20)
    set_online(env, "u1", True)
    inbox.wait(("opened", "u1"), ("closed", "u1"), timeout=20)


def test_outages_that_begin_while_no_instance_runs(env):
    """Two devices that were only listed at the first start stop while heartwheel-alert is stopped; one had returned before."""
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()})
    see(env)
    set_online(env, "p1", False)
    env.redis.hset(env.key("expected"), "u1", "{}")
    env.redis.zadd(env.key("unseen"), {"u1": int(time.time() * 1000)})
    a.start()
    assert sorted(i["kind"] for i in a.wait_open(2)) == ["device", "unseen"]
    a.stop()
    set_online(env, "p1", True)
    set_online(env, "p1", False)
    set_online(env, "u1", False)
    env.redis.zrem(env.key("unseen"), "u1")
    a.start()
    inbox.wait(("opened", "p1"), ("opened", "u1"), timeout=20)
    a.stop()
    a.start()
    throughout(lambda: len(inbox.ids("opened")) == 2, 2)
