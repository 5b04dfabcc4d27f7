# SPDX-License-Identifier: MIT
"""What a test gets: servers, daemons and clients of its own, with topics and keys that no other test uses. Only servers that
the environment started are touched, and every file is in a temporary directory."""
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import paho.mqtt.client as paho
import redis

from hw_daemon import Daemon, render
from hw_mqtt import Beating, Client, RawMqtt
from hw_process import free_port, next_number
from hw_servers import Broker, Redis
from hw_void import Void, judge, least_timeout
from hw_wait import wait_until


# So that a busy machine causes neither standstills nor stalls in tests of other things.
NO_STANDSTILL, NO_STALL = {"barrier_slow": "5s"}, {"stall_after": "60s"}


def short(value):
    """A short name for a parameter that is no string."""
    text = "".join(c if c.isalnum() or c in "{}[]:\"'.,=/%-" else "_" for c in (
        value.decode("latin-1") if isinstance(value, bytes) else json.dumps(value) if isinstance(value, (dict, list))
        else str(value))[:40] if c.isascii())
    return text or "empty"


class Env:
    """A topic root, a key prefix and a node id of the test's own on the shared servers, or on servers of its own."""

    def __init__(self, shared_broker, shared_redis, base):
        self.number = next_number()
        self.dir = Path(tempfile.mkdtemp(prefix="e%d-" % self.number, dir=base))
        os.chmod(self.dir, 0o755)
        self.broker, self.redis_server = shared_broker, shared_redis
        self.root = "t%d" % self.number
        self.prefix = "t%d:device:" % self.number
        self.node = "node%d" % self.number
        self.beaten = {}  # {device: monotonic time just before its latest heartbeat by beat()}
        self.daemons, self.servers, self.clients = [], [], []
        self.gaps = []  # of devices that are none of the clients
        self._publisher = self._redis = None
        self.redis_db = 0
        self.check_events = True  # the invariants of the event stream, which are checked when the test ends

    # servers of the test's own

    def own_dir(self, name):
        d = self.dir / ("%s%d" % (name, next_number()))
        d.mkdir()
        os.chmod(d, 0o755)
        return d

    def own_broker(self, start=True, **options):
        self.broker = Broker(self.own_dir("mq"), **options)
        self.servers.append(self.broker)
        return self.broker.start() if start else self.reserve(self.broker)

    def own_redis(self, start=True, **options):
        self.redis_server = Redis(self.own_dir("rd"), **options)
        self._redis = None
        self.servers.append(self.redis_server)
        return self.redis_server.start() if start else self.reserve(self.redis_server)

    @staticmethod
    def reserve(server):
        server.port = free_port()
        return server

    @property
    def redis(self):
        if self._redis is None:
            self._redis = self.redis_server.client(self.redis_db)
        return self._redis

    # the daemon

    def sections(self, timeout="1s", group=None, groups=None, monitor=None, mqtt=None, store=None, redis=None,
                 http=None, directory=None, keyspace=None, notify=None, cluster=None, history=None, tasks=None, alert=None):
        d = directory or self.dir
        default = {"heartbeat": [self.root + "/{id}/heartbeat", self.root + "/{id}/status"],
                   "status": self.root + "/{id}/status", "timeout": timeout}
        return [
            ("monitor", {"node_id": self.node, "pid_file": d / "heartwheeld.pid", "user": "", "log": "stderr",
                         "log_level": "debug", "stop_timeout": "2s", **(monitor or {})}),
            ("mqtt", {"host": "127.0.0.1", "port": self.broker.port, "reconnect_grace": 0, **(mqtt or {})}),
            ("store", {"type": "redis", **(store or {})}),
            ("redis", {"host": "127.0.0.1", "port": self.redis_server.port, "key_prefix": self.prefix,
                       **(redis or {})}),
            ("http", {"socket": d / "control.sock", **(http or {})}),
            *([("keyspace", keyspace)] if keyspace else []),
            *([("notify", notify)] if notify else []),
            *([("cluster", cluster)] if cluster else []),
            *([("history", history)] if history else []),
            *([("tasks", tasks)] if tasks else []),
            *([("alert", alert)] if alert else []),
        ] + [("group " + n, keys) for n, keys in (groups or [("default", {**default, **(group or {})})])]

    def text(self, **options):
        return render(self.sections(**options))

    def configure(self, text=None, node=None, **options):
        directory = self.own_dir("hw")
        if text is None:
            text = self.text(directory=directory, **options)
        d = Daemon(directory, text, node or self.node, directory / "control.sock", directory / "heartwheeld.pid")
        self.daemons.append(d)
        return d

    def daemon(self, seeing=True, env=None, **options):
        return self.configure(**options).start(seeing=seeing, env=env)

    # clients

    def client(self, **options):
        c = self.connect(**options)
        self.clients.append(c)
        return c

    def connect(self, **options):
        """A client that the caller closes."""
        return Client(self.broker.port, **options)

    @property
    def publisher(self):
        if self._publisher is None:
            self._publisher = self.client(protocol=paho.MQTTv311)
        return self._publisher

    def observer(self, *filters, **options):
        c = self.client(**options)
        for f in filters or (self.root + "/+/status",):
            c.subscribe(f)
        return c

    def raw(self, **options):
        c = RawMqtt(self.broker.port, **options)
        return c

    def retained(self, *filters):
        """What a new subscriber gets: {topic: message}."""
        c = self.connect()
        try:
            for f in filters:
                c.subscribe(f)
            c.fence()
            return {m.topic: m for m in c.messages if m.retain}
        finally:
            c.close()

    def retained_status(self, device):
        """The retained status of a device, decoded; None if there is none."""
        m = self.retained(self.status_topic(device)).get(self.status_topic(device))
        return m and m.json()

    def topic(self, device, last="heartbeat"):
        return "%s/%s/%s" % (self.root, device, last)

    def status_topic(self, device):
        return self.topic(device, "status")

    def beat(self, device, payload=b"", qos=0, last="heartbeat", retain=False):
        """One heartbeat. Returns the monotonic time just before it was sent."""
        at = self.beaten[device] = time.monotonic()
        self.publisher.publish(self.topic(device, last), payload, qos, retain)
        return at

    def beating(self, devices, interval=0.2, payload=b""):
        return Beating(self.publisher, [self.topic(d) for d in devices], interval, payload)

    def settle(self, daemon, timeout=10):
        """Returns when the daemon has read all that the publisher sent before."""
        device = "settle-%d" % next_number()
        self.beat(device)
        wait_until(lambda: daemon.device(device), timeout, "the daemon to read " + device)

    def why_void(self):
        """Why a failed run proves nothing, or None: a device that was meant to beat had a gap of its timeout."""
        gaps = self.gaps + [c.gaps for c in self.clients]
        timeout = self.least_timeout()
        return judge(max((g.worst() for g in gaps), default=0.0), timeout) if timeout else None

    def flood_until_dropped(self, raw, topic):
        """Publishes so much to clients that do not read that the broker drops messages."""
        batch = [(topic, b"x" * 100)] * 1000
        wait_until(lambda: raw.publish(*batch) or "are being dropped" in self.broker.log(), what="the broker to drop messages")

    def called_dead(self):
        """Whether a device was called offline that was beating, and had been for a timeout: then more is wrong than a bound on
        time (hw_again.py)."""
        timeout = self.least_timeout()
        if timeout is None or not self.redis_server.alive:
            return False
        gaps = self.gaps + [c.gaps for c in self.clients]
        try:
            dead = [e for e in self.events() if (e.get("state"), e.get("reason")) == ("offline", "timeout")]
        except redis.exceptions.RedisError:
            return False
        return any(g.beat_at(self.topic(e["id"]), int(e["time_ms"]), timeout) for e in dead for g in gaps)

    def least_timeout(self):
        """Of all groups of all daemons, in seconds; None without any configuration."""
        return min((least_timeout(d.conf.read_text("utf-8", "replace")) for d in self.daemons if d.conf.exists()),
                   default=None)

    @contextlib.contextmanager
    def meant(self, topic):
        """The test's publisher sends on these topics again and again, so they count as beating."""
        gaps = self.publisher.gaps
        gaps.begin("%s/%s" % (self.root, topic))
        yield
        gaps.end("%s/%s" % (self.root, topic))

    # Redis

    def key(self, *parts):
        return self.prefix + ":".join(parts)

    def published(self):
        """P: the broker has acknowledged each status of a transition with a lesser seq."""
        value = self.redis.hget(self.key("published"), "all") or ""
        return int(value) if value.isdigit() else 0

    def hash(self, device):
        return self.redis.hgetall(self.key("state", device))

    def events(self, device=None):
        entries = [e for _, e in self.redis.xrange(self.key("events"))]
        return entries if device is None else [e for e in entries if e["id"] == device]

    def edges(self, device):
        """[(state, reason)] of a device, oldest first."""
        return [(e["state"], e["reason"]) for e in self.events(device)]

    def in_store(self, device):
        """The state by the three indexes: "online", "offline", None, or their contradiction."""
        r = self.redis.pipeline(transaction=True)
        r.exists(self.key("connected", device))
        r.exists(self.key("disconnected", device))
        r.zscore(self.key("offline"), device)
        r.hget(self.key("state", device), "state")
        connected, disconnected, score, state = r.execute()
        seen = (bool(connected), bool(disconnected), score is not None, state)
        return {(True, False, False, "online"): "online", (False, True, True, "offline"): "offline",
                (False, False, False, None): None}.get(seen, seen)

    def wait_store(self, device, state, timeout=10):
        """Waits for a state. Void if the device was online and rightly offline again before the test could check."""
        longest, last = 0.0, self.beaten.get(device, time.monotonic())

        def look():
            nonlocal longest, last
            now = time.monotonic()
            longest, last = max(longest, now - last), now
            found = self.in_store(device)
            if state == "online" and found == "offline" and self.went_by(device, longest):
                raise Void("the test looked %.3f s late for %s, which had been online" % (longest, device))
            return found == state
        wait_until(look, timeout, "%s to be %s in Redis (is %s)" % (device, state, self.in_store(device)))

    def went_by(self, device, seconds):
        """Whether the device's last transition took it offline a timeout after the transition before, rightly by its latest
        heartbeat, while the test did not check for most of that timeout."""
        edges = self.events(device)[-2:]
        if [e["reason"] for e in edges] != ["heartbeat", "timeout"] or device not in self.beaten:
            return False
        on, off = (int(e["time_ms"]) / 1000 for e in edges)
        ago = time.time() - (time.monotonic() - self.beaten[device])
        in_time = off - on >= (self.least_timeout() or 0) - 0.002
        return in_time and on >= ago - 0.002 and seconds >= 0.6 * (off - on)

    def wait_status(self, observer, device, online, start=0, timeout=10):
        """The monitor's first status message with this state."""
        topic = self.status_topic(device)

        def find():
            for m in observer.on(topic, start):
                j = m.json()
                if isinstance(j, dict) and j.get("by") == self.node and j.get("online") is online:
                    return m
            return None
        return wait_until(find, timeout, "%s to be told %s" % (device, "online" if online else "offline"))

    # the end

    def verify_events(self):
        """For each device seq increases strictly, and each transition changes the state."""
        last = {}
        for e in self.events():
            before = last.get(e["id"])
            last[e["id"]] = e
            assert set(e) >= {"id", "state", "reason", "time_ms", "last_seen_ms", "group", "node", "seq"}, e
            if before is None:
                continue
            assert int(e["seq"]) > int(before["seq"]), "seq did not grow: %s, %s" % (before, e)
            assert e["state"] != before["state"], "told twice: %s, %s" % (before, e)

    def close(self):
        """Stops everything; returns the error, or None."""
        wrong = None
        for d in self.daemons:
            try:
                if d.alive:
                    d.signal(signal.SIGCONT)
                    d.stop()
                else:
                    d.check_log()
                    assert d.proc is None or d.awaited, "heartwheeld died with %d" % d.proc.returncode
            except AssertionError as e:
                wrong = wrong or e
            d.kill()
        if self.check_events and self.redis_server.alive:
            try:
                self.verify_events()
            except AssertionError as e:
                wrong = wrong or e
            except redis.exceptions.RedisError:
                pass
        for c in self.clients:
            c.close()
        for s in self.servers:
            s.kill()
        return wrong

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def logs(self):
        for p in self.daemons + self.servers:
            text = p.log()
            if p.proc is not None and p.proc.returncode is not None and not p.awaited:
                text += "[%s ended with %d]\n" % (p.name, p.proc.returncode)
            if text:
                yield str(p.output), text if len(text) < 12000 else text[:3000] + "\n[...]\n" + text[-9000:]
