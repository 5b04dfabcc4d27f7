# SPDX-License-Identifier: MIT
"""A broker with a backlog, heartbeats from the past, and a fleet that stops at once."""
import queue
import signal
import socket
import subprocess
import threading
import time

import pytest

from hw_build import FLEET
from hw_mqtt import RawMqtt
from hw_void import MARGIN, Void
from hw_wait import in_time, now_ms, pass_time, throughout, wait_until


class SlowLink:
    """A link between the monitor and its broker that passes on a given number of bytes a second from the broker, and keeps the
    rest, complete and in order, until then. To its subscriber it looks like a broker with a backlog of seconds."""

    def __init__(self, port):
        self.broker_port, self.rate, self.waiting, self.closed = port, None, 0, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.closed:
            try:
                down, _ = self.listener.accept()
            except OSError:
                return
            up = socket.create_connection(("127.0.0.1", self.broker_port))
            down.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
            for s in (up, down):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets += [down, up]
            backlog = queue.Queue()
            for target, args in ((self.copy, (down, up)), (self.collect, (up, backlog)), (self.deliver, (backlog, down))):
                threading.Thread(target=target, args=args, daemon=True).start()

    @staticmethod
    def copy(source, to):
        try:
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def collect(self, source, backlog):
        try:
            while data := source.recv(4096):
                self.waiting += len(data)
                backlog.put(data)
        except OSError:
            pass
        backlog.put(b"")

    def deliver(self, backlog, to):
        try:
            while data := backlog.get():
                if self.rate:
                    time.sleep(len(data) / self.rate)
                to.sendall(data)
                self.waiting -= len(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.closed = True
        for s in [self.listener, *self.sockets]:
            s.close()


def test_a_broker_with_a_backlog_of_seconds(env):
    """Detection is late, but the monitor is not blind, closes no connection, and calls no device offline that beats."""
    env.own_broker(settings=["max_queued_messages 1000000"])
    link = SlowLink(env.broker.port)
    # So that it is not the link that stands still where its threads get no processor for a while, nor the monitor.
    d = env.daemon(timeout="1s", monitor={"stall_after": "60s"}, mqtt={"port": link.port, "barrier_slow": "2s"})
    living = ["a%d" % k for k in range(20)]
    observer = env.observer()
    with env.beating(living, 0.2):
        env.beat("dead")
        for n in living:
            env.wait_store(n, "online")
        blind = d.metrics().get("blind_seconds_total")
        link.rate = 100_000
        flood = threading.Thread(target=send_slowly, args=(env, 4.0), daemon=True)
        longest = [0.0]
        flood.start()
        last = env.beat("dead")

        def look():
            longest[0] = max(longest[0], link.waiting / link.rate)
            s = d.status()
            assert s["blind"] is False and s["mqtt"] == "up", s
            return not flood.is_alive() and link.waiting < 10_000
        wait_until(look, 60, "the backlog to be gone", interval=0.05)
        assert longest[0] > 2.5, "a backlog of %.1f s only" % longest[0]
        m = env.wait_status(observer, "dead", False)
        assert m.at - last > 1.0
        throughout(lambda: all(env.edges(n) == [("online", "heartbeat")] for n in living), 1.5)
    m = d.metrics()
    assert m.get("reconnects_total") == 0
    assert m.get("blind_seconds_total") == blind
    for n in living:
        env.wait_store(n, "offline")
    link.close()


def send_slowly(env, seconds):
    """Publishes about 200,000 bytes a second that the monitor subscribes to."""
    raw = RawMqtt(env.broker.port)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        raw.publish(*[(env.topic("flood"), b"x" * 1000)] * 20)
        pass_time(0.1)
    raw.goodbye()


def test_a_broker_that_gets_little_of_the_processor(env):
    """The broker gets a twentieth of a processor while other clients flood it: it is slow, and never silent for long."""
    env.own_broker(settings=["max_queued_messages 1000000"])
    d = env.daemon(timeout="2s")
    living = ["a%d" % k for k in range(20)]
    with env.beating(living, 0.3):
        for n in living:
            env.wait_store(n, "online")
        until = time.monotonic() + 8
        raw = [env.raw() for _ in range(3)]
        while time.monotonic() < until:
            for r in raw:
                r.publish(*[(env.topic("flood"), b"x" * 100)] * 100)
            env.broker.signal(signal.SIGSTOP)
            pass_time(0.15)
            env.broker.signal(signal.SIGCONT)
            pass_time(0.01)
        assert all(env.edges(n) == [("online", "heartbeat")] for n in living)
        assert d.metrics().get("reconnects_total") == 0
        throughout(lambda: all(env.edges(n) == [("online", "heartbeat")] for n in living), 2.5)
    for n in living:
        env.wait_store(n, "offline")


# --- stale data


def test_heartbeats_that_waited_for_the_monitor(env):
    """Messages that were sent while the monitor was away do not wait for it: its session is clean."""
    d = env.daemon(timeout="500ms", mqtt={"qos": 1})
    env.beat("x")
    env.wait_store("x", "offline")
    d.signal(signal.SIGKILL)
    d.wait()
    pass_time(0.2)
    for _ in range(20):
        env.beat("x", qos=1)
    d.start()
    env.settle(d)
    throughout(lambda: d.state("x") == "offline", 1.0)
    assert env.edges("x") == [("online", "heartbeat"), ("offline", "timeout")]


def test_heartbeats_that_a_device_sends_late(env):
    """The device's session has kept the heartbeats until they are older than max_age: they do not count, in whatever order and
    however often they come."""
    d = env.daemon(group={"timeout": "800ms", "max_age": "5s"})
    env.beat("x", {"time": now_ms() // 1000})
    env.wait_store("x", "offline")
    then = now_ms() // 1000 - 60
    for k in (3, 1, 2, 2, 2, 40, 1):
        env.beat("x", {"time": then + k}, qos=1)
    env.settle(d)
    throughout(lambda: d.state("x") == "offline", 0.5)
    assert d.metrics().get("refused_total", kind="stale") == 7
    assert env.edges("x") == [("online", "heartbeat"), ("offline", "timeout")]
    env.beat("x", {"time": now_ms() // 1000})
    env.wait_store("x", "online")


def test_retained_heartbeats_replayed_after_every_reconnect(env):
    """MQTT 3.1.1 delivers retained messages with each subscription."""
    env.beat("x", b"old", retain=True)
    d = env.daemon(timeout="500ms", mqtt={"protocol": "3.1.1"})
    for _ in range(3):
        env.settle(d)
        assert d.device("x") is None
        before = d.metrics().get("reconnects_total", link="reader")
        env.raw(client_id="heartwheel-%s-r0" % env.node).die()
        wait_until(lambda: d.metrics().get("reconnects_total", link="reader") > before)
        d.wait_seeing(20)
    env.beat("x")
    env.wait_store("x", "offline")
    assert d.metrics().get("refused_total", kind="retained") >= 3


# --- mass death


def all_at_once(env, count, timeout):
    """Each of this many devices beats twice; void if one of them was silent for its timeout in between."""
    raw = env.raw()
    names = ["m%d" % k for k in range(count)]
    beats = [(env.topic(n), b"") for n in names]
    began = time.monotonic()
    raw.publish(*beats, *beats)
    if time.monotonic() > began + timeout - MARGIN:
        raise Void("%.3f s passed between their heartbeats" % (time.monotonic() - began))
    return raw, names


def deaths(env):
    return sorted(int(e["time_ms"]) for e in env.events() if e["state"] == "offline")


def test_2000_devices_that_die_at_once(env):
    env.daemon(timeout="2s")
    raw, names = all_at_once(env, 2000, 2)
    last = now_ms()
    with env.beating(["alive"], 0.2):
        wait_until(lambda: env.redis.zcard(env.key("offline")) == 2000, 20, interval=0.05)
        at = deaths(env)
        assert len(at) == 2000
        assert at[0] - last >= 1900, at[0] - last
        wait_until(lambda: sum(m.json()["online"] is False for m in env.retained(env.root + "/+/status").values()) == 2000,
                   10, interval=0.2)
        assert env.edges("alive") == [("online", "heartbeat")]
    in_time((at[-1] - last) / 1000, 6, "until the last was told")


def test_max_offline_rate_paces_a_mass_death(env):
    """500 a second; a device that is heard before its turn comes stays online."""
    env.daemon(group={"timeout": "3s", "max_offline_rate": 500})
    raw, names = all_at_once(env, 2000, 3)
    wait_until(lambda: env.redis.zcard(env.key("offline")) >= 200, 20, interval=0.02)
    dead = set(env.redis.zrange(env.key("offline"), 0, -1))
    lucky = [n for n in names if n not in dead][-100:]
    with env.beating(lucky, 0.2):
        wait_until(lambda: env.redis.zcard(env.key("offline")) >= len(names) - len(lucky), 20, interval=0.05)
        pass_time(0.5)
        events = env.events()
    assert lucky and not {e["id"] for e in events if e["state"] == "offline"} & set(lucky)
    at = sorted(int(e["time_ms"]) for e in events if e["state"] == "offline")
    assert len(at) == len(names) - len(lucky) and len(events) == len(names) + len(at)
    assert 3.3 <= (at[-1] - at[0]) / 1000, at[-1] - at[0]
    # Each has its turn, 2 ms after the one before. Late ones may crowd, but none comes before its turn.
    due = min(int(e["last_seen_ms"]) for e in events if e["state"] == "offline") + 3000
    early = [(k, due + 2 * k - t) for k, t in enumerate(at) if t < due + 2 * k - 5]
    assert not early, early[:5]
    in_time((at[-1] - at[0]) / 1000, 9, "from the first to the last")


def test_2000_real_clients_that_die_at_once(env):
    """The same with the simulated fleet: each death is reported, and none early."""
    if not FLEET.exists():
        pytest.skip("no %s" % FLEET)
    env.own_broker()
    env.daemon(timeout="2s")
    out = subprocess.run(
        [str(FLEET), "--port", str(env.broker.port), "--devices", "2000", "--connections", "40", "--interval-ms",
         "500", "--timeout-ms", "2000", "--silent", "2000", "--silent-at-ms", "2000", "--seconds", "6", "--prefix", "f",
         "--heartbeat", env.root + "/{id}/heartbeat", "--status", env.root + "/{id}/status", "--expect-online", "2000",
         "--expect-offline", "2000"], capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, (out.returncode, out.stdout, out.stderr)
