# SPDX-License-Identifier: MIT
"""Groups: own timeouts, the first match in the file, id_prefix, wildcards."""
import pytest

from hw_wait import in_time, throughout, wait_until


def test_each_group_has_its_timeout(env):
    d = env.daemon(groups=[
        (name, {"heartbeat": "%s/%s/{id}/up" % (env.root, name), "status": "%s/%s/{id}/state" % (env.root, name),
                "timeout": timeout})
        for name, timeout in (("fast", "400ms"), ("slow", "1500ms"), ("day", "1d"))])
    observer = env.observer(env.root + "/+/+/state")
    sent, silent = {}, {}
    for name in ("fast", "slow", "day"):
        sent[name] = env.beat("%s/%s-1" % (name, name), last="up")
    for name, timeout in (("fast", 0.4), ("slow", 1.5)):
        topic = "%s/%s/%s-1/state" % (env.root, name, name)
        m = wait_until(lambda: [m for m in observer.on(topic) if m.json()["online"] is False], 5, topic)[0]
        assert timeout <= m.at - sent[name], m.at - sent[name]
        silent[name] = m.at - sent[name] - timeout
        env.wait_store(name + "-1", "offline")
        assert env.hash(name + "-1")["group"] == name
        assert {e["group"] for e in env.events(name + "-1")} == {name}
    assert d.device("day-1")["state"] == "online" and d.device("day-1")["timeout_ms"] == 86_400_000
    m = d.metrics()
    assert m.get("devices", group="fast", state="offline") == 1 and m.get("devices", group="day", state="online") == 1
    assert m.get("heartbeats_total", group="slow") == 1
    for name, late in silent.items():
        in_time(late, 1, "past the timeout of " + name)


@pytest.mark.parametrize("order", [("narrow", "wide"), ("wide", "narrow")])
def test_the_first_group_that_matches_takes_the_device(env, order):
    groups = {"narrow": {"heartbeat": env.root + "/pumps/{id}/hb", "status": env.root + "/pumps/{id}/st",
                         "timeout": "1h"},
              "wide": {"heartbeat": env.root + "/+/{id}/hb", "timeout": "2h"}}
    d = env.daemon(groups=[(n, groups[n]) for n in order])
    env.beat("pumps/p", last="hb")
    env.beat("fans/f", last="hb")
    wait_until(lambda: d.device("f") and d.device("p"))
    assert d.device("f")["group"] == "wide" and d.device("f")["timeout_ms"] == 7_200_000
    assert d.device("p")["group"] == order[0]
    assert d.device("p")["timeout_ms"] == (3_600_000 if order[0] == "narrow" else 7_200_000)


def test_wildcards_and_the_place_of_the_id(env):
    r = env.root
    d = env.daemon(groups=[
        ("first", {"heartbeat": "%s/1/{id}" % r, "timeout": "1h"}),
        ("deep", {"heartbeat": "%s/2/{id}/#" % r, "timeout": "1h"}),
        ("plus", {"heartbeat": ["%s/3/+/{id}/+/up" % r, "%s/4/{id}/a/+" % r], "timeout": "1h"}),
        ("early", {"heartbeat": "{id}/%s/alive" % r, "timeout": "1h"})])
    for topic, device, group in (
            (r + "/1/a", "a", "first"), (r + "/2/b/x/y/z", "b", "deep"), (r + "/2/b2", "b2", "deep"),
            (r + "/3/floor/c/room/up", "c", "plus"), (r + "/4/e/a/anything", "e", "plus"),
            ("g%s/%s/alive" % (r, r), "g" + r, "early")):
        env.publisher.publish(topic, b"1")
        wait_until(lambda: d.device(device), 5, "%s to be heard on %s" % (device, topic))
        assert d.device(device)["group"] == group
    known = d.status()["devices"]
    for topic in (r + "/1/n/x", r + "/3/n/up", r + "/3/floor/n/room/down", r + "/4/n/b/x", "n/%s/dead" % r, r):
        env.publisher.publish(topic, b"1")
    env.publisher.publish(r + "/1/last", b"1")
    wait_until(lambda: d.device("last"))
    assert d.status()["devices"] == known + 1 and d.device("n") is None


def test_overlapping_filters_of_one_group(env):
    """However often the broker delivers a message: one device, one transition."""
    d = env.daemon(groups=[("g", {"heartbeat": [env.root + "/{id}/heartbeat", env.root + "/{id}/#", env.root + "/+/{id}"],
                                  "timeout": "500ms"})])
    env.beat("o")
    env.wait_store("o", "offline")
    assert env.edges("o") == [("online", "heartbeat"), ("offline", "timeout")]
    assert d.device("heartbeat") is None


def test_id_prefix(env):
    """Two groups whose devices have the same names: all ids are in one namespace, so one group puts a prefix before its ids."""
    r = env.root
    d = env.daemon(groups=[
        ("a", {"heartbeat": r + "/a/{id}/hb", "status": r + "/a/{id}/st", "timeout": "500ms"}),
        ("b", {"heartbeat": r + "/b/{id}/hb", "status": r + "/b/{id}/st", "timeout": "1h", "id_prefix": "b-"})])
    observer = env.observer(r + "/+/+/st")
    env.beat("a/x", last="hb")
    env.beat("b/x", last="hb")
    env.wait_store("b-x", "online")
    assert env.redis.get(env.key("connected", "b-x")) == "b-x"
    wait_until(lambda: observer.on(r + "/b/x/st"), 5, "the status on the device's own topic, without the prefix")
    env.wait_store("x", "offline")
    assert d.state("b-x") == "online" and d.device("b-x")["group"] == "b"
    assert not observer.on(r + "/b/b-x/st")
    env.beat("b/x", {"online": False}, last="hb")
    env.wait_store("b-x", "offline")
    wait_until(lambda: env.retained(r + "/b/x/st"))
    assert d.forget("b-x").status == 204
    wait_until(lambda: not env.retained(r + "/b/x/st"), 5, "the retained status of b-x to be cleared")
    assert env.retained(r + "/a/x/st") and d.state("x") == "offline"


def test_prefixed_devices_survive_a_restart(env):
    r = env.root
    d = env.daemon(groups=[
        ("b", {"heartbeat": r + "/b/{id}/hb", "status": r + "/b/{id}/st", "timeout": "1s", "id_prefix": "b-"})])
    env.beat("b/x", last="hb")
    env.wait_store("b-x", "online")
    d.stop()
    observer = env.observer(r + "/b/+/st")
    d.start()
    wait_until(lambda: [m for m in observer.on(r + "/b/x/st") if not m.retain and m.json()["online"] is False], 8,
               "b-x to go offline on its own topic")
    assert d.status()["devices"] == 1


def test_a_dollar_topic_is_no_device(env):
    """A wildcard on the first level does not match $SYS."""
    env.own_broker(settings=["sys_interval 1"])
    d = env.daemon(groups=[("all", {"heartbeat": "+/{id}/#", "timeout": "1h"})])
    env.publisher.publish("x/y/z", b"1")
    wait_until(lambda: d.device("y"))
    throughout(lambda: d.device("broker") is None, 1.5)


def test_many_groups(env):
    d = env.daemon(groups=[("g%d" % k, {"heartbeat": "%s/g%d/{id}" % (env.root, k), "timeout": "%ds" % (k + 10)})
                           for k in range(60)])
    for k in range(60):
        env.publisher.publish("%s/g%d/d%d" % (env.root, k, k), b"")
    wait_until(lambda: d.status()["devices"] == 60)
    for k in (0, 31, 59):
        assert (d.device("d%d" % k)["group"], d.device("d%d" % k)["timeout_ms"]) == ("g%d" % k, (k + 10) * 1000)
