# SPDX-License-Identifier: MIT
"""Devices that beat, stop and return, in a thread, over a few connections; and the truth about them: when each life began, when
its last heartbeat was written, and the longest gap while the device was meant to beat (hw_void.Gaps)."""
import random
import socket
import threading
import time

from hw_mqtt import RawMqtt
from hw_void import Gaps

TURN = 0.02  # seconds: heartbeats that fall into one turn are one write


class Life:
    """From a device's first heartbeat to its last, by the wall clock, each as of just before it was written."""
    __slots__ = ("born", "last")

    def __init__(self):
        self.born = self.last = None


class Beast:
    def __init__(self, name, topic, link):
        self.name, self.topic, self.link = name, topic, link
        self.packet = RawMqtt.packet(0x30, RawMqtt.text(topic))
        self.beats, self.next = False, 0.0
        self.lives = []


class Herd:
    def __init__(self, port, topic, names, interval=0.25, links=4):
        self.port, self.interval = port, interval
        self.sockets = [None] * links
        self.retry_at = [0.0] * links
        self.beasts = {n: Beast(n, topic(n), k % links) for k, n in enumerate(names)}
        self.of_link = [[b for b in self.beasts.values() if b.link == k] for k in range(links)]
        self.gaps, self.lock, self.stopping = Gaps(), threading.Lock(), threading.Event()
        self.turned = 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    def stop(self):
        self.stopping.set()
        self.thread.join(10)
        self.gaps.end(*[b.topic for b in self.beasts.values()])
        for k in range(len(self.sockets)):
            self.lose(k)

    def revive(self, *names):
        """The devices beat from now on."""
        with self.lock:
            for b in map(self.beasts.get, names or self.beasts):
                if not b.beats:
                    b.beats, b.next = True, time.monotonic() + random.uniform(0, self.interval)
                    b.lives.append(Life())
                    self.gaps.begin(b.topic)

    def kill(self, *names):
        """The devices are silent from now on: none of their messages is written after this returns."""
        with self.lock:
            for b in map(self.beasts.get, names):
                if b.beats and b.lives[-1].born is None:
                    b.lives.pop()  # no heartbeat of this life was written
                b.beats = False
                self.gaps.end(b.topic)

    def hasten(self, names):
        """The devices beat at once, all together; returns since when."""
        with self.lock:
            for b in map(self.beasts.get, names):
                b.next = 0.0
            return time.time()

    def living(self):
        return {b.name for b in self.beasts.values() if b.beats}

    def dead(self):
        return {b.name for b in self.beasts.values() if not b.beats}

    def heard(self, name):
        """Whether the device's present or last life has begun."""
        lives = self.lives(name)
        return bool(lives) and lives[-1].last is not None

    def last(self, name):
        """The wall time of the latest heartbeat of the device's present or last life; None: no heartbeat yet."""
        lives = self.lives(name)
        return lives[-1].last if lives else None

    def lives(self, name):
        """All lives. A heartbeat may be read before the thread that wrote it has noted the time: the thread holds the lock
        until then."""
        with self.lock:
            return list(self.beasts[name].lives)

    # the thread

    def run(self):
        while not self.stopping.wait(TURN):
            with self.lock:
                for k in range(len(self.sockets)):
                    self.turn(k, time.monotonic())
            self.turned += 1

    def turn(self, k, now):
        if self.sockets[k] is None and not self.connect(k, now):
            return
        due = [b for b in self.of_link[k] if b.beats and now >= b.next]
        if not due:
            return
        before, wall = time.monotonic(), time.time()
        try:
            self.sockets[k].sendall(b"".join(b.packet for b in due))
        except OSError:
            self.lose(k)
            return
        after = time.monotonic()
        for b in due:
            b.next = now + self.interval * random.uniform(0.8, 1.0)
            self.gaps.wrote(b.topic, before, after)
            b.lives[-1].last = wall
            if b.lives[-1].born is None:
                b.lives[-1].born = wall

    def connect(self, k, now):
        if now < self.retry_at[k]:
            return False
        self.retry_at[k] = now + random.uniform(0.1, 0.3)
        try:
            self.sockets[k] = RawMqtt(self.port, keepalive=0).sock
        except (OSError, AssertionError):
            return False
        self.sockets[k].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return True

    def lose(self, k):
        if self.sockets[k] is not None:
            self.sockets[k].close()
            self.sockets[k] = None
            self.gaps.link_lost()
