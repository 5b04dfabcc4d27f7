# SPDX-License-Identifier: MIT
"""Fleets behind a bridge: two mosquittos; the monitor's broker fetches the fleet's topics from the other one."""
import itertools
import signal
import time

import pytest

from hw_env import NO_STALL, NO_STANDSTILL
from hw_mqtt import Client, RawMqtt
from hw_servers import Broker
from hw_wait import pass_time, throughout, wait_until

STATE = "$SYS/broker/connection/site-b/state"


class Site:
    """The other broker, with a client on it; `env.broker` is bridged to it."""

    def __init__(self, env, topics=("nodes/#",), bridged=True):
        self.env = env
        self.broker = Broker(env.own_dir("site"), persistence=True)
        env.servers.append(self.broker)
        self.broker.start()
        bridge = ["connection site-b", "address 127.0.0.1:%d" % self.broker.port, "remote_clientid site-b", "cleansession true",
                  "restart_timeout 1", "keepalive_interval 5", "try_private true"]
        env.own_broker(settings=["set_tcp_nodelay true", *bridge, *("topic %s in 0" % t for t in topics)])
        env.root = "nodes"
        self.client = None
        self.connect()

    def connect(self):
        if self.client:
            self.client.close()
        self.client = Client(self.broker.port)
        self.env.clients.append(self.client)

    def beat(self, device, payload=b"", retain=False, last="heartbeat"):
        self.client.publish(self.env.topic(device, last), payload, retain=retain)

    def cut(self):
        self.broker.stop()

    def restore(self):
        self.broker.start()
        self.connect()

    def beats_until(self, device, state):
        """The device beats until the bridge has delivered a heartbeat."""
        def look():
            self.beat(device)
            return self.env.daemons[-1].state(device) == state
        wait_until(look, 30, "%s to be %s" % (device, state))


def daemon(env, **group):
    protocol = group.pop("protocol", "5")
    return env.daemon(timeout=group.pop("timeout", "1h"), group={"heartbeat": "nodes/{id}/heartbeat", **group},
                      monitor=NO_STALL, mqtt={"protocol": protocol, "reconnect_grace": "500ms", **NO_STANDSTILL})


def flagged(d):
    return d.metrics().get("refused_total", kind="flagged")


def test_a_bridge_that_reconnects_brings_history(env):
    """The other broker retains old heartbeats of devices that have stopped: these devices do not come online."""
    site = Site(env)
    for i in range(5):
        site.beat("stopped%d" % i, b'{"battery":50}', retain=True)
    d = daemon(env)
    site.beats_until("live", "online")
    site.cut()
    wait_until(lambda: env.retained(STATE)[STATE].payload == b"0", 20, "the bridge to be away")
    before = flagged(d)
    site.restore()
    wait_until(lambda: flagged(d) >= before + 5, 30, "the bridge to bring what is retained")
    site.beats_until("later", "online")
    assert [d.state("stopped%d" % i) for i in range(5)] == [None] * 5
    assert d.metrics().get("devices", group="default", state="online") == 2
    line, = wait_until(lambda: [l for l in d.log().splitlines() if "with the retain flag" in l and " warning: " in l], 15,
                       "the log to say so")
    assert "group 'default': " in line and "set retained = count in that group" in line, line


def test_a_goodbye_with_the_flag_counts(env):
    """A goodbye that arrives with the retain flag counts: most last wills are retained."""
    site = Site(env)
    d = daemon(env, goodbye="nodes/{id}/lwt gone")
    site.beats_until("a", "online")
    site.beat("a", b"gone", retain=True, last="lwt")
    wait_until(lambda: d.state("a") == "offline", 10, "the goodbye to count")
    assert d.device("a")["reason"] == "will"
    site.beat("a", retain=True)
    site.beat("b", b"here", retain=True, last="lwt")
    wait_until(lambda: flagged(d) >= 2, 10, "both to be read")
    assert d.state("a") == "offline" and d.state("b") is None
    # It is retained in the place of the will: the device has reconnected after that.
    site.beat("a", b"here", retain=True, last="lwt")
    wait_until(lambda: d.state("a") == "online", 10, "the birth to take the will back")


def history(d):
    return d.metrics().get("refused_total", kind="retained")


def test_a_bridge_that_reconnects_brings_old_wills_and_births(env):
    """Old wills and births arrive again: devices that beat stay online, stopped devices stay offline, and no forgotten device
    returns."""
    site = Site(env)
    d = daemon(env, goodbye="nodes/{id}/lwt gone")
    beating, born, mixed = (["%s%d" % (kind, i) for i in range(3)] for kind in ("beating", "born", "mixed"))
    for device in beating + born + mixed + ["forgotten"]:
        site.beats_until(device, "online")
    for i in range(3):
        site.beat(beating[i], b"gone", retain=True, last="lwt")
        site.beat(born[i], b"here", retain=True, last="lwt")
        site.beat(born[i], b"gone", last="lwt")
        site.beat(mixed[i], b'{"online":true}', retain=True)
        site.beat(mixed[i], b"gone", retain=True, last="lwt")
    site.beat("forgotten", b"gone", retain=True, last="lwt")
    for device in beating + born + mixed + ["forgotten"]:
        wait_until(lambda: d.state(device) == "offline", 10, "%s to be offline" % device)
    assert d.request("DELETE", "/v1/devices/forgotten").status == 204
    wait_until(lambda: d.state("forgotten") in (None, "forgotten"), 10)
    for device in beating:
        site.beats_until(device, "online")
    wait_until(lambda: all(env.edges(x)[-1][0] == "online" for x in beating), what="the stream to have them all")
    events, before = len(env.events()), history(d)
    thief = Client(site.broker.port, client_id="site-b")  # the bridge's connection ends, and it reconnects
    thief.close()

    def brought():
        for device in beating:
            site.beat(device)
        return history(d) > before
    wait_until(brought, 30, "the bridge to bring what is retained")

    def later():
        """The devices go on to beat: an old will is held for half their timeout, and a heartbeat voids it."""
        for device in beating + ["later"]:
            site.beat(device)
        return d.state("later") == "online"
    wait_until(later, 30, "a new device to come online")
    assert [d.state(x) for x in beating] == ["online"] * 3
    assert [d.state(x) for x in born + mixed] == ["offline"] * 6
    assert d.state("forgotten") in (None, "forgotten")
    assert [(e["id"], e["state"]) for e in env.events()[events:] if e["state"] != "forgotten"] == [("later", "online")]


def test_devices_that_retain_their_heartbeats(env):
    """With retained = count, which is set by a reload."""
    env.own_broker()
    env.root = "nodes"
    d = daemon(env, retained="ignore")
    env.beat("a", b"", retain=True)
    wait_until(lambda: flagged(d) == 1, 10, "the message to be read")
    assert d.state("a") is None
    d.edit("retained = ignore", "retained = count")
    assert d.request("POST", "/v1/reload").json()["changed"] == ["group default.retained"]
    env.beat("a", b'{"battery":50}', retain=True)
    wait_until(lambda: d.state("a") == "online")
    assert d.device("a")["battery"] == 50
    # What is retained is still history for who subscribes to it.
    d.stop()
    env.redis.flushdb()
    d.start()
    env.beat("b", b"", retain=True)
    wait_until(lambda: d.state("b") == "online")
    assert d.state("a") is None


@pytest.mark.parametrize("store", ["memory", "redis"])
@pytest.mark.parametrize("readers", [1, 2])
def test_goodbyes_and_statuses_keep_their_meaning(env, store, readers):
    """Without a store, the daemon learns from the statuses that the run before left retained on the status topic."""
    env.own_broker()
    env.root = "nodes"
    env.check_events = store == "redis"
    d = env.daemon(timeout="1h", monitor=NO_STALL, mqtt={"readers": readers, **NO_STANDSTILL}, store={"type": store})
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    barriers_back = lambda: d.metrics().get("barriers_back_total")
    before = barriers_back()
    # Of two readers, one may be behind. What is sent after the barriers of both is newer than the heartbeat.
    wait_until(lambda: readers == 1 or barriers_back() > before + 2 * readers, 20, "barriers on all readers")
    env.beat("a", b'{"online":false}', last="status", retain=True)
    wait_until(lambda: d.state("a") == "offline", 10, "a retained will to count")
    wait_until(lambda: env.retained_status("a").get("by") == env.node, 10, "the monitor's own status")
    d.stop()
    d.start()
    wait_until(lambda: d.state("a") == "offline", 10, "the device to be known")
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")


def test_a_goodbye_right_behind_a_heartbeat_is_not_lost(env):
    """With two readers the goodbye may have been read before an older heartbeat: it counts once the device has sent nothing for
    half its timeout."""
    env.own_broker()
    env.root = "nodes"
    d = env.daemon(timeout="20s", monitor=NO_STALL, mqtt={"readers": 2, **NO_STANDSTILL})
    for names in ("abcd", "efgh"):  # an even number: the same reader gets what a device sends, in this order
        env.raw().publish(*[(env.topic(x), b"") for x in names], *[(env.topic(x, "status"), b'{"online":false}') for x in names])
        wait_until(lambda names=names: [d.state(x) for x in names] == ["online"] * 4, what="all to be online")
        if "offline (will)" not in d.log():
            break
        env.beat("x")  # the broker began with different readers for the two topics: this takes a turn of one of them
    said = time.monotonic()

    def three_are_offline():
        env.beat(names[3])
        return [d.state(x) for x in names] == ["offline"] * 3 + ["online"]
    wait_until(three_are_offline, what="the goodbyes to count")
    assert time.monotonic() - said > 5 and {d.device(x)["reason"] for x in names[:3]} == {"will"}


# --- while = TOPIC VALUE


def upstream(d):
    return d.status()["blind_cause"] == "upstream"


def offlines(env):
    return [e["id"] for e in env.events() if e["state"] == "offline"]


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_bridge_that_is_away_takes_nobody_offline(env, protocol):
    """The group is blind while the bridge reports that it is away; deaths are found once it is back."""
    site = Site(env)
    observer = env.observer("heartwheel/%s/status" % env.node)
    d = daemon(env, protocol=protocol, timeout="2s", **{"while": STATE + " 1"})
    for i in range(5):
        site.beats_until("a%d" % i, "online")
    for i in range(5):
        site.beat("a%d" % i)
    site.cut()
    wait_until(lambda: upstream(d), 20, "the group to be blind")
    line, = [l for l in d.log().splitlines() if "blind (upstream)" in l]
    assert "%s is not '1'; devices of group 'default' are not judged until it is" % STATE in line, line
    throughout(lambda: upstream(d) and offlines(env) == [], 5, "nobody to be judged")
    assert d.get("/v1/groups").json()["groups"][0]["upstream"] == STATE
    assert d.metrics().get("blind", cause="upstream") == 1 and d.get("/readyz").status == 503
    assert "the bridge or gateway of a group is away" in d.ctl("status").stdout
    wait_until(lambda: observer.messages[-1].json()["blind"] == "upstream", 5, "presence to say it")
    site.restore()
    wait_until(lambda: not d.status()["blind"], 30, "the group to be heard again")
    back = len(env.events())
    for _ in range(8):
        site.beat("a0")
        pass_time(0.5)
    wait_until(lambda: len(offlines(env)) == 4, 10, "the devices that died meanwhile")
    assert d.state("a0") == "online" and len(env.events()) == back + 4
    assert d.get("/v1/groups").json()["groups"][0]["upstream"] is None
    assert d.metrics().get("blind_seconds_total", cause="upstream") > 4
    assert [l for l in d.log().splitlines() if "group 'default' is judged again after" in l and "upstream" in l]


def test_a_site_whose_broker_is_stopped_in_order_goes_on(env):
    """The broker publishes the wills of all its clients before the bridge's state changes: no device is called offline."""
    site = Site(env)
    d = daemon(env, goodbye="nodes/{id}/lwt gone", **{"while": STATE + " 1"})
    mortal = []
    for i in range(5):
        mortal.append(RawMqtt(site.broker.port, will=(env.topic("a%d" % i, "lwt"), b"gone", True)))
        site.beats_until("a%d" % i, "online")
    wait_until(lambda: not d.status()["blind"], 10, "the group to be judged")
    site.cut()
    wait_until(lambda: upstream(d), 20, "the group to be blind")
    throughout(lambda: offlines(env) == [], 4, "all devices to stay online")
    site.restore()
    wait_until(lambda: not d.status()["blind"], 30, "the group to be heard again")
    site.beats_until("later", "online")
    throughout(lambda: offlines(env) == [], 3, "all devices to stay online after the grace")


def test_without_while_a_bridge_that_is_away_takes_its_fleet_offline(env):
    """Without `while` the fleet goes offline, which the option prevents. A reload adds and removes the option, and the value
    that came before the reload counts."""
    site = Site(env)
    d = daemon(env, timeout="2s", **{"while": "none"})
    site.beats_until("a", "online")
    site.cut()
    wait_until(lambda: d.state("a") == "offline", 30)
    d.edit("while = none", "while = %s 1" % STATE)
    assert d.request("POST", "/v1/reload").json()["changed"] == ["group default.while"]
    wait_until(lambda: upstream(d), 10, "the group to be blind")
    d.edit("while = %s 1" % STATE, "while = %s 0" % STATE)
    assert d.request("POST", "/v1/reload").status == 200
    wait_until(lambda: not d.status()["blind"], 10, "the other value to fit")
    d.edit("while = %s 0" % STATE, "while = %s 1" % STATE)
    assert d.request("POST", "/v1/reload").status == 200
    wait_until(lambda: upstream(d), 10, "the value that came before to be known")
    d.edit("while = %s 1" % STATE, "while = none")
    assert d.request("POST", "/v1/reload").status == 200
    wait_until(lambda: not d.status()["blind"], 10, "the option to be gone")


@pytest.mark.parametrize("says", ["%s", '{"state":"%s"}'])
def test_zigbee2mqtt_that_is_away(env, says):
    """The preset names the state topic. Before the first value its devices are judged as usual; at a start a retained value
    counts."""
    env.own_broker()
    d = env.daemon(groups=[("z", {"preset": "zigbee2mqtt", "timeout": "3s", "status": ""})], monitor=NO_STALL,
                   mqtt={"readers": 2, **NO_STANDSTILL})
    say = lambda word: env.publisher.publish("zigbee2mqtt/bridge/state", (says % word).encode() if word else b"", 1, True)
    env.publisher.publish("zigbee2mqtt/lamp", b"{}", 1)
    wait_until(lambda: d.state("lamp") == "offline", 10)
    say("online")
    env.publisher.publish("zigbee2mqtt/lamp", b"{}", 1)
    wait_until(lambda: d.state("lamp") == "online")
    say("offline")
    wait_until(lambda: upstream(d), 5)
    throughout(lambda: d.state("lamp") == "online", 6)
    d.stop()
    d.start(seeing=False)
    wait_until(lambda: upstream(d), 10, "the retained value to count")
    throughout(lambda: d.state("lamp") == "online", 6)
    say("")  # cleared: no value
    wait_until(lambda: d.state("lamp") == "offline" and not d.status()["blind"], 10)


def test_what_zigbee2mqtt_says_when_it_is_back_counts(env):
    """At its return zigbee2mqtt publishes which devices are offline: this counts at once, within the grace."""
    env.own_broker()
    d = env.daemon(groups=[("z", {"preset": "zigbee2mqtt", "status": ""})], monitor=NO_STALL,
                   mqtt={"reconnect_grace": "3s", **NO_STANDSTILL})
    say = lambda device, word: env.publisher.publish("zigbee2mqtt/%s" % device, b'{"state":"%s"}' % word, 1, True)
    for lamp in ("lamp", "plug"):
        env.publisher.publish("zigbee2mqtt/" + lamp, b"{}", 1)
        wait_until(lambda: d.state(lamp) == "online")
    say("bridge/state", b"offline")
    wait_until(lambda: upstream(d), 5)
    say("bridge/state", b"online")
    say("lamp/availability", b"offline")
    say("plug/availability", b"online")
    wait_until(lambda: d.state("lamp") == "offline", 10, "the goodbye to count when the grace is over")
    assert d.device("lamp")["reason"] == "will" and d.state("plug") == "online" and not upstream(d)


def test_a_value_that_the_broker_dropped_is_asked_for(env):
    """The reader was stopped while the broker had more messages for it than fit, and the value changed then: the monitor
    requests the value again."""
    env.own_broker()
    env.root = "nodes"
    env.publisher.publish("up/there", b"yes", 1, True)
    d = daemon(env, **{"while": "up/there yes"})
    env.beat("a")
    wait_until(lambda: d.status()["devices"] == 1)
    raw = env.raw()
    d.signal(signal.SIGSTOP)
    try:
        env.flood_until_dropped(raw, "nodes/a/heartbeat")
        env.publisher.publish("up/there", b"no", 1, True)
        wait_until(lambda: env.retained("up/there")["up/there"].payload == b"no", 10, "the value to be another")
    finally:
        d.signal(signal.SIGCONT)
    raw.die()
    wait_until(lambda: upstream(d), 30, "the group to be blind")
    assert "(loss; each device's timeout starts again)" in d.log()


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_value_that_the_broker_has_lost_is_unknown(env, protocol):
    """The broker restarts without persistence: the topic has no value, as after a clearing. If the broker still has a value,
    that counts."""
    env.own_broker()
    env.root = "nodes"
    say = lambda word: env.publisher.publish("up/there", word, 1, True)
    say(b"yes")
    d = daemon(env, timeout="2s", protocol=protocol, **{"while": "up/there yes"})
    say(b"no")
    wait_until(lambda: upstream(d), 10, "the group to be blind")
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    thief = Client(env.broker.port, client_id="heartwheel-%s-r0" % env.node)  # the reader reconnects
    thief.close()
    wait_until(lambda: d.log().count("connected to 127.0.0.1:%d and subscribed" % env.broker.port) >= 2, 30, "the reader to be back")
    named = lambda: d.get("/v1/groups").json()["groups"][0]["upstream"] == "up/there"
    throughout(lambda: named() and offlines(env) == [], 4, "the group to be blind: the value is as it was")
    env.broker.stop()
    env.broker.start()
    wait_until(lambda: d.state("a") == "offline", 30, "the group to be judged")
    assert not upstream(d)


@pytest.mark.parametrize("readers", [1, 2])
def test_a_topic_of_while_that_is_a_heartbeat_too(env, readers):
    """The topic keeps its retain flag. With one reader, a message on it counts once, although two subscriptions deliver it."""
    env.own_broker()
    env.root = "gw"
    env.publisher.publish("gw/old/lwt", b"on", 1, True)
    d = env.daemon(groups=[("gateways", {"heartbeat": "gw/{id}/+", "goodbye": "gw/{id}/lwt off", "timeout": "1h"}),
                           ("g", {"heartbeat": "nodes/{id}", "while": ["gw/s/lwt on", "gw/old/lwt on"]})],
                   monitor=NO_STALL, mqtt={"readers": readers, **NO_STANDSTILL})
    wait_until(lambda: not d.status()["blind"], 20)
    beats = lambda: d.metrics().get("heartbeats_total", group="gateways")
    lwt = lambda device, word, retain=True: env.publisher.publish("gw/%s/lwt" % device, word, 1, retain)

    markers = itertools.count()

    def read():
        """Until each reader has read what was published. The broker gives the messages to the readers in turn, and a canary may
        come between two of them."""
        sent = ["m%d" % next(markers) for _ in range(1 if readers == 1 else readers + 1)]
        for marker in sent:
            env.publisher.publish("gw/%s/hb" % marker, b"", 1)
        wait_until(lambda: all(d.state(marker) == "online" for marker in sent), 10, "messages to be read")

    def flags(device):
        before = flagged(d)
        lwt(device, b"on")
        read()
        return flagged(d) - before
    # Until then it may be what the broker retained.
    once = wait_until(lambda: flags("s"), 20, "the flag to be seen on what is new")
    if readers == 1:
        assert once == 1
    assert flags("t") == 1
    assert [d.state(x) for x in ("s", "t", "old")] == [None] * 3
    before = beats()
    lwt("s", b"up", retain=False)
    wait_until(lambda: d.state("s") == "online", 10, "a message without the flag to count")
    read()
    if readers == 1:
        assert beats() == before + 2
    time.sleep(0.05)  # with two readers a goodbye within 5 ms may be older than the heartbeat
    lwt("s", b"off")
    read()
    wait_until(lambda: d.state("s") == "offline", 10, "a goodbye with the flag to count")
    assert d.device("s")["reason"] == "will" and upstream(d)
    lwt("s", b"on")
    wait_until(lambda: d.state("s") == "online", 10, "the birth to take it back")
    wait_until(lambda: not upstream(d), 20)


def test_a_while_that_brings_no_value_is_said(env):
    env.own_broker()
    d = env.daemon(group={"while": "up/there yes"}, monitor=NO_STALL, mqtt=NO_STANDSTILL)
    wait_until(lambda: "group 'default': no value on up/there; its devices are judged as if the value were 'yes'" in d.log(), 45)
    assert not d.status()["blind"]


@pytest.mark.parametrize("value", [b"yes", b"no"])
def test_a_right_to_read_the_topic_of_while_that_is_lost(env, value):
    """The broker does not send the value any more: it is unknown, the group is judged, and the log names the topic. The value
    counts again when the right is back."""
    lines = "topic readwrite nodes/#\ntopic readwrite heartwheel/#\n"
    may_read = lines + "topic readwrite up/#\n"
    env.own_broker(acl=may_read)
    env.root = "nodes"
    env.publisher.publish("up/there", b"yes", 1, True)
    d = daemon(env, timeout="4s", **{"while": "up/there yes"})
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    env.publisher.publish("up/there", value, 1, True)
    wait_until(lambda: upstream(d) == (value == b"no"), 10)
    unknown = "group 'default': no value on up/there; its devices are judged as if the value were 'yes'"
    pass_time(35)  # a renewal brings the value
    assert unknown not in d.log()

    def rights(text):
        (env.broker.dir / "acl").write_text(text)
        env.broker.signal(signal.SIGHUP)
    rights(lines + "topic write up/#\n")
    wait_until(lambda: unknown in d.log(), 90, "the value to be unknown")
    wait_until(lambda: not upstream(d), 10, "the grace to end")
    assert d.metrics().get("while_unknown", group="default") == 1
    assert d.get("/v1/groups").json()["groups"][0]["upstream_unknown"] == "up/there"
    assert "no value on a topic of `while`, of default" in d.ctl("status").stdout
    wait_until(lambda: d.state("a") == "offline", 20, "the group to be judged")
    rights(may_read)
    env.publisher.publish("up/there", b"no", 1, True)
    wait_until(lambda: upstream(d), 60, "the value to count again")
    assert d.metrics().get("while_unknown", group="default") == 0
    assert d.log().count(unknown) == 1
