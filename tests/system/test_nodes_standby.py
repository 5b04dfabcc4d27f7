# SPDX-License-Identifier: MIT
"""Nodes one of which hears the fleet while the others stand by: no device that beats is called offline, whatever happens to the
owner; each death is reported once, by the owner at that time; and the standbys cost the broker nothing and name the owner."""
import json
import os
import signal
import time

import pytest

from hw_nodes import PARTITIONS, Standby, Told
from hw_wait import in_time, pass_time, throughout, wait_until

HERD = 40
BROKER = {"settings": ["max_queued_messages 100000", "max_inflight_messages 1000", "set_tcp_nodelay true",
                       "log_type subscribe", "log_type unsubscribe"]}


@pytest.fixture
def make(env):
    """make(n, ...): a Standby of n nodes one of which owns the fleet, a herd that beats, and the reports about it."""
    made = []

    def build(n=2, herd=HERD, interval=0.25, **options):
        m = Standby(env, n, broker=BROKER, **options)
        m.start()
        m.wait_calm()
        h = m.herd(herd, interval=interval)
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


def parts(m):
    """The owner of the fleet, and the other nodes."""
    head = m.head()
    return head, [d for d in m.nodes if d is not head]


def die_and_return(h, t, *devices):
    h.kill(*devices)
    t.wait()
    h.revive(*devices)
    t.wait()


def all_in_time(m, t, more=0.0):
    """No death was reported later than the contract allows: T + start + grace + timeout after its own timeout."""
    in_time(t.latest(), m.takeover() + m.timeout + more, "a death that was told late")


def subscribed(env, node):
    """The filters that a node's readers have subscribed to since they last connected, by the broker's log."""
    have = set()
    for line in env.broker.log().splitlines():
        words = line.split()
        if "heartwheel-%s-r0" % node in line and (" as heartwheel-%s-r0" % node in line or "disconnected" in line):
            have.clear()
        elif len(words) == 4 and words[1] == "heartwheel-%s-r0" % node:
            have.add(words[3])
        elif len(words) == 3 and words[1] == "heartwheel-%s-r0" % node:
            have.discard(words[2])
    return have


def of_the_fleet(env, node):
    return {f for f in subscribed(env, node) if not f.startswith("heartwheel/")}


def stands_by(m, d, head):
    """Whether the node reports that it stands by."""
    c = d.status()["cluster"]
    return c["standing_by"] and c["owner"] == head.node


# --- who has it, and what the others say


@pytest.mark.parametrize("n", [2, 3])
def test_one_has_the_fleet(env, make, n):
    m, h, t = make(n)
    head, others = parts(m)
    assert of_the_fleet(env, head.node), subscribed(env, head.node)
    for d in others:
        assert subscribed(env, d.node) >= {"heartwheel/+/status", "heartwheel/+/known"}
        assert not of_the_fleet(env, d.node), "it hears the fleet: %s" % subscribed(env, d.node)
        assert d.metrics().get("heartbeats_total", group="default") == 0
    die_and_return(h, t, "d0", "d1", "d2")
    t.agree().agree_all([head])
    assert {e["node"] for entries in t.entries.values() for e in entries} == {head.node}
    for d in others:
        assert d.metrics().get("heartbeats_total", group="default") == 0
    all_in_time(m, t)


def test_what_they_say(env, make):
    m, h, t = make(2)
    head, (other,) = parts(m)
    wait_until(lambda: stands_by(m, other, head))
    for path in "/v1/devices", "/v1/devices/d0", "/v1/groups", "/v1/events", "/v1/transitions", "/v1/samples", "/v1/wheel":
        reply = other.get(path)
        assert reply.status == 503 and json.loads(reply.body)["owner"] == head.node, (path, reply.status, reply.body)
        assert head.node in json.loads(reply.body)["error"]
    assert other.request("DELETE", "/v1/devices/d0").status == 503
    ready = other.get("/readyz")
    assert ready.status == 503 and "standing by: '%s' owns the fleet" % head.node in ready.body.decode()
    assert head.get("/readyz").status == 200
    overview = json.loads(other.get("/v1/overview").body)
    assert overview["groups"] is None and overview["status"]["cluster"]["owner"] == head.node and len(overview["nodes"]["nodes"]) == 2
    for path in "/healthz", "/v1/nodes", "/metrics", "/", "/web/app.js":
        assert other.get(path).status == 200, path
    s = other.status()
    assert s["blind"] is False and s["loading"] is False and s["mqtt"] == "up" and s["redis"] == "up"
    assert s["devices"] is None and s["online"] is None and s["offline"] is None
    assert s["cluster"]["owned"] == 0 and s["cluster"]["unowned"] == 0 and s["cluster"]["state"] == "ready"
    c = head.status()["cluster"]
    assert c["mode"] == "standby" and c["standing_by"] is False and c["owner"] == head.node and c["owned"] == PARTITIONS
    assert other.metrics().get("standing_by") == 1 and head.metrics().get("standing_by") == 0
    for cause in "link", "barrier", "standstill":
        assert other.metrics().get("blind", cause=cause) == 0
        assert other.metrics().get("blind_seconds_total", cause=cause) == 0
    presence = env.retained("heartwheel/%s/status" % other.node).popitem()[1].json()
    assert presence["online"] is True and presence["blind"] is False and presence["claims"] == ""
    shown = other.ctl("status")
    assert shown.returncode == 0 and "standing by" in shown.stdout and head.node in shown.stdout, shown.stdout
    assert "online" not in shown.stdout and "watching" not in shown.stdout, shown.stdout
    refused = other.ctl("list")
    assert refused.returncode == 1 and head.node in refused.stderr
    assert other.ctl("nodes").stdout.count(" ready ") == 2
    assert other.request("POST", "/v1/reload").status == 200 and head.request("POST", "/v1/reload").status == 200
    since = other.log().rpartition("stands by again")[2]  # on a busy machine it may have had the fleet before the other started
    assert "heartbeats arrive again" not in since and "heartbeats arrive again" in head.log()
    assert head.forget("d0").status == 204


def test_calm(env, make):
    """The fleet does not move while nothing happens."""
    m, h, t = make(2)
    before = env.redis.hgetall(env.key("owners"))
    throughout(lambda: env.redis.hgetall(env.key("owners")) == before, 3 * m.lease)
    t.agree()


# --- the one that has it is lost


@pytest.mark.parametrize("n", [2, 3])
def test_it_is_killed(env, make, n):
    m, h, t = make(n)
    head, others = parts(m)
    h.kill("d0")
    t.wait()
    h.kill("d1")
    pass_time(0.5 * m.timeout)
    crashed = time.monotonic()
    m.crash(head)
    h.kill("d2")
    h.revive("d0")
    m.wait_shared(others)
    new = m.head(others)
    blind = new.metrics().get("blind_seconds_total", cause="link")
    assert 0 < blind < time.monotonic() - crashed, "while it stood by it was not blind"
    assert of_the_fleet(env, new.node)
    t.wait()
    for d in others:
        assert bool(of_the_fleet(env, d.node)) == (d is new)
    h.revive("d1", "d2")
    t.agree().agree_all([new])
    head.start(seeing=False)
    m.wait_calm()
    die_and_return(h, t, "d3", "d4")
    t.agree().agree_all([m.head()])
    all_in_time(m, t)


def test_it_stands_still_for_longer_than_its_lease(env, make):
    """When the suspended owner resumes, it publishes nothing about the fleet, unloads it, and stands by in the same process."""
    m, h, t = make(2)
    head, (other,) = parts(m)
    pid = head.proc.pid
    h.kill("d0")
    pass_time(0.5 * m.timeout)
    m.crash(head, signal.SIGSTOP)
    h.kill("d1")
    m.wait_shared([other])
    t.wait()
    h.revive("d0")
    t.wait()
    epoch = int(t.entries["d0"][-1]["epoch"])
    h.kill("d2")
    head.signal(signal.SIGCONT)
    wait_until(lambda: "stands by again" in head.log(), what="it to stand by again")
    m.wait_calm()
    assert head.alive and head.proc.pid == pid
    t.wait()
    assert int(t.entries["d2"][-1]["epoch"]) >= epoch
    h.revive("d1", "d2")
    t.agree().agree_all([m.head()])
    head, (other,) = parts(m)
    wait_until(lambda: stands_by(m, other, head))
    assert not of_the_fleet(env, other.node)
    assert other.get("/v1/devices").status == 503
    all_in_time(m, t)


def threads(d):
    return os.listdir("/proc/%d/task" % d.proc.pid)


def test_it_is_stuck_in_a_connect(env, make):
    """The broker cannot be reached, and no error arrives. The pending connect could succeed later, under the client ids of the
    successor: the node waits for the connect's end, and its loop does not."""
    m, h, t = make(2, cuttable=True)
    head, (other,) = parts(m)
    way, = m.from_broker(head)
    way.swallow()
    wait_until(lambda: "stands by again" in head.log(), what="it to stand by again")
    throughout(lambda: head.get("/healthz").status == 200 and head.log().count("joined cluster") == 1, 4, "it to wait")
    before = len(env.broker.log())
    way.mend()
    wait_until(lambda: head.log().count("joined cluster") == 2, what="it to be made anew")
    wait_until(lambda: stands_by(m, head, m.head([other])), what="it to stand by")
    wait_until(lambda: len(threads(head)) == len(threads(other)), what="each thread that was stuck to have ended")
    assert "%s-r0 already connected" % head.node not in env.broker.log()[before:]
    t.agree().agree_all([other])


@pytest.mark.parametrize("silently", [True, False], ids=["silently", "closed"])
def test_it_is_cut_from_redis(env, make, silently):
    m, h, t = make(2, cuttable=True)
    head, (other,) = parts(m)
    for r in m.from_redis(head):
        r.cut(silently)
    h.kill("d0")
    m.wait_shared([other])
    t.wait()
    wait_until(lambda: not of_the_fleet(env, head.node), what="it to hear the fleet no more")
    for r in m.from_redis(head):
        r.mend()
    m.wait_calm()
    die_and_return(h, t, "d1")
    h.revive("d0")
    t.agree().agree_all([m.head()])
    all_in_time(m, t)


@pytest.mark.parametrize("silently", [True, False], ids=["silently", "closed"])
def test_it_is_cut_from_the_broker(env, make, silently):
    m, h, t = make(2, cuttable=True, mqtt={"barrier_timeout": "1s"})
    head, (other,) = parts(m)
    for r in m.from_broker(head):
        r.cut(silently)
    h.kill("d0")
    wait_until(lambda: m.is_shared([other]), what="the other to have it")
    t.wait()
    for r in m.from_broker(head):
        r.mend()
    m.wait_shared()
    die_and_return(h, t, "d1")
    h.revive("d0")
    t.agree().agree_all([m.head()])
    all_in_time(m, t, m.lease + 1)


@pytest.mark.parametrize("lease", [1.0, 5.0])
@pytest.mark.parametrize("stuck", [False, True], ids=["silent", "stuck"])
def test_its_way_to_the_broker_is_silent(env, make, lease, stuck):
    """Its connections to the broker stay open and carry nothing, and no keepalive ends them soon. It releases the fleet after a
    lease of blindness and does not claim it again, although it is the preferred owner; also not while it waits for its threads,
    which are stuck in a connect."""
    m, h, t = make(2, lease=lease, cuttable=True, mqtt={"keepalive": "60s"})
    head, (other,) = parts(m)
    way, = m.from_broker(head)
    if stuck:
        way.swallow(end=False)
    else:
        way.cut()
    began = time.monotonic()
    h.kill("d0")
    wait_until(lambda: m.members()[head.node]["state"] == "blind", 5, "it to say that it is blind")
    wait_until(lambda: "receives no heartbeats" in other.get("/readyz").body.decode(), what="the other to say so")
    wait_until(lambda: m.is_shared([other]), 60, "the other to have it")
    in_time(time.monotonic() - began, lease + 2.5, "a takeover from a silent owner")
    t.wait()
    before = env.redis.hgetall(env.key("owners"))
    throughout(lambda: env.redis.hgetall(env.key("owners")) == before, 2 * m.lease, "the other to keep it")
    way.mend()
    m.wait_shared()
    die_and_return(h, t, "d1")
    h.revive("d0")
    t.agree().agree_all([m.head()])


def test_the_way_of_one_that_stands_by_is_silent(env, make):
    """A standby whose link to the broker is silent is not ready, so it does not get the fleet, and says so; a broker that
    stands still for both nodes moves nothing."""
    m, h, t = make(2, cuttable=True, mqtt={"keepalive": "60s"})
    head, (other,) = parts(m)
    for d in other, head:
        way, = m.from_broker(d)
        way.cut()
        if d is other:
            wait_until(lambda: m.members()[other.node]["state"] == "blind", what="it to be ready no more")
            assert "cannot take over" in other.ctl("status").stdout
    before = env.redis.hgetall(env.key("owners"))
    throughout(lambda: env.redis.hgetall(env.key("owners")) == before, 4 * m.lease, "nothing to move")
    for d in m.nodes:
        m.from_broker(d)[0].mend()
    m.wait_shared()
    assert "has lost" not in head.log()
    die_and_return(h, t, "d1")
    t.agree()


def test_it_is_stopped(env, make):
    """The fleet of the stopped owner belongs to another node at once, which begins as after a start."""
    m, h, t = make(2)
    head, (other,) = parts(m)
    h.kill("d0")
    head.stop()
    h.kill("d1")
    m.wait_shared([other])
    t.wait()
    h.revive("d0", "d1")
    t.agree().agree_all([other])
    all_in_time(m, t)


def test_a_stop_is_quick(env, make):
    m, h, t = make(2)
    head, (other,) = parts(m)
    head.stop()
    in_time(wait_until_timed(lambda: m.is_shared([other])), 1.0, "a handover")


def wait_until_timed(predicate):
    began = time.monotonic()
    wait_until(predicate, interval=0.02)
    return time.monotonic() - began


def test_rolling_restart(env, make):
    m, h, t = make(3)
    for k, d in enumerate(m.nodes):
        victims = ["d%d" % i for i in range(4 * k, 4 * k + 4)]
        h.kill(*victims[:2])
        d.stop()
        h.kill(*victims[2:])
        d.start(seeing=False)
        m.wait_shared()
        t.wait()
        h.revive(*victims)
    m.wait_calm()
    t.agree().agree_all([m.head()])


def test_the_broker_is_restarted(env, make):
    """The owner keeps the fleet: no other node would see sooner."""
    m, h, t = make(2, lease=1.0, mqtt={"reconnect_grace": "3s"})
    before = env.redis.hgetall(env.key("owners"))
    t.hear()
    env.broker.stop()
    pass_time(0.3)
    env.broker.start()
    m.wait_shared()
    assert env.redis.hgetall(env.key("owners")) == before
    t.newest.clear()
    t.agree().agree_all([m.head()])
    die_and_return(h, t, "d0", "d1")
    t.agree()


def test_who_cannot_hear_it_leaves_it_to_others(env, make):
    """The broker disconnects the preferred node when it subscribes to the fleet: this node does not take the fleet again and
    again."""
    m, h, t = make(2, cuttable=True)
    head, (other,) = parts(m)
    way, = m.from_broker(head)
    way.refused = b"/+/heartbeat"
    way.drop()
    wait_until(lambda: "an hour" in head.log(), 60, "it to leave the fleet to the other")
    wait_until(lambda: m.is_shared([other]), what="the other to have it")
    before = env.redis.hgetall(env.key("owners"))
    throughout(lambda: env.redis.hgetall(env.key("owners")) == before, 4 * m.lease)
    assert m.members()[head.node]["state"] == "blind" and m.members()[other.node]["state"] == "ready"
    other.stop()
    wait_until(lambda: m.is_shared([head]), what="it to have it, since there is no other")


def test_who_gets_no_barrier_back_does_not_take_it(env, make):
    """The preferred node may not read its own barriers, so it would judge no device: it does not take the fleet."""
    m, h, t = make(2, mqtt={"barrier_timeout": "500ms"})
    head, (other,) = parts(m)
    env.broker.acl = "topic readwrite #\ntopic deny heartwheel/%s/barrier\n" % head.node
    env.broker.stop()
    t.newest.clear()
    env.broker.start()
    wait_until(lambda: m.is_shared([other]), 60, "the other to have it")
    before = env.redis.hgetall(env.key("owners"))
    throughout(lambda: env.redis.hgetall(env.key("owners")) == before, 4 * m.lease)
    assert m.members()[head.node]["state"] == "blind" and m.members()[other.node]["state"] == "ready"
    other.stop()
    throughout(lambda: not m.is_shared([head]), 4 * m.lease, "nobody to have it")
    assert "no barrier comes back" in head.ctl("status").stdout
    assert head.metrics().get("partitions_unowned") == PARTITIONS


def test_redis_is_away(env, make):
    """The owner of the fleet continues by MQTT; the others stand by. Redis comes back empty: the known devices are written
    again."""
    m, h, t = make(2)
    h.kill("d9")
    t.wait()
    head, (other,) = parts(m)
    env.redis_server.stop()
    start = len(t.observer.messages)
    h.kill("d0")
    wait_until(lambda: [x for x in t.observer.on(env.status_topic("d0"), start) if x.json().get("online") is False],
               what="d0 to be told")
    assert other.get("/v1/devices").status == 503
    wait_until(lambda: other.status()["cluster"]["state"] == "lapsed", what="its lease to be over")
    wait_until(lambda: time.time() * 1000 - (head.status()["cluster"]["as_of_ms"] or time.time() * 1000) > 1000 * m.lease)
    assert head.status()["cluster"]["state"] == "ready" and "Redis is out of reach" not in str(head.get("/readyz").body)
    env.redis_server.start()
    m.wait_shared()
    wait_until(lambda: not t.differences(), what="all to be there again")
    assert {e["id"] for e in env.events() if e["state"] == "offline"} <= {"d0", "d9"}
    assert m.head() is head and "stands by again" not in head.log()


def test_redis_returns_empty_while_the_broker_is_away(env, make):
    """The owner is blind for longer than its lease, and nobody else hears the fleet: it keeps its devices, and writes them
    again. A device that is offline sends nothing, so no other node could know it."""
    m, h, t = make(2, lease=1.0, mqtt={"reconnect_grace": "1s"})
    h.kill("d9")
    t.wait()
    t.hear()
    env.broker.stop()
    pass_time(2)
    env.redis_server.stop()
    env.redis_server.start()
    pass_time(2)
    env.broker.start()
    m.wait_shared()
    wait_until(lambda: env.in_store("d9") == "offline", 20, "the device that sends nothing to be known again")


def test_what_was_seen_is_counted_from_who_had_it_last(env, make):
    """Redis has the last heartbeat as of the last refresh, which may be a timeout ago, and no node heard the device after the
    owner died: neither is silence. The devices beat just within their timeout."""
    m, h, t = make(2, lease=2.0, interval=1.2)
    head, (other,) = parts(m)
    m.crash(head)
    m.wait_shared([other])
    throughout(lambda: not [e for e in t.read().entries.values() if e[-1]["state"] == "offline"], 2 * m.timeout)
    t.agree()
