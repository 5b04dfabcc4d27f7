# SPDX-License-Identifier: MIT
"""Junk ids by the hundred thousand against a table of 10,000: capped, reported, the first 10,000 unaffected, and no
memory for what is refused. HW_FLOOD says how many (100,000; README's figure is from 1,000,000)."""
import os
import random
import socket
import struct

from hw_env import sanitizer_runtime, wait_until

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
