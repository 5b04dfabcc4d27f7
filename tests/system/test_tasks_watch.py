# SPDX-License-Identifier: MIT
"""[tasks] watch: tasks that nodes send one another are followed from `sent` to their end, and heartwheel-tasks sends
nothing."""
import itertools
import json
import re
import select
import subprocess
import time

import pytest

from hw_build import HEARTWHEELCTL
from hw_tasks import Device, Sender, Tasks
from hw_wait import PATIENCE, pass_time, wait_until

_numbers = itertools.count(1)


class Node:
    """A node that speaks FD with other nodes by FD's document: the payload alone names the sender, and answers are bound to no
    name. With `bound` the topic's last level names the sender."""

    def __init__(self, tasks, name, bound=False):
        self.root, self.name, self.bound = tasks.root, name, bound
        self.client = tasks.env.client()

    def _topic(self, to, word):
        return "%s/%s/%s" % (self.root, to, word) + ("/" + self.name if self.bound else "")

    def send(self, to, exp_s=600, msg_id=None, **more):
        msg_id = msg_id or "w%d" % next(_numbers)
        self.client.publish(self._topic(to, "pending"), {
            "sender": self.name, "receiver": to, "msg_id": msg_id, "action": "set", "time": int(time.time()),
            "exp": time.time() + exp_s, "payload": {"secret": 1}, **more}, qos=1)
        return msg_id

    def say(self, to, word, msg_id, **more):
        self.client.publish(self._topic(to, word), {"msg_id": msg_id, **more}, qos=1)


@pytest.fixture
def tasks(env):
    return Tasks(env, watch="yes", run="30s").start()


def watched(t, **query):
    path = "/v1/tasks?watched=1" + "".join("&%s=%s" % q for q in query.items())
    return t.get(path).json()["tasks"]


def find(t, sender, msg_id):
    return next((w for w in watched(t) if (w["sender"], w["msg_id"]) == (sender, msg_id)), None)


def wait_for(t, sender, msg_id, state):
    def there():
        w = find(t, sender, msg_id)
        return w and w["state"] == state and w
    return wait_until(there, what="the task %s of %s to be %s" % (msg_id, sender, state))


def events(t):
    return [e for _, e in t.env.redis.xrange(t.key("events"))]


def test_a_task_of_others_is_followed_to_its_end(tasks, env):
    heard = env.observer(env.root + "/#")
    a, b = Node(tasks, "a"), Node(tasks, "b")
    m = a.send("b")
    w = wait_for(tasks, "a", m, "sent")
    assert (w["receiver"], w["action"], w["watched"]) == ("b", "set", True) and "hold" not in w and "payload" not in w, w
    assert 590_000 < w["exp_ms"] - w["sent_ms"] <= 600_000 and w["due_ms"] == w["exp_ms"], w
    b.say("a", "ack", m)
    assert wait_for(tasks, "a", m, "acked")["due_ms"] == find(tasks, "a", m)["acked_ms"] + 30_000
    b.say("a", "complete", m, value="done")
    assert "due_ms" not in wait_for(tasks, "a", m, "complete")
    b.say("a", "failed", m, error="too late")
    b.say("a", "complete", m)
    a.send("b", msg_id=m)  # again: the receiver says again what it said
    n = a.send("b")
    b.say("a", "failed", n, error="broken")
    assert wait_for(tasks, "a", n, "failed")["why"] == "device"
    assert tasks.transitions(w["task"]) == [("sent", ""), ("acked", ""), ("complete", "")]
    assert all(e["watched"] == "1" and e["sender"] == "a" and e["receiver"] == "b" for e in events(tasks))
    # Nothing was sent, or is waited for, on account of them; nobody can cancel or answer them.
    def waiting():
        return tasks.get("/v1/tasks/status").json().get("waiting")
    assert tasks.get("/v1/tasks").json()["tasks"] == []
    wait_until(lambda: waiting() is not None, what="it to know how many wait")
    assert waiting() == 0
    open_one = wait_for(tasks, "a", a.send("b"), "sent")
    assert tasks.request("DELETE", "/v1/tasks/" + open_one["task"]).status == 404
    Node(tasks, "b", bound=True).say("heartwheel", "complete", open_one["task"])
    m = Sender(tasks, "b").submit("nobody", msg_id="behind-it")
    wait_until(lambda: heard.on(env.root + "/b/ack"), what="our own tasks to be taken")
    assert find(tasks, "a", open_one["msg_id"])["state"] == "sent"
    ours = {env.root + "/b/ack", env.root + "/nobody/pending", env.root + "/heartwheel/pending/b"}
    assert {x.topic for x in heard.messages} - ours <= {env.root + "/" + x for x in (
        "b/pending", "a/ack", "a/complete", "a/failed", "heartwheel/complete/b")}
    assert len(heard.on(env.root + "/b/pending")) == 4


def test_the_examples_of_fd_as_they_stand_there(env):
    """FD's four terminals: A and B are mosquitto_sub and mosquitto_pub, and know nothing of heartwheel-tasks, which follows
    their tasks."""
    env.own_broker(users={"A": "password_b", "B": "password_b", "hw": "hw"},
                   acl="user hw\ntopic readwrite #\n\npattern readwrite nodes/#\n")
    secret = env.dir / "secret"
    secret.write_text("hw\n")
    t = Tasks(env, watch="yes", root="nodes", mqtt={"username": "hw", "password_file": secret}).start()

    def command(program, topic, user, *more):
        return ["stdbuf", "-oL", program, "-h", "127.0.0.1", "-p", str(env.broker.port), "-t", topic, "-q", "1", "-u", user, "-P",
                "password_b", *more]

    def publish(topic, user, text):
        subprocess.run(command("mosquitto_pub", topic, user, "-m", text), check=True, timeout=PATIENCE)
    outs = [env.dir / "B.out", env.dir / "A.out"]
    with open(outs[0], "w") as b, open(outs[1], "w") as a:
        subscribers = [subprocess.Popen(command("mosquitto_sub", topic, user, "-d"), stdout=out, stderr=out)
                       for topic, user, out in (("nodes/B/pending", "B", b), ("nodes/A/complete", "A", a))]
    try:
        wait_until(lambda: all("Subscribed" in o.read_text() for o in outs), what="both to listen")
        sent = '{"sender":"A","receiver":"B","msg_id":"msg001","action":"test","time":1234567890,"exp":9999999999,"payload":{}}'
        publish("nodes/B/pending", "A", sent)
        wait_until(lambda: sent in outs[0].read_text().splitlines(), what="B to get it")
        w = wait_for(t, "A", "msg001", "sent")
        assert (w["receiver"], w["action"]) == ("B", "test")
        answer = '{"msg_id":"msg001","value":"task completed successfully"}'
        publish("nodes/A/complete", "B", answer)
        wait_until(lambda: answer in outs[1].read_text().splitlines(), what="A to get the answer")
        wait_for(t, "A", "msg001", "complete")
        # A program in Go that sets no exp writes one all the same; its payload is base64.
        publish("nodes/B/pending", "A", sent.replace("msg001", "msg002").replace("9999999999", "0").replace("{}", '"AQI="'))
        w = wait_for(t, "A", "msg002", "sent")
        assert w["exp_ms"] - w["sent_ms"] == 86_400_000, "exp of [tasks]"
    finally:
        for p in subscribers:
            p.kill()
            p.wait()


def test_nobody_took_it_and_nobody_finished_it(env):
    t = Tasks(env, watch="yes", run="1s", keep="3s").start()
    a, b = Node(t, "a"), Node(t, "b")
    begun = time.time()
    m, n, old, late = a.send("b", 1), a.send("b"), a.send("b", -3600), a.send("b", 1)
    b.say("a", "ack", n)
    b.say("a", "complete", old)  # its answer comes right behind it: what was kept for us at the broker
    wait_until(lambda: [e for e in events(t) if (e["msg_id"], e["state"]) == (late, "expired")], what="it to expire")
    b.say("a", "complete", late)
    wait_until(lambda: len(events(t)) == 10, what="all to have ended (%s)" % events(t))
    by = {x: [(e["state"], e["why"]) for e in events(t) if e["msg_id"] == x] for x in (m, n, old, late)}
    assert by == {m: [("sent", ""), ("expired", "exp")], n: [("sent", ""), ("acked", ""), ("failed", "run")],
                  old: [("sent", ""), ("complete", "")],
                  late: [("sent", ""), ("expired", "exp"), ("complete", "late")]}
    assert all(int(e["time_ms"]) >= begun * 1000 + 990 for e in events(t) if e["state"] in ("expired", "failed"))
    wait_until(lambda: not env.redis.zcard(t.key("watched")) and not watched(t), what="them to be forgotten after keep")
    assert not [k for k in env.redis.keys(t.prefix + "*-*-*") if env.redis.type(k) == "hash"]
    def counted():
        m = t.metrics()
        return {s: m.get("task_watched_total", state=s) for s in ("sent", "acked", "complete", "failed", "expired")}
    wait_until(lambda: counted() == {"sent": 4, "acked": 1, "complete": 1, "failed": 1, "expired": 2}, what="them to be counted")
    wait_until(lambda: t.metrics().get("task_watched") == 0, what="it to count none")
    assert t.metrics().get("tasks_total", state="sent") == 0


def test_a_bound_name_is_the_one_that_counts(tasks):
    a, b, c = Node(tasks, "a", bound=True), Node(tasks, "b", bound=True), Node(tasks, "c", bound=True)
    m = a.send("b")
    n = a.send("b", sender="c")  # says another name than the topic
    wait_for(tasks, "a", m, "sent")
    c.say("a", "complete", m)
    wait_until(lambda: tasks.metrics().get("task_foreign_answers_total") == 1, what="it to be refused")
    assert find(tasks, "a", m)["state"] == "sent"
    b.say("a", "complete", m)
    wait_for(tasks, "a", m, "complete")
    assert find(tasks, "a", n) is None and find(tasks, "c", n) is None
    assert tasks.metrics().get("task_refused_total", kind="sender") == 1


def test_what_is_no_task_of_others(env):
    t = Tasks(env, watch="yes")
    a = Node(t, "a")
    a.client.publish(env.root + "/b/pending", {"sender": "a", "msg_id": "kept"}, qos=1, retain=True)
    t.start()
    alice, pump = Sender(t), Device(t, "pump")
    heard = env.observer(env.root + "/alice/+")
    m = alice.submit("pump")
    alice.wait(m, "complete")
    # Nor is a retained one, a probe of heartwheeld, whose answer is a heartbeat, one without a sender or of an API's name.
    a.send("b", msg_id="0000002a-0001-0123456789abcdef", sender="node-1")
    a.send("b", sender=None)
    a.send("b", sender="user:eve")
    a.client.publish(env.root + "/b/pending", b"no JSON", qos=1)
    # What we tell Alice is not an answer to a task that she has sent herself, under the same msg_id.
    again = alice.submit("pump", msg_id="both")
    wait_until(lambda: alice.told("both"), what="the ack")
    Node(t, "alice").send("b", msg_id="both")
    last = wait_for(t, "alice", "both", "sent")
    alice.submit("pump", msg_id="both")
    alice.wait(again, "complete")
    Node(t, "b").say("a", "ack", "unheard-of")
    wait_for(t, "a", a.send("b"), "sent")
    assert sorted(w["sender"] for w in watched(t)) == ["a", "alice"]
    assert t.state(last["task"]) == "sent"
    # Subscriptions that overlap brought nothing twice.
    assert [w for w, _ in alice.told(m)] == ["ack", "ack", "complete"] and len(pump.got) == 2
    assert len([x for x in heard.messages if x.json()["msg_id"] == m]) == 3


def test_there_are_at_most_max(env):
    t = Tasks(env, watch="yes", max=3).start()
    a, b = Node(t, "a"), Node(t, "b")
    first, second, third = a.send("b"), a.send("b"), a.send("b")
    wait_until(lambda: len(watched(t)) == 3, what="three of them")
    a.send("b")
    wait_until(lambda: t.metrics().get("task_refused_total", kind="full") == 1, what="a fourth to be refused")
    b.say("a", "complete", second)
    wait_for(t, "a", second, "complete")
    b.say("a", "failed", first)
    wait_for(t, "a", first, "failed")
    gone = find(t, "a", second)["task"]
    fifth = a.send("b")  # the oldest that has ended makes room
    wait_for(t, "a", fifth, "sent")
    assert {w["msg_id"] for w in watched(t)} == {first, third, fifth} and t.state(gone) is None
    assert {w["msg_id"] for w in watched(t, state="failed")} == {first} and watched(t, receiver="c") == []
    assert {w["msg_id"] for w in watched(t, receiver="b", state="sent")} == {third, fifth}
    page = t.get("/v1/tasks?watched=1&limit=2").json()
    rest = t.get("/v1/tasks?watched=1&limit=2&after=" + page["next"]).json()
    assert [w["msg_id"] for w in page["tasks"] + rest["tasks"]] == [third, fifth, first] and "next" not in rest
    for query in ("watched=2", "state=failed", "watched=0&state=complete"):
        assert t.get("/v1/tasks?" + query).status == 400, query


def test_killed_and_with_a_redis_that_is_full(env):
    """The state of followed tasks is in Redis alone; what Redis has no memory for is kept and written again."""
    env.own_redis()
    t = Tasks(env, watch="yes").start()
    a, b = Node(t, "a"), Node(t, "b")
    m, n = a.send("b"), a.send("b", 3)
    wait_until(lambda: [e for e in events(t) if (e["msg_id"], e["state"]) == (n, "sent")], what="both to be seen")
    t.die()
    t.start()
    wait_for(t, "a", n, "expired")
    env.redis.config_set("maxmemory", "1")
    b.say("a", "complete", m)
    wait_until(lambda: "maxmemory" in t.log(), what="it to say that Redis is full")
    env.redis.config_set("maxmemory", "0")
    wait_for(t, "a", m, "complete")


def test_several_instances_tell_each_transition_once(env):
    both = [Tasks(env, node="n%d" % i, watch="yes", instances="several").start() for i in (1, 2)]
    a, b = Node(both[0], "a"), Node(both[0], "b")
    sent = ["first"]
    b.say("a", "complete", "first")  # an answer that comes before its task is told again a second later
    a.send("b", msg_id="first")
    wait_for(both[0], "a", "first", "complete")
    for _ in range(99):  # and they overtake their tasks on the way to Redis
        sent.append(a.send("b"))
        b.say("a", "ack", sent[-1])
        b.say("a", "complete", sent[-1])
    def ended():
        done = [e["msg_id"] for e in events(both[0]) if e["state"] == "complete"]
        return len(done) >= 100 and done
    assert sorted(wait_until(ended, what="all to be complete")) == sorted(sent)
    for m in sent:
        states = [(e["state"], e["why"]) for e in events(both[0]) if e["msg_id"] == m]
        assert states[0] == ("sent", "") and ("complete", "") in states, states
        assert len(states) == len(set(states)), states


def test_of_several_one_stands_still(env):
    """An answer arrives 3 s before its task, as if a suspended instance had read the task late: the answer is processed again,
    and more than once."""
    t = Tasks(env, watch="yes", instances="several").start()
    a, b = Node(t, "a"), Node(t, "b")
    b.say("a", "complete", "early")
    pass_time(3)  # longer than the first wait, and the tick behind it
    a.send("b", msg_id="early")
    wait_for(t, "a", "early", "complete")


def test_answers_to_probes_are_not_told_to_redis(env):
    env.own_redis()
    t = Tasks(env, watch="yes", instances="several").start()
    probed, other = env.root + "-probed", env.root + "-other"
    with env.redis.monitor() as monitor:
        Node(t, probed, bound=True).say("node-1", "ack", "0000002a-0001-0123456789abcdef")
        Node(t, other, bound=True).say("node-1", "ack", "0000002a-0001-0123456789abcdeg")
        seen = ""
        while other not in seen:
            seen = monitor.next_command()["command"]
            assert probed not in seen


def test_heartwheelctl(tasks):
    def ctl(*args):
        return subprocess.run([str(HEARTWHEELCTL), "-s", str(tasks.socket), "task", *args], capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL)
    assert ctl("list", "--watched").stdout == "no task of others is known\n"
    watch = subprocess.Popen([str(HEARTWHEELCTL), "-s", str(tasks.socket), "task", "watch"], stdout=subprocess.PIPE, text=True)
    wait_until(lambda: tasks.get("/v1/status").json()["event_clients"] == 1, what="watch to listen")
    a, b = Node(tasks, "a"), Node(tasks, "b")
    m = a.send("b")
    w = wait_for(tasks, "a", m, "sent")
    assert select.select([watch.stdout], [], [], PATIENCE)[0], "nothing is told"
    line = watch.stdout.readline()
    assert w["task"] in line and "sent" in line and "from a" in line, line
    watch.kill()
    watch.communicate()
    listed = ctl("list", "--watched")
    assert w["task"] in listed.stdout and "from a" in listed.stdout and "1970" not in listed.stdout, listed
    b.say("a", "complete", m)
    wait_for(tasks, "a", m, "complete")
    assert json.loads(ctl("list", "--watched", "--state", "complete", "--json").stdout)["msg_id"] == m
    shown = ctl("show", w["task"]).stdout
    assert w["task"] in shown and re.search(r"^sender +a$", shown, re.M), shown
    wait_until(lambda: "1 of other clients" in ctl("status").stdout, what="the status to count it")
    assert ctl("show", "--watched", "x").returncode == 2
