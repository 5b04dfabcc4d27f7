# SPDX-License-Identifier: MIT
"""Goodbyes in the words of a fleet, and topics whose messages are no heartbeats."""
import json
import subprocess
import time

import pytest

from hw_build import HEARTWHEELD
from hw_env import NO_STALL, NO_STANDSTILL
from hw_void import Void
from hw_wait import throughout, wait_until


def daemon(env, **options):
    """A daemon that a busy machine does not make blind: blindness would leave a goodbye to the timeout."""
    return env.daemon(**{"monitor": NO_STALL, "mqtt": NO_STANDSTILL, **options})


def plugs(env, **keys):
    r = env.root
    return [("plugs", {"heartbeat": r + "/tele/{id}/+", "status": r + "/told/{id}", "timeout": "1h",
                       "goodbye": [r + "/tele/{id}/LWT Offline", r + "/tele/{id}/json state.now=off",
                                   r + "/gone/{id}"],
                       "ignore": r + "/tele/+/cmnd", **keys})]


def say(env, device, what, payload, retain=False):
    env.publisher.publish("%s/tele/%s/%s" % (env.root, device, what), payload, 1, retain)


def goes(env, d, device, state, reason):
    wait_until(lambda: d.state(device) == state, 5, "%s to be %s" % (device, state))
    assert d.device(device)["reason"] == reason


def test_the_will_of_a_device_that_dies(env):
    """The will, in the device's own words, must not bring the dead device back online."""
    d = daemon(env, groups=plugs(env))
    topic = env.root + "/tele/plug/LWT"
    for life in range(2):
        device = env.raw(will=(topic, "Offline", True))
        device.publish((topic, "Online"), retain=True)
        device.publish((env.root + "/tele/plug/STATE", "{}"))
        goes(env, d, "plug", "online", "heartbeat")
        device.die()
        goes(env, d, "plug", "offline", "will")
        throughout(lambda: d.state("plug") == "offline", 0.5)
    wait_until(lambda: len(env.edges("plug")) >= 4)
    assert env.edges("plug") == [("online", "heartbeat"), ("offline", "will")] * 2
    # Who clears the retained will does not say that the device lives.
    say(env, "plug", "LWT", "", retain=True)
    say(env, "other", "STATE", "1")
    goes(env, d, "other", "online", "heartbeat")
    assert d.state("plug") == "offline"
    assert d.metrics().get("payload_errors_total") == 0


def test_another_word_is_a_heartbeat(env):
    d = daemon(env, groups=plugs(env))
    for payload in ("offline", "Offline ", " Offline", "Offlin", '"Offline"', "Online", "{"):
        say(env, "w", "LWT", "Offline")
        goes(env, d, "w", "offline", "will")
        say(env, "w", "LWT", payload)
        goes(env, d, "w", "online", "heartbeat")


def test_a_member_of_the_payload(env):
    d = daemon(env, groups=plugs(env))
    for k, (payload, state) in enumerate((({"state": {"now": "on"}}, "online"), ({"state": {"now": "off"}}, "offline"),
                                          ({"state": {"now": "off", "battery": 7}, "battery": 5}, "offline"),
                                          ({"state": "off"}, "online"), ({"online": False}, "offline"))):
        device = "m%d" % k
        say(env, device, "json", json.dumps(payload))
        wait_until(lambda: d.state(device) == state, 5, "%s to be %s" % (payload, state))
    assert d.device("m2")["battery"] == 5


def test_any_payload(env):
    d = daemon(env, groups=plugs(env))
    for k, payload in enumerate((b"1", b"{}", b"\xff\x00", b'{"online":true}', b"x" * 70_000)):
        device = "any%d" % k
        say(env, device, "STATE", "1")
        goes(env, d, device, "online", "heartbeat")
        env.publisher.publish("%s/gone/%s" % (env.root, device), payload, 1)
        goes(env, d, device, "offline", "will")
    say(env, "any", "STATE", "1")
    env.publisher.publish(env.root + "/gone/any", b"", 1)
    say(env, "after", "STATE", "1")
    goes(env, d, "after", "online", "heartbeat")
    assert d.state("any") == "online"


def test_what_is_ignored(env):
    d = daemon(env, groups=plugs(env))
    say(env, "dead", "LWT", "Offline")
    goes(env, d, "dead", "offline", "will")
    before = d.metrics().refused()
    for payload in ("on", "", '{"online":true}', "Offline"):
        say(env, "dead", "cmnd", payload)
        say(env, "nobody", "cmnd", payload)
    say(env, "after2", "STATE", "1")
    goes(env, d, "after2", "online", "heartbeat")
    assert d.state("dead") == "offline" and d.device("nobody") is None
    assert d.metrics().refused() == before


def test_retained_goodbyes_are_history(env):
    say(env, "old", "LWT", "Offline", retain=True)
    say(env, "old2", "LWT", "Online", retain=True)
    d = daemon(env, groups=plugs(env), mqtt={"protocol": "3.1.1"})
    say(env, "old", "STATE", "1")
    goes(env, d, "old", "online", "heartbeat")
    d.edit("tele/{id}/+\n", "tele/{id}/STATE\n")
    assert d.request("POST", "/v1/reload").status == 200

    def heard():
        say(env, "new", "STATE", "1")
        return d.state("new") == "online"
    wait_until(heard)
    assert d.state("old") == "online" and d.device("old2") is None


def test_goodbye_delay_holds_it(env):
    d = daemon(env, groups=plugs(env, goodbye_delay="1s"))
    say(env, "h", "STATE", "1")
    goes(env, d, "h", "online", "heartbeat")
    at = time.monotonic()
    say(env, "h", "LWT", "Offline")
    say(env, "h", "LWT", "Online")
    if time.monotonic() - at > 0.9:
        raise Void("the device was heard %.3f s after its goodbye" % (time.monotonic() - at))
    throughout(lambda: d.state("h") == "online", 1.5)
    say(env, "h", "LWT", "Offline")
    goes(env, d, "h", "offline", "will")
    wait_until(lambda: len(env.edges("h")) >= 2)
    assert env.edges("h") == [("online", "heartbeat"), ("offline", "will")]


def test_reload_learns_a_goodbye(env):
    """After the reload the daemon subscribes to the goodbye's topic; the next reload takes the goodbye away."""
    r = env.root
    d = daemon(env, groups=[("g", {"heartbeat": r + "/{id}/up", "timeout": "1h"})])

    def bye(device):
        env.publisher.publish("%s/%s/down" % (r, device), b"now", 1)
    env.beat("a", last="up")
    goes(env, d, "a", "online", "heartbeat")
    d.edit("timeout = 1h", "timeout = 1h\ngoodbye = %s/{id}/down now\nignore = %s/{id}/x" % (r, r))
    assert sorted(d.request("POST", "/v1/reload").json()["changed"]) == ["group g.goodbye", "group g.ignore"]

    def gone():
        bye("a")
        return d.state("a") == "offline"
    wait_until(gone, 5)
    d.edit("/down now", "/down then")
    assert d.request("POST", "/v1/reload").json()["changed"] == ["group g.goodbye"]

    def back():
        bye("a")
        return d.state("a") == "online"
    wait_until(back, 5)


@pytest.mark.parametrize("group,line,key", [
    ("heartbeat = a/{id}\ngoodbye = a\n", 3, "goodbye"), ("heartbeat = a/{id}\ngoodbye = a/{id} =x\n", 3, "goodbye"),
    ("heartbeat = a/{id}\ngoodbye = a/{id} x=\n", 3, "goodbye"), ("heartbeat = a/{id}\nignore = a/#/b\n", 3, "ignore"),
    ("heartbeat = a/{id}\nignore = {id\n", 3, "ignore"),
    ("heartbeat = a\nbatch = yes\ngoodbye = a/{id}\n", 4, "goodbye")])
def test_wrong_lines(tmp_path, group, line, key):
    conf = tmp_path / "monitor.conf"
    conf.write_text("[group g]\n" + group)
    p = subprocess.run([str(HEARTWHEELD), "-t", "-c", str(conf)], capture_output=True, text=True)
    assert p.returncode == 2
    assert "%s:%d: key '%s': " % (conf, line, key) in p.stderr
