# SPDX-License-Identifier: MIT
"""heartwheelctl."""
import json
import re
import subprocess

import pytest

from hw_env import HEARTWHEELCTL, short, wait_until


@pytest.fixture
def fleet(env):
    """A daemon with two devices online and one offline."""
    d = env.daemon(groups=[("a", {"heartbeat": env.root + "/a/{id}", "timeout": "1h"}),
                           ("b", {"heartbeat": env.root + "/b/{id}", "timeout": "1h"})])
    for topic, payload in (("a/pump-1", b'{"battery":55,"version":"1.2"}'), ("a/pump-2", b'{"online":false}'),
                           ("b/fan-1", b"1")):
        env.publisher.publish("%s/%s" % (env.root, topic), payload)
    wait_until(lambda: d.status()["devices"] == 3 and d.status()["offline"] == 1)
    return d


def test_status(env, fleet):
    r = fleet.ctl("status")
    assert r.returncode == 0 and not r.stderr, r
    assert env.node in r.stdout
    for word in ("mqtt", "redis", "blind", "online", "offline"):
        assert word in r.stdout.lower(), r.stdout
    assert re.search(r"\b3\b", r.stdout) and re.search(r"\b2\b", r.stdout) and re.search(r"\b1\b", r.stdout)


@pytest.mark.parametrize("args, expected", [
    ([], {"pump-1", "pump-2", "fan-1"}), (["--state", "offline"], {"pump-2"}),
    (["--state", "online"], {"pump-1", "fan-1"}), (["--group", "a"], {"pump-1", "pump-2"}),
    (["--prefix", "fan"], {"fan-1"}), (["--group", "a", "--state", "online", "--prefix", "pump"], {"pump-1"}),
    (["--prefix", "nobody"], set()), (["--group=b"], {"fan-1"})], ids=lambda p: short(p) if isinstance(p, list) else "")
def test_list(fleet, args, expected):
    r = fleet.ctl("list", *args)
    assert r.returncode == 0 and not r.stderr, r
    assert set(re.findall(r"\b(?:pump|fan)-\d\b", r.stdout)) == expected, r.stdout
    r = fleet.ctl("list", *args, "--json")
    assert r.returncode == 0, r
    devices = [json.loads(l) for l in r.stdout.splitlines()]
    assert len(devices) == len(expected) and {one["id"] for one in devices} == expected
    for one in devices:
        assert {"id", "state", "since_ms", "last_seen_ms", "timeout_ms", "reason", "group", "source", "seq"} <= set(one)


def test_show(fleet):
    r = fleet.ctl("show", "pump-1")
    assert r.returncode == 0 and not r.stderr, r
    for word in ("pump-1", "online", "heartbeat", "55", "1.2"):
        assert word in r.stdout, r.stdout
    r = fleet.ctl("show", "pump-1", "--json")
    one = json.loads(r.stdout)
    assert one["id"] == "pump-1" and one["battery"] == 55 and "due_in_ms" in one
    assert len(r.stdout.splitlines()) == 1


def test_forget(fleet):
    r = fleet.ctl("forget", "pump-2")
    assert r.returncode == 0 and not r.stderr, r
    assert fleet.device("pump-2") is None
    r = fleet.ctl("forget", "pump-2")
    assert r.returncode == 1 and "pump-2" in r.stderr and not r.stdout, r


def test_unknown_device(fleet):
    for args in (["show", "nobody"], ["show", "nobody", "--json"], ["forget", "nobody"]):
        r = fleet.ctl(*args)
        assert r.returncode == 1 and "nobody" in r.stderr and len(r.stderr.splitlines()) == 1, r


def test_reload(fleet):
    fleet.edit("timeout = 1h", "timeout = 2h")
    fleet.edit("[mqtt]", "[mqtt]\nqos = 1")
    r = fleet.ctl("reload")
    assert r.returncode == 0 and "timeout" in r.stdout and "qos" in r.stdout and "restart" in r.stdout, r
    fleet.edit("timeout = 2h", "timeout = soon")
    number = fleet.conf.read_text().splitlines().index("timeout = soon") + 1
    r = fleet.ctl("reload")
    assert r.returncode == 1, r
    assert "%s:%d: key 'timeout': " % (fleet.conf, number) in r.stderr, r


def test_version(fleet, env):
    r = fleet.ctl("version")
    assert r.returncode == 0 and fleet.status()["version"] in r.stdout, r


def test_usage():
    for args in ([], ["nonsense"], ["show"], ["forget"], ["list", "--state"], ["list", "--state", "flying"],
                 ["list", "--nonsense"], ["-s"], ["show", "a", "b"], ["status", "extra"], ["reload", "now"]):
        r = subprocess.run([str(HEARTWHEELCTL), *args], capture_output=True, text=True, timeout=20)
        assert r.returncode == 2 and r.stderr and not r.stdout, (args, r)
    r = subprocess.run([str(HEARTWHEELCTL), "-h"], capture_output=True, text=True, timeout=20)
    assert r.returncode == 0
    for command in ("status", "list", "show", "forget", "reload", "version"):
        assert command in r.stdout, command


def test_no_daemon(env, fleet):
    path = env.dir / "no-such.sock"
    for args in (["status"], ["list"], ["show", "x"], ["forget", "x"], ["reload"]):
        r = fleet.ctl(*args, socket_path=path)
        assert r.returncode == 1 and str(path) in r.stderr and not r.stdout, (args, r)
        assert len(r.stderr.splitlines()) == 1, r.stderr
    fleet.stop()
    r = fleet.ctl("status")
    assert r.returncode == 1 and str(fleet.socket) in r.stderr


@pytest.mark.parametrize("device", ["..", ".", "a b", "%41", "ü😀", "a?b=c", "q&r=s", "-x", "--json", "\"\\'",
                                    "x" * 255, "{1,2}", "[1-3]"], ids=short)
def test_strange_ids(env, device):
    d = env.daemon(timeout="1h")
    env.beat(device)
    wait_until(lambda: d.device(device))
    dashes = ["--"] if device.startswith("-") else []
    r = d.ctl("show", "--json", *dashes, device)
    assert r.returncode == 0 and json.loads(r.stdout)["id"] == device, r
    r = d.ctl("list", "--json", "--prefix=" + device)
    assert r.returncode == 0 and [json.loads(l)["id"] for l in r.stdout.splitlines()] == [device], r
    r = d.ctl("forget", *dashes, device)
    assert r.returncode == 0 and d.device(device) is None, r


def test_list_of_more_than_a_page(env):
    d = env.daemon(timeout="1h")
    ids = {"d%04d" % k for k in range(2500)}
    for i in ids:
        env.beat(i)
    wait_until(lambda: d.status()["devices"] == 2500, 20)
    r = d.ctl("list", "--json")
    found = [json.loads(l)["id"] for l in r.stdout.splitlines()]
    assert len(found) == 2500 and set(found) == ids
    r = d.ctl("list")
    assert set(re.findall(r"\bd\d{4}\b", r.stdout)) == ids


def test_control_characters_of_devices_do_not_reach_the_terminal(env):
    d = env.daemon(timeout="1h")
    env.beat("t", {"version": "\x1b[31mred\x07", "ip": "a\nb", "data": "\x1b]0;title\x07"})
    env.beat("u", {"version": "\u009b31m", "ip": "\u202etxt"})
    wait_until(lambda: d.device("t") and d.device("u"))
    for args in (["show", "t"], ["show", "u"], ["list"], ["show", "t", "--json"], ["list", "--json"]):
        r = d.ctl(*args)
        assert r.returncode == 0
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]", r.stdout.replace("\t", "")), (args, r.stdout)


def test_status_while_the_servers_are_away(env):
    env.own_broker(start=False)
    env.own_redis(start=False)
    d = env.daemon(seeing=False)
    r = d.ctl("status")
    assert r.returncode == 0 and "link" in r.stdout, r
