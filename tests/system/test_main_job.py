# SPDX-License-Identifier: MIT
"""The main job: heartbeats keep a device online, silence takes it offline, and each sink reports that."""
import re
import signal
import socket
import time

import pytest

from hw_build import SRC
from hw_wait import in_time, now_ms, pass_time, throughout, wait_until

STATUS_KEYS = {"time", "online", "reason", "last_seen", "by", "seq"}
STATE_FIELDS = {"state", "since", "last_seen", "timeout", "reason", "group", "node", "source", "seq"}
EVENT_FIELDS = {"id", "state", "reason", "time_ms", "last_seen_ms", "group", "node", "seq"}


def shipped_conf(env, daemon_dir):
    """conf/monitor.conf unchanged except for ports, user, paths, log and grace."""
    text = (SRC / "conf" / "monitor.conf").read_text()

    def put(section, key, value):
        """Sets a key of a section, whether the file sets it or only shows it in a comment; adds the key or the section if it is
        missing."""
        nonlocal text
        head = re.search(r"^\[%s\][^\n]*\n" % re.escape(section), text, re.M)
        if not head:
            text += "\n[%s]\n%s = %s\n" % (section, key, value)
            return
        end = re.search(r"^\[", text[head.end():], re.M)
        end = head.end() + end.start() if end else len(text)
        body = text[head.end():end]
        line = re.compile(r"^%s[ \t]*=.*$" % re.escape(key), re.M)
        body = line.sub("%s = %s" % (key, value), body, 1) if line.search(body) else "%s = %s\n" % (key, value) + body
        text = text[:head.end()] + body + text[end:]

    put("monitor", "pid_file", daemon_dir / "heartwheeld.pid")
    put("monitor", "user", "")
    put("monitor", "log", "stderr")
    put("mqtt", "port", env.broker.port)
    put("mqtt", "reconnect_grace", "0")
    put("redis", "port", env.redis_server.port)
    put("http", "socket", daemon_dir / "control.sock")
    return text


def test_shipped_conf_with_its_real_30_seconds(env):
    """With a default mosquitto and a default Redis."""
    env.own_broker(settings=())
    env.own_redis()
    env.prefix, env.root, env.node = "device:", "nodes", socket.gethostname()
    d = env.configure("")
    d.rewrite(shipped_conf(env, d.dir))
    d.start()
    observer = env.observer("nodes/+/status", "heartwheel/#")
    r = env.redis

    before = now_ms()
    env.beat("X", {"battery": 87, "rssi": -60.5, "ip": "10.0.0.7", "version": "1.2.3", "uptime": 12,
                   "data": {"t": [1, 2.5, "x"]}})
    online = env.wait_status(observer, "X", True)
    env.wait_store("X", "online")
    after = now_ms()

    assert r.get("device:connected:X") == "X"
    assert 80_000 < r.pttl("device:connected:X") <= 90_000
    h = env.hash("X")
    assert STATE_FIELDS <= set(h), h
    assert (h["state"], h["reason"], h["group"], h["node"], h["source"], h["timeout"]) == \
        ("online", "heartbeat", "default", env.node, "mqtt", "30000"), h
    assert before - 1 <= int(h["since"]) <= after and before - 1 <= int(h["last_seen"]) <= after, h
    assert int(h["seq"]) >= before - 1
    assert "own_timeout" not in h
    assert (float(h["battery"]), float(h["rssi"]), h["ip"], h["version"], float(h["uptime"])) == \
        (87, -60.5, "10.0.0.7", "1.2.3", 12), h
    assert __import__("json").loads(h["data"]) == {"t": [1, 2.5, "x"]}, h
    j = online.json()
    assert set(j) == STATUS_KEYS | {"battery", "rssi", "ip", "version", "uptime", "data"}, j
    assert j["reason"] == "heartbeat" and j["by"] == env.node and j["seq"] == int(h["seq"])
    assert env.retained_status("X")["online"] is True

    # A second heartbeat later on: it is silence after the last one that counts.
    pass_time(1.5)
    since, seq = h["since"], h["seq"]
    n = len(observer.messages)
    wall = time.time()
    last = env.beat("X")
    env.settle(d)
    assert not observer.on("nodes/X/status", n), "a heartbeat that changes nothing was published"

    # Not before: until just short of 30 s after it, nobody says offline.
    throughout(lambda: env.in_store("X") == "online" and not any(
        m.json()["online"] is False for m in observer.on("nodes/X/status", n)), 29.9 - (time.monotonic() - last))
    gone = wait_until(lambda: not r.exists("device:connected:X") and time.monotonic(), 5, "device:connected:X to go",
                      interval=0.002)
    assert gone - last >= 30.0, "early by %.3f s" % (30.0 - (gone - last))
    offline = env.wait_status(observer, "X", False)
    assert offline.at - last >= 30.0, offline.at - last
    env.wait_store("X", "offline")

    assert r.get("device:disconnected:X") == "X" and r.ttl("device:disconnected:X") == -1
    h = env.hash("X")
    assert (h["state"], h["reason"], h["battery"]) == ("offline", "timeout", "87"), h
    assert int(h["since"]) > int(since) and int(h["seq"]) > int(seq)
    assert int(h["last_seen"]) >= wall * 1000 - 2, (h, wall)
    assert r.zscore("device:offline", "X") == int(h["since"])
    assert int(h["since"]) - int(h["last_seen"]) >= 30_000 - 1, h

    j = offline.json()
    assert set(j) == STATUS_KEYS | {"battery", "rssi", "ip", "version", "uptime", "data"}, j
    for key in ("time", "last_seen", "seq"):
        assert type(j[key]) is int, "%s is not an integer in %r" % (key, offline)
    assert j["online"] is False and j["reason"] == "timeout" and j["by"] == env.node
    assert (j["seq"], j["time"], j["last_seen"]) == (int(h["seq"]), int(h["since"]) // 1000, int(h["last_seen"]) // 1000), (j, h)
    assert (j["battery"], j["rssi"], j["ip"], j["version"], j["uptime"], j["data"]) == \
        (87, -60.5, "10.0.0.7", "1.2.3", 12, {"t": [1, 2.5, "x"]}), j

    events = env.events("X")
    assert [(e["state"], e["reason"]) for e in events] == [("online", "heartbeat"), ("offline", "timeout")]
    assert all(set(e) == EVENT_FIELDS for e in events), events
    assert events[1]["time_ms"] == h["since"] and events[1]["last_seen_ms"] == h["last_seen"], (events, h)
    assert events[1]["group"] == "default" and events[1]["node"] == env.node and events[1]["seq"] == h["seq"]

    retained = env.retained("nodes/X/status")["nodes/X/status"]
    assert retained.retain and retained.payload == offline.payload
    wait_until(lambda: int(r.hget("device:published", "all")) > int(h["seq"]), 5, "P to pass the last status")
    assert not r.exists("device:outbox")

    n = len(observer.messages)
    env.beat("X")
    back = env.wait_status(observer, "X", True, n).json()
    env.wait_store("X", "online")
    assert back["reason"] == "heartbeat" and back["seq"] > j["seq"]
    assert env.retained_status("X") == back
    assert env.edges("X")[-1] == ("online", "heartbeat")
    assert not r.exists("device:disconnected:X") and r.zscore("device:offline", "X") is None
    in_time(offline.at - last, 30.5, "until it was told")
    in_time(int(h["last_seen"]) / 1000 - wall, 0.2, "until the heartbeat was read")


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("readers", [1, 2])
def test_every_way_to_be_connected(env, protocol, qos, readers):
    d = env.daemon(mqtt={"protocol": protocol, "qos": qos, "readers": readers}, timeout="600ms")
    observer = env.observer()
    ids = ["d%d" % i for i in range(20)]
    with env.beating(ids, 0.1) as beating:
        for i in ids:
            env.wait_status(observer, i, True)
        n = len(observer.messages)
        throughout(lambda: not observer.messages[n:], 1.5, "no device that beats is told anything about")
    for i in ids:
        m = env.wait_status(observer, i, False, n)
        assert m.at - beating.last[env.topic(i)] >= 0.6
    for i in ids:
        env.wait_store(i, "offline")
        assert env.edges(i) == [("online", "heartbeat"), ("offline", "timeout")]
    assert all(m.qos == 0 for m in observer.messages)
    q1 = env.client()
    q1.subscribe(env.root + "/+/status", 1).fence()
    assert len(q1.messages) >= 20 and all(m.qos == 1 for m in q1.messages if m.retain), "statuses are not QoS 1"
    d.stop()


def test_shared_readers_count_each_heartbeat_once(env):
    d = env.daemon(mqtt={"readers": 2}, timeout="30s")
    for i in range(200):
        env.beat("s%d" % (i % 40))
    wait_until(lambda: d.status()["heartbeats_total"] >= 200, what="200 heartbeats")
    throughout(lambda: d.status()["heartbeats_total"] == 200, 0.5)
    assert d.status()["devices"] == 40


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_heartbeats_of_qos_1(env, protocol, qos):
    """Heartbeats and barriers are subscribed to with the configured QoS, as the broker's log shows."""
    env.own_broker(settings=("log_type subscribe",))
    d = env.daemon(mqtt={"qos": qos, "protocol": protocol})
    env.beat("q", qos=1)
    wait_until(lambda: d.state("q") == "online")
    said = re.findall(r": heartwheel-%s-r0 (\d) (\S+)$" % env.node, env.broker.log(), re.M)
    assert {topic for _, topic in said} >= {env.topic("+"), "heartwheel/%s/barrier" % env.node}, env.broker.log()
    assert {granted for granted, _ in said} == {str(qos)}, said


def test_steady_heartbeats_cost_redis_nothing(env):
    """A heartbeat that changes nothing sends nothing to Redis: by the commands on devices' keys, including those in scripts,
    but without the entry that the tick writes each second. A stall is a reason for a refresh, so none is recognised here; and
    no refresh is due within the test, however slow the machine is."""
    env.own_redis()
    d = env.daemon(timeout="600s", monitor={"stall_after": "60s"},
                   mqtt={"barrier_slow": "60s", "barrier_timeout": "60s"})
    env.beat("calm")
    env.wait_store("calm", "online")
    wait_until(lambda: env.published() > int(env.hash("calm")["seq"]))

    def commands():
        """The number of commands without the HSET of each second, which renews the monitor's own entry."""
        stats, entries = env.redis.pipeline().info("commandstats").hgetall(env.key("monitors")).execute()
        n = {c: stats["cmdstat_" + c]["calls"] for c in (
            "expire", "pexpire", "hset", "hget", "hmget", "zadd", "xadd", "del") if "cmdstat_" + c in stats}
        n["hset"] -= sum(int(e.split()[1]) for e in entries.values())
        return n
    def calm():
        """Waits until the start is over: the devices are compared with the store, and the status is acknowledged."""
        n = commands()
        pass_time(0.3)
        return commands() == n
    wait_until(calm, what="Redis to be left alone")
    before = commands()
    heard = d.status()["heartbeats_total"]
    for _ in range(3000):
        env.beat("calm")
    wait_until(lambda: d.status()["heartbeats_total"] >= heard + 3000, what="3,000 heartbeats")
    assert commands() == before, "Redis is asked for heartbeats that change nothing"


def test_refresh_keeps_the_keys_fresh(env):
    """While heartbeats arrive, device:connected:X never comes near its end, and last_seen is updated if that is configured."""
    env.daemon(timeout="1s", redis={"refresh_last_seen": "yes"})
    with env.beating(["f"], 0.1):
        env.wait_store("f", "online")
        key = env.key("connected", "f")
        first = int(env.hash("f")["last_seen"])
        assert env.redis.pttl(key) > 9000, "the TTL is at least 10 s"
        throughout(lambda: env.redis.pttl(key) > 5000, 4, "the TTL to be refreshed")
        assert int(env.hash("f")["last_seen"]) > first + 1500
        age = (now_ms() - int(env.hash("f")["last_seen"])) / 1000
        # What somebody deletes comes back with a refresh.
        env.redis.delete(key, env.key("state", "f"))
        env.wait_store("f", "online", 5)
        assert STATE_FIELDS <= set(env.hash("f"))
        in_time(age, 2.5, "since the latest refresh")
    assert env.edges("f")[:1] == [("online", "heartbeat")] and len(env.edges("f")) <= 2


def test_plain_refreshes_keep_the_keys(env):
    """Refreshes that only extend keys gather for a moment. No key comes near its end although the timeout is short, for
    longer than a key lives. What somebody deletes comes back, and so does what ended while Redis stood still."""
    env.own_redis()
    env.daemon(timeout="1s")
    devices = ["p%d" % k for k in range(40)]
    keys = [env.key("connected", d) for d in devices]
    with env.beating(devices, 0.2):
        wait_until(lambda: env.redis.exists(*keys) == len(keys), what="all to be online")
        throughout(lambda: min(env.redis.pttl(k) for k in keys) > 5000, 12, "the TTL to be refreshed")
        env.redis.delete(*keys)
        wait_until(lambda: env.redis.exists(*keys) == len(keys), what="the deleted keys")
        env.redis_server.signal(signal.SIGSTOP)
        pass_time(11)  # the keys live for 10 s
        env.redis_server.signal(signal.SIGCONT)
        wait_until(lambda: env.redis.exists(*keys) == len(keys), what="the keys that ended")
        throughout(lambda: min(env.redis.pttl(k) for k in keys) > 5000, 2, "the TTL to be refreshed")
        for d in devices:
            assert env.edges(d) == [("online", "heartbeat")]
        assert env.redis.info("commandstats")["cmdstat_pexpire"]["calls"] > 12 * len(devices)


def test_ttl_follows_ttl_factor(env):
    env.daemon(timeout="20s", redis={"ttl_factor": 5})
    env.beat("t")
    env.wait_store("t", "online")
    assert 95_000 < env.redis.pttl(env.key("connected", "t")) <= 100_000


def test_wake_ups_of_many_devices_in_one_burst(env):
    """2,000 devices come online at once and stop at once: each transition is reported once."""
    env.daemon(timeout="1s")
    observer = env.observer()
    ids = ["b%d" % i for i in range(2000)]
    sent = {i: env.beat(i) for i in ids}
    wait_until(lambda: env.redis.zcard(env.key("offline")) == 2000, 20, "2,000 devices to go offline")
    wait_until(lambda: sum(1 for m in observer.messages if (m.json() or {}).get("online") is False) >= 2000, 20,
               "2,000 offline statuses")
    assert len(env.events()) == 4000
    for m in observer.messages:
        j = m.json()
        if j.get("online") is False:
            assert m.at - sent[m.topic.split("/")[1]] >= 1.0, "early: %r" % m
    wait_until(lambda: env.published() > max(int(e["seq"]) for e in env.events()), 20, "P to pass the last status")
    assert len(env.retained(env.root + "/+/status")) == 2000


def test_state_since_survives_heartbeats(env):
    env.daemon(timeout="2s")
    env.beat("s")
    env.wait_store("s", "online")
    since, seq = env.hash("s")["since"], env.hash("s")["seq"]
    with env.beating(["s"], 0.2):
        pass_time(2.5)
        assert (env.hash("s")["since"], env.hash("s")["seq"]) == (since, seq)


def test_store_script_adopts_a_newer_seq(env):
    """Another program wrote a newer record: the monitor continues from the seq of that record."""
    d = env.daemon(timeout="1s")
    observer = env.observer()
    env.beat("n")
    env.wait_store("n", "online")
    far = now_ms() + 1_000_000
    env.redis.hset(env.key("state", "n"), "seq", far)
    env.wait_store("n", "offline")
    assert int(env.hash("n")["seq"]) > far
    wait_until(lambda: (env.retained_status("n") or {}).get("seq", 0) > far, what="the status with the adopted seq")
    assert env.retained_status("n")["online"] is False
    assert d.device("n")["seq"] > far
    env.beat("n")
    env.wait_store("n", "online")
    assert int(env.hash("n")["seq"]) > far + 1
    env.wait_status(observer, "n", True, len(observer.messages) - 1)
    env.check_events = False


def test_events_stay_about_events_max_long(env):
    env.daemon(timeout="300ms", redis={"events_max": 200})
    for k in range(3):
        for i in range(300):
            env.beat("e%d" % i)
        wait_until(lambda: env.redis.zcard(env.key("offline")) == 300, 15)
    # Redis drops whole nodes of 100 entries (stream-node-max-entries).
    assert 200 <= env.redis.xlen(env.key("events")) < 300


def test_redis_down_does_not_hide_an_edge(env):
    """Transitions while Redis is away are published by MQTT in time, and afterwards each is in the stream, in order."""
    env.own_redis(options=["--appendonly", "yes", "--appendfsync", "always"])
    env.daemon(timeout="500ms")
    observer = env.observer()
    env.beat("x")
    env.wait_store("x", "online")
    env.redis_server.kill()
    env.wait_status(observer, "x", False, timeout=5)
    n = len(observer.messages)
    env.beat("x")
    env.wait_status(observer, "x", True, n, timeout=5)
    env.beat("y")
    env.wait_status(observer, "y", True, n, timeout=5)
    env.wait_status(observer, "y", False, n, timeout=5)
    env.redis_server.start()
    env.wait_store("x", "offline", 20)
    env.wait_store("y", "offline", 20)
    wait_until(lambda: len(env.edges("x")) >= 4, what="both times that x went offline")
    assert env.edges("x") == [("online", "heartbeat"), ("offline", "timeout")] * 2
    assert env.edges("y") == [("online", "heartbeat"), ("offline", "timeout")]


def test_redis_that_stands_still_delays_no_status_for_long(env):
    """A Redis that hangs counts as away: after a second the status is published without it."""
    import signal
    env.own_redis()
    env.daemon(timeout="500ms")
    observer = env.observer()
    env.beat("h")
    env.wait_store("h", "online")
    env.redis_server.signal(signal.SIGSTOP)
    try:
        env.wait_status(observer, "h", False, timeout=6)
    finally:
        env.redis_server.signal(signal.SIGCONT)
    env.wait_store("h", "offline", 15)
    assert env.edges("h") == [("online", "heartbeat"), ("offline", "timeout")]


def test_a_status_waits_for_redis(env):
    """The status is published once Redis has written the transition: not before, unless Redis is away
    for more than a second."""
    import signal
    env.own_redis()
    d = env.daemon(timeout="1h")
    observer = env.observer()
    env.beat("first")
    env.wait_status(observer, "first", True)
    env.redis_server.signal(signal.SIGSTOP)
    try:
        at = env.beat("second")
        wait_until(lambda: d.device("second"))
        pass_time(0.7 - (time.monotonic() - at))
    finally:
        goes_on = time.monotonic()
        env.redis_server.signal(signal.SIGCONT)
    m = env.wait_status(observer, "second", True)
    assert m.at >= min(goes_on, at + 1), "%.3f s before Redis could answer" % (goes_on - m.at)
    if m.at >= at + 1:  # it did not wait for Redis any longer
        env.wait_store("second", "online")
    assert env.in_store("second") == "online" and m.json()["seq"] == int(env.hash("second")["seq"])


def test_memory_store_needs_no_redis(env):
    env.check_events = False
    env.own_redis(start=False)
    d = env.daemon(store={"type": "memory"}, timeout="500ms")
    observer = env.observer()
    sent = env.beat("m", {"battery": 5})
    assert env.wait_status(observer, "m", True).json()["battery"] == 5
    m = env.wait_status(observer, "m", False)
    assert m.at - sent >= 0.5 and m.json()["reason"] == "timeout"
    assert d.device("m")["state"] == "offline"
    assert env.retained_status("m")["online"] is False


def test_two_monitors_side_by_side_share_nothing(env):
    """Different node ids, prefixes and topics on one broker and one Redis."""
    d = env.daemon(timeout="1h")
    other = env.configure(node=env.node + "b", text=None, monitor={"node_id": env.node + "b"},
                          redis={"key_prefix": env.prefix + "b:"},
                          groups=[("default", {"heartbeat": env.root + "b/{id}/heartbeat", "timeout": "1s"})]).start()
    env.beat("one")
    env.wait_store("one", "online")
    assert other.device("one") is None and other.status()["devices"] == 0
    other.stop()
    assert d.state("one") == "online"


def test_a_group_without_status_topic_publishes_nowhere(env):
    env.daemon(groups=[("default", {"heartbeat": env.root + "/{id}/heartbeat", "status": "", "timeout": "400ms"})])
    observer = env.observer(env.root + "/#")
    env.beat("silent")
    env.wait_store("silent", "offline")
    observer.fence()
    canary = env.topic("heartwheel-" + env.node)
    assert {m.topic for m in observer.messages if m.topic.startswith(env.root)} <= {env.topic("silent"), canary}
    assert not env.redis.hlen(env.key("outbox"))
