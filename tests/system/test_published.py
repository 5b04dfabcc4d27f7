# SPDX-License-Identifier: MIT
"""P, in device:published: after a crash, the next run first publishes what the broker may not have. `republish_rate = 0`: and
nothing else, so a status that P passes too early stays lost."""
import os
import random
import signal
import time

from hw_wait import throughout, wait_until
from test_nodes_mirror import node

RATE_0 = {"republish_rate": 0}
ROUNDS = int(os.environ.get("HW_KILLS", 25))


def seqs_of(env):
    """{device: seq} of all that Redis has."""
    names = [k[len(env.key("state", "")):] for k in env.redis.keys(env.key("state", "*"))]
    return {i: env.hash(i) for i in names}


def retained_agree(env):
    """Whether each device's retained status is the state that Redis has."""
    retained = env.retained(env.root + "/+/status")
    for i, h in seqs_of(env).items():
        m = retained.get(env.status_topic(i))
        if not m or not m.payload or (m.json()["seq"], m.json()["online"]) != (int(h["seq"]), h["state"] == "online"):
            return False
    return True


def test_kills_at_random_moments_lose_no_status(env):
    """SIGKILL in the middle of deaths and returns. What a heartbeat did not reach before the kill is not in Redis either; what
    is in Redis must be at the broker within five seconds of the restart."""
    env.own_broker(persistence=True)
    env.own_redis()
    seed = int(os.environ.get("HW_SEED") or time.time_ns() % 1000000)
    print("HW_SEED=%d" % seed)
    rng = random.Random(seed)
    names = ["d%d" % k for k in range(300)]
    d = env.daemon(timeout="1h", group={"goodbye": env.root + "/{id}/bye offline"}, mqtt=RATE_0)
    for _ in range(ROUNDS):
        for i in rng.sample(names, rng.randrange(1, 300)):
            env.beat(i)
            if rng.random() < 0.5:
                env.beat(i, b"offline", last="bye")
        time.sleep(rng.random() ** 3 * 0.2)
        d.kill()
        d.wait()
        d.start()
        wait_until(lambda: retained_agree(env), 5, "each status to be at the broker")
    wait_until(lambda: d.status()["owed"] == 0)
    wait_until(lambda: env.published() > max(int(h["seq"]) for h in seqs_of(env).values()), what="P to pass all")
    d.stop()


def test_a_broker_that_stands_still_holds_p_back(env):
    """While the broker is away, a device is forgotten. In Redis, the state of another is then newer than P. The next run
    publishes exactly these two."""
    env.own_broker(persistence=True)
    d = env.daemon(timeout="1h", group={"goodbye": env.root + "/{id}/bye offline"}, mqtt=RATE_0)
    for i in "abc":
        env.beat(i)
    wait_until(lambda: d.status()["owed"] == 0 and len(env.events()) == 3)
    wait_until(lambda: env.published() > int(env.events()[-1]["seq"]))
    env.broker.stop()
    d.wait_lost()
    assert d.forget("a").status == 204
    wait_until(lambda: env.redis.hexists(env.key("outbox"), "a"))
    d.kill()
    d.wait()
    for i in "bc":
        env.redis.hset(env.key("state", i), "seq", int(env.hash(i)["seq"]) + (10 ** 10 if i == "b" else 0))
    env.broker.start()
    d.start()
    observer = env.observer()
    env.wait_status(observer, "b", True)
    wait_until(lambda: env.retained_status("a") is None and not env.redis.hlen(env.key("outbox")))
    wait_until(lambda: d.status()["owed"] == 0)
    assert not [m for m in observer.on(env.status_topic("c")) if not m.retain], "it was acknowledged"


def test_entries_of_an_earlier_version_are_published_and_removed(env):
    """The outbox of 0.1.0's first builds had the statuses themselves."""
    env.own_broker(persistence=True)
    env.own_redis()
    d = env.daemon(timeout="1h", mqtt=RATE_0)
    names = ["o%d" % k for k in range(1000)]
    for i in names:
        env.beat(i)
    wait_until(lambda: d.status()["devices"] == 1000 and d.status()["owed"] == 0, 20)
    d.stop()
    env.redis.delete(env.key("published"))
    pipe = env.redis.pipeline(transaction=False)
    for i in names[::2]:
        pipe.hset(env.key("outbox"), i, '{"online":true}')
    pipe.execute()
    observer = env.observer()

    def live():
        return {m.topic for m in observer.messages if not m.retain}

    wait_until(lambda: len(observer.messages) >= 1000, what="what is retained")
    assert not live()
    d.start()
    wait_until(lambda: env.redis.hlen(env.key("outbox")) == 0, 10, "the old entries to be removed")
    wait_until(lambda: live() >= {env.status_topic(i) for i in names[::2]}, what="their statuses")
    wait_until(lambda: d.status()["owed"] == 0)
    assert not {env.status_topic(i) for i in names[1::2]} & live()


def test_a_successor_publishes_what_its_predecessor_left(env):
    """Two nodes: one writes deaths to Redis while its publisher's broker stands still, and dies. With republish_rate = 0, the
    other publishes these by P alone."""
    env.own_broker(persistence=True)
    env.own_redis()
    nodes = [node(env, "%s-%s" % (env.node, k), timeout="1h", group={"goodbye": env.root + "/{id}/bye offline"}, mqtt=RATE_0) for k in "ab"]
    for d in nodes:
        d.start(seeing=False)
    for d in nodes:
        d.wait_seeing()
    names = ["d%d" % k for k in range(200)]
    for i in names:
        env.beat(i)
    wait_until(lambda: len(env.events()) == 200 and all(d.status()["owed"] == 0 for d in nodes), 20)
    wait_until(lambda: retained_agree(env), 10)
    for k in range(5):
        for i in names:
            env.beat(i, b"offline" if k % 2 == 0 else b"", last="bye" if k % 2 == 0 else "heartbeat")
        time.sleep(0.02 * k)
        nodes[k % 2].signal(signal.SIGKILL)
        nodes[k % 2].wait()
        wait_until(lambda: len(env.redis.hgetall(env.key("nodes"))) == 1, 20, "the dead node to be removed")
        wait_until(lambda: retained_agree(env), 20, "the successor to publish all")
        nodes[k % 2].start(seeing=False)
        nodes[k % 2].wait_seeing()
        throughout(lambda: retained_agree(env), 0.5, "nothing older to be published")


def test_a_wrong_p_is_right_after_the_next_status(env):
    """P is years ahead, no number, or of another type. One transition and its acknowledgement make it right."""
    env.own_redis()
    d = env.daemon(timeout="1h", mqtt=RATE_0)
    for k, wrong in enumerate(("4102444800000", "9007199254740992", "-1", "x", "")):
        d.stop()
        env.redis.hset(env.key("published"), "all", wrong)
        d.start()
        env.beat("d%d" % k)
        wait_until(lambda: len(env.events()) == k + 1)
        wait_until(lambda: int(env.events()[-1]["seq"]) < env.published() < time.time() * 1000 + 1000, what="P after %r" % wrong)
    d.stop()
    env.redis.set(env.key("published"), "text")
    d.start()
    env.beat("z")
    wait_until(lambda: "published cannot be written" in d.log())
    env.redis.delete(env.key("published"))
    wait_until(lambda: int(env.hash("z")["seq"]) < env.published(), 10, "P to be written again")


def test_a_p_that_was_only_read_is_written_again_when_redis_is_emptied(env):
    """Then a later crash loses no status either: the first run changed P, and the second has only read it."""
    env.own_redis()
    d = env.daemon(timeout="1h", mqtt=RATE_0)
    env.beat("a")
    wait_until(lambda: d.status()["owed"] == 0 and int((env.hash("a") or {"seq": 1e15})["seq"]) < env.published())
    d.stop()
    d.start()
    d.wait_seeing()
    p = env.published()
    env.redis.flushall()
    wait_until(lambda: env.hash("a"), 20, "the device to be written again")
    wait_until(lambda: env.published() == p, what="P to be written again")


def test_with_a_p_that_is_no_number_each_status_is_published(env):
    """Without a right P, the broker may lack any status."""
    env.own_broker(persistence=True)
    env.own_redis()
    d = env.daemon(timeout="1h", mqtt=RATE_0)
    for i in "ab":
        env.beat(i)
    wait_until(lambda: d.status()["owed"] == 0 and retained_agree(env))
    d.stop()
    env.redis.hincrby(env.key("state", "a"), "seq", 1)
    env.redis.hset(env.key("published"), "all", "x")
    d.start()
    wait_until(lambda: retained_agree(env), 5, "the status of a")
    assert "published cannot be used, so each state is published again" in d.log()
