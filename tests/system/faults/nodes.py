#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Faults of several nodes: `make faults-nodes`. Two and three nodes that mirror one another, or one of which owns the fleet
while the others stand by (--mode standby), as separate processes, on a mosquitto without persistence and a Redis with a replica
and Sentinels, which each node reaches through relays that can be cut. Devices beat; all the while some truly stop and return.
Counted are: devices that beat and are called offline; transitions that the stream lacks or has twice; deaths that are reported
later than the contract allows; whether in the end the stream, Redis, the retained statuses and every node's API are true.

Each round follows from its seed, its kind and number: --kind K --first I --rounds 1 repeats it."""
import argparse
import collections
import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import redis

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from hw_build import HEARTWHEELD  # noqa: E402
from hw_env import Env  # noqa: E402
from hw_mqtt import RawMqtt  # noqa: E402
from hw_nodes import Mirror, Standby, Told  # noqa: E402
from hw_process import own_numbers  # noqa: E402
from hw_sentinel import Guarded  # noqa: E402
from hw_void import MARGIN  # noqa: E402
from hw_wait import wait_until  # noqa: E402

BLOCK = 5     # so many rounds share a world
WAITING = 4000
TRIES = 4     # a void round is repeated
PATIENCE = 40
SLACK = 1.0   # seconds that a busy machine may add to the contract's bounds


class Void(Exception):
    """The devices themselves were late: the round proves nothing and is repeated."""


class Trickle:
    """Now and then a device stops; it returns once its death was reported."""

    def __init__(self, world, rng, every=0.25):
        self.world, self.rng, self.every = world, rng, every
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        self.thread.join(10)

    def run(self):
        herd = self.world.herd
        while not self.stopping.wait(self.every * self.rng.uniform(0.5, 1.5)):
            mortals = self.world.mortals()
            if self.world.may_die and mortals and len(herd.living()) > len(herd.beasts) // 2:
                herd.kill(self.rng.choice(mortals))
            for d in sorted(herd.dead()):
                if self.world.is_told(d) and self.rng.random() < 0.5:
                    herd.revive(d)


def unread(port, ends):
    """Bytes between these connections and this port that were written and not read."""
    total = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, remote, _, queues = line.split()[1:5]
        local, remote = (int(a.split(":")[1], 16) for a in (local, remote))
        sent, received = (int(q, 16) for q in queues.split(":"))
        if local == port and remote in ends:
            total += received
        elif local in ends and remote == port:
            total += sent
    return total


class World:
    """Servers, nodes and devices that some rounds share."""

    def __init__(self, base, n, devices, lease=1.0, timeout=2.0, mode="mirror"):
        self.env = Env(None, None, base)
        self.guarded = Guarded(self.env).start()
        self.guarded.settled()
        make = {"mirror": Mirror, "standby": Standby}[mode]
        self.mirror = make(self.env, n, lease, timeout, cuttable=True, guarded=self.guarded)
        self.names = 0
        self.herd = self.mirror.herd(devices, interval=timeout / 4, links=max(4, devices // 50))
        self.told = None
        self.may_die = True
        self.empty = None   # the server that has just started with nothing in it
        self.troubled = []  # (from, until) by the wall clock: no node, or not every node, could see
        self.takeovers, self.waiting = [], []
        self.judged = {}    # {device: how many of its deaths are in `late`}
        self.late = []      # seconds after its timeout, for each death of this round
        self.beyond = []    # the deaths that were later than the bound

    def begin(self):
        self.mirror.start(patience=PATIENCE)
        self.herd.__enter__()
        self.herd.revive()
        wait_until(lambda: all(map(self.herd.heard, self.herd.beasts)), PATIENCE, "the herd to beat")
        self.told = Told(self.mirror, self.herd)
        self.told.agree(PATIENCE)
        return self

    def close(self):
        self.herd.stop()
        self.mirror.close()
        self.env.check_events = False
        wrong = self.env.close()
        self.env.remove()
        if wrong:
            raise wrong

    # what a round says of itself

    @contextlib.contextmanager
    def troubles(self):
        """During this time a death may wait: its deadline is a timeout after the time's end."""
        began = time.time()
        yield
        self.troubled.append((began, time.time()))

    def take_over(self, began, left):
        """Waits until these nodes alone own all partitions."""
        def look():
            try:
                return self.mirror.is_shared(left)
            except redis.exceptions.RedisError:
                return False
        wait_until(look, PATIENCE, "all partitions to be owned by %s" % [d.node for d in left], interval=0.02)
        self.takeovers.append(time.monotonic() - began)

    def note_waiting(self, relays=(), sock=None, statuses=()):
        """How many statuses wait between their writers and the broker, which stands still; by their bytes."""
        time.sleep(0.1)  # what is on its way is counted twice
        ends = [far.getsockname()[1] for r in relays for _, far in list(r.pairs)] if relays else [sock.getsockname()[1]]
        some = statuses or [(m.topic, m.payload) for m in self.told.observer.messages[-200:] if not m.retain]
        lengths = [len(RawMqtt.packet(0x33, RawMqtt.text(t) + bytes(2 * bool(relays)) + (p if isinstance(p, bytes) else p.encode())))
                   for t, p in some]
        self.waiting.append(round(unread(self.env.broker.port, ends) * len(lengths) / max(1, sum(lengths))))

    def stale(self, devices, old):
        """The devices whose retained status is the old owner's."""
        found = self.env.retained(self.env.root + "/+/status")
        kept = {d: found[self.env.status_topic(d)].json() for d in devices if self.env.status_topic(d) in found}
        return [(d, j) for d, j in kept.items() if j.get("stale") or j["epoch"] <= old[d]["epoch"]]

    def is_told(self, device):
        """Whether the device's present death is in a status: a new owner may repeat that of the owner before."""
        died = self.herd.last(device)
        told = self.told.statuses.get(device, ())
        return (bool(told) and died is not None and told[-1][1]["online"] is False
                and told[-1][1]["time"] + 1 >= died + self.mirror.timeout)

    def mortals(self):
        """The devices that may stop. If one node alone hears the fleet, only those whose return is in a status: a device that
        returned and stopped again before a new owner heard the fleet is known to no node."""
        living = sorted(self.herd.living())
        if self.mirror.mode == "mirror":
            return living
        told = self.told.statuses
        return [d for d in living if told.get(d) and told[d][-1][1]["online"]]

    def judge_deaths(self, bound):
        """How late each death of this round was reported, by the stream or a status, whichever was first."""
        for name, b in self.herd.beasts.items():
            deaths = [e for e in self.told.entries[name] if e["state"] == "offline"]
            for k in range(self.judged.get(name, 0), len(deaths)):
                self.judge_death(b, b.lives[k], deaths[k], bound)
            self.judged[name] = len(deaths)

    def judge_death(self, b, life, entry, bound):
        at = [int(entry["entry"].split("-")[0]) / 1000]
        at += [wall for wall, j in self.told.statuses[b.name] if j["seq"] == int(entry["seq"])]
        deadline = life.last + self.mirror.timeout
        for began, until in self.troubled:
            if began < min(at) and until > life.last:
                deadline = max(deadline, until + self.mirror.timeout)
        self.late.append(min(at) - life.last - self.mirror.timeout)
        if min(at) - deadline > bound:
            self.beyond.append("%s: %.3f s" % (b.name, min(at) - deadline))

    # a round

    def round(self, kind, rng):
        self.late, self.beyond, self.takeovers, self.troubled, self.waiting = [], [], [], [], []
        self.herd.gaps.longest = 0.0
        self.empty = None
        kind.prepare(self)
        try:
            with Trickle(self, rng):
                time.sleep(rng.uniform(0.2, 1.0))
                kind.run(self, rng)
                self.listen_for(rng.uniform(0.5, 1.5))
            self.agree()
            self.judge_deaths(kind.bound(self.mirror) + self.mirror.begins())
        except (AssertionError, redis.exceptions.RedisError) as e:
            self.check_herd(e)
            raise
        self.check_herd(None)
        if self.beyond:
            raise AssertionError("LATE: %d of %d deaths later than %.1f s: %s" % (
                len(self.beyond), len(self.late), kind.bound(self.mirror) + self.mirror.begins(), "; ".join(self.beyond[:5])))

    def has_lost_all(self):
        """Whether the Sentinels promoted the server that had just started empty: they do so if the other one seems down for a
        moment. All reports are then made again, as they must be, and the round proves nothing."""
        return self.empty is not None and self.guarded.agreed() is self.empty

    def listen_for(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.told.hear()
            time.sleep(0.05)

    def agree(self):
        self.told.agree(PATIENCE)
        self.mirror.wait_shared(patience=PATIENCE)
        self.told.agree_all(self.mirror.who_answer([d for d in self.mirror.nodes if d.alive]), PATIENCE)

    def check_herd(self, why):
        """Void if a device's own gap may have exceeded its timeout."""
        if self.herd.gaps.worst() >= self.mirror.timeout - MARGIN and (why or self.beyond):
            raise Void("a device wrote nothing for %.2f s: %s" % (self.herd.gaps.worst(), why))

    def shared_again(self):
        """The nodes that were away are back, and have been for as long as a timeout."""
        with self.troubles():
            self.listening(lambda: self.is_settled())

    def is_settled(self):
        try:
            return self.mirror.is_steady([d for d in self.mirror.nodes if d.alive])
        except redis.exceptions.RedisError:
            return False

    def listening(self, predicate):
        def look():
            self.told.hear()
            return predicate()
        wait_until(look, PATIENCE, "all partitions to be shared again", interval=0.03)


# --- kinds


def start(world, node):
    """The node runs again, and sees."""
    with world.troubles():
        node.start(seeing=False)
        world.mirror.wait_seeing([node], PATIENCE)
        world.listening(world.is_settled)


def pick(world, rng, chance=0.75):
    """Any of the nodes; if one owns the fleet, mostly that one."""
    owners = [d for d in world.mirror.who_answer(world.mirror.nodes) if d] or world.mirror.nodes
    return rng.choice(owners if rng.random() < chance else world.mirror.nodes)


def kill(world, rng):
    lost = pick(world, rng)
    left = [d for d in world.mirror.nodes if d is not lost]
    began = time.monotonic()
    world.mirror.crash(lost)
    world.take_over(began, left)
    world.listen_for(rng.uniform(0, world.mirror.timeout))
    start(world, lost)


def stop(world, rng):
    """Stands still for less than a lease, or for longer."""
    still = pick(world, rng)
    left = [d for d in world.mirror.nodes if d is not still]
    began = time.monotonic()
    still.signal(signal.SIGSTOP)
    if rng.random() < 0.5:
        with world.troubles():
            world.listen_for(rng.uniform(0.2, 1.5) * world.mirror.lease)
            still.signal(signal.SIGCONT)
            world.listen_for(0.3)
    else:
        world.take_over(began, left)
        world.listen_for(rng.uniform(0, world.mirror.timeout))
        still.signal(signal.SIGCONT)
    world.shared_again()


def cut(which):
    def run(world, rng):
        away = pick(world, rng)
        left = [d for d in world.mirror.nodes if d is not away]
        relays = []
        if which != "redis":
            relays += world.mirror.from_broker(away)
        if which != "broker":
            relays += world.mirror.from_redis(away)
        silently, began = rng.random() < 0.6, time.monotonic()
        for r in relays:
            r.cut(silently)
        if rng.random() < 0.3:
            with world.troubles():
                world.listen_for(rng.uniform(0.2, 1.5) * world.mirror.lease)
        else:
            world.take_over(began, left)
            world.listen_for(rng.uniform(0, world.mirror.timeout))
        for r in relays:
            r.mend()
        world.shared_again()
    return run


def fail_over(world, rng):
    """The master of Redis is killed, or suspended and later continued."""
    old = world.guarded.settled()
    killed = rng.random() < 0.5
    with world.troubles():
        old.signal(signal.SIGKILL if killed else signal.SIGSTOP)
        world.guarded.master(but=old)
        if killed:
            old.wait()
            old.start()
            world.empty = old
        else:
            world.listen_for(rng.uniform(0, 2))
            old.signal(signal.SIGCONT)
        world.listening(world.is_settled)
    world.guarded.settled()


def restart_broker(world, rng):
    world.may_die = False  # a message to a broker that is ending is no heartbeat
    world.listen_for(2 * world.herd.interval)
    with world.troubles():
        world.told.newest.clear()  # the broker has lost what it retained
        world.env.broker.stop(rng.choice([signal.SIGTERM, signal.SIGKILL]))
        world.listen_for(rng.uniform(0.1, 1.5))
        world.env.broker.start()
        wait_until(lambda: world.told.observer.client.is_connected(), PATIENCE, "the observer")
        world.told.newest.clear()
        world.may_die = True
        world.mirror.wait_seeing(world.mirror.nodes, PATIENCE)
        world.listening(world.is_settled)


def roll(world, rng):
    for d in rng.sample(world.mirror.nodes, len(world.mirror.nodes)):
        d.stop()
        world.listen_for(rng.uniform(0, 0.5))
        start(world, d)


def join(world, rng):
    """A node joins while half of the devices die."""
    new = world.mirror.nodes[-1]
    mortals = world.mortals()
    world.herd.kill(*rng.sample(mortals, min(len(mortals), len(world.herd.beasts) // 3)))
    world.listen_for(rng.uniform(0, 1.2 * world.mirror.timeout))
    start(world, new)


def stop_amid_deaths(world, rng):
    """An owner is suspended while its statuses wait in the broker's socket, as many as its window allows; the devices of these
    statuses beat again before the owner resumes."""
    still = pick(world, rng, 1)
    left = [d for d in world.mirror.nodes if d is not still]
    victims = world.mirror.owned_by(still, sorted(world.herd.living()))
    with world.troubles():
        since = world.herd.hasten(victims)
        wait_until(lambda: all(world.herd.last(v) >= since for v in set(victims) - world.herd.dead()), PATIENCE,
                   "all to have beaten", interval=0.005)
        world.herd.kill(*victims)
        wait_until(lambda: any(world.is_told(v) for v in victims if world.told.hear()), PATIENCE, "the first to be told",
                   interval=0.001)
        world.env.broker.signal(signal.SIGSTOP)
        time.sleep(rng.choice([0, 0.02, 0.2, 0.5]))
        still.signal(signal.SIGSTOP)
        began = time.monotonic()
        world.note_waiting(world.mirror.from_broker(still))
        time.sleep(rng.uniform(0.5, 2) * world.mirror.lease)
        world.env.broker.signal(signal.SIGCONT)
        world.take_over(began, left)
        pending = set(victims)

        def are_told():  # some have returned since, and some of those have stopped again
            dead = world.herd.dead()
            pending.difference_update({v for v in pending if v not in dead or world.is_told(v)})
            return not pending
        world.listening(are_told)
        for v in world.herd.dead() & set(victims):
            if world.is_told(v):
                world.herd.revive(v)
        world.listen_for(rng.uniform(0, 1))
        still.signal(signal.SIGCONT)
        world.listening(world.is_settled)


def status_of(world, device):
    """The device's newest status, as a node published it."""
    return max(world.told.statuses[device], key=lambda s: (s[1]["epoch"], s[1]["seq"]))[1]


def backlog(world, rng):
    """4,000 statuses of a suspended owner wait in the broker's socket. A node's window allows fewer, so a plain publisher
    writes them, with the node's client id and claims: for partitions that it owns while none is handed over, since it has no
    claims for those that it has released."""
    world.mirror.wait_calm(PATIENCE)
    still = pick(world, rng, 1)
    left = [d for d in world.mirror.nodes if d is not still]
    victims = world.mirror.owned_by(still, sorted(world.herd.living()))
    presence = "heartwheel/%s/status" % still.node
    wait_until(lambda: all(v in world.told.hear().statuses for v in victims), PATIENCE, "a status of each")
    with world.troubles():
        still.signal(signal.SIGSTOP)
        claims = world.env.retained(presence)[presence].payload
        old = RawMqtt(world.env.broker.port, client_id="heartwheel-%s-pub" % still.node, will=(presence, claims, True))
        old.publish((presence, claims), retain=True)
        world.told.observer.fence()
        world.told.hear()
        stale = {v: dict(status_of(world, v), stale=True) for v in victims}
        wait_until(lambda: world.env.retained(presence)[presence].payload == claims, PATIENCE, "the old claims")
        world.env.broker.signal(signal.SIGSTOP)
        began = time.monotonic()
        some = [(world.env.status_topic(v), json.dumps(stale[v])) for v in (victims * WAITING)[:WAITING]]
        old.sock.settimeout(PATIENCE)
        try:
            old.publish(*some, retain=True)
        except OSError as e:
            raise Void("it was cut off before the broker stood still: %s" % e) from e
        world.note_waiting(sock=old.sock, statuses=some)
        time.sleep(rng.uniform(0.5, 2) * world.mirror.lease)
        world.env.broker.signal(signal.SIGCONT)
        world.take_over(began, left)
        wait_until(old.is_closed, PATIENCE, "the old owner to be cut off")
        world.listening(lambda: not world.stale(victims, stale))
        world.listen_for(rng.uniform(0, 1))
        assert not world.stale(victims, stale), "went back to an old owner's: %s" % world.stale(victims, stale)[:3]
        still.signal(signal.SIGCONT)
        world.listening(world.is_settled)


class Kind:
    def __init__(self, name, count, run, bound=lambda m: 1.4 * m.lease + SLACK, prepare=lambda world: None):
        self.name, self.count, self.run, self.bound, self.prepare = name, count, run, bound, prepare


def without_the_last(world):
    world.mirror.nodes[-1].stop()
    world.mirror.wait_shared(patience=PATIENCE)


def blind_bound(m):
    """A blindness is found by a barrier that is due and does not return; a lease later the partitions are released."""
    return 0.25 * m.timeout + 0.25 + m.lease + 1 + SLACK


KINDS = [
    Kind("kill", 100, kill),
    Kind("stop", 100, stop),
    Kind("cut-redis", 50, cut("redis")),
    Kind("cut-broker", 50, cut("broker"), blind_bound),
    Kind("cut-both", 50, cut("both"), blind_bound),
    Kind("fail-over", 30, fail_over),
    Kind("restart-broker", 20, restart_broker, blind_bound),
    Kind("roll", 20, roll),
    Kind("stop-amid-deaths", 100, stop_amid_deaths, blind_bound),
    Kind("backlog", 100, backlog, blind_bound),
    Kind("join", 20, join, prepare=without_the_last),
]
BY_NAME = {k.name: k for k in KINDS}


# --- the driver


class Counts:
    """The rounds of one kind. They are kept in a file, one a line, so that they can be run in pieces."""

    def __init__(self):
        self.rounds, self.void = {}, 0

    def note(self, index, wrong=None, late=(), takeovers=(), waiting=()):
        self.rounds[index] = {"wrong": wrong, "late": list(late), "takeovers": list(takeovers), "waiting": list(waiting)}
        return self.rounds[index]

    def all(self, what):
        return sorted(x for r in self.rounds.values() for x in r[what])

    @property
    def wrong(self):
        return collections.Counter(r["wrong"] for r in self.rounds.values() if r["wrong"])

    @property
    def failed(self):
        return sum(self.wrong.values())

    @property
    def passed(self):
        return len(self.rounds) - self.failed

    @property
    def deaths(self):
        return len(self.all("late"))


def part(values, share):
    return "%.2f" % values[int(len(values) * share)] if values else "-"


HEAD = ("kind", "rounds", "failed", "void", "deaths", "false", "lost/doubled", "went back", "late", "other", "told p50", "p99",
        "most", "taken over p50", "p99", "most", "waited p50", "most")


def table(counts):
    """The counts of each kind: {name: Counts} -> text. Seconds; told: after a device's timeout."""
    rows = [HEAD]
    for name, c in counts.items():
        late, t, w, n = c.all("late"), c.all("takeovers"), c.wrong, c.all("waiting")
        rows.append((name, len(c.rounds), c.failed, c.void, len(late), w["false offlines"], w["doubled"] + w["lost or doubled"],
                     w["statuses that went back"], w["late"], w["other"] + w["void"], part(late, 0.5), part(late, 0.99),
                     part(late[-1:], 0), part(t, 0.5), part(t, 0.99), part(t[-1:], 0),
                     n[len(n) // 2] if n else "-", n[-1] if n else "-"))
    widths = [max(len(str(r[k])) for r in rows) for k in range(len(HEAD))]
    return "\n".join("  ".join(str(x).ljust(w) if not k else str(x).rjust(w) for k, (x, w) in enumerate(zip(r, widths)))
                     for r in rows)


def sort_of(e):
    """The kind of a failed round's error."""
    text = str(e)
    for word, sort in (("FALSE OFFLINE", "false offlines"), ("EARLY", "false offlines"), ("offline %d", "false offlines"),
                       ("told twice", "doubled"), ("told of a life", "doubled"), ("online before", "doubled"), ("LATE", "late"),
                       ("went back", "statuses that went back"), ("to be as the truth", "lost or doubled")):
        if word in text:
            return sort
    return "other"


class Driver:
    def __init__(self, args):
        self.args, self.base = args, tempfile.mkdtemp(prefix="hwn-", dir="/tmp")
        os.chmod(self.base, 0o755)
        own_numbers()
        self.world, self.kinds = None, {}
        self.recall()

    def recall(self):
        """The rounds that earlier calls kept."""
        if not self.args.results or not os.path.exists(self.args.results):
            return
        for line in Path(self.args.results).read_text().splitlines():
            r = json.loads(line)
            c = self.kinds.setdefault(r["kind"], Counts())
            c.void += r["void"]
            c.note(r["index"], r["wrong"], r["late"], r["takeovers"], r.get("waiting", ()))

    def note(self, kind, index, n, void, **what):
        """Notes the end of a round."""
        counts = self.kinds[kind.name]
        counts.void += void
        r = counts.note(index, **what)
        if self.args.results:
            with open(self.args.results, "a", encoding="utf-8") as f:
                f.write(json.dumps({"kind": kind.name, "index": index, "nodes": n, "void": void, **r}) + "\n")

    def open(self, n):
        self.world = World(self.base, n, self.args.devices, self.args.lease, self.args.timeout, self.args.mode)
        self.world.begin()

    def shut(self, quietly=False):
        world, self.world = self.world, None
        if world is None:
            return
        try:
            world.close()
        except AssertionError:
            if not quietly:
                raise

    def keep(self, kind, index):
        if not self.args.keep or not self.world:
            return
        to = Path(self.args.keep) / ("%s-%d" % (kind.name, index))
        to.mkdir(parents=True, exist_ok=True)
        for k, (path, text) in enumerate(self.world.env.logs()):
            (to / ("%d-%s" % (k, Path(path).name))).write_text(text)
        told = self.world.told
        if told:
            (to / "stream").write_text("\n".join(str(e) for es in told.entries.values() for e in es))
            (to / "published").write_text("\n".join("%.3f %s" % (m.wall, m) for m in told.observer.messages))

    def one(self, kind, index):
        for attempt in range(TRIES):
            n = 2 + index // BLOCK % 2
            rng = random.Random("%s %d %d" % (kind.name, index, attempt))
            began = time.monotonic()
            try:
                if self.world is None or len(self.world.mirror.nodes) != n or index % BLOCK == 0:
                    self.shut()
                    self.open(n)
                self.world.round(kind, rng)
                for d in self.world.mirror.nodes:
                    d.check_log()
                self.good(kind, index, attempt, began)
                return
            except Void as e:
                self.say("%s %d: void: %s" % (kind.name, index, e))
                self.shut(quietly=True)
            except (Exception, http.client.HTTPException) as e:  # an exception of any kind is this round's failure
                if self.world and self.world.has_lost_all():
                    self.say("%s %d: void: the Sentinels made a server master that had just started, empty: %s" % (
                        kind.name, index, str(e)[:200]))
                    self.shut(quietly=True)
                    continue
                self.note(kind, index, n, attempt, wrong=sort_of(e))
                self.say("%s %d (%d nodes): FAILED after %.1f s: %s: %s" % (
                    kind.name, index, n, time.monotonic() - began, type(e).__name__, str(e)[:1500]))
                if not isinstance(e, AssertionError):
                    traceback.print_exc()
                self.keep(kind, index)
                self.shut(quietly=True)
                return
        self.note(kind, index, n, TRIES, wrong="void")

    def good(self, kind, index, void, began):
        self.note(kind, index, len(self.world.mirror.nodes), void, late=self.world.late, takeovers=self.world.takeovers,
                  waiting=self.world.waiting)
        if self.args.verbose:
            self.say("%s %d: passed after %.1f s: %d deaths%s" % (
                kind.name, index, time.monotonic() - began, len(self.world.late),
                "".join(", taken over after %.2f s" % s for s in self.world.takeovers)
                + "".join(", %d statuses waited" % n for n in self.world.waiting)))

    @staticmethod
    def say(line):
        print(line, flush=True)

    def drive(self):
        try:
            for kind in [BY_NAME[n] for n in self.args.kind] if self.args.kind else KINDS:
                counts = self.kinds.setdefault(kind.name, Counts())
                n = kind.count if self.args.full else self.args.rounds
                for index in range(self.args.first, self.args.first + n):
                    if index not in counts.rounds:
                        self.one(kind, index)
                self.shut()
                self.say("%s: %d passed, %d failed, %d void" % (kind.name, counts.passed, counts.failed, counts.void))
        finally:
            self.shut(quietly=True)
            shutil.rmtree(self.base, ignore_errors=True)
        return self.sum_up()

    def sum_up(self):
        self.say(table(self.kinds))
        passed, failed = (sum(getattr(c, what) for c in self.kinds.values()) for what in ("passed", "failed"))
        self.say("faults-nodes: %d passed, %d failed, 0 skipped" % (passed, failed))
        return 1 if failed or not passed else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kind", action="append", choices=list(BY_NAME), help="only this one (repeatable)")
    p.add_argument("--rounds", type=int, default=2, help="so many of each kind (default: 2)")
    p.add_argument("--full", action="store_true", help="as many of each kind as --list says")
    p.add_argument("--first", type=int, default=0, help="the first round's number")
    p.add_argument("--devices", type=int, default=200)
    p.add_argument("--lease", type=float, default=1.0, help="seconds")
    p.add_argument("--timeout", type=float, default=2.0, help="seconds")
    p.add_argument("--mode", choices=["mirror", "standby"], default="mirror", help="of [cluster] (default: mirror)")
    p.add_argument("--keep", help="directory for the logs of failed rounds")
    p.add_argument("--results", metavar="FILE", help="keep each round's result there, and run none that it has")
    p.add_argument("--verbose", action="store_true", help="a line for each round")
    p.add_argument("--list", action="store_true", help="list the kinds and their counts")
    args = p.parse_args()
    if args.list:
        for k in KINDS:
            print("%-16s %4d" % (k.name, k.count))
        return 0
    if not HEARTWHEELD.exists():
        print("no %s: set HW_BUILD to the build directory" % HEARTWHEELD, file=sys.stderr)
        return 1
    return Driver(args).drive()


if __name__ == "__main__":
    sys.exit(main())
