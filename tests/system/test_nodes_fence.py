# SPDX-License-Identifier: MIT
"""Several nodes at the broker: whatever statuses an old owner still has under way when another node takes over, no status with
its smaller fencing token is retained afterwards. Also: how a missing right is reported."""
import binascii
import json
import os
import re
import signal
import socket
import threading

import pytest

from hw_daemon import Daemon, render
from hw_mqtt import RawMqtt
from hw_wait import throughout, wait_until
from test_acl import MOSQUITTO_ACL, secret, set_acl

LEASE = 1.0
DEVICES = ["d%d" % k for k in range(40)]
OLD, NEW = "old", "new"


def partition(device):
    return binascii.crc_hqx(device.encode(), 0) % 16384 // 64


class Way:
    """A node's link to the broker. From the first bytes with `word` on, all that the node sends waits here until it is
    released, or for ever if the broker has closed its end."""

    def __init__(self, port):
        self.port_of_broker = port
        self.word, self.let_go, self.caught = None, threading.Event(), threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.port_of_broker))
            for s in near, far:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for ends in ((near, far, True), (far, near, False)):
                threading.Thread(target=self.pump, args=ends, daemon=True).start()

    def pump(self, source, sink, is_said):
        try:
            while data := source.recv(65536):
                if is_said and self.word and self.word.search(data):
                    self.caught.set()
                    self.let_go.wait()
                sink.sendall(data)
        except OSError:
            pass
        for s in source, sink:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.let_go.set()
        self.listener.close()


def node(env, name, mqtt=None, **options):
    directory = env.own_dir("hw")
    sections = env.sections(timeout="1s", directory=directory, monitor={"node_id": name, "log_level": "debug"},
                            mqtt={"keepalive": "5s", **(mqtt or {})}, **options)
    sections.append(("cluster", {"mode": "mirror", "lease": "%ds" % LEASE}))
    d = Daemon(directory, render(sections), name, directory / "control.sock", directory / "heartwheeld.pid")
    env.daemons.append(d)
    return d


def owners(env):
    return {int(p): r.split(" ")[1] for p, r in env.redis.hgetall(env.key("owners")).items() if len(r.split(" ")) == 2}


def owned_by(env, name):
    who = owners(env)
    return [d for d in DEVICES if who.get(partition(d)) == name]


def wait_owned(env, names):
    wait_until(lambda: len(owners(env)) == 256 and set(owners(env).values()) == set(names), what="%s to own all" % names)


def retained(env, devices):
    """{device: (epoch, seq, online)} of the retained statuses that exist."""
    found = env.retained(env.root + "/+/status")
    said = {d: found[env.status_topic(d)].json() for d in devices if env.status_topic(d) in found}
    return {d: (j["epoch"], j["seq"], j["online"]) for d, j in said.items()}


def stored(env, devices):
    """The same from Redis."""
    hashes = {d: env.hash(d) for d in devices}
    return {d: (int(h["epoch"]), int(h["seq"]), h["state"] == "online") for d, h in hashes.items() if h}


def agrees(env, devices):
    """A status that is published again has the epoch of its publisher; the stored record has the epoch of its writer."""
    told, written = retained(env, devices), stored(env, devices)
    return len(told) == len(written) == len(devices) and all(
        told[d][1:] == written[d][1:] and told[d][0] >= written[d][0] for d in devices)


def newest(observer, env, device):
    """(epoch, seq) of all live statuses of a device, in order."""
    said = [m.json() for m in observer.on(env.status_topic(device)) if m.payload and not m.retain]
    return [(j["epoch"], j["seq"]) for j in said if isinstance(j, dict) and "epoch" in j]


@pytest.fixture
def pair(env):
    """The two nodes, the old one with a link of its own, and an observer; each node owns some partitions."""
    env.own_broker()
    env.own_redis()
    way = Way(env.broker.port)

    def start(protocol="5", qos=0, **mqtt):
        observer = env.observer()
        old = node(env, OLD, {"port": way.port, "protocol": protocol, "qos": qos, **mqtt}).start()
        new = node(env, NEW, {"protocol": protocol, "qos": qos, **mqtt}).start()
        wait_owned(env, {OLD, NEW})
        return observer, old, new
    yield way, start
    way.close()


@pytest.mark.parametrize("protocol,qos,readers,fate", [("5", 0, 1, "stopped"), ("3.1.1", 1, 2, "stopped"),
                                                       ("5", 1, 1, "alive")])
def test_what_an_old_owner_has_under_way(env, pair, protocol, qos, readers, fate):
    """The statuses of the old owner wait on their way to the broker when it loses their partitions; the new owner's statuses
    are published; then the waiting ones are released. Stopped: the old owner resumes afterwards. Alive: it cannot reach Redis,
    and does not know that it lost them."""
    way, start = pair
    observer, old, new = start(protocol, qos, readers=readers)
    with env.beating(DEVICES):
        wait_until(lambda: agrees(env, DEVICES), what="everybody to be told online")
        wait_until(lambda: list(owners(env).values()).count(OLD) < 160, what="the new node to own its share")
        theirs = owned_by(env, OLD)
    assert len(theirs) > 5 and len(theirs) < len(DEVICES) - 5
    way.word = re.compile(rb"/status.*\"online\":false,\"reason\":\"timeout\"", re.S)
    wait_until(way.caught.is_set, what="the old owner's statuses of who fell silent")
    old.signal(signal.SIGSTOP)
    before = {d: mark for d, mark in stored(env, theirs).items() if not mark[2]}
    assert before, "it publishes what Redis has"
    wait_until(lambda: set(owners(env).values()) == {NEW}, what="the new owner")
    with env.beating(DEVICES):
        def are_told():
            after = retained(env, before)
            return agrees(env, DEVICES) and all(after[d][0] > before[d][0] and after[d][2] for d in before)
        wait_until(are_told, what="all to be told online by the new owner")
        wait_until(lambda: "disconnected the publisher of node '%s'" % OLD in new.log(), what="a line about the old one")
        assert new.metrics().get("evictions_total") >= 1
        if fate == "alive":
            old.signal(signal.SIGCONT)
        way.let_go.set()
        throughout(are_told, 1, "what is told by the new owner")
        if fate == "stopped":
            old.signal(signal.SIGCONT)
        wait_owned(env, {OLD, NEW})
        wait_until(lambda: agrees(env, DEVICES), what="all to agree in the end")
    for d in DEVICES:
        said = newest(observer, env, d)
        assert said == sorted(said), "a lesser token's status behind a greater one: %s: %s" % (d, said)


def guarded(env, acl):
    env.own_broker(users={"heartwheel": "heartwheel", "observer": "observer"}, acl=acl)
    env.own_redis()
    env.root = "nodes"
    env._publisher = env.client(username="observer", password="observer")


OBSERVER = "user observer\ntopic readwrite nodes/#\ntopic read heartwheel/#\n"
OF_NODES = ("topic read heartwheel/+/status", "topic readwrite heartwheel/+/known")


def cluster_acl(*rights):
    """The example ACL with its lines for several nodes: of those the rights that are given here."""
    text = MOSQUITTO_ACL
    for r in OF_NODES:
        assert text.count("#" + r) == 1
        text = text.replace("#" + r, r if r in rights else "")
    for r in rights:
        if r not in OF_NODES:
            text = text.replace("# With homeassistant", r + "\n# With homeassistant")
    return text + OBSERVER


def as_node(env, **more):
    return {"username": "heartwheel", "password_file": secret(env, "heartwheel"), **more}


def retained_by(env):
    """The nodes whose statuses are retained for the devices."""
    c = env.connect(username="observer", password="observer")
    try:
        c.subscribe("nodes/+/status").fence()
        return {m.topic.split("/")[1]: m.json()["by"] for m in c.messages if m.retain}
    finally:
        c.close()


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_the_rights_of_the_example_are_enough(env, protocol):
    guarded(env, cluster_acl(*OF_NODES) + "topic readwrite hwtest/#\n")
    nodes = [node(env, n, as_node(env, protocol=protocol)).start() for n in (OLD, NEW)]
    wait_owned(env, {OLD, NEW})
    with env.beating(DEVICES):
        wait_until(lambda: set(retained_by(env)) == set(DEVICES), what="all to be told")
        assert set(retained_by(env).values()) == {OLD, NEW}
        nodes[0].signal(signal.SIGSTOP)  # its presence stays: it is to be cut off
        wait_until(lambda: set(retained_by(env).values()) == {NEW}, what="all to be told by the other")
        nodes[0].signal(signal.SIGCONT)
        wait_owned(env, {OLD, NEW})
    for d in nodes:
        assert not [l for l in d.log().splitlines() if " error: " in l], d.log()


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
@pytest.mark.parametrize("given,named", [
    ((), r"heartwheel/{n}/(known|status)\b.*allow heartwheel to write"),
    (OF_NODES[:1], r"heartwheel/{n}/known\b.*allow heartwheel to write"),
    (OF_NODES[1:], r"heartwheel/{n}/status does not come back.*read heartwheel/\+/status"),
    ((OF_NODES[0], "topic write heartwheel/+/known"), r"heartwheel/{n}/known does not come back.*read heartwheel/\+/known"),
])
def test_a_right_that_is_missing(env, protocol, given, named):
    """One line names the missing right, no status is published, and all are published once the right is given."""
    guarded(env, cluster_acl(*given) + "topic readwrite hwtest/#\n")
    d = node(env, OLD, as_node(env, protocol=protocol)).start()
    wait_owned(env, {OLD})

    def said():
        return [l for l in d.log().splitlines() if re.search(named.format(n=OLD), l) and " error: " in l]
    with env.beating(DEVICES[:3]):
        wait_until(lambda: all(env.hash(x).get("state") == "online" for x in DEVICES[:3]), what="Redis to have them")
        wait_until(said, what="a line that names the right; is\n" + d.log())
        throughout(lambda: not retained_by(env), 3, "nothing is published")
        assert len(said()) == 1, d.log()
        set_acl(env, cluster_acl(*OF_NODES) + "topic readwrite hwtest/#\n")
        wait_until(lambda: set(retained_by(env)) == set(DEVICES[:3]), what="all to be told")


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_an_eviction_that_is_refused(env, protocol):
    """No client may publish that the old owner is offline, and its last will may not either: one line names the right, and the
    new owner waits until the broker must have dropped the old one, 1.5 x keepalive + 5 s."""
    acl = cluster_acl(*OF_NODES) + "topic readwrite hwtest/#\n"
    guarded(env, acl)
    old, new = [node(env, n, as_node(env, protocol=protocol)).start() for n in (OLD, NEW)]
    wait_owned(env, {OLD, NEW})
    with env.beating(DEVICES):
        wait_until(lambda: set(retained_by(env)) == set(DEVICES), what="all to be told")
        theirs = owned_by(env, OLD)
        set_acl(env, acl.replace("topic write heartwheel/+/status", "topic write heartwheel/%s/status" % NEW))
        old.signal(signal.SIGSTOP)
        wait_until(lambda: set(owners(env).values()) == {NEW}, what="the new owner")

        def said():
            return [l for l in new.log().splitlines() if " error: " in l and "cannot disconnect node" in l]
        wait_until(said, what="a line that names the right")
        throughout(lambda: {retained_by(env)[d] for d in theirs} == {OLD}, 8, "the new owner waits")
        wait_until(lambda: {retained_by(env)[d] for d in theirs} == {NEW}, what="the new owner to tell all")
        assert len(said()) == 1, new.log()
        assert re.search(r"heartwheel-%s-pub.*heartwheel/\+/status" % OLD, said()[0]), said()
        set_acl(env, acl)
        os.kill(old.proc.pid, signal.SIGCONT)
        wait_owned(env, {OLD, NEW})


@pytest.mark.parametrize("prefix,lie", [("another", None), ("heartwheel", "innocent")], ids=["another", "a lie"])
def test_a_peer_is_cut_off_by_the_client_id_that_it_says(env, prefix, lie):
    """The publisher of the peer has another client_id_prefix and is disconnected by the client id in the peer's entry; no other
    text of the entry has an effect."""
    env.own_broker()
    env.own_redis()
    old, new = node(env, OLD, {"client_id_prefix": prefix}).start(), node(env, NEW).start()
    wait_owned(env, {OLD, NEW})
    presence, its_id = "heartwheel/%s/status" % OLD, "%s-%s-pub" % (prefix, OLD)

    def claims():
        return env.retained(presence)[presence].payload
    old.signal(signal.SIGSTOP)
    entry = env.redis.hget(env.key("nodes"), OLD)
    assert '"client_ids":["%s",' % its_id in entry
    if lie:
        env.redis.hset(env.key("nodes"), OLD, entry.replace(its_id, lie))
    said = claims()
    assert json.loads(said)["claims"]
    innocent = RawMqtt(env.broker.port, client_id="innocent")
    publisher = RawMqtt(env.broker.port, client_id=its_id)
    publisher.publish((presence, said), retain=True)
    wait_until(lambda: claims() == said, what="the old owner's claims, and not its will")
    wait_until(lambda: set(owners(env).values()) == {NEW}, what="the new owner")
    wait_until(publisher.is_closed, what="the old owner's publisher to be cut off")
    wait_until(lambda: "disconnected the publisher of node '%s'" % OLD in new.log(), what="a line about it")
    assert not json.loads(claims())["online"] and not innocent.is_closed()
    old.signal(signal.SIGCONT)
    wait_owned(env, {OLD, NEW})


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_broker_that_keeps_nothing(env, protocol):
    """Without retained messages nodes cannot learn which node claims which partition: one line says so, no status is published,
    and Redis is right."""
    env.own_broker(settings=["set_tcp_nodelay true", "max_inflight_messages 1000"])
    env.own_redis()
    d = node(env, OLD, {"protocol": protocol}).start()
    wait_owned(env, {OLD})
    with env.beating(DEVICES[:3]):
        wait_until(lambda: len(retained(env, DEVICES[:3])) == 3, what="all to be told")
        d.stop()
    env.broker.stop()
    env.broker.settings.append("retain_available false")
    env.broker.start()
    env._publisher = None
    observer = env.observer()
    d.start()

    def said():
        return [l for l in d.log().splitlines() if " error: " in l and "sends no retained messages" in l]
    with env.beating(DEVICES[:3]):
        wait_until(lambda: all(env.hash(x).get("state") == "online" for x in DEVICES[:3]), what="Redis to have them")
        wait_until(said, what="a line that says what the broker lacks; is\n" + d.log())
    wait_until(lambda: all(env.hash(x).get("state") == "offline" for x in DEVICES[:3]), what="their deaths in Redis")
    throughout(lambda: not [m for x in DEVICES[:3] for m in observer.on(env.status_topic(x))], 3, "nothing is published")
    assert len(said()) == 1 and "mode = off" in said()[0], d.log()


def test_a_broker_that_restarts_is_told_at_once(env):
    """The broker has lost everything; the statuses are published before silence counts again."""
    env.own_broker()
    env.own_redis()
    d = node(env, OLD, {"reconnect_grace": "10s"}).start()
    wait_owned(env, {OLD})
    with env.beating(DEVICES):
        wait_until(lambda: agrees(env, DEVICES), what="everybody to be told online")
        env.broker.stop()
        env.broker.start()
        wait_until(lambda: agrees(env, DEVICES), what="everybody to be told online once more")
        assert d.status()["blind_cause"] == "link", "it sees again already"


def test_a_clean_stop_withdraws_last(env, pair):
    """The claims of the stopping node stand until all partitions are released; in the end its retained presence claims nothing
    and is offline."""
    way, start = pair
    _, old, new = start()
    spy = env.observer("heartwheel/%s/status" % OLD)
    with env.beating(DEVICES):
        wait_until(lambda: agrees(env, DEVICES), what="everybody to be told online")
        old.stop()
        said = [m.json() for m in spy.fence().on("heartwheel/%s/status" % OLD)]
        assert [j["online"] for j in said[-2:]] == [True, False], said
        assert said[-1]["claims"] == "" == said[-2]["claims"] and said[-1]["state"] == "gone", said
        assert any(j["state"] == "leaving" and j["claims"] for j in said) or len(owners(env)) == 256
        wait_owned(env, {NEW})
        assert "cut off" not in new.log()
    for j in said:
        assert list(j)[-3:] == ["cluster", "state", "claims"] and j["cluster"] == "heartwheel", j


def packets(source):
    """The MQTT packets, one by one: (first byte, topic if it is a PUBLISH, all bytes)."""
    data = b""
    while more := source.recv(65536):
        data += more
        while True:
            size, at = 0, 1
            while at < len(data) and at < 5:
                size |= (data[at] & 127) << 7 * (at - 1)
                at += 1
                if data[at - 1] < 128:
                    break
            if at == 1 or data[at - 1] >= 128 or len(data) < at + size:
                break
            packet, data = data[:at + size], data[at + size:]
            is_publish = packet[0] >> 4 == 3
            yield packet[0], packet[at + 2:at + 2 + int.from_bytes(packet[at:at + 2], "big")] if is_publish else b"", packet


class Disorder(Way):
    """A link to a broker that delivers the retained presence of another node after messages that were published later: when it
    is released; or just before a barrier that was sent after the node had claimed partitions, while later barriers wait."""

    def __init__(self, port, of, node, ahead=False):
        self.status, self.node, self.ahead = b"heartwheel/%s/status" % of.encode(), node.encode(), ahead
        self.lock, self.kept, self.claims, self.proof, self.subscribed = threading.Lock(), [], False, None, 0
        super().__init__(port)

    @staticmethod
    def number(packet):
        """The number of a barrier between nodes; None: another message."""
        found = re.search(rb"/barrier.*[0-9a-f]{16} ([0-9]+)$", packet, re.S)
        return int(found[1]) if found and int(found[1]) >= 1 << 62 else None

    def said(self, topic, packet):
        self.claims |= topic == b"heartwheel/%s/status" % self.node and re.search(rb'"claims":"[0-9]', packet) is not None
        self.subscribed += packet[0] >> 4 == 8 and b"heartwheel/+/status" in packet
        if self.claims and self.proof is None:
            self.proof = self.number(packet)

    def is_kept(self, first, topic, packet):
        """Whether the message is kept back. The caller holds the lock."""
        if self.let_go.is_set():
            return False
        if topic == self.status and first & 1:
            return not self.caught.is_set()
        number = self.number(packet) if self.ahead and self.proof is not None else None
        if number == self.proof is not None:
            self.deliver()
            self.caught.set()
        return number is not None and number > self.proof

    def deliver(self):
        for sink, packet in self.kept:
            sink.sendall(packet)
        self.kept.clear()

    def release(self):
        with self.lock:
            self.deliver()
            self.let_go.set()

    def pump(self, source, sink, is_said):
        try:
            for first, topic, packet in packets(source):
                if is_said:
                    self.said(topic, packet)
                    sink.sendall(packet)
                    continue
                with self.lock:
                    if self.is_kept(first, topic, packet):
                        self.kept.append((sink, packet))
                    else:
                        sink.sendall(packet)
        except OSError:
            pass
        for s in source, sink:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@pytest.fixture
def late(env):
    """late(ahead): the link of the second node, which the first one knows; and the devices that the second one reports."""
    env.own_broker()
    env.own_redis()
    ways = []

    def start(ahead):
        ways.append(Disorder(env.broker.port, OLD, NEW, ahead))
        observer = env.observer(env.root + "/+/status")
        old = node(env, OLD).start()
        with env.beating(DEVICES):
            wait_until(lambda: agrees(env, DEVICES), what="all to be told by the first")
        new = node(env, NEW, {"port": ways[0].port}).start(seeing=False)

        def told():
            by = b'"by":"%s","epoch":' % NEW.encode()  # and no canary
            return [m for m in observer.messages if by in m.payload]
        return ways[0], old, new, told
    yield start
    for w in ways:
        w.close()


def test_what_is_retained_comes_behind_later_messages(env, late):
    """As with aedes. Claims that were read too late are logged, and all claims are read again."""
    way, _, new, told = late(ahead=False)
    with env.beating(DEVICES):
        wait_until(told, what="it to publish what was handed over")
        subscribed = way.subscribed
        way.release()
        wait_until(lambda: "too late: newer messages arrive before them" in new.log(), what="a line about the broker")
        wait_until(lambda: way.subscribed > subscribed, what="it to ask once more for what is retained")
        wait_until(lambda: agrees(env, DEVICES), what="all to agree")


def test_a_barrier_that_was_sent_before_the_last_retained_message_was_read(env, late):
    """As with aedes. Such a barrier proves nothing: no status is published before another barrier is back."""
    way, _, _, told = late(ahead=True)
    with env.beating(DEVICES):
        wait_until(way.caught.is_set, what="the first barrier behind its claims")
        throughout(lambda: not told(), 1.5, "nothing to be published")
        way.release()
        wait_until(told, what="it to publish")
