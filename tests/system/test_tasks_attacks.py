# SPDX-License-Identifier: MIT
"""Attacks on tasks that the other test_tasks files do not have: dead instances, a Redis that refuses writes or whose clock
steps, devices that flap, thousands of held tasks, names that are believed, wills that the broker refuses."""
import json
import signal
import sys
import time
from pathlib import Path

import pytest

from hw_tasks import Device, Sender, Tasks
from hw_wait import throughout, wait_until

sys.path.insert(0, str(Path(__file__).resolve().parent / "faults"))
from shim import Shim  # noqa: E402


class Crowd:
    """All devices whose names no other client has: they complete the tasks that they get, and count them."""

    def __init__(self, t):
        self.t, self.got = t, []
        self.client = t.env.client()
        self.client.client.on_message = lambda c, u, m: self.take(json.loads(m.payload))
        self.client.subscribe("%s/+/pending" % t.root, 1)

    def take(self, task):
        self.got.append((task["receiver"], task["payload"], time.monotonic()))
        self.client.publish("%s/heartwheel/complete/%s" % (self.t.root, task["receiver"]), {"msg_id": task["msg_id"]}, qos=1,
                            wait=False)


def submit(t, tasks):
    """Submits many tasks over HTTP; returns their names."""
    names = []
    for k in range(0, len(tasks), 1000):
        results = t.request("POST", "/v1/tasks", tasks[k:k + 1000]).json()["results"]
        assert {r["status"] for r in results} == {201}, results[:3]
        names += [r["task"] for r in results]
    return names


def wait_count(t, state, n):
    wait_until(lambda: t.metrics().get("tasks_total", state=state) == n, 120, "all %d to be %s" % (n, state), interval=0.2)


def test_what_a_dead_instance_has_taken_is_told_by_another(env):
    """The dead instance had read the end of a task from the stream and not reported it."""
    first, second = (Tasks(env, node="%s-%d" % (env.node, i), instances="several") for i in range(2))
    first.start()
    second.start()
    alice = Sender(first)
    ends = []

    def taken():
        """The entries that the first instance has read and not acknowledged."""
        ids = [e["message_id"] for e in env.redis.xpending_range(first.key("events"), "tell", "-", "+", 10,
                                                                 consumername=first.node)]
        return [(e["task"], e["state"]) for i in ids for _, e in env.redis.xrange(first.key("events"), i, i)]

    def take():
        """Redis gives an entry to the consumer that has waited longest, although that consumer is suspended."""
        m = alice.submit("nobody", after=3600)
        task = alice.task(m)
        ends.append(m)
        wait_until(lambda: not taken(), what="all to be told")
        first.signal(signal.SIGSTOP)
        assert second.request("DELETE", "/v1/tasks/" + task).status == 200
        wait_until(lambda: (task, "cancelled") in taken() or alice.told(m, "failed"), what="one of them to read it")
        if not alice.told(m, "failed"):
            return True
        first.signal(signal.SIGCONT)
        return False
    wait_until(take, what="the first to have read an end")
    first.die()
    for m in ends:
        assert alice.wait(m, "failed", "cancelled", timeout=60)
    wait_until(lambda: env.redis.xpending(first.key("events"), "tell")["pending"] == 0, what="it to be settled")


def test_a_redis_that_is_read_only(env):
    """As after a failover: Redis takes no write, so no request is acknowledged, and tasks that fall due wait."""
    env.own_redis()
    t = Tasks(env, ack_wait="1s").start()
    alice, d1 = Sender(t), Device(t, "d1")
    m = alice.submit("d1", after=5)
    task = alice.task(m)
    env.redis.slaveof("127.0.0.1", 1)
    sent = int(t.record(task)["tries"])  # on a busy machine
    lost = alice.submit("d1")
    assert t.request("POST", "/v1/tasks", {"receiver": "d1", "action": "x"}).status == 503
    wait_until(lambda: "READONLY" in t.log() or "read-only" in t.log(), what="it to say so")
    wait_until(lambda: float(env.redis.zscore(t.key("due"), task) or 0) < time.time() * 1000, what="it to be overdue")
    throughout(lambda: len(d1.got) <= sent and not alice.told(lost), 0.5, "nothing to be sent or told")
    env.redis.slaveof()
    alice.wait(m, "complete")
    alice.submit("d1", msg_id=lost)
    alice.wait(lost, "complete")
    assert len(d1.done) == 2


@pytest.fixture
def stepped(env):
    """A Redis whose wall clock the test steps."""
    shim = Shim(env.own_dir("shim"), allocations=False)
    env.own_redis(env=shim.env)
    assert shim.loaded
    return shim


def test_the_clock_a_day_ahead_and_back(env, stepped):
    """Tasks that fall due or expire within that day are neither sent nor given up."""
    t = Tasks(env, clock_hold="10m").start()
    alice, d1 = Sender(t), Device(t, "d1")
    t.set_online("d2", False)
    later, held = alice.submit("d1", after=3600), alice.submit("d2", exp=time.time() + 3600)
    names = [alice.task(later), alice.task(held)]
    t.wait_state(names[1], "held")
    before = t.transitions()
    stepped.step_wall(86400)
    wait_until(lambda: t.metrics().get("task_clock_held") == 1, what="it to notice")
    wait_until(lambda: "clock has jumped ahead" in t.log(), what="it to say so")
    assert t.request("POST", "/v1/tasks", {"receiver": "d1", "action": "x"}).status == 503
    new = alice.submit("d1")
    throughout(lambda: not d1.got and not alice.told(new) and t.transitions() == before, 2, "nothing to happen")
    stepped.step_wall(0)
    wait_until(lambda: t.metrics().get("task_clock_held") == 0, what="it to be believed again")
    alice.submit("d1", msg_id=new)
    alice.wait(new, "complete")
    assert [t.state(n) for n in names] == ["scheduled", "held"] and len(d1.done) == 1
    assert not alice.told(later, "failed") and not alice.told(held, "failed")


def test_the_clock_ahead_is_believed_in_the_end(env, stepped):
    t = Tasks(env, clock_hold="1s").start()
    alice, d1 = Sender(t), Device(t, "d1")
    later = alice.submit("d1", after=3600)
    alice.task(later)
    stepped.step_wall(7200)
    alice.wait(later, "complete")
    assert "clock has jumped ahead" in t.log() and len(d1.done) == 1


@pytest.mark.parametrize("step", (86400, -86400))
def test_the_daemons_own_clock(env, step):
    """A step of the daemon's own clock changes nothing."""
    shim = Shim(env.own_dir("shim"))
    t = Tasks(env).start(env=shim.env)
    assert shim.loaded
    alice, d1 = Sender(t), Device(t, "d1")
    far, soon = alice.submit("d1", after=3600), alice.submit("d1", after=1)
    name = alice.task(far)
    shim.step_wall(step)
    alice.wait(soon, "complete")
    alice.wait(alice.submit("d1"), "complete")
    at = int(t.record(alice.task(soon))["at"])
    assert 0 <= d1.done[0]["at_s"] * 1000 - at < 30_000 and t.state(name) == "scheduled"
    assert t.metrics().get("task_clock_held") == 0


def test_late_by_hours(env):
    """The task's exp passes while no instance runs that could send it."""
    t = Tasks(env).start()
    alice, d1 = Sender(t), Device(t, "d1")
    m = alice.submit("d1", after=0.5, exp=time.time() + 1.5)
    exp = int(t.record(alice.task(m))["exp"])
    t.die()
    sent = int(t.record(alice.task(m))["tries"])  # on a busy machine
    wait_until(lambda: time.time() * 1000 > exp, what="it to expire")
    t.start()
    if not sent:
        assert alice.wait(m, "failed", "expired")["error"] == "exp" and not d1.got
    assert int(t.record(alice.task(m)).get("sent") or 0) < exp


def test_a_device_that_flaps(env):
    """Each return of the device gets it a window at most, once in ack_wait; the device does each task once."""
    t = Tasks(env, ack_wait="1s", retry_max="1s", window=4).start()
    d1 = Device(t, "d1", behave=())
    t.set_online("d1", False)
    names = submit(t, [{"receiver": "d1", "action": "x", "payload": i} for i in range(40)])
    wait_until(lambda: t.state(names[3]) == "held", what="them to be held")
    begun = time.monotonic()
    for _ in range(20):
        t.set_online("d1", True)
        t.set_online("d1", False)
    t.set_online("d1", True)
    wait_until(lambda: len(d1.got) >= 4, what="the first of them")
    throughout(lambda: len(d1.done) <= 4, 0.5, "a window at most")
    assert len(d1.got) <= 4 * (1 + (time.monotonic() - begun) // 0.99), len(d1.got)
    d1.behave = ("complete",)
    for task in list(d1.done):
        d1.say("complete", task["msg_id"])
    for name in names:
        t.wait_state(name, "complete")
    assert sorted(x["payload"] for x in d1.done) == list(range(40))


def test_ten_thousand_held_for_one_device(env):
    t = Tasks(env, max_per_receiver=10000, window=100, rate=0).start()
    t.set_online("d1", False)
    submit(t, [{"receiver": "d1", "action": "x", "payload": i} for i in range(10000)])
    assert t.request("POST", "/v1/tasks", {"receiver": "d1", "action": "x"}).status == 503
    crowd = Crowd(t)
    t.set_online("d1", True)
    wait_count(t, "complete", 10000)
    assert sorted({p for _, p, _ in crowd.got}) == list(range(10000))
    assert not env.redis.zcard(t.key("due")) and not env.redis.zcard(t.key("device", "d1"))


def test_ten_thousand_devices_die_and_come_back(env):
    """Tasks that fall due then are held, and sent when the devices are back: none fails, none is lost."""
    t = Tasks(env, rate=0).start()
    crowd = Crowd(t)
    devices = ["x%d" % i for i in range(10000)]
    p = env.redis.pipeline()
    for d in devices:
        p.set(env.key("disconnected", d), d)
    p.execute()
    names = submit(t, [{"receiver": d, "action": "x", "payload": d} for d in devices])
    wait_count(t, "held", 10000)
    assert not crowd.got
    p = env.redis.pipeline()
    for i, d in enumerate(devices):
        p.delete(env.key("disconnected", d))
        p.xadd(env.key("events"), {"id": d, "state": "online", "reason": "heartbeat", "time_ms": i, "last_seen_ms": i,
                                   "group": "default", "node": t.node, "seq": i})
    p.execute()
    wait_count(t, "complete", 10000)
    assert sorted({r for r, _, _ in crowd.got}) == sorted(devices)
    assert t.state(names[0]) == t.state(names[-1]) == "complete"


def test_a_name_in_the_payload(env):
    """With identity = payload the name in the payload is believed if no level of the topic has another; without that option it
    is not."""
    t = Tasks(env, identity="payload", allow="alice * *").start()
    alice, eve, d1 = Sender(t), Sender(t, "eve"), Device(t, "d1")
    bare = "%s/heartwheel/pending" % env.root
    body = {"action": "deliver", "time": 0, "payload": {"receiver": "d1", "action": "x"}}
    alice.client.publish(bare, {"sender": "alice", "msg_id": "m1", **body}, qos=1)
    alice.wait("m1", "complete")
    eve.client.publish(bare + "/eve", {"sender": "alice", "msg_id": "m2", **body}, qos=1)
    assert eve.wait("m2", "failed")["error"] == "no [tasks] allow line permits this"
    for sender in ("local", "user:root", "a/b", "", None):
        eve.client.publish(bare, {"sender": sender, "msg_id": "m3", **body}, qos=1)
    eve.client.publish(bare, {"msg_id": "m3", **body}, qos=1)
    wait_until(lambda: t.metrics().get("task_refused_total") == 7, what="refusals")
    assert len(d1.done) == 1 and not alice.told("m2") and not alice.told("m3")


def test_a_will_that_the_broker_minds(env):
    """The broker closes the connection because of the will: this costs one or two connections, and no other will."""
    env.own_redis()
    env.own_broker(settings=["max_packet_size 4000"])
    t = Tasks(env, publish="#").start()
    out = env.observer(env.root + "/out/#")
    wait_until(lambda: env.redis.exists(t.key("wills")), what="the place of the wills")
    for name, payload in (("long", "x" * 6000), ("short", "x"), ("broken", "x")):
        path = "/v1/devices/%s/will" % name
        assert t.request("PUT", path, {"topic": "%s/out/%s" % (env.root, name), "payload": payload, "qos": 1}).status == 204
    env.redis.set("s:w:broken", "no JSON")
    for _ in range(3):
        for name in ("long", "broken", "short"):
            t.set_online(name, True)
            t.set_online(name, False)
    wait_until(lambda: len(out.on(env.root + "/out/short")) >= 3, what="the others' wills")
    alice, d1 = Sender(t), Device(t, "d1")
    alice.wait(alice.submit("d1"), "complete")
    assert not out.on(env.root + "/out/long") and len(d1.done) == 1
    wait_until(lambda: "the broker refused to publish the will of" in t.log(), what="it to say so")
