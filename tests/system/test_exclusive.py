# SPDX-License-Identifier: MIT
"""Two lone monitors, or a lone monitor and a node of a cluster, with one prefix: the later one stops, and the first goes on as
if it were alone."""
import signal
import time

import pytest

from hw_relay import Relay
from hw_wait import in_time, pass_time, throughout, wait_until

IN_USE = 3  # exit status
STANDS_S = 5  # an entry that stands still for so long is a dead run's


def entries(env):
    """{run: (born, count, node)}"""
    found = {}
    for run, text in env.redis.hgetall(env.key("monitors")).items():
        if len(run) != 16:
            continue
        born, count, node = text.split()[:3]
        found[run] = int(born), int(count), node
    return found


def ends(d):
    """The daemon stops without a signal and logs why in one line, which is returned."""
    wait_until(lambda: not d.alive, what="the later monitor to stop")
    assert d.wait() == IN_USE, d.log()
    said = [line for line in d.log().splitlines() if "already works with" in line]
    assert len(said) == 1, d.log()
    d.check_log()
    return said[0]


@pytest.mark.parametrize("same", [True, False], ids=["one-node-id", "two-node-ids"])
def test_the_later_one_does_not_start(env, same):
    """The later monitor never connects to the broker, and what the first one watches is written once."""
    first = env.daemon(timeout="1s")
    env.beat("a")
    env.wait_store("a", "online")
    node = env.node if same else env.node + "-b"
    later = env.configure(node=node, timeout="1s", monitor={"node_id": node}).start(seeing=False)
    said = ends(later)
    assert "monitor '%s' (pid %d on " % (env.node, first.proc.pid) in said, said
    env.wait_store("a", "offline")
    assert first.alive and "connected to 127.0.0.1:%d" % env.broker.port not in later.log(), later.log()
    assert first.log().count("publisher: connected") == first.log().count("reader 0: connected") == 1, first.log()
    assert [e["state"] for e in env.events("a")] == ["online", "offline"]
    assert len(entries(env)) == 1  # the later one has removed its own
    first.stop()
    assert not env.redis.exists(env.key("monitors"))


def test_a_start_waits_for_nothing(env):
    """A start does not wait: not the first one ever, not one after a clean stop, and not one after a kill on the same
    machine."""
    d = env.daemon(timeout="1s")
    d.stop()
    assert not entries(env)
    for _ in range(2):
        d.start()
        assert "this monitor watches for some seconds" not in d.log()
        d.die()
        assert len(entries(env)) == 1
    d.start()
    assert "this monitor watches for some seconds" not in d.log()
    wait_until(lambda: len(entries(env)) == 1, what="the entries of the killed ones to be removed")


def test_a_start_elsewhere_waits_for_the_dead(env):
    """Another pid file, as on another machine: the start waits until the killed monitor's entry has stood still, then takes
    over."""
    first = env.daemon(timeout="1s")
    env.beat("a")
    env.wait_store("a", "online")
    first.die()
    began = time.monotonic()
    d = env.daemon(timeout="1s", seeing=False)
    wait_until(lambda: "this monitor watches for some seconds" in d.log(), what="it to say what it waits for")
    d.wait_seeing(30)
    assert time.monotonic() - began >= STANDS_S
    env.wait_store("a", "offline")
    assert len(entries(env)) == 1
    in_time(time.monotonic() - began, 15, "until it watched")


def test_a_suspended_one_yields_to_its_successor(env):
    """The entry of the suspended monitor is removed, so when it resumes it is the later one and stops. The successor does not
    notice."""
    first = env.daemon(timeout="1s", group={"timeout": "1s"})
    first.signal(signal.SIGSTOP)
    node = env.node + "-b"
    d = env.daemon(timeout="1s", node=node, monitor={"node_id": node})
    first.signal(signal.SIGCONT)
    said = ends(first)
    assert "monitor '%s'" % node in said, said
    assert d.alive and len(entries(env)) == 1
    env.beat("a")
    env.wait_store("a", "offline")


@pytest.fixture
def way(env):
    """The first monitor's connection to Redis, through a relay."""
    relay = Relay(lambda: env.redis_server.port)
    yield relay
    relay.close()


def test_one_that_was_without_redis_writes_nothing_before_it_yields(env, way):
    """Devices stop while the first monitor has no Redis. Its successor writes these deaths, and they are written once."""
    first = env.daemon(timeout="1s", redis={"port": way.port})
    devices = ["d%d" % i for i in range(5)]
    with env.beating(devices, 0.2):
        wait_until(lambda: len(env.events()) == 5, what="five devices to come online")
        way.cut()
        wait_until(lambda: "has not answered for" in first.log(), what="the first one to find that Redis is away")
    wait_until(lambda: first.status()["offline"] == 5, what="the first one to notice five deaths")
    node = env.node + "-b"
    d = env.daemon(timeout="1s", node=node, monitor={"node_id": node})
    wait_until(lambda: len(env.events()) == 10, what="the successor to write five deaths")
    way.mend()
    said = ends(first)
    assert "monitor '%s'" % node in said, said
    pass_time(2)
    assert d.alive and len(env.events()) == 10, env.events()
    assert len(entries(env)) == 1


def test_one_that_was_alone_without_redis_goes_on(env, way):
    """No other monitor took its place, so it writes what happened meanwhile."""
    first = env.daemon(timeout="1s", redis={"port": way.port})
    env.beat("a")
    env.wait_store("a", "online")
    way.cut(silently=False)
    pass_time(STANDS_S + 2)
    way.mend()
    env.wait_store("a", "offline")
    assert first.alive and [e["state"] for e in env.events("a")] == ["online", "offline"]


def test_a_short_pause_is_no_end(env):
    """The first monitor resumes while the later one still waits: the later one stops."""
    first = env.daemon(timeout="1s")
    first.signal(signal.SIGSTOP)
    d = env.daemon(timeout="1s", seeing=False)
    wait_until(lambda: "this monitor watches for some seconds" in d.log(), what="it to wait")
    first.signal(signal.SIGCONT)
    ends(d)
    throughout(lambda: first.alive, 3, "the first one to go on")


def test_two_at_once(env):
    """Two monitors start at once: exactly one goes on."""
    both = [env.configure(timeout="1s") for _ in range(2)]
    for d in both:
        d.start(seeing=False, ready=False)
    wait_until(lambda: not all(d.alive for d in both), what="one to stop")
    (later,) = [d for d in both if not d.alive]
    ends(later)
    (first,) = [d for d in both if d.alive]
    first.wait_seeing()
    throughout(lambda: first.alive, 3, "the other one to go on")


def test_without_redis_it_watches_and_looks_later(env):
    """Both start while Redis is away; the one that is entered first goes on."""
    redis = env.own_redis(start=False)
    node = env.node + "-b"
    both = [env.daemon(timeout="1s", seeing=False),
            env.daemon(timeout="1s", node=node, monitor={"node_id": node}, seeing=False)]
    for d in both:
        wait_until(lambda d=d: "connected to 127.0.0.1:%d and subscribed" % env.broker.port in d.log(), 10, "it to watch")
    redis.start()
    wait_until(lambda: not all(d.alive for d in both), what="one to stop")
    (later,) = [d for d in both if not d.alive]
    ends(later)
    (first,) = [d for d in both if d.alive]
    first.wait_seeing()
    throughout(lambda: first.alive, 3, "the other one to go on")


def test_an_emptied_redis(env):
    """The monitor writes its entry again; a later monitor still finds it."""
    env.own_redis()
    first = env.daemon(timeout="1s")
    before = entries(env)
    env.redis.flushall()
    wait_until(lambda: list(entries(env)) == list(before), what="the entry to be made again")
    ends(env.daemon(timeout="1s", seeing=False))
    assert first.alive


def test_the_order_outlives_an_emptied_redis(env):
    """The later monitor writes its entry again before the first one does, and still counts as the later one."""
    env.own_redis()
    first = env.daemon(timeout="1s")
    before = entries(env)
    env.redis.eval("redis.call('FLUSHALL'); redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])", 1, env.key("monitors"),
                   "f" * 16, "%d 1 n-b - 1 h" % (time.time() * 1e6))
    wait_until(lambda: len(entries(env)) == 2, what="the entry to be made again")
    (run, born), = [(run, e[0]) for run, e in before.items()]
    assert entries(env)[run][0] == born
    throughout(lambda: first.alive and "this monitor watches for some seconds" not in first.log(), 2, "the first one to go on")


def test_a_crowd_of_what_is_no_entry(env):
    """Even if there are more foreign values than places for monitors, an entry is found: the later monitor stops."""
    first = env.daemon(timeout="1s")
    env.redis.hset(env.key("monitors"), mapping={"%d" % i: "x" for i in range(900)})
    ends(env.daemon(timeout="1s", seeing=False))
    assert first.alive


def test_a_crowd_that_is_too_large(env):
    """Other programs fill the hash: each second's script reads a part of it, and one log line reports that."""
    first = env.daemon(timeout="1s")
    env.redis.hset(env.key("monitors"), mapping={"x%d" % k: "x" for k in range(5000)})
    wait_until(lambda: "has 5001 fields, and only some are read" in first.log(), what="the log line")
    env.beat("a")
    env.wait_store("a", "offline")
    before = sum(e[1] for e in entries(env).values())
    wait_until(lambda: sum(e[1] for e in entries(env).values()) > before, what="the entry to be renewed")
    assert first.alive and first.log().count("only some are read") == 1
    assert env.redis.info("commandstats").get("cmdstat_hscan", {}).get("calls", 0) > 0


def test_a_redis_that_comes_back_empty(env):
    redis = env.own_redis()
    first = env.daemon(timeout="1s")
    redis.stop()
    redis.start()
    env._redis = None
    wait_until(lambda: len(entries(env)) == 1, what="the entry to be made again")
    throughout(lambda: first.alive, 2, "it to go on")


def test_an_option_allows_it(env):
    """With exclusive = no both go on; a monitor without that option stops if it is the later one."""
    first = env.daemon(timeout="1s")
    node = env.node + "-b"
    d = env.daemon(timeout="1s", node=node, monitor={"node_id": node}, redis={"exclusive": "no"})
    wait_until(lambda: "also works with" in d.log(), what="it to name the other one")
    throughout(lambda: first.alive and d.alive, 3, "both to go on")
    assert d.log().count("also works with") == 1 and "also works with" not in first.log()


def test_entries_that_are_none(env):
    """A value that cannot be read is no monitor; a key of another type, which another program wrote, is logged and delays
    nothing."""
    env.redis.hset(env.key("monitors"), mapping={"x": "y", "0" * 16: "", "f" * 16: "1 2", "1" * 16: "9" * 300,
                                                 "2" * 16: "99999999999999999999 1 n - 1 h", "3" * 16: "a b c d e f"})
    d = env.daemon(timeout="1s")
    assert "this monitor watches for some seconds" not in d.log()
    d.stop()
    env.redis.delete(env.key("monitors"))
    env.redis.set(env.key("monitors"), "mine")
    d.start()
    env.beat("a")
    env.wait_store("a", "offline")
    assert env.redis.get(env.key("monitors")) == "mine"
    assert d.log().count("is refused, so another monitor") == 1, d.log()


def test_without_the_right_to_that_key(env):
    """A Redis user that was made for an earlier version lacks the right: the monitor works, and logs what it cannot notice."""
    env.own_redis()
    keys = ("connected:*", "disconnected:*", "state:*", "offline", "outbox", "published", "events", "sight", "monitor:*", "watched", "nodes")
    env.redis.execute_command("ACL", "SETUSER", "default", "resetkeys", *["~" + env.key(k) for k in keys])
    d = env.daemon(timeout="1s")
    env.beat("a")
    env.wait_store("a", "offline")
    assert d.log().count("is refused, so another monitor") == 1, d.log()


# --- a monitor by itself, and nodes of a cluster

MODES = pytest.mark.parametrize("mode", ["mirror", "standby"])


def members(env):
    return set(env.redis.hgetall(env.key("nodes")))


def node(env, mode="mirror", name="-n", **options):
    options.setdefault("monitor", {"node_id": env.node + name})
    return env.configure(node=env.node + name, timeout="1s", cluster={"mode": mode, "lease": "1s"}, **options)


def dialled(env, d):
    return "connected to 127.0.0.1:%d" % env.broker.port in d.log()


def says(d, text):
    return [line for line in d.log().splitlines() if text in line]


@MODES
@pytest.mark.parametrize("same", [True, False], ids=["one-node-id", "two-node-ids"])
def test_a_node_does_not_start_beside_a_monitor(env, mode, same):
    """The node neither joins nor connects to the broker, and what the monitor watches is written once."""
    first = env.daemon(timeout="1s")
    env.beat("a")
    env.wait_store("a", "online")
    later = node(env, mode, "" if same else "-n").start(seeing=False)
    said = ends(later)
    assert "monitor '%s' (pid %d on " % (env.node, first.proc.pid) in said and "without [cluster]" in said, said
    env.wait_store("a", "offline")
    assert not dialled(env, later) and not members(env), later.log()
    assert first.alive and not says(first, "also work"), first.log()
    assert [e["state"] for e in env.events("a")] == ["online", "offline"]
    assert len(entries(env)) == 1


@MODES
def test_a_monitor_becomes_a_node(env, mode):
    """After a clean stop a node starts at once; after a kill on another machine it waits until the entry has stood still."""
    first = env.daemon(timeout="1s")
    first.stop()
    n = node(env, mode).start()
    wait_until(lambda: members(env) == {n.node}, what="it to join")
    assert "this monitor watches for some seconds" not in n.log()
    n.stop()
    first.start()
    first.die()
    began = time.monotonic()
    n.start(seeing=False)
    wait_until(lambda: "this monitor watches for some seconds" in n.log(), what="it to say what it waits for")
    assert not members(env)
    wait_until(lambda: members(env) == {n.node}, 30, "it to join")
    assert time.monotonic() - began >= STANDS_S and not entries(env)
    in_time(time.monotonic() - began, 20, "until it joined")


def test_a_node_is_stopped_while_it_waits(env):
    first = env.daemon(timeout="1s")
    first.die()
    n = node(env, monitor={"node_id": env.node + "-n", "stop_timeout": "60s"}).start(seeing=False)
    wait_until(lambda: "this monitor watches for some seconds" in n.log(), what="it to wait")
    n.stop()
    assert not members(env)


@MODES
def test_a_monitor_does_not_start_beside_a_node(env, mode):
    """The monitor does not connect to the broker, where its client ids could be the node's."""
    n = node(env, mode, "").start()
    n.wait_seeing()
    later = env.configure(timeout="1s").start(seeing=False)
    wait_until(lambda: not later.alive, what="the monitor to stop")
    assert later.wait() == IN_USE and len(says(later, "nodes of a cluster already work with")) == 1, later.log()
    assert not dialled(env, later) and not entries(env), later.log()
    throughout(lambda: n.alive and members(env) == {n.node}, 2, "the node to go on")
    assert n.log().count("publisher: connected") == 1, n.log()


def one_goes_on(both):
    """One of two daemons stops because of the other one, which goes on."""
    wait_until(lambda: not all(d.alive for d in both), what="one to stop")
    (later,) = [d for d in both if not d.alive]
    (first,) = [d for d in both if d.alive]
    assert later.wait() == IN_USE, later.log()
    first.wait_seeing()
    throughout(lambda: first.alive, 3, "the other one to go on")


@MODES
def test_a_monitor_and_a_node_at_once(env, mode):
    """Exactly one of them goes on."""
    both = [env.configure(timeout="1s"), node(env, mode)]
    for d in both:
        d.start(seeing=False, ready=False)
    one_goes_on(both)


def test_without_redis_a_node_watches_and_looks_later(env):
    """Once Redis is there, the daemon that finds the other's entry stops. Which one it is depends on the machine."""
    redis = env.own_redis(start=False)
    both = [env.daemon(timeout="1s", seeing=False), node(env).start(seeing=False)]
    for d in both:
        wait_until(lambda d=d: dialled(env, d), 15, "it to watch")
    redis.start()
    one_goes_on(both)


def test_a_monitor_and_a_node_that_find_each_other_late(env):
    """Each logs the other one once, and both go on."""
    first = env.daemon(timeout="1s")
    n = node(env, redis={"exclusive": "no"}).start()
    wait_until(lambda: says(first, "nodes of a cluster also work with") and says(n, "also works with"), what="both to say so")
    throughout(lambda: first.alive and n.alive, 3, "both to go on")
    (line,), (theirs,) = says(first, "nodes of a cluster also work with"), says(n, "also works with")
    assert " error: " in line and "without [cluster]" in theirs, (line, theirs)


def test_a_node_that_works_goes_on(env):
    """A monitor that is entered later is logged as an error, and the node goes on."""
    n = node(env).start()
    text = "%d %%d x - 1 h" % (time.time() * 1e6)

    def grows(count=iter(range(1, 1000))):
        env.redis.hset(env.key("monitors"), "f" * 16, text % next(count))
        return says(n, "also works with")
    (line,) = wait_until(grows, what="it to say so", interval=0.5)
    assert n.alive and " error: " in line and "monitor 'x' (pid 1 on h) without [cluster]" in line, line


MEMORY = {"store": {"type": "memory"}}


def names_a_rival(env, d):
    """A line at level error that names a client id, and what each monitor needs."""
    return [line for line in d.log().splitlines() if " error: " in line and "'heartwheel-%s-" % env.node in line
            and "its own node_id" in line]


@pytest.mark.parametrize("store", ["memory", "redis"])
@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_closed_connections_end_no_monitor(env, protocol, store):
    """A proxy, or a broker without rights, closes each connection of a lone monitor: the monitor goes on, and watches once it
    may connect."""
    if store == "redis":
        env.own_redis(start=False)
    way = Relay(lambda: env.broker.port)
    d = env.daemon(timeout="1s", seeing=False, mqtt={"protocol": protocol, "port": way.port}, store={"type": store})
    throughout(lambda: pass_time(0.4) or way.drop() or d.alive, 15, "the monitor to go on")
    assert names_a_rival(env, d), d.log()
    d.wait_seeing(60)
    env.beat("a")
    wait_until(lambda: d.state("a") == "offline")
    way.close()


@pytest.mark.parametrize("sites", [False, True], ids=["memory", "two-prefixes"])
def test_one_node_id_without_a_common_store(env, sites):
    """Neither stops; the log of one names the client id. When the other one is stopped, the first watches."""
    first = env.daemon(timeout="1s", **({} if sites else MEMORY))
    more = {"redis": {"key_prefix": env.key("other:")}} if sites else MEMORY
    other = env.daemon(timeout="1s", seeing=False, **more)
    wait_until(lambda: names_a_rival(env, first) or names_a_rival(env, other), 60, "an error that names the client id")
    throughout(lambda: first.alive and other.alive, 3, "both to go on")
    other.stop()
    first.wait_seeing(90)
    env.beat("a")
    wait_until(lambda: first.state("a") == "offline")
