# SPDX-License-Identifier: MIT
"""For clients that only speak MQTT: held wills, and the transitions of devices that a client follows."""
import json

import pytest

from hw_tasks import Sender, Tasks
from hw_wait import throughout, wait_until


@pytest.fixture
def tasks(env):
    return Tasks(env, ack_wait="1s", publish="%s/out/{sender}/#" % env.root).start()


def settled(tasks):
    """The offset of the wills is known: transitions from now on count."""
    wait_until(lambda: tasks.env.redis.exists(tasks.key("wills")), what="the place of the wills")


def test_a_will_is_published_at_each_offline_transition(tasks, env):
    pump = env.root + "-pump"
    device, out = Sender(tasks, pump), env.observer(env.root + "/out/#")
    mine = "%s/out/%s/dead" % (env.root, pump)
    settled(tasks)
    tasks.set_online(pump, True)
    device.wait(device.ask("will", {"topic": mine, "payload": {"dead": [1, 2.5]}, "qos": 1}), "complete")
    assert json.loads(env.redis.get("s:w:" + pump))["topic"] == mine
    tasks.set_online(pump, False)
    wait_until(lambda: len(out.on(mine)) == 1, what="the will")
    assert out.on(mine)[0].payload == b'{"dead": [1, 2.5]}'
    tasks.set_online(pump, True)
    tasks.set_online(pump, False)
    wait_until(lambda: len(out.on(mine)) == 2, what="the will again")
    # What happens while nobody looks is made up for; what was published before is not published again.
    tasks.stop()
    tasks.set_online(pump, True)
    tasks.set_online(pump, False)
    tasks.start()
    wait_until(lambda: len(out.on(mine)) == 3, what="the will of a death that nobody saw")
    # Taken back: nothing comes of the next death, which another one's will shows to have been read.
    device.wait(device.ask("will", {}), "complete")
    assert not env.redis.exists("s:w:" + pump)
    other = env.root + "-other"
    path = "/v1/devices/%s/will" % other
    assert tasks.get(path).status == 404
    assert tasks.request("PUT", path, {"topic": "%s/out/%s/x" % (env.root, other), "payload": "gone"}).status == 204
    assert json.loads(tasks.get(path).body)["payload"] == "gone"
    for name in (pump, other):
        tasks.set_online(name, True)
        tasks.set_online(name, False)
    wait_until(lambda: [m.payload for m in out.on("%s/out/%s/x" % (env.root, other))] == [b"gone"], what="the other's will")
    assert len(out.on(mine)) == 3
    assert tasks.request("DELETE", path).status == 204
    assert tasks.request("DELETE", path).status == 404


def test_a_will_on_somebody_elses_topic_is_refused(tasks, env):
    thief, victim = env.root + "-thief", env.root + "-victim"
    device, out = Sender(tasks, thief), env.observer(env.root + "/out/#")
    settled(tasks)
    for topic in ("%s/out/%s/x" % (env.root, victim), env.root + "/elsewhere", "$SYS/x", env.root + "/out/%s/+" % thief):
        m = device.ask("will", {"topic": topic, "payload": 1})
        assert device.wait(m, "failed")["state"] == "refused"
        answer = tasks.request("PUT", "/v1/devices/%s/will" % thief, {"topic": topic, "payload": 1})
        assert answer.status == 400, topic
    assert tasks.request("PUT", "/v1/devices/%s/will" % thief, b"[1]").status == 400
    assert not env.redis.exists("s:w:" + thief)
    # Nor one that came into Redis otherwise.
    env.redis.set("s:w:" + thief, json.dumps({"topic": "%s/out/%s/x" % (env.root, victim), "payload": 1}))
    env.redis.set("s:w:" + victim, json.dumps({"topic": "%s/out/%s/own" % (env.root, victim), "payload": 2}))
    for name in (thief, victim):
        tasks.set_online(name, True)
        tasks.set_online(name, False)
    wait_until(lambda: out.on("%s/out/%s/own" % (env.root, victim)), what="the allowed one")
    throughout(lambda: not out.on("%s/out/%s/x" % (env.root, victim)), 0.3, what="the other's topic is left alone")
    env.redis.delete("s:w:" + thief, "s:w:" + victim)


def heard(client):
    return [m.json() for m in client.client.messages if m.topic.endswith("/pending")]


def events(client, action="transition"):
    return [(t["payload"]["id"], t["payload"]["state"]) for t in heard(client) if t["action"] == action]


def ack(client, msg_id):
    t = client.tasks
    client.client.publish("%s/%s/ack/%s" % (t.root, t.service, client.name), {"msg_id": msg_id}, qos=1)


def offset(tasks, client):
    return tasks.env.redis.hget("s:t:" + client, tasks.env.key("events"))


def test_the_record_of_a_session_is_json_whatever_the_node_id(env):
    t = Tasks(env, node='a"\\b').start()
    follower = Sender(t, env.root + "-me")
    follower.wait(follower.ask("follow", {}), "complete")
    assert json.loads(env.redis.get("s:ol:" + follower.name))["serverId"] == t.node


def test_a_follower_gets_each_transition_until_it_acknowledges(tasks, env):
    me, a, b, c = (env.root + "-" + x for x in ("me", "a1", "a2", "b1"))
    follower = Sender(tasks, me)
    follower.wait(follower.ask("follow", {"prefix": env.root + "-a", "group": "default"}), "complete")
    assert json.loads(env.redis.get("s:ol:" + me))["clientId"] == me
    assert env.redis.ttl("s:s:" + me) > 29 * 86400
    for device in (a, c, b):
        tasks.set_online(device, True)
    wait_until(lambda: events(follower)[:2] == [(a, "online"), (b, "online")], what="two of three transitions")
    first = heard(follower)[0]
    assert (first["sender"], first["receiver"], first["action"]) == (tasks.service, me, "transition")
    assert first["payload"]["reason"] == "heartbeat" and first["payload"]["group"] == "default"
    wait_until(lambda: len(events(follower)) >= 4, what="both again")
    ids = sorted({t["msg_id"] for t in heard(follower)}, key=lambda i: [int(x) for x in i.split("-")])
    assert len(ids) == 2
    ack(follower, ids[1])  # acknowledges the one before it too
    wait_until(lambda: offset(tasks, me) == ids[1], what="the place behind the ack")
    # It goes away, known to be; what happens meanwhile is sent when it is back, and nothing that it had acknowledged.
    tasks.set_online(me, False)
    n = len(heard(follower))
    tasks.set_online(a, False)
    throughout(lambda: len(heard(follower)) == n, 1.5, what="nothing for who is away")
    tasks.stop()
    tasks.set_online(b, False)
    tasks.start()
    tasks.set_online(me, True)
    wait_until(lambda: set(events(follower)[n:]) == {(a, "offline"), (b, "offline")}, what="what it has missed")
    ack(follower, heard(follower)[-1]["msg_id"])
    follower.wait(follower.ask("unfollow", {}), "complete")
    assert not env.redis.exists("s:ol:" + me, "s:s:" + me, "s:t:" + me)


def test_what_redis_refuses_for_a_while_comes_then(env):
    """They arrive although no further event makes heartwheel-tasks read."""
    env.own_redis()
    tasks = Tasks(env).start()
    follower, device = Sender(tasks, env.root + "-f"), env.root + "-d"
    follower.wait(follower.ask("follow", {"ids": [device]}), "complete")
    tasks.set_online(device, True)
    wait_until(lambda: events(follower) == [(device, "online")], what="the first")
    ack(follower, heard(follower)[0]["msg_id"])
    wait_until(lambda: offset(tasks, follower.name) == heard(follower)[0]["msg_id"], what="the ack")
    env.redis.execute_command("ACL", "SETUSER", "default", "-xrange")
    tasks.set_online(device, False)
    wait_until(lambda: "xrange" in tasks.log().lower(), what="Redis to refuse it")
    throughout(lambda: len(events(follower)) == 1, 2)
    env.redis.execute_command("ACL", "SETUSER", "default", "+xrange")
    wait_until(lambda: events(follower) == [(device, "online"), (device, "offline")], what="the second")


@pytest.mark.parametrize("instances", ["one", "several"])
def test_what_is_not_acknowledged_comes_again(env, instances):
    """Also if each second another instance is asked whether it has received an ack."""
    tasks = Tasks(env, ack_wait="2s", instances=instances).start()
    follower, device = Sender(tasks, env.root + "-f"), env.root + "-d"
    follower.wait(follower.ask("follow", {"ids": [device]}), "complete")
    tasks.set_online(device, True)
    wait_until(lambda: len(heard(follower)) >= 3, what="it to come again, and again")
    ack(follower, heard(follower)[0]["msg_id"])
    wait_until(lambda: offset(tasks, follower.name) == heard(follower)[0]["msg_id"], what="the ack")


def test_an_ack_of_an_impossible_place_changes_nothing(env):
    """The broker gives some of the acks to the instance that does not serve the follower."""
    tasks, other = (Tasks(env, node="%s-%d" % (env.node, k), instances="several") for k in range(2))
    tasks.start()
    follower, device = Sender(tasks, env.root + "-f"), env.root + "-d"
    follower.wait(follower.ask("follow", {"ids": [device]}), "complete")
    other.start()
    tasks.set_online(device, True)
    wait_until(lambda: events(follower), what="the first")
    first = heard(follower)[0]["msg_id"]

    def is_acknowledged():
        ack(follower, first)  # an instance that is starting may lose one; then the event comes again, and its ack
        return offset(tasks, follower.name) == first
    wait_until(is_acknowledged, what="the ack", interval=0.2)

    def is_kept():
        for place in "18446744073709551615-0", "9223372036854775808-0", "9999999999999-0":
            ack(follower, place)
        return offset(tasks, follower.name) == first
    throughout(is_kept, 3, what="the place of the ack to stay")  # each instance knows the other after a second
    tasks.set_online(device, False)
    wait_until(lambda: (device, "offline") in events(follower), what="the second")


def test_at_most_100_are_unacknowledged_and_what_was_trimmed_is_told(tasks, env):
    me, device = env.root + "-me", env.root + "-d"
    stream = env.key("events")
    for k in range(130):
        tasks.set_online(device, k % 2 == 0)
    first = env.redis.xrange(stream, count=1)[0][0]
    follower = Sender(tasks, me)
    follower.wait(follower.ask("follow", {"ids": [device], "from": "start"}), "complete")
    wait_until(lambda: len(events(follower)) >= 100, what="a hundred")
    throughout(lambda: len({t["msg_id"] for t in heard(follower)}) == 100, 0.5, what="no more than a hundred")
    assert heard(follower)[0]["msg_id"] == first
    last = heard(follower)[99]["msg_id"]
    ack(follower, last)
    wait_until(lambda: len({t["msg_id"] for t in heard(follower)}) == 130, what="the rest")
    assert all(t["action"] == "transition" for t in heard(follower))
    tasks.stop()
    env.redis.xtrim(stream, maxlen=10, approximate=False)
    oldest = env.redis.xrange(stream, count=1)[0][0]
    tasks.start()
    gap = wait_until(lambda: next((t for t in heard(follower) if t["action"] == "gap"), None), what="the gap")
    assert (gap["payload"]["after"], gap["payload"]["before"]) == (last, oldest)
    ack(follower, heard(follower)[-1]["msg_id"])


def test_who_may_not_follow(env):
    tasks = Tasks(env, allow="bob follow *").start()
    alice, bob = Sender(tasks, "alice"), Sender(tasks, "bob")
    assert alice.wait(alice.ask("follow", {}), "failed")["state"] == "refused"
    bob.wait(bob.ask("follow", {}), "complete")
    bob.wait(bob.ask("unfollow", {}), "complete")
