# SPDX-License-Identifier: MIT
"""Devices that only write to Redis: lost, flushed and evicted keys, missing rights, a Redis that is away, and keys that were
there at the start."""
import os
import random
import re
import time

import pytest

from hw_build import SRC
from hw_keyspace import FLAGS, LATE_MS, OFF, ON, connected, edges_at_once, keep, listen, setex, wait_edges, wait_up
from hw_void import Void
from hw_wait import in_time, now_ms, pass_time, wait_until

REDIS_ACL = (SRC / "conf" / "redis-heartwheel.acl").read_text()


# --- nothing lost, nothing invented


def kill_links(env, kind):
    """Kills the connections that are subscribed ("hear"), the others ("look"), or "all"."""
    r = env.redis
    me = r.client_id()
    for c in r.client_list():
        heard = int(c["sub"]) > 0
        if int(c["id"]) != me and (kind == "all" or heard == (kind == "hear")):
            r.client_kill_filter(_id=c["id"])


def test_the_listeners_connection_is_lost(ks):
    """What happened meanwhile is found as soon as the monitor listens again; keys also expire in time while it does not."""
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
    edges_at_once(ks, "new", 1)
    wait_edges(ks, "deleted", 2)
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
    ks.redis.set(connected(ks, "kept"), "x", px=2000)
    keep(ks, "kept", 5)
    wait_until(lambda: ks.edges("gone") == [OFF])  # the stream begins anew with the flush
    took = int(ks.events("gone")[0]["time_ms"]) - at
    assert took >= 2000, took
    assert ks.edges("kept") == []
    in_time(took, 3200 + LATE_MS, "ms until it was told")


def test_a_flush_takes_keys_that_live_for_ever(ks):
    """Neither a notification nor a time to live reports the flush; the writer gets a timeout to write its key again."""
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
    """A check is due by the last notification, and the key is missing because all keys are: the monitor first asks whether the
    store was emptied."""
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


def test_a_flush_just_after_a_restart(ks):
    """Redis comes back empty and is emptied again at once: a key that was written in between is missing through no fault of its
    writer."""
    d = listen(ks, timeout="1h")
    for turn in range(3):
        wait_until(lambda: ks.redis.exists(ks.key("monitor", ks.node)))
        told = d.log().count("returned without heartwheel's data")
        ks.redis_server.kill()
        ks.redis_server.start()
        wait_until(lambda: d.log().count("returned without heartwheel's data") > told, 10, interval=0.002)
        wait_up(d)
        device = "a%d" % turn
        p = ks.redis.pipeline(transaction=True)
        p.set(connected(ks, device), "x", px=60000)
        p.execute()
        wait_until(lambda: d.state(device) == "online", 5, interval=0.002)
        p.set(connected(ks, device), "x", px=60000)
        p.flushall()
        p.execute()
        pass_time(1.2)
        assert d.state(device) == "online"


def test_redis_restarted(ks):
    """Writers could not write while Redis was away: their devices get one more time to live."""
    d = listen(ks, timeout="1h", configure="yes")
    for device in ("kept", "gone"):
        ks.redis.set(connected(ks, device), "x", px=2000)
        wait_edges(ks, device, 1)
    ks.redis_server.kill()
    pass_time(2.5)
    ks.redis_server.start()
    ks._redis = None
    wait_until(lambda: d.metrics().get("keyspace_up") == 1, 15)
    ks.redis.set(connected(ks, "kept"), "x", px=2000)
    keep(ks, "kept", 4)
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
    if at >= end - 1500:
        raise Void("the key was evicted when its time was nearly over")
    wait_edges(env, "a", 2)
    assert int(env.events("a")[1]["time_ms"]) >= max(end, at + 2500)


def test_faults_at_random_moments(ks):
    """Whatever happens to the listener: each key that expires is found, and no device whose key is kept is called offline."""
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
    renewed = []  # the moments before

    def renew():
        renewed.append(time.monotonic())
        for device in kept:
            r.set(connected(ks, device), "x", px=ttl)

    def all_live():
        """Void if the test itself let a key run out."""
        gap = max(b - a for a, b in zip(renewed, renewed[1:] + [time.monotonic()]))
        states = {x: d.state(x) for x in kept}
        if "offline" in states.values() and gap + 0.1 > ttl / 1000:
            raise Void("the test left its keys alone for %.3f s" % gap)
        return states
    while time.monotonic() < start + 14:
        renew()
        if rnd.random() < 0.5:
            dead.append("d%d" % len(dead))
            r.set(connected(ks, dead[-1]), "x", px=rnd.randrange(200, ttl))
        if time.monotonic() > at:
            rnd.choice(faults)()
            at = time.monotonic() + rnd.uniform(0.3, 2)
        pass_time(0.25)
        states = all_live()
        assert set(states.values()) <= {"online", None}, [x for x in kept if states[x] == "offline"]
    end = time.monotonic() + 8
    while time.monotonic() < end:  # the flags are looked at every 5 s
        renew()
        pass_time(0.25)
    assert r.config_get("notify-keyspace-events")["notify-keyspace-events"] != ""
    assert set(all_live().values()) == {"online"}
    late = [x for x in dead if d.state(x) == "online"]
    assert not late, late
    assert d.metrics().get("keyspace_up") == 1


# --- what it needs of Redis


@pytest.mark.parametrize("flags", ["", "Kx", "AK", "E", "Exg$"])
def test_it_adds_the_flags_that_are_missing(env, flags):
    env.own_redis(options=["--notify-keyspace-events", flags])
    d = listen(env, configure="yes")
    wait_until(lambda: "added the missing flags" in d.log(), what="the log to say so, once Redis has them")
    has = env.redis.config_get("notify-keyspace-events")["notify-keyspace-events"]
    assert set(flags) - set("A") <= set(has) | {"A"} and "E" in has and ("A" in has or set("xg$e") <= set(has)), has
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
    wait_edges(env, "a", 1)  # looked at every few seconds, and then all keys are gone through
    env.redis.delete(connected(env, "a"))
    edges_at_once(env, "a", 2)


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
    """configure = yes without the right to configure: the log then also says what to set."""
    env.own_redis(options=["--notify-keyspace-events", ""])
    env.redis.execute_command("ACL", "SETUSER", "hw", "on", ">pw", "~*", "&*", "+@all", "-config|set")
    password = env.dir / "pw"
    password.write_text("pw\n")
    d = env.daemon(keyspace={"enabled": "yes", "configure": "yes"}, redis={"username": "hw", "password_file": password})
    wait_until(lambda: re.search(r"cannot set notify-keyspace-events .*set it to '[Exg$e]{5}'.*\+config\|set", d.log()), 10)


# --- start, and off


def test_what_is_there_at_the_start(ks):
    """Keys that were written, and keys that were lost, while no monitor ran."""
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
    """The monitor judges keys although the broker is away."""
    d = listen(ks, timeout="1h")
    ks.redis.set(connected(ks, "a"), "x", px=1500)
    wait_edges(ks, "a", 1)
    d.edit("port = %d" % ks.broker.port, "port = 1")
    d.stop()
    d.start(seeing=False)
    wait_up(d)
    ks.redis.set(connected(ks, "a"), "x", px=700)
    ks.redis.set(connected(ks, "b"), "x", px=700)
    wait_edges(ks, "b", 2)
    wait_until(lambda: ks.edges("a")[-1] == OFF)
    assert d.status()["blind"] and ks.edges("b") == [ON, OFF] and ks.edges("a")[-1] == OFF


def test_off_by_default(env):
    """By default the monitor subscribes to, checks and publishes nothing, and another program's key makes no device."""
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
