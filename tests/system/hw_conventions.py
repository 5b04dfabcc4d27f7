# SPDX-License-Identifier: MIT
"""Fleets of several conventions at once, with what else is at such a broker: retained messages of devices that are no more,
and the JSON of other programs. The payloads follow the devices' public documents, shortened."""
import json

SITES = ("north", "south", "west")


def js(**members):
    return json.dumps(members)


class Fleets:
    """`scale` devices of each convention. `retained`: what stands at the broker before; `round(n)`: what all devices and
    programs publish in one interval; `ids`: the devices, as heartwheeld should name them."""

    def __init__(self, scale, flagged_esphome=False):
        self.scale, self.flagged_esphome = scale, flagged_esphome
        n = range(scale)
        self.plugs = ["plug_%d" % i for i in n]
        self.shellies = ["shelly1pm-%06X" % (0xA10000 + i) for i in n]
        self.gen2 = ["shellyplus1-a8032a%04x" % i for i in n]
        self.zigbee = [("room%d/lamp%d" % (i % 7, i)) if i % 3 else "0x00158d0001%06x" % i for i in n]
        self.nodes = ["esp-%s-%d" % (("kitchen", "bath", "garage", "attic")[i % 4], i) for i in n]
        self.lamps = [(site, str(i)) for i in range(max(2, scale // 3)) for site in SITES]
        self.meters = ["m-%05d" % i for i in n]
        self.radio = [("gw-%02d" % (i % 9), "node%05d" % i) for i in n]

    @property
    def ids(self):
        return set(self.plugs + self.shellies + self.gen2 + self.zigbee + self.nodes + self.meters
                   + ["/".join(l) for l in self.lamps] + [n for _, n in self.radio])

    def retained(self):
        for d in self.plugs:
            yield "tele/%s/LWT" % d, "Online"
            yield "stat/%s/POWER" % d, "OFF"
        for d in self.shellies:
            yield "shellies/%s/online" % d, "true"
        for d in self.gen2:
            yield d + "/online", "true"
        for d in self.nodes:
            yield d + "/status", "online"
        for i, d in enumerate(self.meters):
            yield "plant/meters/%s/lwt" % d, "offline" if i % 50 == 9 else "online"
        yield "zigbee2mqtt/bridge/state", js(state="online")
        yield "zigbee2mqtt/bridge/devices", json.dumps([{"ieee_address": "0x1"}])
        for d in self.zigbee:
            yield "zigbee2mqtt/%s/availability" % d, js(state="online")
        # what is no more, and what others keep at the broker
        for i in range(self.scale):
            yield "plant/meters/x-%05d/power" % i, js(w=1)
            yield "tele/gone_%d/STATE" % i, js(Time="2020-01-01T00:00:00")
            yield "homeassistant/sensor/plug_%d_power/config" % i, js(name="Power", state_topic="tele/plug_%d/SENSOR" % i)
            yield "archive/2020/device%d/state" % i, "on"
        yield "app/config", js(theme="dark", limit=3)
        yield "app/version", "4.1.0"
        yield "heartwheel/house/status", js(by="house", seq=1, online=True)
        yield "nodes/plug_1/status", js(by="house", seq=12, online=False)

    def round(self, n):
        for i, d in enumerate(self.plugs):
            yield "tele/%s/STATE" % d, js(Time="2026-01-01T00:00:00", Uptime="0T00:10:11", UptimeSec=611, POWER="OFF",
                                          Wifi={"AP": 1, "RSSI": 44, "Signal": -78})
            yield "tele/%s/SENSOR" % d, js(Time="2026-01-01T00:00:00", ENERGY={"Power": 3})
        for d in self.shellies:
            yield "shellies/%s/relay/0" % d, "off"
            yield "shellies/%s/relay/0/power" % d, "3.14"
        for d in self.gen2:
            yield d + "/status/switch:0", js(id=0, source="init", output=False)
            yield d + "/events/rpc", js(src=d, dst=d + "/events", method="NotifyStatus", params={"ts": 1.5})
        for d in self.zigbee:
            yield "zigbee2mqtt/" + d, js(state="ON", linkquality=120, battery=87)
        for i, d in enumerate(self.nodes):
            yield d + "/sensor/uptime/state", str(n)
            if i % 2:
                yield d + "/binary_sensor/door/state", "ON"
        for site, i in self.lamps:
            yield "sites/%s/lamps/%s/state" % (site, i), js(on=True, w=n)
        for d in self.meters:
            yield "plant/meters/%s/power" % d, js(w=n, bat=80, net={"rssi": -60})
            yield "plant/meters/%s/energy" % d, "123.4"
        for gateway, d in self.radio:
            yield "radio/%s/%s/up" % (gateway, d), "1"
        # other programs
        yield "app/users", js(n=n)
        yield "app/orders", js(open=[1, 2], late=n)
        yield "app/orders/new", js(order=n)
        yield "north/status/17", "ok"
        yield "weather", js(temp=21.5)
        yield "homeassistant/status", "online"
        yield "cmnd/plug_1/POWER", "ON"
        yield "plant/meters/m-00001/set", js(interval=30)
        yield "zigbee2mqtt/room1/lamp1/set", js(state="ON")
        yield "heartwheel/house/status", js(by="house", seq=n + 2, online=True)
        yield "nodes/plug_1/status", js(by="house", seq=n + 100, online=True)
