# SPDX-License-Identifier: MIT
"""What a node of a mirror does with Redis and with itself, that is not seen from the fleet: its rights, the clients of its
event stream, words that were refused."""
import json
import re
import signal

import pytest

import hw_nodes
from hw_wait import throughout, wait_until
from test_acl import REDIS_ACL, guarded_redis, secret
from test_stream import Events

REFUSED = "ACL", "LOG"


@pytest.fixture
def pair(env):
    m = hw_nodes.Mirror(env, 2, timeout=1.0)
    m.start()
    yield m
    m.close()


def device_of(m, node, tag="x"):
    """A device that the node owns."""
    return m.owned_by(node, ["%s%d" % (tag, k) for k in range(64)])[0]


def test_the_rights_that_the_acl_names(env):
    """With what the shipped file says for a mirror put behind its user, Redis refuses nothing."""
    guarded_redis(env)
    more = re.search(r"mode = mirror: (.*)", REDIS_ACL).group(1).split()
    env.redis.execute_command("ACL", "SETUSER", "heartwheel", *[w.replace("device:", "device:") for w in more])
    d = env.daemon(timeout="500ms", cluster={"mode": "mirror", "lease": "1s"},
                   redis={"username": "heartwheel", "password_file": secret(env, "heartwheel")})
    wait_until(lambda: env.redis.hlen("device:owners") == hw_nodes.PARTITIONS, 10, "the partitions to be claimed")
    observer = env.observer()
    env.beat("x")
    env.wait_status(observer, "x", False)
    d.forget("x")
    wait_until(lambda: d.device("x") is None)
    d.stop()
    assert not env.redis.execute_command(*REFUSED)
    assert not env.redis.hgetall("device:nodes")


def test_the_events_are_the_same_on_each_node(env, pair):
    """Each node tells each transition once, with the same place; and a client resumes on the other node."""
    a, b = pair.nodes
    streams = [Events(d) for d in (a, b)]
    mine = [device_of(pair, a), device_of(pair, b)]
    for i in mine:
        env.beat(i)

    def told(s):
        return [(e["id"], json.loads(e["data"])["id"], json.loads(e["data"])["state"]) for e in s.events]
    wait_until(lambda: all(len(told(s)) == 4 for s in streams), 10, "two lives and two deaths on each")
    assert told(streams[0]) == told(streams[1])
    throughout(lambda: len(told(streams[0])) == 4, 0.5, "nothing is told twice")


def test_a_word_that_was_refused_is_taken_back(env, pair):
    """A node that lost its partition while it stood still decided about it in between: Redis refuses that, and it reads
    again what is so."""
    a, b = pair.nodes
    i = device_of(pair, a)
    env.beat(i)
    wait_until(lambda: env.in_store(i) == "online")
    with env.beating([i], 0.2):
        a.signal(signal.SIGSTOP)
        wait_until(lambda: pair.owner(i) is b, 10, "the other to take over")
        a.signal(signal.SIGCONT)
        wait_until(lambda: pair.members().get(a.node, {}).get("state") == "ready", 15, "it to be a member again")
        pair.wait_calm()
        assert {a.state(i), b.state(i)} == {"online"}
        assert [e["state"] for _, e in env.events() if e["id"] == i] == ["online"]
    wait_until(lambda: a.state(i) == b.state(i) == "offline", 10, "its death on both")
    seqs = {d.device(i)["seq"] for d in (a, b)}
    assert len(seqs) == 1 and int(env.hash(i)["seq"]) in seqs
