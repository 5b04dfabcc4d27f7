# SPDX-License-Identifier: MIT
"""Shared by the tests of devices that only write to Redis: a Redis with keyspace notifications, and a daemon that listens."""
import os
import time

from hw_build import HEARTWHEELD
from hw_void import MARGIN, Void
from hw_wait import pass_time, wait_until, wait_within

TICK_MS = 1000 / 31
FLAGS = "Exg$e"

# Figures are for a daemon that has its processor: without sanitizers and other tests on it. A repeated test (HW_ONLY) has the
# bounds of its first run.
ALONE = "PYTEST_XDIST_WORKER" not in os.environ and "HW_ONLY" not in os.environ and not (
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


def keep(env, device, seconds, px=2000, interval=0.3):
    """A writer that renews its key for this long. Void if it let the key expire. Returns how often it renewed it."""
    end, last, times = time.monotonic() + seconds, time.monotonic(), 0
    while time.monotonic() < end:
        pass_time(interval)
        env.redis.set(connected(env, device), "x", px=px)
        if time.monotonic() - last > px / 1000 - MARGIN:
            raise Void("the test left its key alone for %.3f s" % (time.monotonic() - last))
        last, times = time.monotonic(), times + 1
    return times


def wait_edges(env, device, n):
    wait_until(lambda: len(env.edges(device)) >= n, what="%d edges of %s: %s" % (n, device, env.edges(device)))
    return env.edges(device)


def edges_at_once(env, device, n):
    """The transitions follow from Redis' notifications, not from another scan of all keys."""
    wait_within(lambda: len(env.edges(device)) >= n, AT_ONCE, "%d edges of %s: %s" % (n, device, env.edges(device)))


ON, OFF, TIMEOUT = ("online", "heartbeat"), ("offline", "keyspace"), ("offline", "timeout")


def seen(env, device):
    """(connected, disconnected, in the offline set, state, source)"""
    r = env.redis.pipeline(transaction=True)
    r.exists(connected(env, device))
    r.exists(env.key("disconnected", device))
    r.zscore(env.key("offline"), device)
    r.hmget(env.key("state", device), "state", "source")
    c, d, score, (state, source) = r.execute()
    return bool(c), bool(d), score is not None, state, source
