#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a fleet with a heartbeat every 30 s needs: memory and CPU of heartwheeld, of the broker and of Redis.

Its sizes are the first rows of docs/sizing.md. CPU is what the kernel counts in a minute of
steady heartbeats, after all devices are online and Redis has each of them; the timeout is 90 s.
"""
import subprocess
import sys
import time

import measure

BROKER = ("set_tcp_nodelay true", "max_queued_messages 100000", "max_inflight_messages 1000")
INTERVAL_S, TIMEOUT = 30, "90s"


def one(o, devices, seconds):
    from hw_wait import wait_until
    with measure.world(settings=BROKER) as (env, _):
        env.check_events = False
        d = env.configure(timeout=TIMEOUT, monitor={"log_level": "info", "max_devices": 2 * devices})
        pids = {"heartwheeld": d.start().pid, "mosquitto": env.broker.pid, "Redis": env.redis_server.pid}
        argv = [o.build / "bench" / "pace", env.broker.port, env.root, devices, INTERVAL_S * 1000, 64]
        pace = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: d.status()["online"] == devices and d.status()["owed"] == 0, 300, "all to be online", interval=1)
            time.sleep(INTERVAL_S / 3)
            before, began = {n: measure.cpu_s(p) for n, p in pids.items()}, time.monotonic()
            time.sleep(seconds)
            took = time.monotonic() - began
            used = {n: (measure.cpu_s(p) - before[n]) / took * 100 for n, p in pids.items()}
            assert d.status()["online"] == devices, d.status()
        finally:
            pace.terminate()
            pace.wait(10)
        measure.conditions("%s devices, a heartbeat each every %d s, JSON, timeout %s" % (format(devices, ",d"), INTERVAL_S, TIMEOUT))
        for name, pid in pids.items():
            measure.figure("8", "sizing, %s devices: CPU of %s" % (format(devices, ",d"), name), used[name], "% of a core")
            measure.figure("8", "sizing, %s devices: memory of %s" % (format(devices, ",d"), name), measure.rss_kb(pid) / 1024, "MB")
        measure.figure("8", "sizing, %s devices: used_memory of Redis" % format(devices, ",d"),
                       env.redis_server.client(0).info("memory")["used_memory"] / 1e6, "MB")
        d.stop()


def main():
    sizes = [int(a) for a in sys.argv[1:] if a.isdigit()]
    sys.argv = sys.argv[:1] + [a for a in sys.argv[1:] if not a.isdigit()]
    o = measure.options(__doc__)
    for devices in sizes or ((500,) if o.smoke else (1000, 10000, 40000)):
        one(o, devices, 3 if o.smoke else 60)


main()
