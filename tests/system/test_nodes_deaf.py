# SPDX-License-Identifier: MIT
"""Nodes one of which does not hear a group, because the broker denies it the right to read: a node that hears the group gets
its devices. If no node hears it, no partition moves and no device is called offline."""
import os
import signal

import pytest

from hw_env import NO_STALL, NO_STANDSTILL
from hw_mqtt import Beating
from hw_wait import pass_time, throughout, wait_until
from test_nodes_groups import all_online, offline, owner_of, owned_times

DEVICES = ["d%02d" % k for k in range(24)]
USERS = "node-a", "node-b"


def acl(deaf=()):
    lines = ["user fleet", "topic readwrite #"]
    for user in USERS:
        lines += ["user " + user, "topic readwrite heartwheel/#", "topic write nodes/+/status",
                  "topic write nodes/+/heartbeat", "topic read up/#"]
        if user not in deaf:
            lines.append("topic read nodes/+/heartbeat")
    return "\n".join(lines) + "\n"


class Nodes:
    def __init__(self, env, mode, rights=None, room=None, **group):
        """`rights`: the broker's ACL. `room`: max_devices by user."""
        self.env, env.root = env, "nodes"
        self.room = room or {}
        self.broker = env.own_broker(users={u: u for u in ("fleet", *USERS)}, acl=rights or acl())
        self.client = env.client(username="fleet", password="fleet")
        self.all = [self.node(u, mode, group) for u in USERS]
        for d in self.all:
            d.start(seeing=False)
        wait_until(lambda: len(self.owners()) == (1 if mode == "standby" else 2), 20, "all to be owned")
        self.beats = {d: Beating(self.client, [env.topic(d)], 0.3) for d in DEVICES}

    def node(self, user, mode, group):
        password = self.env.dir / user
        password.write_text(user)
        os.chmod(password, 0o600)
        d = self.env.configure(node="%s-%s" % (self.env.node, user), timeout="1500ms",
                               monitor={"node_id": "%s-%s" % (self.env.node, user), **NO_STALL,
                                        **({"max_devices": self.room[user]} if user in self.room else {})},
                               group={"heartbeat": "nodes/{id}/heartbeat", **group},
                               cluster={"mode": mode, "lease": "1s"},
                               mqtt={"username": user, "password_file": password, "protocol": "5", **NO_STANDSTILL})
        return d

    def __enter__(self):
        for b in self.beats.values():
            b.__enter__()
        wait_until(lambda: all_online(self.env, DEVICES), 30, "all to be online")
        return self

    def __exit__(self, *args):
        for b in self.beats.values():
            b.__exit__(*args)

    def stop(self, devices):
        for d in devices:
            self.beats.pop(d).__exit__(None, None, None)

    def owners(self):
        return {o for o in map(lambda k: owner_of(self.env, "x%d" % k), range(400)) if o}

    def owner_by_device(self):
        return [owner_of(self.env, d) for d in DEVICES]

    def deafen(self, *users):
        (self.broker.dir / "acl").write_text(acl(users))
        self.broker.signal(signal.SIGHUP)

    def of(self, node_id):
        return next(d for d in self.all if d.node == node_id)


@pytest.mark.parametrize("mode", ["mirror", "standby"])
def test_a_node_that_hears_the_group_gets_its_devices(env, mode):
    with Nodes(env, mode) as n:
        lost = n.of(owner_of(env, DEVICES[0]))
        other = next(d for d in n.all if d is not lost)
        n.deafen(USERS[n.all.index(lost)])
        wait_until(lambda: set(n.owner_by_device()) == {other.node}, 30, "the other to own the devices")
        throughout(lambda: set(n.owner_by_device()) == {other.node}, 3)
        assert not offline(env)
        n.stop(DEVICES[:6])
        wait_until(lambda: offline(env) == DEVICES[:6], 15, "the deaths: %s" % offline(env))
        for d in DEVICES[:3]:
            n.beats[d] = Beating(n.client, [env.topic(d)], 0.3)
            n.beats[d].__enter__()
        new = Beating(n.client, [env.topic("new%d" % k) for k in range(8)], 0.3)
        with new:
            wait_until(lambda: all_online(env, DEVICES[:3] + ["new%d" % k for k in range(8)]), 15,
                       "devices that return, and new ones, also where the deaf node was the owner")
        if mode == "mirror":
            n.deafen()
            wait_until(lambda: set(n.owner_by_device()) == {d.node for d in n.all}, 30, "both to own some again")


@pytest.mark.parametrize("mode", ["mirror", "standby"])
def test_a_group_that_no_node_hears_stays_where_it_is(env, mode):
    with Nodes(env, mode) as n:
        before, times = n.owner_by_device(), owned_times(*n.all)
        n.deafen(*USERS)
        if mode == "mirror":
            wait_until(lambda: all(d.status()["blind_cause"] == "deaf" for d in n.all), 30)
            throughout(lambda: n.owner_by_device() == before, 10, "nothing moves")
        else:
            wait_until(lambda: n.owner_by_device() != before, 30, "the other to be tried")
            now = n.of(owner_of(env, DEVICES[0]))
            wait_until(lambda: now.status()["blind_cause"] == "deaf", 30, "the other to be deaf, too")
            throughout(lambda: n.owner_by_device()[0] == now.node, 12, "the fleet stays")
            assert sum(owned_times(*n.all)) == sum(times) + 1
        assert not offline(env)


def test_a_node_without_the_message_of_while(env):
    """One node may not read the topic of `while`, so the group is blind on this node alone."""
    with Nodes(env, "mirror", **{"while": "up/state 1"}) as n:
        n.client.publish("up/state", "0", retain=True)
        wait_until(lambda: all(d.status()["blind_cause"] == "upstream" for d in n.all), 15)
        before = n.owner_by_device()
        throughout(lambda: n.owner_by_device() == before, 6, "nothing moves while no node can judge")
        lost, other = n.all
        (n.broker.dir / "acl").write_text(acl().replace("topic read up/#\n", "", 1))
        n.broker.signal(signal.SIGHUP)
        pass_time(1)  # the broker reads the file
        n.client.publish("up/state", "1", retain=True)
        wait_until(lambda: other.status()["blind"] is False, 15)
        wait_until(lambda: set(n.owner_by_device()) == {other.node}, 20, "the other to own the devices")
        n.stop(DEVICES[:6])
        wait_until(lambda: offline(env) == DEVICES[:6], 15, "the deaths: %s" % offline(env))


def test_a_node_that_never_had_the_value_of_while_takes_nothing(env):
    """The other node knows that the upstream is down. Its devices stay where they are, and online."""
    rights = "".join(acl().rsplit("topic read up/#\n", 1))  # the last user is the second node
    with Nodes(env, "mirror", rights=rights, **{"while": "up/state 1"}) as n:
        knows = n.all[0]
        n.client.publish("up/state", "0", retain=True)
        wait_until(lambda: knows.status()["blind_cause"] == "upstream", 15)
        before = n.owner_by_device()
        kept = [d for d, owner in zip(DEVICES, before) if owner == knows.node]
        assert kept
        n.stop(list(n.beats))
        wait_until(lambda: len(offline(env)) == len(DEVICES) - len(kept), 15, "the other node's own devices to be offline")
        throughout(lambda: n.owner_by_device() == before and not set(offline(env)) & set(kept), 8, "nothing moves")


def test_a_deaf_owner_keeps_the_fleet_if_the_other_node_has_no_room(env):
    """Otherwise the fleet would go back and forth: one node does not hear it, the other one has no room for it."""
    with Nodes(env, "standby", room={USERS[1]: len(DEVICES) // 2}) as n:
        if n.owner_by_device()[0] != n.all[0].node:
            n.all[1].stop()
            wait_until(lambda: n.owner_by_device()[0] == n.all[0].node, 20, "the node with room to own the fleet")
            n.all[1].start(seeing=False)
            wait_until(lambda: n.all[1].get("/readyz").status == 200, 20)
        wait_until(lambda: all_online(env, DEVICES), 30)
        times = owned_times(*n.all)
        n.deafen(USERS[0])
        wait_until(lambda: n.all[0].status()["blind_cause"] == "deaf", 30)
        throughout(lambda: n.owner_by_device()[0] == n.all[0].node, 12, "the fleet stays")
        assert owned_times(*n.all) == times and not offline(env)


def test_unknown_ids_that_have_no_room_anywhere_change_nothing(env):
    """Both tables are full, and strangers publish as unknown devices in every partition. A deaf node still hands its devices
    over."""
    with Nodes(env, "mirror", room=dict.fromkeys(USERS, len(DEVICES))) as n:
        for k in range(1500):
            n.client.publish(env.topic("stranger%d" % k), "{}")
        wait_until(lambda: all(d.metrics().get("refused_total", kind="max_devices") >= 1500 for d in n.all), 30,
                   "the strangers to be refused")
        lost = n.of(owner_of(env, DEVICES[0]))
        other = next(d for d in n.all if d is not lost)
        n.deafen(USERS[n.all.index(lost)])
        wait_until(lambda: set(n.owner_by_device()) == {other.node}, 30, "the other to own the devices")
        n.stop(DEVICES[:6])
        wait_until(lambda: offline(env) == DEVICES[:6], 15, "the deaths: %s" % offline(env))
