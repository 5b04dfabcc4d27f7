#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The fault suite: `make faults` runs five of each kind, `make faults-full` the counts below.

Every run follows from its seed, which is its kind and its number, so `faults.py --kind K --first I --count 1` repeats it. With
--state FILE, passed runs are remembered together with the daemon's checksum, and the next call continues after them.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import host  # noqa: E402
import kill  # noqa: E402
import sight  # noqa: E402
import store  # noqa: E402
from hw_build import HEARTWHEELD  # noqa: E402
from shim import POINTS, Shim  # noqa: E402
from world import Netns, Void, World  # noqa: E402

BLOCK = 10  # so many runs share a world
TRIES = 4   # a void run is repeated


def command(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=20)


# --- kinds


class Kind:
    def __init__(self, name, count, run, world=None, netns=False, shim=False, quick=5, make=World):
        self.name, self.count, self.run, self.quick, self.make = name, count, run, quick, make
        self.options, self.netns, self.shim = world or (lambda rng: {}), netns, shim


def sight_world(rng):
    return {"mqtt": {"protocol": rng.choice(["5", "3.1.1"]), "qos": rng.choice([0, 0, 1]),
                     "readers": rng.choice([1, 1, 2])}}


def restart_world(rng):
    return dict(sight_world(rng), persistence=rng.random() < 0.5)


def kill_world(rng):
    """In half of them, the next run publishes only what P names."""
    world = dict(sight_world(rng), timeout=0.8, grace=0.2, interval=0.15, persistence=rng.random() < 0.5)
    world["mqtt"]["republish_rate"] = rng.choice([0, 5000])
    return world


def store_kind(name):
    return Kind(name, 50, lambda world, rng, index: store.run(world, rng, index, name),
                lambda rng: store.options(name))


KINDS = [
    Kind("stop-daemon", 100, sight.stop_daemon, sight_world),
    Kind("stop-broker", 100, sight.stop_broker, sight_world),
    Kind("restart-broker", 50, sight.restart_broker, restart_world),
    Kind("cut-link", 50, sight.cut_link, sight_world, netns=True),
    Kind("kill-random", 250, kill.at_random, kill_world, shim=True),
    Kind("kill-point", 250, kill.at_points, kill_world, shim=True, quick=len(POINTS)),
    *[store_kind(name) for name in store.FAULTS],
    Kind("descriptors", 50, host.no_descriptors, sight_world),
    Kind("log-full", 50, host.full_log, lambda rng: {"log_file": True}),
    Kind("memory", 100, host.no_memory, kill_world, shim=True),
]


class Suite:
    """What one program runs: its name, its kinds, and the daemon that it tests."""

    def __init__(self, name, program, kinds):
        self.name, self.program, self.kinds = name, program, kinds
        self.by_name = {k.name: k for k in kinds}

    def checksum(self):
        return hashlib.sha256(self.program.read_bytes()).hexdigest()


# --- one worker: some runs of one kind, one after another


class Worker:
    def __init__(self, kind, report, keep):
        self.kind, self.report, self.keep = kind, report, keep
        self.base = tempfile.mkdtemp(prefix="hwf-", dir="/tmp")
        os.chmod(self.base, 0o755)
        self.world = self.block = self.shim = self.netns = None
        self.worlds = 0

    def open(self, block):
        rng = random.Random("%s world %d" % (self.kind.name, block))
        self.worlds += 1
        if self.kind.netns:
            self.netns = Netns(os.getpid() % 100000, command)
            why = self.netns.make()
            if why:
                return why
        if self.kind.shim:
            directory = os.path.join(self.base, "shim%d" % self.worlds)
            os.mkdir(directory)
            self.shim = Shim(directory)
        self.block = block
        self.world = self.kind.make(self.base, shim=self.shim, netns=self.netns, **self.kind.options(rng))
        self.world.begin()
        return None

    def close(self):
        world, self.world = self.world, None
        wrong = None
        if world:
            try:
                world.close()
            except AssertionError as e:
                wrong = e
        if self.netns:
            self.netns.remove()
            self.netns = None
        if wrong:
            raise wrong

    def show(self, index):
        if self.world and self.keep:
            to = Path(self.keep) / ("%s-%d" % (self.kind.name, index))
            to.mkdir(parents=True, exist_ok=True)
            for path, text in self.world.env.logs():
                (to / Path(path).name).write_text(text)

    def one(self, index):
        """("passed" | "failed" | "skipped", what)"""
        what = ""
        for attempt in range(TRIES):
            try:
                if self.world is None or self.block != index // BLOCK:
                    self.close()
                    why = self.open(index // BLOCK)
                    if why:
                        return "skipped", why
                seed = "%s %d" % (self.kind.name, index) + (" again %d" % attempt if attempt else "")
                found = self.kind.run(self.world, random.Random(seed), index)
                self.world.daemon.check_log()
                return "passed", found
            except Void as e:
                what = "void %d times, the last because %s" % (attempt + 1, e)
            except Exception as e:  # an exception of any kind is this run's failure
                what = "%s: %s" % (type(e).__name__, e)
                if not isinstance(e, AssertionError):
                    what += "\n" + traceback.format_exc()
                self.show(index)
                self.abandon()
                return "failed", what
            self.abandon()
        return "failed", what

    def abandon(self):
        try:
            self.close()
        except Exception as e:  # already reported: the run has failed
            sys.stderr.write("closing: %s\n" % e)
        self.world = None

    def work(self, indexes):
        for index in indexes:
            began = time.monotonic()
            how, what = self.one(index)
            self.report({"kind": self.kind.name, "index": index, "how": how, "what": what,
                         "seconds": round(time.monotonic() - began, 2)})
            if how == "skipped":
                break
        try:
            self.close()
        except Exception as e:
            self.report({"kind": self.kind.name, "index": -1, "how": "failed", "what": str(e), "seconds": 0})
        shutil.rmtree(self.base, ignore_errors=True)


def say(line):
    print(json.dumps(line), flush=True)


# --- the driver: workers side by side, results, what was done before


class State:
    def __init__(self, path, checksum):
        self.path, self.lines = path and Path(path), []
        if not self.path:
            return
        if self.path.exists():
            first, *rest = self.path.read_text().splitlines() or [""]
            if first == checksum:
                self.lines = [json.loads(line) for line in rest]
                return
            self.path.rename(str(self.path) + ".old")
        self.path.write_text(checksum + "\n")

    def add(self, line):
        self.lines.append(line)
        if self.path:
            with open(self.path, "a") as f:
                f.write(json.dumps(line) + "\n")

    def latest(self, kind):
        """{index: its latest result}"""
        return {r["index"]: r for r in self.lines if r["kind"] == kind}


def jobs(state, kinds, first, count, full):
    """[(kind, indexes that have not passed yet)], in pieces of a block, so that several workers can share a kind."""
    out = []
    for k in kinds:
        n = count if count is not None else k.count if full else k.quick
        passed = {i for i, r in state.latest(k.name).items() if r["how"] == "passed"}
        todo = [i for i in range(first, first + n) if i not in passed]
        pieces = collections.defaultdict(list)
        for i in todo:
            pieces[i // BLOCK].append(i)
        out += [(k, p) for p in pieces.values()]
    return out


def drive(args, suite, state):
    kinds = [suite.by_name[n] for n in args.kind] if args.kind else suite.kinds
    skipped, lock = {}, threading.Lock()

    def take(kind, r):
        with lock:
            if r["how"] == "skipped":
                skipped[kind.name] = r["what"]
                return
            state.add(r)
            if r["how"] == "failed" or args.verbose:
                print("%s %d: %s after %.1f s: %s" % (kind.name, r["index"], r["how"], r["seconds"], r["what"]),
                      flush=True)

    def piece(kind, indexes):
        if kind.name in skipped:
            return
        left = set(indexes)
        p = subprocess.Popen([sys.executable, sys.argv[0], "--worker", kind.name, "--indexes",
                              ",".join(map(str, indexes)), *(["--keep", args.keep] if args.keep else [])],
                             stdout=subprocess.PIPE, text=True)
        for text in p.stdout:
            r = json.loads(text)
            left.discard(r["index"])
            take(kind, r)
        code = p.wait()
        for index in sorted(left) if kind.name not in skipped else ():
            take(kind, {"kind": kind.name, "index": index, "how": "failed",
                        "what": "its worker ended with %d" % code, "seconds": 0})

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for done in [pool.submit(piece, *job) for job in jobs(state, kinds, args.first, args.count, args.full)]:
            done.result()
    return summary(suite.name, state, kinds, skipped)


def tells_late(kind, results):
    """Whether the victims of a kind were, by their median, reported later than the contract allows. Single ones may have waited
    for a processor."""
    late = sorted(ms for r in results if r["how"] == "passed" for ms in r["what"].get("late_ms", ()))
    if len(late) < 10 or late[len(late) // 2] <= 1000 * sight.CONTRACT:
        return False
    print("%s: told %d ms late in the median of %d" % (kind.name, late[len(late) // 2], len(late)))
    return True


def summary(name, state, kinds, skipped):
    passed = failed = 0
    for k in kinds:
        if k.name in skipped:
            print("skipped: %s %s: %s" % (name, k.name, skipped[k.name]))
            continue
        results = state.latest(k.name).values()
        good = sum(r["how"] == "passed" for r in results)
        bad = sum(r["how"] == "failed" for r in results)
        if tells_late(k, results):
            bad += 1
        print("%s: %d passed, %d failed" % (k.name, good, bad))
        counts = sum((collections.Counter(r["what"].get("counts")) for r in results if r["how"] == "passed"),
                     collections.Counter())
        if counts:
            print("    " + ", ".join("%d %s" % (n, what) for what, n in counts.items()))
        passed, failed = passed + good, failed + bad
    print("%s: %d passed, %d failed, %d skipped" % (name, passed, failed, len(skipped)), flush=True)
    return 1 if failed or not passed else 0


def main(suite, description):
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kind", action="append", choices=sorted(suite.by_name), help="only this one (repeatable)")
    p.add_argument("--full", action="store_true", help="the full counts instead of 5 of each")
    p.add_argument("--count", type=int, help="so many of each")
    p.add_argument("--first", type=int, default=0, help="the first run's number")
    p.add_argument("--jobs", type=int, default=2, help="worlds side by side")
    p.add_argument("--state", help="file that remembers what was done")
    p.add_argument("--keep", help="directory for the logs of failed runs")
    p.add_argument("--verbose", action="store_true", help="a line for each run")
    p.add_argument("--list", action="store_true", help="list the kinds and their counts")
    p.add_argument("--worker", help=argparse.SUPPRESS)
    p.add_argument("--indexes", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.list:
        for k in suite.kinds:
            print("%-20s %4d" % (k.name, k.count))
        return 0
    if args.worker:
        Worker(suite.by_name[args.worker], say, args.keep).work([int(i) for i in args.indexes.split(",")])
        return 0
    if not suite.program.exists():
        print("no %s: set HW_BUILD to the build directory" % suite.program, file=sys.stderr)
        return 1
    return drive(args, suite, State(args.state, suite.checksum()))


if __name__ == "__main__":
    sys.exit(main(Suite("faults", HEARTWHEELD, KINDS), __doc__))
