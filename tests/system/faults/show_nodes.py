#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`./quickstart --nodes N`: several monitors of one fleet, which loses one of them by SIGKILL, another by SIGSTOP, and the
master of Redis. Ends with 0 only if no device that beat was called offline, and each true death was reported once."""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from hw_build import HEARTWHEELCTL  # noqa: E402
from hw_env import Env  # noqa: E402
from hw_nodes import PARTITIONS, Mirror, Told  # noqa: E402
from hw_sentinel import NAME, Guarded  # noqa: E402
from hw_void import MARGIN  # noqa: E402
from hw_wait import wait_until  # noqa: E402

LEASE, TIMEOUT, INTERVAL = 1.0, 2.0, 0.5
DEVICES = 48
PATIENCE = 60


class Show:
    def __init__(self, base, n):
        self.env = Env(None, None, base)
        self.env.node, self.env.root, self.env.prefix, self.env.check_events = "monitor", "nodes", "device:", False
        self.guarded = Guarded(self.env).start()
        self.guarded.settled()
        self.mirror = Mirror(self.env, n, LEASE, TIMEOUT, guarded=self.guarded)
        self.herd = self.told = None
        self.began = time.monotonic()
        self.takeovers, self.wrong, self.deaths, self.late = [], False, 0, []

    def say(self, text, *values):
        print("%6.1f s  %s" % (time.monotonic() - self.began, text % values), flush=True)

    def begin(self):
        self.mirror.start(patience=PATIENCE)
        self.mirror.wait_calm(PATIENCE)
        self.herd = self.mirror.herd(DEVICES, "sensor-%02d", interval=INTERVAL)
        self.herd.__enter__()
        self.herd.revive()
        wait_until(lambda: all(map(self.herd.heard, self.herd.beasts)), PATIENCE, "the devices to beat")
        self.told = Told(self.mirror, self.herd)
        self.told.agree(PATIENCE)

    def explain(self):
        sock = self.mirror.nodes[0].socket
        redis, broker = self.env.redis_server.port, self.env.broker.port
        print("""
%d monitors mirror one another (mode = mirror, a lease of %g s): one broker, one Redis with a replica and three Sentinels.
%d devices beat every %g s, with a timeout of %g s. Meanwhile, in another terminal:
  %s -s %s nodes
  redis-cli -p %d hgetall device:nodes                         the monitors
  redis-cli -p %d xread block 0 streams device:events '$'      each transition, with the epoch of its owner
  mosquitto_sub -p %d -v -t 'heartwheel/+/status'              what each monitor says of itself
  redis-cli -p %d sentinel get-master-addr-by-name %s     where Redis' master is
It ends by itself, in half a minute.
""" % (len(self.mirror.nodes), LEASE, DEVICES, INTERVAL, TIMEOUT, os.path.relpath(HEARTWHEELCTL), sock, redis, redis, broker,
            self.guarded.sentinels[0].port, NAME), flush=True)

    # what is shown

    def ownership(self):
        owners = self.mirror.owners()
        for d in self.mirror.nodes:
            mine = sum(node == d.node for node in owners.values())
            devices = self.mirror.owned_by(d, self.herd.beasts)
            self.say("  %s owns %3d of %d partitions, and %2d devices with them%s", d.node, mine, PARTITIONS, len(devices),
                     "" if d.alive else ", as it does not run")

    def is_shared(self, nodes):
        try:
            return self.mirror.is_shared(nodes)
        except Exception:  # Redis' master may be away
            return False

    def lose(self, node, number):
        """A node is killed or suspended; one of its devices stops just before, and one with it."""
        mine = self.mirror.owned_by(node, sorted(self.herd.living()))
        victims = mine[:2]
        self.herd.kill(*victims[:1])
        time.sleep(0.4 * TIMEOUT)
        self.mirror.crash(node, number)
        began = time.monotonic()
        self.herd.kill(*victims[1:])
        self.say("%s gets %s; of its devices %s fall silent", node.node, number.name, " and ".join(victims))
        left = [d for d in self.mirror.nodes if d is not node]
        wait_until(lambda: self.is_shared(left), PATIENCE, "the others to take over", interval=0.01)
        self.takeovers.append((number.name, time.monotonic() - began))
        self.say("taken over after %.2f s (the contract: %.1f s)", self.takeovers[-1][1], 1.4 * LEASE + 0.1)
        self.settle(victims)

    def settle(self, victims):
        self.told.wait(PATIENCE)
        for v in victims:
            self.deaths += 1
            self.late.append(self.told.late(v))
            self.say("%s is told offline, %.3f s after its timeout, by %s", v, self.late[-1], self.told.entries[v][-1]["node"])

    def come_back(self):
        back = sorted(self.herd.dead())
        self.herd.revive(*back)
        self.told.wait(PATIENCE)
        self.say("told online, as heard again: %s", ", ".join(back))

    def fail_over(self):
        old = self.guarded.settled()
        victim = sorted(self.herd.living())[0]
        self.say("Redis' master (port %d) gets SIGKILL; %s falls silent", old.port, victim)
        began = time.monotonic()
        self.herd.kill(victim)
        old.signal(signal.SIGKILL)
        old.wait()
        new = self.guarded.master(but=old)
        self.say("the Sentinels have made port %d the master, after %.1f s", new.port, time.monotonic() - began)
        self.settle([victim])
        self.come_back()

    def play(self):
        killed, stopped = self.mirror.nodes[:2]
        self.ownership()
        self.lose(killed, signal.SIGKILL)
        self.ownership()
        self.come_back()
        self.say("%s is started again", killed.node)
        killed.start()
        self.mirror.wait_shared(patience=PATIENCE)
        self.lose(stopped, signal.SIGSTOP)
        self.say("%s gets SIGCONT: it has to find out that it owns nothing any more", stopped.node)
        stopped.signal(signal.SIGCONT)
        self.mirror.wait_shared(patience=PATIENCE)
        self.come_back()
        self.fail_over()
        self.mirror.wait_calm(PATIENCE)
        self.ownership()

    # what was to be seen

    def expect(self, what, proof):
        try:
            proof()
            print("  yes  " + what, flush=True)
        except Exception as e:  # whatever the exception is, the transition was not seen
            print("  NO   %s: %s" % (what, str(e)[:600]), flush=True)
            self.wrong = True

    def punctual(self):
        late = self.herd.gaps.worst()
        assert late < TIMEOUT - MARGIN, "one wrote nothing for %.2f s; this machine is too busy for the show" % late

    def verify(self):
        print("\nWhat stream, statuses, Redis and the monitors say:")
        self.expect("every device that beat did so in time", self.punctual)
        self.expect("no device that beat was called offline, and each of %d deaths was told once" % self.deaths,
                    lambda: (self.told.check(), self.told.check_statuses()))
        self.expect("Redis and the retained statuses are as the truth", self.told.agree)
        self.expect("each monitor's API answers for the whole fleet", lambda: self.told.agree_all(self.mirror.nodes))
        print("taken over after %s; deaths were told %.3f s after their timeout at the latest\n" % (
            ", ".join("%.2f s (%s)" % (s, how) for how, s in self.takeovers), max(self.late, default=0)))

    def close(self):
        if self.herd:
            self.herd.stop()
        wrong = self.env.close()
        self.env.remove()
        if wrong:
            raise wrong


def run(base, n):
    show = Show(base, n)
    try:
        show.begin()
        show.explain()
        show.play()
        show.verify()
    except AssertionError as e:
        print("What was to be seen was not: %s" % str(e)[:2000], flush=True)
        show.wrong = True
    for path, text in show.env.logs() if show.wrong else ():
        if path.endswith("heartwheeld.log"):
            print("--- the end of %s\n%s" % (path, text[-1500:]))
    show.close()
    return 1 if show.wrong else 0


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--nodes", type=int, default=3, choices=range(2, 9))
    args = p.parse_args()
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda *_: sys.exit(143))
    base = tempfile.mkdtemp(prefix="heartwheel-", dir="/tmp")
    os.chmod(base, 0o755)
    try:
        return run(base, args.nodes)
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
