# SPDX-License-Identifier: MIT
"""How long after its timeout a silent device is told, as somebody outside the monitor sees it."""
import re
import subprocess
import time

import paho.mqtt.client as paho
import pytest

from hw_env import FLEET, pass_time, wait_until


def percentile(values, p):
    return values[min(len(values) - 1, int(len(values) * p / 100))]


def test_detection_delay_of_1000_devices(env, capsys):
    """Beside a default mosquitto, seen by the simulated fleet's own observer: the figures that count."""
    if not FLEET.exists():
        pytest.skip("no %s" % FLEET)
    env.own_broker(settings=())
    d = env.daemon(timeout="2s")
    out = subprocess.run(
        [str(FLEET), "--port", str(env.broker.port), "--devices", "1000", "--connections", "50", "--interval-ms",
         "500", "--timeout-ms", "2000", "--silent", "1000", "--silent-at-ms", "1500", "--silent-spread-ms", "2000",
         "--seconds", "7", "--prefix", "f", "--heartbeat", env.root + "/{id}/heartbeat", "--status",
         env.root + "/{id}/status", "--expect-online", "1000", "--expect-offline", "1000"],
        capture_output=True, text=True, timeout=60)
    with capsys.disabled():
        print("\n" + out.stdout.strip())
    assert out.returncode == 0, (out.returncode, out.stdout, out.stderr)
    figures = re.search(r"(\d+) deaths: min ([-\d.]+)\s+p50 ([\d.]+)\s+p99 ([\d.]+)\s+max ([\d.]+) ms", out.stdout)
    assert int(figures[1]) == 1000 and float(figures[2]) >= 0, out.stdout
    assert float(figures[4]) < 1000, "p99 " + figures[4] + " ms"
    m = d.metrics()
    assert m.get("detection_delay_seconds_count") == 1000
    assert m.get("detection_delay_seconds_bucket", le="+Inf") == 1000
    assert m.get("transitions_total", reason="timeout") == 1000


def test_detection_delay_seen_by_another_observer(env, capsys):
    """The same with another client library on both sides, each device silent after its first heartbeat."""
    count, timeout = 1000, 2.0
    env.own_broker(settings=())
    env.daemon(timeout="2s")
    observer = env.observer(protocol=paho.MQTTv311)
    start = time.monotonic() + 0.1
    sent = {}
    for k in range(count):
        wait_until(lambda: time.monotonic() >= start + k * 2.0 / count, 5, interval=0.0005)
        sent[env.status_topic("l%04d" % k)] = env.beat("l%04d" % k)

    def deaths():
        return [m for m in list(observer.messages) if b'"online":false' in m.payload]
    wait_until(lambda: len({m.topic for m in deaths()}) == count, 20, "every device to be told offline", interval=0.05)
    delays = sorted(m.at - sent[m.topic] - timeout for m in deaths())
    line = "past a 2 s timeout, %d deaths: min %.1f  p50 %.1f  p90 %.1f  p99 %.1f  max %.1f ms" % (
        len(delays), delays[0] * 1000, *(percentile(delays, p) * 1000 for p in (50, 90, 99)), delays[-1] * 1000)
    with capsys.disabled():
        print("\n" + line)
    assert len(delays) == count, "somebody was told offline twice"
    assert delays[0] >= 0, "early: " + line
    assert percentile(delays, 99) < 1.0, line


def test_short_and_long_timeouts_are_never_early(env):
    """100 ms is the shortest; with longer ones in the same wheel."""
    timeouts = [100, 130, 250, 500, 970, 1000, 1030, 1500, 2000, 3100]
    env.daemon(timeout="1h")
    observer = env.observer()
    sent = {}
    for turn in range(10):
        for t in timeouts:
            device = "t%d-%d" % (t, turn)
            sent[env.status_topic(device)] = (t / 1000, env.beat(device, {"timeout": t / 1000}))
        pass_time(0.05)

    def deaths():
        return [m for m in list(observer.messages) if b'"online":false' in m.payload]
    wait_until(lambda: len(deaths()) >= len(sent), 20, "every device to be told offline")
    worst = 0
    for m in deaths():
        t, at = sent[m.topic]
        assert m.at - at >= t, "early by %.4f s: %r" % (t - (m.at - at), m)
        worst = max(worst, m.at - at - t)
    assert worst < 1.0, "%.3f s late" % worst
    wait_until(lambda: env.redis.zcard(env.key("offline")) == len(sent))
    for e in env.events():
        if e["state"] == "offline":
            # Both are rounded to milliseconds.
            assert int(e["time_ms"]) - int(e["last_seen_ms"]) >= int(e["id"][1:].split("-")[0]) - 1, e
