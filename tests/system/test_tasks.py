# SPDX-License-Identifier: MIT
"""Tasks: from a request over MQTT to the report of its end."""
import json
import os
import random
import signal
import subprocess
import time

import pytest

from hw_mqtt import user_properties
from hw_tasks import HEARTWHEEL_TASKS, Device, Sender, Tasks
from hw_wait import PATIENCE, pass_time, wait_until


@pytest.fixture
def tasks(env):
    return Tasks(env, ack_wait="1s", publish="%s/out/{sender}/#" % env.root).start()


def test_a_command_is_carried_out_and_told(tasks):
    alice, pump = Sender(tasks), Device(tasks, "pump-7")
    m = alice.submit("pump-7", "set", {"x": [1, 2.50]})
    assert alice.wait(m, "complete")["value"] == {"done": True}
    got = pump.wait()
    assert (got["sender"], got["receiver"], got["action"], got["origin"]) == ("heartwheel", "pump-7", "set", "alice")
    assert got["payload"] == {"x": [1, 2.5]} and got["exp"] - got["time"] in (86399, 86400)
    task = alice.task(m)
    assert task == got["msg_id"]
    assert [s for s, _ in tasks.transitions(task)] == ["scheduled", "sent", "acked", "complete"]
    assert [w for w, _ in alice.told(m)] == ["ack", "ack", "complete"]
    assert len(pump.got) == 1


def test_a_message_on_a_topic(tasks, env):
    alice = Sender(tasks)
    out = env.observer(env.root + "/out/#")
    m = alice.ask("deliver", {"topic": env.root + "/out/alice/x", "payload": "hello"})
    assert alice.wait(m, "complete")["value"] is None
    wait_until(lambda: out.on(env.root + "/out/alice/x"))  # another connection may get it later than alice her answer
    assert [x.payload for x in out.on(env.root + "/out/alice/x")] == [b"hello"]
    m = alice.ask("deliver", {"topic": env.root + "/out/bob/x", "payload": "hello"})
    assert alice.wait(m, "failed")["state"] == "refused"


def test_nobody_speaks_through_us_to_ourselves(env):
    """However wide [tasks] publish is, heartwheel-tasks publishes no answer and no request on its own topics: these would count
    as sent by the name in the topic's last level."""
    tasks = Tasks(env, publish="#").start()
    alice, d1 = Sender(tasks), Device(tasks, "d1", behave=("ack",))
    task = alice.task(alice.submit("d1"))
    d1.wait()
    for topic in (env.root + "/heartwheel/complete/d1", env.root + "/heartwheel/pending/bob", env.root + "/heartwheel",
                  "heartwheel/%s/tasks/barrier" % env.node, "heartwheel"):
        m = alice.ask("deliver", {"topic": topic, "payload": '{"msg_id":"%s"}' % task})
        assert alice.wait(m, "failed")["state"] == "refused", topic
        call = {"topic": topic, "payload": "x", "reply": env.root + "/x"}
        assert tasks.request("POST", "/v1/call", call).status == 403, topic
    for topic in (env.root + "/heartwheels/x", env.root + "/d1/x", "heartwheels/x"):
        alice.wait(alice.ask("deliver", {"topic": topic, "payload": "x"}), "complete")
    assert tasks.state(task) == "acked"


def test_requests_that_are_refused(tasks, env):
    alice, mallory = Sender(tasks), Sender(tasks, "mallory")
    m = alice.submit("d1", after=3600)
    task = alice.task(m)
    # the same again is answered from the record; with other content it is refused
    alice.submit("d1", after=3600, msg_id=m)
    wait_until(lambda: len(alice.told(m, "ack")) == 2, what="a repetition to be answered")
    alice.submit("d1", payload={"other": 1}, after=3600, msg_id=m)
    assert alice.wait(m, "failed")["state"] == "refused"
    # another sender's msg_id is another task, and nobody can ask about or cancel it by that
    assert mallory.wait(mallory.ask("cancel", {"msg_id": m}), "failed")["error"] == "no such task"
    assert mallory.wait(mallory.ask("query", {"msg_id": m}), "failed")["error"] == "no such task"
    assert tasks.state(task) == "scheduled"
    assert alice.wait(alice.ask("query", {"msg_id": m}), "complete")["value"]["state"] == "scheduled"
    for payload in ({"receiver": "d/1", "action": "x"}, {"receiver": "d1"}, {"receiver": "d1", "action": "x", "exp": 5},
                    {"receiver": "d1", "action": "x", "after": 400 * 86400}):
        assert alice.wait(alice.ask("deliver", payload), "failed")["state"] == "refused", payload
    old = alice.ask("deliver", {"receiver": "d1", "action": "x"}, time_s=int(time.time()) - 2 * 86400)
    assert alice.wait(old, "failed")["state"] == "refused"
    # the topic without a sender is not even read; nor is who calls himself as the API does
    silent = alice.ask("deliver", {"receiver": "d1", "action": "x"}, topic=env.root + "/heartwheel/pending")
    local = alice.ask("deliver", {"receiver": "d1", "action": "x"}, topic=env.root + "/heartwheel/pending/local")
    wait_until(lambda: tasks.metrics().get("task_refused_total", kind="sender") == 1, what="a refusal")
    assert not alice.told(silent) and not alice.told(local)
    # 10 MB are cut off, and stop nobody
    alice.client.publish("%s/heartwheel/pending/alice" % env.root, b'{"a":"' + b"x" * 10_000_000 + b'"}', qos=1)
    wait_until(lambda: tasks.metrics().get("task_refused_total", kind="too_large") == 1, what="a refusal")
    assert alice.wait(alice.ask("cancel", {"msg_id": m}), "complete")["value"] == {"was": "scheduled", "tries": 0}
    tasks.wait_state(task, "cancelled")
    assert alice.wait(m, "failed", "cancelled")


def test_requests_with_too_many_properties(tasks, env):
    """More of them than the broker sends without an acknowledgement: they are counted, and the connection goes on."""
    alice = Sender(tasks)
    topic = "%s/heartwheel/pending/alice" % env.root
    for _ in range(30):
        alice.client.publish(topic, b"x", qos=1, properties=user_properties(700))
    wait_until(lambda: tasks.metrics().get("task_refused_total", kind="too_large") == 30, what="all of them to be refused")
    assert alice.task(alice.submit("d1", after=3600))
    assert "on topic '%s' was discarded" % topic in tasks.log() and "lost" not in tasks.log()


def test_only_who_is_allowed(env):
    tasks = Tasks(env, allow=["alice set pump-*", "ops * *"]).start()
    alice, ops, bob = Sender(tasks), Sender(tasks, "ops"), Sender(tasks, "bob")
    assert alice.task(alice.submit("pump-1", "set"))
    assert ops.task(ops.submit("pump-1", "reboot"))
    for who, receiver, action in ((alice, "pump-1", "reboot"), (alice, "valve-1", "set"), (bob, "pump-1", "set")):
        assert who.wait(who.submit(receiver, action), "failed")["error"] == "no [tasks] allow line permits this"


def test_held_until_the_device_is_back(tasks):
    alice = Sender(tasks)
    tasks.set_online("d1", False)
    at, names = [], []
    for i in range(6):  # each at a time of its own
        at.append(alice.submit("d1", payload=i))
        names.append(alice.task(at[-1]))
    for t in names[:4]:
        tasks.wait_state(t, "held")
    no_hold = alice.submit("d1", hold=False)
    assert alice.wait(no_hold, "failed")["error"] == "offline"
    d1 = Device(tasks, "d1")
    assert not d1.got
    back = time.time()
    tasks.set_online("d1", True)
    for m in at:
        alice.wait(m, "complete")
    assert [t["payload"] for t in d1.done] == list(range(6))
    assert d1.done[0]["at_s"] - back < 2
    assert tasks.env.redis.get(tasks.key("at")) == tasks.env.redis.xrevrange(tasks.env.key("events"), count=1)[0][0]


def test_a_silent_device_is_asked_again_until_exp(tasks, env):
    alice, mute = Sender(tasks), Device(tasks, "mute", behave=())
    started = time.time()
    m = alice.submit("mute", exp=started + 4)
    assert alice.wait(m, "failed", "expired")["error"] == "exp"
    assert len(mute.got) in (2, 3) and len(mute.done) == 1  # after 1 s, and 2 s
    assert mute.got[1]["at_s"] - mute.got[0]["at_s"] >= 0.95
    assert all(g["at_s"] < started + 4 for g in mute.got)
    # an answer that comes now changes nothing, and is passed on
    task = alice.task(m)
    mute.say("complete", task, 7)
    late = alice.wait(m, "complete")
    assert late["late"] is True and late["value"] == 7
    assert tasks.state(task) == "expired"
    assert tasks.metrics().get("task_late_answers_total") == 1


def test_an_answer_that_was_lost_is_asked_for(env):
    """The answer is lost after its PUBACK, with the instance that had just read it, or at the broker: heartwheel-tasks asks
    again, and the device repeats it."""
    tasks = Tasks(env, ack_wait="2s", run="5s").start()
    alice, d1 = Sender(tasks), Device(tasks, "d1", behave=("ack",))
    lost, never = alice.submit("d1"), alice.submit("d1")
    name = alice.task(lost)
    alice.wait(lost, "ack", "acked")
    d1.last[name] = ("complete", name, "done long ago")
    assert alice.wait(lost, "complete")["value"] == "done long ago"
    assert alice.wait(never, "failed", "failed")["error"] == "run"
    for m in (lost, never):
        acked = int(tasks.record(alice.task(m))["acked"])
        after = [t["at_s"] * 1000 - acked for t in d1.got if t["msg_id"] == alice.task(m)]
        assert len([ms for ms in after if ms > 2990]) == 1, after
        assert [s for s, _ in tasks.transitions(alice.task(m))][:3] == ["scheduled", "sent", "acked"]
    assert len(d1.done) == 2
    r = tasks.record(alice.task(never))
    assert int(r["ended"]) - int(r["acked"]) >= 5000


def test_answers_that_are_nobodys(tasks, env):
    alice, d1, eve = Sender(tasks), Device(tasks, "d1", behave=("ack",)), Device(tasks, "eve")
    m = alice.submit("d1", run=60)
    task = alice.task(m)
    tasks.wait_state(task, "acked")
    eve.say("complete", task)
    wait_until(lambda: tasks.metrics().get("task_foreign_answers_total") == 1, what="a foreign answer")
    eve.say("complete", "00000000-0000-8000-8000-000000000000")
    wait_until(lambda: tasks.metrics().get("task_refused_total", kind="unknown") == 1, what="an unknown one")
    assert tasks.state(task) == "acked"
    assert alice.wait(alice.ask("cancel", {"msg_id": m}), "failed")["state"] == "acked"
    assert alice.wait(alice.ask("cancel", {"msg_id": m, "force": True}), "complete")["value"]["was"] == "acked"
    assert alice.wait(m, "failed", "cancelled")
    d1.say("failed", task, "it broke")
    assert alice.wait(m, "failed", "failed")["late"] is True


def test_a_retained_command_is_history(env):
    env.own_broker()
    payload = '{"msg_id":"r1","action":"deliver","time":0,"payload":{"receiver":"d1","action":"x"}}'
    tasks = Tasks(env, mqtt={"protocol": "3.1.1"})
    env.client().publish("%s/heartwheel/pending/alice" % env.root, payload, qos=1, retain=True)
    tasks.start()
    wait_until(lambda: tasks.metrics().get("task_refused_total", kind="retained") == 1, what="a refusal")
    assert not tasks.env.redis.exists(tasks.key("due"))


def test_at_its_time_and_never_before(tasks):
    alice, d1 = Sender(tasks), Device(tasks, "d1")
    now = time.time()
    ms = [alice.submit("d1", payload=i, at=now + 1 + i / 4) for i in range(4)]
    for m in ms:
        alice.wait(m, "complete")
    for t in d1.done:
        assert 0 <= t["at_s"] - (now + 1 + t["payload"] / 4) < 1


def test_killed_and_started_again(tasks, env):
    """Overdue tasks are sent at once; each end is reported, also if the submitter was not connected when the task ended."""
    alice, d1 = Sender(tasks), Device(tasks, "d1", behave=("ack",))
    running = alice.submit("d1")
    alice.wait(running, "ack", "acked")
    soon = alice.submit("d2", after=1)
    name = alice.task(soon)
    tasks.die()
    d1.say("complete", alice.task(running), "done meanwhile")  # kept by the broker, with the session
    d2 = Device(tasks, "d2")
    wait_until(lambda: float(env.redis.zscore(tasks.key("due"), name)) < time.time() * 1000, what="it to be overdue")
    tasks.start()
    assert alice.wait(running, "complete")["value"] == "done meanwhile"
    alice.wait(soon, "complete")
    assert len(d2.done) == 1


def test_the_broker_goes_and_comes(env):
    env.own_broker(persistence=False)
    tasks = Tasks(env, ack_wait="1s").start()
    alice, d1 = Sender(tasks), Device(tasks, "d1")
    m = alice.submit("d1", after=1)
    name = alice.task(m)
    env.broker.stop()
    wait_until(lambda: not tasks.ready(), what="it to notice")
    wait_until(lambda: float(env.redis.zscore(tasks.key("due"), name)) < time.time() * 1000, what="it to be overdue")
    assert tasks.state(name) == "scheduled"  # what cannot be sent is not claimed
    env.broker.start()
    alice.wait(m, "complete")
    assert len(d1.done) == 1


def test_a_message_that_is_too_long_for_the_broker(env):
    """The task fails with the reason; the message is not retried, and other messages are sent."""
    env.own_broker(settings=["max_packet_size 4000"])
    tasks = Tasks(env, ack_wait="1s").start()
    Device(tasks, "d1")
    long, short = (tasks.request("POST", "/v1/tasks", {"receiver": "d1", "action": "set", "payload": "x" * n}).json()["task"]
                   for n in (4000, 100))
    tasks.wait_state(long, "failed")
    tasks.wait_state(short, "complete")
    assert "it is longer than the broker's limit" in tasks.log()
    assert tasks.record(long)["tries"] == "1"


def test_redis_goes_comes_and_is_flushed(env):
    env.own_redis()
    tasks = Tasks(env, ack_wait="1s").start()
    wait_until(lambda: "Redis saves nothing to disk" in tasks.log(), what="a warning")
    alice, d1 = Sender(tasks), Device(tasks, "d1")
    kept = alice.submit("d1", after=3600)
    name = alice.task(kept)

    def secret():
        return env.redis.eval("return redis.sha1hex(redis.call('GET', KEYS[1]) or '')", 1, tasks.key("secret"))
    names_come_from = secret()
    env.redis.flushall()
    wait_until(lambda: "Redis has lost its data" in tasks.log(), what="it to notice")
    wait_until(lambda: secret() == names_come_from, what="the secret to be there again, for the others and the next start")
    wait_until(tasks.ready, what="it to be ready")
    alice.wait(alice.submit("d1"), "complete")
    # the names are what they were: the repetition is a new task, of the same name
    acks = len(alice.told(kept, "ack"))
    alice.submit("d1", after=3600, msg_id=kept)
    wait_until(lambda: len(alice.told(kept, "ack")) > acks, what="the repetition to be taken")
    assert alice.told(kept, "ack")[-1]["task"] == name and tasks.state(name) == "scheduled"
    # away: requests wait at the broker
    env.redis_server.stop()
    wait_until(lambda: not tasks.ready(), what="it to notice")
    m = alice.submit("d1", payload="later")
    assert not alice.told(m)
    env.redis_server.start()
    alice.wait(m, "complete")
    # a Redis that takes no writes refuses, and nobody is told what is not so
    env.redis.config_set("maxmemory", "1")
    full = alice.submit("d1", payload="full")
    wait_until(lambda: "OOM" in tasks.log() or "maxmemory" in tasks.log(), what="it to say so")
    assert not alice.told(full)
    env.redis.config_set("maxmemory", "0")
    alice.submit("d1", payload="full", msg_id=full)
    alice.wait(full, "complete")
    tasks.stop()
    env.redis.config_set("maxmemory", "1gb")
    env.redis.config_set("maxmemory-policy", "allkeys-lru")
    env.redis.config_set("appendonly", "yes")
    tasks.start()
    wait_until(lambda: "Redis may evict tasks" in tasks.log(), what="a warning")
    assert tasks.log().count("Redis saves nothing to disk") <= 2  # when it came, and came back


def test_several_instances(env):
    """Shared subscriptions: each request is taken once, each task is sent once, each end is reported once; an instance that is
    killed leaves no task behind."""
    all_of = [Tasks(env, node="%s-%d" % (env.node, i), instances="several", ack_wait="2s") for i in range(3)]
    for t in all_of:
        t.start()
    alice, d1 = Sender(all_of[0]), Device(all_of[0], "d1")
    ms = [alice.submit("d1", payload=i) for i in range(30)]
    for m in ms:
        alice.wait(m, "complete")
    assert sorted(t["payload"] for t in d1.done) == list(range(30))
    assert len(d1.got) == 30
    ms = [alice.submit("d1", payload=i, after=1) for i in range(30)]
    for m in ms:
        alice.task(m)
    all_of[0].die()
    for m in ms:
        alice.wait(m, "complete")
    assert len(d1.done) == 60


def test_what_was_left_unpublished(env):
    """An instance took the report of an end and was killed: another instance takes it over."""
    env.own_redis()
    tasks = Tasks(env).start()
    alice, d1 = Sender(tasks), Device(tasks, "d1", behave=("ack",))
    m = alice.submit("d1")
    task = alice.task(m)
    alice.wait(m, "ack", "acked")
    events, r = tasks.key("events"), env.redis
    wait_until(lambda: r.xpending(events, "tell")["pending"] == 0, what="all to be told")
    tasks.signal(signal.SIGSTOP)
    wait_until(lambda: r.info("clients")["blocked_clients"] == 0, what="nobody to wait for an event")
    e = r.xadd(events, {"task": task, "receiver": "d1", "sender": "alice", "msg_id": m, "state": "complete", "why": "",
                        "time_ms": int(time.time() * 1000), "node": "dead"})
    r.xreadgroup("tell", "dead", {events: ">"})
    r.xclaim(events, "tell", "dead", 0, [e], idle=60000)
    tasks.signal(signal.SIGCONT)
    assert alice.wait(m, "complete")["task"] == task
    wait_until(lambda: r.xpending(events, "tell")["pending"] == 0, what="it to be acknowledged")


def test_the_configuration(env):
    t = Tasks(env, allow=["a b"], publish=["x/#/y"], root="/x", name="a/b", ack_wait="10s", retry_max="1s",
              instances="several", mqtt={"protocol": "3.1.1"})
    t.spawn(["sh", "-c", "%s -t -c %s; echo status $?" % (HEARTWHEEL_TASKS, t.conf)])
    t.wait()
    said = t.log()
    for line in ("key 'instances': several needs [mqtt] protocol = 5",
                 "key 'allow': 'a b' must be SENDER ACTION RECEIVER", "key 'publish': 'x/#/y' is not a topic filter",
                 "key 'root': must be the first levels of a topic", "key 'name': cannot be a level of a topic",
                 "key 'retry_max': retry_max is less than ack_wait", "status 2"):
        assert line in said, said


def test_killed_again_and_again(env):
    """kill -9 at any moment: no task is lost, every device does each task once by its msg_id and none before its time, and
    every submitter receives each end. An answer that was read and lost with the process is requested once more, ack_wait before
    the end of run."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    r = random.Random(seed)
    tasks = Tasks(env, ack_wait="2s", retry_max="2s", run="14s", window=20).start()
    alice = Sender(tasks)
    devices = [Device(tasks, "d%d" % i) for i in range(4)]
    due = {}
    for k in range(5):
        for i in range(12):
            after = r.choice((0, 0, r.random() * 2))
            m = alice.submit("d%d" % r.randrange(4), payload="%d-%d" % (k, i), after=after)
            due[m] = time.time() + after
        pass_time(r.random() * 0.15)
        tasks.die()
        tasks.start()
    for m in due:  # who hears nothing submits again
        if not alice.told(m):
            alice.ask(*alice.asked[m], msg_id=m)
    try:
        for m in due:
            assert alice.wait(m, "complete")["value"] == {"done": True}
    finally:
        print("not complete:", [(m, tasks.transitions(m)) for m in due if not alice.told(m, "complete")])
    done = [t for d in devices for t in d.done]
    assert len(done) == len(due) == len({t["payload"] for t in done})
    assert env.redis.zcard(tasks.key("due")) == 0
    for task in done:
        assert [s for s, _ in tasks.transitions(task["msg_id"])][-1] == "complete"


def test_rights_at_the_broker(env):
    """The ACL of heartwheel-tasks(8): the topic's last level is the publisher's name, so no client can ask or answer as
    another."""
    acl = ("user heartwheel\ntopic readwrite {0}/#\ntopic readwrite heartwheel/#\n\n"
           "pattern read {0}/%u/+\npattern write {0}/heartwheel/pending/%u\npattern write {0}/heartwheel/ack/%u\n"
           "pattern write {0}/heartwheel/complete/%u\npattern write {0}/heartwheel/failed/%u\n".format(env.root))
    users = {n: n for n in ("heartwheel", "app", "eve", "pump")}
    env.own_broker(users=users, acl=acl)
    secret = env.dir / "secret"
    secret.write_text("heartwheel\n")
    tasks = Tasks(env, allow="app * *", mqtt={"username": "heartwheel", "password_file": secret}).start()
    app = Sender(tasks, "app", username="app", password="app")
    eve = Sender(tasks, "eve", username="eve", password="eve")
    eve.client.subscribe(env.root + "/pump/pending", 1)  # granted, and brings nothing
    pump = Device(tasks, "pump", behave=("ack",), username="pump", password="pump")
    eve.ask("deliver", {"receiver": "pump", "action": "evil"}, topic=env.root + "/heartwheel/pending/app")
    m = app.submit("pump", "good")
    task = app.task(m)
    tasks.wait_state(task, "acked")
    eve.client.publish(env.root + "/heartwheel/complete/pump", {"msg_id": task}, qos=1)
    eve.client.publish(env.root + "/heartwheel/complete", {"msg_id": task}, qos=1)
    assert eve.wait(eve.submit("pump", "evil"), "failed")["error"] == "no [tasks] allow line permits this"
    assert tasks.state(task) == "acked"
    pump.say("complete", task)
    app.wait(m, "complete")
    assert [t["action"] for t in pump.got] == ["good"]
    assert not eve.client.on(env.root + "/pump/pending")


def test_the_words_of_the_protocol(env):
    """A node that consists of mosquitto_sub and mosquitto_pub, with FD's topics and QoS 1: it takes a task and answers on the
    sender's own topics, without a last level."""
    tasks = Tasks(env).start()
    a = Sender(tasks, "A")
    b = subprocess.Popen(["mosquitto_sub", "-h", "127.0.0.1", "-p", str(env.broker.port), "-t", env.root + "/B/pending", "-q",
                          "1", "-i", env.node + "-B", "-C", "1"], stdout=subprocess.PIPE, text=True)
    try:
        m = a.submit("B", "test", {})
        got = json.loads(b.communicate(timeout=PATIENCE)[0])
    finally:
        b.kill()
    assert set(got) >= {"sender", "receiver", "msg_id", "action", "time", "exp", "payload"}
    assert (got["receiver"], got["action"], got["payload"]) == ("B", "test", {})
    for word, more in (("ack", ""), ("complete", ',"value":"task completed successfully"')):
        subprocess.run(["mosquitto_pub", "-h", "127.0.0.1", "-p", str(env.broker.port), "-t",
                        "%s/%s/%s" % (env.root, got["sender"], word), "-q", "1", "-m",
                        '{"msg_id":"%s"%s}' % (got["msg_id"], more)], check=True, timeout=PATIENCE)
    assert a.wait(m, "ack", "acked")
    assert a.wait(m, "complete")["value"] == "task completed successfully"


def test_an_answer_that_redis_has_no_memory_for(env):
    """heartwheel-tasks keeps the answer and writes it to Redis later, over the same connection; then it takes further
    answers."""
    env.own_redis()
    tasks = Tasks(env).start()
    alice, d1 = Sender(tasks), Device(tasks, "d1", behave=())
    m = alice.submit("d1")
    d1.wait()
    task = alice.task(m)
    env.redis.config_set("maxmemory", "1")
    d1.say("ack", task)
    wait_until(lambda: "maxmemory" in tasks.log(), what="it to say so")
    env.redis.config_set("maxmemory", "0")
    tasks.wait_state(task, "acked")
    alice.task(alice.submit("d1"))


def test_a_device_comes_online_when_redis_has_forgotten_the_scripts(env):
    """The first call fails, since Redis lacks the script; the device's tasks are made due all the same, and do not wait for the
    check ten minutes later."""
    env.own_redis()
    tasks = Tasks(env).start()
    alice, d1 = Sender(tasks), Device(tasks, "d1")
    tasks.set_online("d1", False)
    m = alice.submit("d1")
    tasks.wait_state(alice.task(m), "held")
    env.redis.script_flush()
    tasks.set_online("d1", True)
    alice.wait(m, "complete")
    assert len(d1.done) == 1


def test_stopped_with_a_question_on_its_way_to_redis(env):
    """Redis is suspended with requests under way, and the stop closes its connection: by then neither the requests' submitters
    nor the connection to the broker exist."""
    env.own_redis()
    tasks = Tasks(env).start()
    alice = Sender(tasks)
    m = alice.submit("d1", after=3600)
    alice.task(m)
    env.redis_server.signal(signal.SIGSTOP)
    alice.ask("query", {"msg_id": m})
    alice.submit("d1", after=3600)
    tasks.signal(signal.SIGTERM)
    assert tasks.wait(PATIENCE) == 0
    env.redis_server.signal(signal.SIGCONT)
    tasks.check_log()


def test_stopped_while_answers_come(env):
    """What heartwheel-tasks has acknowledged to the broker is in Redis when it has stopped; the rest waits at the broker."""
    env.own_redis()
    tasks = Tasks(env, window=1000, ack_wait="10m", retry_max="10m").start()
    alice, d1 = Sender(tasks), Device(tasks, "d1", behave=())
    ms = [alice.submit("d1", payload=i) for i in range(300)]
    d1.wait(300)
    names = [alice.task(m) for m in ms]
    env.redis.config_set("maxmemory", "1")  # the first is kept, and the others wait in between
    for name in names:
        d1.say("complete", name)
    wait_until(lambda: "maxmemory" in tasks.log(), what="it to say so")
    tasks.signal(signal.SIGTERM)
    wait_until(lambda: "stopping on" in tasks.log(), what="it to stop")
    env.redis.config_set("maxmemory", "0")
    assert tasks.wait(PATIENCE) == 0
    tasks.check_log()
    tasks.start()
    for name in names:
        tasks.wait_state(name, "complete")


@pytest.mark.parametrize("key", ["socket", "pid_file", "log"])
def test_a_fifo_in_the_place_of_a_file(env, key):
    """The last line of the log names the path and the key."""
    fifo = env.own_dir("fifo") / "it"
    os.mkfifo(fifo)
    tasks = Tasks(env, **{key: fifo}).start(ready=False)
    assert tasks.wait(PATIENCE) == 1
    last = tasks.log().splitlines()[-1]
    assert str(fifo) in last and "see [tasks] " + key in last, tasks.log()
