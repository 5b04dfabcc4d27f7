# SPDX-License-Identifier: MIT
"""Many followers over MQTT: their number is bounded, sessions that never acknowledge end, and one follower works among many
dead ones."""
import json

import pytest

from hw_tasks import Sender, Tasks
from hw_wait import throughout, wait_until

DEAD = 3000


def follow_all(tasks, client, names, payload):
    """One client follows under all these names. Returns the msg_ids."""
    for name in names:
        client.publish("%s/%s/pending/%s" % (tasks.root, tasks.service, name),
                       {"msg_id": "f-" + name, "action": "follow", "time": 0, "payload": payload(name)}, qos=1)


def answers(observer, word):
    return {m.topic.split("/")[-2] for m in list(observer.messages) if m.topic.endswith("/" + word)}


def transitions(client, name):
    return [m.json() for m in list(client.messages) if m.topic.endswith("/%s/pending" % name)]


def ack(tasks, client, name, msg_id):
    client.publish("%s/%s/ack/%s" % (tasks.root, tasks.service, name), {"msg_id": msg_id}, qos=1)


def commands(env):
    return env.redis.info("commandstats").get("cmdstat_xrange", {}).get("calls", 0)



def metric(tasks, name):
    text = tasks.get("/metrics").body.decode()
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("heartwheel_%s " % name))


@pytest.mark.parametrize("wish", ["another", "the same"])
def test_a_living_follower_among_many_dead_ones_gets_its_transitions_in_time(env, wish):
    """A transition costs nothing for followers of other devices; followers of the same device get theirs without waiting for
    others."""
    env.own_redis()
    tasks = Tasks(env, ack_wait="2s").start()
    device, living = env.root + "-d", env.root + "-living"
    me, out = Sender(tasks, living), env.observer("%s/+/complete" % tasks.root)
    me.wait(me.ask("follow", {"ids": [device]}), "complete")
    dead = ["dead-%d" % i for i in range(DEAD)]
    follow_all(tasks, me.client, dead, lambda name: {"prefix": device if wish == "the same" else "other-" + name})
    wait_until(lambda: len(answers(out, "complete")) > DEAD, 60, "all to follow")
    assert env.redis.scard(tasks.key("follow")) == metric(tasks, "task_followers") == DEAD + 1
    wait_until(lambda: metric(tasks, "task_followers_current") == DEAD + 1, what="all to have read the stream")
    before, seen = commands(env), 0
    for k in range(40):
        tasks.set_online(device, k % 2 == 0)
        wait_until(lambda: len({t["msg_id"] for t in transitions(me.client, living)}) > k, 5, "transition %d" % k)
        ack(tasks, me.client, living, transitions(me.client, living)[-1]["msg_id"])
    if wish == "another":
        # Two for each transition, and some for the sessions that are looked at once a minute.
        assert commands(env) - before < 300
    states = [t["payload"]["state"] for t in transitions(me.client, living)]
    assert states[:2] == ["online", "offline"]


def test_one_follower_too_many_is_refused(env):
    tasks = Tasks(env, max_followers=3).start()
    names = ["f%d" % i for i in range(3)]
    one = Sender(tasks, "one")
    out = env.observer("%s/+/+" % tasks.root)
    follow_all(tasks, one.client, names, lambda name: {})
    wait_until(lambda: answers(out, "complete") >= set(names), what="as many as may")
    refusal = one.wait(one.ask("follow", {}), "failed")
    assert refusal["state"] == "refused" and "max_followers = 3" in json.dumps(refusal)
    refused = tasks.get("/metrics").body.decode()
    assert 'heartwheel_task_refused_total{kind="full"} 1' in refused
    assert not env.redis.exists("s:s:one") and env.redis.scard(tasks.key("follow")) == 3
    # One that follows already may follow anew; and where one has ended there is room.
    follow_all(tasks, one.client, ["f0"], lambda name: {"group": "default"})
    wait_until(lambda: "group" in env.redis.hget("s:s:f0", env.key("events")), what="its new filter")
    one.client.publish("%s/%s/pending/f1" % (tasks.root, tasks.service),
                       {"msg_id": "u", "action": "unfollow", "time": 0, "payload": {}}, qos=1)
    wait_until(lambda: metric(tasks, "task_followers") == 2, what="room")
    one.wait(one.ask("follow", {}), "complete")
    # After a start the bound holds as well.
    tasks.stop()
    tasks.start()
    wait_until(lambda: metric(tasks, "task_followers") == 3, what="all three")
    assert Sender(tasks, "two").wait(Sender(tasks, "two").ask("follow", {}), "failed")["state"] == "refused"


def test_a_session_that_never_acknowledges_ends(env):
    tasks = Tasks(env, ack_wait="1s", follow_expire="3s").start()
    device = env.root + "-d"
    living, dead, quiet = (Sender(tasks, env.root + "-" + x) for x in ("living", "dead", "quiet"))
    for one in (living, dead):
        one.wait(one.ask("follow", {"ids": [device]}), "complete")
    quiet.wait(quiet.ask("follow", {"ids": [env.root + "-other"]}), "complete")
    waiting = tasks.key("follow", "new")
    assert set(env.redis.zrange(waiting, 0, -1)) == {living.name, dead.name, quiet.name}
    tasks.set_online(device, True)
    first = wait_until(lambda: transitions(living.client, living.name), what="the transition")[0]
    ack(tasks, living.client, living.name, first["msg_id"])
    wait_until(lambda: living.name not in env.redis.zrange(waiting, 0, -1), what="the ack to count")
    # A restart in between changes nothing.
    wait_until(lambda: transitions(dead.client, dead.name), what="the other's transition")
    tasks.stop()
    tasks.start()
    wait_until(lambda: not env.redis.exists("s:s:" + dead.name), what="the dead one's end")
    assert not env.redis.exists("s:t:" + dead.name, "s:ol:" + dead.name)
    assert env.redis.smembers(tasks.key("follow")) == {living.name, quiet.name}
    assert env.redis.zrange(waiting, 0, -1) == [quiet.name]
    assert metric(tasks, "task_followers_expired_total") == 1
    # Who has acknowledged once, or was sent nothing, stays.
    tasks.set_online(device, False)
    throughout(lambda: env.redis.exists("s:s:" + living.name, "s:s:" + quiet.name) == 2, 4, what="the others")
    assert any(t["payload"]["state"] == "offline" for t in transitions(living.client, living.name))


def test_a_client_that_is_offline_has_its_time_from_its_return(env):
    tasks = Tasks(env, ack_wait="1s", follow_expire="2s").start()
    device, name = env.root + "-d", env.root + "-me"
    me = Sender(tasks, name)
    me.wait(me.ask("follow", {"ids": [device]}), "complete")
    tasks.set_online(device, True)
    wait_until(lambda: transitions(me.client, name), what="the transition")
    tasks.set_online(name, False)
    throughout(lambda: env.redis.exists("s:s:" + name), 4, what="the session of one that is offline")
    n = len(transitions(me.client, name))
    tasks.set_online(name, True)
    wait_until(lambda: len(transitions(me.client, name)) > n, what="it again")
    ack(tasks, me.client, name, transitions(me.client, name)[-1]["msg_id"])
    wait_until(lambda: not env.redis.exists(tasks.key("follow", "new")), what="the ack to count")
    assert env.redis.exists("s:s:" + name)
