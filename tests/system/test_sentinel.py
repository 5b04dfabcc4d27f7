# SPDX-License-Identifier: MIT
"""Redis' master by Sentinel: at the start, over failovers, and when Sentinels do not help."""
import os
import signal
import time

import pytest

from hw_build import SRC
from hw_nodes import Mirror, Told
from hw_sentinel import NAME, PATIENCE, QUICK, Guarded, Sentinel, role
from hw_servers import Redis
from hw_void import Void
from hw_wait import throughout, wait_until

STEADY = ["steady-%d" % i for i in range(5)]


@pytest.fixture
def guarded(env):
    return Guarded(env)


def begin(env, guarded, **options):
    """A daemon with some online devices, and a timeout that no busy machine misses."""
    groups = [("default", {"heartbeat": env.root + "/{id}/heartbeat", "status": env.root + "/{id}/status",
                           "timeout": "1h"}),
              ("fast", {"heartbeat": env.root + "-fast/{id}/heartbeat", "status": env.root + "-fast/{id}/status",
                        "timeout": "1s"})]
    d = env.daemon(groups=groups, redis=guarded.conf(), **options)
    for device in STEADY:
        env.beat(device)
    for device in STEADY:
        env.wait_store(device, "online", PATIENCE)
    return d


def is_up(d):
    return d.status()["redis"] == "up"


def wait_up(d):
    wait_until(lambda: is_up(d), PATIENCE, "Redis to be up")


def live_and_die(env, device):
    """A device comes online and goes offline, and both transitions are written to the present master."""
    env.publisher.publish("%s-fast/%s/heartbeat" % (env.root, device), b"", 0, False)
    env.wait_store(device, "offline", PATIENCE)
    assert env.edges(device) == [("online", "heartbeat"), ("offline", "timeout")]


def nobody_is_offline(env, d):
    for device in STEADY:
        assert d.state(device) == "online"
        env.wait_store(device, "online", PATIENCE)
        assert env.edges(device) == [("online", "heartbeat")]


def left_for(d, old, new):
    """The log says which master the daemon left or lost, and the daemon uses the new one."""
    wait_until(lambda: "connected to Redis at 127.0.0.1:%d" % new.port in d.log(), PATIENCE, "the new master")
    text = d.log()
    assert ("leaving Redis at 127.0.0.1:%d" % old.port in text or "lost Redis at 127.0.0.1:%d" % old.port in text
            or "Redis at 127.0.0.1:%d has not answered" % old.port in text), text


def test_start_by_sentinel(env, guarded):
    guarded.start()
    guarded.master()
    d = begin(env, guarded)
    wait_up(d)
    wait_until(lambda: "connected to Redis at 127.0.0.1:%d" % guarded.master().port in d.log(), PATIENCE, "the master")
    live_and_die(env, "mayfly")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_failover(env, guarded, how):
    guarded.start()
    d = begin(env, guarded)
    old = guarded.settled()
    wait_up(d)
    old.signal(how)
    env.beat("meanwhile")  # it becomes known while there is no master
    new = guarded.master(but=old)
    left_for(d, old, new)
    wait_up(d)
    env.wait_store("meanwhile", "online", PATIENCE)
    assert env.edges("meanwhile") == [("online", "heartbeat")]
    live_and_die(env, "mayfly")
    nobody_is_offline(env, d)
    if how == signal.SIGSTOP:
        old.signal(signal.SIGCONT)  # what it took before it knew is gone: nothing of ours may be
        live_and_die(env, "mayfly-2")
        nobody_is_offline(env, d)


def test_old_master_comes_back_as_replica(env, guarded):
    guarded.start()
    d = begin(env, guarded)
    first = guarded.settled()
    wait_up(d)
    first.stop(signal.SIGKILL)
    guarded.master(but=first)
    live_and_die(env, "one")
    first.start()
    second = guarded.settled()  # in step: it is the replica now, unless a busy machine made them change again
    wait_up(d)
    live_and_die(env, "two")
    second = guarded.settled()
    second.signal(signal.SIGKILL)
    back = guarded.master(but=second)
    left_for(d, second, back)
    wait_up(d)
    live_and_die(env, "three")
    nobody_is_offline(env, d)


FIT_S = 9  # a replica that was cut off for ten times down-after-milliseconds is not promoted any more


def lose_master(guarded, old, cut):
    """The master ends with all that its replica never received; the replica is the master then."""
    if time.monotonic() - cut > FIT_S:
        raise Void("the replica was cut off for too long to be promoted")
    old.signal(signal.SIGKILL)
    return guarded.master(but=old)


def test_what_only_the_old_master_had(env, guarded):
    """A write was confirmed by the old master only: it is in the new master's stream all the same, in order, and no transition
    is written twice."""
    guarded.start()
    d = begin(env, guarded)
    wait_up(d)
    live_and_die(env, "before")
    old, cut = guarded.cut_off(), time.monotonic()
    live_and_die(env, "mayfly")
    env.beat("late")
    env.wait_store("late", "online", PATIENCE)
    new = lose_master(guarded, old, cut)
    left_for(d, old, new)
    wait_up(d)
    for device in "before", "mayfly":
        wait_until(lambda i=device: len(env.edges(i)) >= 2, PATIENCE, "the transitions of " + device)
        assert env.edges(device) == [("online", "heartbeat"), ("offline", "timeout")]
    wait_until(lambda: env.edges("late"), PATIENCE, "the last one")
    wait_until(lambda: "Redis had lost 3 of them" in d.log(), PATIENCE, "it to say so")
    live_and_die(env, "mayfly-2")
    nobody_is_offline(env, d)


def test_what_only_the_old_master_had_of_several_nodes(env, guarded):
    guarded.start()
    m = Mirror(env, 2, timeout=1.0, guarded=guarded).start()
    with m.herd(30) as h:
        h.revive()
        told = Told(m, h)
        told.wait(PATIENCE)
        old, cut = guarded.cut_off(), time.monotonic()
        h.kill(*("d%d" % k for k in range(10)))
        told.wait(PATIENCE)
        h.revive("d0", "d1", "d2")
        told.wait(PATIENCE)
        lose_master(guarded, old, cut)
        told.wait(PATIENCE)
        assert [d for d in m.nodes if "of them and has stored them now" in d.log()]
    m.close()


def test_most_sentinels_must_confirm_a_claim(env, guarded):
    """A node that reaches one Sentinel of three keeps what it owns and claims nothing, although Redis and that Sentinel work:
    in a split network another master may be in use."""
    guarded.start()
    m = Mirror(env, 2, guarded=guarded, cuttable=True).start()
    a, b = m.nodes
    guarded.settled()
    for way in m.relays[a.node]["sentinels"][1:]:
        way.cut()
    wait_until(lambda: "only 1 of 3 Sentinels confirm" in a.get("/readyz").body.decode(), PATIENCE, "it to say so")
    assert "claims no partition until more than half of them do" in a.log()
    shares = m.shares()
    m.crash(b)
    throughout(lambda: m.shares() == shares, 6 * m.lease, "nothing to be claimed")
    for way in m.relays[a.node]["sentinels"][1:]:
        way.mend()
    wait_until(lambda: m.is_shared([a]), PATIENCE, "it to claim what the other had")
    assert "this node may claim again" in a.log() and a.get("/readyz").status == 200
    m.close()


SIDES = ("left", "right")


class Split:
    """A network in two halves, simulated: the first server and the first Sentinel are on the left, the others on the right.
    Each server answers those of the other side as a user of their own, which it can refuse; any other user has a
    node's rights."""

    def __init__(self, env):
        self.guarded = g = Guarded(env)
        self.left, self.right = [g.servers[0], g.sentinels[0]], [g.servers[1], *g.sentinels[1:]]
        for k, r in enumerate(g.servers):
            self.admit(r)
            r.client().config_set("masteruser", SIDES[k])
            r.client().config_set("masterauth", "x")
            r.client().execute_command("ACL", "SETUSER", "default", "-ping", "-psync", "-sync", "resetchannels", "&*device:*")
        for s in g.sentinels:
            s.start()
            wait_until(s.answers, PATIENCE, "a Sentinel")
            self.admit(s)
            side = SIDES[s in self.right]
            for key, value in (("sentinel-user", side), ("sentinel-pass", "x")):
                s.client().execute_command("SENTINEL", "CONFIG", "SET", key, value)
            for key, value in (("auth-user", side), ("auth-pass", "x")):
                s.client().execute_command("SENTINEL", "SET", NAME, key, value)
            s.client().execute_command("ACL", "SETUSER", "default", "-publish", "-sentinel|is-master-down-by-addr")

    @staticmethod
    def admit(server):
        for side in SIDES:
            server.client().execute_command("ACL", "SETUSER", side, "on", ">x", "~*", "&*", "+@all")

    def cut(self):
        for server in self.left + self.right:
            other = SIDES[server in self.left]
            server.client().execute_command("ACL", "SETUSER", other, "off")
            server.client().execute_command("CLIENT", "KILL", "USER", other)

    def mend(self):
        for server in self.left + self.right:
            server.client().execute_command("ACL", "SETUSER", SIDES[server in self.left], "on")


def test_split_in_two(env):
    """The old master takes writes of the node on its side, while the Sentinels on the other side name the replica, and the node
    there takes over. Both nodes are at one broker: each death is published at most once by each owner, (epoch, seq) never falls
    there, and owners do not take the devices from each other again and again."""
    split = Split(env)
    guarded = split.guarded
    m = Mirror(env, 2, timeout=1.5, guarded=guarded, cuttable=True)
    m.start(patience=PATIENCE)
    a, b = m.nodes
    old = guarded.settled()
    new = guarded.servers[1]
    if old is not guarded.servers[0]:
        raise Void("the Sentinels failed over before the network was split")
    with m.herd(40) as h:
        h.revive()
        told = Told(m, h)
        told.wait(PATIENCE)
        split.cut()
        for d, server, sentinels in (a, 1, (1, 2)), (b, 0, (0,)):
            m.relays[d.node]["redis"][server].cut()
            for k in sentinels:
                m.relays[d.node]["sentinels"][k].cut()
        victims = ["d%d" % k for k in range(10)]
        h.kill(*victims)
        wait_until(lambda: role(new) == "master", PATIENCE, "the replica to be promoted", interval=0.1)
        env.redis_server, env._redis = new, None
        wait_until(lambda: m.is_shared([b]), PATIENCE, "the node on the right to own everything")
        assert role(old) == "master"
        before = m.owners()
        wait_until(lambda: a.get("/v1/nodes").json()["owned"] == 0, PATIENCE, "the node on the left to own nothing")
        throughout(lambda: m.owners() == before and a.get("/v1/nodes").json()["owned"] == 0, 6 * m.lease, "nothing to move")
        wait_until(lambda: all(told.hear().statuses[d] and told.statuses[d][-1][1]["online"] is False for d in victims),
                   PATIENCE, "all deaths to be published")
        for d in victims:
            offline = [j for _, j in told.statuses[d] if not j["online"]]
            owners = {(j["epoch"], j["by"]) for j in offline}
            # An owner may publish a status once more, as after a reconnection; it is the same one then.
            assert len({(j["epoch"], j["by"], j["seq"]) for j in offline}) == len(owners) <= 2, told.statuses[d]
            assert len(offline) <= 2 * len(owners), told.statuses[d]
        split.mend()
        for ways in m.relays.values():
            for way in sum(ways.values(), []):
                way.mend()
        wait_until(lambda: role(old) == "slave", PATIENCE, "the old master to follow", interval=0.1)
        m.wait_shared(patience=PATIENCE)
        h.revive(*victims)
        wait_until(lambda: all(told.hear().statuses[d][-1][1]["online"] for d in victims), PATIENCE, "all to be online")
    m.close()


def test_what_lets_an_old_master_take_writes(env, guarded):
    """The log says what to set, by what Redis and the Sentinels report."""
    guarded.start()
    master = guarded.master()
    m = Mirror(env, 1, guarded=guarded).start()
    d, = m.nodes
    for values, what in ((None, "min-replicas-to-write of Redis at %s is 0"), ((1, 0), "min-replicas-max-lag of Redis at %s is 0, so Redis does not check its replicas"),
                         ((1, 1), "min-replicas-max-lag of Redis at %s is 1 s")):
        for key, value in zip(("min-replicas-to-write", "min-replicas-max-lag"), values or ()):
            master.client().config_set(key, value)
        master.client().client_kill_filter(_type="normal", skipme=True)
        wait_until(lambda: what % ("127.0.0.1:%d" % master.port) in d.log(), PATIENCE, "it to say so")
    for s in guarded.sentinels:
        s.client().execute_command("SENTINEL", "SET", NAME, "down-after-milliseconds", 30000)
    before = d.log().count("min-replicas")
    d.stop()
    d.start(seeing=False)
    wait_until(lambda: m.is_shared([d]), PATIENCE, "it to be there again")
    throughout(lambda: d.log().count("min-replicas") == before, 3)
    m.close()


def test_asked_again(env, guarded):
    """No message reports the switch, and the old master still runs and reports that it is a master: the daemon asks the
    Sentinels for the master again and again."""
    guarded.start()
    d = begin(env, guarded)
    old = guarded.settled()
    wait_up(d)
    new = guarded.other(old)
    for s in guarded.sentinels:
        s.client().execute_command("SENTINEL", "REMOVE", NAME)
    new.client().replicaof("no", "one")
    for s in guarded.sentinels:
        s.client().execute_command("SENTINEL", "MONITOR", NAME, "127.0.0.1", new.port, 2)
    guarded.master(but=old)
    left_for(d, old, new)
    assert role(old) == "master"
    live_and_die(env, "mayfly")
    assert not old.client().exists(env.key("state", "mayfly"))
    nobody_is_offline(env, d)


def test_keyspace_follows(env, guarded):
    guarded.start()
    d = begin(env, guarded, keyspace={"enabled": "yes", "configure": "yes"})
    old = guarded.settled()
    old.signal(signal.SIGKILL)
    new = guarded.master(but=old)
    wait_until(lambda: "receiving notifications of other programs' keys at 127.0.0.1:%d" % new.port in d.log(), PATIENCE, "it listens")
    env.redis.set(env.key("connected", "by-key"), "x")
    wait_until(lambda: d.state("by-key") == "online", PATIENCE, "the key to be seen")
    env.redis.delete(env.key("connected", "by-key"))
    wait_until(lambda: d.state("by-key") == "offline", PATIENCE, "its removal to be seen")
    nobody_is_offline(env, d)


def test_no_sentinel_at_the_start(env, guarded):
    guarded.reserve()
    d = env.daemon(seeing=False, redis=guarded.conf())
    wait_until(lambda: "no Sentinel names the master mymaster" in d.log(), PATIENCE, "it to say so")
    for s in guarded.sentinels:
        assert "cannot ask the Sentinel at 127.0.0.1:%d: " % s.port in d.log()
    assert "see [redis] sentinels" in d.status()["redis"]
    guarded.start()
    wait_up(d)
    d.wait_seeing(PATIENCE)
    guarded.master()
    env.beat("a")
    wait_until(lambda: env.edges("a")[:1] == [("online", "heartbeat")], PATIENCE, "its transition")


def test_all_sentinels_go(env, guarded):
    """Connected daemons stay connected; Sentinels are needed again when the connection is lost."""
    guarded.start()
    d = begin(env, guarded)
    guarded.settled()
    wait_up(d)
    for s in guarded.sentinels:
        s.signal(signal.SIGKILL)
    wait_until(lambda: "lost the Sentinel at 127.0.0.1:" in d.log(), PATIENCE, "it to say so")
    live_and_die(env, "mayfly")
    assert is_up(d)
    env.redis.client_kill_filter(_type="normal", skipme=True)
    wait_until(lambda: not is_up(d), PATIENCE, "the connection to be lost")
    for s in guarded.sentinels:
        s.start()
    wait_up(d)
    guarded.master()
    live_and_die(env, "mayfly-2")
    nobody_is_offline(env, d)


def test_one_that_stands_still(env, guarded):
    guarded.start()
    guarded.master()
    guarded.sentinels[0].signal(signal.SIGSTOP)
    d = env.daemon(redis=guarded.conf())
    wait_up(d)
    assert ("cannot ask the Sentinel at 127.0.0.1:%d: no answer within 500 ms" % guarded.sentinels[0].port) in d.log()


def test_wrong_name(env, guarded):
    guarded.start()
    d = env.daemon(seeing=False, redis=guarded.conf(master="another"))
    wait_until(lambda: "knows no master 'another'" in d.status()["redis"], PATIENCE, "it to say so")
    assert "see [redis] master" in d.log()


def test_acl_with_role(env, guarded):
    """The shipped Redis user and +role, which its comment names; without +role the log says what is missing."""
    acl = (SRC / "conf" / "redis-heartwheel.acl").read_text()
    line, = [l for l in acl.splitlines() if l.startswith("user heartwheel ")]
    assert "With [redis] sentinels, put behind it: +role" in acl
    env.prefix = "device:"
    for server in guarded.servers:
        server.client().execute_command("ACL", "SETUSER", *line.replace("CHANGE-ME", "secret").split()[1:])
    guarded.start()
    guarded.master()
    password = env.dir / "password"
    password.write_text("secret\n")
    os.chmod(password, 0o600)
    d = env.daemon(seeing=False, redis=guarded.conf(username="heartwheel", password_file=password))
    wait_until(lambda: "'role'" in d.status()["redis"], PATIENCE, "it to say what it may not do")
    assert "Redis' ACL denies [redis] username a command or key that heartwheel needs" in d.status()["redis"]
    for server in guarded.servers:
        server.client().execute_command("ACL", "SETUSER", "heartwheel", "+role")
    wait_up(d)
    d.wait_seeing(PATIENCE)
    env.beat("a")
    env.wait_store("a", "online", PATIENCE)


def test_what_is_no_sentinel(env, guarded):
    guarded.start()
    master = guarded.master()
    d = env.daemon(redis=guarded.conf(
        sentinels="127.0.0.1:%d, %s" % (master.port, guarded.conf()["sentinels"])))
    wait_up(d)  # it is asked again later, should it have been too slow at first
    wait_until(lambda: "the server at 127.0.0.1:%d is not a Sentinel" % master.port in d.log(), PATIENCE,
               "what it says of a server that is none")


def test_one_that_names_a_replica(env):
    """The first Sentinel was given the replica's address: ROLE shows the error, and the second Sentinel is asked."""
    master = env.own_redis(options=QUICK)
    replica = Redis(env.own_dir("rd"), options=QUICK)
    env.servers.append(replica)
    replica.start().client().replicaof("127.0.0.1", master.port)
    sentinels = [Sentinel(env.own_dir("se"), s, down_after_ms=3600000).start() for s in (replica, master)]
    env.servers.extend(sentinels)
    d = env.daemon(redis={"port": 1, "master": "mymaster",
                          "sentinels": ",".join("127.0.0.1:%d" % s.port for s in sentinels)})
    wait_up(d)
    if "no answer within" in d.log():
        raise Void("the Sentinel that names a replica was too slow to be asked first")
    assert ("Redis at 127.0.0.1:%d, which the Sentinel at 127.0.0.1:%d names as the master mymaster, is a replica"
            % (replica.port, sentinels[0].port)) in d.log()
    assert "connected to Redis at 127.0.0.1:%d" % master.port in d.log()
    env.beat("a")
    env.settle(d)
    wait_until(lambda: env.edges("a")[:1] == [("online", "heartbeat")], PATIENCE, "its transition")
