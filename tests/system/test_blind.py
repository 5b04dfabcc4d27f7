# SPDX-License-Identifier: MIT
"""Each blindness with its own cause: presence, API, log and metrics report this cause, and no device is called offline."""
import re
import signal
import time

import pytest

from hw_env import NO_STALL, NO_STANDSTILL
from hw_relay import Relay
from hw_wait import in_time, pass_time, throughout, wait_until


class Period:
    """What the monitor reports about one period of blindness, from before its begin to after its end."""

    def __init__(self, env, d, cause):
        self.env, self.d, self.cause = env, d, cause
        self.topic = "heartwheel/%s/status" % env.node
        self.observer = env.observer(self.topic)
        # What it said of its start may still be on its way.
        wait_until(lambda: [bool(m.json()["blind"]) for m in self.observer.on(self.topic)][-1:] == [d.status()["blind"]],
                   what="presence to say what the API says")
        self.observer.fence()
        self.n, self.lines = len(self.observer.messages), len(d.log())
        self.seconds, self.of_cause = self.metric()

    def metric(self):
        """Blind seconds of all causes (one cause may follow another within a period), and of this cause."""
        m = self.d.metrics()
        return m.get("blind_seconds_total"), m.get("blind_seconds_total", cause=self.cause)

    def said(self):
        return [m.json()["blind"] for m in self.observer.on(self.topic, self.n)]

    def log(self, pattern):
        return re.findall(pattern, self.d.log()[self.lines:])

    def begins(self, timeout=10):
        """The blindness begins, and the API reports it while it lasts."""
        s = wait_until(lambda: (lambda s: s["blind"] and s)(self.d.status()), timeout, "blindness")
        assert s["blind_cause"] == self.cause, s
        assert self.d.get("/readyz").status == 503

    def is_over(self, least, most, lossy=False, timeout=30, beside=()):
        """The blindness is over, and each report gives this length. The loop and a reader may each notice a stall, and a loss
        may be noticed in parts: then several periods are reported, with one cause. `beside`: causes that may occur as well,
        each with its own period."""
        wait_until(lambda: self.log(r"heartbeats arrive again after [\d.]+ s blind \(%s\b" % self.cause), timeout,
                   "a line that says that it is over")
        wait_until(lambda: self.d.status()["blind"] is False, timeout, "it to see, also after the last piece")
        all_begun = self.log(r"blind \((\w+)\): no device is judged")
        ended = self.log(r"heartbeats arrive again after ([\d.]+) s blind \((\w+)(; each device's timeout starts again)?\)")
        assert [e[1] for e in ended] == all_begun and set(all_begun) <= {self.cause, *beside}, self.d.log()[self.lines:]
        begun, ended = [c for c in all_begun if c == self.cause], [e for e in ended if e[1] == self.cause]
        assert len(begun) == 1 or self.cause in ("stall", "loss"), begun
        assert any(e[2] for e in ended) is lossy, ended
        length = sum(float(e[0]) for e in ended)
        # What another cause has seen of it does not count.
        assert least <= length or set(all_begun) != {self.cause}, "%.3f s" % length
        # Causes may overlap: each counts for itself.
        seconds, of_cause = self.metric()
        # Begin and end of a loss may be noticed in the same turn, so that it has no length.
        assert of_cause > self.of_cause or length == 0.0, self.of_cause
        assert of_cause - self.of_cause <= length + 0.01, (of_cause, self.of_cause, length)
        assert seconds - self.seconds >= length - 0.01, (seconds - self.seconds, length)
        wait_until(lambda: len(self.said()) >= 2 * len(all_begun), 5, "presence to say that it sees")
        assert self.said() == [what for c in all_begun for what in (c, False)], self.said()
        in_time(length, most, "blind")


def nobody_died(env, devices=("a", "b")):
    for device in devices:
        assert env.edges(device) == [("online", "heartbeat")], env.edges(device)


def stopped(process, seconds):
    """Stops the process and returns for how long, which is longer on a busy machine."""
    began = time.monotonic()
    process.signal(signal.SIGSTOP)
    pass_time(seconds)
    process.signal(signal.SIGCONT)
    return time.monotonic() - began


# --- each cause


def test_a_lost_link(env):
    d = env.daemon(timeout="2s", monitor=NO_STALL, mqtt={"reconnect_grace": "3s", **NO_STANDSTILL})
    with env.beating(["a", "b"], 0.1):
        env.wait_store("b", "online")
        p = Period(env, d, "link")
        env.raw(client_id="heartwheel-%s-r0" % env.node).die()
        p.begins()
        p.is_over(3.0, 8.0, lossy=True)
        nobody_died(env)
    assert d.get("/readyz").status == 200


@pytest.fixture
def relay(env):
    way = Relay(lambda: env.broker.port)
    yield way
    way.close()


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_connection_of_barriers_that_carries_nothing(env, relay, protocol):
    """Heartbeats still arrive. The monitor is blind within barrier_timeout and opens the connection of the barriers again."""
    d = env.daemon(timeout="2s", monitor=NO_STALL,
                   mqtt={"port": relay.port, "protocol": protocol, "reconnect_grace": "1s", "barrier_timeout": "2s",
                         "barrier_slow": "1900ms"})
    with env.beating(["a", "b"], 0.05):
        env.wait_store("b", "online")
        p = Period(env, d, "barrier")
        assert relay.lose(b"-bar") == 1
        p.begins()
        d.wait_seeing(20)
        assert p.log("the broker does not answer client 'heartwheel-%s-bar'" % env.node)
        assert p.log(r"heartbeats arrive again after [\d.]+ s blind \(barrier; each device's timeout starts again\)")
        nobody_died(env)
        env.beat("c")
        env.wait_store("c", "offline", 15)


def test_a_connection_of_statuses_that_carries_nothing(env, relay):
    """This is no blindness. The publisher notices that no publish is acknowledged, reconnects, and the statuses are then
    published."""
    d = env.daemon(timeout="1s", monitor=NO_STALL, mqtt={"port": relay.port})
    env.beat("a")
    env.wait_store("a", "offline", 15)
    assert relay.lose(b"-pub") == 1
    watcher = env.observer(env.status_topic("b"))
    env.beat("b")
    env.wait_store("b", "offline", 15)
    assert d.status()["blind"] is False
    wait_until(lambda: any(m.json()["online"] is False for m in watcher.on(env.status_topic("b"))), 20, "the status")
    assert "has not acknowledged a message for 10 s" in d.log()


@pytest.mark.parametrize("seconds", [2.0, 7.0])
def test_a_stall_of_the_monitor(env, seconds):
    """Up to a second of the stall may lie before the moment at which the loop had meant to wake."""
    grace = 3
    d = env.daemon(timeout="1h", mqtt={"reconnect_grace": "%ds" % grace, **NO_STANDSTILL})
    p = Period(env, d, "stall")
    lasted = stopped(d, seconds)
    lossy = seconds > 6
    if lossy:
        p.begins()
    p.is_over(lasted - 1.1 + grace * lossy, lasted + 0.7 + grace * lossy, lossy)


def test_a_stall_with_a_beating_fleet(env):
    d = env.daemon(timeout="800ms")
    with env.beating(["a", "b"], 0.1):
        env.wait_store("b", "online")
        before = d.metrics().get("blind_seconds_total", cause="stall")
        for seconds in (0.7, 1.3, 2.4):
            stopped(d, seconds)
            pass_time(1.0)
            nobody_died(env)
        wait_until(lambda: d.metrics().get("blind_seconds_total", cause="stall") - before >= 1.4, what="the stalls to be counted")
    wait_until(lambda: d.status()["blind"] is False, what="the last stall to be over")
    assert len(re.findall(r"blind \(stall\): no device", d.log())) == len(re.findall(r"s blind \(stall\)", d.log())) >= 2


@pytest.mark.parametrize("seconds", [2.0, 7.0])
def test_a_standstill_of_the_broker(env, seconds):
    env.own_broker()
    d = env.daemon(timeout="1500ms", monitor=NO_STALL, mqtt={"reconnect_grace": "1s"})
    with env.beating(["a", "b"], 0.1):
        env.wait_store("b", "online")
        p = Period(env, d, "standstill")
        began = time.monotonic()
        env.broker.signal(signal.SIGSTOP)
        p.begins(2)
        throughout(lambda: d.status()["blind"] is True, seconds - (time.monotonic() - began))
        env.broker.signal(signal.SIGCONT)
        lasted, lossy = time.monotonic() - began, seconds > 5
        p.is_over(lasted - 0.6 + lossy, lasted + 1.5 + 3 * lossy, lossy)
        pass_time(2.0)
        nobody_died(env)
    env.wait_store("a", "offline")


class Gaps:
    """A broker that denies the barriers for a while, so that their numbers have a gap."""

    def __init__(self, env):
        allow = "topic readwrite #\n"
        self.broker = env.own_broker(acl=allow)
        self.lists = {False: allow, True: "topic deny heartwheel/%s/barrier\n" % env.node + allow}

    def deny(self, seconds):
        """Denies the barriers and returns for how long."""
        began = time.monotonic()
        for denied in (True, False):
            (self.broker.dir / "acl").write_text(self.lists[denied])
            self.broker.signal(signal.SIGHUP)
            pass_time(seconds if denied else 0)
        return time.monotonic() - began


def test_messages_that_got_lost_on_the_way(env):
    """Heartbeats arrive without interruption, but the numbers of the barriers have a gap: messages were lost."""
    gaps = Gaps(env)
    d = env.daemon(timeout="1s", monitor=NO_STALL)
    with env.beating(["a", "b"], 0.05):
        env.wait_store("b", "online")
        p = Period(env, d, "loss")
        lasted = gaps.deny(1.0)
        # Where the heartbeats themselves pause, as they do on a busy machine, it looks like a standstill for that long.
        p.is_over(0.5, lasted + 1.5, lossy=True, beside=("standstill",))
        nobody_died(env)
    env.wait_store("a", "offline")


def test_a_receive_buffer_that_filled(env):
    """The reader was stopped while the broker had more messages for it than its buffer holds, so the broker dropped the rest.
    Only the buffer shows this: the barriers are five seconds apart here."""
    env.own_broker()
    d = env.daemon(timeout="1h", monitor={"stall_after": "1m"})
    env.beat("a")
    env.wait_store("a", "online")
    p = Period(env, d, "loss")
    barriers = env.observer("heartwheel/%s/barrier" % env.node)
    wait_until(lambda: barriers.messages, 15, "a barrier", interval=0.01)
    raw = env.raw()
    d.signal(signal.SIGSTOP)
    try:
        env.flood_until_dropped(raw, env.topic("flood"))
    finally:
        d.signal(signal.SIGCONT)
    p.is_over(0.0, 30.0, lossy=True)  # as long as it takes to read what is left
    raw.die()
    assert env.edges("a") == [("online", "heartbeat")]


def gap_of_a_return(env, d):
    """The broker is stopped until the daemon's four connections retry seconds apart from each other, then it returns. Returns
    the seconds between the first and the last connection that reached the broker."""
    env.broker.kill()
    d.wait_lost()
    pass_time(5.0)
    n = len(d.log())
    env.broker.start()
    wait_until(lambda: "connected to 127" in d.log()[n:], 20, "the first connection")
    at = time.monotonic()
    wait_until(lambda: d.log()[n:].count("connected to 127") == 4, 20, "all four connections")
    return time.monotonic() - at


def test_all_connections_come_back(env):
    """The connections are up before the shared subscription is proven again; "up" is reported only after that proof."""
    env.own_broker()
    d = env.daemon(timeout="1h", mqtt={"readers": 2})
    for _ in range(2):
        gap_of_a_return(env, d)
        wait_until(lambda: d.status()["mqtt"] == "up", 10, "the monitor to be connected again")
        d.wait_seeing(10)


def test_connections_come_back_together(env):
    """Each connection has its own back-off, but the first one that reaches the broker makes the others retry at once."""
    env.own_broker()
    d = env.daemon(timeout="1h", mqtt={"readers": 2})
    for _ in range(2):
        in_time(gap_of_a_return(env, d), 0.5, "from the first connection to the last")


# --- blind, and what follows


def test_blind_again_and_again_postpones_no_death_for_ever(env):
    """After a lossy blindness silence counts from its end, but three timeouts of seen silence are enough for a death."""
    gaps = Gaps(env)
    d = env.daemon(timeout="1500ms")
    with env.beating(["b"], 0.05):
        env.beat("a")
        env.wait_store("a", "online")
        before = d.metrics().get("blind_seconds_total")

        def blind_once_more():
            gaps.deny(0.6)
            pass_time(1.0)  # two barriers at least: with one alone each gap would begin where the last one ended
            return env.edges("a")[1:]
        wait_until(blind_once_more, 60, "the death to be told")
        blind_s = d.metrics().get("blind_seconds_total") - before
        assert env.edges("b") == [("online", "heartbeat")]
    assert env.edges("a") == [("online", "heartbeat"), ("offline", "timeout")]
    event = env.events("a")[1]
    silent = (int(event["time_ms"]) - int(event["last_seen_ms"])) / 1000
    assert silent > 4.5, "not postponed at all: %.2f s" % silent
    in_time(silent - blind_s, 4.5 + 2.5, "seen silence until the death was told")


def test_the_keys_of_the_living_outlive_a_long_blindness(env):
    """Refreshes continue while the monitor is blind, so the keys do not expire: their time to live is 10 s here."""
    env.own_broker()
    d = env.daemon(timeout="1s")
    env.beat("a")
    env.wait_store("a", "online")
    env.broker.stop()
    d.wait_lost()
    throughout(lambda: env.redis.exists(env.key("connected", "a")), 13, "device:connected of a living device")
    env.broker.start()
    env.wait_store("a", "offline", 40)


def test_statuses_are_published_again_after_lossy_blindness(env):
    """No connection was lost, but wills and messages of other clients may have replaced retained statuses meanwhile: here by a
    message that this monitor does not receive."""
    d = env.daemon(groups=[("default", {"heartbeat": env.root + "/{id}/heartbeat", "status": env.root + "/{id}/status",
                                        "timeout": "1h"})])
    env.beat("a")
    env.wait_store("a", "online")
    wait_until(lambda: env.retained_status("a") and d.status()["owed"] == 0)
    reconnects = d.metrics().get("reconnects_total", link="publisher")
    env.publisher.publish(env.status_topic("a"), b'{"online":false}', 1, True)
    assert env.retained_status("a") == {"online": False}
    stopped(d, 7.0)
    wait_until(lambda: env.retained_status("a").get("by") == env.node, 20, "the status to be there again")
    assert env.retained_status("a")["online"] is True and len(env.edges("a")) == 1
    assert d.metrics().get("reconnects_total", link="publisher") == reconnects
    assert "stall" in d.log()


def test_a_chart_has_a_short_blindness_as_short_as_it_was(env):
    """A sample of ten seconds says how much of it was blind, and the first sample counts the devices that Redis has."""
    env.own_broker()
    env.own_redis()
    options = {"mqtt": NO_STANDSTILL, "monitor": NO_STALL, "timeout": "1h"}
    d = env.daemon(**options)
    env.beat("a")
    env.wait_store("a", "online")
    d.stop()
    d = env.daemon(**options)
    samples = wait_until(lambda: d.get("/v1/samples").json()["samples"], what="the first sample")
    assert samples[0]["online"] == 1, samples
    period = Period(env, d, "link")
    env.broker.stop()
    d.wait_lost()
    env.broker.start()
    d.wait_seeing()
    length_s = period.metric()[0] - period.seconds
    blind = wait_until(lambda: [s for s in d.get("/v1/samples").json()["samples"] if s["blind_ms"]], 25, "a sample of it")
    assert abs(sum(s["blind_ms"] for s in blind) - length_s * 1000) < 1100, (blind, length_s)
    assert all(s["blind"] and s["blind_from_ms"] + s["blind_ms"] <= s["time_ms"] for s in blind)
