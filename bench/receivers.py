# SPDX-License-Identifier: MIT
"""Who reads heartbeats, for benches: the monitor, and a plain subscriber that only counts. Both alike: started on a
broker, asked for what they have read and for the CPU that their threads have used."""
import mmap
import os
import struct
import time
from pathlib import Path

from hw_process import Process
from hw_wait import wait_until

FILTER = "nodes/+/heartbeat"
SHIPPED = {"heartbeat": "nodes/{id}/heartbeat", "status": "nodes/{id}/status"}


def threads_cpu_s(pid):
    """CPU time of a process, by the names of its threads, in seconds; to the nanosecond, unlike cpu_s()."""
    used = {}
    for task in Path("/proc/%d/task" % pid).iterdir():
        name = (task / "comm").read_text().strip()
        used[name] = used.get(name, 0) + int((task / "schedstat").read_text().split()[0]) / 1e9
    return used


def ports_to(pid, port):
    """The local ports of a process' connections to `port` of 127.0.0.1."""
    links = set()
    for fd in Path("/proc/%d/fd" % pid).iterdir():
        try:
            links.add(os.readlink(fd))
        except FileNotFoundError:
            pass
    found = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if "socket:[%s]" % fields[9] in links and int(fields[2].split(":")[1], 16) == port:
            found.append(int(fields[1].split(":")[1], 16))
    return found


class Counter(Process):
    """bench/counter: mosquitto_loop_forever() and a callback that counts."""

    name = "counter"

    def __init__(self, directory, program, port, connections=1):
        super().__init__(directory)
        self.port = port
        self.file = self.dir / ("counts%d" % port)
        self.file.write_bytes(bytes(64 * connections))
        with open(self.file, "rb") as f:
            self.map = mmap.mmap(f.fileno(), 64 * connections, prot=mmap.PROT_READ)
        self.spawn([program, port, FILTER, self.file, connections])
        wait_until(lambda: not self.alive or self.sum(8) == connections, 10, "the counter to subscribe")
        assert self.alive, self.log()

    def sum(self, offset):
        return sum(struct.unpack_from("<Q", self.map, at + offset)[0] for at in range(0, len(self.map), 64))

    def count(self):
        return self.sum(0)

    def ports(self):
        return ports_to(self.pid, self.port)

    def cpu(self):
        return threads_cpu_s(self.pid)

    def stop(self):
        self.kill()


class Monitor:
    """heartwheeld as it is shipped, but for what would only matter in production: grace, pid file, user."""

    def __init__(self, env, **options):
        self.env = env
        self.daemon = env.daemon(monitor={"log_level": "notice"}, group=SHIPPED, timeout="30s", **options)
        self.pid = self.daemon.pid

    def count(self):
        return int(self.daemon.metrics().get("heartbeats_total"))

    def ports(self):
        return ports_to(self.pid, self.env.broker.port)

    def cpu(self):
        return threads_cpu_s(self.pid)

    def settle(self, devices, timeout=60):
        """Returns when that many devices are known, and nothing is owed to anybody any more."""
        def calm():
            s, m = self.daemon.status(), self.daemon.metrics()
            return s["online"] >= devices and m.get("owed") == 0
        wait_until(calm, timeout, "%d devices to be known and told" % devices, interval=0.1)

    def stop(self):
        self.daemon.stop()


class Share:
    """What a receiver read and used between two moments."""

    def __init__(self, receiver):
        self.receiver, self.began, self.read, self.used = receiver, time.monotonic(), receiver.count(), receiver.cpu()

    def wait_for(self, messages, patience=2.0):
        """Waits until that many are read; the number that was, once no more come."""
        last, since = -1, time.monotonic()
        while True:
            n = self.receiver.count() - self.read
            if n >= messages or time.monotonic() - since > patience:
                return n
            if n != last:
                last, since = n, time.monotonic()
            time.sleep(0.01)

    def cpu_us(self, messages):
        """CPU a message in microseconds: all of the process, its reader threads alone, and the first thread alone, which
        runs the loop."""
        now = self.receiver.cpu()
        spent = {name: s - self.used.get(name, 0) for name, s in now.items()}
        readers = sum(s for name, s in spent.items() if name.startswith("hw-reader"))
        loop = spent.get(Path("/proc/%d/comm" % self.receiver.pid).read_text().strip(), 0)
        return tuple(s * 1e6 / messages for s in (sum(spent.values()), readers, loop))
