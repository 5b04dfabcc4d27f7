# SPDX-License-Identifier: MIT
"""What a broker can do, found out by trying: nothing of it is taken from a name or a version.

probe(broker) returns
  v5            it accepts MQTT 5
  shared        {protocol: it hands each message on $share/GROUP/FILTER to exactly one of two subscribers}
  retained      {"exact", "wildcard": a new subscriber to the topic itself, or to a filter, gets the retained message}
  order         {qos: (before, behind, lost): where the 3,600 messages of forty publishers came that the broker had
                taken before a barrier and held for a subscriber who did not read; behind is None if the barrier itself
                did not come}
"""
import itertools
import socket
import struct
import time

import paho.mqtt.client as paho

from hw_mqtt import Client, RawMqtt
from hw_wait import NotWithin, wait_until, wait_within

PROTOCOLS = {"3.1.1": paho.MQTTv311, "5": paho.MQTTv5}
PUBLISHERS, EACH = 40, 90
_number = itertools.count(1)


def topic():
    return "hwfacts/t%d" % next(_number)


def within(predicate, seconds):
    """Whether it becomes true in time."""
    try:
        return bool(wait_within(predicate, seconds))
    except NotWithin:
        return False


def probe(broker):
    v5 = speaks_v5(broker)
    return {"v5": v5,
            "shared": {p: (p == "3.1.1" or v5) and shares(broker, p) for p in PROTOCOLS},
            "retained": retains(broker),
            "order": {str(qos): order(broker, qos) for qos in (0, 1)}}


def speaks_v5(broker):
    """Whether the broker answers a CONNECT of MQTT 5 with a CONNACK that lets the client in. Who does not speak it closes
    the connection, or refuses; time is no answer, but for one who says nothing at all."""
    body = RawMqtt.text("MQTT") + bytes([5, 2 | (0xC0 if broker.credentials else 0), 0, 60, 0]) + RawMqtt.text("hwfacts5")
    if broker.credentials:
        body += RawMqtt.text(broker.credentials["username"]) + RawMqtt.text(broker.credentials["password"])
    with socket.create_connection(("127.0.0.1", broker.port), 20) as s:
        try:
            s.sendall(RawMqtt.packet(0x10, body))
            ack = s.recv(4, socket.MSG_WAITALL)
        except OSError:
            return False
    return ack[:1] == b"\x20" and ack[3:] == b"\0"


def connect(broker, protocol, patience=10):
    return Client(broker.port, protocol=PROTOCOLS[protocol], patience=patience, **broker.credentials)


def shares(broker, protocol):
    """Forty messages for two members of a shared subscription: each must come once, and all to somebody."""
    members, name = [], topic()

    def shared(member):
        return [m.topic for m in member.messages if m.topic.startswith(name)]
    try:
        members = [connect(broker, protocol) for _ in range(2)]
        for m in members:
            m.subscribe("$share/hwfacts/%s/+" % name)
        sender = connect(broker, protocol)
        members.append(sender)
        for i in range(40):
            sender.publish("%s/%d" % (name, i), b"x", qos=1)
        for m in members:
            m.fence()  # however late the broker is, what it meant for them has come
        within(lambda: sum(len(shared(m)) for m in members) >= 40, 2)
        got = sorted(t for m in members for t in shared(m))
        return got == sorted("%s/%d" % (name, i) for i in range(40))
    except (OSError, AssertionError):
        return False  # the subscription was refused, or its client thrown out
    finally:
        for m in members:
            m.close()


def retains(broker):
    name, clients = topic(), []
    try:
        clients.append(connect(broker, "3.1.1"))
        clients[0].publish(name + "/r", b"kept", qos=1, retain=True)

        def gets(subscription):
            c = connect(broker, "3.1.1")
            clients.append(c)
            c.subscribe(subscription)
            return within(lambda: any(m.retain and m.payload == b"kept" for m in c.messages), 2)
        return {"exact": gets(name + "/r"), "wildcard": gets(name + "/+")}
    finally:
        for c in clients:
            c.close()


# --- the order behind a backlog


def packet(name, payload, qos, mid):
    head = 0x30 | qos << 1
    return RawMqtt.packet(head, RawMqtt.text(name) + (struct.pack("!H", mid) if qos else b"") + payload)


def send_all(broker, names, qos):
    """One connection's messages; returns when the broker has taken them: it has acknowledged each of QoS 1, and answered
    a ping that was sent behind them."""
    c = RawMqtt(broker.port, patience=20, **broker.credentials)
    c.sock.sendall(b"".join(packet(n, b"x", qos, i + 1) for i, n in enumerate(names)) + b"\xc0\x00")
    c.sock.settimeout(20)
    pending, awaited = b"", [0x40] * len(names) * bool(qos) + [0xD0]
    while awaited:
        data = c.sock.recv(4096)
        assert data, "the broker closed the connection"
        pending += data
        while len(pending) >= 2 and len(pending) >= 2 + pending[1]:
            awaited.remove(pending[0] & 0xF0)
            pending = pending[2 + pending[1]:]
    c.goodbye()


def order(broker, qos):
    """(before, behind, lost) of the backlog that one subscriber has waiting for it when a barrier is published."""
    name = topic()
    reader = connect(broker, "3.1.1")
    try:
        reader.subscribe(name + "/#", qos)
        small_buffer(reader.client.socket())
        reader.client.loop_stop()  # reads no more; its connection stays
        for p in range(PUBLISHERS):
            send_all(broker, ["%s/%d/%d" % (name, p, i) for i in range(EACH)], qos)
        send_all(broker, [name + "/barrier"], qos)
        reader.client.loop_start()
        total, last = PUBLISHERS * EACH + 1, [0, time.monotonic()]

        def done():
            if len(reader.messages) != last[0]:
                last[:] = len(reader.messages), time.monotonic()
            return last[0] >= total or time.monotonic() - last[1] > 5
        wait_until(done, 60, "the backlog")
        return tally([m.topic for m in reader.messages], name + "/barrier")
    finally:
        reader.close()


def tally(got, barrier):
    heartbeats = len(set(got) - {barrier})
    lost = PUBLISHERS * EACH - heartbeats
    if barrier not in got:
        return heartbeats, None, lost
    before = len(set(got[:got.index(barrier)]))
    return before, heartbeats - before, lost


def small_buffer(sock):
    """Little of the backlog lies in the reader's own socket: most of it waits in the broker."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
