# SPDX-License-Identifier: MIT
"""Devices that only write to Redis: the keyspace listener with a real Redis whose keys other programs write."""
import os
import signal
import socket
import time

import pytest
import redis

from hw_keyspace import (ALONE, AT_ONCE, FLAGS, LATE_MS, OFF, ON, TICK_MS, TIMEOUT, connected, edges_at_once,
                         keep, listen, seen, setex, wait_edges, wait_up)
from hw_void import Void
from hw_wait import in_time, now_ms, pass_time, throughout, wait_until, wait_within


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
    said = ks.wait_status(watcher, "a", False, start).json()
    assert said["reason"] == "keyspace"
    wait_until(lambda: seen(ks, "a") == (False, True, True, "offline", "key"))
    assert ks.hash("a")["reason"] == "keyspace"
    start = len(watcher.messages)
    setex(ks, "a")
    ks.wait_status(watcher, "a", True, start)
    wait_until(lambda: seen(ks, "a") == (True, False, False, "online", "key"))
    assert ks.edges("a") == [ON, OFF, ON]


def test_its_key_belongs_to_its_writer(ks):
    """The monitor never writes, extends or deletes the writer's key: over several refreshes, an offline and an online
    transition, and a DELETE."""
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
    assert 1000 <= off - on, off - on
    in_time(off - on, 1000 + LATE_MS, "ms until it was told")


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
    edges_at_once(ks, "a", 1)
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
    edges_at_once(ks, "a", 2)
    assert ks.edges("a") == [ON, OFF]


def test_a_changed_time_to_live(ks):
    """If the time to live is shortened, the key ends sooner; if lengthened, later; if removed, never."""
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
    assert 300 <= off["a"] and 2500 <= off["b"], off
    in_time(max(off["a"] - 300, off["b"] - 2500), LATE_MS, "ms past the time to live")


def test_a_renamed_key_takes_its_device_along(ks):
    listen(ks, timeout="1h")
    ks.redis.set(connected(ks, "a"), "x", px=60000)
    wait_edges(ks, "a", 1)
    ks.redis.rename(connected(ks, "a"), connected(ks, "b"))
    edges_at_once(ks, "b", 1)
    edges_at_once(ks, "a", 2)
    assert ks.edges("a") == [ON, OFF] and ks.edges("b") == [ON]


# --- not late


def deaths_of_keys(ks):
    """Two thousand keys whose time to live ends within moments. Returns how late each offline transition was, sorted, in
    milliseconds, and the daemon. Redis itself would take seconds to expire them."""
    d = listen(ks, timeout="1h")
    n, ends = 2000, {}
    for first in range(0, n, 500):
        p = ks.redis.pipeline(transaction=False)
        for i in range(first, first + 500):
            p.set(connected(ks, "d%d" % i), "x", px=3000)
            p.execute_command("PEXPIRETIME", connected(ks, "d%d" % i))
        ends.update(("d%d" % (first + i), t) for i, t in enumerate(p.execute()[1::2]))
    pass_time(3.2)  # in peace: asking is work
    wait_until(lambda: d.metrics().get("transitions_total", reason="keyspace") >= n, 20)
    wait_until(lambda: len(ks.events()) >= 2 * n, 20)
    pass_time(0.3)
    events = ks.events()
    assert len(events) == 2 * n and d.metrics().get("transitions_total", reason="keyspace") == n
    delays = sorted(int(e["time_ms"]) - ends[e["id"]] for e in events if (e["state"], e["reason"]) == OFF)
    assert len(delays) == n and {e["id"] for e in events if e["state"] == "offline"} == set(ends)
    return delays, d


def test_two_thousand_keys(ks):
    """Each key causes one offline transition, never before its time is over, and none is missed."""
    delays, d = deaths_of_keys(ks)
    assert delays[0] >= 0, "called offline before its time was over"
    assert d.metrics().get("keyspace_missed_total") == 0


def test_two_thousand_keys_are_not_late(ks, capsys):
    delays, _ = deaths_of_keys(ks)
    n = len(delays)
    with capsys.disabled():
        print("\n2,000 keys, past their time to live: min %d  p50 %d  p90 %d  p99 %d  max %d ms" % (
            delays[0], delays[n // 2], delays[n * 9 // 10], delays[n * 99 // 100], delays[-1]))
    idle = ALONE and os.getloadavg()[0] < 2 * os.cpu_count()
    in_time(delays[n * 99 // 100], TICK_MS + 20 if idle else 1000, "p99 in ms")


def test_a_renewed_key_is_not_touched(ks):
    """A notification causes one check of the key; a key that is renewed is never taken for expired."""
    d = listen(ks, timeout="1h")
    before = d.metrics()
    renewed = keep(ks, "a", 3, interval=0.1)
    told = before.get("notifications_total") + 2 * renewed
    wait_until(lambda: d.metrics().get("notifications_total") >= told)
    m = d.metrics()
    assert ks.edges("a") == [ON]
    assert m.get("notifications_total") == told
    assert m.get("keyspace_looks_total") - before.get("keyspace_looks_total") <= 2 * renewed


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
    """When Redis resumes, it serves its connections in turn, the monitor's before the writer's: a second check finds the
    renewed key."""
    listen(ks, timeout="1h")
    at = time.monotonic()
    ks.redis.set(connected(ks, "a"), "x", px=2500)
    wait_edges(ks, "a", 1)
    ks.redis_server.signal(signal.SIGSTOP)
    if time.monotonic() > at + 2.4:
        raise Void("it was stopped only when the time to live was over")
    pass_time(at + 3 - time.monotonic())  # the look is in Redis' socket by now
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
    late = int(ks.events("a")[1]["time_ms"]) - ends
    assert late >= 0
    setex(ks, "a", 1)
    wait_edges(ks, "a", 3)
    with ks.beating(["a"]):
        pass_time(2)
        assert ks.edges("a") == [ON, OFF, ON] and ks.redis.exists(connected(ks, "a"))
    wait_edges(ks, "a", 4)
    assert ks.edges("a") == [ON, OFF, ON, TIMEOUT]
    wait_until(lambda: seen(ks, "a") == (False, True, True, "offline", "both"))
    in_time(late, LATE_MS + 40, "ms past the time to live")


def test_a_beating_device_keeps_its_key(ks):
    """Another program deletes or renames the device's key, or lets it expire: the monitor writes it again at once and reports
    no transition."""
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
    wait_within(lambda: ks.redis.get(key) == "a", AT_ONCE / 5, interval=0.001)
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
    """An MQTT fleet comes, is refreshed and goes: the monitor checks no key, and no device counts as known by a key."""
    d = listen(ks, timeout="500ms")
    devices = ["d%d" % i for i in range(50)]
    before = d.metrics().get("keyspace_looks_total")
    with ks.beating(devices, 0.1):
        pass_time(2)
    wait_until(lambda: all(ks.edges(x) == [ON, TIMEOUT] for x in devices))
    wait_until(lambda: d.metrics().get("notifications_own_total") > 200)
    m = d.metrics()
    assert m.get("keyspace_looks_total") == before
    assert m.get("notifications_total") == m.get("notifications_own_total")
    assert {d.device(x)["source"] for x in devices} == {"mqtt"}


def test_expired_is_news_also_in_the_middle_of_its_own_writes(env):
    """A refresh writes the monitor's own key in the place of the writer's key, which has just expired: the writer counts as
    silent."""
    env.own_redis(options=["--notify-keyspace-events", FLAGS, "--enable-debug-command", "yes"])
    ks = env
    listen(ks, timeout="600ms")
    ks.redis.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    with ks.beating(["a"], 0.1):
        wait_edges(ks, "a", 1)
        ks.redis.set(connected(ks, "a"), "writer", px=60000)
        wait_until(lambda: ks.hash("a")["source"] == "both")
        p = ks.redis.pipeline(transaction=True)
        p.config_set("notify-keyspace-events", "")  # without a notification: the monitor checks the key only when it is due
        p.pexpire(connected(ks, "a"), 1)
        p.config_set("notify-keyspace-events", FLAGS)
        p.execute()
        wait_until(lambda: ks.redis.object("encoding", connected(ks, "a")) and ks.redis.get(connected(ks, "a")) == "a")
    wait_edges(ks, "a", 2)
    assert ks.edges("a") == [ON, TIMEOUT]
