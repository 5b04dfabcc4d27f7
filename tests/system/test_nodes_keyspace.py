# SPDX-License-Identifier: MIT
"""Several nodes, and devices that only write to Redis: each node listens, the owner acts. A node's own write is no sign of life
to the other nodes; no device whose key exists is called offline, whichever node dies; each end of a key is reported once."""
import signal

import pytest

from hw_keyspace import OFF, ON, connected, wait_edges
from hw_nodes import Mirror, partition
from hw_sentinel import PATIENCE, Guarded
from hw_wait import throughout, wait_until

KEYS = {"enabled": "yes", "configure": "yes"}


@pytest.fixture
def mirror(env):
    """mirror(...): two nodes that listen, or the given nodes to start."""
    made = []

    def build(start=None, **options):
        m = Mirror(env, 2, timeout=1.0, keyspace=KEYS, **options)
        made.append(m)
        first = m.nodes[:start]
        m.start(first)
        for d in first:
            wait_listening(d)
        return m
    yield build
    for m in made:
        m.close()


def wait_listening(d):
    wait_until(lambda: d.metrics().get("keyspace_up") == 1 and d.metrics().get("keyspace_resyncs_total") >= 1,
               what="%s to listen" % d.node)


def of(m, node, n, tag):
    """Up to `n` device ids in this node's partitions."""
    owners = m.owners()
    return [i for i in ("%s%d" % (tag, k) for k in range(9999)) if owners.get(partition(i)) == node.node][:n]


def reconnects(d):
    return d.metrics().get("reconnects_total", link="keyspace")


def make_deaf(env, d):
    """Suspends the node and ends all keyspace subscriptions: those of the other nodes as well, which reconnect."""
    subscribed = [c["id"] for c in env.redis.client_list(_type="pubsub")]
    d.signal(signal.SIGSTOP)
    for c in subscribed:
        env.redis.client_kill_filter(_id=c)


def wait_listening_again(d):
    wait_until(lambda: reconnects(d) >= 1 and d.metrics().get("keyspace_up") == 1, what="%s to listen again" % d.node)


def put(env, ids, seconds=600):
    for i in ids:
        env.redis.setex(connected(env, i), seconds, "written by a gateway")


def known(d, i, state):
    """The device as this node knows it."""
    said = d.device(i) or {}
    return said.get("state") == state and said.get("source") == "key"


def wait_known(env, m, ids, state, nodes=None):
    for d in nodes or m.nodes:
        for i in ids:
            try:
                wait_until(lambda d=d, i=i: known(d, i, state))
            except AssertionError:
                raise AssertionError("%s: %s, and not %s; stream: %s; store: %s" % (
                    d.node, d.device(i), state, env.events(i), env.hash(i))) from None


def test_what_a_node_writes_is_no_touch(env, mirror):
    """A device that beats over MQTT does not count as known by a key, neither on its owner nor on another node."""
    m = mirror()
    with m.herd(24) as h:
        h.revive()
        wait_until(lambda: all(env.edges(i) == [ON] for i in h.beasts), what="the herd")
        dead = ["d%d" % k for k in range(8)]
        h.kill(*dead)
        for i in dead:
            wait_edges(env, i, 2)
        h.revive(*dead)
        for i in dead:
            wait_edges(env, i, 3)
        # Keys are refreshed meanwhile, each more than once.
        for d in m.nodes:
            wait_until(lambda d=d: all(d.device(i) for i in h.beasts), what="%s to know the herd" % d.node)
        throughout(lambda: all(d.device(i)["source"] == "mqtt" for d in m.nodes for i in list(h.beasts)[::4]), 2.5)
        for d in m.nodes:
            assert {d.device(i)["source"] for i in h.beasts} == {"mqtt"}
        for i in h.beasts:
            assert env.edges(i) == [ON, ("offline", "timeout"), ON][:3 if i in dead else 1]
            assert env.hash(i)["source"] == "mqtt"


def test_each_end_of_a_key_is_told_once(env, mirror):
    m = mirror()
    ids = sum((of(m, d, 4, "k") for d in m.nodes), [])
    put(env, ids)
    wait_known(env, m, ids, "online")
    for k, i in enumerate(ids):
        if k % 2:
            env.redis.delete(connected(env, i))
        else:
            env.redis.pexpire(connected(env, i), 300)
    wait_known(env, m, ids, "offline")
    put(env, ids)
    wait_known(env, m, ids, "online")
    for i in ids:
        assert env.edges(i) == [ON, OFF, ON]
        assert env.redis.get(connected(env, i)) == "written by a gateway"


def test_the_owner_is_killed(env, mirror):
    """Keys that live longer than the timeout, keys that end while no node decides, and a key that is written then."""
    m = mirror()
    a, b = m.nodes
    live, end = of(m, a, 6, "live"), of(m, a, 6, "end")
    late, = of(m, a, 1, "late")
    put(env, live + end)
    wait_known(env, m, live + end, "online")
    m.crash(a)
    for i in end[:3]:
        env.redis.delete(connected(env, i))
    for i in end[3:]:
        env.redis.pexpire(connected(env, i), 200)
    put(env, [late])
    for i in end:
        assert wait_edges(env, i, 2) == [ON, OFF]
    assert wait_edges(env, late, 1) == [ON]
    throughout(lambda: all(env.edges(i) == [ON] for i in live), 2 * m.timeout)
    for i in live + [late]:
        assert env.redis.get(connected(env, i)) == "written by a gateway"  # nobody took it for a key of a node's own
        env.redis.delete(connected(env, i))
        assert wait_edges(env, i, 2) == [ON, OFF]


def test_one_that_joins_knows_them(env, mirror):
    m = mirror(start=1)
    a, b = m.nodes
    ids = ["k%d" % k for k in range(12)]
    put(env, ids)
    wait_known(env, m, ids, "online", [a])
    m.start([b])
    wait_listening(b)
    m.wait_shared()
    wait_known(env, m, ids, "online", [b])
    m.crash(a)
    m.wait_shared([b])
    throughout(lambda: all(env.edges(i) == [ON] for i in ids), 2 * m.timeout)
    for i in ids:
        env.redis.delete(connected(env, i))
        assert wait_edges(env, i, 2) == [ON, OFF]


def test_one_that_did_not_listen_knows_it_from_its_hash(env, mirror):
    """The node reads of the device in the stream, which does not say that the device has a key; later no silence takes the
    device offline."""
    m = mirror(lease=5.0)  # for which nobody stands still here
    a, b = m.nodes
    i, = of(m, a, 1, "k")
    make_deaf(env, b)
    wait_listening_again(a)
    put(env, [i])
    wait_known(env, m, [i], "online", [a])
    b.signal(signal.SIGCONT)
    wait_listening_again(b)
    wait_known(env, m, [i], "online", [b])
    a.stop()
    m.wait_shared([b])
    throughout(lambda: env.edges(i) == [ON], 2 * m.timeout)
    assert env.redis.get(connected(env, i)) == "written by a gateway"


def test_a_key_that_came_while_nobody_listened(env, mirror):
    """The next owner finds the key."""
    m = mirror()
    a, b = m.nodes
    i, = of(m, a, 1, "k")
    make_deaf(env, b)
    m.crash(a)
    put(env, [i])
    b.signal(signal.SIGCONT)
    assert wait_edges(env, i, 1) == [ON]
    wait_known(env, m, [i], "online", [b])


def test_redis_fails_over(env, mirror):
    m = mirror(guarded=Guarded(env).start())
    ids = sum((of(m, d, 4, "k") for d in m.nodes), [])
    put(env, ids)
    wait_known(env, m, ids, "online")
    old = m.guarded.settled()
    old.signal(signal.SIGKILL)
    m.guarded.master(but=old)
    m.wait_shared(patience=PATIENCE)
    for d in m.nodes:
        wait_until(lambda d=d: d.metrics().get("keyspace_up") == 1, PATIENCE, "%s to listen" % d.node)
    throughout(lambda: all(env.edges(i) == [ON] for i in ids), 2 * m.timeout)
    for i in ids:
        env.redis.delete(connected(env, i))
        assert wait_edges(env, i, 2) == [ON, OFF]
