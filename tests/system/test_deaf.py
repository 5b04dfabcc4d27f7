# SPDX-License-Identifier: MIT
"""Groups that do not receive what is published on their filters: a broker that denies reading grants the subscription all the
same. No device may be called offline for that; but a fleet that stops as a whole is found as fast as usual.

HW_ROUNDS=N repeats what is done to the broker N times in each test, and prints the count (make faults-deaf)."""
import os
import re
import signal
import time

import pytest

from hw_env import NO_STALL, NO_STANDSTILL
from hw_mqtt import Beating
from hw_wait import in_time, pass_time, throughout, wait_until

ROUNDS = int(os.environ.get("HW_ROUNDS", "1"))
DEVICES = ["d%02d" % i for i in range(50)]
TIMEOUT = 2.0
HOLD = 2.5 * TIMEOUT  # by then everybody would be called offline by who does not know better
PROTOCOLS = pytest.mark.parametrize("protocol", ["3.1.1", "5"])


def acl(read=True, canary=True, status=True):
    """The rights of the monitor; the fleet's user may write everything."""
    lines = ["user fleet", "topic write nodes/#", "user dashboard", "topic read #", "user heartwheel",
             "topic readwrite heartwheel/+/barrier", "topic write heartwheel/+/status", "topic read nodes/+/status"]
    if status:
        lines.append("topic write nodes/+/status")
    if read:
        lines.append("topic read nodes/+/heartbeat")
    if canary:
        lines.append("topic write nodes/+/heartbeat")
    return "\n".join(lines) + "\n"


class Fleet:
    """A broker with an ACL, a monitor, and fifty devices that beat."""

    def __init__(self, env, protocol, first=None, **options):
        self.env = env
        self.broker = env.own_broker(users={u: u for u in ("fleet", "dashboard", "heartwheel")}, acl=first or acl())
        env.root = "nodes"
        password = env.dir / "password"
        password.write_text("heartwheel")
        os.chmod(password, 0o600)
        self.client = env.client(username="fleet", password="fleet")
        # No other blindness, which a busy machine makes, and which would be told instead of this one.
        self.d = env.daemon(timeout="2s", group={"heartbeat": "nodes/{id}/heartbeat", **options.pop("group", {})},
                            monitor=NO_STALL, mqtt={"username": "heartwheel", "password_file": password, "protocol": protocol,
                                                    "reconnect_grace": "500ms", **NO_STANDSTILL, **options.pop("mqtt", {})},
                            **options)
        self.beating = Beating(self.client, [env.topic(i) for i in DEVICES], 0.5)

    def __enter__(self):
        self.beating.__enter__()
        self.all_online()
        return self

    def __exit__(self, *exc):
        self.beating.__exit__(*exc)

    def all_online(self, timeout=20):
        wait_until(lambda: self.d.status()["online"] == len(DEVICES), timeout, "everybody to be online")

    def false_offlines(self):
        return sum(e["state"] == "offline" for e in self.env.events())

    def set_acl(self, text, restart=False):
        self.broker.acl = text  # it writes the file anew when it starts
        (self.broker.dir / "acl").write_text(text)
        if restart:
            self.broker.stop()
            self.broker.start()
        else:
            self.broker.signal(signal.SIGHUP)

    def restart(self, cause):
        """Restarts the broker or the monitor."""
        if cause == "monitor":
            self.d.stop()
            self.d.start(seeing=False)

    def is_deaf(self, timeout=20):
        s = wait_until(lambda: (lambda s: s["blind_cause"] == "deaf" and s)(self.d.status()), timeout, "deafness")
        assert s["blind"] is True
        assert self.d.get("/readyz").status == 503

    def stays_deaf(self, seconds=HOLD):
        throughout(lambda: self.d.status()["blind_cause"] == "deaf", seconds, "deafness to last")
        assert self.d.status()["online"] == len(DEVICES)

    def hears(self, timeout=20):
        wait_until(lambda: self.d.status()["blind"] is False, timeout, "the monitor to see")


def report(what, f, done):
    print("\n%s: %d rounds, %d false offlines" % (what, done, f.false_offlines()))
    assert f.false_offlines() == 0
    assert f.d.status()["online"] == len(DEVICES)


def lines(d, pattern):
    return [l for l in d.log().splitlines() if re.search(pattern, l)]


# --- the right to read


@PROTOCOLS
@pytest.mark.parametrize("restarts", ["nothing", "broker", "monitor"])
def test_the_right_to_read_is_taken_and_given_back(env, protocol, restarts):
    """The right is taken while the monitor is connected (SIGHUP), over a restart of the broker, and over a restart of the
    monitor."""
    with Fleet(env, protocol) as f:
        for k in range(ROUNDS):
            n = len(f.d.log())
            f.set_acl(acl(read=False), restart=restarts == "broker")
            f.restart(restarts)
            f.is_deaf()
            f.stays_deaf()
            line, = [l for l in f.d.log()[n:].splitlines() if "blind (deaf)" in l]
            assert re.search(r"no message on nodes/\+/heartbeat although .* group 'default' .* allow heartwheel to read", line), line
            assert [l for l in f.d.log()[n:].splitlines() if " error: " in l] == [line], "one line says it all"
            f.set_acl(acl())
            f.hears()
            pass_time(TIMEOUT * 1.2)
            assert f.false_offlines() == 0, "in round %d" % (k + 1)
        report("%s, the right to read lost, %s restarted" % (protocol, restarts), f, ROUNDS)


def test_a_deaf_group_is_renamed(env):
    """No heartbeat moves its devices to the new name, so they still belong to the old one."""
    with Fleet(env, "5") as f:
        f.set_acl(acl(read=False))
        f.is_deaf()
        f.d.edit("[group default]", "[group renamed]")
        assert f.d.request("POST", "/v1/reload").status == 200
        f.is_deaf()
        wait_until(lambda: lines(f.d, r"blind \(deaf\).* group 'renamed'"), 20, "the new name to be deaf")
        f.stays_deaf()
        assert f.false_offlines() == 0
        f.set_acl(acl())
        f.hears()
        pass_time(TIMEOUT * 1.2)
        assert f.false_offlines() == 0
        assert {f.d.device(i)["group"] for i in DEVICES} == {"renamed"}


def test_the_right_to_read_is_lost_while_no_monitor_runs(env):
    """MQTT 3.1.1 does not report the missing right. Redis keeps what the run before had received, beyond every bound of
    time."""
    with Fleet(env, "3.1.1") as f:
        wait_until(lambda: len(env.redis.get(env.key("monitor", env.node)).split()) == 3, 10, "the mark to keep the canaries")
        f.set_acl(acl(read=False))
        f.restart("monitor")
        f.is_deaf()
        f.stays_deaf(33.0)
        f.set_acl(acl())
        f.hears()
        report("3.1.1, the right to read lost while no monitor runs", f, 1)


@PROTOCOLS
def test_presence_metrics_and_log_of_a_deaf_group(env, protocol):
    with Fleet(env, protocol) as f:
        topic = "heartwheel/%s/status" % env.node
        observer = env.observer(topic, username="dashboard", password="dashboard")
        f.set_acl(acl(read=False))
        f.is_deaf()
        f.stays_deaf(1.0)
        wait_until(lambda: observer.on(topic)[-1].json()["blind"] == "deaf", 5, "presence to say it")
        m = f.d.metrics()
        assert m.get("blind", cause="deaf") == 1
        assert m.get("blind_seconds_total", cause="deaf") > 1.0
        group, = f.d.get("/v1/groups").json()["groups"]
        assert group["deaf"] is True
        f.set_acl(acl())
        f.hears()
        wait_until(lambda: observer.on(topic)[-1].json()["blind"] is False, 5, "presence to say that it sees")
        assert lines(f.d, r"group 'default' is judged again after [\d.]+ s deaf")
        wait_until(lambda: f.d.get("/readyz").status == 200)
        report("told", f, 1)


@PROTOCOLS
def test_a_right_that_is_missing_from_the_start_is_told_at_once(env, protocol):
    f = Fleet(env, protocol, first=acl(read=False))
    wait_until(lambda: lines(f.d, r"group 'default': .*nodes/heartwheel-%s/heartbeat .*allow heartwheel to read" % env.node),
               10, "a line that names the right")
    throughout(lambda: f.d.status()["blind_cause"] != "deaf", 3, "an empty group not to be deaf")
    assert len(lines(f.d, "group 'default':")) == 1, f.d.log()


# --- the right to write the canary


@PROTOCOLS
def test_without_the_right_to_write_a_canary(env, protocol):
    """One warning; no device that beats is called offline, and a device that stops alone is found."""
    with Fleet(env, protocol, first=acl(canary=False)) as f:
        for k in range(ROUNDS):
            if k:
                f.set_acl(acl(canary=False), restart=k % 2 == 1)
                f.restart("monitor" if k % 4 == 0 else "")
            wait_until(lambda: lines(f.d, "group 'default':"), 10, "a line that names the right")
            pass_time(HOLD)
            assert f.false_offlines() == 0, "in round %d" % (k + 1)
        right = r"the broker refuses .*: allow heartwheel to write" if protocol == "5" else "and to write that topic"
        assert lines(f.d, "group 'default': .*" + right), f.d.log()
        report("%s, no right to write" % protocol, f, ROUNDS)
        f.client.publish(env.topic("loner"), b"")
        wait_until(lambda: f.d.state("loner") == "online")
        wait_until(lambda: f.d.state("loner") == "offline", 4 * TIMEOUT, "one that died alone to be found")


@pytest.mark.parametrize("limit, of_status", [(100, True), (20, False)])
def test_the_brokers_limit_on_messages_is_named(env, limit, of_status):
    """The log names the broker's limit, since no right would help. With the lower limit the canary is too long as well."""
    env.own_broker(settings=["message_size_limit %d" % limit])
    d = env.daemon(timeout="1h", mqtt={"protocol": "5"})
    env.beat("a")
    wait_until(lambda: lines(d, "raise (its|the broker's) limit on messages"), what="the line about the status")
    if not of_status:
        wait_until(lambda: lines(d, "group 'default': .* message_size_limit"), what="the line about the canary")
    assert not lines(d, "allow anonymous clients to write") and not lines(d, "give anonymous clients the right")


def test_a_canary_below_a_topic_that_the_broker_reserves(env):
    env.own_broker()
    d = env.daemon(mqtt={"protocol": "5"}, groups=[("g", {"heartbeat": "$SYS/broker/clients/{id}", "timeout": "1h"})])
    wait_until(lambda: lines(d, "group 'g': .*set canary = no"), what="the remedy")


@PROTOCOLS
def test_only_the_right_to_write_the_status_topic_is_lost(env, protocol):
    """The devices are heard on the other filter all the time: a device that stops is found, and no other is called offline."""
    with Fleet(env, protocol, group={"heartbeat": ["nodes/{id}/heartbeat", "nodes/{id}/status"]}) as f:
        wait_until(lambda: f.d.metrics().get("own_messages_total") >= 2, 10, "the canaries to come back")
        f.set_acl(acl(status=False))
        f.client.publish(env.topic("loner"), b"")
        wait_until(lambda: f.d.state("loner") == "online")
        wait_until(lambda: f.d.state("loner") == "offline", 45, "the death of one device to be found")
        assert f.d.status()["online"] == len(DEVICES) and f.false_offlines() == 1
        line, = lines(f.d, r"blind \(deaf\)")
        assert re.search(r"no message on nodes/\+/status although the broker works; devices of group 'default' are not judged "
                         r"until one arrives, or until its other filters have brought its heartbeats for [\d.]+ s; .* allow "
                         r"heartwheel to ", line), line
        wait_until(lambda: not f.d.status()["blind"], 5)
        f.client.publish(env.topic("loner"), b"")
        wait_until(lambda: f.d.state("loner") == "online")
        wait_until(lambda: f.d.state("loner") == "offline", 4 * TIMEOUT, "the next death to be found in time")
        assert len(lines(f.d, r"blind \(deaf\)")) == 1 and f.false_offlines() == 2


# --- real deaths


@PROTOCOLS
@pytest.mark.parametrize("canary", ["yes", "no"])
def test_a_fleet_that_dies_whole(env, protocol, canary):
    """The deaths are found at the timeout; without canaries three timeouts after the last heartbeat, but not before 30 s."""
    f = Fleet(env, protocol, group={"canary": canary})
    least, most = (TIMEOUT - 0.01, TIMEOUT + 0.5) if canary == "yes" else (29.0, 33.0)
    worst = 0.0
    for k in range(ROUNDS if canary == "yes" else 1):
        with f:
            pass_time(1.0)
            wait_until(lambda: f.d.status()["owed"] == 0, what="Redis to have what was told")
            start = len(env.events())
        deaths = lambda: [e for e in env.events()[start:] if e["state"] == "offline"]
        wait_until(lambda: len(deaths()) == len(DEVICES), most + 20, "everybody to be offline")
        edges = deaths()
        silent = [(int(e["time_ms"]) - int(e["last_seen_ms"])) / 1000 for e in edges]
        assert least <= min(silent), min(silent)
        assert len(env.events()) == start + len(DEVICES)
        worst = max(worst, max(silent))
        f.beating = Beating(f.client, [env.topic(i) for i in DEVICES], 0.5)
    print("\n%s, a whole fleet dies, canary = %s: found after %.3f s at most" % (protocol, canary, worst))
    in_time(worst, most + 0.5, "until a death was told")


@PROTOCOLS
@pytest.mark.parametrize("while_", ["deaf", "restarts", "monitor"])
def test_a_fleet_that_dies_unheard(env, protocol, while_):
    """The fleet stops while its group is deaf, while the broker restarts, or while no monitor runs: found at most three
    timeouts after that."""
    f = Fleet(env, protocol)
    worst = 0.0
    for k in range(ROUNDS):
        with f:
            if while_ == "deaf":
                f.set_acl(acl(read=False))
                f.is_deaf()
            elif while_ == "restarts":
                f.broker.stop()
            else:
                f.d.stop()
        if while_ == "deaf":
            pass_time(1.0)
            f.set_acl(acl())
        elif while_ == "restarts":
            f.broker.start()
            wait_until(lambda: f.d.status()["mqtt"] == "up", 70)
        else:
            f.d.start(seeing=False)
        back = time.monotonic()
        wait_until(lambda: f.d.status()["offline"] == len(DEVICES), 30, "everybody to be offline")
        worst = max(worst, time.monotonic() - back)
        if while_ == "restarts":
            f.client.close()
            f.client = env.client(username="fleet", password="fleet")
        f.beating = Beating(f.client, [env.topic(i) for i in DEVICES], 0.5)
    print("\n%s, a fleet dies while %s: %d rounds, found after %.3f s at most" % (protocol, while_, ROUNDS, worst))
    in_time(worst, 3 * TIMEOUT + 0.5, "until all deaths were told")


# --- what else a canary must not be


@pytest.mark.parametrize("group", [
    {"heartbeat": "nodes/{id}/heartbeat", "payload": "homie"},
    {"heartbeat": "nodes/+/heartbeat", "batch": "yes", "status": "nodes/{id}/status"},
    {"heartbeat": ["nodes/{id}/heartbeat", "nodes/{id}/#"], "id_prefix": "x-"},
    {"heartbeat": ["nodes/+/{id}", "+/{id}/heartbeat"]},
])
@pytest.mark.parametrize("readers", [1, 2])
def test_a_canary_is_no_heartbeat(env, group, readers):
    """A canary is no heartbeat, whatever the group's payload is. It comes back once, however the filters overlap and whichever
    reader reads it."""
    env.own_broker()
    env.root = "nodes"
    d = env.daemon(timeout="2s", mqtt={"readers": readers}, group=group)
    wait_until(lambda: d.metrics().get("own_messages_total") >= 1, 10, "a canary to come back")
    pass_time(2.5)
    s = d.status()
    assert s["devices"] == 0 and s["heartbeats_total"] == 0
    assert d.metrics().refused() == 0
    assert not lines(d, "canary|group 'default':"), d.log()


def test_a_reload_brings_a_filter(env):
    """A filter that a reload adds is proven as well, and no warning names a filter that works."""
    env.own_broker()
    env.root = "nodes"
    d = env.daemon(timeout="2s", group={"heartbeat": "nodes/{id}/heartbeat"})
    before = wait_until(lambda: d.metrics().get("own_messages_total"), 10)
    d.edit("heartbeat = nodes/{id}/heartbeat", "heartbeat = nodes/{id}/heartbeat\nheartbeat = other/{id}/alive")
    assert d.request("POST", "/v1/reload").status == 200
    wait_until(lambda: d.metrics().get("own_messages_total") > before, 10, "another canary")
    pass_time(3.0)
    assert not lines(d, "group 'default':"), d.log()
