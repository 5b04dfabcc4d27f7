# SPDX-License-Identifier: MIT
"""The harness itself: the servers it starts are real, its own, and the clients do what the other tests rely on."""
import signal

import paho.mqtt.client as paho
import pytest

from hw_env import Client, Metrics, throughout, wait_until


@pytest.fixture(autouse=True)
def without_daemon(env):
    env.check_events = False


def test_retained_and_live(env):
    live = env.observer()
    env.beat("a", b"one", last="status", retain=True)
    wait_until(lambda: live.messages, what="a live message")
    assert not live.messages[0].retain
    found = env.retained(env.root + "/+/status")
    assert found[env.status_topic("a")].payload == b"one"
    env.beat("a", b"", last="status", retain=True)
    wait_until(lambda: not env.retained(env.root + "/+/status"), what="the clearing")


def test_raw_client_dies_with_its_will(env):
    seen = env.observer(env.root + "/#")
    raw = env.raw(will=(env.status_topic("w"), b"gone", True))
    raw.publish((env.topic("w"), b"1"), (env.topic("w"), b"2"))
    wait_until(lambda: len(seen.on(env.topic("w"))) == 2)
    raw.die()
    wait_until(lambda: seen.on(env.status_topic("w")))
    assert seen.on(env.status_topic("w"))[0].payload == b"gone"


def test_broker_restarts_on_its_port_and_clients_come_back(env):
    env.own_broker()
    seen = env.observer()
    env.beat("a", b"x", last="status", retain=True)
    wait_until(lambda: seen.messages)
    env.broker.stop()
    env.broker.start()
    wait_until(lambda: seen.connects == 2 and seen.granted, 10)
    wait_until(env.publisher.client.is_connected)
    assert env.retained(env.root + "/#") == {}


def test_persistent_broker_keeps_retained(env):
    env.own_broker(persistence=True)
    env.beat("a", b"x", last="status", retain=True, qos=1)
    env.broker.stop()
    env.broker.start()
    assert env.retained(env.root + "/#")


def test_passwords_and_tls(env, tls):
    env.own_broker(users={"u": "right"})
    with pytest.raises(AssertionError):
        c = paho.Client("x")
        c.username_pw_set("u", "wrong")
        c.connect("127.0.0.1", env.broker.port)
        c.loop_start()
        try:
            wait_until(c.is_connected, 0.5)
        finally:
            c.loop_stop()
    Client(env.broker.port, username="u", password="right").close()
    env.own_broker(tls=tls)
    Client(env.broker.port, tls=tls).close()


def test_redis_of_ones_own(env):
    env.own_redis(password="p")
    env.redis.set("a", 1)
    env.redis_server.stop(signal.SIGKILL)
    env.redis_server.start()
    assert env.redis.dbsize() == 0


def test_throughout_fails_when_it_should():
    with pytest.raises(AssertionError):
        throughout(lambda: False, 0.1)


def test_metrics_reader():
    m = Metrics('# HELP heartwheel_a x\n# TYPE heartwheel_a counter\nheartwheel_a{k="v\\"",l="w"} 1\nheartwheel_a{k="z"} 2\n')
    assert m.get("a") == 3 and m.get("a", l="w") == 1 and m.labels("a", "k") == {'v\\"', "z"}
    with pytest.raises(AssertionError):
        Metrics("heartwheel_b 1\n")
