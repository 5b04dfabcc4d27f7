# SPDX-License-Identifier: MIT
"""Devices are forgotten by DELETE and by age."""
import pytest

from hw_wait import throughout, wait_until


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
@pytest.mark.parametrize("state", ["online", "offline"])
def test_forgotten_is_gone_everywhere(env, protocol, state):
    d = env.daemon(timeout="1h", mqtt={"protocol": protocol})
    observer = env.observer()
    env.beat("f", {"version": "1", "online": state == "online", "timeout": 50})
    env.wait_store("f", state)
    wait_until(lambda: env.retained_status("f"))
    wait_until(lambda: not env.redis.hlen(env.key("outbox")))
    seq = int(env.hash("f")["seq"])
    n = len(observer.fence().messages)
    a = d.forget("f")
    assert (a.status, a.body) == (204, b""), a
    assert d.device("f") is None and d.forget("f").status == 404
    env.wait_store("f", None)
    assert not env.redis.exists(env.key("state", "f"), env.key("connected", "f"), env.key("disconnected", "f"))
    wait_until(lambda: observer.on(env.status_topic("f"), n), what="the clearing")
    m = observer.on(env.status_topic("f"), n)[0]
    assert m.payload == b"" and env.retained_status("f") is None
    last = env.events("f")[-1]
    assert (last["state"], last["reason"]) == ("forgotten", "operator") and int(last["seq"]) > seq
    wait_until(lambda: not env.redis.hlen(env.key("outbox")), what="the outbox to be empty")
    # The clearing arrives at the monitor too: it must not bring the device back.
    throughout(lambda: d.device("f") is None and env.in_store("f") is None, 0.8, "forgotten stays forgotten")
    assert d.status()["devices"] == 0
    env.beat("f")
    j = env.wait_status(observer, "f", True, n).json()
    env.wait_store("f", "online")
    assert "version" not in j, "what it said before is forgotten too"
    assert j["seq"] > int(last["seq"]) and d.device("f")["timeout_ms"] == 3_600_000


def test_forgotten_while_it_beats_comes_back(env):
    d = env.daemon(timeout="2s")
    with env.beating(["f"], 0.05):
        env.wait_store("f", "online")
        for _ in range(5):
            d.forget("f")
            wait_until(lambda: d.state("f") == "online", 5)
        env.wait_store("f", "online")
        wait_until(lambda: (env.retained_status("f") or {}).get("online") is True)
        wait_until(lambda: len(env.edges("f")) >= 11, what="all that became of it")
        throughout(lambda: d.state("f") == "online", 0.5)
    states = [s for s, _ in env.edges("f")]
    assert states == ["online"] + ["forgotten", "online"] * 5, states


def test_many_are_forgotten(env):
    d = env.daemon(timeout="1h")
    ids = ["m%d" % i for i in range(300)]
    for i in ids:
        env.beat(i)
    wait_until(lambda: len(env.retained(env.root + "/+/status")) == 300)
    for i in ids:
        assert d.forget(i).status == 204
    wait_until(lambda: not env.retained(env.root + "/+/status"), 15, "300 statuses to be cleared")
    wait_until(lambda: not env.redis.keys(env.prefix + "state:*"))
    wait_until(lambda: not env.redis.hlen(env.key("outbox")))
    wait_until(lambda: d.status()["owed"] == 0)
    assert d.status()["devices"] == 0


def test_forgotten_by_age(env):
    """forget_after for devices that were heard more than once, forget_once_after for those heard once; no online device is
    forgotten."""
    d = env.daemon(timeout="300ms", monitor={"forget_after": "4s", "forget_once_after": "1s"})
    observer = env.observer()
    with env.beating(["alive"], 0.1):
        env.beat("often")
        env.beat("often")
        env.beat("once")
        env.wait_store("often", "offline")
        env.wait_store("once", "offline")
        since = {i: int(env.hash(i)["since"]) for i in ("often", "once")}
        n = len(observer.messages)
        wait_until(lambda: d.device("once") is None, 15, "the one heard once to be forgotten")
        assert d.device("often") is not None
        wait_until(lambda: d.device("often") is None, 20, "the other to be forgotten")
        for i, least in (("once", 1000), ("often", 4000)):
            env.wait_store(i, None)
            last = env.events(i)[-1]
            assert (last["state"], last["reason"]) == ("forgotten", "forget_after")
            assert int(last["time_ms"]) - since[i] >= least, last
            wait_until(lambda: env.retained_status(i) is None)
            assert observer.fence().on(env.status_topic(i), n)[-1].payload == b""
        assert d.state("alive") == "online"


def test_zero_keeps_them(env):
    d = env.daemon(timeout="200ms", monitor={"forget_after": "0", "forget_once_after": "0"})
    env.beat("kept")
    env.wait_store("kept", "offline")
    throughout(lambda: d.state("kept") == "offline", 2.5)


def test_forgotten_while_the_broker_is_away(env):
    """The pending clearing is kept in the outbox, and the daemon's next run publishes it."""
    env.own_broker(persistence=True)
    d = env.daemon(timeout="1h")
    for i in ("f1", "f2"):
        env.beat(i)
        env.wait_store(i, "online")
        wait_until(lambda: env.retained_status(i))
    wait_until(lambda: not env.redis.hlen(env.key("outbox")))
    env.broker.stop()
    d.wait_lost()
    assert d.forget("f1").status == 204
    wait_until(lambda: env.redis.hgetall(env.key("outbox")) == {"f1": ""}, what="the clearing in the outbox")
    env.broker.start()
    wait_until(lambda: not env.retained(env.status_topic("f1")), 15, "the retained status of f1 to be cleared")
    wait_until(lambda: not env.redis.hlen(env.key("outbox")))
    d.wait_seeing()
    env.broker.stop()
    d.wait_lost()
    assert d.forget("f2").status == 204
    wait_until(lambda: env.redis.hgetall(env.key("outbox")) == {"f2": ""})
    d.stop()
    assert env.redis.hgetall(env.key("outbox")) == {"f2": ""}
    env.broker.start()
    assert env.retained(env.status_topic("f2"))
    d.start()
    wait_until(lambda: not env.retained(env.status_topic("f2")), 15, "the retained status of f2 to be cleared")
    wait_until(lambda: not env.redis.hlen(env.key("outbox")))
    assert d.device("f2") is None and d.device("f1") is None


def test_forgotten_while_redis_is_away(env):
    env.own_redis(options=["--appendonly", "yes", "--appendfsync", "always"])
    d = env.daemon(timeout="1h")
    env.beat("f")
    env.wait_store("f", "online")
    wait_until(lambda: env.retained_status("f"))
    env.redis_server.kill()
    assert d.forget("f").status == 204
    wait_until(lambda: env.retained_status("f") is None, 10, "the clearing without Redis")
    env.redis_server.start()
    env.wait_store("f", None, 20)
    wait_until(lambda: not env.redis.hlen(env.key("outbox")))
    assert env.edges("f")[-1] == ("forgotten", "operator")
