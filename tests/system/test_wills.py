# SPDX-License-Identifier: MIT
"""Last wills are no evidence if the broker was away or stood still; they are evidence if a device died."""
import signal
import time

import paho.mqtt.client as paho
import pytest

from hw_void import Void, WitnessedClient
from hw_wait import in_time, pass_time, throughout, wait_until


class Fleet:
    """Real clients, each with a will on its status topic, that reconnect by themselves."""

    def __init__(self, env, count, keepalive, interval=0.2):
        self.env, self.clients, self.interval = env, {}, interval
        for k in range(count):
            name = "w%d" % k
            c = WitnessedClient("%s-%s" % (env.root, name), protocol=paho.MQTTv311)
            c.will_set(env.status_topic(name), b'{"online":false}', 0, True)
            c.reconnect_delay_set(1, 1)
            c.connect("127.0.0.1", env.broker.port, keepalive)
            c.loop_start()
            self.clients[name] = c

    def __enter__(self):
        self.beating = self.env_beating()
        self.beating.__enter__()
        return self

    def env_beating(self):
        fleet = self

        class Each:
            @staticmethod
            def publish(topic, payload):
                c = fleet.clients.get(topic.split("/")[1])
                if c is not None and c.is_connected():
                    c.publish(topic, payload)
        from hw_mqtt import Beating
        return Beating(Each, [self.env.topic(n) for n in self.clients], self.interval)

    def __exit__(self, *exc):
        self.beating.__exit__()
        for c in self.clients.values():
            c.loop_stop()
            c.disconnect()


def statuses_are_right(env, names):
    found = env.retained(env.root + "/+/status")
    return all(env.status_topic(n) in found and found[env.status_topic(n)].json().get("by") == env.node and
               found[env.status_topic(n)].json()["online"] is True for n in names)


def everybody_lives(env, names):
    return all(env.edges(n) == [("online", "heartbeat")] for n in names)


@pytest.mark.parametrize("stands_s, grace", [(6.5, "2s"), (6.5, "0"), (4.0, "0")])
def test_a_broker_that_stood_still_past_the_keepalives(env, stands_s, grace):
    """When it resumes, the broker disconnects the devices and publishes their wills instead of the messages that they had
    sent."""
    env.own_broker()
    observer = env.observer()
    d = env.daemon(timeout="5s", mqtt={"reconnect_grace": grace})
    # A client gives its connection up when a ping was not answered for a keepalive, and only then is its will certain: two
    # of them have to fit into the standstill.
    with Fleet(env, 20, keepalive=2 if stands_s > 5 else 1) as fleet:
        names = list(fleet.clients)
        wait_until(lambda: d.status()["online"] == len(names), 10)
        wait_until(lambda: statuses_are_right(env, names), 10)
        env.broker.signal(signal.SIGSTOP)
        pass_time(stands_s)
        env.broker.signal(signal.SIGCONT)
        wait_until(lambda: [m for m in observer.messages if m.payload == b'{"online":false}'], 10, "a will")
        d.wait_seeing(20)
        throughout(lambda: everybody_lives(env, names), 3.0, "nobody to be taken for dead")
        wait_until(lambda: statuses_are_right(env, names), 10, "the wills to be replaced")
        assert everybody_lives(env, names)


@pytest.mark.parametrize("persistence", [False, True])
def test_a_broker_that_is_restarted(env, persistence):
    env.own_broker(persistence=persistence)
    d = env.daemon(timeout="4s", mqtt={"reconnect_grace": "2s"})
    with Fleet(env, 20, keepalive=30) as fleet:
        names = list(fleet.clients)
        wait_until(lambda: d.status()["online"] == len(names), 10)
        env.broker.stop()
        d.wait_lost()
        pass_time(1.0)
        env.broker.start()
        d.wait_seeing(20)
        wait_until(lambda: statuses_are_right(env, names), 15, "every status to be there again")
        throughout(lambda: everybody_lives(env, names), 4.5, "nobody to be taken for dead")


def test_the_will_of_one_that_died(env):
    """With nineteen other devices that go on: the death is reported at once, and no other device goes offline."""
    d = env.daemon(timeout="1h")
    with Fleet(env, 20, keepalive=30) as fleet:
        names = list(fleet.clients)
        wait_until(lambda: d.status()["online"] == len(names), 10)
        dead = fleet.clients.pop("w7")
        dead.loop_stop()
        dead.socket().close()
        wait_until(lambda: len(env.edges("w7")) == 2)
        assert env.edges("w7")[1] == ("offline", "will")
        names.remove("w7")
        throughout(lambda: everybody_lives(env, names), 0.5)


def test_a_session_that_is_taken_over(env):
    """A device connects again before its old connection is given up: the broker publishes the old connection's will.
    goodbye_delay holds it until the device is heard."""
    d = env.daemon(group={"timeout": "1h", "goodbye_delay": "2s"})
    observer = env.observer()
    will = (env.status_topic("x"), '{"online":false}', False)
    old = env.raw(will=will, client_id=env.root + "-x")
    old.publish((env.topic("x"), b""))
    env.wait_store("x", "online")
    for _ in range(3):
        n = len(observer.messages)
        sent = time.monotonic()
        new = env.raw(will=will, client_id=env.root + "-x")
        wait_until(lambda: [m for m in observer.messages[n:] if m.payload == b'{"online":false}'], 5, "the old one's will")
        pass_time(0.3)
        new.publish((env.topic("x"), b""))
        if time.monotonic() - sent > 1.8:
            raise Void("the device was heard %.3f s after it was taken over" % (time.monotonic() - sent))
        throughout(lambda: env.edges("x") == [("online", "heartbeat")], 2.3)
        old.die()
        old = new
    # And one that says no more after it was taken over is gone, when the delay is over.
    new = env.raw(will=will, client_id=env.root + "-x")
    at = time.monotonic()
    wait_until(lambda: len(env.edges("x")) == 2)
    took = time.monotonic() - at
    assert env.edges("x")[1] == ("offline", "will")
    assert 1.9 <= took
    assert d.state("x") == "offline"
    new.goodbye()
    in_time(took, 5, "until it was told")
