# SPDX-License-Identifier: MIT
"""Devices that only write to Redis: the keyspace listener, against a real Redis whose keys other programs write."""
import os
import random
import re
import signal
import socket
import time

import pytest
import redis

from hw_env import HEARTWHEELD, SRC, now_ms, pass_time, throughout, wait_until

REDIS_ACL = (SRC / "conf" / "redis-heartwheel.acl").read_text()
TICK_MS = 1000 / 31
FLAGS = "Exg$e"

# Figures are for a daemon that has its processor: neither sanitizers nor other tests beside it.
ALONE = "PYTEST_XDIST_WORKER" not in os.environ and not (
    HEARTWHEELD.exists() and b"__asan_init" in HEARTWHEELD.read_bytes())
AT_ONCE = 1 if ALONE else 5
LATE_MS = TICK_MS + (60 if ALONE else 900)


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
    said = ks.wait_status(watcher, "a", False, start, AT_ONCE).json()
    assert said["reason"] == "keyspace"
    wait_until(lambda: seen(ks, "a") == (False, True, True, "offline", "key"))
    assert ks.hash("a")["reason"] == "keyspace"
    start = len(watcher.messages)
    setex(ks, "a")
    ks.wait_status(watcher, "a", True, start, AT_ONCE)
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
    assert 1000 <= off - on <= 1000 + LATE_MS, off - on


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


def test_the_wheel_of_keys_is_shown(ks):
    d = listen(ks, timeout="1h")
    for device in "ab":
        setex(ks, device)
    ks.beat("c")
    wait_until(lambda: d.status()["online"] == 3)
    shown = d.get("/v1/wheel").json()
    assert shown["length"] == 1 and shown["keys"]["length"] == 2
    assert sum(sum(level["slots"]) for level in shown["keys"]["levels"]) == 2
    assert d.device("a")["wheel"] == "keys" and d.device("c")["wheel"] == "heartbeats"
    assert d.metrics().get("wheel_entries") == 3


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
    "INCR": lambda r, k: r.incr(k),
    "APPEND": lambda r, k: r.append(k, "x"),
    "INCRBYFLOAT": lambda r, k: r.incrbyfloat(k, 0.5),
    "SETRANGE": lambda r, k: r.setrange(k, 0, "x"),
    "SETBIT": lambda r, k: r.setbit(k, 7, 1),
    "RESTORE": lambda r, k: (r.set("elsewhere", "x"), r.restore(k, 0, r.dump("elsewhere"))),
    "MOVE": lambda r, k: (r.execute_command("SELECT", 1), r.set(k, "x"), r.move(k, 0), r.execute_command("SELECT", 0)),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_writing(ks, form):
    listen(ks, timeout="1h")
    r = redis.Redis("127.0.0.1", ks.redis_server.port).client()  # one connection, because of SELECT
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
    wait_edges(ks, "a", 2, AT_ONCE)
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
    assert 300 <= off["a"] <= 300 + LATE_MS and 2500 <= off["b"] <= 2500 + LATE_MS, off


def test_a_renamed_key_takes_its_device_along(ks):
    listen(ks, timeout="1h")
    ks.redis.set(connected(ks, "a"), "x", px=60000)
    wait_edges(ks, "a", 1)
    ks.redis.rename(connected(ks, "a"), connected(ks, "b"))
    wait_edges(ks, "b", 1, AT_ONCE)
    wait_edges(ks, "a", 2, AT_ONCE)
    assert ks.edges("a") == [ON, OFF] and ks.edges("b") == [ON]


# --- not late


def test_two_thousand_keys(ks, capsys):
    """Each gives one offline transition, and that soon after its time is over; Redis itself would take seconds."""
    d = listen(ks, timeout="1h")
    n, ends = 2000, {}
    for first in range(0, n, 500):
        p = ks.redis.pipeline(transaction=False)
        for i in range(first, first + 500):
            p.set(connected(ks, "d%d" % i), "x", px=3000)
            p.execute_command("PEXPIRETIME", connected(ks, "d%d" % i))
        ends.update(("d%d" % (first + i), t) for i, t in enumerate(p.execute()[1::2]))
    pass_time(3.2)  # in peace: asking is work
    wait_until(lambda: d.metrics().get("transitions_total", reason="keyspace") >= n, 10)
    wait_until(lambda: len(ks.events()) >= 2 * n, 10)
    pass_time(0.3)
    events = ks.events()
    assert len(events) == 2 * n and d.metrics().get("transitions_total", reason="keyspace") == n
    delays = sorted(int(e["time_ms"]) - ends[e["id"]] for e in events if (e["state"], e["reason"]) == OFF)
    assert len(delays) == n and {e["id"] for e in events if e["state"] == "offline"} == set(ends)
    with capsys.disabled():
        print("\n2,000 keys, past their time to live: min %d  p50 %d  p90 %d  p99 %d  max %d ms" % (
            delays[0], delays[n // 2], delays[n * 9 // 10], delays[n * 99 // 100], delays[-1]))
    assert delays[0] >= 0, "called offline before its time was over"
    idle = ALONE and os.getloadavg()[0] < 2 * os.cpu_count()
    assert delays[n * 99 // 100] <= (TICK_MS + 20 if idle else 1000)
    assert d.metrics().get("keyspace_missed_total") == 0


def test_a_renewed_key_is_not_touched(ks):
    """A notification leads to one look; no key that is renewed is ever taken for expired."""
    d = listen(ks, timeout="1h")
    before = d.metrics()
    for _ in range(30):
        ks.redis.set(connected(ks, "a"), "x", px=1000)
        pass_time(0.1)
    m = d.metrics()
    assert ks.edges("a") == [ON]
    assert m.get("notifications_total") - before.get("notifications_total") == 60
    assert m.get("keyspace_looks_total") - before.get("keyspace_looks_total") <= 60


def test_a_flood_on_one_key_is_merged(ks):
    d = listen(ks, timeout="1h")
    p = ks.redis.pipeline(transaction=False)
    for _ in range(5000):
        p.set(connected(ks, "a"), "x", px=60000)
    p.execute()
    wait_until(lambda: d.metrics().get("notifications_total", event="set") == 5000)
    wait_edges(ks, "a", 1)
    looks = d.metrics().get("keyspace_looks_total")
    print("5000 writes of one key: %d looks" % looks)
    assert looks < 2500 and ks.edges("a") == [ON]


def test_a_redis_that_stood_still(ks):
    """It serves its waiting connections in turn, the monitor's before the writer's: a second look tells."""
    listen(ks, timeout="1h")
    ks.redis.set(connected(ks, "a"), "x", px=700)
    wait_edges(ks, "a", 1)
    ks.redis_server.signal(signal.SIGSTOP)
    pass_time(1.2)  # the look is in Redis' socket by now
    raw = socket.create_connection(("127.0.0.1", ks.redis_server.port))
    raw.sendall(b"SET %s x PX 60000\r\n" % connected(ks, "a").encode())
    pass_time(0.3)
    ks.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: ks.redis.pttl(connected(ks, "a")) > 1000)
    pass_time(1)
    raw.close()
    assert ks.edges("a") == [ON]


# --- both paths


def test_online_while_either_speaks(ks):
    d = listen(ks, timeout="600ms")
    ks.redis.set(connected(ks, "a"), "x", px=2000)
    wait_edges(ks, "a", 1)
    ends = ks.redis.execute_command("PEXPIRETIME", connected(ks, "a"))
    ks.beat("a")
    wait_until(lambda: d.device("a")["source"] == "both")
    wait_until(lambda: ks.hash("a")["source"] == "both")
    wait_edges(ks, "a", 2)  # the beat's timeout is over long before the key's
    assert ks.edges("a") == [ON, OFF]
    assert 0 <= int(ks.events("a")[1]["time_ms"]) - ends <= LATE_MS + 40
    setex(ks, "a", 1)
    wait_edges(ks, "a", 3)
    with ks.beating(["a"]):
        pass_time(2)
        assert ks.edges("a") == [ON, OFF, ON] and ks.redis.exists(connected(ks, "a"))
    wait_edges(ks, "a", 4)
    assert ks.edges("a") == [ON, OFF, ON, TIMEOUT]
    wait_until(lambda: seen(ks, "a") == (False, True, True, "offline", "both"))


def test_a_beating_device_keeps_its_key(ks):
    """Another program deletes it, lets it expire, renames it: it is back at once, and nobody is told anything."""
    d = listen(ks, timeout="30s")
    ks.beat("a")
    ks.wait_store("a", "online")
    key = connected(ks, "a")
    for go in (lambda: ks.redis.delete(key), lambda: ks.redis.pexpire(key, 20), lambda: ks.redis.rename(key, "x"),
               lambda: ks.redis.pexpireat(key, 1)):
        go()
        wait_until(lambda: not ks.redis.exists(key) or ks.redis.pttl(key) > 1000, 1)
        wait_until(lambda: ks.redis.pttl(key) > 1000, 8)
    at = time.monotonic()
    ks.redis.delete(key)
    wait_until(lambda: ks.redis.get(key) == "a", AT_ONCE / 5, interval=0.001)
    print("back after %.1f ms" % ((time.monotonic() - at) * 1000))
    assert ks.edges("a") == [ON] and d.device("a")["source"] == "mqtt"


def test_a_writers_key_is_not_extended_by_heartbeats(ks):
    d = listen(ks, timeout="300ms")
    ks.beat("a")
    wait_edges(ks, "a", 1)
    with ks.beating(["a"], 0.05):
        ks.redis.set(connected(ks, "a"), "writer", px=1500)
        wait_until(lambda: d.device("a")["source"] == "both")
        wait_until(lambda: ks.redis.get(connected(ks, "a")) == "a", 2.5, "its own key after the writer's")
        assert 300 < ks.redis.pttl(connected(ks, "a"))
    wait_edges(ks, "a", 2)
    assert ks.edges("a") == [ON, TIMEOUT]


def test_its_own_writes_are_never_news(ks):
    """A fleet over MQTT comes, is refreshed and goes: not one look, and nobody is known by a key."""
    d = listen(ks, timeout="500ms")
    devices = ["d%d" % i for i in range(50)]
    before = d.metrics().get("keyspace_looks_total")
    with ks.beating(devices, 0.1):
        pass_time(2)
    wait_until(lambda: all(ks.edges(x) == [ON, TIMEOUT] for x in devices))
    m = d.metrics()
    assert m.get("keyspace_looks_total") == before and m.get("notifications_own_total") > 200
    assert m.get("notifications_total") == m.get("notifications_own_total")
    assert {d.device(x)["source"] for x in devices} == {"mqtt"}


def test_expired_is_news_also_in_the_middle_of_its_own_writes(env):
    """A refresh puts its own key in the place of the writer's, which has expired there and then: so the writer is silent."""
    env.own_redis(options=["--notify-keyspace-events", FLAGS, "--enable-debug-command", "yes"])
    ks = env
    listen(ks, timeout="600ms")
    ks.redis.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    with ks.beating(["a"], 0.1):
        wait_edges(ks, "a", 1)
        ks.redis.set(connected(ks, "a"), "writer", px=60000)
        wait_until(lambda: ks.hash("a")["source"] == "both")
        p = ks.redis.pipeline(transaction=True)
        p.config_set("notify-keyspace-events", "")  # untold, or the monitor would look when it is due
        p.pexpire(connected(ks, "a"), 1)
        p.config_set("notify-keyspace-events", FLAGS)
        p.execute()
        wait_until(lambda: ks.redis.object("encoding", connected(ks, "a")) and ks.redis.get(connected(ks, "a")) == "a")
    wait_edges(ks, "a", 2, 3)
    assert ks.edges("a") == [ON, TIMEOUT]


# --- nothing lost, nothing invented


def kill_links(env, kind):
    """"hear", "look" or "all": the connections that are subscribed, or the others."""
    r = env.redis
    me = r.client_id()
    for c in r.client_list():
        heard = int(c["sub"]) > 0
        if int(c["id"]) != me and (kind == "all" or heard == (kind == "hear")):
            r.client_kill_filter(_id=c["id"])


def test_the_listeners_connection_is_lost(ks):
    """What happened meanwhile is found as soon as it listens again; keys run out in time even while it does not."""
    d = listen(ks, timeout="1h")
    for device in ("deleted", "runs-out", "stays"):
        setex(ks, device, 60)
        wait_edges(ks, device, 1)
    resyncs = d.metrics().get("keyspace_resyncs_total")
    p = ks.redis.pipeline(transaction=True)
    p.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
    p.delete(connected(ks, "deleted"))
    p.set(connected(ks, "new"), "x", px=60000)
    p.execute()
    wait_until(lambda: d.metrics().get("keyspace_resyncs_total") > resyncs, 5)
    wait_edges(ks, "new", 1, AT_ONCE)
    wait_edges(ks, "deleted", 2, 4)
    m = d.metrics()
    assert m.get("keyspace_missed_total") >= 1 and m.get("keyspace_repaired_total") >= 1
    assert m.get("reconnects_total", link="keyspace") == 1
    assert ks.edges("runs-out") == ks.edges("stays") == [ON]


def test_flushed_devices_get_one_more_time_to_live(ks):
    listen(ks, timeout="1h")
    ks.redis.set(connected(ks, "gone"), "x", px=2000)
    ks.redis.set(connected(ks, "kept"), "x", px=2000)
    wait_edges(ks, "kept", 1)
    wait_edges(ks, "gone", 1)
    pass_time(1.2)
    at = now_ms()
    ks.redis.flushall()
    end = time.monotonic() + 5
    while time.monotonic() < end:
        ks.redis.set(connected(ks, "kept"), "x", px=2000)
        pass_time(0.5)
    wait_until(lambda: ks.edges("gone") == [OFF])  # the stream begins anew with the flush
    assert 2000 <= int(ks.events("gone")[0]["time_ms"]) - at <= 3200 + LATE_MS
    assert ks.edges("kept") == []


def test_a_flush_takes_keys_that_live_for_ever(ks):
    """No notification tells of it, and no time to live ends; the writer gets a timeout to write it again."""
    listen(ks, timeout="2s")
    for device in ("gone", "kept"):
        ks.redis.set(connected(ks, device), "x")
        wait_edges(ks, device, 1)
    wait_until(lambda: ks.redis.exists(ks.key("monitor", ks.node)))
    pass_time(1.1)
    at = now_ms()
    ks.redis.flushall()
    ks.redis.set(connected(ks, "kept"), "x")
    wait_until(lambda: ks.edges("gone") == [OFF], 10)
    assert int(ks.events("gone")[0]["time_ms"]) - at >= 2000
    assert ks.edges("kept") == []


def test_a_look_just_after_a_flush(ks):
    """Due by what was told last, and missing because everything is: whether the store was emptied is asked first."""
    d = listen(ks, timeout="1h")
    wait_until(lambda: ks.redis.exists(ks.key("monitor", ks.node)))
    ks.redis.set(connected(ks, "a"), "x", px=1500)
    wait_edges(ks, "a", 1)
    pass_time(0.7)
    p = ks.redis.pipeline(transaction=True)
    p.config_set("notify-keyspace-events", "")
    p.set(connected(ks, "a"), "x", px=60000)  # renewed, and not told
    p.config_set("notify-keyspace-events", FLAGS)
    p.execute()
    looks = d.metrics().get("keyspace_looks_total")
    wait_until(lambda: d.device("a")["due_in_ms"] < 120, interval=0.002)
    ks.redis.flushall()
    wait_until(lambda: d.metrics().get("keyspace_looks_total") > looks)
    pass_time(0.3)
    ks.redis.set(connected(ks, "a"), "x", px=60000)
    pass_time(1.5)
    assert ks.edges("a") == []


def test_redis_restarted(ks):
    """Writers could not write while it was away: their devices get one more time to live."""
    d = listen(ks, timeout="1h", configure="yes")
    for device in ("kept", "gone"):
        ks.redis.set(connected(ks, device), "x", px=2000)
        wait_edges(ks, device, 1)
    ks.redis_server.kill()
    pass_time(2.5)
    ks.redis_server.start()
    ks._redis = None
    wait_until(lambda: d.metrics().get("keyspace_up") == 1, 15)
    end = time.monotonic() + 4
    while time.monotonic() < end:
        ks.redis.set(connected(ks, "kept"), "x", px=2000)
        pass_time(0.3)
    wait_until(lambda: ks.edges("gone") == [OFF], 5)
    assert ks.edges("kept") == []


def test_an_evicted_key_gets_one_more_time_to_live(env):
    env.own_redis(options=["--notify-keyspace-events", FLAGS, "--maxmemory-policy", "volatile-ttl"])
    listen(env, timeout="1h")
    env.redis.set(connected(env, "a"), "x", px=3000)
    wait_edges(env, "a", 1)
    end = env.redis.execute_command("PEXPIRETIME", connected(env, "a"))
    env.redis.config_set("maxmemory", "1")
    wait_until(lambda: not env.redis.exists(connected(env, "a")))
    at = now_ms()
    env.redis.config_set("maxmemory", "0")
    assert at < end - 1500
    wait_edges(env, "a", 2)
    assert int(env.events("a")[1]["time_ms"]) >= max(end, at + 2500)


def test_faults_at_random_moments(ks):
    """Whatever happens to the listener, no key that runs out is missed and no device whose key is kept is called offline."""
    seed = int(os.environ.get("HW_SEED", time.time_ns() % 1000000))
    print("HW_SEED=%d" % seed)
    rnd = random.Random(seed)
    d = listen(ks, timeout="1h", configure="yes")
    r, ttl = ks.redis, 1500
    kept, dead = ["k%d" % i for i in range(20)], []
    faults = [lambda: kill_links(ks, "hear"), lambda: kill_links(ks, "look"), lambda: kill_links(ks, "all"),
              lambda: r.config_set("notify-keyspace-events", ""), lambda: r.config_set("notify-keyspace-events", "Kx"),
              r.flushall, lambda: (ks.redis_server.kill(), ks.redis_server.start())]
    start = time.monotonic()
    at = start
    while time.monotonic() < start + 14:
        for device in kept:
            r.set(connected(ks, device), "x", px=ttl)
        if rnd.random() < 0.5:
            dead.append("d%d" % len(dead))
            r.set(connected(ks, dead[-1]), "x", px=rnd.randrange(200, ttl))
        if time.monotonic() > at:
            rnd.choice(faults)()
            at = time.monotonic() + rnd.uniform(0.3, 2)
        pass_time(0.25)
        assert all(d.state(x) in ("online", None) for x in kept), [x for x in kept if d.state(x) == "offline"]
    end = time.monotonic() + 8
    while time.monotonic() < end:  # the flags are looked at every 5 s
        for device in kept:
            r.set(connected(ks, device), "x", px=ttl)
        pass_time(0.25)
    assert r.config_get("notify-keyspace-events")["notify-keyspace-events"] != ""
    assert all(d.state(x) == "online" for x in kept)
    late = [x for x in dead if d.state(x) == "online"]
    assert not late, late
    assert d.metrics().get("keyspace_up") == 1


# --- what it needs of Redis


@pytest.mark.parametrize("flags", ["", "Kx", "AK", "E", "Exg$"])
def test_it_adds_the_flags_that_are_missing(env, flags):
    env.own_redis(options=["--notify-keyspace-events", flags])
    d = listen(env, configure="yes")
    has = wait_until(lambda: (lambda f: set("E") <= set(f) and f)(
        env.redis.config_get("notify-keyspace-events")["notify-keyspace-events"]))
    assert set(flags) - set("A") <= set(has) | {"A"} and ("A" in has or set("xg$e") <= set(has)), has
    assert "added what was missing" in d.log()
    setex(env, "a")
    wait_edges(env, "a", 1)


def test_it_says_which_flags_are_missing(env):
    env.own_redis(options=["--notify-keyspace-events", "Kx"])
    d = listen(env)
    wait_until(lambda: "notify-keyspace-events" in d.log())
    pass_time(6)
    lines = [line for line in d.log().splitlines() if "notify-keyspace-events" in line]
    assert len(lines) == 1, lines
    assert env.redis.config_get("notify-keyspace-events")["notify-keyspace-events"] in ("xK", "Kx")
    want = lines[0].split("set it to '")[1].split("'")[0]
    setex(env, "a")
    pass_time(0.5)
    assert env.edges("a") == []
    env.redis.config_set("notify-keyspace-events", want)
    wait_edges(env, "a", 1, 8)  # looked at every few seconds, and then all keys are gone through
    env.redis.delete(connected(env, "a"))
    wait_edges(env, "a", 2, AT_ONCE)


def test_what_the_acl_must_allow(env):
    env.own_redis(options=["--notify-keyspace-events", FLAGS])
    user = next(line for line in REDIS_ACL.splitlines() if line.startswith("user heartwheel "))
    rights = user.replace("CHANGE-ME", "pw").replace("~device:", "~" + env.prefix).split()[2:]
    env.redis.execute_command("ACL", "SETUSER", "hw", *rights)
    password = env.dir / "pw"
    password.write_text("pw\n")
    d = env.daemon(keyspace={"enabled": "yes"}, redis={"username": "hw", "password_file": password})
    wait_until(lambda: "channels" in d.log() and "pttl" in d.log(), 10)
    assert d.metrics().get("keyspace_up") == 0
    env.redis.execute_command("ACL", "SETUSER", "hw", "+pttl", "+publish", "+subscribe", "+config|get",
                              "&__keyevent@0__:*", "&%sself:*" % env.prefix)
    wait_until(lambda: d.metrics().get("keyspace_up") == 1, 25)
    setex(env, "a")
    wait_edges(env, "a", 1)
    env.redis.execute_command("ACL", "LOG", "RESET")
    env.redis.delete(connected(env, "a"))
    wait_edges(env, "a", 2)
    assert not env.redis.execute_command("ACL", "LOG")


def test_flags_that_may_not_be_set(env):
    """configure = yes and no right to: then it says what to set, too."""
    env.own_redis(options=["--notify-keyspace-events", ""])
    env.redis.execute_command("ACL", "SETUSER", "hw", "on", ">pw", "~*", "&*", "+@all", "-config|set")
    password = env.dir / "pw"
    password.write_text("pw\n")
    d = env.daemon(keyspace={"enabled": "yes", "configure": "yes"}, redis={"username": "hw", "password_file": password})
    wait_until(lambda: re.search(r"cannot set notify-keyspace-events .*set it to '[Exg$e]{5}'.*\+config\|set", d.log()), 10)


# --- start, and off


def test_what_is_there_at_the_start(ks):
    """Keys written and lost while no monitor was there."""
    d = listen(ks, timeout="1s")
    for device in ("gone", "kept"):
        setex(ks, device, 60)
        wait_edges(ks, device, 1)
    d.stop()
    ks.redis.delete(connected(ks, "gone"))
    setex(ks, "new", 60)
    d.start()
    wait_edges(ks, "new", 1)
    wait_edges(ks, "gone", 2)
    pass_time(1.5)
    assert ks.edges("gone") == [ON, OFF] and ks.edges("kept") == ks.edges("new") == [ON]


def test_without_a_broker(ks):
    """A broker that is away keeps nobody from judging keys."""
    d = listen(ks, timeout="1h")
    ks.redis.set(connected(ks, "a"), "x", px=1500)
    wait_edges(ks, "a", 1)
    d.edit("port = %d" % ks.broker.port, "port = 1")
    d.stop()
    d.start(seeing=False)
    wait_up(d)
    ks.redis.set(connected(ks, "a"), "x", px=700)
    ks.redis.set(connected(ks, "b"), "x", px=700)
    wait_edges(ks, "b", 2, 3)
    assert d.status()["blind"] and ks.edges("b") == [ON, OFF] and ks.edges("a")[-1] == OFF


def test_off_by_default(env):
    """Nothing is subscribed to, looked at or published, and another program's key is nobody's."""
    env.own_redis(options=["--notify-keyspace-events", FLAGS])
    d = env.daemon()
    env.redis.config_resetstat()
    setex(env, "a")
    env.beat("b")
    env.wait_store("b", "online")
    pass_time(1.5)
    assert d.device("a") is None and not d.metrics().has("keyspace_up")
    assert not {"cmdstat_publish", "cmdstat_subscribe", "cmdstat_pttl"} & set(env.redis.info("commandstats"))
    assert all(int(c["sub"]) == 0 for c in env.redis.client_list())
