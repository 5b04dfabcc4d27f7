# SPDX-License-Identifier: MIT
"""Brokers that refuse what the monitor sends, that come and go, or that have no shared subscriptions: the monitor is blind with
its cause and a line that says what to do, calls no online device offline, and finds deaths where that is possible."""
import os
import re
import shutil
import signal
import socket
import threading
import time

import paho.mqtt.client as paho
import pytest

from hw_mqtt import Beating, user_properties
from hw_relay import Relay
from hw_wait import in_time, throughout, wait_until

HASTY = {"barrier_timeout": "1s", "barrier_slow": "100ms", "reconnect_grace": "0"}
QUIET = {"log_level": "warning"}


def pytest_generate_tests(metafunc):
    """HW_ROUNDS=N runs each case N times: tests/tools/rounds.sh counts them."""
    rounds = int(os.environ.get("HW_ROUNDS", "0"))
    if rounds:
        metafunc.fixturenames.append("round_number")
        metafunc.parametrize("round_number", range(rounds))


def connects(env):
    return len(re.findall("New client connected .* as heartwheel-", env.broker.log()))


def lines(d, pattern):
    return [l for l in d.log().splitlines() if re.search(pattern, l)]


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
@pytest.mark.parametrize("setting,said", [
    ("retain_available false", "keeps no retained messages"),
    ("max_qos 0", "accepts QoS 0 only"),
    ("max_packet_size 100", "refuses this monitor's last will"),
])
def test_what_the_broker_does_not_take(env, setting, said, protocol):
    """The deaths are found, in Redis at least; one warning is logged; the connection stays."""
    env.own_broker(settings=[setting])
    d = env.daemon(timeout="1s", monitor=QUIET, mqtt={"protocol": protocol, **HASTY})
    with env.beating(["lives"], 0.2):
        env.beat("dies")
        env.wait_store("dies", "offline")
        wait_until(lambda: lines(d, said), 5, "a line that says %r" % said)
        start = connects(env)
        throughout(lambda: d.state("lives") == "online", 2)
        throughout(lambda: d.status()["blind_cause"] not in ("link", "barrier"), 1)  # it may stand still on a busy machine
        env.beat("dies")
        env.wait_store("dies", "online")
        env.wait_store("dies", "offline")
    assert len(lines(d, said)) == 1, d.log()
    assert connects(env) == start <= 12, "it is thrown out again and again"


def test_a_canary_that_is_too_large(env):
    """The log names the broker's limit, and no missing right."""
    env.own_broker(settings=["max_packet_size 100"])
    d = env.daemon(timeout="1s", group={"heartbeat": "%s/%s/{id}/heartbeat" % (env.root, "x" * 40)},
                   mqtt={"protocol": "5", **HASTY})
    wait_until(lambda: lines(d, "the broker does not accept this monitor's canary on .*max_packet_size"), 10, "a line that tells the limit")
    assert not lines(d, "group 'default': .* to write"), d.log()
    d.stop()


@pytest.mark.parametrize("qos", [0, 1])
def test_a_message_with_too_many_properties(env, qos):
    """A stranger's message of MQTT 5 has more properties than the monitor's socket holds, and is retained on a topic whose
    retained messages the monitor reads at each connect. Only this message is lost; the line names its topic and length."""
    env.own_broker()
    topic = env.status_topic("stranger")
    stranger = env.client()
    stranger.publish(topic, b"x", 1, True, properties=user_properties(1400))
    d = env.daemon(timeout="2s", mqtt={"qos": qos}, store={"type": "memory"}, monitor={"stall_after": "60s"})
    refused = lambda: d.metrics().get("refused_total", kind="properties")
    with env.beating(["lives"], 0.2):
        env.beat("dies")
        found = wait_until(lambda: lines(d, r"refused 1 message \(properties\): a retained message of 288\d\d\d bytes on topic '%s'" % topic),
                           10, "a line about the message")
        assert len(found) == 1 and "publish an empty retained message there" in found[0], d.log()
        n = 30 if qos else 3  # with QoS 1 more than the broker sends without an acknowledgement
        for _ in range(n):
            stranger.publish(env.topic("other"), b"x", qos, properties=user_properties(700))
        wait_until(lambda: refused() == n + 1, what="all of them to be refused")
        wait_until(lambda: d.state("dies") == "offline", what="the death to be found")
        assert d.state("lives") == "online" and d.state("other") is None
    assert not lines(d, "violates|connection .*(closed|lost)"), d.log()
    wait_until(lambda: lines(d, r"on topic '%s' .* its sender must send fewer" % env.topic("other")), 15, "a line about the others")
    if qos:
        return
    long = env.topic("ü" * 100)
    stranger.publish(long, b"x", 0, properties=user_properties(700))
    cut = long.encode()[:124].decode(errors="ignore")
    wait_until(lambda: lines(d, "on topic '%s[.]{3}' was discarded" % cut), 15, "a line that cuts the topic, and shows this")


def test_statuses_without_retain_and_qos(env):
    """The statuses reach subscribers, and none is pending in the end."""
    env.own_broker(settings=["retain_available false", "max_qos 0"])
    observer = env.observer()
    d = env.daemon(timeout="1s", monitor=QUIET, mqtt=HASTY)
    env.beat("x")
    env.wait_status(observer, "x", True)
    env.wait_status(observer, "x", False)
    wait_until(lambda: d.status()["owed"] == 0, 5, "nothing to be owed")
    wait_until(lambda: env.published() > int(env.hash("x")["seq"]), what="Redis to have P")


def only_readers(env):
    """A broker that admits the readers and a client with a reader's name, but not the publisher."""
    return ["clientid_prefixes heartwheel-%s-r" % env.node]


def reader_like(env):
    env._publisher = env.client(client_id="heartwheel-%s-r-test" % env.node)


def restart(env, settings=()):
    before = env._publisher.connects
    env.broker.stop()
    env.broker.settings = list(settings)
    env.broker.start()
    wait_until(lambda: env._publisher.connects > before, 10, "the devices to be connected again")


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_without_a_publisher(env, protocol):
    """The publisher is refused from the start: the monitor is blind with its cause and one line; the deaths are found once the
    publisher is admitted."""
    env.own_broker(settings=only_readers(env))
    reader_like(env)
    # The device's client takes a second to come back after the broker, which is its timeout.
    d = env.daemon(seeing=False, timeout="1s", monitor=QUIET, mqtt={"protocol": protocol, **HASTY, "reconnect_grace": "3s"})
    with env.beating(["lives"], 0.2):
        wait_until(lambda: env.beat("dies") and d.state("dies") == "online", 10, "the reader to be subscribed", interval=0.1)
        wait_until(lambda: d.status()["blind_cause"] == "barrier", 15, "blind: barrier")
        throughout(lambda: d.status()["blind_cause"] == "barrier" and d.state("dies") != "offline", 3)
        said = lines(d, r"blind \(barrier\): cannot publish")
        assert len(said) == 1 and "-bar" in said[0], d.log()
        assert connects(env) == 2, "the reader is connected anew"  # and who is called like one
        restart(env)
        d.wait_seeing(10)
        env.wait_store("dies", "offline")
        throughout(lambda: d.state("lives") == "online", 1.5)
        restart(env, only_readers(env))  # and while it runs
        env.beat("dies")
        wait_until(lambda: d.status()["blind_cause"] == "barrier", 15, "blind: barrier")
        throughout(lambda: d.status()["blind_cause"] == "barrier" and d.state("lives") == "online", 2)
        restart(env)
        d.wait_seeing(10)
        env.wait_store("dies", "offline")
        throughout(lambda: d.state("lives") == "online", 1.5)
    assert [e for e in env.edges("lives")] == [("online", "heartbeat")]


def test_without_its_barriers(env):
    """All other connections are admitted: the monitor is blind, and the log and the status name the refused client id and the
    reason."""
    way = Relay(lambda: env.broker.port)
    way.refused = b"-bar"
    bar = "heartwheel-%s-bar" % env.node
    d = env.daemon(seeing=False, timeout="1s", monitor=QUIET, mqtt={"port": way.port, **HASTY})
    with env.beating(["lives"], 0.2):
        wait_until(lambda: env.beat("dies") and d.state("dies") == "online", 10, "the reader to be subscribed", interval=0.1)
        wait_until(lambda: d.status()["blind_cause"] == "barrier", 15, "blind: barrier")
        throughout(lambda: d.state("dies") == "online", 3)
        said = lines(d, r"blind \(barrier\): cannot publish")
        assert len(said) == 1 and bar in said[0] and "closed" in said[0], d.log()
        shown = d.ctl("status").stdout
        assert bar in d.status()["mqtt"] and bar in shown and d.metrics().get("link_up", link="barriers") == 0, shown
        way.refused = None
        d.wait_seeing(10)
        env.wait_store("dies", "offline")
        assert d.status()["mqtt"] == "up" and d.state("lives") == "online"
    way.close()


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_broker_that_restarts_every_few_seconds(env, protocol):
    """The monitor sees again within three seconds each time, and the log never names a rival client."""
    env.own_broker()
    d = env.daemon(timeout="2s", mqtt={"protocol": protocol, **HASTY, "barrier_timeout": "5s"})
    slowest = 0.0
    for _ in range(6):
        env.broker.stop()
        wait_until(lambda: d.status()["mqtt"] != "up", 5, "the loss to be noticed")
        env.broker.start()
        back = time.monotonic()
        wait_until(lambda: d.status()["mqtt"] == "up", what="the monitor to be connected again")
        slowest = max(slowest, time.monotonic() - back)
        throughout(lambda: d.status()["mqtt"] == "up", 0.5)
    assert not lines(d, "another client"), d.log()
    in_time(slowest, 3, "until the monitor was connected again")


@pytest.mark.parametrize("protocol,which", [("5", "r0"), ("3.1.1", "r0"), ("5", "bar"), ("5", "pub")])
def test_a_rival_is_told_of(env, protocol, which):
    """Another client with the same id connects again as soon as it is disconnected: the log reports it."""
    env.own_broker()
    d = env.daemon(monitor=QUIET, mqtt={"protocol": protocol, **HASTY})
    rival = env.client(client_id="heartwheel-%s-%s" % (env.node, which))
    wait_until(lambda: lines(d, "another client (has )?connected as .*-%s" % which), 20, "a line about it")
    start = connects(env)
    throughout(lambda: d.alive, 2)
    assert connects(env) - start <= 8, "they fight on"
    rival.close()
    d.wait_seeing(90)


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_broker_that_closes_the_connection_on_a_canary(env, protocol):
    """aedes and RabbitMQ close the connection if the right to write the topic is missing: this must not blind the monitor
    because of two groups, and the log accuses no other client."""
    way = Relay(lambda: env.broker.port)
    way.refused = b"heartwheel-%s/denied" % env.node.encode()
    topic = {"a": "%s/a/%%s/hb" % env.root, "b": "%s/b/%%s/denied" % env.root, "c": "%s/c/%%s/denied" % env.root}
    groups = [(g, {"heartbeat": t % "{id}", "status": "%s/%s/{id}/status" % (env.root, g), "timeout": "1s"}) for g, t in topic.items()]
    d = env.daemon(groups=groups, seeing=False, monitor=QUIET, mqtt={"port": way.port, "protocol": protocol, **HASTY})
    client = env.client()
    with Beating(client, [t % ("alive-" + g) for g, t in topic.items()], 0.2):
        d.wait_seeing(20)
        client.publish(topic["a"] % "dead-a", b"")
        wait_until(lambda: d.state("dead-a") == "offline", 10, "a death in the other group to be found")
        for g in "bc":
            wait_until(lambda: lines(d, "group '%s'.*the broker refuses .*: allow .* to write" % g), 20, "a line that names the right")
            client.publish(topic[g] % ("dead-" + g), b"")
            wait_until(lambda: d.state("dead-" + g) == "offline", 10, "a death in group %s to be found, too" % g)
        throughout(lambda: d.status()["blind"] is False, 3, "sight")
        assert [d.state("alive-" + g) for g in topic] == ["online"] * 3
    assert lines(d, "closes the connection when this monitor publishes on %s" % re.escape(env.root)), d.log()
    assert not lines(d, "another client"), d.log()
    way.close()


# --- several readers

TWO = {"readers": 2, **HASTY}


def says_one_reader(d):
    return [l for l in lines(d, "readers = 1") if "error" in l]


@pytest.mark.parametrize("protocol,qos", [("5", 0), ("5", 1), ("3.1.1", 0), ("3.1.1", 1)])
def test_shared_subscriptions_are_proven(env, protocol, qos):
    """The subscriptions are proven at once, and again after a restart of the broker; each heartbeat counts once."""
    env.own_broker()
    d = env.daemon(timeout="1s", monitor=QUIET, mqtt={"protocol": protocol, "qos": qos, **TWO})
    for _ in range(2):
        with env.beating(["lives"], 0.2):
            env.beat("dies")
            env.wait_store("dies", "offline")
            assert d.state("lives") == "online" and d.status()["mqtt"] == "up"
        env.broker.stop()
        d.wait_lost()
        before = env._publisher.connects
        env.broker.start()
        d.wait_seeing(10)
        wait_until(lambda: env._publisher.connects > before, 10, "the devices to be connected again")
    assert not says_one_reader(d), d.log()


def test_a_stranger_gets_no_share_of_the_heartbeats(env):
    """Neither by the node's name nor by the names of the readers' clients. All of 200 devices are known, so no heartbeat went
    to the stranger."""
    d = env.daemon(mqtt=TWO)
    stranger = env.observer(*("$share/%s/%s/+/heartbeat" % (group, env.root) for group in (
        "heartwheel-%s" % env.node, "heartwheel", "heartwheel-%s-r0" % env.node)))
    env.beat("first")
    env.wait_store("first", "online")
    for n in range(200):
        env.beat("d%d" % n)
    wait_until(lambda: d.status()["heartbeats_total"] == 201, 10, "each heartbeat to be read")
    assert len(stranger.messages) > 0, "the stranger's own groups bring nothing"


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_shared_message_that_reaches_nobody(env, protocol):
    """As on a broker that grants "$share/..." as a plain topic: the monitor is blind, logs one line and calls no device
    offline; it sees again once the message arrives."""
    acl = "topic readwrite #\n"
    env.own_broker(acl="topic readwrite nodes/#\ntopic readwrite heartwheel/+/barrier\ntopic readwrite heartwheel/+/status\n"
                   "topic readwrite t/#\ntopic readwrite +/+/heartbeat\ntopic readwrite +/+/status\n")
    d = env.daemon(seeing=False, timeout="1s", monitor=QUIET, mqtt={"protocol": protocol, **TWO})
    with env.beating(["lives"], 0.2):
        wait_until(lambda: says_one_reader(d), 10, "a line that says readers = 1")
        throughout(lambda: d.status()["blind_cause"] == "link" and d.state("lives") != "offline", 3)
        assert len(says_one_reader(d)) == 1 and "reached none" in d.log(), d.log()
        assert "readers = 1" in d.status()["mqtt"]
        (env.broker.dir / "acl").write_text(acl)
        env.broker.signal(signal.SIGHUP)
        d.wait_seeing(15)
        env.beat("dies")
        env.wait_store("dies", "offline")
        assert d.state("lives") == "online"


def test_a_shared_message_that_comes_twice(env):
    """As on a broker that gives each reader a copy. Here another client repeats the monitor's message; barriers are denied, so
    that the monitor waits for them before it believes the first copy."""
    topic = "heartwheel/%s/share" % env.node
    env.own_broker(acl="topic deny heartwheel/%s/barrier\ntopic readwrite #\n" % env.node)
    said = set()

    def say_again(client, userdata, message):
        if message.payload not in said:
            said.add(message.payload)
            client.publish(topic, message.payload)
    echo = env.client()
    echo.client.on_message = say_again
    echo.subscribe(topic)
    d = env.daemon(seeing=False, timeout="1s", monitor=QUIET, mqtt={"readers": 2, "barrier_timeout": "5s"})
    wait_until(lambda: says_one_reader(d), 20, "a line that says readers = 1")
    assert "reached more than one of the 2 readers" in d.log(), d.log()
    assert d.status()["blind_cause"] == "link" and "readers = 1" in d.status()["mqtt"]


class Rewriter(threading.Thread):
    """A proxy before a broker: it changes the broker's CONNACKs of MQTT 5 to say that there are no shared subscriptions."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.broker_port, self.listener = port, socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            client = self.listener.accept()[0]
            server = socket.create_connection(("127.0.0.1", self.broker_port))
            threading.Thread(target=self.pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, True), daemon=True).start()

    def pump(self, source, to, rewrite):
        try:
            while data := source.recv(65536):
                if rewrite and data[0] == 0x20:  # CONNACK: type, length, flags, reason, length of the properties
                    data = bytes([0x20, data[1] + 2, *data[2:4], data[4] + 2]) + data[5:] + bytes([0x2a, 0])
                rewrite = False
                to.sendall(data)
        except OSError:
            pass
        for s in (source, to):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def test_a_broker_that_says_it_has_no_shared_subscriptions(env):
    env.own_broker()
    relay = Rewriter(env.broker.port)
    d = env.daemon(seeing=False, timeout="1s", monitor=QUIET, mqtt={"port": relay.port, **TWO})
    wait_until(lambda: says_one_reader(d), 10, "a line that says readers = 1")
    assert "has no shared subscriptions" in d.log()
    throughout(lambda: d.status()["blind_cause"] == "link", 3)
    assert len(says_one_reader(d)) == 1, d.log()
    assert "readers = 1" in d.status()["mqtt"]
    assert connects(env) <= 10, "it hammers the broker"


@pytest.fixture
def aedes(env):
    """A broker that grants "$share/..." as a plain topic."""
    modules = os.environ.get("HW_NODE")
    if not modules or not shutil.which("node"):
        pytest.skip("HW_NODE does not name a directory with aedes")
    script = env.dir / "aedes.cjs"
    script.write_text("const {createRequire} = require('module');\n"
                      "const r = createRequire(process.argv[2] + '/x.js'), m = r('aedes');\n"
                      "(async () => { const a = m.Aedes && m.Aedes.createBroker ? await m.Aedes.createBroker() : m();\n"
                      "require('net').createServer(a.handle).listen(+process.argv[3], '127.0.0.1'); })();\n")
    env.own_broker(start=False)
    env.broker.launch = lambda: env.broker.spawn(["node", script, modules, env.broker.port])
    env.broker.start()
    return env


def test_a_broker_without_shared_subscriptions(aedes):
    env = aedes
    env._publisher = env.client(protocol=paho.MQTTv311)
    d = env.daemon(seeing=False, timeout="1s", monitor=QUIET, mqtt={"protocol": "3.1.1", **TWO})
    with env.beating(["lives"], 0.2):
        wait_until(lambda: says_one_reader(d), 10, "a line that says readers = 1")
        throughout(lambda: d.status()["blind_cause"] == "link" and d.state("lives") != "offline", 4)
        assert len(says_one_reader(d)) == 1, d.log()
    d.stop()
    d = env.daemon(timeout="1s", monitor=QUIET, mqtt={"protocol": "3.1.1", **HASTY})
    with env.beating(["lives"], 0.2):
        env.beat("dies")
        env.wait_store("dies", "offline")
        assert d.state("lives") == "online"


@pytest.mark.parametrize("junk", [b"", b"\x12\x00"])
def test_a_broker_that_was_one_a_moment_ago(env, junk):
    """A broker that starts or is full is not questioned: the log does not ask whether it is a broker at all."""
    env.own_broker()
    d = env.daemon(timeout="1h", mqtt={"protocol": "3.1.1", **HASTY})
    port = env.broker.port
    env.broker.kill()
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", port))
        s.listen()
        stop, closed = threading.Event(), []

        def close_all():
            s.settimeout(0.2)
            while not stop.is_set():
                try:
                    c = s.accept()[0]
                    if junk:
                        c.recv(4096)
                        c.sendall(junk)
                    c.close()
                    closed.append(c)
                except OSError:
                    pass

        t = threading.Thread(target=close_all, daemon=True)
        t.start()
        try:
            wait_until(lambda: lines(d, "it has answered before"), 10, "a line that knows it")
            wait_until(lambda: len(closed) > 8, 20, "each connection to have met this broker")
        finally:
            stop.set()
            t.join()
    assert not lines(d, "is it an MQTT broker") and not lines(d, "TLS"), d.log()
    env.broker.start()
    d.wait_seeing()
