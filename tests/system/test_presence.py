# SPDX-License-Identifier: MIT
"""What the monitor publishes about itself on heartwheel/NODE_ID/status."""
import signal
import time

import paho.mqtt.client as paho
import pytest

from hw_env import NO_STALL, NO_STANDSTILL
from hw_wait import in_time, wait_until

KEYS = {"time", "online", "blind", "version", "uptime", "devices", "offline", "by", "seq"}


def presence_topic(env):
    return "heartwheel/%s/status" % env.node


def said(env, observer, start=0):
    return [m.json() for m in observer.on(presence_topic(env), start)]


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_presence_from_start_to_clean_stop(env, protocol):
    observer = env.observer(presence_topic(env))
    d = env.configure(timeout="500ms", mqtt={"reconnect_grace": "2s", "protocol": protocol})
    d.start(seeing=False)
    first = wait_until(lambda: said(env, observer), 10, "the first presence")[0]
    assert first["online"] is True and first["blind"] == "link", first
    at = observer.messages[0].at
    wait_until(lambda: said(env, observer)[-1]["blind"] is False, 10, "presence to say that it sees")
    assert observer.messages[-1].at - at >= 1.5, "grace is 2 s"
    assert d.status()["blind"] is False
    for j in said(env, observer):
        assert set(j) == KEYS, j
        assert j["by"] == env.node and isinstance(j["version"], str) and j["version"] == d.status()["version"]
        assert all(type(j[k]) is int for k in ("time", "uptime", "devices", "offline", "seq")), j
        assert abs(j["time"] - time.time()) < 30 and j["devices"] == 0 and j["uptime"] < 30
    seqs = [j["seq"] for j in said(env, observer)]
    assert seqs == sorted(set(seqs)), seqs
    retained = env.retained(presence_topic(env))[presence_topic(env)].json()
    assert retained["online"] is True and retained["blind"] is False
    n = len(observer.messages)
    d.stop()
    wait_until(lambda: said(env, observer, n), what="the presence of a clean stop")
    last = env.retained(presence_topic(env))[presence_topic(env)].json()
    assert last["online"] is False and last["by"] == env.node and "seq" in last, last
    d.start()
    j = env.retained(presence_topic(env))[presence_topic(env)].json()
    assert j["online"] is True and j["seq"] > max(seqs)


def test_last_will_when_it_is_killed(env):
    observer = env.observer(presence_topic(env))
    d = env.daemon()
    wait_until(lambda: said(env, observer) and said(env, observer)[-1]["blind"] is False)
    n = len(observer.messages)
    d.signal(signal.SIGKILL)
    d.wait()
    will = wait_until(lambda: said(env, observer, n), 5, "the last will")[0]
    assert will["online"] is False and will["by"] == env.node and set(will) == KEYS, will
    assert env.retained(presence_topic(env))[presence_topic(env)].json() == will


def test_presence_names_the_lost_link(env):
    env.own_broker(persistence=True)
    d = env.daemon(monitor=NO_STALL, mqtt={"reconnect_grace": "1s", **NO_STANDSTILL}, timeout="1h")
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    env.broker.stop()
    d.wait_lost()
    assert d.status()["blind_cause"] == "link"
    env.broker.start()
    observer = env.observer(presence_topic(env))
    wait_until(lambda: any(j["blind"] == "link" and j["online"] for j in said(env, observer)), 15, "presence while blind")
    wait_until(lambda: said(env, observer)[-1]["blind"] is False, 15, "presence afterwards")
    j = said(env, observer)[-1]
    assert (j["devices"], j["offline"]) == (1, 0), j


def test_presence_counts_who_is_offline(env):
    d = env.daemon(timeout="1h")
    for k in range(5):
        env.beat("p%d" % k, {"online": k > 1})
    wait_until(lambda: d.status()["devices"] == 5 and d.status()["offline"] == 2)
    d.stop()
    last = env.retained(presence_topic(env))[presence_topic(env)].json()
    assert (last["devices"], last["offline"]) == (5, 2), last


def test_presence_is_no_device(env):
    """A filter that matches the monitor's own topics makes no device of them."""
    d = env.daemon(groups=[("wide", {"heartbeat": ["heartwheel/{id}/status", env.root + "/{id}/heartbeat"],
                                     "timeout": "1h"})])
    env.settle(d)
    assert d.device(env.node) is None and d.status()["devices"] == 1


def test_barriers_are_not_retained(env):
    """A client that subscribes later gets no earlier barrier."""
    d = env.daemon(timeout="1s")
    env.beat("a")
    wait_until(lambda: d.state("a") == "offline")  # two have come back, then
    assert d.metrics().get("barriers_sent_total") >= 2
    assert not env.retained("heartwheel/%s/barrier" % env.node)


def test_once_a_minute(env, long_runner):
    """A daemon that has been running since the session began; the test waits for the rest of the minute."""
    observer, node = long_runner
    topic = "heartwheel/%s/status" % node

    def steady():
        return [m for m in observer.on(topic) if m.json()["blind"] is False and not m.retain]
    wait_until(lambda: len(steady()) >= 2, 75, "presence to be repeated", interval=0.1)
    gap = steady()[1].at - steady()[0].at
    assert 50 < gap, "%.1f s" % gap
    assert steady()[1].json()["uptime"] - steady()[0].json()["uptime"] >= 50
    in_time(gap, 70, "between two presences")


def test_another_client_with_our_id(env):
    """The log names the other client when one connection after the other is closed as soon as it is up, not for the first
    two."""
    d = env.daemon(mqtt={"protocol": "3.1.1"})
    asked = "is another client connected as 'heartwheel-%s-r0'?" % env.node
    end, n = time.monotonic() + 30, 0
    while asked not in d.log():  # lines of a kind come at most every 10 s
        assert time.monotonic() < end, d.log()
        n += 1
        wait_until(lambda: d.log().count("reader 0: connected") >= n or asked in d.log(), 20)
        before = d.log().count("blind (link)")
        env.client(protocol=paho.MQTTv311, client_id="heartwheel-%s-r0" % env.node).close()
        wait_until(lambda: d.log().count("blind (link)") > before)
    # a client may disconnect the monitor twice: paho connects again before it is closed
    assert d.log().split(asked)[0].count("blind (link)") >= 2, d.log()


def test_another_monitor_of_that_name_is_told_of(env):
    """The other monitor's barriers arrive on our topic and prove nothing."""
    topic = "heartwheel/%s/barrier" % env.node
    d = env.daemon(timeout="1s")
    barriers = env.observer(topic)
    env.beat("x")
    wait_until(lambda: barriers.messages, 10, "a barrier")
    mark, number = barriers.messages[-1].payload.split()
    env.publisher.publish(topic, mark[::-1] + b" " + number, 1)
    wait_until(lambda: "another monitor uses node_id '%s'" % env.node in d.log(), 10, "the log to say so")
    env.wait_store("x", "offline")


def test_a_node_id_that_json_escapes(env):
    """The longest node_id, of quotes and backslashes: all that the monitor publishes is valid JSON that has it."""
    node = '"\\' * 32
    observer = env.observer(env.root + "/#", "heartwheel/#", protocol=paho.MQTTv5)
    d = env.configure(monitor={"node_id": node}, group={"status": "st/" + env.root + "/{id}", "canary": "yes"}, timeout="2s")
    d.node = node
    d.start()
    env.beat("a")
    status = "st/%s/a" % env.root
    written = wait_until(lambda: env.retained(status).get(status), what="the status")
    assert written.json()["by"] == node
    presence = "heartwheel/%s/status" % node
    assert env.retained(presence)[presence].json()["by"] == node
    canaries = wait_until(lambda: [m for m in observer.messages if b"canary" in m.payload], what="a canary")
    assert {m.json()["by"] for m in canaries} == {node}
