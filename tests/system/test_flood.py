# SPDX-License-Identifier: MIT
"""Hundreds of thousands of junk ids against a table of 10,000: the number is bounded and reported, the first 10,000 devices are
unaffected, and refused ids take no memory. HW_FLOOD sets the number (100,000; the figure in docs/guarantees.md is from
1,000,000)."""
import contextlib
import http.client
import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading

from hw_build import sanitizer_runtime
from hw_http import Metrics, UnixHTTP
from hw_mqtt import RawMqtt
from hw_wait import pass_time, wait_until

KNOWN, CHUNK = 10_000, 2_000


def packet(kind, body):
    length, n = b"", len(body)
    while True:
        n, low = divmod(n, 128)
        length += bytes([low | (128 if n else 0)])
        if not n:
            return bytes([kind]) + length + body


def publish(topic):
    name = topic.encode()
    return packet(0x30, struct.pack(">H", len(name)) + name)


def rss_kb(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def test_a_flood_of_junk_ids(env):
    count = int(os.environ.get("HW_FLOOD", "100000"))
    seed = int(os.environ.get("HW_SEED", "1"))
    print("HW_SEED=%d HW_FLOOD=%d" % (seed, count))
    rng = random.Random(seed)
    d = env.daemon(timeout="10m", monitor={"max_devices": KNOWN, "log_level": "info"})
    known = [publish(env.topic("k%d" % i)) for i in range(KNOWN)]
    refused = lambda: int(d.metrics().get("refused_total", kind="max_devices"))
    heard = lambda: d.status()["heartbeats_total"]
    with socket.create_connection(("127.0.0.1", env.broker.port)) as s:
        s.sendall(packet(0x10, b"\x00\x04MQTT\x04\x02\x00\x00\x00\x05flood"))
        assert s.recv(4) == b"\x20\x02\x00\x00"
        for at in range(0, KNOWN, CHUNK):
            s.sendall(b"".join(known[at:at + CHUNK]))
            wait_until(lambda: d.status()["devices"] == at + CHUNK, 20)
        wait_until(lambda: d.status()["owed"] == 0, 30)
        before, events = rss_kb(d.pid), len(env.events())
        for at in range(0, count, CHUNK):
            # In step with the broker, which drops what it queues beyond its limit.
            s.sendall(b"".join(publish(env.topic("%016x" % rng.getrandbits(64))) for _ in range(CHUNK)))
            wait_until(lambda: refused() >= at + CHUNK, 20)
        so_far = heard()
        for at in range(0, KNOWN, CHUNK):
            s.sendall(b"".join(known[at:at + CHUNK]))
            wait_until(lambda: heard() >= so_far + at + CHUNK, 20)
    after = rss_kb(d.pid)
    print("%d ids refused, %d devices known, %d kB before the flood, %d kB after" % (refused(), KNOWN, before, after))
    status = d.status()
    assert status["devices"] == status["online"] == KNOWN and refused() == count
    assert len(env.events()) == events
    if not sanitizer_runtime():  # which keeps freed memory back
        assert after < before + 8192
    assert "max_devices" in d.log() and d.log().count("the table is full") < 10


@contextlib.contextmanager
def loop_without_a_processor(pid):
    """All threads share a processor with a process that never sleeps, and the loop's own thread gets what the others leave:
    next to nothing. So messages wait for the loop, however fast the machine is."""
    cpus = os.sched_getaffinity(pid)
    cpu = min(cpus)
    tids = [int(tid) for tid in os.listdir("/proc/%d/task" % pid)]
    for tid in tids:
        os.sched_setaffinity(tid, {cpu})
    os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(busy.pid, {cpu})
    try:
        yield
    finally:
        busy.kill()
        busy.wait()
        for tid in tids:
            os.sched_setaffinity(tid, cpus)
        with contextlib.suppress(PermissionError):  # who is not root may not; then it waits for a quiet moment
            os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))


class Watched:
    """While the block lasts, measures again and again how many heartbeats were handled in how many turns of the loop. Each
    answer is given in a turn, so between two answers at most the turns that ended, and one more, handled heartbeats."""

    def __init__(self, d):
        self.connection = UnixHTTP(d.socket, timeout=120)
        self.samples, self.stopping = [], threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.stopping.is_set():
            try:
                self.connection.request("GET", "/metrics")
                m = Metrics(self.connection.getresponse().read().decode())
            except (OSError, http.client.HTTPException):
                self.connection.close()  # so slow was it that the connection was given up: the next request opens another
                continue
            self.samples.append((m.get("heartbeats_total"), m.get("loop_turn_cpu_seconds_count")))

    def __enter__(self):
        self.thread.start()
        wait_until(lambda: self.samples)
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        self.thread.join(120)
        self.connection.close()

    def most(self):
        """The greatest number of heartbeats that one turn handled, at least."""
        return max((b[0] - a[0]) / (b[1] - a[1] + 1) for a, b in zip(self.samples, self.samples[1:]))


def test_a_storm_is_taken_in_turns(env):
    """A turn handles 4,096 events at most, whatever waits: an eighth of the events here."""
    payload = json.dumps({"battery": 71.5, "rssi": -60, "ip": "192.0.2.1", "version": "1.2.3", "uptime": 86400}).encode()
    env.own_broker(settings=["max_queued_messages 0"])
    d = env.daemon(timeout="1h", monitor={"stall_after": "60s", "stop_timeout": "20s"},
                   mqtt={"barrier_slow": "60s", "barrier_timeout": "60s"})
    env.beat("x")
    wait_until(lambda: d.state("x") == "online" and d.status()["owed"] == 0)
    observer = env.observer(env.topic("x"))
    storm = RawMqtt(env.broker.port)
    heard = d.status()["heartbeats_total"]
    with Watched(d) as watched:
        with loop_without_a_processor(d.pid):
            for _ in range(8):
                storm.publish(*[(env.topic("x"), payload)] * 4096)
            storm.publish((env.topic("x"), b"last"))
            wait_until(lambda: observer.messages and observer.messages[-1].payload == b"last", 60, "the broker to be done")
            pass_time(0.5)
        wait_until(lambda: watched.samples[-1][0] > heard + 8 * 4096, 120, "the storm to be taken", 0.1)
    storm.goodbye()
    assert watched.most() <= 4096, watched.samples
