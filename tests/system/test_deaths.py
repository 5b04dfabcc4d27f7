# SPDX-License-Identifier: MIT
"""Many devices stop at once: the queue for Redis stays bounded as long as Redis makes progress, no death is missing in the
stream, and a Redis that stands still delays no judgement."""
import signal
import threading
import time

import pytest

from hw_mqtt import RawMqtt
from hw_wait import in_time, wait_until

DEVICES, CHUNK = 40_000, 2_000
AHEAD = 16_384  # entries that wait while devices are judged; one turn may come on top
TURN = 1_024


def beat(env, d, fleet):
    """Each device beats once, in step with the broker, which drops what it queues beyond its limit."""
    for at in range(0, DEVICES, CHUNK):
        fleet.publish(*((env.topic("d%d" % i), b"") for i in range(at, at + CHUNK)))
        wait_until(lambda: d.status()["online"] >= at + CHUNK, 20)


@pytest.fixture
def fleet(env):
    """40,000 devices that are online; a reload is about to make their timeout a second."""
    env.own_redis()
    env.own_broker()
    d = env.daemon(timeout="1h", monitor={"log_level": "info"}, group={"status": ""})
    fleet = RawMqtt(env.broker.port)
    beat(env, d, fleet)
    wait_until(lambda: d.status()["owed"] == 0, 30)
    d.edit("timeout = 1h", "timeout = 1s")
    yield d
    fleet.goodbye()


def test_what_waits_for_redis_stays_bounded(env, fleet):
    most = 0
    assert fleet.request("POST", "/v1/reload").status == 200

    def over():
        nonlocal most
        most = max(most, fleet.metrics().get("owed", sink="redis"))
        return env.redis.zcard(env.key("offline")) == DEVICES
    wait_until(over, 30, "all to be marked", 0.002)
    assert 0 < most <= AHEAD + TURN, most
    wait_until(lambda: fleet.status()["owed"] == 0, 20)
    assert env.redis.xlen(env.key("events")) == 2 * DEVICES
    assert fleet.metrics().get("redis_transitions_dropped_total") == 0


def test_a_redis_that_stands_still_holds_up_nobody(env, fleet):
    env.redis_server.signal(signal.SIGSTOP)
    try:
        assert fleet.request("POST", "/v1/reload").status == 200
        wait_until(lambda: fleet.status()["offline"] == DEVICES, 8, "all to be offline")
    finally:
        env.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: env.redis.zcard(env.key("offline")) == DEVICES and fleet.status()["owed"] == 0, 60)


class SlowRedis:
    """A client that keeps Redis busy nearly all the time: Redis makes progress, but slowly."""
    BUSY = """
local function us() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end
local till = us() + 200000
while us() < till do end"""

    def __init__(self, redis):
        self.redis, self.ends = redis, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ends.is_set():
            self.redis.eval(self.BUSY, 0)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *exc):
        self.ends.set()
        self.thread.join()


def test_who_dies_while_everybody_returns_is_found_as_ever(env):
    """Returning devices fill the queue for Redis, but deaths are found as usual. (Earlier they were found only when Redis had
    caught up.)"""
    env.own_redis()
    env.own_broker()
    slow = {"heartbeat": "slow/{id}/heartbeat", "status": "", "timeout": "1h"}
    quick = {"heartbeat": "quick/{id}/heartbeat", "status": "", "timeout": "2s", "id_prefix": "q-"}
    d = env.daemon(groups=[("slow", slow), ("quick", quick)], monitor={"log_level": "info"})
    fleet, goers = RawMqtt(env.broker.port), RawMqtt(env.broker.port)
    with SlowRedis(env.redis_server.client()):
        began = time.monotonic()
        goers.publish(*(("quick/%d/heartbeat" % i, b"") for i in range(50)))
        for at in range(0, DEVICES, CHUNK):
            fleet.publish(*(("slow/d%d/heartbeat" % i, b"") for i in range(at, at + CHUNK)))
            wait_until(lambda: d.metrics().get("devices", group="slow", state="online") >= at + CHUNK, 20)
        wait_until(lambda: d.status()["offline"] == 50, 20, "those who are silent to be offline")
        took, m = time.monotonic() - began, d.metrics()
        assert m.get("owed", sink="redis") > AHEAD, "Redis has caught up: nothing was tried"
    late = 50 - m.get("detection_delay_seconds_bucket", le="1")
    assert late <= 0, "%d found out late: after %.1f s" % (late, took)
    fleet.goodbye()
    goers.goodbye()


def test_a_turn_is_timed_as_a_whole(env, fleet):
    before = fleet.metrics()
    assert fleet.request("POST", "/v1/reload").status == 200
    wait_until(lambda: fleet.status()["offline"] == DEVICES, 30)
    after = fleet.metrics()
    turns = after.get("loop_turn_cpu_seconds_count") - before.get("loop_turn_cpu_seconds_count")
    assert turns >= DEVICES / TURN
    spent = after.get("loop_turn_cpu_seconds_sum") - before.get("loop_turn_cpu_seconds_sum")
    assert spent > 0.01, "40,000 deaths take some CPU"

    def turns_within(m, le):
        return m.get("loop_turn_cpu_seconds_bucket", le=le)
    longer = turns - (turns_within(after, "0.05") - turns_within(before, "0.05"))
    in_time(longer, 0, "turns of the loop that took more than 50 ms of CPU")
