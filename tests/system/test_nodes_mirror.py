# SPDX-License-Identifier: MIT
"""A pair of nodes: one is killed, stopped or suspended, and the other goes on; both report the same events."""
import binascii
import json
import re
import signal

import pytest

from hw_wait import throughout, wait_until
from test_acl import secret
from test_nodes_fence import Way
from test_stream import Events

PARTITIONS = 256
CLUSTER = "[cluster]\nmode = mirror\nlease = 1s\n"


def partition(device):
    return binascii.crc_hqx(device.encode(), 0) % 16384 // 64


def node(env, name, **options):
    """A node that is not started yet."""
    d = env.configure(node=name, monitor={"node_id": name}, **options)
    d.rewrite(d.conf.read_text() + CLUSTER)
    return d


class Pair:
    """Two nodes. `of`: further sections of one node's configuration."""

    def __init__(self, env, of=None, **options):
        self.env = env
        self.nodes = [node(env, "%s-%s" % (env.node, k), **options, **(of or {}).get(k, {})) for k in "ab"]
        for d in self.nodes:
            d.start(seeing=False)
        for d in self.nodes:
            d.wait_seeing()
        self.wait_settled(self.nodes)

    def members(self):
        """{NODE_ID: the member's state}"""
        found = self.env.redis.hgetall(self.env.key("nodes"))
        return {k: json.loads(v.split(" ", 2)[2])["state"] for k, v in found.items()}

    def owners(self):
        """{partition: (owner, epoch)}, without released partitions."""
        found = self.env.redis.hgetall(self.env.key("owners"))
        return {int(p): tuple(r.split(" ")) for p, r in found.items() if r.count(" ") == 1}

    def owner(self, device):
        return self.owners().get(partition(device), (0, None))[1]

    def wait_settled(self, nodes, patience=20):
        """These nodes are the members, all ready; each owns a part, together they own everything, and no partition moves for a
        second."""
        names, seen = {d.node: "ready" for d in nodes}, []

        def look():
            seen.append(self.owners())
            del seen[:-60]
            last = seen[-1]
            return (self.members() == names and len(last) == PARTITIONS and {n for _, n in last.values()} == set(names)
                    and len(seen) == 60 and all(o == last for o in seen))
        wait_until(look, patience, "%s to share everything: %s" % (sorted(names), self.members()), interval=0.02)

    def wait_owned_by(self, d):
        def look():
            owners = self.owners()
            return len(owners) == PARTITIONS and {n for _, n in owners.values()} == {d.node}
        wait_until(look, what="%s to own all" % d.node)

    def device_of(self, d, tag="x"):
        """A device that this node owns."""
        return next(i for i in ("%s%d" % (tag, k) for k in range(999)) if self.owner(i) == d.node)


@pytest.fixture
def pair(env):
    return Pair(env)


def states(env, device):
    return [e["state"] for e in env.events(device)]


def test_a_dead_node_is_followed_by_the_other(env, pair):
    a, b = pair.nodes
    i, quiet = pair.device_of(a), pair.device_of(a, "q")
    with env.beating([i], 0.2):
        env.beat(quiet)
        wait_until(lambda: env.in_store(i) == env.in_store(quiet) == "online")
        epoch = int(pair.owners()[partition(i)][0])
        a.signal(signal.SIGKILL)
        a.wait()
        wait_until(lambda: states(env, quiet) == ["online", "offline"], 10, "its death to be told by the other")
        pair.wait_settled([b])
        assert int(pair.owners()[partition(i)][0]) > epoch
        a.start()
        pair.wait_settled([a, b])
        assert states(env, i) == ["online"] and states(env, quiet) == ["online", "offline"]
    wait_until(lambda: a.state(i) == b.state(i) == "offline", 10, "a death on both")


def test_a_clean_stop_leaves_nothing(env, pair):
    a, b = pair.nodes
    i = pair.device_of(a)
    with env.beating([i], 0.2):
        wait_until(lambda: env.in_store(i) == "online")
        a.stop()
        assert a.node not in pair.members() and a.node not in {n for _, n in pair.owners().values()}
        assert "'%s' has left" % a.node in wait_until(lambda: "has left" in b.log() and b.log(), 5)
        pair.wait_settled([b])
        assert states(env, i) == ["online"]
    wait_until(lambda: states(env, i) == ["online", "offline"], 10)


def test_the_events_are_the_same_on_each_node(env, pair):
    """Each node sends each transition once, with the same offset; a client resumes on the other node."""
    a, b = pair.nodes
    streams = [Events(d) for d in (a, b)]
    mine = [pair.device_of(a), pair.device_of(b)]
    for i in mine:
        env.beat(i)

    def told(s):
        return [(e["id"], json.loads(e["data"])["id"], json.loads(e["data"])["state"]) for e in s.events]
    wait_until(lambda: all(len(told(s)) == 4 for s in streams), 10, "two lives and two deaths on each")
    assert told(streams[0]) == told(streams[1])
    throughout(lambda: len(told(streams[0])) == 4, 0.5, "nothing is told twice")


def test_who_stood_still_for_longer_than_its_lease(env, pair):
    """When the node resumes it owns nothing: whatever it decides before it knows is refused, and it reads the present state
    again."""
    a, b = pair.nodes
    i = pair.device_of(a)
    env.beat(i)
    wait_until(lambda: env.in_store(i) == "online")
    with env.beating([i], 0.2):
        a.signal(signal.SIGSTOP)
        wait_until(lambda: pair.owner(i) == b.node, 10, "the other to take over")
        a.signal(signal.SIGCONT)
        pair.wait_settled([a, b])
        assert {a.state(i), b.state(i)} == {"online"} and states(env, i) == ["online"]
    wait_until(lambda: a.state(i) == b.state(i) == "offline", 10, "its death on both")
    seqs = {d.device(i)["seq"] for d in (a, b)}
    assert seqs == {int(env.hash(i)["seq"])} and states(env, i) == ["online", "offline"]


def test_who_finds_its_name_taken_ends(env):
    """The node was suspended, and meanwhile another machine has taken its name. Both are connected with the same client ids: if
    the first one stayed, they would disconnect each other for ever, and nothing would be published."""
    env.own_redis()
    first, second = (node(env, env.node) for _ in range(2))
    first.start()
    run = env.redis.hget(env.key("nodes"), env.node).split(" ")[0]
    first.signal(signal.SIGSTOP)
    second.start(seeing=False)
    wait_until(lambda: (env.redis.hget(env.key("nodes"), env.node) or run).split(" ")[0] != run, 20, "the name to be taken")
    second.wait_seeing()
    first.signal(signal.SIGCONT)
    assert first.wait(20) == 1 and "another node runs with the name" in first.log()
    env.beat("d")
    with env.beating(["d"], 0.2):
        wait_until(lambda: env.retained(env.status_topic("d")), 20, "a status by the other")
    assert second.alive and "another node runs" not in second.log()


def test_the_stream_ends_before_the_place_of_a_claim(env):
    """The new owner must follow the stream to its end at the time of the claim. A stream that has lost that offset (a failover,
    a deletion) may not get an entry there for as long as no node decides."""
    env.own_redis()
    way = Way(env.redis_server.port)
    pair = Pair(env, of={"b": {"redis": {"port": way.port}}})
    a, b = pair.nodes
    i = pair.device_of(a)
    with env.beating([i], 0.2):
        wait_until(lambda: env.in_store(i) == b.state(i) == "online")  # it has read that in the stream
        way.word = re.compile(rb"XRANGE\r\n\$\d+\r\n[^\r]*:events\r")
        wait_until(way.caught.is_set, what="the other to wait for what is new in the stream")
        env.redis.xadd(env.key("events"), {"id": "ghost"})
        a.signal(signal.SIGKILL)
        a.wait()
        wait_until(lambda: pair.owner(i) == b.node, 10, "the other to take over")
        env.redis.delete(env.key("events"))
        way.let_go.set()
    wait_until(lambda: env.in_store(i) == "offline", 15, "its death to be found by the new owner")
    way.close()


def test_the_stream_is_lost_before_anything_of_it_was_read(env):
    """The same for a node that has not read an entry yet: there is no offset that it could miss."""
    env.own_redis()
    way = Way(env.redis_server.port)
    pair = Pair(env, of={"b": {"redis": {"port": way.port}}})
    a, b = pair.nodes
    i = pair.device_of(a)
    way.word = re.compile(rb"XRANGE\r\n\$\d+\r\n[^\r]*:events\r")
    wait_until(way.caught.is_set, what="the other to wait for what is new in the stream")
    with env.beating([i], 0.2):
        wait_until(lambda: env.in_store(i) == "online")
        a.signal(signal.SIGKILL)
        a.wait()
        wait_until(lambda: pair.owner(i) == b.node, 10, "the other to take over")
        env.redis.delete(env.key("events"))
        way.let_go.set()
    wait_until(lambda: env.in_store(i) == "offline", 15, "its death to be found by the new owner")
    way.close()


def lone(env, dead, **options):
    """A mirror of one node that knows these devices as offline; and a second node, which is not started."""
    a, b = node(env, env.node + "-a"), node(env, env.node + "-b", **options)
    a.start()
    with env.beating(dead, 0.2):
        wait_until(lambda: all(env.in_store(i) == "online" for i in dead), 15, "all to be known")
    wait_until(lambda: all(env.in_store(i) == "offline" for i in dead), 15, "all to be dead")
    return a, b


def wait_dead(env, nodes, dead):
    """These devices are still known and offline."""
    for d in nodes:
        wait_until(lambda d=d: all(d.state(i) == "offline" for i in dead), 15, "%s to know the dead" % d.node)
    wait_until(lambda: all(env.in_store(i) == "offline" for i in dead), 15, "Redis to have the dead")
    retained = env.retained(env.status_topic("+"))
    assert all(retained[env.status_topic(i)].json()["online"] is False for i in dead), retained


def runs_and_dies(env, d):
    """The node starts and is killed; its name and its run id stay in Redis."""
    d.start()
    wait_until(lambda: env.redis.exists(env.key("monitor", d.node)), what="its mark")
    d.kill()


DEAD = ["dead%d" % k for k in range(24)]


@pytest.mark.parametrize("again", [False, True])
def test_redis_is_emptied_behind_a_first_load(env, again):
    """A device that the node has loaded, and that Redis lacks when the node reads all again, is not forgotten for that. Also if
    the node's name is still that of an earlier run until a lease is over."""
    env.own_redis()
    way = Way(env.redis_server.port)
    a, b = lone(env, DEAD, redis={"port": way.port})
    if again:
        runs_and_dies(env, b)
    way.word = re.compile(rb"\r\nHSCAN\r\n\$\d+\r\n[^\r]*:outbox\r")  # the load ends with the outbox; a script has the word, too
    b.start(seeing=False)
    wait_until(way.caught.is_set, what="it to have read all hashes")
    env.redis.flushall()
    way.let_go.set()
    wait_dead(env, [a, b], DEAD)
    way.close()


def test_redis_is_emptied_that_took_no_mark(env):
    """The same for a node that could not store the run id by which it would notice the emptying."""
    env.own_redis()
    keys = ["~%s[^m]*" % env.prefix, "%%R~%smonitor:*" % env.prefix]
    env.redis.execute_command("ACL", "SETUSER", "one", "on", ">one", "&*", "+@all", *keys)
    a, b = lone(env, DEAD, redis={"username": "one", "password_file": secret(env, "one")})
    b.start(seeing=False)
    wait_until(lambda: all(b.state(i) == "offline" for i in DEAD), what="it to know the dead")
    assert not env.redis.exists(env.key("monitor", b.node))
    env.redis.flushall()
    env.redis.execute_command("ACL", "SETUSER", "one", "~*")
    wait_dead(env, [a, b], DEAD)


@pytest.mark.parametrize("again", [False, True])
def test_what_was_forgotten_while_the_stream_was_lost(env, again):
    """A device that was forgotten while the stream was lost is not kept by a node that has only now read everything for the
    first time."""
    env.own_redis()
    way = Way(env.redis_server.port)
    a, b = lone(env, DEAD, redis={"port": way.port})
    if again:
        runs_and_dies(env, b)
    b.start(seeing=False)

    def of_first():
        return [i for i in DEAD if env.redis.hget(env.key("owners"), partition(i)).split(" ")[1:] == [a.node]]
    wait_until(lambda: len(of_first()) < len(DEAD) and b.state(DEAD[0]) == "offline", 15, "both to own some")
    way.word = re.compile(rb"XRANGE\r\n\$\d+\r\n[^\r]*:events\r")
    wait_until(way.caught.is_set, what="it to wait for what is new in the stream")
    i = of_first()[0]
    assert a.forget(i).status == 204
    env.redis.delete(env.key("events"))
    way.let_go.set()
    wait_until(lambda: b.state(i) is None, 15, "it to be forgotten by the other")
    way.close()


def test_who_may_not_read_the_stream_any_more(env):
    """The node is not ready, says so once, and leaves all partitions to the other node, which misses nothing. It has its share
    again once it may read."""
    env.own_redis()
    env.redis.execute_command("ACL", "SETUSER", "one", "on", ">one", "~*", "&*", "+@all")
    pair = Pair(env, of={"a": {"redis": {"username": "one", "password_file": secret(env, "one")}}})
    a, b = pair.nodes
    i = pair.device_of(a)

    def said():
        return [l for l in a.log().splitlines() if "xrange" in l and "event stream" in l and " error: " in l]
    with env.beating([i], 0.2):
        wait_until(lambda: env.in_store(i) == "online")
        env.redis.execute_command("ACL", "SETUSER", "one", "-xrange")
        wait_until(lambda: pair.members().get(a.node) == "joining", what="it not to be ready")
        pair.wait_owned_by(b)
        throughout(lambda: pair.owner(i) == b.node and len(said()) == 1, 2.5, "one line, and it stays there")
        assert "not ready" in said()[0], said()
        ready = a.get("/readyz")
        assert ready.status == 503 and "event stream" in ready.body.decode()
        assert states(env, i) == ["online"]
    wait_until(lambda: states(env, i) == ["online", "offline"], 10, "its death to be told by the other")
    env.redis.execute_command("ACL", "SETUSER", "one", "+xrange")
    pair.wait_settled([a, b])
    wait_until(lambda: a.state(i) == "offline", what="what it missed")
    assert a.get("/readyz").status == 200
    assert len(said()) == 1 and states(env, i) == ["online", "offline"]


DEVICE_KEYS = ("connected:*", "disconnected:*", "state:*", "offline", "outbox", "published", "events")


def grant(env, *rights):
    """A Redis user with all rights of the example ACL and these changes."""
    keys = ["~" + env.key(k) for k in DEVICE_KEYS if "~" + k not in rights]
    others = ["~" + env.key(k) for k in ("sight", "monitor:*", "monitors", "watched", "nodes", "owners", "nodes_left")]
    changes = [r for r in rights if not r.startswith("~")]
    env.redis.execute_command("ACL", "SETUSER", "one", "reset", "on", ">one", "&*", "+@all", *keys, *others, *changes)


@pytest.mark.parametrize("right", ["-set", "-xadd", "~state:*", "~offline", "-hdel"])
def test_a_node_that_may_not_write_leaves_its_partitions_to_the_other(env, right):
    """The node and its /readyz say that it may not write. It has its share again once it may."""
    env.own_redis()
    grant(env)
    pair = Pair(env, timeout="1s", of={"a": {"redis": {"username": "one", "password_file": secret(env, "one")}}})
    a, b = pair.nodes
    devices = [pair.device_of(a, t) for t in "xyz"]
    with env.beating(devices, 0.2):
        wait_until(lambda: all(env.in_store(i) == "online" for i in devices))
        grant(env, right)
    wait_until(lambda: all(states(env, i) == ["online", "offline"] for i in devices), 15, "each death in the stream")
    pair.wait_owned_by(b)
    wait_until(lambda: b.state(devices[0]) == "offline")
    ready = a.get("/readyz")
    assert ready.status == 503 and "ACL" in str(ready.body) and "was not reached" not in str(ready.body), ready.body
    throughout(lambda: pair.owner(devices[0]) == b.node, 2.5, "no partition to return")
    grant(env)
    pair.wait_settled([a, b])
    wait_until(lambda: a.get("/readyz").status == 200)
    assert all(states(env, i) == ["online", "offline"] for i in devices)
    assert a.log().count("Redis refuses this node's writes of devices") <= 1


def test_no_node_may_write(env):
    """Each node keeps what it owns and continues at the broker. A node that starts then owns its share as well."""
    env.own_redis()
    grant(env)
    pair = Pair(env, timeout="1s", redis={"username": "one", "password_file": secret(env, "one")})
    a, b = pair.nodes
    i, j = pair.device_of(a), pair.device_of(b, "y")
    before = pair.owners()
    with env.beating([i, j], 0.2):
        wait_until(lambda: env.in_store(i) == env.in_store(j) == "online")
        grant(env, "-zadd")
        wait_until(lambda: all("Redis refuses this node's writes of devices" in d.log() for d in (a, b)))
    wait_until(lambda: a.state(i) == b.state(j) == "offline")
    throughout(lambda: pair.owners() == before, 3, "no partition to move")
    b.stop()
    pair.wait_owned_by(a)
    grant(env)
    wait_until(lambda: states(env, i) == states(env, j) == ["online", "offline"], 15, "each death in the stream")


def test_the_barriers_of_other_nodes_are_no_heartbeats(env):
    """A filter that matches heartwheel/NODE/barrier makes no device of a node."""
    pair = Pair(env, groups=[("wide", {"heartbeat": "+/{id}/+", "timeout": "1s"})])
    names = {d.node for d in pair.nodes}
    i = pair.device_of(pair.nodes[0])
    for _ in range(3):  # a death asks both nodes for barriers
        env.publisher.publish("%s/%s/heartbeat" % (env.root, i), "1")
        wait_until(lambda: pair.nodes[1].state(i) == "online")
        wait_until(lambda: pair.nodes[1].state(i) == "offline", 10)
    for d in pair.nodes:
        assert not names & {x["id"] for x in d.get("/v1/devices?limit=1000").json()["devices"]}, names
        assert "use another broker" not in d.log()  # a presence comes with the flag by this filter
