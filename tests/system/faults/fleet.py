# SPDX-License-Identifier: MIT
"""Simulated devices: real MQTT clients, some with a last will, driven by one thread.

The oracle compares the daemon with the fleet: the fleet knows which device beat, and when it stopped. It also knows when it was
late itself, because the machine was busy: such a run proves nothing.
"""
import random
import select
import threading
import time

import paho.mqtt.client as paho

from hw_void import WitnessedClient

BEATING, SILENT = "beating", "silent"


class Link:
    """One connection. It reconnects by itself unless its devices are meant to be away."""

    def __init__(self, fleet, name, will=None, keepalive=60):
        self.fleet, self.keepalive, self.away, self.up = fleet, keepalive, False, False
        self.retry_at = 0.0
        self.client = WitnessedClient(name, protocol=paho.MQTTv311)
        if will:
            self.client.will_set(will, b'{"online":false}', 0, True)
        self.client.on_connect = lambda c, u, f, rc: setattr(self, "up", rc == 0)
        self.client.on_disconnect = lambda *a: setattr(self, "up", False)

    def open(self, now):
        try:
            self.client.connect("127.0.0.1", self.fleet.port, self.keepalive)
        except OSError:
            self.close()
        self.retry_at = now + random.uniform(0.1, 0.3)

    def close(self):
        """Closes the connection without a DISCONNECT: the broker publishes the will."""
        sock = self.client.socket()
        if sock is not None:
            sock.close()
            self.client._sock_close()
        self.up = False


class Device:
    def __init__(self, name, topic, link):
        self.name, self.topic, self.link = name, topic, link
        self.mode, self.changed = SILENT, 0.0
        self.next = self.last = 0.0


class Fleet:
    def __init__(self, env, wills=12, shared=28, interval=0.2, keepalive=4):
        self.port, self.interval = env.broker.port, interval
        self.links, self.devices, self.late, self.by_name = [], [], 0.0, {}
        for k in range(wills):
            # Half of the wills go where the retained status is, half beside the heartbeats.
            name = "w%02d" % k
            will = env.status_topic(name) if k % 2 else env.topic(name)
            self.add(env, name, Link(self, "%s-%s" % (env.root, name), will, keepalive))
        gateways = [Link(self, "%s-gw%d" % (env.root, k)) for k in range(2)]
        for k in range(shared):
            self.add(env, "g%02d" % k, gateways[k % 2])
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def add(self, env, name, link):
        d = Device(name, env.topic(name), link)
        self.devices.append(d)
        self.by_name[name] = d
        if link not in self.links:
            self.links.append(link)

    def bear(self, env, name):
        """Adds a device, on a connection that it shares with others."""
        with self.lock:
            self.add(env, name, self.links[-1])

    @property
    def names(self):
        return [d.name for d in self.devices]

    def start(self):
        self.thread.start()
        return self

    def stop(self):
        self.stopping.set()
        self.thread.join(10)
        for link in self.links:
            link.close()

    # what a run does with it

    def revive(self, *names):
        with self.lock:
            for name in names:
                d = self.by_name[name]
                d.mode, d.changed, d.next = BEATING, time.monotonic(), 0.0
                d.link.away = False

    def silence(self, *names):
        """The devices keep their connection and send nothing."""
        with self.lock:
            for name in names:
                d = self.by_name[name]
                d.mode, d.changed = SILENT, time.monotonic()

    def vanish(self, *names):
        """The devices' connections break: the broker publishes the wills of those that have one."""
        with self.lock:
            for name in names:
                d = self.by_name[name]
                d.mode, d.changed = SILENT, time.monotonic()
                if name.startswith("w"):
                    d.link.away = True
                    d.link.close()

    def living(self):
        return [d.name for d in self.devices if d.mode == BEATING]

    def state(self, name):
        return "online" if self.by_name[name].mode == BEATING else "offline"

    # the thread

    def run(self):
        before = time.monotonic()
        while not self.stopping.is_set():
            with self.lock:
                self.turn(time.monotonic())
            now = time.monotonic()
            self.late = max(self.late, now - before)
            before = now
            sockets = {link.client.socket(): link for link in self.links if link.client.socket() is not None}
            try:
                readable, _, _ = select.select(list(sockets), [], [], 0.01)
            except (OSError, ValueError):
                readable = []
            with self.lock:
                for sock in readable:
                    if sockets[sock].client.socket() is sock:
                        sockets[sock].client.loop_read()

    def turn(self, now):
        for link in self.links:
            if link.away:
                continue
            if link.client.socket() is None:
                link.up = False
                if now >= link.retry_at:
                    link.open(now)
            else:
                link.client.loop_misc()
                if link.client.want_write():
                    link.client.loop_write()
        for d in self.devices:
            if d.mode == BEATING and d.link.up and now >= d.next:
                if d.link.client.publish(d.topic, b"").rc == 0:
                    d.last = now
                    d.next = now + self.interval * random.uniform(0.8, 1.0)
