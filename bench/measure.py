# SPDX-License-Identifier: MIT
"""What every bench shares: its command line, the figures that it prints, and what a process has used.

A bench does one run: it is called as `bench/NAME.py --build DIR [--smoke]` and prints one JSON object a line, each by
figure(). bench/run repeats it, takes medians and judges them.
"""
import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests" / "system"
HZ = os.sysconf("SC_CLK_TCK")


def options(description):
    """The command line of a bench: .build (a directory), .smoke (small sizes). Makes hw_env importable for it."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--build", default=os.environ.get("HW_BUILD", "build"), type=Path, help="the build directory")
    p.add_argument("--smoke", action="store_true", help="small sizes: does it run at all")
    p.add_argument("--full", action="store_true", help="of a bench with short sizes: those for a quiet machine")
    o = p.parse_args()
    o.build = o.build.resolve()
    os.environ["HW_BUILD"] = str(o.build)
    sys.path.insert(0, str(TESTS))
    return o


# What a device of flesh and blood says of itself: seven members, all of which mean something.
SEVEN = ('{"time":1700000000,"online":true,"battery":87,"rssi":-67.5,"ip":"192.168.17.42","version":"2.4.1",'
         '"uptime":86400}')

_conditions = ""


def conditions(text):
    """What holds for every figure from here on: how many devices, what payload, how many heartbeats a timeout."""
    global _conditions
    _conditions = text


def figure(target, label, value, unit, goal=None, note=None, worst=False):
    """One measured figure. `target`: the section of the table that it belongs to. `label` names it uniquely among all
    benches. `unit`: "ns", "bytes", "/s", "ms", "x" (a ratio within this run), ... `goal`: (">=" or "<=", number) or
    None. `worst`: the goal has to be met by every run, and not by the median: of what is lost or early, or of a bound."""
    print(json.dumps({"target": target, "label": label, "value": value, "unit": unit, "goal": goal, "note": note,
                      "worst": worst, "conditions": _conditions}), flush=True)


def need(o, *programs):
    """Programs of the bench that must have been built."""
    missing = [p for p in programs if not (o.build / "bench" / p).exists()]
    if missing:
        raise SystemExit("no bench/%s in %s: make bench there first" % (missing[0], o.build))


def relay(o, program, *arguments):
    """Runs a program of the bench that prints lines `KEY VALUE` and gives them back as {key: float}."""
    need(o, program)
    out = subprocess.run([str(o.build / "bench" / program), *map(str, arguments)], check=True, stdout=subprocess.PIPE,
                         text=True).stdout
    return {key: float(value) for key, value in (line.rsplit(None, 1) for line in out.splitlines() if line)}


@contextlib.contextmanager
def world(redis=(), bare=(), **broker):
    """An Env with a broker and a Redis of its own, in a directory of its own; and besides, for each options in `bare`, a
    Redis server that is not started. Gives (env, these servers); all is gone afterwards."""
    from hw_env import Env  # since options()
    from hw_servers import Broker, Redis
    base = tempfile.mkdtemp(prefix="hwb-", dir="/tmp")
    homes = [os.path.join(base, name) for name in ["mq"] + ["raw%d" % i for i in range(len(bare))]]
    for home in homes:
        os.mkdir(home)
    server = Broker(homes[0], **broker).start()
    env, servers = Env(server, None, base), [Redis(home, options=o) for home, o in zip(homes[1:], bare)]
    try:
        env.own_redis(options=redis)
        yield env, servers
    finally:
        env.close()
        for s in servers + [server]:
            s.kill()
        shutil.rmtree(base, ignore_errors=True)


def cpu_s(pid):
    """User and system time of a process, in seconds."""
    fields = Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / HZ


def cpu_us(pid):
    """CPU time of a process that neither begins nor ends a thread meanwhile: finer than cpu_s()."""
    return sum(int(t.read_text().split()[0]) for t in Path("/proc/%d/task" % pid).glob("*/schedstat")) / 1000


class Spent:
    """CPU time of some processes, {name: pid}, and of the whole machine, from when it was made until end()."""

    def __init__(self, pids):
        self.pids, self.began, self.busy = pids, time.monotonic(), self.machine()
        self.used = {name: cpu_us(pid) for name, pid in pids.items()}

    @staticmethod
    def machine():
        """(cores' seconds that were worked in, those that the host took away)"""
        user, nice, system, _idle, _waits, irq, soft, stolen = map(int, Path("/proc/stat").read_text().split()[1:9])
        return (user + nice + system + irq + soft) / HZ, stolen / HZ

    def end(self):
        self.us = {name: cpu_us(pid) - self.used[name] for name, pid in self.pids.items()}
        self.wall = time.monotonic() - self.began
        self.cores, self.stolen = ((now - then) / self.wall for now, then in zip(self.machine(), self.busy))
        return self

    def note(self):
        return "%.2f of the machine's %d cores were busy" % (self.cores, len(os.sched_getaffinity(0))) + (
            ", and %.2f stolen" % self.stolen if self.stolen >= 0.01 else "")


def rss_kb(pid):
    for line in Path("/proc/%d/status" % pid).read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def percentile(values, p):
    """The p-th percentile (0-100) of some values, by nearest rank; the values need not be sorted."""
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))]


class Stopwatch:
    """Wall time and the CPU time of some processes since it was made."""

    def __init__(self, *pids):
        self.pids, self.began, self.used = pids, time.monotonic(), [cpu_s(p) for p in pids]

    def wall(self):
        return time.monotonic() - self.began

    def cpu(self):
        return sum(cpu_s(p) for p in self.pids) - sum(self.used)
