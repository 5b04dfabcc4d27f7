# SPDX-License-Identifier: MIT
"""Presets: devices as they are sold, with their messages, the messages that the broker sends for them, and those that others
send to them.

The payloads follow the devices' public documents, shortened."""
import json
import subprocess
import time

import pytest

from hw_build import HEARTWHEELD
from hw_wait import throughout, wait_until


def js(**members):
    return json.dumps(members)


# will, birth: of one topic. beats: each by itself proves life, and some report what stands behind them. deaf: none of
# these proves anything, whoever sends it.
FLEETS = {
    "tasmota": {
        "id": "plug_1", "topic": "tele/plug_1/LWT", "will": "Offline", "birth": "Online",
        "beats": [("tele/plug_1/STATE", js(Time="2026-01-01T00:00:00", Uptime="0T00:10:11", UptimeSec=611, Heap=24, POWER="OFF",
                                           Wifi={"AP": 1, "RSSI": 44, "Signal": -78}), {"rssi": -78, "uptime": 611}),
                  ("tele/plug_1/SENSOR", js(Time="2026-01-01T00:00:00", ENERGY={"Power": 3})),
                  ("tele/plug_1/INFO1", js(Info1={"Module": "Plug", "Version": "13.4.0(tasmota)"}),
                   {"version": "13.4.0(tasmota)"}),
                  ("tele/plug_1/INFO1", js(Module="Plug", Version="9.1.0(tasmota)"), {"version": "9.1.0(tasmota)"}),
                  ("tele/plug_1/INFO2", js(Info2={"WebServerMode": "Admin", "IPAddress": "192.0.2.7"}), {"ip": "192.0.2.7"}),
                  ("tele/plug_1/INFO2", js(WebServerMode="Admin", IPAddress="192.0.2.6"), {"ip": "192.0.2.6"}),
                  ("stat/plug_1/RESULT", js(POWER="ON")), ("stat/plug_1/POWER", "ON")],
        "deaf": [("cmnd/plug_1/POWER", "ON"), ("cmnd/plug_1/STATUS", "0")]},
    "esphome": {
        "id": "livingroom", "topic": "livingroom/status", "will": "offline", "birth": "online",
        "beats": [("livingroom/sensor/uptime/state", "1234"), ("livingroom/binary_sensor/door/state", "ON"),
                  ("livingroom/light/lamp/state", js(state="ON", brightness=255)),
                  ("livingroom/climate/ac/mode/state", "cool"), ("livingroom/cover/blind/position/state", "70"),
                  ("livingroom/valve/water/position/state", "40"), ("livingroom/fan/roof/oscillation/state", "oscillate_on"),
                  ("livingroom/fan/roof/speed_level/state", "3")] +
                 [("livingroom/%s/x/state" % c, "1")
                  for c in ("switch", "fan", "cover", "number", "select", "text", "lock", "valve", "event", "update",
                            "alarm_control_panel", "datetime", "date", "time")],
        "deaf": [("livingroom/light/lamp/command", js(state="OFF")), ("livingroom/switch/relay/command", "ON"),
                 ("livingroom/climate/ac/mode/command", "heat"), ("livingroom/cover/blind/position/command", "10"),
                 ("livingroom/valve/water/position/command", "10"), ("livingroom/fan/roof/oscillation/command", "oscillate_off"),
                 ("livingroom/alarm_control_panel/x/command", "DISARM"), ("livingroom/datetime/x/command", "{}"),
                 ("homeassistant/status", "online"), ("homeassistant/sensor/bedroom/state", "21.5")]},
    "shelly": {
        "id": "shelly1pm-AABBCC", "topic": "shellies/shelly1pm-AABBCC/online", "will": "false", "birth": "true",
        "beats": [("shellies/shelly1pm-AABBCC/relay/0", "off"), ("shellies/shelly1pm-AABBCC/relay/0/power", "3.14"),
                  ("shellies/shelly1pm-AABBCC/input_event/0", js(event="S", event_cnt=1)),
                  ("shellies/shelly1pm-AABBCC/announce", js(id="shelly1pm-AABBCC", ip="192.0.2.8", new_fw=False,
                                                            fw_ver="20230913/v1.14.0"),
                   {"ip": "192.0.2.8", "version": "20230913/v1.14.0"}),
                  ("shellies/shelly1pm-AABBCC/info", js(wifi_sta={"connected": True, "ip": "192.0.2.9", "rssi": -61}, uptime=88,
                                                        update={"status": "idle"}, bat={"value": 91, "voltage": 5.9}),
                   {"rssi": -61, "ip": "192.0.2.9", "uptime": 88, "battery": 91})],
        "deaf": [("shellies/shelly1pm-AABBCC/relay/0/command", "on"), ("shellies/shelly1pm-AABBCC/command", "announce"),
                 ("shellies/command", "announce"), ("shellies/shelly1pm-AABBCC/light/0/set", js(turn="on")),
                 ("shellies/shelly1pm-AABBCC/roller/0/command/pos", "50"),
                 ("shellies/shelly1pm-AABBCC/sensor/start_self_test", "start"),
                 ("shellies/shelly1pm-AABBCC/sensor/mute", "mute"), ("shellies/shelly1pm-AABBCC/sensor/unmute", "unmute"),
                 ("shellies/shelly1pm-AABBCC/thermostat/0/command/target_t", "21"),
                 ("shellies/announce", js(id="shelly1pm-AABBCC"))]},
    "shelly2": {
        "id": "shellyplus1-a8032a", "topic": "shellyplus1-a8032a/online", "will": "false", "birth": "true",
        "beats": [("shellyplus1-a8032a/events/rpc",
                   js(src="shellyplus1-a8032a", dst="shellyplus1-a8032a/events", method="NotifyStatus",
                      params={"ts": 1.5, "wifi": {"rssi": -50, "sta_ip": "192.0.2.10"}, "sys": {"uptime": 70},
                              "devicepower:0": {"battery": {"percent": 67}}}),
                   {"rssi": -50, "ip": "192.0.2.10", "uptime": 70, "battery": 67}),
                  ("shellyplus1-a8032a/status/wifi", js(sta_ip="192.0.2.12", status="got ip", rssi=-51), {"ip": "192.0.2.12"}),
                  ("shellyplus1-a8032a/status/sys", js(mac="A8032A", uptime=77, ram_free=1), {"uptime": 77}),
                  ("shellyplus1-a8032a/status/switch:0", js(id=0, source="init", output=False)),
                  ("shellyplus1-a8032a/status/devicepower:0", js(id=0, battery={"V": 5.9, "percent": 66}), {"battery": 66})],
        "deaf": [("shellyplus1-a8032a/rpc", js(id=1, src="me", method="Switch.Set", params={"id": 0, "on": True})),
                 ("shellyplus1-a8032a/command/switch:0", "on"), ("shellyplus1-a8032a/command", "status_update"),
                 ("me/rpc", js(id=1, src="shellyplus1-a8032a", result={}))]},
    "zigbee2mqtt": {
        "id": "kitchen/lamp", "topic": "zigbee2mqtt/kitchen/lamp/availability", "will": js(state="offline"),
        "birth": js(state="online"),
        "beats": [("zigbee2mqtt/kitchen/lamp", js(battery=87, linkquality=120, voltage=None), {"battery": 87}),
                  ("zigbee2mqtt/kitchen/lamp", js(battery=None, state="OFF"))],
        "deaf": [("zigbee2mqtt/kitchen/lamp/set", js(state="ON")), ("zigbee2mqtt/kitchen/lamp/set/state", "ON"),
                 ("zigbee2mqtt/kitchen/lamp/get", js(state="")), ("zigbee2mqtt/kitchen/lamp/get/state", ""),
                 ("zigbee2mqtt/kitchen/lamp/l1/set", "ON"), ("zigbee2mqtt/bridge/state", js(state="online")),
                 ("zigbee2mqtt/bridge/request/permit_join", js(value=True)), ("zigbee2mqtt/kitchen/lamp/action", "single"),
                 ("zigbee2mqtt/kitchen/lamp/availability", "offline")]},
    "openmqttgateway": {
        "id": "OMG_BLE", "topic": "home/OMG_BLE/LWT", "will": "offline", "birth": "online",
        "beats": [("home/OMG_BLE/SYStoMQTT", js(uptime=240, version="v1.7.0", rssi=-40, SSID="net", ip="192.0.2.11"),
                   {"uptime": 240, "version": "v1.7.0", "ip": "192.0.2.11"}),
                  ("home/OMG_BLE/BTtoMQTT/A4C138000000", js(id="A4:C1:38:00:00:00", rssi=-88, batt=80, tempc=21.5)),
                  ("home/OMG_BLE/433toMQTT", js(value=1315156, protocol=1)),
                  ("home/OMG_BLE/RTL_433toMQTT/Acurite/1", js(model="Acurite", id=1)), ("home/OMG_BLE/IRtoMQTT", js(value=1)),
                  ("home/OMG_BLE/LORAtoMQTT/x", js(rssi=-90))],
        "deaf": [("home/OMG_BLE/commands/MQTTtoBT/config", js(interval=5000)), ("home/OMG_BLE/commands/MQTTtoSYS/config",
                                                                                js(cmd="restart")),
                 ("home/home_presence/OMG_BLE", js(id="A4:C1:38:00:00:00", distance=1.5))]},
    "frigate": {
        "id": "frigate", "topic": "frigate/available", "will": "offline", "birth": "online",
        "beats": [("frigate/stats", js(detectors={}, service={"uptime": 4711, "version": "0.14.1-f4f3cfa"}),
                   {"uptime": 4711, "version": "0.14.1-f4f3cfa"}),
                  ("frigate/reviews", js(type="new")),
                  ("frigate/events", js(type="new", before={}, after={}))],
        "deaf": [("frigate/porch/detect/set", "ON"), ("frigate/restart", ""), ("frigate/porch/ptz", "preset-home"),
                 ("frigate/available", "stopped")]},
    "homie": {
        "id": "super-car", "topic": "homie/super-car/$state", "will": "lost", "birth": "ready",
        "beats": [("homie/super-car/$stats/uptime", "120"), ("homie/super-car/wheels/angle", "0.5"),
                  ("homie/super-car/$state", "sleeping")],
        "deaf": [("homie/super-car/wheels/angle/set", "1"), ("homie/$broadcast/alert", "fire"), ("homie/$broadcast/a/b", "x"),
                 ("homie/super-car/$implementation/reset", "true"), ("homie/5/other/$state", "ready"),
                 ("homie/5/other/node/prop", "1"), ("homie/super-car/$state", "disconnected")]},
    "homie5": {
        "id": "super-car", "topic": "homie/5/super-car/$state", "will": "lost", "birth": "ready",
        "beats": [("homie/5/super-car/wheels/angle", "0.5"), ("homie/5/super-car/$state", "init")],
        "deaf": [("homie/5/super-car/wheels/angle/set", "1"), ("homie/5/$broadcast/security/alert", "x"),
                 ("homie/5/$broadcast/x", "x"), ("homie/super-car/$state", "ready"),
                 ("homie/5/super-car/wheels/angle/$target", "1")]},
}

# Those whose topics begin with the device stand behind those with a root of their own; homie5 is below homie's root.
ORDER = ["tasmota", "shelly", "zigbee2mqtt", "openmqttgateway", "frigate", "homie5", "homie", "shelly2", "esphome"]


def marker(env, d, count=[0]):
    """Returns when what was published before has been handled."""
    count[0] += 1
    name = "m%d" % count[0]
    env.publisher.publish("marker/" + name, b"", 1)
    wait_until(lambda: d.device(name), 5, "the marker to be heard")


def groups(*names, **keys):
    return [("marker", {"heartbeat": "marker/{id}", "status": "", "timeout": "1h"})] + [
        ("fleet-" + n, {"preset": n, **keys}) for n in names]


@pytest.mark.parametrize("preset", FLEETS)
def test_life_and_death(env, preset):
    """Each of the device's messages brings it online again; the broker's will and messages to the device do not."""
    f = FLEETS[preset]
    env.own_broker()
    observer = env.observer("nodes/#")
    d = env.daemon(groups=groups(preset))
    env.publisher.publish(f["topic"], f["birth"], 1, True)  # a bridge may bring it, of a device that is no more
    marker(env, d)
    assert d.state(f["id"]) == ("online" if preset in ("homie", "homie5", "esphome") else None)
    env.publisher.publish(f["beats"][0][0], f["beats"][0][1], 1, preset == "esphome")
    wait_until(lambda: d.state(f["id"]) == "online", 5, "the first sign of life")
    env.publisher.publish(f["topic"], f["will"], 1, True)
    wait_until(lambda: d.state(f["id"]) == "offline", 5, "the will to be heard")
    for topic, payload, *reported in f["beats"]:
        device = env.raw(will=(f["topic"], f["will"], True))
        device.publish((f["topic"], f["birth"]), retain=True)
        wait_until(lambda: d.state(f["id"]) == "online", 5, "the birth to be heard")
        device.die()
        wait_until(lambda: d.state(f["id"]) == "offline", 5, "the will to be heard")
        assert d.device(f["id"])["reason"] == "will"
        for t, p in f["deaf"] + [(f["topic"], f["will"])]:
            env.publisher.publish(t, p, 1)
            marker(env, d)
            assert d.state(f["id"]) == "offline", t
        env.publisher.publish(f["topic"], b"", 1, True)  # somebody cleans up
        marker(env, d)
        assert d.state(f["id"]) == "offline"
        env.publisher.publish(topic, payload, 1)
        wait_until(lambda: d.state(f["id"]) == "online", 5, "%s to be a sign of life" % topic)
        for name, value in (reported[0] if reported else {}).items():
            assert d.device(f["id"])[name] == value, (topic, name)
    # What these words mean to others is nothing to it.
    timeout = d.device(f["id"])["timeout_ms"]
    env.publisher.publish(f["beats"][0][0], js(online=False, timeout=1, rssi="x", time="y"), 1)
    marker(env, d)
    known = d.device(f["id"])
    assert (known["state"], known["timeout_ms"], known["group"]) == ("online", timeout, "fleet-" + preset)
    assert set(p["id"] for p in d.get("/v1/devices?group=fleet-" + preset).json()["devices"]) == {f["id"]}
    status = "nodes/%s/status" % f["id"]
    wait_until(lambda: observer.on(status) and observer.on(status)[-1].json()["online"] is True, 5, status)
    assert d.metrics().get("payload_errors_total") == 0


@pytest.mark.parametrize("preset", FLEETS)
def test_what_is_retained_is_history(env, preset):
    f = FLEETS[preset]
    env.own_broker()
    for topic, payload, *_ in [(f["topic"], f["birth"])] + f["beats"]:
        env.publisher.publish(topic, payload, 1, True)
    d = env.daemon(groups=groups(preset), mqtt={"protocol": "3.1.1"})
    marker(env, d)
    assert d.device(f["id"]) is None
    env.publisher.publish(f["topic"], f["birth"], 1, True)
    wait_until(lambda: d.state(f["id"]) == "online")


def test_nothing_is_said_on_a_recorders_own_topics(env):
    """Other programs take messages on these topics for the recorder's. Canaries of another group show that a message would have
    arrived."""
    env.own_broker()
    observer = env.observer("frigate/#", "tele/#")
    d = env.daemon(groups=groups("frigate", "tasmota"))
    canary = "tele/heartwheel-%s/heartwheel-%s" % (d.node, d.node)
    wait_until(lambda: d.get("/v1/status").json()["blind"] is False and observer.on(canary), 10, "a canary")
    env.publisher.publish("frigate/stats", b"{}", 1)
    marker(env, d)
    wait_until(lambda: observer.on("frigate/stats"), 5, "the recorder's own words")
    assert [m.payload for m in observer.on("frigate/stats")] == [b"{}"]
    assert not observer.on("frigate/events") and not observer.on("frigate/reviews")


def test_all_of_them_at_once(env):
    """In the manual's order every device finds its own group, and -t has no warning."""
    env.own_broker()
    d = env.daemon(groups=groups(*ORDER))
    assert subprocess.run([str(HEARTWHEELD), "-t", "-c", str(d.conf)], capture_output=True, text=True).stderr == ""
    seen = set()
    for name in ORDER:
        f = FLEETS[name]
        for topic, payload, *_ in f["beats"][:1] + f["deaf"][:1] + f["beats"]:
            env.publisher.publish(topic, payload, 1)
        if name != "homie":  # it has the id of homie5's, which took it first
            wait_until(lambda: d.device(f["id"]), 5, f["id"])
            assert d.device(f["id"])["group"] == "fleet-" + name
        seen.add(f["id"])
    marker(env, d)
    listed = {p["id"]: p["group"] for p in d.get("/v1/devices?limit=100").json()["devices"] if p["group"] != "marker"}
    assert set(listed) == seen


def test_lines_of_the_group_come_first(env):
    """Lists are extended, single keys are replaced; a reload removes the preset again."""
    env.own_broker()
    d = env.daemon(groups=groups("tasmota", heartbeat="extra/{id}/up", goodbye="extra/{id}/down", timeout="1h",
                                 field="rssi Mine", id_prefix="t-", ignore="tele/+/NOISE"))
    env.publisher.publish("extra/a/up", js(Mine=-3), 1)
    wait_until(lambda: d.state("t-a") == "online")
    assert d.device("t-a")["timeout_ms"] == 3600_000 and d.device("t-a")["rssi"] == -3
    env.publisher.publish("tele/a/LWT", "Offline", 1)
    wait_until(lambda: d.state("t-a") == "offline")
    env.publisher.publish("tele/a/NOISE", "x", 1)
    marker(env, d)
    assert d.state("t-a") == "offline"
    env.publisher.publish("tele/a/STATE", js(Wifi={"Signal": -9}), 1)
    wait_until(lambda: d.state("t-a") == "online" and d.device("t-a")["rssi"] == -9)
    env.publisher.publish("extra/a/down", "x", 1)
    wait_until(lambda: d.state("t-a") == "offline")
    d.edit("preset = tasmota\n", "")
    changed = d.request("POST", "/v1/reload").json()["changed"]
    assert {"group fleet-tasmota.preset", "group fleet-tasmota.heartbeat", "group fleet-tasmota.payload"} <= set(changed)

    def heard():
        env.publisher.publish("extra/b/up", "1", 1)
        return d.state("t-b") == "online"
    wait_until(heard)
    env.publisher.publish("tele/c/STATE", "{}", 1)
    marker(env, d)
    assert d.device("t-c") is None


def test_foreign_words_mean_nothing(env):
    """payload = plain: "online", "timeout" and "time" are then ordinary words of the device."""
    d = env.daemon(groups=[("g", {"heartbeat": env.root + "/{id}/up", "payload": "plain", "field": "battery power.left",
                                  "timeout": "1h", "max_age": "1m"})])
    env.publisher.publish(env.root + "/x/up", js(online=False, timeout=1, time=5, battery=1, rssi="no", power={"left": 40}), 1)
    env.publisher.publish(env.root + "/y/up", '{"half', 1)
    wait_until(lambda: d.state("x") == "online" and d.state("y") == "online")
    assert d.device("x")["battery"] == 40 and "rssi" not in d.device("x") and d.device("x")["timeout_ms"] == 3600_000
    env.publisher.publish(env.root + "/x/up", js(power={"left": "much"}), 1)
    wait_until(lambda: d.metrics().get("payload_errors_total") == 1)
    assert d.device("x")["battery"] == 40
    env.publisher.publish(env.root + "/z/up", js(by="another", seq=7, online=True), 1)
    env.publisher.publish(env.root + "/last/up", "", 1)
    wait_until(lambda: d.state("last") == "online")
    assert d.device("z") is None


def test_silence_is_found_too(env):
    env.own_broker()
    d = env.daemon(groups=groups("esphome", timeout="500ms"))
    env.publisher.publish("node/sensor/x/state", "1", 1)
    wait_until(lambda: d.state("node") == "offline", 5)
    assert d.device("node")["reason"] == "timeout"
    throughout(lambda: d.state("node") == "offline", 0.3)
    wait_until(lambda: len(env.edges("node")) >= 2)
    assert env.edges("node") == [("online", "heartbeat"), ("offline", "timeout")]


@pytest.mark.parametrize("group", [groups("esphome"), [("default", {
    "heartbeat": ["{id}/f%d/+/state" % k for k in range(40)], "goodbye": "{id}/status offline",
    "status": "mon/{id}/status", "timeout": "1h"})]], ids=["esphome", "40 filters"])
def test_a_goodbye_is_found_soon_among_many_filters(env, group):
    """Each filter's canary is back before the device is judged, however many filters there are, also while another device beats
    on one of them."""
    env.own_broker()
    d = env.daemon(groups=group)
    beat = "%s/sensor/t/state" if group == groups("esphome") else "%s/f0/t/state"
    for node in ("node", "other"):
        env.publisher.publish(beat % node, "1", 1)
    wait_until(lambda: d.state("node") == d.state("other") == "online")
    env.publisher.publish("node/status", "offline", 1, True)
    began = time.monotonic()

    def found():
        env.publisher.publish(beat % "other", "1", 1)
        return d.state("node") == "offline"

    wait_until(found, 10)
    assert time.monotonic() - began < 2 and d.device("node")["reason"] == "will"
    assert d.state("other") == "online"


def check(tmp_path, text):
    conf = tmp_path / "monitor.conf"
    conf.write_text("[monitor]\nuser =\n" + text)
    return subprocess.run([str(HEARTWHEELD), "-t", "-v", "-c", str(conf)], capture_output=True, text=True)


@pytest.mark.parametrize("preset", FLEETS)
def test_it_is_printed_as_its_lines(tmp_path, preset):
    p = check(tmp_path, "[group g]\npreset = %s\n" % preset)
    assert p.returncode == 0 and p.stderr == ""
    lines = p.stdout[p.stdout.index("[group g]"):].splitlines()[1:-1]
    assert lines[0] == "preset = " + preset and any(l.startswith("heartbeat = ") for l in lines)
    assert sum(l.startswith(("goodbye = ", "payload = homie")) for l in lines) >= 1
    # Without the preset these lines are the same group.
    again = check(tmp_path, "[group g]\n" + "\n".join(lines[1:]) + "\n")
    assert again.stdout[again.stdout.index("[group g]"):].splitlines()[2:-1] == lines[1:]


def test_homie_before_homie5_is_warned_of(tmp_path):
    p = check(tmp_path, "[group a]\npreset = homie\n[group b]\npreset = homie5\n")
    assert p.returncode == 0 and "section 'group b': warning: never matches: [group a]" in p.stderr


@pytest.mark.parametrize("group,line,key", [
    ("preset = tasmotta\n", 4, "preset"), ("preset = tasmota\nbatch = yes\nheartbeat = x\n", 5, "batch"),
    ("preset = tasmota\nid = {site}/{id}\n", 4, "preset"), ("preset = homie\nfield = rssi x\n", 5, "field"),
    ("preset = tasmota\npreset = tasmota\n", 5, "preset"), ("preset = tasmota\nstatus = x/{y}\n", 5, "status"),
    ("heartbeat = a/{id}\nfield = rssi\n", 5, "field"), ("heartbeat = a/{id}\nfield = colour a.b\n", 5, "field"),
    ("heartbeat = a/{id}\nfield = rssi a..b\n", 5, "field")])
def test_wrong_lines(tmp_path, group, line, key):
    p = check(tmp_path, "[group g]\n" + group)
    assert p.returncode == 2
    assert "monitor.conf:%d: key '%s': " % (line, key) in p.stderr, p.stderr
