# SPDX-License-Identifier: MIT
"""A Redis that answers and refuses every write: status, readiness, metrics and the log report it until it is over."""
import signal

import pytest

from hw_process import free_port
from hw_servers import Redis
from hw_env import NO_STALL, NO_STANDSTILL
from hw_wait import throughout, wait_until

SAID = "no write is accepted"


def refuse_readonly(env):
    env.redis.replicaof("127.0.0.1", 1)


def allow_readonly(env):
    env.redis.replicaof("NO", "ONE")


def refuse_memory(env):
    env.redis.config_set("maxmemory", "1")


def allow_memory(env):
    env.redis.config_set("maxmemory", "0")


def refusing(d):
    """The errors by which Redis refuses writes, as the metrics name them."""
    m = d.metrics()
    return {dict(labels)["error"] for (n, labels), v in m.samples.items() if n == "heartwheel_redis_refuses" and v == 1}


def verify_refusal(d, word):
    s = d.status()
    assert s["redis"].startswith(SAID) and word in s["redis"], s
    assert s["redis_writable"] is False and s["blind"] is False, s
    r = d.get("/readyz")
    assert r.status == 503 and SAID in r.json()["error"] and word in r.json()["error"], r
    assert refusing(d) == {word}
    out = d.ctl("status").stdout
    assert SAID in out and word in out, out
    return True


def verify_writable(d):
    wait_until(lambda: d.status()["redis"] == "up", 15, "Redis to be written to")
    assert d.status()["redis_writable"] is True
    assert refusing(d) == set()
    wait_until(lambda: d.get("/readyz").status == 200, 15, "the monitor to be ready")
    assert "writes are accepted again after" in d.log()


def said(d):
    return [line for line in d.log().splitlines() if SAID in line and "debug:" not in line]


@pytest.mark.parametrize("beating", [False, True], ids=["idle", "beating"])
@pytest.mark.parametrize("word,refuse,allow", [("READONLY", refuse_readonly, allow_readonly), ("OOM", refuse_memory, allow_memory)],
                         ids=["replica", "full"])
def test_redis_answers_and_refuses_writes(env, word, refuse, allow, beating):
    env.own_redis()
    d = env.daemon(timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)
    env.beat("before")
    env.wait_store("before", "online")
    assert d.status()["redis_writable"] is True and d.get("/readyz").status == 200
    refuse(env)
    if beating:
        for i in range(5):
            env.beat("x%d" % i)
    wait_until(lambda: d.status()["redis"] != "up", 5, "the status to say that no write is accepted")
    verify_refusal(d, word)
    # A connection that is opened anew, in search of a master, does not change what is said.
    throughout(lambda: verify_refusal(d, word), 5)
    assert len(said(d)) == 1, said(d)
    assert " error: " in said(d)[0] and ("maxmemory" in said(d)[0] or "at its master" in said(d)[0])
    allow(env)
    verify_writable(d)
    for i in range(5 if beating else 0):
        env.wait_store("x%d" % i, "online")
    assert len(said(d)) == 1 and len([x for x in d.log().splitlines() if "connected to Redis" in x and "debug:" not in x]) == 1


@pytest.mark.parametrize("key", ["offline", "outbox", "events"])
def test_a_shared_key_of_another_type_refuses_writes(env, key):
    """While another program's value stands in the place of a shared key, no transition can be written."""
    env.own_redis()
    env.check_events = False
    d = env.daemon(timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)
    env.beat("before")
    env.wait_store("before", "online")
    env.redis.delete(env.key(key))
    env.redis.set(env.key(key), "something else")
    env.beat("x")
    wait_until(lambda: d.status()["redis"] != "up", 5, "the status to say that no write is accepted")
    throughout(lambda: verify_refusal(d, "WRONGTYPE"), 3)
    assert len(said(d)) == 1 and env.key(key) in said(d)[0], said(d)
    check = d.ctl("check")
    assert check.returncode != 0 and "WRONGTYPE" in check.stdout, check
    env.redis.delete(env.key(key))
    verify_writable(d)
    env.wait_store("x", "online")


def test_a_cluster_is_told_before_anybody_beats(env):
    env.own_redis(options=["--cluster-enabled", "yes", "--cluster-port", free_port()])
    env.redis.execute_command("CLUSTER", "ADDSLOTS", *range(16384))
    wait_until(lambda: "cluster_state:ok" in str(env.redis.execute_command("CLUSTER", "INFO")))
    d = env.daemon(timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)
    wait_until(lambda: d.status()["redis"] != "up", 5, "the status to say that no write is accepted")
    verify_refusal(d, "CROSSSLOT")
    env.beat("x")
    wait_until(lambda: d.state("x") == "online")
    throughout(lambda: verify_refusal(d, "CROSSSLOT"), 3)
    assert len(said(d)) == 1 and "Redis Cluster is not supported" in said(d)[0], said(d)
    # It ends with another Redis in its place.
    env.redis_server.stop()
    env.redis_server.options = []
    env.redis_server.start()
    verify_writable_after_loss(env, d)


def verify_writable_after_loss(env, d):
    wait_until(lambda: d.status()["redis"] == "up" and d.get("/readyz").status == 200, 15, "Redis to be written to")
    assert refusing(d) == set()
    env.wait_store("x", "online")


def test_a_lost_redis_is_away_and_refuses_nothing(env):
    env.own_redis()
    d = env.daemon(timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)
    refuse_memory(env)
    wait_until(lambda: refusing(d) == {"OOM"}, 5)
    env.redis_server.kill()
    wait_until(lambda: d.status()["redis"].startswith("cannot reach Redis"), 10, "the loss to be told")
    assert refusing(d) == set() and d.status()["redis_writable"] is False
    assert SAID not in d.get("/readyz").body.decode()
    env.redis_server.start()
    wait_until(lambda: d.status()["redis"] == "up" and d.status()["redis_writable"], 15)


def test_an_old_master_that_came_back_for_a_moment(env):
    """The old master takes writes that are lost once it becomes a replica: the log reports the replica, and the lost writes are
    written again."""
    env.own_redis()
    old, heir = env.redis, Redis(env.own_dir("rd"), options=["--replicaof", "127.0.0.1 %d" % env.redis_server.port])
    env.servers.append(heir.start())
    d = env.daemon(timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)
    env.beat("before")
    env.wait_store("before", "online")
    wait_until(lambda: heir.client().exists(env.key("connected", "before")))
    env.redis_server.signal(signal.SIGSTOP)
    heir.client().replicaof("NO", "ONE")
    env.redis_server.signal(signal.SIGCONT)
    env.beat("lost")
    env.wait_store("lost", "online")
    old.replicaof("127.0.0.1", heir.port)
    wait_until(lambda: not old.exists(env.key("connected", "lost")), 15, "its writes to be thrown away")
    wait_until(lambda: d.status()["redis"].startswith(SAID), 5, "the status to say that no write is accepted")
    verify_refusal(d, "READONLY")
    old.replicaof("NO", "ONE")
    verify_writable(d)
    env.wait_store("lost", "online")
    env.wait_store("before", "online")
