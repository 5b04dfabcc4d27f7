# SPDX-License-Identifier: MIT
"""Devices that somebody else wrote: paho clients, each with a connection and a last will of its own, which come back by
themselves after the broker was away. One thread lets all of them beat; what they really wrote, and when, is in `gaps`."""
import threading
import time

import paho.mqtt.client as paho

from hw_void import Gaps, WitnessedClient
from hw_wait import wait_until

GONE = b'{"online":false}'


class Device:
    def __init__(self, env, name, keepalive):
        self.env, self.name, self.keepalive = env, name, keepalive
        self.topic = env.topic(name)
        self.client = None
        self.beats = False
        self.gaps = Gaps()
        self.lock = threading.Lock()  # between the thread that beats and the test, which ends a connection
        self.last = None  # wall clock, just before its latest heartbeat was handed over while it was connected

    def connect(self):
        c = WitnessedClient("%s-%s" % (self.env.root, self.name), protocol=paho.MQTTv311)
        c.gaps = self.gaps
        c.on_disconnect = lambda *a: self.gaps.link_lost()
        c.max_inflight_messages_set(1000)  # a broker that stands still does not keep it from writing
        c.max_queued_messages_set(1000)
        c.reconnect_delay_set(1, 1)
        c.will_set(self.env.status_topic(self.name), GONE, 1, True)
        credentials = self.env.broker.credentials
        if credentials:
            c.username_pw_set(credentials["username"], credentials["password"])
        self.client = c
        c.connect("127.0.0.1", self.env.broker.port, self.keepalive)
        c.loop_start()
        return self

    def beat(self, qos):
        with self.lock:
            if self.beats and self.client is not None and self.client.is_connected():
                self.last = time.time()
                self.client.publish(self.topic, b"", qos)

    def speak(self):
        with self.lock:
            self.beats = True
            self.gaps.begin(self.topic)

    def silence(self):
        """Upon return nothing more is handed over."""
        with self.lock:
            self.beats = False
            self.gaps.end(self.topic)

    def take(self):
        """Its client, which is nobody's from now on."""
        self.silence()
        with self.lock:
            c, self.client = self.client, None
        return c

    def die(self):
        """As when its power goes: no DISCONNECT, the broker has to see it by the connection's end."""
        c = self.take()
        sock = c.socket()
        c.loop_stop()
        if sock:
            sock.close()

    def leave(self):
        """A clean DISCONNECT: no will."""
        c = self.take()
        c.disconnect()
        c.loop_stop()


class Devices:
    """`names` of them, connected and beating each `interval` seconds, one after the other, while the block lasts."""

    def __init__(self, env, names, interval=0.2, qos=0, keepalive=60):
        self.env, self.interval, self.qos = env, interval, qos
        self.by_name = {n: Device(env, n, keepalive) for n in names}
        env.gaps += [d.gaps for d in self.by_name.values()]
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __getitem__(self, name):
        return self.by_name[name]

    def run(self):
        begun, turn = time.monotonic(), 0
        devices = list(self.by_name.values())
        while not self.stopping.is_set():
            for d in devices:
                d.beat(self.qos)
                turn += 1
                self.stopping.wait(max(0.0, begun + turn * self.interval / len(devices) - time.monotonic()))

    def __enter__(self):
        for d in self.by_name.values():
            d.connect()
        wait_until(self.all_connected, 30, "the devices to connect")
        self.speak(self.by_name)
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        self.thread.join(10)
        for d in self.by_name.values():
            d.silence()
            if d.client is not None:
                d.client.disconnect()
        for d in self.by_name.values():
            if d.client is not None:
                d.client.loop_stop()

    def all_connected(self):
        return all(d.client.is_connected() for d in self.by_name.values() if d.client is not None)

    def speak(self, names):
        for n in names:
            self[n].speak()

    def silence(self, names):
        """They stay connected, and say nothing more."""
        for n in names:
            self[n].silence()

    def die(self, names):
        for n in names:
            self[n].die()

    def come_back(self, names):
        for n in names:
            if self[n].client is None:
                self[n].connect()
        self.speak(names)
