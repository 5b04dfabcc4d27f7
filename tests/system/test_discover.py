# SPDX-License-Identifier: MIT
"""heartwheelctl discover: at a broker with several conventions at once, it writes groups with which heartwheeld takes the
devices and nothing else. It publishes nothing."""
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from hw_build import HEARTWHEELCTL, HEARTWHEELD, SRC
from hw_conventions import Fleets
from hw_daemon import Daemon, render
from hw_mqtt import RawMqtt, user_properties
from hw_wait import wait_until

sys.path.insert(0, str(SRC / "tests" / "brokers"))
from adapters import AedesBroker, RabbitMq  # noqa: E402

ACCEPTED = 0.99


class Traffic:
    """Publishes rounds of messages, one each `every` seconds, in a thread of its own."""

    def __init__(self, port, fleets, every=1.2, flagged=(), **login):
        self.raw, self.fleets, self.every, self.flagged = RawMqtt(port, **login), fleets, every, flagged
        self.error, self.ends = None, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def keep(self, messages):
        """Publishes with the retain flag, in pieces that the broker can take."""
        messages = list(messages)
        for at in range(0, len(messages), 500):
            self.raw.publish(*messages[at:at + 500], retain=True)
        return self

    def one_round(self, n):
        messages = list(self.fleets.round(n))
        for at in range(0, len(messages), 400):
            self.raw.publish(*messages[at:at + 400])
            time.sleep(0.005)

    def run(self):
        n = 0
        try:
            while not self.ends.is_set():
                self.one_round(n)
                n += 1
                self.ends.wait(self.every)
        except OSError as e:
            self.error = e

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


def command(port, *args):
    return [str(HEARTWHEELCTL), "discover", "--broker", "127.0.0.1:%d" % port, *map(str, args)]


def discover(port, *args, timeout=120):
    return subprocess.run(command(port, *args), capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)


def groups_of(text):
    return re.findall(r"^\[group (.*)\]$", text, re.M)


def base_sections(env, directory, protocol="5"):
    return render([("monitor", {"node_id": env.node, "pid_file": directory / "heartwheeld.pid", "user": "", "log": "stderr"}),
                   ("mqtt", {"host": "127.0.0.1", "port": env.broker.port, "protocol": protocol, "reconnect_grace": 0}),
                   ("store", {"type": "memory"}), ("http", {"socket": directory / "control.sock"})])


def check_conf(env, text):
    """The sections pass by themselves, and after the shipped ones. `user` names a user whom this machine may not have."""
    directory = env.own_dir("check")
    shipped = (SRC / "conf" / "monitor.conf").read_text()
    for n, before in enumerate(("[monitor]\nuser =\n", "[monitor]\nuser =\n" + shipped, base_sections(env, directory))):
        conf = directory / ("%d.conf" % n)
        conf.write_text(before + text)
        r = subprocess.run([str(HEARTWHEELD), "-t", "-c", str(conf)], capture_output=True, text=True, timeout=60)
        assert r.returncode == 0, r.stderr + text
        assert "shadow" not in r.stderr and "takes all" not in r.stderr or n == 1, r.stderr + text


def known(d):
    out = d.ctl("list", "--names")
    assert out.returncode == 0, out
    return set(out.stdout.split("\n")) - {""}


def check_devices(env, text, traffic, ids, protocol="5"):
    """Runs heartwheeld with these groups, beside the same traffic: it knows the devices, and no other ids. Returns it."""
    check_conf(env, text)
    directory = env.own_dir("hw")
    d = Daemon(directory, base_sections(env, directory, protocol) + text, env.node, directory / "control.sock",
               directory / "heartwheeld.pid")
    env.daemons.append(d)
    env.check_events = False
    d.start()
    with traffic:
        wait_until(lambda: len(known(d) & ids) >= ACCEPTED * len(ids), 30, "the devices to be known")
        time.sleep(2 * traffic.every)  # one that is invented would be known by now
    found = known(d)
    assert not found - ids, (sorted(found - ids)[:20], text)
    assert len(found & ids) >= ACCEPTED * len(ids), (sorted(ids - found)[:20], text)
    return d


def own_broker(env, **options):
    settings = ["set_tcp_nodelay true", "max_queued_messages 100000", "max_inflight_messages 1000"]
    return env.own_broker(settings=settings, **options)


@pytest.mark.parametrize("scale", [4, 150])
def test_conventions_at_once(env, scale):
    broker = own_broker(env)
    fleets = Fleets(scale)
    watcher = env.observer("#")
    traffic = Traffic(broker.port, fleets).keep(fleets.retained())
    watcher.fence()
    with traffic:
        r = discover(broker.port, "--for", "6s")
        assert r.returncode == 0, r
    names = groups_of(r.stdout)
    for preset in ("tasmota", "shelly", "shelly2", "zigbee2mqtt", "esphome"):
        assert preset in names, r.stdout
    assert len(names) == 8, r.stdout
    assert "goodbyes on ../LWT Offline" in r.stdout and "goodbye = plant/meters/{id}/lwt offline" in r.stdout
    assert "id = {site}/{id}" in r.stdout and "field = rssi net.rssi" in r.stdout
    assert "rights (ACL)" in r.stdout
    check_devices(env, r.stdout, Traffic(broker.port, fleets), fleets.ids)
    # of all topics that were ever published, none came from discover
    published = {t for t, _ in fleets.retained()} | {t for t, _ in fleets.round(0)}
    strange = {m.topic for m in watcher.messages} - published
    assert not {t for t in strange if "discover" in t or t.startswith("hw")} - {t for t in strange if "fence" in t}, strange


class Sites:
    """Lamps at four sites; no id occurs twice."""

    topics = {"acme/sites/site-%d/lamp-%d" % (k % 4, k) for k in range(40)}
    ids = {t.rsplit("/", 1)[1] for t in topics}

    def round(self, n):
        return [(t + "/state", '{"n":%d}' % n) for t in self.topics]


def test_sites_are_labels(env):
    """heartwheeld takes the labels that discover writes, and the devices have them."""
    broker = own_broker(env)
    traffic = Traffic(broker.port, Sites()).keep((t + "/lwt", "online") for t in Sites.topics)
    with traffic:
        r = discover(broker.port, "--for", "4s")
    assert "heartbeat = acme/sites/{site}/{id}/state\ngoodbye = acme/sites/{site}/{id}/lwt offline\nlabel = site {site}\n" in r.stdout, r
    d = check_devices(env, r.stdout, Traffic(broker.port, Sites()), Sites.ids)
    listed = d.ctl("list", "--names", "--label", "site=site-1").stdout.split()
    assert set(listed) == {"lamp-%d" % k for k in range(1, 40, 4)}


@pytest.mark.parametrize("n", [1, 2])
def test_messages_with_too_many_properties(env, n):
    """discover leaves them out, and reports their number and a topic."""
    broker = own_broker(env)
    traffic = Traffic(broker.port, Sites())
    stranger = env.client()
    for k in range(n):
        stranger.publish("long/%d/state" % k, b"x", 1, True, properties=user_properties(700))
    with traffic:
        r = discover(broker.port, "--for", "3s")
    assert r.returncode == 0 and "long/" not in r.stdout, r
    text = "%d message%s left out, because the MQTT 5 properties are longer than 128 KiB; the last one is on topic 'long/%d/state'"
    assert text % (n, " was" if n == 1 else "s were", n - 1) in r.stderr, r


def test_flagged_esphome(env):
    """ESPHome publishes its states with the retain flag."""
    broker = own_broker(env)
    fleets = Fleets(3)
    traffic = RawMqtt(broker.port)
    for d in fleets.nodes:
        traffic.publish((d + "/status", "online"), retain=True)
    ends = threading.Event()

    def run():
        while not ends.wait(0.7):
            traffic.publish(*[(d + "/sensor/t/state", "1") for d in fleets.nodes], retain=True)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        r = discover(broker.port, "--for", "5s")
    finally:
        ends.set()
        thread.join()
    assert "3 devices like esp-" in r.stdout and "preset = esphome" in r.stdout, r


@pytest.mark.parametrize("adapter", [AedesBroker, RabbitMq], ids=lambda a: a.name)
def test_other_brokers(env, adapter):
    if adapter.missing():
        pytest.skip(adapter.missing())
    broker = adapter(env.own_dir("broker"))
    env.servers.append(broker)
    broker.start()
    env.broker = broker
    fleets = Fleets(12)
    traffic = Traffic(broker.port, fleets).keep(fleets.retained())
    with traffic:
        r = discover(broker.port, "--for", "6s")
    assert r.returncode == 0, r
    check_devices(env, r.stdout, Traffic(broker.port, fleets), fleets.ids, protocol="3.1.1")


def test_password_and_tls(env, tls):
    broker = own_broker(env, users={"looker": "se cret"}, tls=tls)
    secret = env.dir / "secret"
    secret.write_text("se cret\n")
    ca = ["--tls-ca", tls.ca]
    good = [*ca, "--user", "looker", "--password-file", secret, "--for", "2s"]
    ends = threading.Event()
    c = env.client(username="looker", password="se cret", tls=tls)

    def run():
        while not ends.wait(0.2):
            for i in range(5):
                c.publish("a/dev-%d/up" % i, "x")
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        r = discover(broker.port, *good)
        assert r.returncode == 0 and "[group a]" in r.stdout and "as user looker" in r.stdout, r
        conf = env.dir / "mqtt.conf"
        conf.write_text("[mqtt]\nhost = 127.0.0.1\nport = %d\nusername = looker\npassword_file = %s\ntls_ca = %s\n"
                        % (broker.port, secret, tls.ca))
        r = subprocess.run([str(HEARTWHEELCTL), "-c", str(conf), "discover", "--for", "2s"], capture_output=True, text=True)
        assert r.returncode == 0 and "[group a]" in r.stdout, r
    finally:
        ends.set()
        thread.join()
    secret.write_text("wrong\n")
    r = discover(broker.port, *good)
    assert r.returncode == 1 and "heartwheelctl: " in r.stderr and not r.stdout, r
    r = discover(broker.port, *ca, "--user", "looker", "--password-file", env.dir / "nowhere")
    assert r.returncode == 1 and "nowhere" in r.stderr, r
    r = discover(broker.port, "--for", "2s")
    assert r.returncode == 1 and not r.stdout, r


def test_rights(env):
    """mosquitto grants what its ACL denies, and delivers nothing."""
    broker = own_broker(env, users={"looker": "x", "fleet": "y"}, acl="user looker\ntopic read open/#\nuser fleet\ntopic readwrite #\n")
    secret = env.dir / "secret"
    secret.write_text("x\n")
    fleets = type("F", (), {"round": lambda self, n: [(p + "/dev-%d/up" % i, "x") for i in range(4) for p in ("open", "closed")]})()
    with Traffic(broker.port, fleets, every=0.3, username="fleet", password="y"):
        r = discover(broker.port, "--user", "looker", "--password-file", secret, "--for", "2s")
        assert groups_of(r.stdout) == ["open"], r
        r = discover(broker.port, "--user", "looker", "--password-file", secret, "--for", "7s", "--filter", "closed/#",
                     "--filter", "open/#")
        assert "# Nothing came on: closed/#." in r.stdout and groups_of(r.stdout) == ["open"], r
        r = discover(broker.port, "--user", "looker", "--password-file", secret, "--for", "6s", "--filter", "closed/#")
        assert r.returncode == 1 and "no message for 5 s yet" in r.stderr and "no group was found" in r.stderr, r


class Refusing:
    """A relay to a broker that treats a SUBSCRIBE to `#` as EMQX or a strict broker does: `refuse` answers 0x80, `close`
    closes the connection."""

    def __init__(self, port, how):
        self.port_of_broker, self.how = port, how
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sent, self.ends = b"", False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        server = socket.create_connection(("127.0.0.1", self.port_of_broker))
        threading.Thread(target=self.pump, args=(server, client), daemon=True).start()
        buffered = b""
        try:
            while data := client.recv(65536):
                self.sent += data
                buffered += data
                while len(buffered) >= 2 and len(buffered) >= 2 + buffered[1]:  # short packets alone
                    packet, buffered = buffered[:2 + buffered[1]], buffered[2 + buffered[1]:]
                    if packet[0] == 0x82 and b"\0\x01#" in packet:
                        if self.how == "close":
                            client.shutdown(socket.SHUT_RDWR)
                            return
                        client.sendall(bytes([0x90, 4]) + packet[2:4] + b"\0\x87")
                    else:
                        server.sendall(packet)
        except OSError:
            pass
        finally:
            server.close()

    @staticmethod
    def pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        try:
            sink.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


@pytest.mark.parametrize("how", ["refuse", "close"])
def test_everything_is_refused(env, how):
    broker = own_broker(env)
    fleets = Fleets(5)
    relay = Refusing(broker.port, how)
    with Traffic(broker.port, fleets).keep(fleets.retained()):
        r = discover(relay.port, "--for", "6s")
    assert r.returncode == 0 and "# The broker refuses '#': topics of 1 to 10 levels were read instead." in r.stdout, r
    assert "# Nothing came on: " in r.stdout and "+/+/+/+/+/+/+" in r.stdout
    check_devices(env, r.stdout, Traffic(broker.port, fleets), fleets.ids)


def test_broker_goes_away(env):
    broker = own_broker(env)
    fleets = Fleets(5)
    with Traffic(broker.port, fleets, every=0.5):
        p = subprocess.Popen(command(broker.port, "--for", "60s"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        broker.kill()
        out, err = p.communicate(timeout=20)
    assert p.returncode == 0 and "# The connection was lost after " in out and "heartwheelctl: " in err, (out, err)
    assert "tasmota" in groups_of(out), out
    check_conf(env, out)
    r = discover(broker.port, "--for", "2s")
    assert r.returncode == 1 and not r.stdout and r.stderr.startswith("heartwheelctl: "), r


def test_interrupt(env):
    broker = own_broker(env)
    fleets = Fleets(4)
    with Traffic(broker.port, fleets, every=0.5):
        p = subprocess.Popen(command(broker.port, "--for", "1h"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=20)
    assert p.returncode == 0 and "tasmota" in groups_of(out), (out, err)


def test_file(env):
    broker = own_broker(env)
    fleets = Fleets(4)
    path = env.dir / "found.conf"
    with Traffic(broker.port, fleets, every=0.5):
        r = discover(broker.port, "--for", "2s", "--write", path)
        assert r.returncode == 0 and "groups" in r.stdout, r
        first = path.read_text()
        assert oct(path.stat().st_mode & 0o777) == oct(0o644 & ~umask())
        began = time.monotonic()
        r = discover(broker.port, "--for", "20s", "--write", path)
        assert r.returncode == 1 and "exists" in r.stderr and time.monotonic() - began < 5, r
        assert path.read_text() == first
        path.write_text("old")
        r = discover(broker.port, "--for", "2s", "--write", path, "--force")
        assert r.returncode == 0 and "[group tasmota]" in path.read_text(), r
        assert [p.name for p in env.dir.iterdir() if p.name.startswith("found")] == ["found.conf"]
        r = discover(broker.port, "--for", "2s", "--write", env.dir / "no" / "dir")
        assert r.returncode == 1 and "cannot write" in r.stderr and "tasmota" in groups_of(r.stdout), r
    check_conf(env, path.read_text())
    r = discover(broker.port, "--for", "1s", "--write", env.dir / "none")
    assert r.returncode == 1 and "no group was found" in r.stderr and not (env.dir / "none").exists(), r
    assert "# No group was found" in r.stdout, r


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("args", [["--for", "0"], ["--for", "x"], ["--for", "25h"], ["--broker", ""], ["--broker", "a:0"],
                                  ["--broker", "a:x"], ["--broker", ":1"], ["--broker", "[::1"], ["--filter", ""], ["--filter", "a/#/b"],
                                  ["--force"], ["--write", ""], ["extra"], ["--json"]], ids=" ".join)
def test_usage(args):
    r = subprocess.run([str(HEARTWHEELCTL), "discover", *args], capture_output=True, text=True, timeout=20)
    assert r.returncode == 2 and "usage: heartwheelctl" in r.stderr and not r.stdout, r


def test_file_that_cannot_be_read(env):
    """Only without the file is the broker 127.0.0.1."""
    conf = env.dir / "is a file"
    conf.write_text("")
    r = subprocess.run([str(HEARTWHEELCTL), "-c", str(conf / "monitor.conf"), "discover", "--for", "1s"],
                       capture_output=True, text=True, timeout=20)
    assert r.returncode == 1 and "Not a directory" in r.stderr and "give the broker with --broker" in r.stderr, r


def test_hostile_topics(env):
    """Topics as a client may send them that does not care: nothing of them becomes a line of the file."""
    broker = own_broker(env)
    names = [b"\x7f", "\u0085x".encode(), b"a]b", b"c ;d", b"; e", b" f ", b"{id}", b"[group x]", b"g=h", b"i%n", b"j\\k", b"'\"",
             "\u202erev".encode(), "caf\u00e9".encode(), b"x" * 300, b"a/" * 40, b""]

    class Hostile:
        @staticmethod
        def round(n):
            for name in names:
                for i in range(3):
                    yield name + b"/dev-%d/up" % i, "x"
                    yield b"fine/" + name + b"%d/up" % i, '{"a b":{"rssi":-1},"c]\\n":{"ip":"1.2.3.4"}}'
            for i in range(3):
                yield b"long/" + b"y" * 60000 + b"%d/up" % i, "x"

        def publish(self, port):
            for topic, payload in self.round(0):
                try:
                    RawMqtt(port).publish((topic, payload))
                except (OSError, AssertionError):
                    pass
    p = subprocess.Popen(command(broker.port, "--for", "4s"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    Hostile().publish(broker.port)
    out, err = p.communicate(timeout=30)
    text = out.decode()
    assert p.returncode == 0 and "heartbeat = fine/{id}/up" in text, (text, err)
    assert not [c for c in text if ord(c) < 32 and c != "\n" or ord(c) in (0x7f, 0x85, 0x202e)], text
    assert "x" not in groups_of(text)
    check_conf(env, text)


def test_start_is_quick():
    """Linking libmosquitto costs nothing that one would notice."""
    def least(*args):
        times = []
        for _ in range(10):
            began = time.monotonic()
            subprocess.run([str(HEARTWHEELCTL), *args], capture_output=True)
            times.append(time.monotonic() - began)
        return min(times)
    assert least("--version") < 0.1
