# SPDX-License-Identifier: MIT
"""Probes: silent devices are asked before they are called offline, over MQTT or by URL."""
import http.server
import json
import threading
import time
import urllib.parse

import pytest

from hw_env import NO_STALL, NO_STANDSTILL
from hw_void import Void
from hw_wait import in_time, pass_time, throughout, wait_until


def group(env, name="default", path="{id}", **keys):
    return (name, {"heartbeat": "%s/%s/heartbeat" % (env.root, path), "status": "%s/%s/status" % (env.root, path),
                   **keys})


def daemon(env, *groups, mqtt=None, **options):
    return env.daemon(monitor=NO_STALL, mqtt={**NO_STANDSTILL, **(mqtt or {})}, groups=list(groups), **options)


def probes(d, result):
    return int(d.metrics().get("probes_total", result=result))


class Answering:
    """A device that receives probes and answers in its own way, also when none of its other messages gets through."""

    def __init__(self, env, device, how):
        self.device, self.how, self.late, self.asked = device, how, False, []
        self.client = env.client()
        self.client.client.on_message = self.on_message
        self.client.subscribe("nodes/%s/pending" % device)

    def on_message(self, client, userdata, m):
        said = json.loads(m.payload)
        self.asked.append((said, m.retain, m.qos))
        self.how(self, said)
        self.late |= time.time() > said["exp"]

    def say(self, topic, payload=b""):
        self.client.client.publish(topic, payload if isinstance(payload, bytes) else json.dumps(payload))


def acks(device, said):
    device.say("nodes/%s/ack" % said["sender"], {"msg_id": said["msg_id"]})


def never(device, said):
    pass


def lives(env, d, device, answering):
    """Whether the device has always been online; if a device of the test's own answered too late, the run is void."""
    edges = env.edges(device)
    if len(edges) > 1 and answering.late:
        raise Void("%s answered after its deadline" % device)
    return edges == [("online", "heartbeat")] and d.state(device) == "online"


def test_a_device_whose_heartbeats_are_lost_is_saved(env):
    """Each device is heard once. A device that answers, by whatever way, stays online; the same device in a group without
    probes does not."""
    env.own_broker()
    d = daemon(env, group(env, probe="ping", probe_after="1s", timeout="3s"),
               group(env, "bound", "bound/{id}", probe="look", probe_after="1s", timeout="3s",
                     heartbeat=[env.root + "/bound/{id}/heartbeat", "nodes/+/ack/{id}"]),
               group(env, "unasked", "unasked/{id}", timeout="3s"))
    beats = lambda x, said: x.say("%s/beats/heartbeat" % env.root)
    named = lambda x, said: x.say("nodes/%s/ack/named" % said["sender"], {"msg_id": "whatever"})
    devices = {x.device: x for x in (Answering(env, "acks", acks), Answering(env, "beats", beats),
                                     Answering(env, "named", named), Answering(env, "mute", never),
                                     Answering(env, "unasked", acks))}
    for name in ("acks", "beats", "mute", "bound/named", "unasked/unasked"):
        env.publisher.publish("%s/%s/heartbeat" % (env.root, name))
    for name in ("mute", "unasked"):
        wait_until(lambda: d.state(name) == "offline", what=name + " to be offline")
        assert env.edges(name) == [("online", "heartbeat"), ("offline", "timeout")]
    for name in ("acks", "beats", "named"):
        wait_until(lambda: len(devices[name].asked) >= 3, what=name + " to be asked thrice")
        assert lives(env, d, name, devices[name])
        assert d.device(name)["source"] == "mqtt"
    assert devices["unasked"].asked == []
    assert len(devices["mute"].asked) == 1  # and never again: it is offline
    said, retain, qos = devices["acks"].asked[0]
    assert not retain and qos == 0
    assert list(said) == ["sender", "receiver", "msg_id", "action", "time", "exp", "payload"]
    assert (said["sender"], said["receiver"], said["action"], said["payload"]) == (env.node, "acks", "ping", None)
    assert 0.4 < said["exp"] - said["time"] <= 2.001 and abs(time.time() - said["time"]) < 60
    assert devices["named"].asked[0][0]["action"] == "look"
    assert d.metrics().get("refused_total", kind="probe") == 0
    assert probes(d, "sent") >= 10 and probes(d, "answered") >= 6 and probes(d, "dropped") == 0


def test_forged_and_stale_answers_count_for_nothing(env):
    env.own_broker()
    d = daemon(env, group(env, probe="ping", probe_after="1s", timeout="3s"))
    a, b = Answering(env, "a", never), Answering(env, "b", never)
    for name in "ab":
        env.beat(name)
    wait_until(lambda: a.asked and b.asked)
    said = a.asked[0][0]["msg_id"]
    ack = "nodes/%s/ack" % env.node
    forged = [said[:-1] + ("0" if said[-1] != "0" else "1"), b.asked[0][0]["msg_id"][:9] + said[9:], "", "x" * 64]
    for msg_id in forged:
        env.publisher.publish(ack, {"msg_id": msg_id}, 1)
    env.publisher.publish(ack, b"{", 1)
    env.publisher.publish(ack, {"msg_id": said}, 1)
    wait_until(lambda: d.metrics().get("refused_total", kind="probe") == 5)
    env.publisher.publish(ack, {"msg_id": said}, 1)  # again: that silence is over
    wait_until(lambda: d.metrics().get("refused_total", kind="probe") == 6)
    wait_until(lambda: d.state("b") == "offline")
    wait_until(lambda: d.state("a") == "offline")
    assert d.metrics().get("heartbeats_total", group="default") == 3
    d.ctl("reload")
    assert env.edges("b") == [("online", "heartbeat"), ("offline", "timeout")]


def asked_at(observer):
    return sorted(m.json()["time"] for m in observer.messages if m.topic.endswith("/pending"))


def paced(d, times):
    """The probes keep to 20 a second while the daemon's loop turns in time. A broker or an observer that stood still passes
    several on at once, so this is a bound on time."""
    late = d.metrics()
    if late.get("loop_turn_seconds_bucket", le="0.1") == late.get("loop_turn_seconds_count"):
        for k in range(len(times) - 23):
            in_time(0.85, times[k + 23] - times[k], "the least in which 24 messages arrive: %s" % times)


def test_the_rate_bounds_a_mass_silence(env):
    env.own_broker()
    d = daemon(env, group(env, probe="ping", probe_after="1s", timeout="4s"), mqtt={"probe_rate": 20})
    asked = env.observer("nodes/+/pending")
    names = ["d%d" % k for k in range(300)]
    for name in names:
        env.beat(name)
    wait_until(lambda: d.status()["offline"] == 300)
    asked.fence()
    times = asked_at(asked)
    assert 30 <= len(times) <= 62, len(times)
    assert probes(d, "sent") == len(times) and probes(d, "dropped") == 300 - len(times)
    paced(d, times)
    for name in names:
        assert env.edges(name) == [("online", "heartbeat"), ("offline", "timeout")]


def test_no_storm_after_blindness(env):
    """All devices have been silent for long when the monitor sees again: they are probed after the grace, and at the configured
    rate."""
    broker = env.own_broker()
    d = daemon(env, group(env, probe="ping", probe_after="1s", timeout="5s"), mqtt={"probe_rate": 20, "reconnect_grace": "1s"})
    names = ["d%d" % k for k in range(300)]
    for name in names:
        env.beat(name)
    wait_until(lambda: d.status()["online"] == 300)
    broker.kill()
    d.wait_lost()
    pass_time(1.5)  # longer than probe_after
    sent, dropped = probes(d, "sent"), probes(d, "dropped")
    begun = time.time()
    broker.start()
    asked = env.observer("nodes/+/pending")
    wait_until(lambda: d.status()["offline"] == 300)
    asked.fence()
    times = asked_at(asked)
    more = probes(d, "sent") - sent
    assert 20 <= more <= 120 and len(times) <= more, (more, len(times))
    assert probes(d, "dropped") - dropped + more <= 300
    assert times[0] >= begun + 1, (begun, times[0])
    paced(d, times)


def test_a_reload_turns_probes_on_and_off(env):
    env.own_broker()
    d = daemon(env, group(env, timeout="3s"))
    device = Answering(env, "a", acks)
    env.beat("a")
    wait_until(lambda: d.state("a") == "offline")
    assert device.asked == []
    d.edit("timeout = 3s", "timeout = 3s\nprobe = ping\nprobe_after = 1s")
    assert "group default.probe" in d.ctl("reload").stdout
    env.beat("a")
    wait_until(lambda: len(device.asked) >= 2)
    n = len(env.edges("a"))
    assert n == 3 or device.late, env.edges("a")
    d.edit("probe = ping\n", "")
    assert "group default.probe" in d.ctl("reload").stdout
    wait_until(lambda: d.state("a") == "offline")
    told = len(device.asked)
    env.publisher.publish("nodes/%s/ack" % env.node, {"msg_id": device.asked[-1][0]["msg_id"]}, 1)
    throughout(lambda: d.state("a") == "offline" and len(device.asked) == told, 0.3)


# --- by URL


class Web(http.server.ThreadingHTTPServer):
    """A web server. `how`: {last level of the path: a status, or None: no answer until released}."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, how):
        self.how, self.lock, self.release = how, threading.Lock(), threading.Event()
        self.paths, self.now, self.most, self.late = [], 0, 0, False
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d/alive/{id}" % self.server_address[1]

    def seen(self, device):
        return self.paths.count("/alive/" + device)

    def close(self):
        self.release.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        web = self.server
        with web.lock:
            web.paths.append(self.path)
            web.now += 1
            web.most = max(web.most, web.now)
        status = web.how.get(self.path.rsplit("/", 1)[1], 200)
        if status is None:
            web.release.wait(60)
            status = 200
        with web.lock:
            web.now -= 1
        self.send_response(status)
        self.send_header("Location", "/alive/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def web():
    servers = []

    def make(**how):
        servers.append(Web(how))
        return servers[-1]
    yield make
    for s in servers:
        s.close()


def test_a_status_of_200_to_299_is_a_heartbeat(env, web):
    """A device in a group without probes is the control: without probes all devices would be offline."""
    odd = "s p%c&\u00fc?"
    w = web(ok=200, created=201, error=500, moved=302, slow=None, missing=404)
    d = daemon(env, group(env, probe=w.url, probe_after="1s", timeout="4s"),
               group(env, "unasked", "unasked/{id}", timeout="4s"))
    for name in ("ok", "created", "error", "moved", "slow", "missing", odd):
        env.publisher.publish("%s/%s/heartbeat" % (env.root, name))
    env.publisher.publish("%s/unasked/witness/heartbeat" % env.root)
    for name in ("error", "moved", "slow", "missing", "witness"):
        wait_until(lambda: d.state(name) == "offline", what=name + " to be offline")
    escaped = urllib.parse.quote(odd, safe="-._~")
    for name, path in (("ok", "ok"), ("created", "created"), (odd, escaped)):
        wait_until(lambda: w.seen(path) >= 2, what=name + " to be asked twice")
        assert env.edges(name) == [("online", "heartbeat")], name
        assert d.device(name)["source"] == "mqtt"
    assert w.seen("elsewhere") == 0  # redirections are not followed
    assert [w.seen(x) for x in ("error", "moved", "slow", "missing")] == [1] * 4


def test_64_are_asked_at_a_time(env, web):
    names = ["d%d" % k for k in range(65)]
    w = web(**{n: None for n in names})
    d = daemon(env, group(env, probe=w.url, probe_after="1s", timeout="10s"))
    begun = time.monotonic()
    for name in names:
        env.beat(name)
    beaten = time.monotonic()
    wait_until(lambda: w.now == 64)
    pass_time(max(0.01, beaten + 5.6 - time.monotonic()))  # by then each of them has had its moment
    now, sent = w.now, probes(d, "sent")
    if time.monotonic() > begun + 5.9:
        raise Void("the first request has been given up by now")
    assert now == 64 and sent == 64
    w.release.set()
    wait_until(lambda: all(w.seen(name) for name in names), what="all to be asked")
    assert w.most == 64 and probes(d, "dropped") == 0


def test_nobody_is_asked_while_the_monitor_is_blind(env, web):
    """Without the broker no heartbeat is heard, although the devices' servers could be asked: no probe is sent."""
    broker = env.own_broker()
    w = web()
    d = daemon(env, group(env, probe=w.url, probe_after="1s", timeout="2s"), mqtt={"reconnect_grace": "2s"})
    env.beat("a")
    wait_until(lambda: w.seen("a") >= 2)
    broker.kill()
    d.wait_lost()
    n = w.seen("a")
    throughout(lambda: w.seen("a") <= n + 1, 2.5)  # one may have been under way
    n = w.seen("a")
    broker.start()
    wait_until(lambda: d.status()["mqtt"] == "up")
    blind = lambda: bool(d.status()["blind"])
    while blind():
        assert w.seen("a") == n or not blind()
    wait_until(lambda: w.seen("a") > n)
    assert env.edges("a") == [("online", "heartbeat")]
