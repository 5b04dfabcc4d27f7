# SPDX-License-Identifier: MIT
"""What a payload can express, and what it cannot cause."""
import json
import os
import random
import time

import pytest

from hw_env import short
from hw_void import Void
from hw_wait import in_time, now_ms, pass_time, throughout, wait_until

SEED = int(os.environ.get("HW_SEED", "1"))  # the same in each worker of a parallel run


def refusals(d):
    return d.metrics().refused()


def payload_errors(d):
    return d.metrics().get("payload_errors_total")


# --- any payload is a heartbeat


@pytest.mark.parametrize("payload", [
    b"", b"1", b"online", b"\x00", b"\x00\xff\xfe\x80 binary \x00", random.Random(SEED).randbytes(2000), b"[1,2]", b'"text"', b"null",
    b"123", b"{}", b"{ }", b" \r\n\t{}", b"\xef\xbb\xbf{}", b"<xml/>", b"x" * 100_000, b'{"unknown":1}',
    b'{"online":true}', b'{"online":"false"}', b'{"online":0}', b'{"online":null}', b'[{"online":false}]',
    b'"{\\"online\\":false}"', json.dumps({"data": "y" * 200_000}).encode()], ids=short)
def test_any_payload_is_a_heartbeat(shared_daemon, payload):
    d, device = shared_daemon.d, shared_daemon.fresh()
    shared_daemon.beat(device, payload)
    wait_until(lambda: d.state(device) == "online", what="%r to count as a heartbeat" % payload[:40])
    shared_daemon.settle()
    assert d.state(device) == "online"


@pytest.mark.parametrize("payload", [
    b"{", b'{"online":fal', b'{"online":false', b'{"online":false,}', b"{'online': false}", b'{"a":1}}', b'{"a" 1}',
    b'{"timeout":NaN}', b'{"timeout":Infinity}', b'{"timeout":-Infinity}', b"{\x00}", b'{"a":"\xff\xfe"',
    b'  {"a":', b'{"a":' * 20_000, b'{"a":[' + b"[" * 50_000, b'{"online":false}garbage'], ids=short)
def test_broken_json_is_a_heartbeat_and_counted(shared_daemon, payload):
    d, device = shared_daemon.d, shared_daemon.fresh()
    errors, heard = payload_errors(d), d.status()["heartbeats_total"]
    shared_daemon.beat(device, payload)
    wait_until(lambda: d.state(device) == "online", what="%r to count as a heartbeat" % payload[:40])
    assert payload_errors(d) == errors + 1, payload[:40]
    assert d.status()["heartbeats_total"] == heard + 1


@pytest.mark.parametrize("value", [b"0", b'"false"'], ids=["number", "text"])
def test_a_goodbye_that_is_none_names_its_device(env, value):
    d = env.daemon(timeout="1h")
    for _ in range(50):
        env.beat("pump-7", b'{"online":%s}' % value)
    wait_until(lambda: "device 'pump-7': 'online' is of a wrong type" in d.log(), what="the log to name it")
    env.settle(d)
    assert d.state("pump-7") == "online" and payload_errors(d) == 50
    throughout(lambda: d.log().count("payload error") <= 2, 2.5)


def test_a_state_that_homie_does_not_know_is_told_as_such(env):
    env.own_broker()
    d = env.daemon(groups=[("h", {"preset": "homie"})])
    env.publisher.publish("homie/pump-8/$state", b"fine", 1)
    wait_until(lambda: "device 'pump-8': '$state' is no state of Homie" in d.log(), what="the log to name it")
    assert d.state("pump-8") == "online" and payload_errors(d) == 1


def test_own_statuses_are_not_refused(env):
    d = env.daemon(timeout="1h")
    for i in range(20):
        env.beat("s%d" % i, b"1", last="status")
    wait_until(lambda: d.metrics().get("own_messages_total") >= 20, what="the own statuses to come back")
    assert d.metrics().refused() == 0
    env.publisher.publish(env.status_topic("s0"), b'{"by":"someone else","seq":1,"online":false}')
    wait_until(lambda: d.metrics().refused() == 1)
    assert d.metrics().get("refused_total", kind="monitor") == 1 and d.state("s0") == "online"


def test_plain_payloads_are_no_payload_errors(shared_daemon):
    d, device = shared_daemon.d, shared_daemon.fresh()
    errors = payload_errors(d)
    for payload in (b"", b"hello", b"[1,", b'"x', b"\x00\x01", b"{}", b'{"online":true,"battery":5}'):
        shared_daemon.beat(device, payload)
    shared_daemon.settle()
    assert d.state(device) == "online" and payload_errors(d) == errors


def test_a_megabyte_is_a_heartbeat(shared_daemon):
    d, device = shared_daemon.d, shared_daemon.fresh()
    shared_daemon.beat(device, b"{" + b" " * 1_000_000 + b"}")
    wait_until(lambda: d.state(device) == "online")


def test_json_that_is_too_long_to_be_read(env):
    d = env.daemon(timeout="1h")
    env.beat("long", '{"online":false,"a":"%s"}' % ("y" * 70_000))
    wait_until(lambda: "device 'long': is longer than 64 KiB, counts as a heartbeat" in d.log())
    assert d.state("long") == "online" and payload_errors(d) == 1


def test_live_message_with_the_retain_flag_is_a_heartbeat(env):
    """With retained = count, a message that a device publishes with retain is live when it is sent; only its replay is
    history."""
    for protocol in ("5", "3.1.1"):
        d = env.configure(mqtt={"protocol": protocol}, group={"retained": "count"}).start()
        env.beat("live" + protocol[0], b"1", retain=True)
        wait_until(lambda: d.state("live" + protocol[0]) == "online")
        d.stop()


# --- reported fields


def test_reported_fields_in_hash_status_and_api(env):
    d = env.daemon(timeout="700ms")
    observer = env.observer()
    told = {"time": 1234567890, "online": True, "battery": 12.5, "rssi": -71, "ip": "fe80::1", "version": "v2 \"q\" \\ ü",
            "uptime": 86400.25, "data": {"a": [1, {"b": None}], "s": "ü\n\"", "t": True}}
    env.beat("r", told)
    reported = {k: v for k, v in told.items() if k not in ("time", "online")}
    j = env.wait_status(observer, "r", True).json()
    assert {k: j.get(k) for k in reported} == reported, j
    env.wait_store("r", "online")
    h = env.hash("r")
    assert {k: float(h[k]) for k in ("battery", "rssi", "uptime")} == {"battery": 12.5, "rssi": -71, "uptime": 86400.25}
    assert (h["ip"], h["version"], json.loads(h["data"])) == (told["ip"], told["version"], told["data"]), h
    one = d.device("r")
    assert {k: one.get(k) for k in reported} == reported, one
    # The last words: what came last counts, what it did not mention stays.
    env.beat("r", {"battery": 3})
    j = env.wait_status(observer, "r", False).json()
    assert {k: j.get(k) for k in reported} == {**reported, "battery": 3}, j
    env.wait_store("r", "offline")
    assert float(env.hash("r")["battery"]) == 3 and env.hash("r")["ip"] == "fe80::1"


def test_reported_fields_survive_a_restart(env):
    d = env.daemon(timeout="1s")
    env.beat("r", {"battery": 44, "version": "9", "data": [1]})
    env.wait_store("r", "online")
    d.stop()
    d.start()
    observer = env.observer()
    j = env.wait_status(observer, "r", False).json()
    assert (j.get("battery"), j.get("version"), j.get("data")) == (44, "9", [1]), j


@pytest.mark.parametrize("payload, kept", [
    ({"battery": "full"}, {}), ({"battery": None}, {}), ({"battery": [1]}, {}), ({"rssi": {}}, {}),
    ({"uptime": "1h"}, {}), ({"ip": 5}, {}), ({"ip": "x" * 100_000}, {}), ({"version": {"a": 1}}, {}),
    ({"version": "a\u0000b"}, {}), ({"version": "\u0001\u001f\u007f\u2028"}, {}),
    ({"data": "z" * 60_000}, {}), ({"data": [[[[[[[[1]]]]]]]]}, {"data": [[[[[[[[1]]]]]]]]}),
    ({"battery": 1e308, "rssi": -1e308, "uptime": 1e-300}, {"battery": 1e308, "rssi": -1e308, "uptime": 1e-300}),
    ({"ip": "\ud800"}, {}), ({"time": "yesterday", "rssi": -7}, {"rssi": -7}), ({"time": -1e300, "rssi": -7}, {"rssi": -7}),
    ({"online": "no", "rssi": -7}, {"rssi": -7}), ({"battery": [1], "rssi": -7}, {"rssi": -7}),
    (b'{"battery":1,"battery":2}', {"battery": 1}), (b'{"battery":1e999}', {}), (b'{"version":"\\u0000"}', {}),
    (b'{"version":"\xff\xfe\xc0"}', {}), (b'{"data":"\xff"}', {})], ids=short)
def test_odd_fields_harm_nobody(shared_daemon, payload, kept):
    """A heartbeat with odd fields counts; only valid fields are kept; what the monitor reports about the device stays valid
    JSON and valid UTF-8."""
    d, device = shared_daemon.d, shared_daemon.fresh()
    shared_daemon.beat(device, payload)
    wait_until(lambda: d.state(device) == "online")
    one = d.device(device)
    assert one["state"] == "online"
    j = shared_daemon.env.retained_status(device) or wait_until(lambda: shared_daemon.env.retained_status(device))
    assert j["online"] is True, j
    for told in (one, j):
        assert {k: v for k, v in told.items() if k in ("battery", "rssi", "ip", "version", "uptime", "data")} == kept, told


# --- the device's own timeout


def test_own_timeout_in_fractions_of_a_second(env):
    d = env.daemon(timeout="1h")
    observer = env.observer()
    sent = env.beat("o", {"timeout": 0.45})
    env.wait_store("o", "online")
    h = env.hash("o")
    assert h["timeout"] == "450" and h["own_timeout"] == "450", h
    assert d.device("o")["timeout_ms"] == 450
    m = env.wait_status(observer, "o", False)
    assert 0.45 <= m.at - sent, m.at - sent
    in_time(m.at - sent, 4, "until it was told")


def test_own_timeout_lasts_until_the_next_one(env):
    d = env.daemon(timeout="1h", group={"timeout_max": "2h"})
    env.beat("o", {"timeout": 7})
    env.beat("o")
    env.beat("o", {"battery": 1})
    env.settle(d)
    assert d.device("o")["timeout_ms"] == 7000
    env.beat("o", {"timeout": 5000})
    wait_until(lambda: d.device("o")["timeout_ms"] == 5_000_000)
    env.beat("o", {"timeout": 0})
    wait_until(lambda: d.device("o")["timeout_ms"] == 3_600_000)


def test_own_timeout_is_clamped(env):
    d = env.daemon(timeout="60s", group={"timeout_max": "90s"})
    for k, (value, effective) in enumerate((
            (0.001, 100), (0.0999, 100), (1e-9, 100), (89.5, 89500), (91, 90000), (1e12, 90000), (1e300, 90000),
            (0.1, 100), (0.25, 250))):
        device = "c%d" % k
        env.beat(device, {"timeout": value})
        wait_until(lambda: d.device(device))
        assert d.device(device)["timeout_ms"] == effective, value
        wait_until(lambda: env.hash(device))
        assert env.hash(device)["own_timeout"] == env.hash(device)["timeout"] == str(effective), value


def test_own_timeout_of_zero_is_the_groups_again(env):
    d = env.daemon(timeout="400ms")
    observer = env.observer()
    env.beat("z", {"timeout": 300})
    env.wait_store("z", "online")
    pass_time(0.8)
    assert d.state("z") == "online"
    sent = env.beat("z", {"timeout": 0})
    m = env.wait_status(observer, "z", False, timeout=5)
    assert 0.4 <= m.at - sent
    env.wait_store("z", "offline")
    assert env.hash("z")["timeout"] == "400" and "own_timeout" not in env.hash("z"), env.hash("z")


def test_own_timeout_longer_than_the_groups(env):
    d = env.daemon(timeout="600ms")
    env.beat("nap")
    env.wait_store("nap", "online")
    observer = env.observer()
    sent = env.beat("nap", {"timeout": 4})
    wait_until(lambda: d.device("nap")["timeout_ms"] == 4000)
    throughout(lambda: d.state("nap") == "online", 1.3)
    m = env.wait_status(observer, "nap", False)
    assert m.at - sent >= 4


@pytest.mark.parametrize("value", ["-1", "-0.5", "1e999", "-1e999", '"5"', '"NaN"', "null", "true", "[5]", "{}"])
def test_own_timeout_that_is_none_is_refused_and_counted(shared_daemon, value):
    d, device = shared_daemon.d, shared_daemon.fresh()
    before = refusals(d), d.status()["heartbeats_total"]
    shared_daemon.beat(device, '{"timeout":%s}' % value)
    wait_until(lambda: d.state(device) == "online", what="a heartbeat in spite of its timeout")
    assert d.device(device)["timeout_ms"] == 3_600_000
    assert (refusals(d), d.status()["heartbeats_total"]) == (before[0] + 1, before[1] + 1)


def test_a_refused_timeout_leaves_the_own_one(env):
    d = env.daemon(timeout="1h")
    env.beat("k", {"timeout": 9})
    env.beat("k", {"timeout": -3})
    env.settle(d)
    assert d.device("k")["timeout_ms"] == 9000


def test_own_timeout_survives_a_restart(env):
    d = env.daemon(timeout="1h")
    env.beat("k", {"timeout": 1.5})
    env.wait_store("k", "online")
    d.stop()
    d.start()
    assert wait_until(lambda: d.device("k"))["timeout_ms"] == 1500
    env.wait_store("k", "offline")
    d.stop()
    d.start()
    env.beat("k")
    env.wait_store("k", "online")
    assert env.hash("k")["own_timeout"] == "1500"


def test_a_day_shortened_to_a_second_by_the_device(env):
    env.daemon(timeout="1d")
    observer = env.observer()
    env.beat("day")
    env.wait_store("day", "online")
    pass_time(0.3)
    sent = env.beat("day", {"timeout": 1})
    m = env.wait_status(observer, "day", False, timeout=5)
    assert 1.0 <= m.at - sent, m.at - sent
    in_time(m.at - sent, 4.5, "until it was told")


def test_ten_years_are_accepted(env):
    d = env.daemon(timeout="3650d", group={"timeout_max": "3650d"})
    env.beat("years")
    env.beat("asks", {"timeout": 3650 * 86400})
    env.wait_store("years", "online")
    env.settle(d)
    assert d.device("years")["timeout_ms"] == d.device("asks")["timeout_ms"] == 3650 * 86400 * 1000
    one = d.device("years")
    assert one["level"] == 3 and one["rounds"] >= 0, one
    assert 0 < one["due_in_ms"] <= 3650 * 86400 * 1000
    # Armed no later than an hour ahead while online, so that Redis is refreshed at least hourly: of the slots that are
    # 961 s long, in one of the next four, and not in a later turn of them.
    level = d.get("/v1/wheel").json()["levels"][3]
    ahead = (one["slot"] - level["cursor"]) % 31
    assert one["rounds"] == 0 and 1 <= ahead <= 4, (one, level["cursor"])
    assert env.redis.pttl(env.key("connected", "years")) > 3 * 3600 * 1000


# --- goodbyes


@pytest.mark.parametrize("last", ["heartbeat", "status"])
def test_goodbye_is_judged_at_once(env, last):
    env.daemon(timeout="1h")
    observer = env.observer()
    before = now_ms()
    env.beat("g", {"version": "7"})
    env.wait_status(observer, "g", True)
    env.wait_store("g", "online")
    seen = now_ms()
    pass_time(0.5)
    n = len(observer.messages)
    sent = env.beat("g", {"online": False, "battery": 2}, last=last)
    m = env.wait_status(observer, "g", False, n)
    j = m.json()
    took = m.at - sent
    assert j["reason"] == "will" and j["version"] == "7", j
    env.wait_store("g", "offline")
    h = env.hash("g")
    assert h["reason"] == "will" and env.edges("g") == [("online", "heartbeat"), ("offline", "will")]
    assert before - 1 <= int(h["last_seen"]) <= seen, "a goodbye never updates last seen"
    assert env.retained_status("g")["by"] == env.node
    pass_time(0.3)
    n = len(observer.messages)
    env.beat("g", {"online": False}, last=last)
    env.beat("again", b"")
    env.wait_status(observer, "again", True, n)
    assert len(env.edges("g")) == 2, "a second goodbye is no transition"
    env.beat("g")
    env.wait_store("g", "online")
    in_time(took, 4.5, "until the goodbye was told")


def test_retained_will_is_replaced_by_the_status(env):
    """The broker publishes a dead device's last will, retained, on its status topic: the monitor's status replaces it."""
    env.daemon(timeout="1h")
    raw = env.raw(will=(env.status_topic("w"), b'{"online": false}', True))
    raw.publish((env.topic("w"), b"{}"))
    env.wait_store("w", "online")
    raw.die()
    env.wait_store("w", "offline")
    assert env.hash("w")["reason"] == "will"
    wait_until(lambda: (env.retained_status("w") or {}).get("reason") == "will", what="the monitor's status to be retained")


def test_goodbye_is_void_when_a_heartbeat_follows(env):
    """The will of an old connection and the first heartbeat of the new one: the device stays online, and the retained status,
    which the will has replaced, is published again."""
    d = env.daemon(timeout="30s", group={"retained": "count"})
    observer = env.observer()
    env.beat("v")
    env.wait_status(observer, "v", True)
    env.wait_store("v", "online")
    seq = env.hash("v")["seq"]
    raw = env.raw()
    for _ in range(20):
        raw.publish((env.status_topic("v"), b'{"online":false}'), (env.topic("v"), b"1"), retain=True)
        pass_time(0.02)
    throughout(lambda: d.state("v") == "online", 1.0, "a void goodbye")
    assert env.edges("v") == [("online", "heartbeat")]
    wait_until(lambda: (env.retained_status("v") or {}).get("by") == env.node, 5, "the retained status to be put right")
    assert env.retained_status("v")["online"] is True and env.retained_status("v")["seq"] == int(seq)
    raw.publish((env.topic("v"), b""), retain=True)


def test_first_message_goodbye_creates_the_device_offline(env):
    d = env.daemon(timeout="1h")
    observer = env.observer()
    env.beat("never", {"online": False, "version": "3"})
    j = env.wait_status(observer, "never", False).json()
    assert j["reason"] == "will" and j["version"] == "3", j
    env.wait_store("never", "offline")
    assert env.hash("never")["reason"] == "will" and env.edges("never") == [("offline", "will")]
    assert d.device("never")["state"] == "offline"
    env.beat("never")
    env.wait_store("never", "online")


def test_goodbye_of_an_offline_device_changes_nothing(env):
    env.daemon(timeout="300ms")
    env.beat("o")
    env.wait_store("o", "offline")
    env.beat("o", {"online": False})
    env.beat("other")
    env.wait_store("other", "offline")
    assert env.edges("o") == [("online", "heartbeat"), ("offline", "timeout")]
    assert env.hash("o")["reason"] == "timeout"


def test_goodbye_within_grace_is_void(env):
    """Within reconnect_grace after a start a goodbye takes no device offline: the device is left to its timeout."""
    d = env.daemon(timeout="1s", mqtt={"reconnect_grace": "3s"})
    env.beat("g")
    env.wait_store("g", "online")
    d.stop()
    observer = env.observer()
    d.start(seeing=False)

    def hears():
        env.beat("probe")
        return d.status()["heartbeats_total"] > 0
    wait_until(hears, 10, "the monitor to hear", interval=0.05)
    wait_until(lambda: d.state("g") == "online", what="g to be loaded")
    if d.status()["blind"] is not True:
        raise Void("grace was over too soon for this test")
    n = len(observer.messages)
    env.beat("g", {"online": False}, last="status", retain=True)
    throughout(lambda: d.state("g") == "online" or d.status()["blind"] is False, 1.0, "grace protects from goodbyes")
    d.wait_seeing()
    j = env.wait_status(observer, "g", False, n).json()
    assert j["reason"] == "timeout", j
    env.wait_store("g", "offline")
    assert env.edges("g") == [("online", "heartbeat"), ("offline", "timeout")]
    wait_until(lambda: (env.retained_status("g") or {}).get("by") == env.node)


def test_goodbye_delay_holds_a_goodbye(env):
    """A session takeover: the old session's will arrives, and half a second later the device is heard again, so it stays
    online."""
    d = env.daemon(timeout="1h", group={"goodbye_delay": "3s"})
    observer = env.observer()
    env.beat("t")
    env.wait_status(observer, "t", True)
    at = env.beat("t", {"online": False})
    throughout(lambda: time.monotonic() - at > 2.5 or d.state("t") == "online", 1.0)
    env.beat("t")
    if time.monotonic() - at > 2.5:
        raise Void("the device was heard %.3f s after its goodbye" % (time.monotonic() - at))
    throughout(lambda: d.state("t") == "online", 3.5)
    sent = env.beat("t", {"online": False})
    m = env.wait_status(observer, "t", False)
    assert 3.0 <= m.at - sent and m.json()["reason"] == "will"
    in_time(m.at - sent, 6.5, "until it was told")


def test_max_age_ignores_old_heartbeats_but_no_goodbye(env):
    d = env.daemon(timeout="1h", group={"max_age": "10s"})
    env.beat("old", {"time": int(time.time()) - 60})
    env.beat("new", {"time": int(time.time()) - 1})
    env.beat("ahead", {"time": int(time.time()) + 1000})
    env.beat("plain")
    env.settle(d)
    assert d.device("old") is None
    assert [d.state(i) for i in ("new", "ahead", "plain")] == ["online"] * 3
    env.beat("new", {"time": int(time.time()) - 60, "online": False})
    wait_until(lambda: d.state("new") == "offline")


# --- messages of monitors


def test_a_monitors_message_is_no_heartbeat(env):
    d = env.daemon(timeout="500ms")
    observer = env.observer()
    env.beat("m")
    env.wait_store("m", "online")
    wait_until(lambda: d.status()["owed"] == 0)
    before = d.metrics().get("refused_total") + payload_errors(d)
    heard = d.status()["heartbeats_total"]
    text = '{"time":1,"online":true,"reason":"heartbeat","last_seen":1,"by":"another","seq":%d}'

    def speak():
        env.beat("m", text % (now_ms() + 10_000), last="status")
        env.beat("m", text % 5, last="heartbeat")
        env.beat("stranger", text % 5, last="status")
        env.beat("stranger", '{"by":"x","seq":1.5,"online":true}', last="heartbeat")
        return d.state("m") == "offline"
    wait_until(speak, 5, "silence to count in spite of another monitor's messages", interval=0.05)
    env.wait_status(observer, "m", False)
    wait_until(lambda: d.metrics().get("refused_total") + payload_errors(d) >= before + 4, what="them to be counted")
    assert d.device("stranger") is None
    assert d.status()["heartbeats_total"] == heard


def test_only_by_and_seq_with_a_third_member_make_a_monitor(env):
    d = env.daemon(timeout="1h")
    for k, payload in enumerate(({"by": "x"}, {"seq": 5}, {"by": 5, "seq": 5, "online": True},
                                 {"by": "x", "seq": "5", "online": True}, {"by": None, "seq": 1, "online": True},
                                 {"by": "x", "seq": None, "online": True}, {"by": "x", "seq": 5},
                                 {"by": "x", "seq": 5, "online": 1}, {"by": "x", "seq": 5, "canary": False})):
        env.beat("d%d" % k, payload)
        wait_until(lambda: d.state("d%d" % k) == "online", what="%r to be a heartbeat" % payload)


def test_by_and_seq_of_a_devices_own_in_each_kind_of_group(env):
    of = {"json": {}, "plain": {"payload": "plain"}, "homie": {"payload": "homie"}, "batch": {"batch": "yes"}}
    groups = [(n, {"heartbeat": "%s/%s" % (n, "all" if n == "batch" else "{id}/x"), "timeout": "1h", **o})
              for n, o in of.items()]
    d = env.daemon(groups=groups)
    for n in of:
        own = '{"by":"alice","seq":7,"v":1,"id":"batch"}'
        env.publisher.publish(*(("batch/all", "[%s]" % own) if n == "batch" else ("%s/%s/x" % (n, n), own)), 1)
        wait_until(lambda: d.state(n) == "online", what=n)
    assert d.metrics().refused() == 0


def test_each_group_with_messages_of_another_monitor_is_named_once(env):
    """A device may send such messages as well. Then the log says why the device is not online."""
    d = env.daemon(groups=[(n, {"heartbeat": n + "/{id}", "timeout": "1h"}) for n in ("one", "two")])
    for n in ("one", "one", "two", "one"):
        env.publisher.publish(n + "/d", '{"by":"alice","seq":7,"online":true}', 1)
    lines = ["group '%s': ignored a message of monitor 'alice'" % n for n in ("one", "two")]

    def named():
        env.publisher.publish("two/d", '{"by":"alice","seq":8,"online":true}', 1)
        return all(line in d.log() for line in lines)
    wait_until(named, 20, what="the log to name both groups", interval=0.1)
    assert [d.log().count(line) for line in lines] == [1, 1]
    assert d.status()["devices"] == 0


def test_own_statuses_are_no_heartbeats(env):
    """The status topic is one of the heartbeat topics, so the monitor receives what it publishes: no device is online because
    of that."""
    d = env.daemon(timeout="400ms")
    env.beat("own")
    env.wait_store("own", "offline")
    heard = d.status()["heartbeats_total"]
    throughout(lambda: d.state("own") == "offline" and d.status()["heartbeats_total"] == heard, 1.0)
    assert env.edges("own") == [("online", "heartbeat"), ("offline", "timeout")]


# --- retained messages


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_retained_replay_is_no_heartbeat(env, protocol):
    env.own_broker(persistence=True)
    for i in ("h", "s"):
        env.beat(i, {"online": True}, last="heartbeat" if i == "h" else "status", retain=True, qos=1)
    env.beat("gone", {"online": False}, last="status", retain=True, qos=1)
    d = env.daemon(timeout="500ms", mqtt={"protocol": protocol})
    env.settle(d)
    assert [d.device(i) for i in ("h", "s", "gone")] == [None] * 3
    # Nor after a reconnect, when 3.1.1 delivers all retained messages again.
    known = d.status()["devices"]
    wait_until(lambda: d.status()["offline"] == known)
    heard = d.status()["heartbeats_total"]
    env.broker.stop()
    d.wait_lost()
    env.broker.start()
    d.wait_seeing()
    throughout(lambda: d.status()["heartbeats_total"] == heard, 0.7, "replayed messages are not heard")
    assert [d.device(i) for i in ("h", "s", "gone")] == [None] * 3


def test_empty_payload_on_the_status_topic_is_a_clearing(env):
    d = env.daemon(timeout="400ms")
    env.beat("unknown", b"", last="status")
    env.beat("unknown", b"", last="status", retain=True)
    env.settle(d)
    assert d.device("unknown") is None
    env.beat("known")
    env.wait_store("known", "online")

    def clear():
        env.beat("known", b"", last="status")
        return d.state("known") == "offline"
    wait_until(clear, 5, "silence to count in spite of clearings", interval=0.05)
    env.beat("known", b"x", last="status")
    wait_until(lambda: len(env.edges("known")) == 3, what="any other payload there to be a heartbeat")
