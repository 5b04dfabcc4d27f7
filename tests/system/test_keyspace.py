# SPDX-License-Identifier: MIT
"""Devices that only write to Redis: the keyspace listener, against a real Redis whose keys other programs write."""
import random
import time

import pytest

from hw_env import now_ms, pass_time, throughout, wait_until

TICK_MS = 1000 / 31
FLAGS = "Exg$e"


@pytest.fixture
def ks(env):
    """A Redis of the test's own, because notifications are a setting of the whole server."""
    env.own_redis(options=["--notify-keyspace-events", FLAGS])
    return env


def listen(env, timeout="1s", configure="no", **options):
    d = env.daemon(timeout=timeout, keyspace={"enabled": "yes", "configure": configure}, **options)
    wait_up(d)
    return d


def wait_up(d):
    wait_until(lambda: d.metrics().get("keyspace_up") == 1, 10, "the listener to listen")
    wait_until(lambda: d.metrics().get("keyspace_resyncs_total") >= 1, 10, "the first resync")


def connected(env, device):
    return env.key("connected", device)


def setex(env, device, seconds=30):
    env.redis.setex(connected(env, device), seconds, "written by a gateway")


def wait_edges(env, device, n, timeout=10):
    wait_until(lambda: len(env.edges(device)) >= n, timeout, "%d edges of %s: %s" % (n, device, env.edges(device)))
    return env.edges(device)


ON, OFF, TIMEOUT = ("online", "heartbeat"), ("offline", "keyspace"), ("offline", "timeout")


def seen(env, device):
    """(connected, disconnected, in the set of what is offline, state, source)"""
    r = env.redis.pipeline(transaction=True)
    r.exists(connected(env, device))
    r.exists(env.key("disconnected", device))
    r.zscore(env.key("offline"), device)
    r.hmget(env.key("state", device), "state", "source")
    c, d, score, (state, source) = r.execute()
    return bool(c), bool(d), score is not None, state, source


# --- a device without MQTT


def test_it_lives_and_dies_with_its_key(ks):
    d = listen(ks)
    watcher = ks.observer()
    setex(ks, "a")
    ks.wait_status(watcher, "a", True)
    wait_until(lambda: seen(ks, "a") == (True, False, False, "online", "key"))
    assert d.device("a")["source"] == "key" and d.device("a")["group"] == "default"
    start = len(watcher.messages)
    ks.redis.delete(connected(ks, "a"))
    said = ks.wait_status(watcher, "a", False, start, 1).json()
    assert said["reason"] == "keyspace"
    wait_until(lambda: seen(ks, "a") == (False, True, True, "offline", "key"))
    assert ks.hash("a")["reason"] == "keyspace"
    start = len(watcher.messages)
    setex(ks, "a")
    ks.wait_status(watcher, "a", True, start, 1)
    wait_until(lambda: seen(ks, "a") == (True, False, False, "online", "key"))
    assert ks.edges("a") == [ON, OFF, ON]


def test_its_key_belongs_to_its_writer(ks):
    """Never written, extended or deleted: over several refreshes, offline and back, forgotten."""
    d = listen(ks, timeout="300ms")
    ks.redis.set(connected(ks, "a"), "mine", px=1500)
    wait_edges(ks, "a", 1)
    ttl = ks.redis.pttl(connected(ks, "a"))
    wait_edges(ks, "a", 2)
    assert 0 < ttl <= 1500 and ks.edges("a") == [ON, OFF]
    assert not ks.redis.exists(connected(ks, "a"))
    ks.redis.set(connected(ks, "a"), "mine")
    wait_edges(ks, "a", 3)
    throughout(lambda: ks.redis.get(connected(ks, "a")) == "mine" and ks.redis.ttl(connected(ks, "a")) == -1, 1)
    assert d.forget("a").status == 204
    wait_edges(ks, "a", 4)
    assert ks.redis.get(connected(ks, "a")) == "mine" and not ks.redis.exists(ks.key("state", "a"))


def test_the_disconnected_key_removed_brings_it_back_for_one_timeout(ks):
    listen(ks, timeout="1s")
    setex(ks, "a")
    wait_edges(ks, "a", 1)
    ks.redis.delete(connected(ks, "a"))
    wait_edges(ks, "a", 2)
    wait_until(lambda: seen(ks, "a")[1])
    ks.redis.delete(ks.key("disconnected", "a"))
    wait_edges(ks, "a", 4)
    assert ks.edges("a") == [ON, OFF, ON, OFF]
    on, off = [int(e["time_ms"]) for e in ks.events("a")[2:]]
    assert 1000 <= off - on <= 1000 + TICK_MS + 60, off - on


def test_the_group_of_keys(ks):
    d = ks.daemon(keyspace={"enabled": "yes", "group": "gateway"}, groups=[
        ("default", {"heartbeat": ks.root + "/{id}/heartbeat", "timeout": "1h"}),
        ("gateway", {"heartbeat": ks.root + "/gw/{id}", "status": ks.root + "/{id}/status", "timeout": "700ms"})])
    wait_up(d)
    setex(ks, "a")
    wait_edges(ks, "a", 1)
    assert d.device("a")["group"] == "gateway" and d.device("a")["timeout_ms"] == 700


def test_max_offline_rate_paces_keys_as_well(ks):
    listen(ks, group={"max_offline_rate": 10})
    for i in range(10):
        setex(ks, "d%d" % i)
    wait_until(lambda: all(len(ks.edges("d%d" % i)) == 1 for i in range(10)))
    ks.redis.delete(*[connected(ks, "d%d" % i) for i in range(10)])
    wait_until(lambda: all(ks.edges("d%d" % i) == [ON, OFF] for i in range(10)))
    times = sorted(int(e["time_ms"]) for e in ks.events() if e["state"] == "offline")
    assert times[-1] - times[0] >= 800, times


# --- every form in which another program can touch a key

FORMS = {
    "SETEX": lambda r, k: r.setex(k, 30, "x"),
    "SET PX": lambda r, k: r.set(k, "x", px=30000),
    "SET": lambda r, k: r.set(k, "x"),
    "SETNX": lambda r, k: r.setnx(k, "x"),
    "GETSET": lambda r, k: r.getset(k, "x"),
    "MSET": lambda r, k: r.mset({k: "x"}),
    "RENAME": lambda r, k: (r.set("elsewhere", "x"), r.rename("elsewhere", k)),
    "COPY": lambda r, k: (r.set("elsewhere", "x"), r.copy("elsewhere", k)),
    "RESTORE": lambda r, k: r.restore(k, 0, b"\x00\x01x\x0a\x00" + bytes(8), replace=True),
    "INCR": lambda r, k: r.incr(k),
    "APPEND": lambda r, k: r.append(k, "x"),
    "MOVE": lambda r, k: (r.execute_command("SELECT", 1), r.set(k, "x"), r.move(k, 0), r.execute_command("SELECT", 0)),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_writing(ks, form):
    listen(ks, timeout="1h")
    r = ks.redis_server.client().client()  # one connection, because of SELECT
    if form == "RESTORE":
        r.set("elsewhere", "x")
        binary = __import__("redis").Redis("127.0.0.1", ks.redis_server.port)
        dump = binary.dump("elsewhere")
        binary.restore(connected(ks, "a"), 0, dump)
    else:
        FORMS[form](r, connected(ks, "a"))
    wait_edges(ks, "a", 1, 3)
    assert ks.edges("a") == [ON]


GOING = {
    "DEL": lambda r, k: r.delete(k),
    "UNLINK": lambda r, k: r.unlink(k),
    "GETDEL": lambda r, k: r.getdel(k),
    "PEXPIREAT in the past": lambda r, k: r.pexpireat(k, 1000),
    "SET PXAT in the past": lambda r, k: r.execute_command("SET", k, "x", "PXAT", 1000),
    "GETEX PXAT in the past": lambda r, k: r.execute_command("GETEX", k, "PXAT", 1000),
    "RENAME": lambda r, k: r.rename(k, "elsewhere"),
    "MOVE": lambda r, k: r.move(k, 1),
    "PEXPIRE": lambda r, k: r.pexpire(k, 50),
}


@pytest.mark.parametrize("form", GOING)
def test_each_form_of_going(ks, form):
    listen(ks, timeout="1h")
    ks.redis.set(connected(ks, "a"), "x")
    wait_edges(ks, "a", 1)
    GOING[form](ks.redis, connected(ks, "a"))
    wait_edges(ks, "a", 2, 1)
    assert ks.edges("a") == [ON, OFF]


def test_a_changed_time_to_live(ks):
    """Shortened it ends sooner, lengthened later, without one never."""
    listen(ks, timeout="1h")
    for device in "abc":
        ks.redis.set(connected(ks, device), "x", px=1500)
        wait_edges(ks, device, 1)
    at = now_ms()
    ks.redis.pexpire(connected(ks, "a"), 300)
    ks.redis.pexpire(connected(ks, "b"), 2500)
    ks.redis.persist(connected(ks, "c"))
    wait_edges(ks, "b", 2)
    off = {e["id"]: int(e["time_ms"]) - at for e in ks.events() if e["state"] == "offline"}
    assert set(off) == {"a", "b"}
    assert 300 <= off["a"] <= 300 + TICK_MS + 60 and 2500 <= off["b"] <= 2500 + TICK_MS + 60, off


def test_a_renamed_key_takes_its_device_along(ks):
    listen(ks, timeout="1h")
    ks.redis.set(connected(ks, "a"), "x", px=60000)
    wait_edges(ks, "a", 1)
    ks.redis.rename(connected(ks, "a"), connected(ks, "b"))
    wait_edges(ks, "b", 1, 1)
    wait_edges(ks, "a", 2, 1)
    assert ks.edges("a") == [ON, OFF] and ks.edges("b") == [ON]
