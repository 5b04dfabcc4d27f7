# SPDX-License-Identifier: MIT
"""Values that another program has put into the Redis of heartwheel-tasks: offsets, records, sets, streams, answers. Each is
counted and skipped or corrected; everything else continues."""
import json
import time
import uuid

import pytest

from hw_tasks import Device, Sender, Tasks
from hw_wait import throughout, wait_until

GREATEST = "18446744073709551615-18446744073709551615"
OFFSETS = [GREATEST, "18446744073709551615", "4000000000000-0", "5-18446744073709551616", "junk", "-1", ""]
NUMBERS = ["nan", "-nan", "inf", "-inf", "1e308", "-1e308", "9223372036854775807", "-9223372036854775808",
           "18446744073709551616", "0x1p1000", "junk", "", "-1"]


def odd(t, kind):
    return t.metrics().get("task_unusable_total", kind=kind)


def wait_odd(t, kind, n=1):
    wait_until(lambda: (odd(t, kind) or 0) >= n, what="%d unusable values of kind %s to be counted" % (n, kind))


def post(t, **task):
    answer = t.request("POST", "/v1/tasks", {"action": "set", "payload": 1, **task})
    assert answer.status == 201, answer.body
    return answer.json()["task"]


def pended(observer):
    return [m.json() for m in observer.messages if m.topic.endswith("/pending")]


# --- offsets ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", OFFSETS)
def test_an_impossible_offset_in_the_stream_of_devices(env, offset):
    """Held tasks are still sent when their device comes online, and the offset is replaced."""
    t = Tasks(env, node=env.node)
    device = env.root + "-d"
    t.set_online(device, False)
    env.redis.set(t.key("at"), offset)
    t.start()
    pump = Device(t, device)
    task = post(t, receiver=device)
    t.wait_state(task, "held")
    t.set_online(device, True)
    t.wait_state(task, "complete")
    wait_until(lambda: env.redis.get(t.key("at")) == env.redis.xrevrange(env.key("events"), count=1)[0][0],
               what="the offset to be replaced")
    assert len(pump.done) == 1
    wait_odd(t, "offset")
    assert t.key("at") in t.log()


def test_a_stream_of_devices_that_is_put_back(env):
    """The stream ends before the offset that was read last: later entries are read at once, not only once they reach that
    offset."""
    t = Tasks(env).start()
    device = env.root + "-d"
    t.set_online(device, False)
    wait_until(lambda: env.redis.exists(t.key("at")) and env.redis.xlen(env.key("events")), what="an entry")
    task = post(t, receiver=device)
    t.wait_state(task, "held")
    ahead = "%d-7" % (time.time() * 1000 + 3600 * 1000)
    env.redis.xadd(env.key("events"), {"id": "other", "state": "online"}, id=ahead)
    wait_until(lambda: env.redis.get(t.key("at")) == ahead, what="the entry to be read")
    env.redis.delete(env.key("events"))
    pump = Device(t, device)
    t.set_online(device, True)
    t.wait_state(task, "complete")
    assert len(pump.done) == 1


@pytest.mark.parametrize("offset", OFFSETS)
def test_an_impossible_offset_of_the_wills(env, offset):
    t = Tasks(env, publish="%s/out/{sender}/#" % env.root)
    device = env.root + "-d"
    t.set_online(device, True)
    env.redis.set(t.key("wills"), offset)
    env.redis.set("s:w:" + device, json.dumps({"topic": "%s/out/%s/x" % (env.root, device), "payload": "gone"}))
    out = env.observer(env.root + "/out/#")
    t.start()
    wait_odd(t, "offset")
    wait_until(lambda: env.redis.get(t.key("wills")) == env.redis.xrevrange(env.key("events"), count=1)[0][0],
               what="the offset to be replaced")
    t.set_online(device, False)
    wait_until(lambda: [m.payload for m in out.messages] == [b"gone"], what="the will, once")
    assert t.key("wills") in t.log()
    env.redis.delete("s:w:" + device)


@pytest.mark.parametrize("offset", OFFSETS)
def test_an_impossible_offset_of_a_follower(env, offset):
    t = Tasks(env, ack_wait="1s").start()
    follower, device = Sender(t, env.root + "-f"), env.root + "-d"
    follower.wait(follower.ask("follow", {"ids": [device]}), "complete")
    t.stop()
    env.redis.hset("s:t:" + follower.name, env.key("events"), offset)
    t.start()
    wait_odd(t, "offset")
    t.set_online(device, True)
    wait_until(lambda: [m["payload"]["state"] for m in pended(follower.client)][:1] == ["online"], what="the transition")
    follower.wait(follower.ask("unfollow", {}), "complete")


def stream_is_full(t):
    answer = t.get("/readyz")
    return answer.status == 503 and "greatest possible id" in answer.body.decode()


def commands_of(env):
    return env.redis.info("stats")["total_commands_processed"]


def test_wills_are_published_once_although_the_stream_of_devices_has_the_greatest_id(env):
    t = Tasks(env, publish="%s/out/#" % env.root).start()
    devices, out = [env.root + "-p1", env.root + "-p2"], env.observer(env.root + "/out/#")
    for d in devices:
        answer = t.request("PUT", "/v1/devices/%s/will" % d, {"topic": "%s/out/%s" % (env.root, d), "payload": "gone"})
        assert answer.status == 204, answer.body
        t.set_online(d, True)
        t.set_online(d, False)
    wait_until(lambda: len(out.messages) == 2, what="each will, once")
    for d in devices:
        t.set_online(d, True)
    env.redis.xadd(env.key("events"), {"a": "b"}, id=GREATEST)
    wait_until(lambda: stream_is_full(t), what="readyz to say that the stream is full")
    assert env.key("events") in t.get("/readyz").body.decode()
    t.stop()
    t.start(ready=False)
    wait_until(lambda: t.answers("/healthz") and stream_is_full(t), what="readyz to say so after a restart")
    before = commands_of(env)
    throughout(lambda: len(out.messages) == 2, 2, what="no more wills")
    assert commands_of(env) - before < 1500
    assert t.log().count("greatest possible id") == 2  # once per run
    env.redis.delete(env.key("events"))
    wait_until(t.ready, what="readyz after the key was deleted")
    t.set_online(devices[0], False)
    wait_until(lambda: len(out.messages) == 3, what="the will of the next death")
    assert out.messages[2].topic.endswith("p1")
    for d in devices:
        env.redis.delete("s:w:" + d)


def test_a_follower_reads_up_to_the_greatest_id(env):
    t = Tasks(env, ack_wait="500ms").start()
    follower, device = Sender(t, env.root + "-f"), env.root + "-d"
    t.set_online(device, True)
    follower.wait(follower.ask("follow", {"ids": [device], "from": "start"}), "complete")
    wait_until(lambda: len(pended(follower.client)) >= 1, what="the first transition")
    now = int(time.time() * 1000)
    env.redis.xadd(env.key("events"), {"id": device, "state": "offline", "reason": "timeout", "time_ms": now,
                                       "last_seen_ms": now, "group": "g", "node": t.node, "seq": now}, id=GREATEST)
    wait_until(lambda: GREATEST in [m["msg_id"] for m in pended(follower.client)], what="the greatest id")
    follower.client.publish("%s/%s/ack/%s" % (t.root, t.service, follower.name), {"msg_id": GREATEST}, qos=1)
    wait_until(lambda: env.redis.hget("s:t:" + follower.name, env.key("events")) == GREATEST, what="the ack")
    wait_until(lambda: stream_is_full(t), what="readyz to say that the stream is full")
    seen, before = len(pended(follower.client)), commands_of(env)
    throughout(lambda: len(pended(follower.client)) == seen, 2, what="nothing more to be sent")
    assert commands_of(env) - before < 1500
    assert {m["action"] for m in pended(follower.client)} == {"transition"}
    env.redis.delete(env.key("events"))
    wait_until(t.ready, what="readyz after the key was deleted")
    t.set_online(device, True)
    wait_until(lambda: len(pended(follower.client)) > seen, what="the next transition")
    assert pended(follower.client)[-1]["payload"]["state"] == "online"
    follower.wait(follower.ask("unfollow", {}), "complete")


# --- sets ------------------------------------------------------------------------------------------------------------------------


def test_members_of_the_set_of_what_is_due_that_are_no_tasks(env):
    """More than a page of invalid members stand before a task that is due."""
    t = Tasks(env).start()
    pump = Device(t, env.root + "-d")
    task = post(t, receiver=pump.name, after=2)
    t.stop()
    env.redis.zadd(t.key("due"), {"junk%d" % i: i % 7 for i in range(1300)})
    env.redis.zadd(t.key("due"), {b"\0\xff" * 40: "-inf", "secret": "+inf", str(uuid.uuid4()): 3})
    t.start()
    t.wait_state(task, "complete")
    assert len(pump.done) == 1
    wait_odd(t, "due", 1300)
    # What is in the way leaves the set; the list and the counts are served meanwhile.
    wait_until(lambda: env.redis.zcard(t.key("due")) <= 1, what="what is no task to leave the set")
    assert t.get("/v1/tasks").status == 200
    assert env.redis.exists(t.key("secret"))


def test_instances_that_stand_in_the_set_for_ever(env):
    """The places of these instances in the order count for no instance: wills and tasks are this instance's at once."""
    t = Tasks(env, instances="several", publish="%s/out/{sender}/#" % env.root)
    env.redis.zadd(t.key("nodes"), {"ghost%d" % i: "+inf" for i in range(63)})
    env.redis.zadd(t.key("nodes"), {"ghost": time.time() * 1000 + 86400000, b"\xff\0" * 300: 1e15})
    device, out = env.root + "-d", env.observer(env.root + "/out/#")
    env.redis.set("s:w:" + device, json.dumps({"topic": "%s/out/%s/x" % (env.root, device), "payload": "gone"}))
    t.set_online(device, True)
    t.start()
    wait_until(lambda: env.redis.zcard(t.key("nodes")) == 1, what="the ghosts to leave the set")
    wait_until(lambda: env.redis.exists(t.key("wills")), what="the place of the wills")
    t.set_online(device, False)
    wait_until(lambda: out.messages, what="the will")
    pump = Device(t, env.root + "-e")
    t.wait_state(post(t, receiver=pump.name), "complete")
    wait_odd(t, "node", 65)
    env.redis.delete("s:w:" + device)


def test_members_of_the_set_of_watched_tasks_that_are_none(env):
    t = Tasks(env, watch="yes", keep="2s").start()
    env.redis.zadd(t.key("watched"), {"secret": 0, "junk": "-inf", "due": 1, "events": 2})
    bob = env.client()
    bob.publish("%s/pump/pending" % env.root, {"sender": "anna", "receiver": "pump", "msg_id": "w1", "action": "set",
                                               "time": int(time.time()), "exp": time.time() + 3, "payload": 1}, qos=1)
    wait_until(lambda: ("expired", "exp") in t.transitions(), what="the watched task to end")
    wait_until(lambda: env.redis.zcard(t.key("watched")) == 0, what="all to leave the set")
    assert env.redis.exists(t.key("secret"))
    wait_odd(t, "record", 2)


def test_followers_of_names_that_no_topic_can_have(env):
    t = Tasks(env).start()
    names = ["a/b", "#", "a+", "", "x" * 256, b"\xff", "a\nb"]
    for n in names:
        n = n if isinstance(n, bytes) else n.encode()
        env.redis.hset(b"s:s:" + n, env.key("events"), "{}")
        env.redis.hset(b"s:t:" + n, env.key("events"), "0-0")
    env.redis.sadd(t.key("follow"), *names)
    t.stop()
    t.start()
    wait_odd(t, "follower", len(names))
    wait_until(lambda: env.redis.scard(t.key("follow")) == 0, what="them to leave the set")
    follower = Sender(t, env.root + "-f")
    follower.wait(follower.ask("follow", {}), "complete")
    t.set_online(env.root + "-d", True)
    wait_until(lambda: pended(follower.client), what="the transition")
    follower.wait(follower.ask("unfollow", {}), "complete")
    for n in names:
        n = n if isinstance(n, bytes) else n.encode()
        env.redis.delete(b"s:s:" + n, b"s:t:" + n)


# --- records ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["tries", "at", "exp", "run", "created", "sent", "acked", "hold", "qos", "retain"])
def test_a_record_with_impossible_numbers(env, field):
    """Tasks that are claimed together with the record are sent all the same, each once; and the record's task ends."""
    t = Tasks(env, ack_wait="60s", run="2s", rate=0).start()
    pump = Device(t, env.root + "-d", behave=())
    good, bad = [], []
    for i in range(2 * len(NUMBERS)):
        bad.append(post(t, receiver="%s-n%d" % (env.root, i), after=3, exp=time.time() + 8))
        good.append(post(t, receiver="%s-g%d" % (env.root, i), after=3))
    got = env.observer("%s/+/pending" % env.root)
    for i, task in enumerate(bad):
        env.redis.hset(t.key(task), field, NUMBERS[i % len(NUMBERS)])
        if i >= len(NUMBERS):
            env.redis.hset(t.key(task), mapping={"state": "acked", "tries": field == "tries" and NUMBERS[i % len(NUMBERS)] or "1"})
    ids = lambda: [j["msg_id"] for j in pended(got)]  # noqa: E731
    wait_until(lambda: set(good) <= set(ids()), what="all others to be sent")
    wait_until(lambda: all(t.state(b) in ("expired", "failed", "complete") for b in bad), 60, what="all to end: %s" % field)
    assert sorted(i for i in ids() if i in good) == sorted(good)
    most = max([ids().count(b) for b in bad] + [0])
    assert most <= 3, most
    assert pump.got == []
    if field != "hold":
        wait_odd(t, "record")
    for b in bad:
        assert t.get("/v1/tasks/" + b).status == 200


@pytest.mark.parametrize("state", ["flying", "", "x" * 5000])
def test_a_record_in_no_state(env, state):
    t = Tasks(env).start()
    alice, late = Sender(t), time.time() + 3600
    names = []
    for word in ("submit", "cancel", "query"):
        m = alice.submit(env.root + "-d", msg_id=word, at=late)
        names.append(alice.task(m))
        env.redis.hset(t.key(names[-1]), "state", state)
    n = len(alice.told("submit"))
    alice.submit(env.root + "-d", msg_id="submit", at=late)
    wait_until(lambda: len(alice.told("submit")) > n, what="an answer to what is submitted again")
    alice.wait(alice.ask("cancel", {"msg_id": "cancel"}), "complete")
    m = alice.ask("query", {"msg_id": "query"})
    wait_until(lambda: alice.told(m), what="an answer to the query")
    body = {"receiver": env.root + "-d", "action": "set", "payload": 1, "at": late, "msg_id": "http"}
    task = t.request("POST", "/v1/tasks", body).json()["task"]
    env.redis.hset(t.key(task), "state", state)
    assert t.request("POST", "/v1/tasks", body).status == 200
    assert t.get("/v1/tasks").status == 200
    assert t.get("/v1/tasks/" + task).status in (200, 404)
    assert t.request("DELETE", "/v1/tasks/" + task).status == 200
    assert t.alive


def test_a_record_whose_texts_are_no_names(env):
    """A task that cannot be sent ends, and its submitter receives the end if it has a name."""
    t = Tasks(env, ack_wait="1s").start()
    alice = Sender(t)
    ends = {}
    for i, (field, value) in enumerate([("receiver", "a/#"), ("receiver", b"\xff"), ("receiver", "x" * 3000), ("action", b"a\0b"),
                                        ("sender", "+"), ("sender", "y" * 70000), ("msg_id", "z" * 70000)]):
        m = alice.submit(env.root + "-d%d" % i, msg_id="m%d" % i, after=2)
        ends[m] = alice.task(m), field
        env.redis.hset(t.key(ends[m][0]), field, value)
    body = alice.submit(env.root + "-b", msg_id="body", after=2)
    env.redis.set(t.key("body", alice.task(body)), '{"a":')
    ends[body] = alice.task(body), "body"
    big = alice.submit(env.root + "-b", msg_id="big", after=2)
    env.redis.set(t.key("body", alice.task(big)), '"%s"' % ("a" * 3000000))
    ends[big] = alice.task(big), "body"
    for m, (task, field) in ends.items():
        wait_until(lambda: t.state(task) == "failed", what="the task whose %s is none to fail" % field)  # noqa: B023
        if field not in ("sender", "msg_id"):
            assert alice.wait(m, "failed", "failed")["error"] == "lost", m
    wait_odd(t, "record", len(ends))
    wait_until(lambda: env.redis.xpending(t.key("events"), "tell")["pending"] == 0, what="nothing to be left to tell")


# --- streams ---------------------------------------------------------------------------------------------------------------------


def test_ends_that_nobody_can_be_told(env):
    """More than a page of ends without a submitter: the ends after them are reported, and none is read again for ever."""
    t = Tasks(env, watch="yes").start()
    p = env.redis.pipeline()
    for i in range(150):
        p.xadd(t.key("events"), {"task": str(uuid.uuid4()), "sender": ["a/b", "#", b"\xff", "x" * 300][i % 4], "state": "complete",
                                 "receiver": "r", "msg_id": "m", "why": "", "time_ms": 1, "node": "n"})
    p.xadd(t.key("events"), {"task": "no", "state": "complete"})
    p.xadd(t.key("events"), {"x": "y"})
    p.xadd(t.key("events"), {"task": str(uuid.uuid4()), "sender": "bob", "msg_id": "m", "state": "failed", "why": "device",
                             "receiver": "r", "time_ms": str(2**63 - 1), "waited_ms": str(2**63 - 1), "action": "a", "node": "n"})
    p.xadd(t.key("events"), {"task": str(uuid.uuid4()), "sender": "bob", "msg_id": "w" * 70000, "state": "expired", "watched": "1",
                             "receiver": "r", "time_ms": "-9223372036854775808", "waited_ms": "-9223372036854775808"})
    p.execute()
    alice = Sender(t)
    pump = Device(t, env.root + "-d")
    alice.wait(alice.submit(pump.name), "complete")
    wait_until(lambda: env.redis.xpending(t.key("events"), "tell")["pending"] == 0, what="all to be settled")
    wait_odd(t, "event", 152)


def test_answers_that_are_no_json(env):
    t = Tasks(env).start()
    alice, pump = Sender(t), Device(t, env.root + "-d", behave=("ack",))
    m = alice.submit(pump.name)
    task = alice.task(m)
    pump.wait()
    t.wait_state(task, "acked")
    env.redis.hset(t.key(task), mapping={"state": "complete"})
    env.redis.set(t.key("value", task), '{"open":')
    env.redis.xadd(t.key("events"), {"task": task, "sender": "alice", "receiver": pump.name, "msg_id": m, "state": "complete",
                                     "why": "", "time_ms": int(time.time() * 1000), "node": "n"})
    assert alice.wait(m, "complete")["value"] is None
    wait_odd(t, "record")


@pytest.mark.parametrize("followers", ["follow", "past"])
def test_transitions_of_devices_that_are_none(env, followers):
    """A follower gets valid JSON and none of these entries; a time in the future is corrected."""
    env.check_events = False
    t = Tasks(env, ack_wait="1s").start()
    follower, device = Sender(t, env.root + "-f"), env.root + "-d"
    good = {"id": device, "state": "online", "reason": "heartbeat", "time_ms": 5, "last_seen_ms": 5, "group": "g", "node": "n",
            "seq": 7}
    if followers == "follow":
        follower.wait(follower.ask("follow", {}), "complete")
    bad = [{"state": 'on","x":"'}, {"state": "flying"}, {"seq": "1,\"y\":2"}, {"seq": "1" * 9000}, {"seq": -3}, {"id": "a/#"},
           {"id": b"\xff"}, {"id": "a\nb"}, {"id": "x" * 256}]
    for b in bad:
        env.redis.xadd(env.key("events"), {**good, **b})
    env.redis.xadd(env.key("events"), {**good, "time_ms": str(2**63 - 1), "last_seen_ms": "-1"})
    env.redis.xadd(env.key("events"), {**good, "reason": b"\xff" * 90000, "group": "g" * 90000, "node": "\1"})
    t.set_online(device, False)
    if followers == "past":
        follower.wait(follower.ask("follow", {"from": "start"}), "complete")
    found = lambda: [m["payload"] for m in pended(follower.client)]  # noqa: E731
    wait_until(lambda: any(p["state"] == "offline" for p in found()), what="what comes behind them")
    found = found()[:3]
    assert [p["state"] for p in found] == ["online", "online", "offline"]
    assert abs(found[0]["time_ms"] - time.time() * 1000) < 60000 and found[0]["last_seen_ms"] <= found[0]["time_ms"]
    wait_odd(t, "event", len(bad))
    follower.wait(follower.ask("unfollow", {}), "complete")


def test_a_stream_that_takes_no_more_entries(env):
    """That counts as a refusal of all writes: /readyz says so, and writes continue once the key is deleted."""
    t = Tasks(env).start()
    pump = Device(t, env.root + "-d")
    task = post(t, receiver=pump.name, after=1)
    env.redis.execute_command("XSETID", t.key("events"), GREATEST)
    wait_until(lambda: t.get("/readyz").status == 503, what="/readyz to say so")
    assert "delete its key" in t.get("/readyz").body.decode()
    env.redis.delete(t.key("events"))
    t.wait_state(task, "complete")
    wait_until(t.ready, what="it to be ready again")


@pytest.mark.parametrize("deleted", [False, True], ids=["kept", "deleted"])
def test_a_stream_of_tasks_stays_full_until_its_key_is_deleted(env, deleted):
    """No write is due after the one refusal. Deleting the entry does not help: Redis keeps the stream's last id."""
    t = Tasks(env).start()
    task = post(t, receiver=env.root + "-d", after=3600)
    env.redis.xadd(t.key("events"), {"a": "b"}, id=GREATEST)
    if deleted:
        env.redis.xdel(t.key("events"), GREATEST)
    assert t.request("POST", "/v1/tasks", {"receiver": env.root + "-d", "action": "a"}).status == 503
    throughout(lambda: stream_is_full(t), 7, what="/readyz to say that the stream is full")
    assert t.key("events") in t.get("/readyz").body.decode()
    t.stop()
    t.start(ready=False)
    wait_until(lambda: t.answers("/healthz") and stream_is_full(t), what="readyz to say so after a restart")
    env.redis.delete(t.key("events"))
    wait_until(t.ready, what="readyz after the key was deleted")
    assert t.get("/v1/tasks/" + task).status == 200


@pytest.mark.parametrize("key", ["due", "events"])
def test_a_shared_key_of_another_type_is_a_refusal(env, key):
    """No task can be submitted, sent or ended: /readyz says why, until the key is deleted."""
    t = Tasks(env).start()
    task = post(t, receiver=env.root + "-d", after=3600)
    env.redis.rename(t.key(key), "kept")
    env.redis.set(t.key(key), "x")

    def refused():
        answer = t.get("/readyz")
        return answer.status == 503 and t.key(key) in answer.body.decode()
    assert t.request("POST", "/v1/tasks", {"receiver": env.root + "-d", "action": "a"}).status == 503
    wait_until(refused, what="/readyz to name the key")
    throughout(refused, 7, what="/readyz to name the key")
    assert "holds a string" in t.get("/v1/tasks/status").json()["redis"]
    t.stop()
    t.start(ready=False)
    wait_until(lambda: t.answers("/healthz") and refused(), what="/readyz to name the key after a restart")
    env.redis.rename("kept", t.key(key))
    wait_until(t.ready, what="readyz after the key was put back")
    assert t.get("/v1/tasks/" + task).json()["state"] == "scheduled"
    post(t, receiver=env.root + "-d", after=3600)
