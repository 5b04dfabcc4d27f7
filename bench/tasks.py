#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""heartwheel-tasks beside BullMQ, from npm, on one Redis server in one run; and heartwheeld beside many tasks.

`scheduled`: tasks for later, submitted in batches of 1,000, four side by side: POST /v1/tasks over the socket, and addBulk.
Their rate, the CPU time that Redis used for each, and the bytes that Redis holds of each.
`due`: as many that are due at one moment, from then until all have ended.
`paced`: 500 fall due each second; how late each is.
`horizon`: tasks that are due within it, and by how much heartwheel-tasks has grown for each.
`restart`: with a million waiting it is killed and, once a task is overdue, started again; from then until that is sent.
`beside`: bench/detection.py's fleet, while 20,000 tasks fall due within one second, every five seconds, at the shipped rate.

Same work? Both keep a payload of 200 bytes, tell each transition in a stream, keep what has ended, and have a result for each.
A task here is a message on a topic, sent with QoS 1 and complete once the broker has it; a job is complete once a worker that
does nothing has returned. So ours go through a broker besides, and no device's answer, which would be a second message.
Both clocks stop when Redis says that all are complete.
Same batching? 1,000 a batch, four at once, on both sides; our rate has no bound in `due`. BullMQ's worker has as many jobs at a time
as it is fastest with, of 16, 64 and 256.
Real code path? heartwheel-tasks, mosquitto, redis-server, BullMQ as they come. In `paced` a lateness is taken where the
message is read, or where the worker begins; ours has the broker and the bench's reader in it.
Our bodies are written before the clock starts, BullMQ's jobs within it; its one node process is what bounds it in `scheduled`, so that
the ratio is to one such client, and not to what Redis could take of several. The shipped rate of 5,000 a second is lifted but in `beside`.
What is left out? BullMQ's own node process has CPU time too, shown beside ours. Without a node that has BullMQ (HW_NODE names
its directory) its figures, and ratios, are missing."""
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import measure

BATCH, SIDE, PAYLOAD = 1000, 4, "x" * 200
BROKER = ("set_tcp_nodelay true", "max_queued_messages 1000000", "max_inflight_messages 1000")
LATER_S = 86400
TARGET = "tasks"


def flush(env):
    """A million tasks take Redis longer than a client waits."""
    from hw_wait import wait_until
    env.redis.flushall(asynchronous=True)
    wait_until(lambda: env.redis.info("memory")["lazyfree_pending_objects"] == 0)


class Ours:
    """heartwheel-tasks, new, and clients of its socket."""

    def __init__(self, env, **options):
        from hw_tasks import Tasks
        self.env = env
        self.tasks = Tasks(env, publish=env.root + "/out/#", monitor={"log_level": "info"}, max=2000000,
                           **{"rate": 0, **options}).start()
        self.pid = self.tasks.pid

    def add(self, n, at_s, step_s=0.0):
        """n tasks; the first is due then. Seconds that it took."""
        topic = self.env.root + "/out/%d"
        bodies = [json.dumps([{"topic": topic % (i % 1000), "at": round(at_s + i * step_s, 3),
                               "payload": json.dumps({"at": round((at_s + i * step_s) * 1000), "payload": PAYLOAD})}
                              for i in range(k, min(n, k + BATCH))]) for k in range(0, n, BATCH)]

        def post(body):
            a = self.tasks.request("POST", "/v1/tasks", body)
            assert a.status == 200 and a.body.count(b'"status":201') == body.count('"topic"'), (a.status, a.body[:300])
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(SIDE) as pool:
            for done in [pool.submit(post, b) for b in bodies]:
                done.result()
        return time.monotonic() - began

    def open(self):
        return self.env.redis.zcard(self.tasks.key("due"))

    def wait_done(self, patience=300):
        from hw_wait import wait_within
        wait_within(lambda: self.open() == 0, patience, interval=0.02)

    def stop(self):
        self.tasks.stop()
        flush(self.env)


class Theirs:
    """BullMQ in a node process."""

    def __init__(self, env, modules):
        self.env, self.names = env, 0
        self.proc = subprocess.Popen(["node", str(Path(__file__).with_name("bullmq.mjs")), modules, str(env.redis_server.port)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.proc.pid
        self.renew()

    def renew(self):
        """A queue that nobody has used."""
        self.names += 1
        self.name = "q%d" % self.names

    def order(self, what, **more):
        line = ""
        try:
            self.proc.stdin.write(json.dumps({"order": what, "name": self.name, **more}) + "\n")
            self.proc.stdin.flush()
            line = self.proc.stdout.readline()
        except BrokenPipeError:
            pass
        if not line:
            raise SystemExit("BullMQ's node ended, status %d" % self.proc.wait(20))
        return json.loads(line)

    def add(self, n, at_s, step_s=0.0):
        return self.order("add", n=n, batch=BATCH, side=SIDE, at_ms=round(at_s * 1000), step_ms=step_s * 1000,
                          payload=PAYLOAD)["seconds"]

    def work(self, concurrency):
        self.order("work", concurrency=concurrency)

    def late(self):
        return self.order("late")["late"]

    def wait_done(self, n, patience=300):
        from hw_wait import wait_within
        key = "bull:%s:completed" % self.name
        wait_within(lambda: self.env.redis.zcard(key) == n, patience, interval=0.02)

    def stop(self):
        self.proc.stdin.close()
        self.proc.wait(20)
        flush(self.env)


def modules():
    """The directory that has BullMQ, or None."""
    found = os.environ.get("HW_NODE") or ""
    there = Path(found) / "node_modules"
    if not shutil.which("node") or not (there / "bullmq").is_dir():
        return None
    if not (there / "ioredis").is_dir():
        raise SystemExit("the BullMQ in %s is without ioredis: npm install bullmq ioredis there" % found)
    return found


def pair(what, ours, theirs, unit, least=None, most=None, smoke=False, note=None):
    """Both figures, and their ratio where there are two."""
    measure.figure(TARGET, "tasks: " + what, ours, unit, note=note)
    if theirs is None:
        return
    measure.figure(TARGET, "BullMQ: " + what, theirs, unit)
    goal = (">=", least) if least else ("<=", most) if most else None
    measure.figure(TARGET, "tasks / BullMQ: " + what, ours / theirs, "x", None if smoke else goal)


def used(env):
    return env.redis.info("memory")["used_memory"]


def scheduled(env, who, n):
    """(a second, Redis' microseconds each, Redis' bytes each, own microseconds each)"""
    who.add(2 * BATCH, time.time() + LATER_S)  # what there is once
    before = used(env)
    clock, own = measure.Stopwatch(env.redis_server.pid), measure.Stopwatch(who.pid)
    took = who.add(n, time.time() + LATER_S)
    return n / took, clock.cpu() / n * 1e6, (used(env) - before) / n, own.cpu() / n * 1e6


def lead_s(n, rate):
    """How long before n tasks are due their submission begins, so many a second having been seen."""
    return 4 + 3 * n / rate


def due_ours(who, n, rate):
    at = time.time() + lead_s(n, rate)
    who.add(n, at)
    assert time.time() < at, "they were due before all were there"
    time.sleep(max(0, at - time.time()))
    who.wait_done()
    return n / (time.time() - at)


def due_theirs(env, directory, n, rate, smoke):
    """The best of some numbers of jobs at a time."""
    best = 0
    for concurrency in (64,) if smoke else (16, 64, 256):
        who = Theirs(env, directory)
        who.work(concurrency)
        at = time.time() + lead_s(n, rate)
        who.add(n, at)
        assert time.time() < at, "they were due before all were there"
        time.sleep(max(0, at - time.time()))
        who.wait_done(n)
        best = max(best, n / (time.time() - at))
        who.stop()
    return best


def paced_ours(env, who, n, a_second, rate):
    from hw_wait import wait_until
    reader, late = env.connect(), []
    reader.client.on_message = lambda c, u, m: late.append(time.time() * 1000 - json.loads(m.payload)["at"])
    reader.subscribe(env.root + "/out/+", 1)
    who.add(n, time.time() + lead_s(n, rate), 1 / a_second)
    who.wait_done()
    wait_until(lambda: len(late) >= n, what="all messages")
    reader.close()
    return late


def paced_theirs(env, directory, n, a_second, rate):
    who = Theirs(env, directory)
    who.work(64)
    who.add(n, time.time() + lead_s(n, rate), 1 / a_second)
    who.wait_done(n)
    late = who.late()
    who.stop()
    return late


def compare(env, o, directory):
    """How many tasks a second are submitted."""
    n = 2000 if o.smoke else 100000
    measure.conditions("%s tasks, payload 200 bytes, %d a batch, %d at once%s" % (
        format(n, ",d"), BATCH, SIDE, "; BullMQ: one node process" if directory else "; BullMQ skipped: no node that has it in HW_NODE"))
    who = Ours(env)
    ours = scheduled(env, who, n)
    who.stop()
    theirs = (None,) * 4
    if directory:
        who = Theirs(env, directory)
        theirs = scheduled(env, who, n)
        who.stop()
    for what, unit, k, bounds in (("scheduled", "/s", 0, {"least": 1.5}), ("CPU of Redis for one", "us", 1, {"most": 0.75}),
                                  ("bytes in Redis of one", "bytes", 2, {"most": 1.2}), ("own CPU for one", "us", 3, {})):
        pair(what, ours[k], theirs[k], unit, smoke=o.smoke, **bounds)
    n = 500 if o.smoke else 20000
    measure.conditions("%s tasks due at one moment, no bound to our rate" % format(n, ",d"))
    who = Ours(env)
    pair("due at once, done", due_ours(who, n, ours[0]), due_theirs(env, directory, n, theirs[0], o.smoke) if directory else None, "/s",
         least=4, smoke=o.smoke)
    who.stop()
    n, a_second = (500, 500) if o.smoke else (10000, 500)
    measure.conditions("%s tasks, %d due a second" % (format(n, ",d"), a_second))
    who = Ours(env)
    late = {"tasks": paced_ours(env, who, n, a_second, ours[0])}
    who.stop()
    if directory:
        late["BullMQ"] = paced_theirs(env, directory, n, a_second, theirs[0])
    for name, values in late.items():
        judged = name == "tasks" and not o.smoke
        measure.figure(TARGET, name + ": the earliest", min(values), "ms", (">=", 0) if name == "tasks" else None, worst=True)
        measure.figure(TARGET, name + ": late, p50", measure.percentile(values, 50), "ms")
        measure.figure(TARGET, name + ": late, p99", measure.percentile(values, 99), "ms", ("<=", 53) if judged else None)
    return ours[0]


def horizon(env, o):
    n = 5000 if o.smoke else 200000
    who = Ours(env)
    who.add(n, time.time() + LATER_S)  # what there is once, and what as many submissions need besides
    before = measure.rss_kb(who.pid)
    who.add(n, time.time() + 500)
    grown = (measure.rss_kb(who.pid) - before) * 1024
    measure.conditions("%s tasks due within the horizon" % format(n, ",d"))
    measure.figure(TARGET, "tasks: bytes in the process of one", grown / n, "bytes", None if o.smoke else ("<=", 64), "RSS")
    who.stop()


def restart(env, o):
    from hw_wait import wait_until
    n = 5000 if o.smoke else 1000000
    who = Ours(env)
    heard = env.observer(env.root + "/last")
    who.add(n, time.time() + LATER_S)
    at = time.time() + 1.5
    t = who.tasks
    a = t.request("POST", "/v1/tasks", {"topic": env.root + "/out/last", "payload": "last", "at": at})
    assert a.status == 201, a
    heard.subscribe(env.root + "/out/last", 1)
    t.signal(signal.SIGKILL)
    t.wait()
    time.sleep(max(0, at + 0.2 - time.time()))
    began = time.monotonic()
    t.start(ready=False)
    wait_until(lambda: heard.on(env.root + "/out/last"), interval=0.002)
    took = heard.on(env.root + "/out/last")[0].at - began
    measure.conditions("%s tasks wait" % format(n, ",d"))
    measure.figure(TARGET, "tasks: start to the first overdue one", took * 1000, "ms", None if o.smoke else ("<=", 1000), worst=True)
    wait_until(t.ready)
    who.stop()


def beside(env, o, rate):
    """Bursts are scheduled before the fleet is there, so that what is measured is that they fall due."""
    devices, interval, timeout, dead, seconds = (1000, 1000, 1500, 100, 6) if o.smoke else (20000, 5000, 6000, 1500, 38)
    n, every = (500, 2) if o.smoke else (20000, 5)
    who = Ours(env, rate=5000)
    begin = time.time() + lead_s(n * (seconds // every + 2), rate)
    for k in range(seconds // every + 2):
        who.add(n, begin + k * every, 1 / n)
    assert time.time() < begin, "they were due before all were there"
    d = env.configure(timeout="%dms" % timeout, monitor={"log_level": "info"})
    d.start()
    time.sleep(max(0, begin - 1 - time.time()))
    seen = measure.relay(o, "detect", env.broker.port, env.redis_server.port, env.root, env.prefix, devices, interval, timeout,
                         dead, 0, seconds)
    sent = who.tasks.metrics().get("tasks_total", state="complete")
    d.stop()
    measure.conditions("%s devices, timeout %g s; %s tasks fall due in a second every %d s, rate 5,000" % (
        format(devices, ",d"), timeout / 1000, format(n, ",d"), every))
    measure.figure(TARGET, "timeout to the PUBLISH beside tasks, p99", seen["status_p99"], "ms", None if o.smoke else ("<=", 60),
                   "%d tasks done meanwhile; the fleet was at most %.1f ms behind its plan" % (sent, seen["behind_ms"]))
    measure.figure(TARGET, "timeout to the PUBLISH beside tasks, the earliest", seen["status_min"], "ms", (">=", 0), worst=True)
    who.wait_done()
    who.stop()


def main():
    o = measure.options(__doc__)
    measure.need(o, "detect")
    directory = modules()
    with measure.world(settings=BROKER) as (env, _):
        env.check_events = False
        rate = compare(env, o, directory)
        horizon(env, o)
        restart(env, o)
        beside(env, o, rate)


if __name__ == "__main__":
    main()
