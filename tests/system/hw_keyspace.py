# SPDX-License-Identifier: MIT
"""What the tests of devices that only write to Redis share: a Redis that tells of keys, and a daemon that listens."""
import os

from hw_build import HEARTWHEELD
from hw_wait import wait_until

TICK_MS = 1000 / 31
FLAGS = "Exg$e"

# Figures are for a daemon that has its processor: neither sanitizers nor other tests beside it.
ALONE = "PYTEST_XDIST_WORKER" not in os.environ and not (
    HEARTWHEELD.exists() and b"__asan_init" in HEARTWHEELD.read_bytes())
AT_ONCE = 1 if ALONE else 5
LATE_MS = TICK_MS + (60 if ALONE else 900)


def listen(env, timeout="1s", configure="no", **options):
    d = env.daemon(timeout=timeout, keyspace={"enabled": "yes", "configure": configure}, **options)
    wait_up(d)
    return d


def wait_up(d):
    wait_until(lambda: d.metrics().get("keyspace_up") == 1, 10, "the listener to listen")
    wait_until(lambda: d.metrics().get("keyspace_resyncs_total") >= 1, 10, "the first resync")


def connected(env, device):
    return env.key("connected", device)


def setex(env, device, seconds=30):
    env.redis.setex(connected(env, device), seconds, "written by a gateway")


def wait_edges(env, device, n, timeout=10):
    wait_until(lambda: len(env.edges(device)) >= n, timeout, "%d edges of %s: %s" % (n, device, env.edges(device)))
    return env.edges(device)


ON, OFF, TIMEOUT = ("online", "heartbeat"), ("offline", "keyspace"), ("offline", "timeout")


def seen(env, device):
    """(connected, disconnected, in the set of what is offline, state, source)"""
    r = env.redis.pipeline(transaction=True)
    r.exists(connected(env, device))
    r.exists(env.key("disconnected", device))
    r.zscore(env.key("offline"), device)
    r.hmget(env.key("state", device), "state", "source")
    c, d, score, (state, source) = r.execute()
    return bool(c), bool(d), score is not None, state, source
