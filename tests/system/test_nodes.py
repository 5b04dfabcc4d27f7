# SPDX-License-Identifier: MIT
"""Several nodes that mirror one another: no device that beats is called offline, whatever happens to a node, to its connections
to Redis or the broker, or to these servers; each death and each return is reported exactly once, in time; in the end the
stream, Redis, the retained statuses and every node's API are true."""
import json
import signal

import pytest

from hw_nodes import PARTITIONS, Mirror, Told, devices_of, partition
from hw_wait import in_time, pass_time, throughout, wait_until
from test_stream import Events

HERD = 60


@pytest.fixture
def make(env):
    """make(n, ...): a Mirror of n nodes that run and share all partitions, a herd that beats, and the reports about it."""
    made = []

    def build(n=2, herd=HERD, calm=False, **options):
        m = Mirror(env, n, **options)
        m.start()
        if calm:
            m.wait_calm()
        h = m.herd(herd)
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


def some(devices, n):
    assert len(devices) >= n, "too few devices: %s" % devices
    return devices[:n]


def die_and_return(h, t, *devices):
    """Each of these devices stops and returns; each transition is reported once."""
    h.kill(*devices)
    t.wait()
    h.revive(*devices)
    t.wait()


def all_in_time(m, t, more=0.0):
    """No death was reported later than the contract allows. A new owner that began to see only lately needs one timeout
    more."""
    in_time(t.latest(), m.takeover() + m.timeout + more, "a death that was told late")


# --- what is shared, and told


@pytest.mark.parametrize("n", [2, 3])
def test_they_share_the_fleet(env, make, n):
    m, h, t = make(n, calm=True)
    members = m.members()
    for d in m.nodes:
        said = members[d.node]
        assert said["mode"] == "mirror" and said["state"] == "ready"
    assert set(m.owners()) == set(range(PARTITIONS))
    counts = {k: v["count"] for k, v in members.items()}
    wait_until(lambda: all(v["count"] > counts[k] for k, v in m.members().items()), what="renewals")
    victims = [m.owned_by(d, h.beasts)[0] for d in m.nodes]
    die_and_return(h, t, *victims)
    t.agree().agree_all(m.nodes)
    owners = m.owners()
    for d in h.beasts:
        node = owners[partition(d)]
        assert {e["node"] for e in t.entries[d]} == {node}
        assert env.hash(d)["node"] == node and int(env.hash(d)["epoch"]) == int(t.entries[d][-1]["epoch"])
        status = env.retained(env.status_topic(d))[env.status_topic(d)].payload.decode()
        assert status.index('"epoch":') < status.index('"seq":') and json.loads(status)["by"] == node


def test_a_client_of_the_stream_resumes_anywhere(env, make):
    m, h, t = make(2)
    die_and_return(h, t, "d0", "d1", "d2", "d3")
    entries = [e for e, _ in env.redis.xrange(env.key("events"))]
    for d in m.nodes:
        stream = Events(d, last=entries[5])
        wait_until(lambda: len(stream.events) >= len(entries) - 6, what="the rest of the stream")
        assert [e["id"] for e in stream.events] == entries[6:]
        stream.close()


def test_calm(env, make):
    """No partition moves while nothing happens."""
    m, h, t = make(2, calm=True)
    before = env.redis.hgetall(env.key("owners"))
    throughout(lambda: env.redis.hgetall(env.key("owners")) == before, 3 * m.lease)
    t.agree()


# --- a node is lost


@pytest.mark.parametrize("n", [2, 3])
def test_an_owner_is_killed(env, make, n):
    """One of its devices stops with the owner, one just before, one after; one returns meanwhile."""
    m, h, t = make(n)
    lost, left = m.nodes[0], m.nodes[1:]
    before, back, along, after, other = some(m.owned_by(lost, h.beasts), 4) + some(m.owned_by(left[0], h.beasts), 1)
    h.kill(back)
    t.wait()
    h.kill(before)
    pass_time(0.6 * m.timeout)
    m.crash(lost)
    h.kill(along, other)
    h.revive(back)
    pass_time(0.3)
    h.kill(after)
    t.wait()
    late = max(map(t.late, (before, along, after, other)))
    m.wait_shared(left)
    h.revive(before, along, after, other)
    t.agree().agree_all(left)
    assert {e["node"] for d in (before, along, after) for e in t.entries[d][-2:]} <= {d.node for d in left}
    topic = "heartwheel/%s/status" % lost.node
    wait_until(lambda: env.retained(topic)[topic].json()["online"] is False, what="its presence to be offline")
    in_time(late, m.takeover(), "a death that was told late")


def test_all_but_one_are_killed_and_come_back(env, make):
    m, h, t = make(3)
    for d in m.nodes[:2]:
        m.crash(d)
    die_and_return(h, t, "d0", "d1", "d2", "d3")
    for d in m.nodes[:2]:
        d.start()
    m.wait_shared()
    die_and_return(h, t, "d0", "d1", "d2", "d3")
    t.agree().agree_all(m.nodes)
    all_in_time(m, t)


def test_an_owner_stands_still_for_longer_than_its_lease(env, make):
    m, h, t = make(2)
    still, left = m.nodes
    mine = some(m.owned_by(still, h.beasts), 3)
    h.kill(mine[0])
    pass_time(0.5 * m.timeout)
    m.crash(still, signal.SIGSTOP)
    h.kill(mine[1])
    m.wait_shared([left])
    t.wait()
    h.revive(mine[0])
    t.wait()
    still.signal(signal.SIGCONT)
    m.wait_shared()
    die_and_return(h, t, mine[2])
    h.revive(mine[1])
    t.agree().agree_all(m.nodes)
    all_in_time(m, t)


def test_an_owner_stands_still_for_less_than_its_lease(env, make):
    m, h, t = make(2, lease=5.0, calm=True)
    before = env.redis.hgetall(env.key("owners"))
    m.crash(m.nodes[0], signal.SIGSTOP)
    pass_time(1.0)
    m.nodes[0].signal(signal.SIGCONT)
    pass_time(1.0)
    assert env.redis.hgetall(env.key("owners")) == before
    die_and_return(h, t, "d0", "d1", "d2", "d3")
    t.agree().agree_all(m.nodes)


def test_a_clean_stop(env, make):
    """The other node owns the partitions of the stopped one, and publishes no status again that was acknowledged."""
    m, h, t = make(2)
    gone, left = m.nodes
    t.observer.fence()
    t.hear()
    heard = {d: len(s) for d, s in t.statuses.items()}
    gone.stop()
    m.wait_shared([left])
    t.observer.fence()
    t.hear()
    assert {d: len(s) for d, s in t.statuses.items()} == heard
    die_and_return(h, t, "d0", "d1", "d2", "d3")
    t.agree().agree_all([left])


def test_a_clean_stop_is_quick(env, make):
    m, h, t = make(2)
    gone, left = m.nodes
    gone.stop()
    in_time(m.wait_shared([left]), 1.0, "a handover")


def test_rolling_restart(env, make):
    m, h, t = make(3)
    for k, d in enumerate(m.nodes):
        victims = ["d%d" % i for i in range(4 * k, 4 * k + 4)]
        h.kill(*victims[:2])
        d.stop()
        h.kill(*victims[2:])
        d.start()
        m.wait_shared()
        t.wait()
        h.revive(*victims)
    t.agree().agree_all(m.nodes)
    all_in_time(m, t)


def test_a_third_joins_while_many_die(env, make):
    m, h, t = make(2)
    third = m.add(env.node + "-c")
    h.kill(*["d%d" % k for k in range(HERD // 2)])
    third.start(seeing=False)
    m.wait_shared()
    t.wait()
    h.revive()
    t.agree().agree_all(m.nodes)
    all_in_time(m, t)


def test_who_stops_before_all_is_told_again_owes_it(env, make):
    """The killed owner may have had any status pending, so its successor publishes all of them again. If the successor stops
    before that is done, it says so, and the next owner publishes them."""
    m = Mirror(env, 3)
    second, third = m.nodes[1:]
    slow = second.conf.read_text().replace("[mqtt]", "[mqtt]\nrepublish_rate = 1")
    second.rewrite(slow)
    m.start()
    h = m.herd(4 * HERD)
    with h:
        h.revive()
        t = Told(m, h)
        t.agree()
        theirs = set(m.owned_by(m.nodes[0], h.beasts))
        m.crash(m.nodes[0])
        wait_until(lambda: m.is_shared([second, third]), what="the others to own all")
        lost = some(sorted(theirs & set(m.owned_by(second, h.beasts))), 12)
        topics = [env.status_topic(d) for d in lost]

        def missing():
            have = env.retained(env.root + "/+/status")
            return [x for x in topics if not (x in have and have[x].payload)]
        for x in topics:
            env.publisher.publish(x, b"", qos=1, retain=True)
        wait_until(lambda: len(missing()) >= 10, what="statuses to be gone")
        second.stop()
        m.wait_shared([third])
        wait_until(lambda: not missing(), what="all statuses to be there again")
        t.agree()
    m.close()


def test_who_hands_over_before_all_is_told_again_owes_it(env, make):
    """The same for a successor that hands over while it publishes: the next owner publishes what it has not reached."""
    m = Mirror(env)
    first, second = m.nodes
    second.rewrite(second.conf.read_text().replace("[mqtt]", "[mqtt]\nrepublish_rate = 1"))
    m.start()
    h = m.herd(2 * HERD)
    with h:
        h.revive()
        t = Told(m, h)
        t.agree()
        topics = [env.status_topic(d) for d in some(m.owned_by(first, h.beasts), 30)]

        def missing():
            have = env.retained(env.root + "/+/status")
            return [x for x in topics if not (x in have and have[x].payload)]
        m.crash(first)
        wait_until(lambda: m.is_shared([second]), what="the other to own all")
        for x in topics:
            env.publisher.publish(x, b"", qos=1, retain=True)
        wait_until(lambda: len(missing()) >= 20, what="statuses to be gone")
        first.start(seeing=False)
        m.wait_shared([first, second])
        wait_until(lambda: not missing(), what="all statuses to be there again")
        t.agree()
    m.close()


# --- links


@pytest.mark.parametrize("silently", [True, False], ids=["silently", "closed"])
def test_an_owner_is_cut_from_redis(env, make, silently):
    m, h, t = make(2, cuttable=True)
    cut, left = m.nodes
    mine = some(m.owned_by(cut, h.beasts), 3)
    h.kill(mine[0])
    for r in m.from_redis(cut):
        r.cut(silently)
    h.kill(mine[1])
    m.wait_shared([left])
    t.wait()
    h.revive(mine[0])
    t.wait()
    for r in m.from_redis(cut):
        r.mend()
    m.wait_shared()
    h.revive(mine[1])
    die_and_return(h, t, mine[2])
    t.agree().agree_all(m.nodes)
    all_in_time(m, t)


def test_what_the_broker_tells_of_a_newer_owner_is_counted(env, make):
    """A node that is cut off from Redis reads in its successor's presence that it owns nothing any more."""
    m, h, t = make(2, calm=True, cuttable=True)
    cut, left = m.nodes

    def fenced(by):
        return cut.metrics().get("fenced_total", by=by)
    before = {by: fenced(by) for by in ("broker", "redis")}
    for r in m.from_redis(cut):
        r.cut()
    owned = cut.metrics().get("partitions_owned")
    assert owned > 0
    m.wait_shared([left])
    wait_until(lambda: cut.metrics().get("partitions_owned") == 0, what="the one that is cut off to own nothing")
    assert {by: fenced(by) - n for by, n in before.items()} == {"broker": owned, "redis": 0}
    for r in m.from_redis(cut):
        r.mend()
    m.wait_shared()
    t.agree()


@pytest.mark.parametrize("silently", [True, False], ids=["silently", "closed"])
def test_an_owner_is_cut_from_the_broker(env, make, silently):
    m, h, t = make(2, cuttable=True, mqtt={"barrier_timeout": "1s"})
    cut, left = m.nodes
    mine = some(m.owned_by(cut, h.beasts), 3)
    h.kill(mine[0])
    for r in m.from_broker(cut):
        r.cut(silently)
    h.kill(mine[1])
    wait_until(lambda: m.is_shared([left]), what="its partitions to be the other's")
    t.wait()
    h.revive(mine[0])
    t.wait()
    for r in m.from_broker(cut):
        r.mend()
    m.wait_shared()
    h.revive(mine[1])
    die_and_return(h, t, mine[2])
    t.agree().agree_all(m.nodes)
    all_in_time(m, t, m.lease + 1)


def test_an_owner_is_cut_from_both(env, make):
    m, h, t = make(2, cuttable=True)
    cut, left = m.nodes
    mine = some(m.owned_by(cut, h.beasts), 2)
    h.kill(mine[0])
    for r in m.from_broker(cut) + m.from_redis(cut):
        r.cut()
    h.kill(mine[1])
    m.wait_shared([left])
    t.wait()
    h.revive(mine[0])
    t.wait()
    for r in m.from_broker(cut) + m.from_redis(cut):
        r.mend()
    m.wait_shared()
    h.revive(mine[1])
    t.agree().agree_all(m.nodes)
    all_in_time(m, t, m.lease + 1)


def test_the_broker_is_restarted(env, make):
    """The broker has lost what was retained. All nodes are blind: no partition moves, and every status is published again."""
    m, h, t = make(2, lease=10.0, calm=True)  # one that is blind for longer than another hands over
    before = m.owners()
    t.hear()
    env.broker.stop()
    pass_time(0.5)
    env.broker.start()
    for d in m.nodes:
        d.wait_seeing()
    m.wait_shared()
    assert m.owners() == before
    t.newest.clear()
    t.agree().agree_all(m.nodes)
    die_and_return(h, t, "d0", "d1", "d2", "d3")
    t.agree()


# --- Redis


def test_redis_is_flushed(env, make):
    """The stream is lost; the true state is written again, and no device was called offline."""
    m, h, t = make(2)
    h.kill("d0", "d1", "d2", "d3")
    t.wait()
    env.redis.flushall()
    m.wait_shared()
    wait_until(lambda: not t.differences(), what="all to be there again")
    dead = {"d0", "d1", "d2", "d3"}  # what is written anew has an entry in the new stream
    offline = [e for e in env.events() if e["state"] == "offline" and e["id"] not in dead]
    assert not offline, "FALSE OFFLINE: %s" % offline
    for d in m.nodes:
        wait_until(lambda d=d: {x["id"]: x["state"] for x in devices_of(d)} == {n: t.truth(n)[-1] for n in h.beasts},
                   what="%s to know all devices" % d.node)
    h.revive("d0", "d1", "d2", "d3")
    h.kill("d4")
    wait_until(lambda: env.edges("d4")[-1:] == [("offline", "timeout")], what="d4 to be told")
    wait_until(lambda: not t.differences(), what="all to be as it is")
    assert {e["id"] for e in env.events() if e["state"] == "offline"} == dead | {"d4"}
    assert all(len([e for e in env.events() if e["id"] == d and e["state"] == "offline"]) == 1 for d in dead)


def test_redis_is_restarted_and_empty(env, make):
    """While Redis is away a death is published by MQTT."""
    m, h, t = make(2)
    env.redis_server.stop()
    start = len(t.observer.messages)
    h.kill("d0", "d1")
    for d in "d0", "d1":
        wait_until(lambda: [x for x in t.observer.on(env.status_topic(d), start) if x.json().get("online") is False],
                   what="%s to be told" % d)
    env.redis_server.start()
    m.wait_shared()
    wait_until(lambda: not t.differences(), what="all to be there again")
    assert {e["id"] for e in env.events() if e["state"] == "offline"} <= {"d0", "d1"}
    t.hear()
    for d, told in t.statuses.items():
        assert d in ("d0", "d1") or all(j["online"] for _, j in told), "FALSE OFFLINE: %s" % d


def test_a_lease_is_changed_on_one_node_first(env, make):
    """The node renews less often than the other one checks: it stays a member all the same."""
    m, h, t = make(2)
    a, b = m.nodes
    b.stop()
    m.lease = 8.0
    b.rewrite(b.conf.read_text().replace("lease = 1000ms", "lease = 8000ms"))
    b.start(seeing=False)
    m.wait_shared()
    throughout(lambda: set(m.members()) == {a.node, b.node}, 3.5, "both to stay")
    assert "not renewed its entry" not in a.log() + b.log()
    die_and_return(h, t, "d0", "d1")
    t.agree_all(m.nodes)


# --- who may not be there


def test_a_name_that_is_in_use(env, make):
    m, h, t = make(2)
    twin = env.configure(node=m.nodes[0].node, **m.configuration(m.nodes[0].node))
    members = m.members()
    twin.start(seeing=False, ready=False)
    assert twin.wait(20) == 1
    said = [l for l in twin.log().splitlines() if m.nodes[0].node in l]
    assert said, twin.log()
    assert {k: v["run"] for k, v in m.members().items()} == {k: v["run"] for k, v in members.items()}
    die_and_return(h, t, "d0", "d1", "d2", "d3")
    t.agree().agree_all(m.nodes)
    mark = env.redis.get(env.key("monitor", m.nodes[0].node))
    wait_until(lambda: env.redis.get(env.key("monitor", m.nodes[0].node)) != mark, what="the mark to go on")
    assert "another run of this monitor has written" not in m.nodes[0].log()


def test_one_without_cluster_beside_those_with_it(env, make):
    m, h, t = make(2)
    conf = m.configuration("single")
    conf.pop("cluster")
    single = env.configure(node="single", **conf)
    single.start(seeing=False, ready=False)
    assert single.wait(20) != 0
    assert "[cluster]" in single.log(), single.log()
    t.agree().agree_all(m.nodes)
    for d in m.nodes:
        d.stop()
    single.start()  # nobody is left
    single.stop()
