# SPDX-License-Identifier: MIT
"""Restarts and losses: of the monitor, of the broker, of Redis."""
import json
import re
import signal
import time

import pytest

from hw_env import NO_STALL, NO_STANDSTILL
from hw_wait import in_time, now_ms, pass_time, throughout, wait_until

STOPS = [signal.SIGTERM, signal.SIGKILL]


def end(d, how):
    if how == signal.SIGTERM:
        d.stop()
    else:
        d.signal(how)
        d.wait()


def told_offline(observer, env, device, start=0):
    return [m for m in observer.on(env.status_topic(device), start) if b'"online":false' in m.payload]


# --- the monitor


@pytest.mark.parametrize("how", STOPS)
def test_restart_keeps_every_state(env, how):
    d = env.daemon(timeout="2s")
    alive, dead = ["a%d" % i for i in range(40)], ["d%d" % i for i in range(10)]
    for i in dead:
        env.beat(i, {"timeout": 0.2, "version": "old"})
    with env.beating(alive, 0.2):
        for i in alive:
            env.wait_store(i, "online")
        for i in dead:
            env.wait_store(i, "offline")
        before, events = {i: env.hash(i) for i in alive + dead}, len(env.events())
        scores = dict(env.redis.zrange(env.key("offline"), 0, -1, withscores=True))
        observer = env.observer()
        for _ in range(2):
            n = len(observer.messages)
            end(d, how)
            assert all(env.in_store(i) == "online" for i in alive), "a stop must not touch the keys of the living"
            pass_time(0.5)
            d.start()
            throughout(lambda: len(env.events()) == events, 2.6, "a restart is no transition")
            assert d.status()["devices"] == 50 and d.status()["offline"] == 10
            # Every status is told again, as it was.
            for i in alive + dead:
                m = env.wait_status(observer, i, i in alive, n)
                assert m.json()["seq"] == int(before[i]["seq"]), (m, before[i])
            for i in alive + dead:
                now = env.hash(i)
                for key in ("state", "since", "seq", "reason", "timeout", "group", "version"):
                    assert now.get(key) == before[i].get(key), (i, key, now, before[i])
            assert dict(env.redis.zrange(env.key("offline"), 0, -1, withscores=True)) == scores
            assert all(env.in_store(i) == "offline" for i in dead)
    for i in alive:
        env.wait_store(i, "offline")
        assert int(env.hash(i)["seq"]) > int(before[i]["seq"])
    for i in dead:
        env.beat(i)
        env.wait_store(i, "online")
        assert int(env.hash(i)["seq"]) > int(before[i]["seq"])


@pytest.mark.parametrize("how", STOPS)
def test_down_time_is_not_silence(env, how):
    """A device stopped while the monitor was down: its death is found after the start, but not at once."""
    d = env.daemon(timeout="2s")
    observer = env.observer()
    env.beat("x")
    env.wait_store("x", "online")
    end(d, how)
    pass_time(3)
    n = len(observer.messages)
    d.start()
    m = env.wait_status(observer, "x", False, n)
    assert m.at - d.started >= 1.5, "judged %.2f s after the start" % (m.at - d.started)
    env.wait_store("x", "offline")
    assert env.edges("x") == [("online", "heartbeat"), ("offline", "timeout")]
    assert m.json()["reason"] == "timeout"
    in_time(m.at - d.started, 5, "from the start to the verdict")


def test_grace_after_a_start(env):
    d = env.daemon(timeout="500ms", mqtt={"reconnect_grace": "2s"})
    observer = env.observer()
    env.beat("x")
    env.wait_store("x", "online")
    end(d, signal.SIGKILL)
    n = len(observer.messages)
    d.start(seeing=False)
    m = env.wait_status(observer, "x", False, n)
    assert m.at - d.started >= 2.5, "judged %.2f s after the start" % (m.at - d.started)
    in_time(m.at - d.started, 5, "from the start to the verdict")


def test_offline_devices_come_back_while_loading(env):
    """2,000 devices are loaded while their heartbeats arrive: an online device makes no transition, an offline one that beats
    makes one."""
    d = env.daemon(timeout="5s")
    ids = ["l%d" % i for i in range(2000)]
    for i in ids:
        env.beat(i)
    for i in ids[:100]:
        env.beat(i, {"online": False})
    wait_until(lambda: env.redis.zcard(env.key("offline")) == 100 and len(env.events()) == 2100, 20)
    d.stop()
    with env.beating(ids, 0.3):
        d.start()
        wait_until(lambda: d.status()["online"] == 2000, 20)
        wait_until(lambda: env.redis.zcard(env.key("offline")) == 0, 20)
        throughout(lambda: len(env.events()) == 2200, 1.0, "only the hundred that were offline made a transition")
        assert d.status()["devices"] == 2000
    assert {e["state"] for e in env.events()[2100:]} == {"online"}
    assert {e["id"] for e in env.events()[2100:]} == set(ids[:100])


def test_seq_grows_over_lost_stores(env):
    """The store is emptied while the monitor is down: seq continues from the clock."""
    env.own_redis()
    d = env.daemon(timeout="300ms")
    env.beat("x")
    env.wait_store("x", "offline")
    seq = int(env.hash("x")["seq"])
    d.stop()
    env.redis.flushall()
    d.start()
    env.beat("x")
    env.wait_store("x", "online")
    assert int(env.hash("x")["seq"]) > seq


def test_connected_keys_that_ended_while_it_was_down(env):
    """device:connected:X exists while X is online: after a long down time at once, and not only after the next re-arm."""
    d = env.daemon(timeout="1h")
    env.beat("on")
    env.wait_store("on", "online")
    d.stop()
    env.redis.pexpire(env.key("connected", "on"), 1)
    wait_until(lambda: not env.redis.exists(env.key("connected", "on")))
    events = len(env.events())
    d.start()
    env.beat("on")
    env.wait_store("on", "online")
    assert len(env.events()) == events


def test_a_prefix_full_of_glob_characters(env):
    env.prefix = "g[a-z]*?\\^%d:" % env.number
    env.redis.hset("ga*:state:stranger", "state", "online")
    d = env.daemon(timeout="1h")
    env.beat("x")
    env.beat("y[*]?")
    env.wait_store("x", "online")
    env.wait_store("y[*]?", "online")
    d.stop()
    d.start()
    wait_until(lambda: d.status()["devices"] == 2, 5)
    assert d.state("y[*]?") == "online" and d.device("stranger") is None


def test_junk_in_the_store(env):
    """Records that no monitor wrote do not stop the daemon, and the good record among them is loaded."""
    d = env.daemon(timeout="1h")
    env.beat("good")
    env.wait_store("good", "online")
    d.stop()
    r = env.redis
    r.set(env.key("state", "a-string"), "x")
    r.rpush(env.key("state", "a-list"), 1, 2)
    r.hset(env.key("state", "empty-state"), mapping={"state": ""})
    r.hset(env.key("state", "nonsense"), mapping={"state": "flying", "since": "x", "seq": "-", "timeout": "1e99"})
    r.hset(env.key("state", "huge"), mapping={"state": "online", "since": 2 ** 80, "last_seen": -2 ** 80, "seq": 2 ** 70,
                                               "timeout": 0, "reason": "x" * 1000, "group": "?", "data": "{" * 100_000})
    r.hset(env.key("state", "z" * 300), mapping={"state": "online"})
    r.hset(env.key("state", ""), mapping={"state": "online"})
    r.hset(env.key("state", "a\x01b"), mapping={"state": "online"})
    r.execute_command("HSET", env.prefix.encode() + b"state:\xff\xfe", "state", "online")
    r.hset(env.key("outbox"), mapping={"nobody": "{}", "z" * 300: "x"})
    r.set(env.key("monitor", env.node), "junk")
    d.start()
    wait_until(lambda: d.state("good") == "online", 5, "the good one to be loaded")
    for i in ("a-string", "a-list"):
        assert d.device(i) is None, i
    assert d.device("nonsense") is not None, "a record with a state is a device, which is judged"
    env.beat("good", {"online": False})
    env.wait_store("good", "offline")
    env.settle(d)


@pytest.mark.parametrize("keys", [["offline", "events"], ["state:x", "connected:x"]])
def test_keys_of_another_type(env, keys):
    """The keys of the indexes, or of one device, are of another type. The script has answered, though with an error: the
    statuses are published all the same. Once the keys are deleted everything is written."""
    env.check_events = False
    d = env.configure(timeout="3s")
    d.start()
    env.settle(d)
    for key in keys:
        env.redis.delete(env.key(key))
        env.redis.rpush(env.key(key), "something else")
    observer = env.observer()
    env.beat("x")
    env.wait_status(observer, "x", True)
    env.wait_status(observer, "x", False)
    if "offline" in keys:
        wait_until(lambda: "WRONGTYPE" in d.log(), what="the log to name the trouble")
        for key in keys:
            env.redis.delete(env.key(key))
        env.beat("x")
        env.beat("y")
        env.wait_store("y", "offline", 20)
    env.wait_store("x", "offline", 20)


# --- the broker


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_broker_restart_without_persistence(env, protocol):
    """The broker has lost every retained status: all are published again, and none is false."""
    env.own_broker()
    d = env.daemon(timeout="4s", mqtt={"protocol": protocol})
    alive, dead = ["a%d" % i for i in range(20)], ["d%d" % i for i in range(20)]
    for i in dead:
        env.beat(i, {"timeout": 0.2})
    with env.beating(alive, 0.2):
        for i in dead:
            env.wait_store(i, "offline")
        for i in alive:
            env.wait_store(i, "online")
        events = len(env.events())
        env.broker.stop()
        d.wait_lost()
        assert d.status()["mqtt"] != "up"
        env.broker.start()
        d.wait_seeing(30)
        wait_until(lambda: len(env.retained(env.root + "/+/status")) == 40, 15, "40 statuses to be published again")
        for topic, m in env.retained(env.root + "/+/status").items():
            assert m.json()["online"] is (topic.split("/")[1] in alive), m
            assert m.json()["by"] == env.node
        assert "heartwheel/%s/status" % env.node in env.retained("heartwheel/+/status")
        throughout(lambda: len(env.events()) == events, 4.5, "no transition because of the broker")
    for i in alive:
        env.wait_store(i, "offline", 15)
    wait_until(lambda: d.status()["owed"] == 0)


def test_statuses_are_sent_again_as_fast_as_republish_rate_says(env):
    env.own_broker()
    d = env.daemon(timeout="1h", mqtt={"republish_rate": 40})
    for k in range(100):
        env.beat("r%d" % k)
    wait_until(lambda: d.status()["devices"] == 100 and d.status()["owed"] == 0)
    env.broker.stop()
    d.wait_lost()
    env.broker.start()
    observer = env.observer()
    d.wait_seeing(30)
    wait_until(lambda: len(env.retained(env.root + "/+/status")) == 100, 15, "every status to be published again")
    at = sorted(m.at for m in observer.messages if m.topic.endswith("/status"))
    # Those that came before the observer are missing at the front.
    assert len(at) >= 20 and (len(at) - 1) / (at[-1] - at[0]) <= 44, "%d in %.2f s" % (len(at), at[-1] - at[0])


def test_wills_of_a_stopping_broker_kill_nobody(env):
    """On SIGTERM the broker publishes every will before it closes the connections: no device is called offline."""
    env.own_broker(persistence=True)
    d = env.daemon(timeout="20s")
    fleet = [env.raw(will=(env.status_topic("w%d" % i), b'{"online":false}', True)) for i in range(100)]
    for i, raw in enumerate(fleet):
        raw.publish((env.topic("w%d" % i), b""))
    wait_until(lambda: d.status()["online"] == 100)
    wait_until(lambda: len(env.events()) == 100)
    env.broker.stop()
    d.wait_lost()
    env.broker.start()
    d.wait_seeing(30)
    throughout(lambda: d.status()["online"] == 100, 2.0, "wills of a stopping broker kill nobody")
    assert len(env.events()) == 100

    def put_right():
        found = env.retained(env.root + "/+/status")
        return len(found) == 100 and all(m.json().get("by") == env.node and m.json()["online"] for m in found.values())
    wait_until(put_right, 15, "the retained wills to be replaced by the statuses")
    for raw in fleet:
        raw.die()


def test_a_connection_cut_by_the_broker(env):
    """Another client takes the reader's client id once: the reader reconnects, and no false status is published."""
    d = env.daemon(timeout="3s")
    with env.beating(["a"], 0.1):
        env.wait_store("a", "online")
        before = d.metrics().get("reconnects_total", link="reader")
        raw = env.raw(client_id="heartwheel-%s-r0" % env.node)
        other = env.raw(client_id="heartwheel-%s-r1" % env.node)
        # It is back after some milliseconds: too soon for a look at the status. A loop that was late for as long takes loss
        # and return together, so that no time was blind.
        wait_until(lambda: d.metrics().get("reconnects_total", link="reader") > before,
                   what="client ids are PREFIX-NODE_ID-rN: the reader to lose its link")
        raw.die()
        other.die()
        d.wait_seeing(20)
        throughout(lambda: d.state("a") == "online", 3.5)
        assert env.edges("a") == [("online", "heartbeat")]
    env.wait_store("a", "offline")


def test_broker_down_at_start(env):
    env.own_broker(start=False)
    d = env.daemon(seeing=False, timeout="2s")
    s = d.status()
    assert s["blind"] is True and s["blind_cause"] == "link" and s["mqtt"] != "up", s
    assert d.get("/readyz").status == 503 and d.get("/healthz").status == 200
    env.broker.start()
    d.wait_seeing(30)
    env.beat("x")
    env.wait_store("x", "online")
    wait_until(lambda: env.retained_status("x"))
    assert d.status()["mqtt"] == "up"
    wait_until(lambda: d.get("/readyz").status == 200)
    env.wait_store("x", "offline")


def test_broker_down_over_a_restart_of_the_monitor(env):
    """A death is written to Redis while the broker is away: P does not pass it, and the next run publishes it."""
    env.own_broker(persistence=True)
    d = env.daemon(timeout="1h")
    env.beat("x")
    env.wait_store("x", "online")
    wait_until(lambda: env.retained_status("x") and env.published() > int(env.hash("x")["seq"]))
    env.broker.stop()
    d.wait_lost()
    d.stop()
    d.start(seeing=False)
    assert wait_until(lambda: d.device("x"), 10)["state"] == "online"
    env.broker.start()
    d.wait_seeing(30)
    assert env.edges("x") == [("online", "heartbeat")]


# --- Redis


@pytest.mark.parametrize("loss", ["restart", "flushall"])
def test_an_emptied_redis_is_filled_again(env, loss):
    env.own_redis()
    d = env.daemon(timeout="3s")
    alive, dead = ["a%d" % i for i in range(30)], ["d%d" % i for i in range(30)]
    for i in dead:
        env.beat(i, {"timeout": 0.2, "version": "old"})
    with env.beating(alive, 0.2):
        for i in dead:
            env.wait_store(i, "offline")
        for i in alive:
            env.wait_store(i, "online")
        before = {i: env.hash(i) for i in alive + dead}
        wait_until(lambda: env.redis.exists(env.key("monitor", env.node)))
        observer = env.observer().fence()
        n = len(observer.messages)
        if loss == "restart":
            env.redis_server.kill()
            pass_time(0.5)
            env.redis_server.start()
        else:
            env.redis.flushall()
        for i in alive:
            env.wait_store(i, "online", 20)
        for i in dead:
            env.wait_store(i, "offline", 20)
        for i in alive + dead:
            now = env.hash(i)
            for key in ("state", "since", "reason", "timeout", "group", "version", "source"):
                assert now.get(key) == before[i].get(key), (i, key, now, before[i])
            assert int(now["seq"]) >= int(before[i]["seq"])
            if i in dead:
                assert env.redis.zscore(env.key("offline"), i) == int(now["since"])
        wait_until(lambda: env.redis.exists(env.key("monitor", env.node)))
        assert not [m for m in observer.messages[n:] if b'"online":false' in m.payload and m.topic.split("/")[1] in alive]
        assert all(d.state(i) == "online" for i in alive)
    for i in alive:
        env.wait_store(i, "offline")


def test_the_mark_in_redis(env):
    env.daemon()
    key = env.key("monitor", env.node)
    first = wait_until(lambda: env.redis.get(key))
    assert env.redis.ttl(key) == -1
    wait_until(lambda: env.redis.get(key) != first, 5, "the mark to say when it last saw")


def test_redis_down_at_start(env):
    env.own_redis(start=False)
    d = env.daemon(seeing=False, timeout="2s")
    wait_until(lambda: d.status()["mqtt"] == "up")  # nobody else hears what c says once
    with env.beating(["a", "b"], 0.2):
        env.beat("c")
        wait_until(lambda: d.status()["heartbeats_total"] >= 3)
        assert d.status()["redis"] != "up"
        env.redis_server.start()
        wait_until(lambda: d.status()["redis"] == "up", 30)
        for i in ("a", "b"):
            env.wait_store(i, "online", 10)
            wait_until(lambda: (env.retained_status(i) or {}).get("online") is True)
            assert env.edges(i) == [("online", "heartbeat")]
        wait_until(lambda: (env.in_store("c"), d.state("c")) == ("offline", "offline"), 15, "c to be offline")
        wait_until(lambda: d.status()["owed"] == 0, 5, "nothing to be owed (is %d)" % d.status()["owed"])
    env.wait_store("a", "offline")


def test_heard_before_the_store_was_read(env):
    """Redis answers late at the start: a device that is heard meanwhile makes one transition, and in the end nothing is
    pending."""
    env.own_redis()
    env.redis_server.signal(signal.SIGSTOP)
    d = env.daemon(seeing=False, timeout="1h")
    ids = ["h%d" % i for i in range(30)]
    wait_until(lambda: d.status()["blind"] is False)
    for i in ids:
        env.beat(i)
    wait_until(lambda: d.status()["heartbeats_total"] >= 30)
    pass_time(0.3)
    env.redis_server.signal(signal.SIGCONT)
    for i in ids:
        env.wait_store(i, "online", 15)
        assert env.edges(i) == [("online", "heartbeat")]
    wait_until(lambda: len(env.retained(env.root + "/+/status")) == 30)
    wait_until(lambda: d.status()["owed"] == 0, 5, "nothing to be owed (is %d)" % d.status()["owed"])
    for i in ids:
        d.forget(i)
    wait_until(lambda: not env.redis.hlen(env.key("outbox")) and not env.retained(env.root + "/+/status"))
    wait_until(lambda: d.status()["owed"] == 0, 5, "nothing to be owed (is %d)" % d.status()["owed"])
    d.stop()


def test_redis_down_at_start_keeps_what_it_knew(env):
    """The devices are loaded as soon as Redis is there."""
    env.own_redis(options=["--appendonly", "yes", "--appendfsync", "always"])
    d = env.daemon(timeout="2s")
    env.beat("dead", {"timeout": 0.2})
    with env.beating(["a"], 0.2):
        env.wait_store("a", "online")
        env.wait_store("dead", "offline")
        seq = env.hash("dead")["seq"]
        d.stop()
        env.redis_server.kill()
        d.start(seeing=False)
        pass_time(1)
        env.redis_server.start()
        wait_until(lambda: d.state("dead") == "offline", 30, "dead to be loaded")
        throughout(lambda: env.in_store("a") == "online", 2.5)
        assert env.hash("dead")["seq"] == seq
        assert env.edges("a") == [("online", "heartbeat")]


def test_readiness_while_owing(env):
    """/readyz answers 503 after a write or publish has been pending for over 10 s."""
    env.own_redis(options=["--appendonly", "yes", "--appendfsync", "always"])
    d = env.daemon(timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)
    env.settle(d)
    wait_until(lambda: d.status()["owed"] == 0)
    assert d.get("/readyz").status == 200
    env.redis_server.kill()
    at = time.monotonic()
    env.beat("x")
    wait_until(lambda: d.status()["owed"] >= 1)
    wait_until(lambda: d.get("/readyz").status == 503)
    owing = time.monotonic() - at
    assert owing > 9.5
    assert d.get("/healthz").status == 200
    assert d.metrics().get("owed") >= 1
    env.redis_server.start()
    wait_until(lambda: d.get("/readyz").status == 200, 30)
    env.wait_store("x", "online")
    wait_until(lambda: d.status()["owed"] == 0)
    in_time(owing, 13, "until it was not ready")


def test_both_servers_down_and_back(env):
    env.own_broker(persistence=True)
    env.own_redis(options=["--appendonly", "yes", "--appendfsync", "always"])
    d = env.daemon(timeout="3s")
    with env.beating(["a"], 0.2):
        env.wait_store("a", "online")
        env.redis_server.kill()
        env.broker.stop()
        d.wait_lost()
        assert d.get("/healthz").status == 200
        env.redis_server.start()
        env.broker.start()
        d.wait_seeing(30)
        throughout(lambda: env.in_store("a") == "online", 3.5)
        assert env.edges("a") == [("online", "heartbeat")]
    env.wait_store("a", "offline")


# --- without a store


@pytest.mark.parametrize("protocol, heard", [("5", True), ("3.1.1", True), ("5", False)])
def test_memory_store_learns_from_its_own_retained_statuses(env, protocol, heard):
    """Also if no heartbeats arrive on the status topic."""
    env.check_events = False
    env.own_redis(start=False)
    group = {} if heard else {"heartbeat": [env.root + "/{id}/heartbeat"]}
    d = env.daemon(store={"type": "memory"}, timeout="1500ms", mqtt={"protocol": protocol}, group=group)
    env.beat("on", {"version": "4"})
    env.beat("off", {"online": False})
    wait_until(lambda: d.state("on") == "online" and d.state("off") == "offline")
    seq = {i: wait_until(lambda: env.retained_status(i))["seq"] for i in ("on", "off")}
    stranger = {"time": 1, "online": True, "reason": "heartbeat", "last_seen": 1, "by": "another", "seq": 5}
    d.stop()
    env.beat("stranger", stranger, last="status", retain=True, qos=1)
    env.beat("raw", b"1", last="status", retain=True, qos=1)
    observer = env.observer().fence()
    n = len(observer.messages)
    d.start()
    wait_until(lambda: d.device("on") and d.device("off"), 5, "its own retained statuses to become known devices")
    assert d.state("off") == "offline" and d.device("off")["seq"] == seq["off"]
    assert d.device("stranger") is None and d.device("raw") is None
    j = env.wait_status(observer, "on", False, n).json()
    assert j["seq"] > seq["on"] and j["reason"] == "timeout"
    assert not [m for m in observer.on(env.status_topic("off"), n) if m.json()["seq"] != seq["off"]]
    env.beat("off")
    assert env.wait_status(observer, "off", True, n).json()["seq"] > seq["off"]


def test_memory_store_keeps_the_group(env):
    """Two groups share a status topic. After a restart, a device has the timeout of its own group before it sends a heartbeat."""
    env.check_events = False
    env.own_redis(start=False)
    status = env.root + "/{id}/state"
    groups = [("fast", {"heartbeat": env.root + "/fast/{id}", "status": status, "timeout": "1s"}),
              ("slow", {"heartbeat": env.root + "/slow/{id}", "status": status, "timeout": "1h"})]
    d = env.daemon(store={"type": "memory"}, groups=groups)
    env.publisher.publish(env.root + "/slow/a", b"")
    wait_until(lambda: d.state("a") == "online")
    d.stop()
    d.start()
    wait_until(lambda: d.device("a"))
    throughout(lambda: d.state("a") == "online" and d.device("a")["group"] == "slow", 4)


class Moving:
    """Two groups without a store, with a status topic each. `old` and `new` order the topics: the broker delivers the retained
    statuses by their names."""

    def __init__(self, env, old, new):
        env.check_events = False
        env.own_redis(start=False)
        self.env, self.moved = env, "heartbeat = %s/x/{id}\n" % env.root
        self.old, self.new = ("%s/%s/{id}" % (env.root, n) for n in (old, new))
        groups = [("short", {"heartbeat": [env.root + "/x/{id}", env.root + "/z/{id}"], "status": self.old, "timeout": "1s"}),
                  ("long", {"heartbeat": env.root + "/y/{id}", "status": self.new, "timeout": "1h"})]
        self.d = env.daemon(store={"type": "memory"}, groups=groups)

    def beat(self, device, payload=b"", group="x"):
        self.env.publisher.publish("%s/%s/%s" % (self.env.root, group, device), payload)

    def retained(self):
        """{topic: payload} of all statuses at the broker."""
        o = self.env.observer(self.env.root + "/#").fence()
        return {m.topic: m.json() for m in o.messages if m.retain}

    def move_filter(self):
        self.d.edit(self.moved, "")
        y = "heartbeat = %s/y/{id}\n" % self.env.root
        self.d.edit(y, self.moved + y)

    def restart(self):
        self.d.stop()
        self.d.start()


@pytest.mark.parametrize("old, new", [("a", "b"), ("b", "a")])
def test_memory_store_takes_the_newest_status(env, old, new):
    """A reload moves a filter to a group with another status topic. The status on the old topic is removed. If it is there
    again, the newest one counts, and the old one is removed."""
    t = Moving(env, old, new)
    d, ids = t.d, ("lives", "dead", "gone")
    for i in ids:
        t.beat(i)
    wait_until(lambda: all(d.state(i) == "online" for i in ids))
    before = t.retained()
    assert len(before) == 3
    t.move_filter()
    assert d.ctl("reload").returncode == 0
    t.beat("lives")
    t.beat("dead", b'{"online":false}')
    t.beat("gone", b'{"online":false}')
    wait_until(lambda: d.device("lives")["group"] == "long" and d.state("dead") == d.state("gone") == "offline")
    wait_until(lambda: set(t.retained()) == {t.new.replace("{id}", i) for i in ids}, what="the old statuses to be removed")
    assert d.ctl("forget", "gone").returncode == 0
    seq = {i: d.device(i)["seq"] for i in ("lives", "dead")}
    for again in (False, True):
        for i in ids[:2 if again else 0]:
            topic = t.old.replace("{id}", i)
            env.publisher.publish(topic, json.dumps(before[topic]), 1, True)
        t.restart()
        wait_until(lambda: d.device("lives") and d.device("dead"))
        throughout(lambda: d.state("lives") == "online" and d.device("lives")["group"] == "long", 4)
        assert d.state("dead") == "offline" and d.device("gone") is None and {i: d.device(i)["seq"] for i in seq} == seq
        wait_until(lambda: set(t.retained()) == {t.new.replace("{id}", i) for i in seq}, what="the old statuses to be removed")


def test_memory_store_moves_after_a_restart(env):
    """The filter moves while heartwheeld is stopped, so the old status is adopted first."""
    t = Moving(env, "a", "b")
    t.beat("lives")
    wait_until(lambda: t.d.state("lives") == "online")
    t.d.stop()
    t.move_filter()
    t.d.start()
    wait_until(lambda: t.d.device("lives"))
    t.beat("lives")
    wait_until(lambda: t.d.device("lives")["group"] == "long")
    wait_until(lambda: set(t.retained()) == {t.new.replace("{id}", "lives")}, what="the old status to be removed")


@pytest.mark.parametrize("heard", [False, True])
def test_memory_store_moves_to_another_status_topic(env, heard):
    """A reload changes the status topics of groups. Each status is on the new topic alone. If the old topic is also a
    heartbeat topic, the old status stays: an empty message there would be a heartbeat."""
    t = Moving(env, "z" if heard else "a", "b")
    for i in ("lives", "dead"):
        t.beat(i)
    t.beat("other", group="y")
    wait_until(lambda: t.d.state("lives") == t.d.state("dead") == "offline" and t.d.state("other") == "online", 5)
    before = t.retained()
    assert len(before) == 3
    t.d.edit("status = " + t.old, "status = %s/c/{id}" % env.root)
    assert t.d.ctl("reload").returncode == 0
    now = {env.root + "/c/lives", env.root + "/c/dead", t.new.replace("{id}", "other")} | (set(before) if heard else set())
    wait_until(lambda: set(t.retained()) == now, what="the old statuses to be removed")
    throughout(lambda: t.d.state("lives") == t.d.state("dead") == "offline", 2)


def test_memory_store_swaps_status_topics(env):
    """The groups swap their status topics while heartwheeld is stopped."""
    t = Moving(env, "a", "b")
    t.beat("dead")
    t.beat("other", group="y")
    wait_until(lambda: t.d.state("dead") == "offline" and t.d.state("other") == "online", 5)
    t.d.stop()
    t.d.edit("status = " + t.old, "status = *")
    t.d.edit("status = " + t.new, "status = " + t.old)
    t.d.edit("status = *", "status = " + t.new)
    t.d.start()
    wait_until(lambda: t.d.state("dead") == "offline" and t.d.state("other") == "online", 5)
    now = {t.new.replace("{id}", "dead"), t.old.replace("{id}", "other")}
    wait_until(lambda: set(t.retained()) == now, what="the old statuses to be removed")
    t.restart()
    wait_until(lambda: t.d.state("dead") == "offline" and t.d.state("other") == "online", 5)
    assert t.d.device("dead")["group"] == "short" and t.d.device("other")["group"] == "long"


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_memory_store_adopts_at_the_start_alone(env, protocol):
    """A client that may write the status topics publishes statuses of the running heartwheeld, whose connection is cut then.
    Nothing changes, and the log has one line."""
    env.check_events = False
    env.own_redis(start=False)
    env.own_broker(persistence=True)
    d = env.daemon(store={"type": "memory"}, timeout="1h", mqtt={"protocol": protocol, "reconnect_grace": "1s"})
    env.beat("dead", {"online": False})
    env.beat("lives")
    wait_until(lambda: d.state("dead") == "offline" and d.state("lives") == "online" and d.status()["blind"] is False)
    j = wait_until(lambda: env.retained_status("dead"))
    seq = d.device("dead")["seq"]
    for i in ("dead", "new"):
        env.beat(i, dict(j, online=True, seq=seq + 5000), last="status", retain=True, qos=1)
    env.broker.stop()
    env.broker.start()
    refused = lambda: d.metrics().get("refused_total", kind="status")
    wait_until(lambda: refused() == 2, 20, what="both statuses to be refused")
    wait_until(lambda: re.search(r"warning: refused [12] messages? \(status\): a retained status of '(dead|new)' names this node", d.log()),
               15, "a line in the log")
    assert d.state("dead") == "offline" and d.device("new") is None and d.state("lives") == "online"


def test_memory_store_keeps_the_own_timeout(env):
    """A device asks for a longer timeout, and sleeps. heartwheeld restarts meanwhile."""
    env.check_events = False
    env.own_redis(start=False)
    d = env.daemon(store={"type": "memory"}, timeout="1s")
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    env.beat("a", {"timeout": 310.5})
    wait_until(lambda: d.device("a")["timeout_ms"] == 310500)
    d.stop()
    d.start()
    wait_until(lambda: d.device("a"))
    throughout(lambda: d.state("a") == "online" and d.device("a")["timeout_ms"] == 310500, 4)


def test_a_clock_that_stays(env):
    """`since` and `time` are wall clock, also after a restart."""
    d = env.daemon(timeout="500ms")
    env.beat("x")
    env.wait_store("x", "offline")
    d.stop()
    d.start()
    one = wait_until(lambda: d.device("x"))
    assert abs(one["since_ms"] - int(env.hash("x")["since"])) <= 1
    assert 0 <= now_ms() - one["last_seen_ms"] < 60_000


def test_a_status_in_flight_twice_is_owed_once(env):
    """A device is heard while the store is still read: its status is published as a new one, and by the sweep after the load;
    it is pending once."""
    env.own_redis()
    pipe = env.redis.pipeline()
    for k in range(60000):  # so that reading takes a while
        pipe.set("other:%d" % k, "x")
    pipe.execute()
    env.beat("before")  # so that the test's client is connected
    d = env.daemon(timeout="1h")
    env.beat("x")
    wait_until(lambda: d.device("x") and not d.status()["loading"])
    wait_until(lambda: d.metrics().get("statuses_published_total") >= 1)
    wait_until(lambda: d.status()["owed"] == 0, 5, "nothing to be owed")
    throughout(lambda: d.status()["owed"] == 0, 0.3, "nothing owed")
    assert d.metrics().get("owed", sink="mqtt") == 0
