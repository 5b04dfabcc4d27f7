#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The faults of heartwheel-tasks: `make faults-tasks`. Tasks of every kind are submitted over MQTT while the daemon is killed
at a named point, or while three daemons with a shared subscription are killed and suspended; the broker and Redis are real.
Afterwards every task has ended as its device did; nothing was sent before its time, after its exp or after its end; every
device did each task once by its msg_id; and each submitter received the end.

Each run follows from its seed, which is its kind and its number: --kind K --first I --count 1 repeats it."""
import collections
import json
import random
import signal
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import faults  # noqa: E402
from hw_env import Env  # noqa: E402
from hw_tasks import HEARTWHEEL_TASKS, Tasks  # noqa: E402
from hw_wait import NotWithin, pass_time, wait_until, wait_within  # noqa: E402
from shim import TASK_POINTS  # noqa: E402
from world import Void  # noqa: E402

PATIENCE = 60
AGAIN = 1.5       # seconds without an ack after which is submitted again; the contract says 5
ALLOWED = 0.5     # seconds that a message may be on its way to a device, which reads the clock only when it arrives
ENDED = ("complete", "failed", "expired", "cancelled")
RUN = 3           # seconds from ack to answer; shortly before they are over, a lost answer is requested
PAUSE, LONG = (0.6, 2.5), 11.5  # seconds that an instance stands still; LONG: beyond the broker's patience, and its mark's time
FAR = 600         # seconds: a task that is cancelled before it is due


class Crowd:
    """The devices: one connection; each device remembers what it has done. The payload says what the device does."""

    def __init__(self, tasks):
        self.tasks, self.got, self.done, self.last = tasks, collections.defaultdict(list), collections.Counter(), {}
        self.ignored, self.timers = 0, []
        self.client = tasks.env.client()
        self.client.client.on_message = lambda c, u, m: self.take(m.topic.split("/")[-2], json.loads(m.payload))
        self.client.subscribe(tasks.root + "/+/pending", 1)

    def take(self, name, task):
        key, now = (name, task["msg_id"]), time.time()
        assert task["receiver"] == name
        self.got[key].append(now)
        if now > task["exp"]:
            self.ignored += 1
            return
        do = task["payload"]["do"]
        if do == "mute" or (do == "deaf" and len(self.got[key]) == 1):
            return
        if key in self.last:
            self.say(*key, *self.last[key])
            return
        self.done[task["msg_id"]] += 1
        if do in ("ack", "both", "slow"):
            self.say(*key, "ack")
        if do == "slow":
            t = threading.Timer(0.3, self.say, (*key, "complete", task["payload"]["n"]))
            t.daemon = True
            t.start()
        elif do == "fail":
            self.say(*key, "failed", "broken")
        elif do != "ack":
            self.say(*key, "complete", task["payload"]["n"])

    def say(self, name, msg_id, word, value=None):
        self.last[name, msg_id] = word, value
        body = {"msg_id": msg_id}
        if word != "ack":
            body["value" if word == "complete" else "error"] = value
        self.client.publish("%s/%s/%s/%s" % (self.tasks.root, self.tasks.service, word, name), body, qos=1, wait=False)


class Asked:
    """A submission: what was requested, and how it must end."""

    def __init__(self, payload, end, why="", cancel=False):
        self.payload, self.end, self.why, self.cancel = payload, end, why, cancel
        self.at_s = payload.get("at")
        self.asked_s = self.cancelled_s = 0.0
        self.task = None


class Submitter:
    def __init__(self, tasks, name="alice"):
        self.tasks, self.name, self.told = tasks, name, collections.defaultdict(list)
        self.client = tasks.env.client()
        self.client.client.on_message = lambda c, u, m: self.hear(m.topic.rsplit("/", 1)[1], json.loads(m.payload))
        self.client.subscribe("%s/%s/+" % (tasks.root, name), 1)

    def hear(self, word, j):
        self.told[j["msg_id"]].append((word, j))

    def ask(self, action, payload, msg_id):
        self.client.publish("%s/%s/pending/%s" % (self.tasks.root, self.tasks.service, self.name),
                            {"msg_id": msg_id, "action": action, "time": 0, "payload": payload}, qos=1, wait=False)

    def heard(self, msg_id, *words):
        return [j for word, j in list(self.told[msg_id]) if word in words]


class World:
    """Servers and instances that some runs share."""

    def __init__(self, base, shim=None, netns=None, instances=1):
        self.env, self.shims = Env(None, None, base), [shim]
        self.env.own_broker(persistence=False, settings=["max_queued_messages 100000", "max_inflight_messages 1000"])
        self.env.own_redis()
        while len(self.shims) < instances:
            self.shims.append(faults.Shim(self.env.own_dir("shim")))
        self.all = [Tasks(self.env, node="%s-%d" % (self.env.node, k), ack_wait="400ms", retry_max="800ms", window=20,
                          run="%ds" % RUN, publish=self.env.root + "/out/{sender}/#", mqtt={"keepalive": "5s"},
                          instances="one" if instances == 1 else "several") for k in range(instances)]
        self.daemon = self.all[0]  # the instance whose log is read
        self.n, self.asked, self.paused, self.run = 0, {}, [], RUN

    def begin(self):
        for k in range(len(self.all)):
            self.start(k)
        for t in self.all:
            wait_until(t.ready, PATIENCE, "heartwheel-tasks to be ready")
        self.crowd, self.alice = Crowd(self.daemon), Submitter(self.daemon)
        self.out = self.env.observer(self.env.root + "/out/#")

    def start(self, k):
        self.all[k].start(ready=False, env=self.shims[k].env)

    def close(self):
        self.env.check_events = False
        wrong = self.env.close()
        self.env.remove()
        if wrong:
            raise wrong

    # --- what is asked

    def new_task(self, rng):
        """One of each kind in turn, as it has to end."""
        self.n += 1
        n, now, device = self.n, time.time(), "d%d" % rng.randrange(6)
        when = rng.choice([{}, {}, {"after": rng.uniform(0, 1.2)}, {"at": now + rng.uniform(0, 1.2)}])
        late = now + when.get("at", now) - now + when.get("after", 0)

        def order(do, **more):
            return {"receiver": device, "action": "go", "payload": {"do": do, "n": n}, **when, **more}
        kind = self.n % 12
        if kind == 0:
            return Asked(order("mute", exp=late + rng.uniform(1.0, 2.0)), "expired", "exp")
        if kind == 1:
            return Asked(order("fail"), "failed", "device")
        if kind == 2:
            return Asked(dict(order("done"), after=FAR, at=None), "cancelled", cancel=True)
        if kind == 3:
            return Asked({"topic": self.env.root + "/out/alice/%d" % n, "payload": str(n), **when}, "complete")
        if kind == 4:
            return Asked(order("ack", run=1), "failed", "run")
        if kind == 5:
            return Asked(dict(order("done"), receiver="away", hold=False), "failed", "offline")
        if kind == 6:
            return Asked(dict(order("done"), receiver="back"), "complete")
        return Asked(order(rng.choice(["done", "both", "both", "slow", "deaf"]), run=self.run), "complete")

    def submit(self, n, rng):
        for _ in range(n):
            a = self.new_task(rng)
            a.payload = {k: v for k, v in a.payload.items() if v is not None}
            a.at_s = a.payload.get("at")
            a.msg_id = "m%d" % self.n
            self.asked[a.msg_id] = a
            self.say(a)

    def say(self, a):
        a.asked_s = time.monotonic()
        self.alice.ask("deliver", a.payload, a.msg_id)

    def new_run(self):
        self.asked, self.paused, self.restarts = {}, [], 0
        self.daemon.set_online("away", False)
        self.daemon.set_online("back", False)

    def follow_up(self):
        """What a submitter does: asks again where nothing was heard, cancels what it meant to."""
        for a in self.asked.values():
            acks = self.alice.heard(a.msg_id, "ack", "complete", "failed")
            a.task = a.task or next((j["task"] for j in acks if "task" in j), None)
            if not acks and time.monotonic() - a.asked_s > AGAIN:
                self.say(a)
            if acks and a.cancel and time.monotonic() - a.cancelled_s > AGAIN and not self.alice.heard(a.msg_id, "failed"):
                a.cancelled_s = time.monotonic()
                self.alice.ask("cancel", {"msg_id": a.msg_id}, a.msg_id + ".c")

    # --- what has to be

    def is_told(self, a):
        return bool(self.alice.heard(a.msg_id, "complete" if a.end == "complete" else "failed"))

    def open(self):
        """The submissions that have not ended."""
        self.follow_up()
        return [a for a in self.asked.values() if not self.is_told(a)]

    def settle(self):
        """All submissions have ended, and no entry in Redis is waiting any more."""
        try:
            wait_within(lambda: not self.open(), PATIENCE, interval=0.05)
        except NotWithin:
            raise AssertionError("LOST: %s" % [(a.msg_id, a.end, a.payload, self.alice.told[a.msg_id],
                                                a.task and self.daemon.record(a.task)) for a in self.open()][:3]) from None
        for t in self.all:
            wait_until(t.ready, PATIENCE, "heartwheel-tasks to be ready")
        key, r = self.daemon.key, self.env.redis
        wait_until(lambda: r.zcard(key("due")) == 0, PATIENCE, "nothing to be due")
        wait_until(lambda: r.xpending(key("events"), "tell")["pending"] == 0, PATIENCE, "all to be told")
        assert not r.keys(key("device", "*")), r.keys(key("device", "*"))

    def late_at(self, when):
        """Whether an instance was suspended around that time: what it had under way it sent when it resumed."""
        return any(a <= when <= b + ALLOWED for a, b in self.paused)

    def check(self):
        events = collections.defaultdict(list)
        for _, e in self.env.redis.xrange(self.daemon.key("events")):
            events[e["task"]].append((e["state"], e["why"]))
        counts = collections.Counter()
        for a in self.asked.values():
            self.check_one(a, events, counts)
        return counts

    def check_one(self, a, events, counts):
        if a.end == "expired" and any(j["state"] == "refused" for j in self.alice.heard(a.msg_id, "failed")):
            counts["refused"] += 1  # its exp had passed before anybody could take it
            return
        crowd, record = self.crowd, self.daemon.record(a.task)
        said = "%s %s: %s, %s, told %s" % (a.msg_id, a.payload, record, events[a.task], self.alice.told[a.msg_id])
        counts["tasks"] += 1
        assert record, "LOST: " + said
        assert (record["state"], record.get("why", "")) == (a.end, a.why), "ENDED OTHERWISE: " + said
        got, at, exp = crowd.got[a.payload.get("receiver"), a.task], int(record["at"]) / 1e3, int(record["exp"]) / 1e3
        counts["messages"] += len(got)
        counts["repeated"] += max(0, len(got) - 1)
        counts["told again"] += sum(len(self.alice.heard(a.msg_id, w)) > 1 for w in ("complete", "failed"))
        assert not a.at_s or abs(at - max(a.at_s, int(record["created"]) / 1e3)) < 0.002, "at is another: " + said
        assert not any(t < at - 0.001 for t in got), "BEFORE ITS TIME: %s, got at %s" % (said, got)
        beyond = [t for t in got if t > exp + ALLOWED and not self.late_at(t)]
        assert not beyond, "AFTER ITS EXP: %s, got at %s" % (said, got)
        assert int(record.get("sent", 0)) <= int(record["ended"]), "CLAIMED AFTER ITS END: " + said
        after = [t for t in got if t > int(record["ended"]) / 1e3 + ALLOWED and not self.late_at(t)]
        assert not after, "AFTER ITS END: %s, got at %s" % (said, got)
        assert len(got) <= int(record["tries"]), "more messages than claims: %s, got at %s" % (said, got)
        done = crowd.done[a.task]
        if "topic" in a.payload:
            done = min(1, len(self.out.on(a.payload["topic"])))
        wanted = 0 if a.end in ("expired", "cancelled") or a.why == "offline" else 1
        assert done == wanted, "DONE %d TIMES: %s" % (done, said)
        states = [s for s, why in events[a.task] if why != "late"]
        assert states[0] == "scheduled" and states[-1] == a.end, "its way: " + said
        assert sum(s in ENDED for s in states) == 1 and len(set(states)) == len(states), "its way: " + said
        ends = {w for w, _ in self.alice.told[a.msg_id] if w in ("complete", "failed")}
        assert ends == {"complete" if a.end == "complete" else "failed"}, "told two ends: " + said


def at_points(world, rng, index):
    """One instance, which is killed at a point."""
    point, shim, daemon = TASK_POINTS[index % len(TASK_POINTS)], world.shims[0], world.daemon
    world.new_run()
    shim.kill_at(point, rng.choice([1, 1, 2, 3]))
    for _ in range(4):
        world.submit(3, rng)
        pass_time(rng.uniform(0, 0.08))
    world.daemon.set_online("back", True)
    try:
        wait_within(lambda: not world.open() or not daemon.alive, PATIENCE, interval=0.03)
    except NotWithin:
        pass
    reached = not daemon.alive
    shim.calm()
    daemon.signal(signal.SIGKILL)
    code = daemon.wait()
    assert code == -signal.SIGKILL, "it ended by itself, with %d" % code
    pass_time(rng.choice([0, 0, rng.uniform(0, 1)]))
    world.start(0)
    world.settle()
    counts = world.check()
    if not reached:
        raise Void("%s was not passed so often" % point)
    return {"point": point, "counts": dict(counts, kills=1)}


def stop(world, k, seconds):
    t, began = world.all[k], time.time()
    t.signal(signal.SIGSTOP)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        world.follow_up()
        time.sleep(0.05)
    t.signal(signal.SIGCONT)
    world.paused.append((began, time.time() + 1))


def kill(world, k, rng):
    t = world.all[k]
    t.signal(signal.SIGKILL)
    t.wait()
    world.shims[k].calm()
    pass_time(rng.choice([0, rng.uniform(0, 1)]))
    world.start(k)


def several(world, rng, index):
    """Three instances: one is killed at a point, and one is suspended for longer than a task's wait, and now and then for
    longer than the broker and the others take it for running."""
    world.new_run()
    pause = LONG if index % 10 == 9 else rng.uniform(*PAUSE)
    world.run = 2 * RUN + pause  # a repeated request may also be given to the suspended instance
    victim, still = rng.sample(range(len(world.all)), 2)
    world.shims[victim].kill_at(rng.choice(TASK_POINTS), rng.choice([1, 1, 2, 3]))
    world.submit(12, rng)
    pass_time(rng.uniform(0, 0.3))
    world.daemon.set_online("back", True)
    stop(world, still, pause)
    world.submit(6, rng)
    kills = 1
    kill(world, victim, rng)
    if rng.random() < 0.5:
        kill(world, still, rng)
        kills += 1
    world.settle()
    return {"counts": dict(world.check(), kills=kills, pauses=1)}


KINDS = [
    faults.Kind("kill-point", 500, at_points, shim=True, quick=len(TASK_POINTS), make=World),
    faults.Kind("several", 100, several, lambda rng: {"instances": 3}, shim=True, quick=4, make=World),
]

if __name__ == "__main__":
    sys.exit(faults.main(faults.Suite("faults-tasks", HEARTWHEEL_TASKS, KINDS), __doc__))
