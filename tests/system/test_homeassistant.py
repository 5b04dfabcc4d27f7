# SPDX-License-Identifier: MIT
"""MQTT discovery for Home Assistant, and what Home Assistant makes of it."""
import json
import re

import pytest

from hw_mqtt import Client
from hw_wait import wait_until

try:
    import jinja2
except ImportError:  # the templates are then only looked at
    jinja2 = None


def hass(env, **options):
    mqtt = {"homeassistant": "yes", "homeassistant_prefix": env.root + "/ha", **options.pop("mqtt", {})}
    return env.daemon(mqtt=mqtt, **{"timeout": "1h", **options})


def configs(env):
    """{topic: payload}: all retained discovery messages."""
    return {t: m.payload for t, m in env.retained(env.root + "/ha/#").items()}


def topic_of(env, slug):
    return "%s/ha/binary_sensor/heartwheel_%s/config" % (env.root, slug)


def render(template, payload):
    """As Home Assistant renders a template: with `value`, and with `value_json` if the value is JSON."""
    variables = {"value": payload.decode()}
    try:
        variables["value_json"] = json.loads(payload)
    except ValueError:
        pass
    return jinja2.Environment().from_string(template).render(variables)


def test_config_of_a_device(env):
    d = hass(env)
    env.beat("pump-7", {"battery": 50})
    topic = topic_of(env, "pump-7")
    config = json.loads(wait_until(lambda: configs(env).get(topic)))
    status = env.status_topic("pump-7")
    assert config["device_class"] == "connectivity" and config["name"]
    assert config["unique_id"] == config["object_id"] == "heartwheel_pump-7"
    assert config["default_entity_id"] == "binary_sensor.heartwheel_pump-7"
    assert config["state_topic"] == config["json_attributes_topic"] == status
    assert config["availability_topic"] == "heartwheel/%s/status" % env.node
    assert config["device"]["name"] == "pump-7" and config["device"]["identifiers"] == ["heartwheel_pump-7"]
    assert config["origin"]["name"] == "heartwheel"
    assert {m.qos for m in env.retained(topic).values()} <= {0, 1}
    d.forget("pump-7")
    wait_until(lambda: not configs(env))
    wait_until(lambda: not env.retained(status))
    assert d.device("pump-7") is None
    env.wait_store("pump-7", None)


@pytest.mark.skipif(jinja2 is None, reason="python3-jinja2 is not there")
def test_state_template(env):
    d = hass(env, timeout="500ms")
    observer = env.observer()
    env.beat("x")
    told = env.wait_status(observer, "x", True).payload
    config = json.loads(wait_until(lambda: configs(env))[topic_of(env, "x")])
    template = config["value_template"]
    assert render(template, told) == config["payload_on"] == "ON"
    env.wait_status(observer, "x", False)
    told = env.retained(env.status_topic("x"))[env.status_topic("x")].payload
    assert render(template, told) == config["payload_off"] == "OFF"
    # What a device may say itself on that topic, and a clearing, are no news.
    for payload in (b"", b"hello", b"{}", b"5", b"[1]", b'"online"', b'{"battery":5}'):
        assert render(template, payload) == ""
    assert d.state("x") == "offline"


@pytest.mark.skipif(jinja2 is None, reason="python3-jinja2 is not there")
def test_availability_follows_the_monitor(env):
    env.own_broker(persistence=True)
    observer = env.observer("heartwheel/%s/status" % env.node)
    d = hass(env)
    env.beat("a")
    config = json.loads(wait_until(lambda: configs(env))[topic_of(env, "a")])

    def available():
        template = config["availability_template"]
        return {config["payload_available"]: True, config["payload_not_available"]: False}[
            render(template, observer.messages[-1].payload)]
    wait_until(lambda: observer.messages and available(), 10, "a seeing monitor to be available")
    assert render(config["availability_template"], b'{"online":true,"blind":"link"}') == "offline"
    assert render(config["availability_template"], b'{"online":false,"blind":false}') == "offline"
    d.stop()
    wait_until(lambda: not available(), 10, "a stopped monitor to be unavailable")


@pytest.mark.parametrize("devices", [["a b", "a_b", "a/b".replace("/", "."), "a$b", "ä", "Ä", "a-b", "A-b"]])
def test_slugs_tell_ids_apart(env, devices):
    hass(env)
    for device in devices:
        env.beat(device)
    found = wait_until(lambda: len(configs(env)) == len(devices) and configs(env))
    names = {}
    for topic, payload in found.items():
        slug = re.fullmatch(env.root + "/ha/binary_sensor/heartwheel_([A-Za-z0-9_-]+)/config", topic).group(1)
        config = json.loads(payload)
        assert config["unique_id"] == "heartwheel_" + slug
        names[config["device"]["name"]] = slug
    assert set(names) == set(devices) and names["a_b"] == "a_b" and names["a-b"] == "a-b" and names["A-b"] == "A-b"
    assert re.fullmatch("a_b_[0-9a-f]{8}", names["a b"])


def test_slugs_survive_a_restart(env):
    d = hass(env)
    env.beat("a b")
    before = wait_until(lambda: configs(env))
    d.stop()
    d.start()
    env.beat("new")
    wait_until(lambda: len(configs(env)) == 2)
    assert {t: p for t, p in configs(env).items() if t in before} == before


def test_nothing_without_it_or_without_a_status(env):
    d = env.daemon(timeout="1h")
    env.beat("a")
    wait_until(lambda: env.retained_status("a"))
    assert not env.retained("homeassistant/#")
    d.stop()
    d = hass(env, group={"status": ""})
    env.beat("b")
    wait_until(lambda: d.state("b") == "online")
    env.settle(d)
    assert not configs(env)
    d.forget("b")
    wait_until(lambda: d.device("b") is None)


def test_once_a_device_and_again_after_a_reconnect(env):
    """A transition does not publish the discovery message again; a broker that has lost everything gets it again."""
    env.own_broker()
    d = hass(env, timeout="500ms")
    observer = env.observer(env.root + "/ha/#")
    env.beat("a")
    wait_until(lambda: observer.messages)
    for online in (False, True, False):
        if online:
            env.beat("a")
        wait_until(lambda: d.state("a") == ("online" if online else "offline"))
    observer.fence()
    assert len(observer.on(topic_of(env, "a"))) == 1
    env.broker.stop()
    env.broker.start()
    wait_until(lambda: configs(env), 20, "discovery to be there again")


def test_a_device_that_comes_back_after_it_was_forgotten(env):
    d = hass(env)
    env.beat("a")
    wait_until(lambda: configs(env))
    d.forget("a")
    wait_until(lambda: not configs(env))
    env.beat("a")
    wait_until(lambda: configs(env))
    wait_until(lambda: env.retained_status("a"))
    assert env.retained_status("a")["online"] is True


def test_forgotten_while_the_broker_is_away_and_across_a_restart(env):
    env.own_broker(persistence=True)
    d = hass(env)
    env.beat("a")
    env.beat("b")
    wait_until(lambda: len(configs(env)) == 2)
    wait_until(lambda: d.status()["owed"] == 0)
    env.broker.stop()
    d.wait_lost()
    d.forget("a")
    wait_until(lambda: env.redis.hexists(env.key("outbox"), "a"))
    d.kill()
    d.wait()
    env.broker.start()
    d.start()
    wait_until(lambda: list(configs(env)) == [topic_of(env, "b")], 20)
    wait_until(lambda: not env.redis.hexists(env.key("outbox"), "a"))
    assert env.retained_status("a") is None


def test_where_it_may_not_publish(env):
    """The broker denies publishing discovery: everything else works, and the record of a forgotten device is not kept for
    ever."""
    env.own_broker(users={"hw": "pw"}, acl="user hw\ntopic readwrite %s/#\ntopic readwrite heartwheel/#\n" % env.root)
    (env.dir / "secret").write_text("pw\n")
    d = env.configure(timeout="1h", mqtt={"homeassistant": "yes", "username": "hw", "password_file": env.dir / "secret"})
    d.start()
    client = Client(env.broker.port, username="hw", password="pw")
    env.clients.append(client)
    client.publish(env.topic("a"), b"")
    wait_until(lambda: d.metrics().get("discoveries_refused_total") == 1)
    assert "message for Home Assistant" in d.log()
    wait_until(lambda: d.state("a") == "online" and d.metrics().get("owed", sink="mqtt") == 0)
    assert d.metrics().get("owed", sink="homeassistant") == 1
    d.forget("a")
    wait_until(lambda: d.metrics().get("owed", sink="homeassistant") == 0)
    wait_until(lambda: not env.redis.hexists(env.key("outbox"), "a"))
    assert d.status()["devices"] == 0


def test_thousands_are_paced(env):
    d = hass(env)
    observer = env.observer(env.root + "/ha/#")
    for k in range(2000):
        env.beat("d%d" % k)
    wait_until(lambda: len(observer.messages) >= 2000, 20)
    took = observer.messages[-1].at - observer.messages[0].at
    assert 1.5 < took < 8, "%.1f s" % took
    wait_until(lambda: d.metrics().get("discoveries_published_total") >= 2000)  # counted when the broker has acknowledged it
    wait_until(lambda: d.metrics().get("owed", sink="homeassistant") == 0)
    assert d.metrics().get("discoveries_published_total") == 2000


def test_another_status_topic_after_a_reload(env):
    d = hass(env)
    env.beat("a")
    topic = topic_of(env, "a")
    wait_until(lambda: configs(env))
    d.edit("status = %s/{id}/status" % env.root, "status = %s/{id}/told" % env.root)
    assert d.request("POST", "/v1/reload").status == 200
    wait_until(lambda: json.loads(configs(env)[topic])["state_topic"] == env.topic("a", "told"))
    wait_until(lambda: env.retained(env.topic("a", "told")))


@pytest.mark.parametrize("protocol, retained", [("5", "count"), ("5", "ignore"), ("3.1.1", "ignore")])
def test_discovery_makes_no_devices(env, protocol, retained):
    """A filter that matches heartwheel's own discovery makes no device of a sensor. Discovery of other programs counts."""
    env.own_broker()
    group = {"heartbeat": "+/+/{id}/#", "status": "status/{id}", "timeout": "1h", "retained": retained}
    d = env.daemon(mqtt={"homeassistant": "yes", "protocol": protocol}, groups=[("wide", group)])
    observer = env.observer("homeassistant/#")
    sent = ["plant/a/d0/hb", "homeassistant/binary_sensor/0x12/config", "homeassistant/sensor/heartwheel_d1/config",
            "homeassistant/binary_sensor/heartwheel_d2/x/config", "ha/binary_sensor/heartwheel_d3/config"]
    for topic in sent:
        env.publisher.publish(topic, b"1", 1)
    ids = {topic.split("/")[2] for topic in sent}
    wait_until(lambda: len({m.topic for m in observer.messages if b'"origin"' in m.payload}) >= len(ids))
    d.forget("0x12")  # a clearing is no heartbeat either
    wait_until(lambda: any(not m.payload for m in observer.messages))
    env.publisher.publish("plant/a/last/hb", b"1", 1)
    wait_until(lambda: d.state("last") == "online")
    assert {x["id"] for x in d.get("/v1/devices?limit=1000").json()["devices"]} == ids - {"0x12"} | {"last"}
    metrics = d.metrics()  # flagged: the log advises to set retained = count
    assert metrics.get("refused_total", kind="monitor") == metrics.get("refused_total", kind="flagged") == 0


def test_discovery_of_another_monitor(env):
    env.own_broker()
    d = env.daemon(groups=[("wide", {"heartbeat": "+/+/{id}/#", "retained": "count", "timeout": "1h"})])
    env.publisher.publish("homeassistant/binary_sensor/heartwheel_x/config", b'{"name":"Connectivity"}', 1, retain=True)
    wait_until(lambda: d.metrics().get("refused_total", kind="monitor") == 1)
    assert not d.state("heartwheel_x")
