#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a fleet costs day after day: CPU of heartwheeld for a heartbeat, at 1,000, 10,000 and 100,000 heartbeats a second, with
the CPU of Redis and of the broker beside it; and a plain libmosquitto subscriber (bench/counter), which only counts, at the same
paces behind the same broker.

Each device sends every 10 s, and its timeout is 30 s: heartwheeld refreshes Redis as in production. All devices are known, and
all statuses are published, before the measurement begins. Nothing is lost: at the end the number of heartbeats that heartwheeld
has read is held against the pace."""
import subprocess
import time

import measure

o = measure.options(__doc__)

from receivers import Counter, Monitor, Share  # noqa: E402

TARGET = "rates"
INTERVAL_S = 10
RATES, SECONDS = ((100, 200), 2) if o.smoke else ((1000, 10000, 100000), 30)
BROKER = ("set_tcp_nodelay true", "max_queued_messages 100000", "max_inflight_messages 1000")


class Fleet:
    """bench/pace, for as long as the block lasts."""

    def __init__(self, env, devices):
        self.argv = [str(a) for a in (o.build / "bench" / "pace", env.broker.port, "nodes", devices, INTERVAL_S * 1000, 16)]

    def __enter__(self):
        self.p = subprocess.Popen(self.argv, stdout=subprocess.DEVNULL)
        return self

    def __exit__(self, *exc):
        self.p.terminate()
        self.p.wait()


def share(receiver, rate, pids):
    """CPU a message in us: of the receiver, then of the processes in `pids`; and the share of the pace that it read."""
    spent, of = measure.Spent(pids), Share(receiver)
    time.sleep(SECONDS)
    read = receiver.count() - of.read
    mine = of.cpu_us(max(1, read))[0]
    spent.end()
    return mine, {name: us / max(1, read) for name, us in spent.us.items()}, read / (rate * spent.wall), spent.note()


def run(rate):
    devices, name = rate * INTERVAL_S, "%s a second" % format(rate, ",d")
    with measure.world(settings=BROKER) as (env, _):
        env.check_events = False
        measure.conditions("%s devices, a heartbeat each %d s, timeout 30 s, JSON with the time, Redis and statuses; the"
                           " broker: %s" % (format(devices, ",d"), INTERVAL_S, ", ".join(BROKER)))
        m = Monitor(env, mqtt={"republish_rate": 0}, http={})
        with Fleet(env, devices):
            m.settle(devices, timeout=180)
            time.sleep(INTERVAL_S if not o.smoke else 1)
            us, others, part, note = share(m, rate, {"Redis": env.redis_server.pid, "the broker": env.broker.pid})
        measure.figure(TARGET, "rates: CPU a heartbeat, " + name, us, "us", None, note)
        measure.figure(TARGET, "rates: CPU, " + name, us * rate / 1e4, "% of a core")
        for who, cpu in others.items():
            measure.figure(TARGET, "rates: CPU of %s a heartbeat, %s" % (who, name), cpu, "us")
        measure.figure(TARGET, "rates: heartbeats read, " + name, part, "x", (">=", 0.98), None, True)
        m.stop()
        c = Counter(env.own_dir("counter"), o.build / "bench" / "counter", env.broker.port)
        with Fleet(env, devices):
            time.sleep(1)
            us, _, part, note = share(c, rate, {})
        measure.figure(TARGET, "rates: CPU a message of a plain subscriber, " + name, us, "us", None, note)
        c.stop()


if __name__ == "__main__":
    measure.need(o, "pace", "counter")
    for each in RATES:
        run(each)
