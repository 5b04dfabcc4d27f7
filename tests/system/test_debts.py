# SPDX-License-Identifier: MIT
"""Writes and publishes that are pending because a broker or a Redis cannot be reached."""
import signal
import time
from pathlib import Path

from hw_wait import in_time, pass_time, wait_until


def stop(server):
    """Stops the process and waits until it stands still: the signal takes effect a little later."""
    server.signal(signal.SIGSTOP)
    wait_until(lambda: Path("/proc/%d/stat" % server.pid).read_text().rpartition(")")[2].split()[0] == "T")


def test_statuses_in_flight_when_the_broker_dies_are_sent_again(env):
    """Without the sweep of republish_rate, which would hide that the statuses were lost."""
    env.own_redis()
    env.own_broker()
    d = env.daemon(timeout="1h", mqtt={"republish_rate": 0})
    env.settle(d)
    ids = ["f%d" % i for i in range(40)]
    stop(env.redis_server)  # statuses wait for its answer
    for i in ids:
        env.beat(i)
    wait_until(lambda: d.status()["online"] >= len(ids), 5, "all to be heard")
    stop(env.broker)  # and are then in flight
    env.redis_server.signal(signal.SIGCONT)
    for i in ids:
        env.wait_store(i, "online", 15)
    env.broker.signal(signal.SIGKILL)  # not kill(), which wakes it first: it would acknowledge some
    wait_until(lambda: not env.broker.alive)
    env.broker.start()
    d.wait_seeing(30)
    wait_until(lambda: d.status()["owed"] == 0, 15, "nothing to be owed")
    wanted = {env.status_topic(i) for i in ids}
    wait_until(lambda: wanted <= set(env.retained(env.root + "/+/status")), 5, "every status to be there")


def test_the_acknowledgement_of_an_old_status_settles_no_newer_one(env):
    """The acknowledgement arrives while the newer status waits for Redis."""
    env.own_redis()
    env.own_broker()
    d = env.daemon(timeout="1h", mqtt={"republish_rate": 0})
    env.settle(d)
    stop(env.redis_server)
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    stop(env.broker)
    env.redis_server.signal(signal.SIGCONT)
    env.wait_store("a", "online")
    published = d.metrics().get("statuses_published_total")
    stop(env.redis_server)
    d.forget("a")
    env.broker.signal(signal.SIGCONT)
    wait_until(lambda: d.metrics().get("statuses_published_total") > published, 5, "the old status to be acknowledged")
    env.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: d.status()["owed"] == 0, 10, "nothing to be owed")
    wait_until(lambda: env.retained_status("a") is None, 5, "the retained status to be cleared")
    wait_until(lambda: d.status()["owed"] == 0, 5, "every status to be acknowledged")


def test_a_status_waits_for_redis_to_have_it(env):
    """A subscriber that receives a death finds it in Redis, too."""
    env.own_redis()
    d = env.daemon(timeout="1h")
    env.settle(d)
    observer = env.observer()
    stop(env.redis_server)
    at = env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    pass_time(0.5)
    goes_on = time.monotonic()
    env.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: observer.on(env.status_topic("a")), 5, "the status")
    told = observer.on(env.status_topic("a"))[0].at
    assert told >= min(goes_on, at + 1), "%.3f s before Redis could answer" % (goes_on - told)
    if told < at + 1:  # longer than that a status waits for no Redis
        assert env.in_store("a") == "online"
    env.wait_store("a", "online")


def test_without_redis_at_the_start_news_are_told_after_five_seconds(env):
    env.own_redis(start=False)
    d = env.daemon(seeing=False, timeout="1s")
    observer = env.observer()
    with env.beating(["a"], 0.2):
        wait_until(lambda: d.status()["mqtt"] == "up", 10)  # nobody else hears what b says once
        env.beat("b")
        wait_until(lambda: d.status()["heartbeats_total"] >= 2, 10)
        wait_until(lambda: observer.on(env.status_topic("a")), what="what was heard to be told without Redis")
        told = observer.on(env.status_topic("a"))[0].at - d.started
        assert told >= 5, "told after %.3f s, before it was known what Redis holds" % told
        assert observer.on(env.status_topic("a"))[0].json()["online"] is True
        wait_until(lambda: (env.retained_status("b") or {}).get("online") is False, 5, "a death without Redis")
        in_time(told, 9.5, "until it was told")
    assert d.status()["redis"] != "up"
