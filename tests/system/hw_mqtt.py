# SPDX-License-Identifier: MIT
"""MQTT clients: one that keeps the messages it gets, one that writes packets by hand, and devices that beat."""
import json
import os
import socket
import struct
import threading
import time

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from hw_process import next_number
from hw_void import Gaps, WitnessedClient
from hw_wait import PATIENCE, NotWithin, wait_until


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


def user_properties(n):
    """This many user properties (MQTT 5) of 206 bytes each."""
    p = Properties(PacketTypes.PUBLISH)
    p.UserProperty = [("n", "v" * 200)] * n
    return p


class Client:
    """A paho client in a thread of its own, which keeps every message with its time of arrival."""

    def __init__(self, port, protocol=paho.MQTTv5, username=None, password=None, tls=None, client_id=None,
                 patience=10):
        self.messages = []
        self.gaps = Gaps()
        self.client = WitnessedClient(client_id or "hwtest-%d-%d" % (os.getpid(), next_number()), protocol=protocol)
        self.client.gaps = self.gaps
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
        self.client.on_disconnect = self._on_disconnect
        # Otherwise the broker's delayed acknowledgements hold a second small packet back for 40 ms.
        self.client.on_socket_open = lambda c, u, s: s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connects = 0
        self.client.connect("127.0.0.1", port, 30)
        self.client.loop_start()
        try:
            wait_until(self.client.is_connected, patience, "a test client to connect")
        except AssertionError:
            self.client.loop_stop()
            raise

    def _on_connect(self, client, userdata, flags, rc, properties=None):
        self.connects += 1
        if self.connects > 1:
            for name, qos in self.filters.items():
                client.subscribe(name, qos)

    def _on_disconnect(self, *_):
        self.granted.clear()
        self.gaps.link_lost()

    def subscribe(self, name, qos=0):
        self.filters[name] = qos
        _, mid = self.client.subscribe(name, qos)
        wait_until(lambda: mid in self.granted, 10, "a subscription to " + name)
        return self

    def publish(self, topic, payload=b"", qos=0, retain=False, wait=True, properties=None):
        if isinstance(payload, (dict, list)):
            payload = json.dumps(payload)
        info = self.client.publish(topic, payload, qos, retain, properties)
        if qos and wait:
            info.wait_for_publish(PATIENCE)
            if not info.is_published():
                raise NotWithin("no PUBACK for " + topic)
        return info

    def on(self, topic, start=0):
        return [m for m in self.messages[start:] if m.topic == topic]

    def fence(self):
        """Returns when everything that the broker had queued for this client before has arrived."""
        topic = "hwtest/fence/%d-%d" % (os.getpid(), next_number())
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
    """MQTT 3.1.1 by hand: several packets in one write, topics that a library would refuse, ends without a DISCONNECT."""

    def __init__(self, port, will=None, client_id=None, keepalive=60, username=None, password=None,
                 patience=PATIENCE):
        self.sock = socket.create_connection(("127.0.0.1", port), patience)
        flags, body = 2, b""
        if will:
            topic, payload, retain = will
            flags |= 4 | (0x20 if retain else 0)
            body = self.text(topic) + self.text(payload)
        if username:
            flags |= 0xC0
            body += self.text(username) + self.text(password)
        client_id = client_id or "hwraw-%d-%d" % (os.getpid(), next_number())
        self.sock.sendall(self.packet(0x10, self.text("MQTT") + bytes([4, flags]) + struct.pack("!H", keepalive)
                                      + self.text(client_id) + body))
        ack = self.sock.recv(4)
        assert ack[:1] == b"\x20" and ack[3:] == b"\0", "CONNACK %r" % ack

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
        """Publishes these messages with QoS 0, all in one write."""
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
        self.last = {}  # {topic: monotonic time just before its latest heartbeat was handed over}
        self.gaps = getattr(client, "gaps", None) or Gaps()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.stopping.is_set():
            for topic in self.topics:
                self.last[topic] = time.monotonic()
                self.client.publish(topic, self.payload)
            self.stopping.wait(self.interval)

    def __enter__(self):
        self.gaps.begin(*self.topics)
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        self.thread.join(10)
        self.gaps.end(*self.topics)
