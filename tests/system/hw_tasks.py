# SPDX-License-Identifier: MIT
"""heartwheel-tasks, submitters that send tasks to it over MQTT, and devices that take them."""
import itertools
import json
import time

from hw_build import BUILD
from hw_daemon import render
from hw_program import Program
from hw_wait import PATIENCE, wait_until

HEARTWHEEL_TASKS = BUILD / "heartwheel-tasks"
_numbers = itertools.count(1)


class Tasks(Program):
    """One instance. Its topics, keys and node id are the test's own. `options`: the keys of [tasks], of which allow, publish
    and answers may be lists; `redis`, `mqtt`, `monitor`, `notify` and `history`: keys of other sections."""

    name = "heartwheel-tasks"

    def __init__(self, env, node=None, **options):
        super().__init__(env.own_dir("ht"))
        self.env, self.socket = env, self.dir / "t.sock"
        self.node = node or env.node
        self.root, self.service = options.get("root", env.root), options.get("name", "heartwheel")
        self.prefix = options.get("key_prefix", "t%d:task:" % env.number)
        redis, mqtt = options.pop("redis", {}), options.pop("mqtt", {})
        monitor, others = options.pop("monitor", {}), [(k, options.pop(k)) for k in ("notify", "history") if k in options]
        self.conf.write_text(render([
            ("monitor", {"node_id": self.node, **monitor}),
            ("mqtt", {"host": "127.0.0.1", "port": env.broker.port, **mqtt}),
            ("redis", {"host": "127.0.0.1", "port": env.redis_server.port, "key_prefix": env.prefix, **redis}),
            ("tasks", {"root": self.root, "key_prefix": self.prefix, "socket": self.socket,
                       "pid_file": self.pid_file, "user": "", "log": "stderr", "log_level": "debug",
                       **{"allow": "* * *", **options}})] + others))
        env.daemons.append(self)

    def start(self, ready=True, args=("-f",), env=None):
        """Ready: Redis and both connections to the broker are up."""
        assert not self.alive
        self.spawn([HEARTWHEEL_TASKS, *args, "-c", self.conf], env=env)
        if ready:
            wait_until(lambda: not self.alive or self.ready(), what="heartwheel-tasks to be ready")
            assert self.alive, self.log()[-3000:]
        return self

    def ready(self):
        return self.answers("/readyz")

    # Redis

    def key(self, *parts):
        return self.prefix + ":".join(parts)

    def record(self, task):
        return self.env.redis.hgetall(self.key(task))

    def state(self, task):
        return self.env.redis.hget(self.key(task), "state")

    def wait_state(self, task, state, timeout=PATIENCE):
        wait_until(lambda: self.state(task) == state, timeout,
                   "task %s to be %s (is %s)" % (task, state, self.record(task)))

    def transitions(self, task=None):
        """[(state, why)], oldest first."""
        return [(e["state"], e["why"]) for _, e in self.env.redis.xrange(self.key("events"))
                if task is None or e["task"] == task]

    def set_online(self, device, online):
        """Writes what heartwheeld would write: the key and the transition."""
        p = self.env.redis.pipeline(transaction=True)
        key = self.env.key("disconnected", device)
        if online:
            p.delete(key)
        else:
            p.set(key, device)
        now = int(time.time() * 1000)
        p.xadd(self.env.key("events"), {
            "id": device, "state": "online" if online else "offline", "reason": "heartbeat" if online else "timeout",
            "time_ms": now, "last_seen_ms": now, "group": "default", "node": self.node, "seq": now + next(_numbers)})
        p.execute()


class Sender:
    """A submitter with a name, which receives the messages to that name."""

    def __init__(self, tasks, name="alice", **client):
        self.tasks, self.name = tasks, name
        self.asked = {}  # msg_id -> action, payload
        self.client = tasks.env.observer("%s/%s/+" % (tasks.root, name), **client)

    def ask(self, action, payload, msg_id=None, time_s=0, topic=None, retain=False):
        """Publishes a request; returns its msg_id."""
        msg_id = msg_id or "m%d" % next(_numbers)
        self.asked[msg_id] = action, payload
        self.client.publish(topic or "%s/%s/pending/%s" % (self.tasks.root, self.tasks.service, self.name),
                            {"msg_id": msg_id, "action": action, "time": time_s, "payload": payload}, qos=1, retain=retain)
        return msg_id

    def submit(self, receiver, action="set", payload=None, msg_id=None, **more):
        return self.ask("deliver", {"receiver": receiver, "action": action, "payload": payload, **more}, msg_id)

    def told(self, msg_id, word=None):
        """The messages about this request: [(word, object)], oldest first."""
        found = []
        for m in list(self.client.messages):
            last, j = m.topic.rsplit("/", 1)[1], m.json()
            if isinstance(j, dict) and j.get("msg_id") == msg_id and last in ("ack", "complete", "failed"):
                found.append((last, j))
        return [j for w, j in found if w == word] if word else found

    def wait(self, msg_id, word, state=None, timeout=PATIENCE):
        """The first such message (with that state), decoded."""
        def find():
            return next((j for j in self.told(msg_id, word) if state in (None, j["state"])), None)
        return wait_until(find, timeout, "%s to be told %s %s of %s" % (self.name, word, state or "", msg_id))

    def task(self, msg_id):
        """The name of the request's task, once it is acknowledged."""
        return self.wait(msg_id, "ack")["task"]


class Device:
    """Takes tasks as the docs say: each once, by its msg_id; a repeated task gets its last answer again. `behave`: a list of
    the answers to each task, or a function of the task that returns such an answer: ack, complete, failed."""

    def __init__(self, tasks, name, behave=("ack", "complete"), bound=True, **client):
        self.tasks, self.name, self.behave, self.bound = tasks, name, behave, bound
        self.got, self.done = [], []  # every message; each task once
        self.last = {}
        self.client = tasks.env.client(**client)
        self.client.client.on_message = lambda c, u, m: self.take(json.loads(m.payload))
        self.client.subscribe("%s/%s/pending" % (tasks.root, name), 1)

    def take(self, task):
        task["at_s"] = time.time()
        self.got.append(task)
        if task["msg_id"] not in self.last:
            self.done.append(task)
            self.last[task["msg_id"]] = None
            for word in self.behave(task) if callable(self.behave) else self.behave:
                self.say(word, task["msg_id"])
        elif self.last[task["msg_id"]]:
            self.say(*self.last[task["msg_id"]])

    def say(self, word, msg_id, value=None):
        body = {"msg_id": msg_id}
        if word == "complete":
            body["value"] = {"done": True} if value is None else value
        elif word == "failed":
            body["error"] = "broken" if value is None else value
        self.last[msg_id] = (word, msg_id, value)
        topic = "%s/%s/%s" % (self.tasks.root, self.tasks.service, word) + ("/" + self.name if self.bound else "")
        self.client.publish(topic, body, qos=1, wait=False)

    def wait(self, n=1, timeout=PATIENCE):
        wait_until(lambda: len(self.done) >= n, timeout, "%s to have %d tasks (has %d)" % (self.name, n, len(self.done)))
        return self.done[n - 1]
