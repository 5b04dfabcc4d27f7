# SPDX-License-Identifier: MIT
"""Gateways with children, from the broker to the message: mosquitto, heartwheeld, Redis and heartwheel-alert. A gateway that
stops causes one message about itself and its children, in any order of the deadlines, and one message at the end."""
import random
import signal
import time

import pytest

from hw_alert import Alert, Inbox
from hw_env import NO_STALL, NO_STANDSTILL
from hw_herd import Herd
from hw_wait import pass_time, throughout, wait_until

GATEWAYS = ("ga", "gb", "gc")
GROUPS = {"fast": "1500ms", "mid": "3s", "slow": "4500ms"}  # of the children; a gateway has 3 s
CHILDREN = {g: ["%s-%s%d" % (g, name, k) for name in GROUPS for k in range(2)] for g in GATEWAYS}


class Plant:
    """The servers, the devices (all of them beat), and the messages that the receiver got."""

    def __init__(self, env, n_alerts=1, gateways=None, own_broker=False, **children):
        self.env, self.inbox = env, Inbox(env)
        if own_broker:
            env.own_broker()
        status = env.root + "/told/{id}"
        groups = [("gateways", {"heartbeat": env.root + "/gw/{id}/up", "status": status, "timeout": "3s", **(gateways or {})})]
        groups += [(name, {"heartbeat": env.root + "/%s/{gw}/{id}/up" % name, "status": status, "timeout": timeout,
                           "parent": "{gw}", **children}) for name, timeout in GROUPS.items()]
        self.daemon = env.daemon(monitor=NO_STALL, mqtt=NO_STANDSTILL, groups=groups)
        self.alerts = [Alert(env, "alert-%s" % "ab"[k] if n_alerts > 1 else None, {"ops": self.inbox.receiver()})
                       for k in range(n_alerts)]
        self.alert = self.alerts[0].start()
        for a in self.alerts[1:]:
            a.start(ready=False)
        self.herd = Herd(env.broker.port, self.topic, [*GATEWAYS, *sum(CHILDREN.values(), [])], interval=0.25)
        env.gaps.append(self.herd.gaps)
        self.herd.thread.start()
        self.herd.revive()
        self.wait_online(*self.herd.beasts)
        pass_time(0.6)  # each has sent since its gateway came online: otherwise the cause stays open for a minute

    def topic(self, name):
        if name in GATEWAYS:
            return "%s/gw/%s/up" % (self.env.root, name)
        gateway, rest = name.split("-")
        return "%s/%s/%s/%s/up" % (self.env.root, rest.rstrip("0123456789"), gateway, name)

    def beat(self, name, payload=b""):
        self.env.publisher.publish(self.topic(name), payload, 1)

    def wait_online(self, *names):
        wait_until(lambda: not [n for n in names if self.daemon.state(n) != "online"], what="%s to be online" % (names,))

    def wait_offline(self, *names):
        wait_until(lambda: not [n for n in names if self.daemon.state(n) != "offline"], what="%s to be offline" % (names,))

    def stop(self, *names):
        """These devices send no more heartbeats."""
        self.herd.kill(*names)
        self.wait_offline(*names)

    def start(self, *names):
        self.herd.revive(*names)
        self.wait_online(*names)

    def members(self, device):
        """(down, unreachable) of a device's open incident."""
        [i] = [i for i in self.alert.incidents() if i["device"] == device]
        return i["down"], i["unreachable"]


@pytest.fixture
def plant(env):
    made = []

    def make(**options):
        made.append(Plant(env, **options))
        return made[-1]
    yield make
    for p in made:
        p.herd.stop()


def test_gateways_stop_in_any_order(plant):
    """The timeouts of the children end before, with and after that of their gateway; several gateways stop close together."""
    p, rng = plant(), random.Random()
    began = ends = []
    for turn in range(2):
        order = rng.sample(GATEWAYS, len(GATEWAYS))
        for g in order:
            p.herd.kill(*rng.sample([g, *CHILDREN[g]], 7))
            time.sleep(rng.uniform(0, 1))
        p.wait_offline(*p.herd.beasts)
        began = began + [("opened", g) for g in order]
        p.inbox.wait(*began, *ends)
        wait_until(lambda: [p.members(g) for g in order] == [(1, 6)] * 3, what="the children to be behind their gateways")
        for name in rng.sample(sorted(p.herd.beasts), len(p.herd.beasts)):
            p.herd.revive(name)
            time.sleep(rng.uniform(0, 0.1))
        p.wait_online(*p.herd.beasts)
        ends = ends + [("closed", g) for g in order]
        p.inbox.wait(*began, *ends)
    throughout(lambda: len(p.inbox.news()) == 12, 1)
    assert sorted(p.inbox.ids("opened")) == sorted(p.inbox.ids("closed")) and p.alert.incidents() == []


def test_a_child_stops_alone(plant):
    """The gateway was heard after its child stopped: the child has its own incident, and keeps it when the gateway stops
    later."""
    p = plant()
    child = "ga-fast0"
    p.stop(child)
    p.inbox.wait(("opened", child))
    p.stop("ga", *[c for c in CHILDREN["ga"] if c != child])
    p.inbox.wait(("opened", child), ("opened", "ga"))
    p.start("ga", *CHILDREN["ga"])
    p.inbox.wait(("opened", child), ("opened", "ga"), ("closed", child), ("closed", "ga"))


def test_a_gateway_returns_before_its_child_is_offline(plant):
    """A child with a long timeout is called offline after its gateway has returned. It gets the time to settle, although the
    gateway is heard again and again."""
    p, child = plant(), "ga-slow0"
    p.herd.kill("ga", child)
    p.inbox.wait(("opened", "ga"))  # otherwise the incident may end before it is sent
    assert p.daemon.state(child) == "online"
    p.start("ga")
    p.wait_offline(child)
    assert int(p.env.events(child)[-1]["wait_ms"]) > 50000
    throughout(lambda: sorted(p.inbox.news()) == [("closed", "ga"), ("opened", "ga")], 4)
    p.start(child)
    assert p.alert.incidents() == []


def test_take(plant):
    """parent_death = take: when a gateway goes offline, its children do so at once. A child that sends again is online although
    the gateway is not."""
    p = plant(parent_death="take")
    p.herd.kill("ga", *CHILDREN["ga"])
    p.beat("ga", b'{"online":false}')
    p.wait_offline("ga", *CHILDREN["ga"])
    assert [e["reason"] for e in p.env.events("ga-slow0")] == ["heartbeat", "parent"]
    p.inbox.wait(("opened", "ga"))
    p.start("ga-mid0")
    wait_until(lambda: p.members("ga") == (1, 5), what="the child to leave")
    throughout(lambda: p.inbox.news() == [("opened", "ga")], 1)
    p.start("ga", *CHILDREN["ga"])
    p.inbox.wait(("opened", "ga"), ("closed", "ga"))


def test_child_proves(plant):
    """child_proves: a gateway that sends nothing itself is online as long as one of its children sends."""
    p = plant(child_proves="yes")
    p.herd.kill("ga", *CHILDREN["ga"][1:])
    p.wait_offline(*CHILDREN["ga"][1:])
    # The children's own silence is no news of the gateway.
    p.inbox.wait(*[("opened", c) for c in CHILDREN["ga"][1:]])
    throughout(lambda: p.daemon.state("ga") == "online", 2)
    p.stop("ga", CHILDREN["ga"][0])
    p.inbox.wait(*[("opened", c) for c in CHILDREN["ga"][1:]], ("opened", "ga"))
    p.start("ga", *CHILDREN["ga"])
    p.inbox.wait(*[(what, c) for c in CHILDREN["ga"][1:] + ["ga"] for what in ("opened", "closed")])


def test_online_after(plant):
    """The incident ends with the third heartbeat in a row, not with the first."""
    p = plant(gateways={"online_after": 3})
    p.stop("ga", *CHILDREN["ga"])
    p.inbox.wait(("opened", "ga"))
    p.beat("ga")
    throughout(lambda: p.daemon.state("ga") == "offline", 3.5)
    p.beat("ga")
    throughout(lambda: p.inbox.news() == [("opened", "ga")], 0.5)
    p.start("ga", *CHILDREN["ga"])
    p.inbox.wait(("opened", "ga"), ("closed", "ga"))


def test_blindness_in_between(plant):
    """The broker goes away while one gateway is offline and another one stops: blindness neither begins nor ends an
    incident."""
    p = plant(own_broker=True)
    p.stop("ga", *CHILDREN["ga"])
    p.inbox.wait(("opened", "ga"))
    p.env.broker.signal(signal.SIGKILL)
    p.env.broker.wait()
    p.herd.kill("gb", *CHILDREN["gb"])
    wait_until(lambda: p.daemon.status()["blind"], what="blindness")
    throughout(lambda: p.inbox.news() == [("opened", "ga")], 6)
    p.env.broker.start()
    p.daemon.wait_seeing()
    p.wait_offline("gb", *CHILDREN["gb"])
    p.inbox.wait(("opened", "ga"), ("opened", "gb"))
    wait_until(lambda: p.members("gb") == (1, 6) and p.members("ga") == (1, 6))
    p.start("ga", "gb", *CHILDREN["ga"], *CHILDREN["gb"])
    p.inbox.wait(*[(what, g) for what in ("opened", "closed") for g in ("ga", "gb")])


def test_another_instance_takes_over(plant):
    """The working instance is killed while a gateway stops; the instance that took over is killed before the gateway
    returns."""
    p = plant(n_alerts=2)
    a, b = p.alerts
    p.herd.kill("ga", *CHILDREN["ga"])
    a.die()
    a.awaited = True
    p.env.redis.pexpire(p.env.key("alert", "lease"), 50)  # as 30 s would
    p.wait_offline("ga", *CHILDREN["ga"])
    wait_until(b.ready, what="b to take over")
    p.inbox.wait(("opened", "ga"))
    a.start(ready=False)
    p.herd.revive("ga", *CHILDREN["ga"])
    b.die()
    b.awaited = True
    p.env.redis.pexpire(p.env.key("alert", "lease"), 50)
    wait_until(a.ready, what="a to take over")
    p.inbox.wait(("opened", "ga"), ("closed", "ga"))
    assert p.inbox.ids("opened") == p.inbox.ids("closed")
    p.stop("gb", *CHILDREN["gb"])
    p.inbox.wait(("opened", "ga"), ("closed", "ga"), ("opened", "gb"))
    assert [i["device"] for i in a.incidents()] == ["gb"]
