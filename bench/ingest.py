#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Heartbeats a second through a real mosquitto, and CPU a heartbeat: the monitor beside a plain libmosquitto
subscriber that only counts.

One closed loop for both (bench/flood.c): at most WINDOW messages are under way, so that the broker has nothing to drop.
The order is plain, monitor, monitor, plain, so that neither has the fresher machine. Then the monitor twice with nothing in a
heartbeat, and with a JSON object of seven members, as devices write it: each time by a monitor that knows nobody."""
import shutil
import subprocess
import tempfile

from measure import SEVEN, conditions, figure, options

o = options(__doc__)

from hw_env import Env  # noqa: E402
from hw_servers import Broker, Redis  # noqa: E402
from receivers import Counter, Monitor, Share  # noqa: E402

DEVICES = 2000 if o.smoke else 100_000
SECONDS = 0.5 if o.smoke else 5
CONNECTIONS = 4
WINDOW = 4000
PAYLOAD = "1"
# What is under way fits into the broker's queue: nothing may depend on how large the subscriber's socket buffer is.
SETTINGS = ["set_tcp_nodelay true", "max_queued_messages %d" % (10 * WINDOW), "max_inflight_messages 1000"]


def flood(receiver, port, seconds, payload=PAYLOAD):
    """One flood: what it says, and what the receiver did meanwhile."""
    share = Share(receiver)
    out = subprocess.run([str(o.build / "bench" / "flood"), *map(str, (port, CONNECTIONS, DEVICES, seconds, WINDOW,
                                                                     payload, *receiver.ports()))],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    said = {key: float(value) for key, value in map(str.split, out.splitlines())}
    n = share.wait_for(said["sent"])
    whole, readers, loop = share.cpu_us(n)
    return {"lost": said["sent"] - n, "rate": n / said["seconds"], "cpu": whole, "reader": readers, "loop": loop}


def plain(broker, base):
    c = Counter(base, o.build / "bench" / "counter", broker.port)
    flood(c, broker.port, 0)
    result = flood(c, broker.port, SECONDS)
    c.stop()
    return result


def said(env, payloads):
    """What a monitor that knows nobody makes of each of some payloads, in this order: all have said it once before. What it
    has stored has to be what they said last."""
    monitor, results = Monitor(env), []
    for payload in payloads:
        flood(monitor, env.broker.port, 0, payload)
        monitor.settle(DEVICES)
        results.append(flood(monitor, env.broker.port, SECONDS, payload))
    known = monitor.daemon.device("sensor-0000000")
    assert (known.get("battery"), known.get("uptime")) == (87, 86400), known
    monitor.stop()
    env.redis.flushdb()
    return results


def mean(results, key):
    return sum(r[key] for r in results) / len(results)


def main():
    base = tempfile.mkdtemp(prefix="hwb-", dir="/tmp")
    broker, server = Broker(base, settings=SETTINGS).start(), Redis(base).start()
    env = Env(broker, server, base)
    env.check_events = False
    try:
        counted = [plain(broker, base)]
        monitor = Monitor(env)
        flood(monitor, broker.port, 0)
        monitor.settle(DEVICES)
        watched = [flood(monitor, broker.port, SECONDS) for _ in range(2)]
        monitor.stop()
        counted.append(plain(broker, base))
        env.redis.flushdb()
        payloads = list(zip(*(said(env, ("", SEVEN)) for _ in range(2))))
    finally:
        env.close()
        broker.stop()
        server.stop()
        shutil.rmtree(base, ignore_errors=True)
    report(counted, watched)
    report_payloads(*payloads)


def report(counted, watched):
    target = 4
    conditions("%s devices, payload of a byte, at the highest rate" % format(DEVICES, ",d"))
    figure(target, "ingest: lost by either", sum(r["lost"] for r in counted + watched), "messages", ("<=", 0), None, True)
    figure(target, "ingest: plain subscriber", mean(counted, "rate"), "/s", note="mosquitto_loop_forever, counts only")
    figure(target, "ingest: heartwheeld", mean(watched, "rate"), "/s", note="%d devices" % DEVICES)
    figure(target, "ingest: rate, heartwheeld to plain", mean(watched, "rate") / mean(counted, "rate"), "x", (">=", 1))
    figure(target, "ingest: CPU, plain subscriber", mean(counted, "cpu"), "us/message")
    figure(target, "ingest: CPU, heartwheeld, all threads", mean(watched, "cpu"), "us/message")
    figure(target, "ingest: CPU, heartwheeld, its reader", mean(watched, "reader"), "us/message",
           note="within all threads")
    figure(target, "ingest: CPU, plain to heartwheeld", mean(counted, "cpu") / mean(watched, "cpu"), "x", (">=", 2))


def report_payloads(empty, seven):
    target, names = 4, (("an empty heartbeat", empty), ("JSON of seven members", seven))
    conditions("%s devices, at the highest rate; %d bytes of JSON: time, online, battery, rssi, ip, version, uptime" % (
        format(DEVICES, ",d"), len(SEVEN)))
    figure(target, "ingest: lost, of payloads as devices write them", sum(r["lost"] for r in empty + seven), "messages",
           ("<=", 0), None, True)
    for name, results in names:
        goal = ("<=", 0.6) if results is seven else None
        figure(target, "ingest: CPU, %s, all threads" % name, mean(results, "cpu"), "us/message", goal,
               "%.0f/s" % mean(results, "rate"))
        figure(target, "ingest: CPU, %s, the loop's thread" % name, mean(results, "loop"), "us/message", None,
               "within all threads; the reader %.2f" % mean(results, "reader"))
    figure(target, "ingest: CPU, what those seven members cost", mean(seven, "cpu") - mean(empty, "cpu"), "us/message", None,
           "all threads")


main()
