# SPDX-License-Identifier: MIT
"""What other clients may write in the place of nodes: presences of unknown nodes, impossible epochs, meaningless records. None
of them keeps a mirror from reporting a death."""
import json
import time

import pytest

from hw_nodes import PARTITIONS, Mirror, Told
from hw_wait import wait_until

GREATEST = 2**63 - 1
DAY = 86400
HERD = 30


@pytest.fixture
def make(env):
    """make(n, before=...): a Mirror of n nodes that share all partitions, a herd that beats, and the reports about it."""
    made = []

    def build(n, before=None, **options):
        m = Mirror(env, n, **options)
        if before:
            before()
        m.start()
        h = m.herd(HERD)
        made.append((m, h))
        h.__enter__()
        h.revive()
        wait_until(lambda: all(map(h.heard, h.beasts)), what="the herd to beat")
        t = Told(m, h)
        t.agree()
        return m, h, t
    yield build
    for m, h in made:
        h.stop()
        m.close()


def presence(env, node, epoch, publisher=None):
    """A retained presence: `node` claims everything with this epoch."""
    text = {"time": 1, "online": True, "blind": False, "by": node, "seq": 1, "cluster": "heartwheel", "state": "ready",
            "claims": "0-255:%d" % epoch}
    (publisher or env.publisher).publish("heartwheel/%s/status" % node, json.dumps(text), 1, True)


def known(env, node, epoch, publisher=None):
    text = {"by": node, "seq": 1, "cluster": "heartwheel", "known": "0-255:%d:zz" % epoch}
    (publisher or env.publisher).publish("heartwheel/%s/known" % node, json.dumps(text), 1, True)


def tells_of_deaths(m, h, t):
    """One device of each node stops and returns, and both transitions are reported."""
    victims = [m.owned_by(d, h.beasts)[0] for d in m.nodes]
    h.kill(*victims)
    t.wait()
    h.revive(*victims)
    t.wait()
    t.agree()
    for d in m.nodes:
        assert d.get("/readyz").status == 200, d.get("/readyz").body


def refused(d, kind):
    return d.metrics().get("refused_total", kind=kind)


def test_an_epoch_that_cannot_be(env, make):
    """An impossible epoch, published by a stranger or a node, or written in Redis, is ignored, also after a restart."""
    m, h, t = make(2)
    a, b = m.nodes
    known(env, "ghost", GREATEST)
    presence(env, "ghost", GREATEST)
    wait_until(lambda: all(refused(d, "stranger") >= 2 for d in m.nodes), what="the stranger's words to be counted")
    tells_of_deaths(m, h, t)
    for epoch in GREATEST, int(time.time()) + DAY + 3600:
        known(env, a.node, epoch)
        wait_until(lambda: all(refused(d, "epoch") > 0 for d in m.nodes), what="the epoch to be counted")
        tells_of_deaths(m, h, t)
    env.redis.hset(env.key("owners"), mapping={p: "%d zz -" % (GREATEST if p % 2 else 10**12) for p in range(PARTITIONS)})
    wait_until(lambda: m.is_shared(m.nodes), what="the owners to be written again")
    tells_of_deaths(m, h, t)
    b.stop()
    a.stop()
    env.redis.hset(env.key("owners"), mapping={p: "%d zz" % GREATEST for p in range(PARTITIONS)})
    known(env, a.node, GREATEST)
    known(env, b.node, GREATEST)
    m.start()
    tells_of_deaths(m, h, t)
    now = time.time()
    assert all(int(r.split(" ")[0]) <= now + 60 for r in env.redis.hgetall(env.key("owners")).values())
    assert "ghost" in a.log() and "is not a member of the nodes" in a.log()


def test_strangers_do_not_count(env, make):
    """1,500 retained presences of strangers before the nodes start, and 70 that claim everything, with smaller and with greater
    epochs than the nodes."""
    def before():
        publisher = env.client()
        for k in range(1500):
            known(env, "pod-%d" % k, int(time.time()) - 1000, publisher)
            presence(env, "pod-%d" % k, int(time.time()) - 1000, publisher)
    m, h, t = make(2, before)
    tells_of_deaths(m, h, t)
    for k in range(70):
        presence(env, "late-%d" % k, int(time.time()) + DAY - 3600)
        known(env, "late-%d" % k, int(time.time()) + DAY - 3600)
    wait_until(lambda: all(refused(d, "stranger") >= 3140 for d in m.nodes), what="all to be counted")
    tells_of_deaths(m, h, t)
    env.broker.kill()  # the nodes connect anew; what was retained is gone with it
    env.broker.start()
    wait_until(lambda: all(d.metrics().get("reconnects_total", link="reader") > 0 for d in m.nodes), what="new connections")
    m.wait_seeing(m.nodes)
    before()
    wait_until(lambda: all(map(h.heard, h.beasts)), what="the herd to beat")
    tells_of_deaths(m, h, t)
    for d in m.nodes:
        assert "evict" not in d.log() and d.metrics().get("evictions_total") == 0
        said = [l for l in d.log().splitlines() if "is not a member of the nodes" in l]
        assert 1 <= len(said) <= 12, said


def test_partitions_without_an_owner(env):
    """A node that has just started, and may not take over what another node owned."""
    m = Mirror(env, 1, lease=10)
    d = m.nodes[0].start(seeing=False)
    wait_until(lambda: b"partitions have no owner" in d.get("/readyz").body, what="that nobody owns them")
    assert d.get("/readyz").status == 503
    m.wait_seeing(m.nodes)
    m.wait_shared()
    wait_until(lambda: d.get("/readyz").status == 200)
    m.close()
