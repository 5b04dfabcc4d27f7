# SPDX-License-Identifier: MIT
"""Filters that overlap: a broker may deliver a message once for each filter (mosquitto does so with MQTT 5), but it counts
once."""
import pytest

from hw_wait import wait_until


def listen(env, protocol, filters, **options):
    return env.daemon(timeout="1h", mqtt={"protocol": protocol, **options.pop("mqtt", {})},
                      groups=[("default", {"heartbeat": [env.root + f for f in filters], "timeout": "1h",
                                           "status": "%ss/{id}" % env.root})], **options)


def heard(env, d, count):
    """The number of heartbeats that were counted meanwhile, without those that fence them."""
    env.settle(d)
    before = d.metrics().get("heartbeats_total")
    for i in range(count):
        env.beat("x", qos=i % 2)
    env.settle(d)
    wait_until(lambda: d.metrics().get("heartbeats_total") >= before + count + 1)
    env.settle(d)
    return d.metrics().get("heartbeats_total") - before - 2


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
@pytest.mark.parametrize("filters", [["/{id}/heartbeat", "/{id}/#"], ["/{id}/#", "/{id}/heartbeat", "/{id}/+"]],
                         ids=["covered", "twice-covered"])
def test_a_covered_filter_brings_nothing_twice(env, filters, protocol, qos):
    d = listen(env, protocol, filters, mqtt={"qos": qos})
    assert heard(env, d, 20) == 20


def test_a_reload_that_adds_the_wider_filter(env):
    d = listen(env, "5", ["/{id}/heartbeat"])
    assert heard(env, d, 20) == 20
    d.conf.write_text(d.conf.read_text() + "heartbeat = %s/{id}/#\n" % env.root)
    a = d.request("POST", "/v1/reload")
    assert a.status == 200, a

    def wide():
        env.beat("w", last="other")
        return d.state("w") == "online"
    wait_until(wide, 10, "the wider filter to be heard", interval=0.05)
    assert heard(env, d, 20) == 20


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_filters_of_which_none_covers_the_other(env, protocol):
    """The second copy is skipped; a message that only one filter matches is counted, and so is a repeated message."""
    d = listen(env, protocol, ["/{id}/+", "/{id}/heartbeat/#"])
    env.settle(d)
    before = d.metrics().get("heartbeats_total")
    for i in range(20):
        env.beat("x", b'{"uptime":%d}' % i)
        env.beat("x", last="other")
        env.beat("x", last="heartbeat/more")
    env.beat("x")
    env.beat("x")
    env.settle(d)
    assert d.metrics().get("heartbeats_total") - before == 63
