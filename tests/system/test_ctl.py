# SPDX-License-Identifier: MIT
"""heartwheelctl."""
import json
import os
import re
import subprocess
import threading

import pytest

from hw_build import HEARTWHEELCTL
from hw_env import short
from hw_wait import wait_until


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
    for word in ("mqtt", "redis", "watching", "online", "offline"):
        assert word in r.stdout.lower(), r.stdout
    assert re.search(r"\b3\b", r.stdout) and re.search(r"\b2\b", r.stdout) and re.search(r"\b1\b", r.stdout)


@pytest.mark.parametrize("args, expected", [
    ([], {"pump-1", "pump-2", "fan-1"}), (["--state", "offline"], {"pump-2"}),
    (["--state", "online"], {"pump-1", "fan-1"}), (["--group", "a"], {"pump-1", "pump-2"}),
    (["--prefix", "fan"], {"fan-1"}), (["--group", "a", "--state", "online", "--prefix", "pump"], {"pump-1"}),
    (["--prefix", "nobody"], set()), (["--group=b"], {"fan-1"})], ids=lambda p: short(p) if isinstance(p, list) else "")
def test_list(fleet, args, expected):
    r = fleet.ctl("list", *args)
    assert r.returncode == 0 and r.stderr == ("" if expected else "no device matches\n"), r
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


@pytest.mark.parametrize("zone", ["HWA+3", "HWB-5:30"])
def test_show_names_the_time_zone(fleet, zone):
    r = subprocess.run([str(HEARTWHEELCTL), "-s", str(fleet.socket), "show", "pump-1"], capture_output=True, text=True, timeout=60,
                       stdin=subprocess.DEVNULL, env={**os.environ, "TZ": zone})
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d %s" % zone[:3]
    for line in (r"state +online since %s \(", r"last seen +%s \(", r"lately +%s  online"):
        assert re.search(line % when, r.stdout), r.stdout


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
    assert r.returncode == 0 and "cannot hear devices: no broker connection since the start" in r.stdout, r
    r = d.ctl("check")
    assert r.returncode == 3 and "cannot hear devices" in r.stdout and "Redis: " in r.stdout, r
    assert d.ctl("check", "--blind", "critical").returncode == 2


def test_check(fleet):
    """The output that Nagios and similar programs understand: the status, one line, the figures."""
    r = fleet.ctl("check")
    assert r.returncode == 1 and not r.stderr, r
    assert r.stdout == ("HEARTWHEEL WARNING - 3 devices: 2 online, 1 offline (pump-2) | "
                        "offline=1;0;1;0;3 online=2;;;0;3\n"), r.stdout
    for args, status in ((["--warning", "1"], 0), (["-w", "33%"], 1), (["-w", "34%"], 0), (["-c", "0"], 2),
                         (["--group", "b"], 0), (["--group", "a"], 1), (["--group", "a", "-c", "49.5%"], 2),
                         (["--group", "nobody"], 3), (["-w", "many"], 3), (["--blind", "so"], 3), (["-w"], 3), (["x"], 3)):
        r = fleet.ctl("check", *args)
        word = ("OK", "WARNING", "CRITICAL", "UNKNOWN")[status]
        assert r.returncode == status and r.stdout.startswith("HEARTWHEEL %s - " % word), (args, r)
        assert len(r.stdout.splitlines()) == 1, r.stdout
    fleet.stop()
    r = fleet.ctl("check")
    assert r.returncode == 2 and "cannot reach heartwheeld" in r.stdout and not r.stderr, r


class Watch:
    """A running `heartwheelctl watch` and its lines."""

    def __init__(self, daemon, *args):
        self.proc = subprocess.Popen([str(HEARTWHEELCTL), "-s", str(daemon.socket), "watch", *args],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.lines, self.complaints = [], []
        self.threads = [threading.Thread(target=self.read, args=a, daemon=True)
                        for a in ((self.proc.stdout, self.lines), (self.proc.stderr, self.complaints))]
        for t in self.threads:
            t.start()

    @staticmethod
    def read(f, lines):
        for line in f:
            lines.append(line.decode().rstrip("\n"))

    def stop(self):
        self.proc.terminate()
        self.proc.wait(10)


def test_watch(env):
    d = env.daemon(timeout="1s")
    w = Watch(d)
    wait_until(lambda: d.metrics().get("event_clients") == 1)
    env.beat("a")
    wait_until(lambda: len(w.lines) == 2)
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  online     heartbeat     a  default$", w.lines[0])
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  offline    timeout       a  default, silent for [12]\S*$", w.lines[1])
    # A restart: what happened meanwhile comes, nothing comes twice.
    d.stop()
    wait_until(lambda: w.complaints)
    env.beat("b", qos=1)
    d.start()
    env.beat("c")
    wait_until(lambda: len([l for l in w.lines if "  c  " in l]) == 2, 15)
    assert [l.split("  ")[1].strip() for l in w.lines if "  a  " in l] == ["online", "offline"]
    assert len(w.lines) == len(set(w.lines)) and len(w.complaints) == 1 and "waiting" in w.complaints[0]
    assert w.proc.poll() is None
    w.stop()


def test_watch_json(env):
    d = env.daemon(timeout="1h")
    w = Watch(d, "--json", "--prefix", "pump")
    wait_until(lambda: d.metrics().get("event_clients") == 1)
    env.beat("fan-1")
    env.beat("pump-1")
    wait_until(lambda: w.lines)
    assert [json.loads(l)["id"] for l in w.lines] == ["pump-1"]
    w.stop()


def test_watch_nobody(fleet, tmp_path):
    r = fleet.ctl("watch", socket_path=tmp_path / "none")
    assert r.returncode == 1 and "is the daemon running?" in r.stderr and not r.stdout


def test_list_of_many(env):
    """The list is streamed: its first line arrives long before its last, in every order."""
    d = env.daemon(timeout="1h")
    for k in range(20000):
        env.publisher.publish("%s/d%05d/heartbeat" % (env.root, (k * 7919) % 20000), b"")
    wait_until(lambda: d.status()["devices"] == 20000, 30)
    want = ["d%05d" % k for k in range(20000)]
    assert d.ctl("list", "--names", timeout=60).stdout.splitlines() == want
    lines = d.ctl("list", timeout=60).stdout.splitlines()
    assert [l.split()[0] for l in lines[1:]] == want
    assert sorted(json.loads(l)["id"] for l in d.ctl("list", "--json", timeout=60).stdout.splitlines()) == want
    newest = [json.loads(l) for l in d.ctl("list", "--json", "--sort", "newest", timeout=60).stdout.splitlines()]
    assert sorted(x["id"] for x in newest) == want
    assert [x["since_ms"] for x in newest] == sorted((x["since_ms"] for x in newest), reverse=True)
