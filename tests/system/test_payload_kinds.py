# SPDX-License-Identifier: MIT
"""Groups with other payload formats: Homie devices, and batches of gateways."""
import json
import subprocess

import pytest

from hw_build import HEARTWHEELD
from hw_wait import in_time, pass_time, throughout, wait_until


# --- Homie


def homie(env, **keys):
    return [("homie", {"heartbeat": [env.root + "/homie/{id}/$state", env.root + "/homie/{id}/+/+"],
                       "status": env.root + "/told/{id}", "payload": "homie", "timeout": "1h", **keys})]


def say(env, device, text, retain=True, what="$state"):
    """As Homie devices do: publishes each message with retain."""
    env.publisher.publish("%s/homie/%s/%s" % (env.root, device, what), text, 1, retain)


def test_homie_life(env):
    """A device by the convention: its last will is "lost", its state is retained and names what the device does."""
    d = env.daemon(groups=homie(env))
    observer = env.observer(env.root + "/told/+")
    topic = env.root + "/homie/lamp/$state"
    device = env.raw(will=(topic, "lost", True))
    for state in ("init", "ready"):
        device.publish((topic, state), retain=True)
    wait_until(lambda: d.state("lamp") == "online")
    told = wait_until(lambda: observer.on(env.root + "/told/lamp"))[0].json()
    assert (told["online"], told["reason"], told["by"]) == (True, "heartbeat", env.node)
    for state in ("alert", "sleeping", "ready"):
        device.publish((topic, state), retain=True)
    say(env, "other", "ready")
    wait_until(lambda: d.state("other") == "online")
    assert d.state("lamp") == "online"
    device.sock.close()  # no DISCONNECT: the broker publishes the will
    wait_until(lambda: d.state("lamp") == "offline")
    assert d.device("lamp")["reason"] == "will"
    wait_until(lambda: observer.on(env.root + "/told/lamp")[-1].json()["online"] is False)
    # The device's own state is as the device left it: the monitor speaks elsewhere.
    assert env.retained(topic)[topic].payload == b"lost"
    say(env, "lamp", "ready")
    wait_until(lambda: d.state("lamp") == "online")
    say(env, "lamp", "disconnected")
    wait_until(lambda: d.state("lamp") == "offline")
    assert d.metrics().get("payload_errors_total") == 0


def test_homie_history_and_clearing_are_no_heartbeats(env):
    say(env, "old", "ready")
    d = env.daemon(groups=homie(env))
    say(env, "fresh", "ready")
    wait_until(lambda: d.state("fresh") == "online")
    assert d.device("old") is None
    say(env, "fresh", "disconnected")
    wait_until(lambda: d.state("fresh") == "offline")
    for device in ("fresh", "old", "unheard"):
        say(env, device, "")
    say(env, "last", "ready")
    wait_until(lambda: d.state("last") == "online")
    assert d.state("fresh") == "offline" and d.device("old") is None and d.device("unheard") is None
    assert d.metrics().get("payload_errors_total") == 0


def test_homie_unknown_state_is_a_heartbeat_and_an_error(env):
    d = env.daemon(groups=homie(env))
    for k, text in enumerate((b"dancing", b"READY", b'{"online":false}', b"\xff\x00", b"lost\n")):
        say(env, "u%d" % k, text)
        wait_until(lambda: d.state("u%d" % k) == "online", what="%r to be a heartbeat" % text)
        assert d.metrics().get("payload_errors_total") == k + 1


def test_homie_properties_are_heartbeats_and_no_more(env):
    d = env.daemon(groups=homie(env, timeout="1s"))
    observer = env.observer(env.root + "/told/+")

    def property_value():
        say(env, "p", json.dumps({"online": False, "timeout": 600}), what="node/value")
        say(env, "p", "lost", what="node/power")
        return d.state("p") != "offline"
    with env.meant("homie/p/node/value"):
        throughout(property_value, 2, "properties to keep it online")
    assert d.device("p")["timeout_ms"] == 1000
    wait_until(lambda: d.state("p") == "offline")
    assert d.device("p")["reason"] == "timeout" and d.metrics().get("payload_errors_total") == 0
    assert observer.on(env.root + "/told/p")[-1].json()["reason"] in ("timeout", "heartbeat")


def test_homie_sleepers_may_be_silent_for_timeout_max(env):
    d = env.daemon(groups=homie(env, timeout="500ms", timeout_max="4s"))
    say(env, "s", "sleeping")
    wait_until(lambda: d.state("s") == "online")
    assert d.device("s")["timeout_ms"] == 4000
    throughout(lambda: d.state("s") == "online", 1.5)
    wait_until(lambda: d.state("s") == "offline", 5)
    say(env, "s", "ready")
    wait_until(lambda: len(env.edges("s")) >= 3)
    assert d.device("s")["timeout_ms"] == 500


# --- batches


def batch(env, **keys):
    return [("radio", {"heartbeat": env.root + "/gw/+/heard", "batch": "yes", "status": env.root + "/radio/{id}",
                       "timeout": "1h", **keys}),
            ("default", {"heartbeat": env.root + "/{id}/heartbeat", "timeout": "1h"})]


def send(env, payload, gateway="g1", **options):
    env.publisher.publish("%s/gw/%s/heard" % (env.root, gateway),
                          payload if isinstance(payload, (str, bytes)) else json.dumps(payload), 1, **options)


def test_batch_of_ids_and_objects(env):
    d = env.daemon(groups=batch(env, id_prefix="r-"))
    observer = env.observer(env.root + "/radio/+")
    send(env, ["a", {"id": "b", "battery": 41, "timeout": 700}, {"id": "c", "online": False}, "ü/x"])
    wait_until(lambda: d.state("r-ü/x") == "online")
    assert (d.state("r-a"), d.state("r-b"), d.state("r-c")) == ("online", "online", "offline")
    assert (d.device("r-b")["battery"], d.device("r-b")["timeout_ms"]) == (41, 700_000)
    assert d.device("r-a")["group"] == "radio"
    wait_until(lambda: observer.on(env.root + "/radio/b"))
    assert observer.on(env.root + "/radio/b")[0].json()["battery"] == 41
    assert d.status()["heartbeats_total"] == 3
    send(env, [{"id": "a", "online": False}])
    wait_until(lambda: d.state("r-a") == "offline")
    assert d.device("r-a")["reason"] == "will"
    assert d.metrics().refused() == 0 and d.metrics().get("payload_errors_total") == 0


def test_batch_keeps_its_devices_alive_and_no_other(env):
    d = env.daemon(groups=batch(env, timeout="700ms"))

    def beat():
        send(env, ["x", {"id": "y"}])
        return [d.state("x"), d.state("y")] != ["offline", "offline"]
    send(env, ["x", "y", "z"])
    wait_until(lambda: env.edges("z"))
    with env.meant("gw/g1/heard"):
        throughout(beat, 1.5)
        wait_until(lambda: beat() and d.state("z") == "offline", 10, "the one that is in none to be offline")
    assert [d.state(i) for i in "xyz"] == ["online", "online", "offline"]


@pytest.mark.parametrize("payload,refused,errors", [
    ('{"id":"v"}', 1, 0), ('"v"', 1, 0), ("v", 1, 0), ("", 1, 0), ('["v"', 1, 1), ('["v",]', 1, 1), ('["v"]x', 1, 1),
    ('["v",{"id":"w"', 1, 1), (json.dumps(["v"] + ["x" * 100] * 700), 1, 1),
    ('[1,null,["v"],{},{"id":7}]', 5, 0), ('["","v+",{"id":"a#"},"%s"]' % ("l" * 256), 4, 0)])
def test_batch_that_is_none(env, payload, refused, errors):
    """The batch is refused and counted, and no device that it names is heard."""
    d = env.daemon(groups=batch(env))
    send(env, payload)
    send(env, ["good"])
    wait_until(lambda: d.state("good") == "online")
    assert d.device("v") is None and d.device("w") is None
    m = d.metrics()
    assert (m.refused(), m.get("payload_errors_total")) == (refused, errors)
    assert d.status()["devices"] == 1 and d.status()["heartbeats_total"] == 1


def test_batch_elements_are_refused_one_by_one(env):
    d = env.daemon(groups=batch(env))
    send(env, '["a",5,{"id":"b","battery":"full"},{"id":"c","timeout":-1},{},{"id":"m","by":"x","seq":5,"online":true},"z"]')
    wait_until(lambda: d.state("z") == "online")
    m = d.metrics()
    assert [d.state(i) for i in "abcm"] == ["online", "online", "online", None]
    assert m.get("refused_total", kind="batch") == 2 and m.get("refused_total", kind="timeout") == 1
    assert m.get("refused_total", kind="monitor") >= 1 and m.get("payload_errors_total") == 1


def test_retained_batch_is_history(env):
    send(env, ["old"], retain=True)
    d = env.daemon(groups=batch(env))
    send(env, ["new"])
    wait_until(lambda: d.state("new") == "online")
    assert d.device("old") is None


def test_ten_thousand_elements_in_one_message(env):
    """No element is lost, no device is judged meanwhile, and no turn of the loop is long. CPU time counts, since a turn that
    waits for a processor is not long by its own work."""
    d = env.daemon(groups=batch(env))
    ids = ["%x" % k for k in range(9500)]
    payload = json.dumps(ids, separators=(",", ":"))
    assert 60_000 < len(payload) <= 65_536
    for gateway in range(4):
        send(env, payload, "g%d" % gateway, wait=False)
    env.beat("behind")
    wait_until(lambda: d.state("behind") == "online", 20)
    assert d.status()["devices"] == 9501
    assert d.status()["heartbeats_total"] == 4 * 9500 + 1
    m = d.metrics()
    turns = m.get("loop_turn_cpu_seconds_count")
    assert turns > 20
    slow = turns - m.get("loop_turn_cpu_seconds_bucket", le="0.01")
    wait_until(lambda: d.status()["owed"] == 0, 20)
    assert env.redis.zcard(env.key("offline")) == 0
    assert len(env.retained(env.root + "/radio/+")) == 9500
    in_time(slow / turns, 0.05, "of %d turns took more than 10 ms of CPU" % turns)


def test_batch_and_barriers(env):
    """A large batch keeps the devices online although their timeout is hardly longer than the time that the batch takes."""
    d = env.daemon(groups=batch(env, timeout="1s"))
    payload = json.dumps(["k%d" % k for k in range(5000)])
    send(env, payload)
    wait_until(lambda: d.status()["devices"] == 5000)

    def beat():
        send(env, payload, wait=False)
        pass_time(0.2)
        return d.status()["offline"] == 0
    with env.meant("gw/g1/heard"):
        throughout(beat, 4, "nobody to be called offline")
    wait_until(lambda: d.status()["offline"] == 5000, 20)


def test_reload_makes_a_group_of_batches(env):
    d = env.daemon(groups=[("radio", {"heartbeat": env.root + "/gw/{id}/heard", "timeout": "1h"})])
    send(env, '["a"]')
    wait_until(lambda: d.state("g1") == "online")
    d.edit("/gw/{id}/heard", "/gw/+/heard\nbatch = yes")
    answer = d.request("POST", "/v1/reload").json()
    assert "group radio.batch" in answer["changed"], answer

    def heard():
        send(env, '["a"]')
        return d.state("a") == "online"
    wait_until(heard)


@pytest.mark.parametrize("group,line,key", [
    ("heartbeat = a/{id}\nbatch = yes\n", 2, "heartbeat"), ("heartbeat = a\n", 2, "heartbeat"),
    ("heartbeat = {id}/$state\npayload = homie\nstatus = {id}/$state\n", 4, "status"),
    ("heartbeat = a\nbatch = yes\npayload = homie\n", 3, "batch")])
def test_wrong_templates_are_named_by_their_line(tmp_path, group, line, key):
    conf = tmp_path / "monitor.conf"
    conf.write_text("[group g]\n" + group)
    p = subprocess.run([str(HEARTWHEELD), "-t", "-c", str(conf)], capture_output=True, text=True)
    assert p.returncode == 2
    assert "%s:%d: key '%s': " % (conf, line, key) in p.stderr
