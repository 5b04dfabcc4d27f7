# SPDX-License-Identifier: MIT
"""Devices that depend on others: parents in the configuration, the stream, the status and the API."""
import signal
import time

import pytest

from hw_env import NO_STALL, NO_STANDSTILL
from hw_mqtt import Beating
from hw_wait import throughout, wait_until
from test_config import check_text


def groups(env, gateway="3s", valve="1s", filters=None, parent="gateway-{gw}", gateways=None, **keys):
    r = env.root
    return [("gateways", {"heartbeat": r + "/gw/{id}/up", "status": r + "/told/{id}", "timeout": gateway,
                          **(gateways or {})}),
            ("valves", {"heartbeat": filters or [r + "/plant/{gw}/{id}/up", r + "/plant/{gw}/{id}/temp"],
                        "status": r + "/told/{id}", "timeout": valve, "parent": parent, **keys})]


def daemon(env, **keys):
    return env.daemon(monitor=NO_STALL, mqtt=NO_STANDSTILL, groups=groups(env, **keys))


def gateway(env, device, payload=b""):
    env.publisher.publish("%s/gw/%s/up" % (env.root, device), payload, 1)


def valve(env, gw, device, last="up", payload=b""):
    env.publisher.publish("%s/plant/%s/%s/%s" % (env.root, gw, device, last), payload, 1)


def last_event(env, device, state):
    def find():
        es = [e for e in env.events(device) if e["state"] == state]
        return es[-1] if es else None
    return wait_until(find, 10, "%s to be %s in the stream" % (device, state))


def status_of(env, device):
    topic = env.root + "/told/" + device
    message = env.retained(topic).get(topic)
    return message.json() if message else {}


def test_parents_are_everywhere(env):
    """Parents are in the hash, the entries, the API and the list; they follow the heartbeats, and a reload removes them."""
    d = daemon(env, gateway="1h", valve="1h")
    gateway(env, "gateway-a")
    gateway(env, "gateway-b")
    wait_until(lambda: d.state("gateway-b") == "online")
    for device in ("v1", "v2"):
        valve(env, "a", device)
    assert last_event(env, "v1", "online")["parent"] == "gateway-a"
    assert "parent" not in last_event(env, "gateway-a", "online")
    wait_until(lambda: env.hash("v1").get("parent") == "gateway-a")
    wait_until(lambda: d.device("gateway-a")["children"] == 2)
    assert d.device("v1")["parents"] == [{"id": "gateway-a", "state": "online"}]
    listed = d.get("/v1/devices?parent=gateway-a").json()["devices"]
    assert sorted(x["id"] for x in listed) == ["v1", "v2"]
    assert d.get("/v1/devices?parent=gateway-c").json()["devices"] == []
    assert d.get("/v1/devices?parent=a%2B").status == 400
    valve(env, "b", "v1", "temp")
    wait_until(lambda: env.hash("v1").get("parent") == "gateway-b")
    valve(env, "nowhere", "v1")
    wait_until(lambda: d.device("v1")["parents"] == [{"id": "gateway-nowhere", "state": None}])
    wait_until(lambda: "parent" not in env.hash("v1"))
    d.edit("parent = gateway-{gw}\n", "")
    d.rewrite(d.conf.read_text().replace("{gw}", "+"))
    assert d.ctl("reload").returncode == 0
    wait_until(lambda: d.device("v2")["parents"] == [])
    wait_until(lambda: "parent" not in env.hash("v2"))


def test_wait_and_parent_heard(env):
    """While its parent is online, the cause of a device's outage is open for wait_ms, or until the parent's next heartbeat."""
    d = daemon(env, gateway="1h", valve="1s")
    gateway(env, "gateway-a")
    wait_until(lambda: d.state("gateway-a") == "online")
    valve(env, "a", "v1")
    e = last_event(env, "v1", "offline")
    assert e["parent"] == "gateway-a" and e["timeout_ms"] == "1000"
    assert 0 < int(e["wait_ms"]) <= 3600 * 1000
    assert "parent" not in status_of(env, "v1")
    assert env.redis.xlen(env.key("parent_heard")) == 0
    gateway(env, "gateway-a")
    wait_until(lambda: env.redis.xlen(env.key("parent_heard")) == 1, 5)
    heard = env.redis.xrange(env.key("parent_heard"))[0][1]
    assert heard == {"id": "v1", "seq": e["seq"], "parent": "gateway-a", "settle_ms": "0"}


def test_the_status_names_the_dead_parent(env):
    d = daemon(env, gateway="1h", valve="1s")
    gateway(env, "gateway-a")
    wait_until(lambda: d.state("gateway-a") == "online")
    gateway(env, "gateway-a", b'{"online":false}')
    wait_until(lambda: d.state("gateway-a") == "offline")
    valve(env, "a", "v1")
    e = last_event(env, "v1", "offline")
    assert e["reason"] == "timeout" and e["timeout_ms"] == "1000" and "wait_ms" not in e
    wait_until(lambda: status_of(env, "v1").get("parent") == "gateway-a")


def test_a_dead_gateway_takes_its_devices(env):
    """parent_death = take: a gateway's devices go offline with it, for the reason `parent`, and each returns with its own
    heartbeat."""
    d = daemon(env, gateway="1h", valve="1h", parent_death="take", online_after=3)
    gateway(env, "gateway-a")
    devices = ["v%d" % k for k in range(50)]
    wait_until(lambda: d.state("gateway-a") == "online")
    for device in devices:
        valve(env, "a", device)
    valve(env, "b", "other")
    wait_until(lambda: d.state("other") == "online")
    gateway(env, "gateway-a", b'{"online":false}')
    wait_until(lambda: all(d.state(x) == "offline" for x in devices), 10)
    assert last_event(env, "v7", "offline")["reason"] == "parent"
    wait_until(lambda: status_of(env, "v7").get("reason") == "parent")
    assert status_of(env, "v7")["parent"] == "gateway-a"
    assert d.state("other") == "online"
    valve(env, "a", "v7")
    wait_until(lambda: d.state("v7") == "online")
    throughout(lambda: d.state("v7") == "online", 1)
    d.stop()
    d.start()  # loaded states take no child
    wait_until(lambda: d.state("v7") == "online")
    assert d.device("v8")["parents"] == [{"id": "gateway-a", "state": "offline"}]
    throughout(lambda: d.state("v7") == "online", 1)


def test_children_prove_their_gateway(env):
    d = daemon(env, gateway="2s", valve="2s", child_proves="yes")
    gateway(env, "gateway-a")
    wait_until(lambda: d.state("gateway-a") == "online")
    seen = d.device("gateway-a")["last_seen_ms"]
    end = time.monotonic() + 5
    while time.monotonic() < end:
        valve(env, "a", "v1")
        time.sleep(0.3)
    assert d.device("gateway-a")["state"] == "online"
    assert abs(d.device("gateway-a")["last_seen_ms"] - seen) < 1000
    wait_until(lambda: d.state("gateway-a") == "offline", 10)


def rights(valves=True):
    """The ACL of the monitor's user. Without `valves` it may not read the topics of the valves."""
    return "\n".join(["user fleet", "topic readwrite #", "user heartwheel", "topic readwrite heartwheel/#", "topic readwrite told/#",
                      "topic readwrite gw/#", "topic read bridge", "topic %s plant/#" % ("readwrite" if valves else "write")]) + "\n"


@pytest.mark.parametrize("cause", ["deaf", "while"])
def test_a_gateway_whose_children_cannot_be_heard(env, cause):
    """The monitor loses the right to read the topics of the gateway's children, or the bridge to them is away. The gateway
    stays online while they send unheard, and after that; it goes offline after the children have stopped."""
    broker = env.own_broker(users={u: u for u in ("fleet", "heartwheel")}, acl=rights())
    env.root = "plant"
    gs = [("gateways", {"heartbeat": "gw/{id}/up", "status": "told/{id}", "timeout": "2s"}),
          ("valves", {"heartbeat": "plant/{gw}/{id}/up", "status": "told/{id}", "timeout": "3s", "parent": "gateway-{gw}",
                      "child_proves": "yes", **({"while": "bridge on"} if cause == "while" else {})})]
    password = env.dir / "password"
    password.write_text("heartwheel")
    password.chmod(0o600)
    fleet = env.client(username="fleet", password="fleet")
    fleet.publish("bridge", b"on", 1, retain=True)
    d = env.daemon(monitor=NO_STALL, groups=gs, mqtt={"username": "heartwheel", "password_file": password,
                                                      "reconnect_grace": "500ms", **NO_STANDSTILL})

    def lose(is_lost):
        if cause == "while":
            fleet.publish("bridge", b"off" if is_lost else b"on", 1, retain=True)
        else:
            (broker.dir / "acl").write_text(rights(valves=not is_lost))
            broker.signal(signal.SIGHUP)

    def valves():
        return Beating(fleet, ["plant/a/v1/up", "plant/a/v2/up"], 0.3)

    def is_unheard():
        lose(True)
        wait_until(lambda: d.status()["blind"], 20, "blindness")
        throughout(lambda: d.state("gateway-a") == "online", 6, "the gateway to stay online")

    with Beating(fleet, ["gw/other/up"], 0.5):  # the group of gateways is heard all the time
        with valves():
            fleet.publish("gw/gateway-a/up", b"", 1)
            wait_until(lambda: d.status()["online"] == 4, 10, "all devices to be online")
            if cause == "deaf":
                is_unheard()
        if cause == "while":
            is_unheard()
        lose(False)
        with valves():
            wait_until(lambda: not d.status()["blind"], 20, "the monitor to hear again")
            throughout(lambda: d.state("gateway-a") == "online", 5, "the gateway to stay online")
            assert not [e for e in env.events() if e["state"] == "offline"]
        wait_until(lambda: d.state("gateway-a") == "offline", 15)


def test_the_hash_of_groups(env):
    d = daemon(env, gateway="1h", valve="1s")
    env.redis.hset(env.key("groups"), "of an earlier run", "1 1 0")
    gateway(env, "gateway-a")
    valve(env, "a", "v1")
    wait_until(lambda: d.state("v1") == "offline")
    wait_until(lambda: env.redis.hgetall(env.key("groups")) == {"gateways": "1 0 0", "valves": "0 1 0"}, 5)


def test_a_circle_is_ignored_and_logged(env):
    d = daemon(env, gateway="1h", valve="1h", parent="{gw}")
    valve(env, "x", "x")
    wait_until(lambda: d.state("x") == "online")
    assert d.device("x")["parents"] == []
    wait_until(lambda: "a parent of device 'x' is ignored: it depends on the device itself" in d.log(), 5)
    assert d.metrics().get("refused_total", kind="parent") == 1


@pytest.mark.parametrize("keys, line, what", [
    ({"parent": "gateway-{gx}"}, "parent = ", "{gx}: no filter of this group has it: put it in place of a +"),
    ({"parent": "gateway-{"}, "parent = ", "has a brace that is no part of a name in braces"),
    ({"parent": ["a", "b", "c", "d", "e"]}, "parent = e", "a group has at most 4: remove this one"),
    ({"filters": ["r/{gw}/{id}", "r/{id}"]}, "heartbeat = r/{id}", "lacks {gw}, which id or parent uses"),
    ({"filters": ["r/{gw}/{id}", "r/{gw}/{x}/{id}"]}, "heartbeat = r/{gw}/{x}", "{x} is not used by id or parent"),
])
def test_wrong_lines(env, keys, line, what):
    path, r = check_text(env, env.text(groups=groups(env, **keys)))
    assert r.returncode == 2, r
    number = next(k for k, l in enumerate(path.read_text().splitlines(), 1) if l.startswith(line))
    assert any(l.startswith("%s:%d: " % (path, number)) and what in l for l in r.stderr.splitlines()), r.stderr


def test_a_rule_without_a_parent(env):
    gs = groups(env)
    del gs[1][1]["parent"]
    gs[1][1].update({"heartbeat": env.root + "/plant/{id}/up", "parent_death": "take"})
    path, r = check_text(env, env.text(groups=gs))
    assert r.returncode == 0 and "has parent_death, but no parent: only devices whose entry in the inventory has a" in r.stderr
