#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Heartbeats a second, and CPU a heartbeat, where no broker is in the way: bench/blast.c writes PUBLISH packets as fast
as the sockets take them, to the monitor with one and two readers, and to a plain libmosquitto subscriber that only
counts."""
import shutil
import subprocess
import tempfile
import time

from measure import conditions, figure, options

o = options(__doc__)

from hw_env import Env  # noqa: E402
from hw_process import Server  # noqa: E402
from hw_servers import Redis  # noqa: E402
from receivers import Counter, Monitor, Share  # noqa: E402

DEVICES = 2000 if o.smoke else 100_000
SECONDS = 0.5 if o.smoke else 4
PAYLOAD = "1"


class Blast(Server):
    """bench/blast, which takes its orders on stdin."""

    name = "blast"

    def launch(self):
        self.proc = subprocess.Popen([str(o.build / "bench" / "blast"), str(self.port), str(DEVICES), PAYLOAD],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answers(self):
        return bool(self.order("0 once", answer=False))

    def order(self, line, answer=True):
        """What it is told, and (messages, when they began) once all are written."""
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()
        if not answer:
            return True
        _, sent, _, began = self.proc.stdout.readline().split()
        return int(sent), float(began)


def blasted(server, receiver, targets, how):
    """One order, and what the receiver made of it."""
    share = Share(receiver)
    sent, began = server.order("%d %s" % (targets, how))
    n = share.wait_for(sent)
    seconds = time.monotonic() - began
    whole, readers, _ = share.cpu_us(n)
    return {"lost": sent - n, "rate": n / seconds, "cpu": whole, "reader": readers}


def plain(server, base, connections):
    c = Counter(base, o.build / "bench" / "counter", server.port, connections)
    blasted(server, c, connections, "once")
    result = blasted(server, c, connections, "for %g" % SECONDS)
    c.stop()
    return result


def watched(server, env, readers):
    monitor = Monitor(env, mqtt={"readers": readers})
    blasted(server, monitor, readers, "once")
    monitor.settle(DEVICES)
    result = blasted(server, monitor, readers, "for %g" % SECONDS)
    monitor.stop()
    env.redis.flushdb()
    return result


def main():
    base = tempfile.mkdtemp(prefix="hwb-", dir="/tmp")
    server, store = Blast(base).start(), Redis(base).start()
    env = Env(server, store, base)
    env.check_events = False
    try:
        for connections in 1, 2:
            report(connections, plain(server, base, connections), watched(server, env, connections))
    finally:
        env.close()
        server.stop()
        store.stop()
        shutil.rmtree(base, ignore_errors=True)


def report(n, counted, seen):
    target = 5
    of = "%d connection%s" % (n, "s" if n > 1 else "")
    conditions("%s devices, payload of a byte, at the highest rate" % format(DEVICES, ",d"))
    figure(target, "blast: lost, %s" % of, counted["lost"] + seen["lost"], "messages", ("<=", 0), None, True)
    for name, r in ("plain subscriber", counted), ("heartwheeld", seen):
        figure(target, "blast: %s, %s" % (name, of), r["rate"], "/s")
        figure(target, "blast: CPU, %s, %s" % (name, of), r["cpu"], "us/message")
    figure(target, "blast: CPU, heartwheeld, its readers, %s" % of, seen["reader"], "us/message",
           note="within the figure above")
    figure(target, "blast: rate, heartwheeld to plain, %s" % of, seen["rate"] / counted["rate"], "x")
    figure(target, "blast: CPU, plain to heartwheeld, %s" % of, counted["cpu"] / seen["cpu"], "x")


main()
