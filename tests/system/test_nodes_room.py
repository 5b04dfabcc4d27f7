# SPDX-License-Identifier: MIT
"""Nodes and monitors that have no room for all devices (max_devices): a node with room owns those devices; without such a node
they are reported as unjudged. Once there is room, all are judged again."""
import signal

import pytest

from hw_wait import throughout, wait_until
from test_nodes_groups import all_online, offline, owner_of
from test_nodes_mirror import node, partition

DEVICES = ["d%d" % k for k in range(40)]
FEW = 8


def limit(d, n):
    """Writes the configuration again, with max_devices = n."""
    lines = [x for x in d.conf.read_text().splitlines() if not x.startswith("max_devices")]
    at = lines.index("[monitor]")
    d.rewrite("\n".join(lines[:at + 1] + ["max_devices = %d" % n] + lines[at + 1:]) + "\n")


def known(d):
    return {x["id"] for x in d.get("/v1/devices?limit=1000").json()["devices"]}


def pair(env, small, large, mode="mirror"):
    a, b = (node(env, "%s-%s" % (env.node, k)) for k in "ab")
    for d, n in ((a, large), (b, small)):
        d.rewrite(d.conf.read_text().replace("mode = mirror", "mode = %s" % mode))
        limit(d, n)
    return a, b


def test_a_node_without_room_owns_no_device_that_it_does_not_know(env):
    a, b = pair(env, FEW, 1000)
    a.start()
    with env.beating(DEVICES):
        wait_until(lambda: all_online(env, DEVICES), 20)
        b.start()
        wait_until(lambda: b.node in {owner_of(env, "x%d" % k) for k in range(99)}, 20, "the second to own some")
        unknown = [x for x in DEVICES if x not in known(b)]
        assert len(unknown) == len(DEVICES) - FEW
        wait_until(lambda: all(owner_of(env, x) == a.node for x in unknown), 20, "the first to own them")
        throughout(lambda: all(owner_of(env, x) == a.node for x in unknown), 3)
        for x in a, b:
            assert x.get("/readyz").status == 200 and x.status()["unjudged"] == 0
        assert "differs" in a.ctl("nodes").stdout
        more = ["new%d" % k for k in range(10)]
        with env.beating(more):
            wait_until(lambda: all_online(env, more), 20, "new devices, too, wherever they belong")
            throughout(lambda: not offline(env), 2)
    wait_until(lambda: offline(env) == sorted(DEVICES + more), 15, "all deaths: %s" % offline(env))
    limit(b, 1000)
    assert b.ctl("reload").returncode == 0
    wait_until(lambda: known(b) == set(DEVICES + more), 10, "the second to know all")
    wait_until(lambda: b.node in {owner_of(env, x) for x in unknown}, 20, "the second to own some of them")
    assert len(env.events()) == 2 * len(DEVICES + more)


def test_the_node_with_room_is_killed(env):
    """The other node owns all partitions, and reports the devices for which it has no room."""
    a, b = pair(env, FEW, 1000)
    a.start()
    with env.beating(DEVICES):
        wait_until(lambda: all_online(env, DEVICES), 20)
        b.start()
        a.signal(signal.SIGKILL)
        a.wait()
        wait_until(lambda: all(owner_of(env, x) == b.node for x in DEVICES), 20)
        wait_until(lambda: b.status()["unjudged"] == len(DEVICES) - FEW, 10, b.status())
        assert "no room for %d devices" % (len(DEVICES) - FEW) in b.get("/readyz").body.decode()
        wait_until(lambda: "unjudged" in b.ctl("nodes").stdout, 5)
        a.start()
        wait_until(lambda: b.status()["unjudged"] == 0, 20)
        wait_until(lambda: b.get("/readyz").status == 200, 5)
    wait_until(lambda: offline(env) == sorted(DEVICES), 15, "all deaths: %s" % offline(env))


@pytest.mark.parametrize("how", ["reload", "forget"])
def test_one_monitor_without_room(env, how):
    d = env.configure(timeout="1s")
    d.start()
    with env.beating(DEVICES):
        wait_until(lambda: all_online(env, DEVICES), 20)
        d.stop()
        limit(d, FEW)
        d.start()
        missing = len(DEVICES) - FEW
        wait_until(lambda: d.status()["unjudged"] == missing, 10, d.status())
        assert d.status()["left_out"] == missing
        assert d.get("/readyz").status == 503 and "no room for %d devices" % missing in d.get("/readyz").body.decode()
        assert "no room" in d.ctl("status").stdout and "no room for %d of them" % missing in d.log()
        if how == "reload":
            limit(d, 1000)
            assert d.ctl("reload").returncode == 0
            wait_until(lambda: d.status()["unjudged"] == 0, 10, d.status())
            assert d.get("/readyz").status == 200
            throughout(lambda: not offline(env), 2, "no device is called offline: %s" % offline(env))
    if how == "reload":
        wait_until(lambda: offline(env) == sorted(DEVICES), 10, "all deaths: %s" % offline(env))
        return
    wait_until(lambda: len(offline(env)) == FEW, 10)
    for x in list(known(d)):
        assert d.ctl("forget", x).returncode == 0
    wait_until(lambda: len(offline(env)) == 2 * FEW, 45, "as many of the others as there is room for")
    wait_until(lambda: d.status()["unjudged"] == missing - FEW, 5, d.status())


def test_a_standby_with_room_gets_the_fleet(env):
    """The standby with room gets the fleet, and a node without enough room does not get it back."""
    a, b = pair(env, FEW, 1000, "standby")
    b.start(seeing=False)
    wait_until(lambda: owner_of(env, "x") == b.node, 20)
    with env.beating(DEVICES):
        wait_until(lambda: b.status()["devices"] == FEW, 20)
        limit(b, 1000)
        assert b.ctl("reload").returncode == 0
        wait_until(lambda: all_online(env, DEVICES), 20)
        b.stop()
        limit(b, FEW)
        b.start(seeing=False)
        wait_until(lambda: owner_of(env, "x") == b.node and b.status()["unjudged"] == len(DEVICES) - FEW, 20)
        a.start(seeing=False)
        wait_until(lambda: owner_of(env, "x") == a.node, 20, "the one with room to own the fleet")
        throughout(lambda: owner_of(env, "x") == a.node, 8)
        throughout(lambda: not offline(env), 1, "no device is called offline: %s" % offline(env))
    wait_until(lambda: offline(env) == sorted(DEVICES), 15, "all deaths: %s" % offline(env))
