# SPDX-License-Identifier: MIT
"""Private mosquitto, redis-server and heartwheeld processes, and the small clients that the system tests use.

Nothing here touches a server that it did not start: every port is a free one of 127.0.0.1, every file lies in a
temporary directory, and every process dies with the test run (PDEATHSIG) if it is not stopped before.
"""
import ctypes
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

import paho.mqtt.client as paho
import redis

SRC = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HW_BUILD") or "build").resolve()
HEARTWHEELD = BUILD / "heartwheeld"
HEARTWHEELCTL = BUILD / "heartwheelctl"
FLEET = BUILD / "tests" / "system" / "fleet"
SANITIZER = re.compile(r"ERROR: \w*Sanitizer|runtime error:|WARNING: ThreadSanitizer")

_counter = itertools.count(1)
_libc = ctypes.CDLL(None, use_errno=True)


def sanitizer_runtime():
    """The address sanitizer's library if the daemon is built with it, in a list."""
    linked = subprocess.run(["ldd", str(HEARTWHEELD)], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"=> (\S*/libasan\.\S*)", linked)


# --- time


def wait_until(predicate, timeout=10.0, what="", interval=0.01):
    """Polls until predicate() is true and returns its value; fails after `timeout` seconds. The only place that sleeps."""
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("not within %.1f s: %s" % (timeout, what or predicate))
        time.sleep(interval)


def throughout(predicate, seconds, what=""):
    """Fails if predicate() is ever false within `seconds`: lets time pass by polling."""
    deadline = time.monotonic() + seconds
    while True:
        assert predicate(), "did not hold for %.1f s: %s" % (seconds, what or predicate)
        left = deadline - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(0.02, left))


def pass_time(seconds):
    """Lets silence pass."""
    throughout(lambda: True, seconds)


def short(value):
    """A test's name for a parameter that is no name."""
    text = "".join(c if c.isalnum() or c in "{}[]:\"'.,=/%-" else "_" for c in (
        value.decode("latin-1") if isinstance(value, bytes) else json.dumps(value) if isinstance(value, (dict, list))
        else str(value))[:40] if c.isascii())
    return text or "empty"


def now_ms():
    return int(time.time() * 1000)


# --- processes


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """A child with its output in a file. Subclasses say how it is started and when it is ready."""

    name = "process"

    def __init__(self, directory):
        self.dir = Path(directory)
        self.proc = None
        self.output = self.dir / ("%s.log" % self.name)

    def spawn(self, argv, env=None):
        self.awaited = False  # whether a test expects its end
        with open(self.output, "ab") as out:
            self.proc = subprocess.Popen(
                [str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.dir,
                env=dict(os.environ, **(env or {})), preexec_fn=_die_with_parent)

    @property
    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    @property
    def pid(self):
        return self.proc.pid

    def signal(self, number):
        self.proc.send_signal(number)

    def wait(self, timeout=15.0):
        self.awaited = True
        try:
            return self.proc.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError("%s (pid %d) did not exit within %.0f s" % (self.name, self.pid, timeout)) from None

    def kill(self):
        if self.alive:
            self.proc.send_signal(signal.SIGCONT)
            self.proc.kill()
            self.proc.wait(10)

    def log(self):
        try:
            return self.output.read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""


class Server(Process):
    """A server on a port that was free a moment ago: if somebody else got it first, another one is tried."""

    def __init__(self, directory):
        super().__init__(directory)
        self.port = None

    def launch(self):
        raise NotImplementedError

    def answers(self):
        raise NotImplementedError

    def start(self):
        keep = self.port is not None
        for _ in range(5):
            if not keep:
                self.port = free_port()
            self.launch()
            wait_until(lambda: not self.alive or self.answers(), 10, "%s to answer" % self.name)
            if self.alive:
                return self
            if keep:
                time.sleep(0.2)
        raise RuntimeError("%s does not start:\n%s" % (self.name, self.log()[-2000:]))

    def stop(self, number=signal.SIGTERM):
        if self.alive:
            self.signal(number)
            try:
                self.proc.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()


class Broker(Server):
    """A private mosquitto. `settings`: further lines of its configuration."""

    name = "mosquitto"

    def __init__(self, directory, settings=("set_tcp_nodelay true",), users=None, acl=None, persistence=False, tls=None):
        super().__init__(directory)
        self.settings = list(settings)
        self.users = users
        self.acl = acl
        self.persistence = persistence
        self.tls = tls

    def launch(self):
        lines = ["listener %d 127.0.0.1" % self.port, "log_dest stderr", "log_type error", "log_type warning",
                 "log_type notice"]
        if os.geteuid() == 0:
            lines.append("user root")
        if self.tls:
            lines += ["cafile %s" % self.tls.ca, "certfile %s" % self.tls.server_cert,
                      "keyfile %s" % self.tls.server_key]
            if self.tls.require_client:
                lines += ["require_certificate true"]
        if self.users is None:
            lines.append("allow_anonymous true")
        else:
            lines += ["allow_anonymous false", "password_file %s" % self.write_users()]
        if self.acl is not None:
            (self.dir / "acl").write_text(self.acl)
            os.chmod(self.dir / "acl", 0o600)
            lines.append("acl_file %s" % (self.dir / "acl"))
        lines.append("persistence %s" % ("true" if self.persistence else "false"))
        if self.persistence:
            lines.append("persistence_location %s/" % self.dir)
        conf = self.dir / "mosquitto.conf"
        conf.write_text("\n".join(lines + self.settings) + "\n")
        self.spawn([shutil.which("mosquitto") or "/usr/sbin/mosquitto", "-c", conf])

    def write_users(self):
        path = self.dir / "passwd"
        path.write_text("")
        os.chmod(path, 0o600)
        for user, password in self.users.items():
            subprocess.run(["mosquitto_passwd", "-b", str(path), user, password], check=True, capture_output=True)
        return path

    def reload_users(self, users):
        self.users = users
        self.write_users()
        self.signal(signal.SIGHUP)

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False


class Redis(Server):
    """A private redis-server without persistence, unless `options` say otherwise."""

    name = "redis-server"

    def __init__(self, directory, options=(), password=None, unix_socket=None):
        super().__init__(directory)
        self.options = list(options)
        self.password = password
        self.unix_socket = unix_socket

    def launch(self):
        argv = [shutil.which("redis-server") or "/usr/bin/redis-server", "--port", self.port, "--bind", "127.0.0.1",
                "--save", "", "--dir", self.dir, "--daemonize", "no"]
        if "appendonly" not in " ".join(map(str, self.options)):
            argv += ["--appendonly", "no"]
        if self.password:
            argv += ["--requirepass", self.password]
        if self.unix_socket:
            argv += ["--unixsocket", self.unix_socket]
        self.spawn(argv + self.options)

    def client(self, db=0):
        return redis.Redis("127.0.0.1", self.port, db=db, password=self.password, socket_timeout=10,
                           decode_responses=True)

    def answers(self):
        try:
            return self.client().ping()
        except redis.exceptions.RedisError:
            return False


class Tls:
    """A certificate authority, a server certificate for 127.0.0.1 and a client certificate."""

    def __init__(self, directory, name="ca"):
        self.dir = Path(directory)
        self.require_client = False
        self.ca = self.dir / ("%s.crt" % name)
        ca_key = self.dir / ("%s.key" % name)
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                 "-subj", "/CN=heartwheel test %s" % name, "-keyout", ca_key, "-out", self.ca)
        self.server_cert, self.server_key = self.issue(name + "-server", "subjectAltName=IP:127.0.0.1,DNS:localhost")
        self.client_cert, self.client_key = self.issue(name + "-client", "extendedKeyUsage=clientAuth")

    def run(self, *args):
        subprocess.run(["openssl", *[str(a) for a in args]], check=True, capture_output=True)

    def issue(self, name, extension):
        key, csr, crt = (self.dir / (name + s) for s in (".key", ".csr", ".crt"))
        ext = self.dir / (name + ".ext")
        ext.write_text(extension + "\n")
        self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + name,
                 "-keyout", key, "-out", csr)
        self.run("x509", "-req", "-in", csr, "-CA", self.ca, "-CAkey", str(self.ca)[:-3] + "key", "-CAcreateserial",
                 "-days", "2", "-extfile", ext, "-out", crt)
        return crt, key


# --- MQTT clients


class Message:
    __slots__ = ("topic", "payload", "retain", "qos", "at", "wall")

    def __init__(self, m):
        self.topic, self.payload, self.retain, self.qos = m.topic, m.payload, bool(m.retain), m.qos
        self.at, self.wall = time.monotonic(), time.time()

    def json(self):
        try:
            return json.loads(self.payload)
        except ValueError:
            return None

    def __repr__(self):
        return "<%s%s %r>" % (self.topic, " (retained)" if self.retain else "", self.payload[:300])


class Client:
    """A paho client in a thread of its own, which keeps every message with the time of its arrival."""

    def __init__(self, port, protocol=paho.MQTTv5, username=None, password=None, tls=None, client_id=None):
        self.messages = []
        self.client = paho.Client(client_id or "hwtest-%d-%d" % (os.getpid(), next(_counter)), protocol=protocol)
        self.client.max_queued_messages_set(0)
        self.client.max_inflight_messages_set(1000 if protocol != paho.MQTTv5 else 20)
        self.client.reconnect_delay_set(1, 1)
        if username:
            self.client.username_pw_set(username, password)
        if tls:
            self.client.tls_set(str(tls.ca), str(tls.client_cert), str(tls.client_key))
        self.filters = {}
        self.granted = set()
        self.client.on_connect = self._on_connect
        self.client.on_message = lambda c, u, m: self.messages.append(Message(m))
        self.client.on_subscribe = lambda c, u, mid, *rest: self.granted.add(mid)
        self.client.on_disconnect = lambda *a: self.granted.clear()
        # Otherwise the broker's delayed acknowledgements hold a second small packet back for 40 ms.
        self.client.on_socket_open = lambda c, u, s: s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connects = 0
        self.client.connect("127.0.0.1", port, 30)
        self.client.loop_start()
        wait_until(self.client.is_connected, 10, "a test client to connect")

    def _on_connect(self, client, userdata, flags, rc, properties=None):
        self.connects += 1
        if self.connects > 1:
            for name, qos in self.filters.items():
                client.subscribe(name, qos)

    def subscribe(self, name, qos=0):
        self.filters[name] = qos
        _, mid = self.client.subscribe(name, qos)
        wait_until(lambda: mid in self.granted, 10, "a subscription to " + name)
        return self

    def publish(self, topic, payload=b"", qos=0, retain=False, wait=True):
        if isinstance(payload, (dict, list)):
            payload = json.dumps(payload)
        info = self.client.publish(topic, payload, qos, retain)
        if qos and wait:
            info.wait_for_publish(10)
            assert info.is_published(), "no PUBACK for " + topic
        return info

    def on(self, topic, start=0):
        return [m for m in self.messages[start:] if m.topic == topic]

    def fence(self):
        """Returns when everything that the broker had queued for this client before has arrived."""
        topic = "hwtest/fence/%d-%d" % (os.getpid(), next(_counter))
        self.subscribe(topic)
        self.publish(topic, b"fence")
        wait_until(lambda: self.on(topic), 10, "a fence")
        self.filters.pop(topic)
        self.client.unsubscribe(topic)
        return self

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


class RawMqtt:
    """MQTT 3.1.1 by hand: several packets in one write, topics that a library would refuse, deaths without a DISCONNECT."""

    def __init__(self, port, will=None, client_id=None, keepalive=60):
        self.sock = socket.create_connection(("127.0.0.1", port), 5)
        flags, body = 2, b""
        if will:
            topic, payload, retain = will
            flags |= 4 | (0x20 if retain else 0)
            body = self.text(topic) + self.text(payload)
        client_id = client_id or "hwraw-%d-%d" % (os.getpid(), next(_counter))
        self.sock.sendall(self.packet(0x10, self.text("MQTT") + bytes([4, flags]) + struct.pack("!H", keepalive)
                                      + self.text(client_id) + body))
        ack = self.sock.recv(4)
        assert ack[:1] == b"\x20" and ack[3] == 0, "CONNACK %r" % ack

    @staticmethod
    def text(s):
        b = s.encode() if isinstance(s, str) else s
        return struct.pack("!H", len(b)) + b

    @staticmethod
    def packet(kind, body):
        head, n = bytearray([kind]), len(body)
        while True:
            head.append(n % 128 | (0x80 if n >= 128 else 0))
            n //= 128
            if not n:
                return bytes(head) + body

    def publish(self, *messages, retain=False):
        """QoS 0, all of them in one write."""
        self.sock.sendall(b"".join(
            self.packet(0x31 if retain else 0x30, self.text(t) + (p if isinstance(p, bytes) else p.encode()))
            for t, p in messages))

    def is_closed(self):
        """Whether the broker has closed the connection."""
        self.sock.settimeout(0.05)
        try:
            return self.sock.recv(4096) == b""
        except socket.timeout:
            return False
        except OSError:
            return True

    def goodbye(self):
        self.sock.sendall(b"\xe0\x00")
        self.sock.close()

    def die(self):
        self.sock.close()


class Beating:
    """Heartbeats of several devices at a steady interval, from a thread, until the block ends."""

    def __init__(self, client, topics, interval=0.2, payload=b"", stagger=False):
        self.client, self.topics, self.interval, self.payload = client, list(topics), interval, payload
        self.last = {}  # topic -> monotonic time just before its latest heartbeat
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.stopping.is_set():
            for topic in self.topics:
                self.last[topic] = time.monotonic()
                self.client.publish(topic, self.payload)
            self.stopping.wait(self.interval)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        self.thread.join(10)


# --- HTTP on a unix socket


class UnixHTTP(http.client.HTTPConnection):
    def __init__(self, path, timeout=10):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "<%d %r>" % (self.status, self.body[:500])


# --- the daemon


def render(sections):
    """[(section, {key: value or list of values, None: left out})] -> the text of a configuration."""
    lines = []
    for name, keys in sections:
        lines.append("[%s]" % name)
        for key, value in keys.items():
            for v in value if isinstance(value, (list, tuple)) else [value]:
                if v is not None:
                    lines.append(("%s = %s" % (key, v)).rstrip())
    return "\n".join(lines) + "\n"


class Daemon(Process):
    """One configuration, and the heartwheeld that runs it (again and again, if the test wants)."""

    name = "heartwheeld"

    def __init__(self, directory, text, node, socket_path, pid_file):
        super().__init__(directory)
        self.conf = self.dir / "monitor.conf"
        self.conf.write_text(text)
        self.node, self.socket, self.pid_file = node, Path(socket_path), Path(pid_file)
        self.started = None  # monotonic, just before the latest start

    def rewrite(self, text):
        self.conf.write_text(text)

    def edit(self, old, new):
        text = self.conf.read_text()
        assert old in text, old
        self.conf.write_text(text.replace(old, new, 1))

    def start(self, seeing=True, ready=True, env=None, args=("-f",)):
        assert HEARTWHEELD.exists(), "no %s: set HW_BUILD to the build directory" % HEARTWHEELD
        assert not self.alive
        self.started = time.monotonic()
        self.spawn([HEARTWHEELD, *args, "-c", self.conf], env)
        if ready:
            wait_until(lambda: not self.alive or self.answers(), 15, "the control socket to answer")
            assert self.alive, "heartwheeld exited with %s:\n%s" % (self.proc.returncode, self.log()[-3000:])
        if seeing:
            self.wait_seeing()
        return self

    def answers(self):
        try:
            return self.get("/v1/status").status == 200
        except (OSError, http.client.HTTPException):
            return False

    def wait_seeing(self, timeout=20):
        """Waits until it sees, and has read its store."""
        def sees():
            s = self.status()
            return s["blind"] is False and not s.get("loading")
        wait_until(sees, timeout, "the monitor to see")
        return self

    def stop(self, timeout=None):
        """SIGTERM; it has to end with status 0 and leave nothing."""
        self.signal(signal.SIGTERM)
        code = self.wait(timeout or 15)
        assert code == 0, "heartwheeld exited with %d after SIGTERM:\n%s" % (code, self.log()[-3000:])
        self.check_log()
        assert not self.socket.exists(), "the control socket was left behind"
        assert not self.pid_file.exists(), "the pid file was left behind"

    def check_log(self):
        found = SANITIZER.search(self.log())
        assert not found, "a sanitizer spoke up:\n" + self.log()[found.start():][:4000]

    def request(self, method, path, body=None, headers=None):
        c = UnixHTTP(self.socket)
        try:
            c.request(method, path, body, headers or {})
            return Answer(c.getresponse())
        finally:
            c.close()

    def get(self, path):
        return self.request("GET", path)

    def status(self):
        a = self.get("/v1/status")
        assert a.status == 200, a
        return a.json()

    @staticmethod
    def path_of(device):
        return "/v1/devices/" + urllib.parse.quote(device, safe="")

    def device(self, device):
        """The device as the API tells it, or None if it is not known."""
        a = self.get(self.path_of(device))
        assert a.status in (200, 404), a
        return a.json() if a.status == 200 else None

    def state(self, device):
        d = self.device(device)
        return d and d["state"]

    def forget(self, device):
        return self.request("DELETE", self.path_of(device))

    def metrics(self):
        return Metrics(self.get("/metrics").body.decode())

    def ctl(self, *args, timeout=20, socket_path=None):
        return subprocess.run([str(HEARTWHEELCTL), "-s", str(socket_path or self.socket), *args], capture_output=True,
                              text=True, timeout=timeout, stdin=subprocess.DEVNULL)


class Metrics:
    """A strict reader of the Prometheus text format."""

    SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$')
    LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)')

    def __init__(self, text):
        self.samples, self.types, self.helps = {}, {}, set()
        assert text.endswith("\n"), "the last line has no line end"
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name not in self.types, "two TYPE lines for " + name
                self.types[name] = kind
            elif line.startswith("# HELP "):
                self.helps.add(line.split(" ")[2])
            elif line and not line.startswith("#"):
                self.add(line)

    def add(self, line):
        m = self.SAMPLE.match(line)
        assert m, "not a sample: %r" % line
        name, text, value = m.groups()
        labels, at = [], 0
        while text and at < len(text):
            pair = self.LABEL.match(text, at)
            assert pair, "labels of %r" % line
            labels.append(pair.groups())
            at = pair.end()
        key = (name, tuple(sorted(labels)))
        assert key not in self.samples, "twice: %r" % line
        self.samples[key] = float(value)
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        assert name in self.types or self.types.get(family) == "histogram", "no TYPE before %r" % line

    def refused(self):
        """Everything that was refused, but for the monitors' own messages, which come back to it all the time."""
        return self.get("refused_total") - self.get("refused_total", kind="monitor")

    def get(self, name, **labels):
        """The sum over every sample of heartwheel_NAME that has these labels."""
        found = [v for (n, have), v in self.samples.items()
                 if n == "heartwheel_" + name and set(labels.items()) <= set(have)]
        return sum(found)

    def has(self, name):
        return any(n == "heartwheel_" + name for n, _ in self.samples)

    def labels(self, name, label):
        return {dict(have).get(label) for n, have in self.samples if n == "heartwheel_" + name}


# --- what a test gets


class Env:
    """A topic root, a key prefix and a node id of the test's own on the shared servers, or servers of its own."""

    def __init__(self, shared_broker, shared_redis, base):
        self.number = next(_counter)
        self.dir = Path(tempfile.mkdtemp(prefix="e%d-" % self.number, dir=base))
        os.chmod(self.dir, 0o755)
        self.broker, self.redis_server = shared_broker, shared_redis
        self.root = "t%d" % self.number
        self.prefix = "t%d:device:" % self.number
        self.node = "node%d" % self.number
        self.daemons, self.servers, self.clients = [], [], []
        self._publisher = self._redis = None
        self.redis_db = 0
        self.check_events = True  # the invariants of the event stream, looked at when the test ends

    # servers of the test's own

    def own_dir(self, name):
        d = self.dir / ("%s%d" % (name, next(_counter)))
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
                 http=None, directory=None, keyspace=None):
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
        c = Client(self.broker.port, **options)
        self.clients.append(c)
        return c

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
        c = Client(self.broker.port)
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
        at = time.monotonic()
        self.publisher.publish(self.topic(device, last), payload, qos, retain)
        return at

    def beating(self, devices, interval=0.2, payload=b""):
        return Beating(self.publisher, [self.topic(d) for d in devices], interval, payload)

    def settle(self, daemon, timeout=10):
        """Returns when the daemon has read everything that the publisher sent before."""
        device = "settle-%d" % next(_counter)
        self.beat(device)
        wait_until(lambda: daemon.device(device), timeout, "the daemon to read " + device)

    # Redis

    def key(self, *parts):
        return self.prefix + ":".join(parts)

    def hash(self, device):
        return self.redis.hgetall(self.key("state", device))

    def events(self, device=None):
        entries = [e for _, e in self.redis.xrange(self.key("events"))]
        return entries if device is None else [e for e in entries if e["id"] == device]

    def edges(self, device):
        """[(state, reason)] of a device, oldest first."""
        return [(e["state"], e["reason"]) for e in self.events(device)]

    def in_store(self, device):
        """What the three indexes say: "online", "offline", None, or what contradicts itself."""
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
        wait_until(lambda: self.in_store(device) == state, timeout,
                   "%s to be %s in Redis (is %s)" % (device, state, self.in_store(device)))

    def wait_status(self, observer, device, online, start=0, timeout=10):
        """The first status message of the monitor that says so."""
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
        """Of one device, seq grows strictly, and no transition says what was already so."""
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
        """Stops everything; returns what was wrong with it, or None."""
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
