# SPDX-License-Identifier: MIT
"""Many devices that die at once: what waits for Redis stays bounded as long as Redis gets on, no death is left out of
the stream, and a Redis that stands still holds up nobody."""
import signal

import pytest

from hw_mqtt import RawMqtt
from hw_wait import in_time, wait_until

DEVICES, CHUNK = 40_000, 2_000
AHEAD = 16_384  # entries that wait while devices are judged; one turn may come on top
TURN = 1_024


@pytest.fixture
def fleet(env):
    """40,000 devices that are online, whose timeout is about to become a second."""
    env.own_redis()
    env.own_broker()
    d = env.daemon(timeout="1h", monitor={"log_level": "info"}, group={"status": ""})
    fleet = RawMqtt(env.broker.port)
    for at in range(0, DEVICES, CHUNK):
        # In step with the broker, which drops what it queues beyond its limit.
        fleet.publish(*((env.topic("d%d" % i), b"") for i in range(at, at + CHUNK)))
        wait_until(lambda: d.status()["devices"] == at + CHUNK, 20)
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
    assert fleet.metrics().get("redis_edges_dropped_total") == 0


def test_a_redis_that_stands_still_holds_up_nobody(env, fleet):
    env.redis_server.signal(signal.SIGSTOP)
    try:
        assert fleet.request("POST", "/v1/reload").status == 200
        wait_until(lambda: fleet.status()["offline"] == DEVICES, 8, "all to be offline")
    finally:
        env.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: env.redis.zcard(env.key("offline")) == DEVICES and fleet.status()["owed"] == 0, 60)


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
