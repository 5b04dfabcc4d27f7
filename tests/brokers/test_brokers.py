# SPDX-License-Identifier: MIT
"""What the monitor promises, held against one broker: the same cases whoever wrote it.

A case with a `way` runs on every way of being connected that the broker serves. One with a `lacking` runs on each that
it does not: there the monitor must be blind and say why, and must not call a single living device offline.
"""
import re
import signal

import pytest

from devices import GONE, Devices
from facts import EACH, PUBLISHERS
from hw_mqtt import RawMqtt
from hw_void import MARGIN, Void
from hw_wait import in_time, pass_time, throughout, wait_until

TIMEOUT = 1.5
# What a tick, a round trip and a busy machine may add to it.
LATE = 2.5
NAMES = ["d%d" % i for i in range(12)]


def monitor(env, way, timeout="%dms" % (TIMEOUT * 1000), grace=0, seeing=True, **mqtt):
    return env.daemon(mqtt={**way.mqtt, "reconnect_grace": grace, **mqtt}, timeout=timeout, seeing=seeing)


def all_online(env, names=NAMES):
    for name in names:
        env.wait_store(name, "online", 20)


def nobody_offline(env, names):
    assert not env.offlines(names), env.offlines(names)


def told_offline(env, devices, names, late=LATE):
    """Each by its timeout: never before, and not long after."""
    for name in names:
        env.wait_store(name, "offline", TIMEOUT + late + 5)
        e = env.offlines([name])[-1]
        delay = int(e["time_ms"]) / 1000 - devices[name].last
        assert e["reason"] == "timeout", e
        assert TIMEOUT - 0.002 <= delay, "%s was told after %.3f s" % (name, delay)
        in_time(delay, TIMEOUT + late, "until %s was told" % name)


def status_becomes(env, name, online, timeout=20):
    """The retained status of a device, for who comes now."""
    wait_until(lambda: (env.retained_status(name) or {}).get("online") is online, timeout,
               "the retained status of %s to be %s" % (name, online))


# --- deaths and comebacks


def test_deaths_and_comebacks(env, way):
    """Some fall silent, some lose their link; all come back."""
    d = monitor(env, way)
    with Devices(env, NAMES, qos=way.qos) as devices:
        all_online(env)
        silent, cut, living = NAMES[:3], NAMES[3:5], NAMES[5:]
        for name in cut:  # their wills would be quicker than their timeouts
            devices[name].leave()
        devices.silence(silent)
        told_offline(env, devices, silent + cut)
        nobody_offline(env, living)
        status_becomes(env, silent[0], False)
        devices.come_back(silent + cut)
        all_online(env)
        status_becomes(env, silent[0], True)
        for name in silent + cut:
            assert env.edges(name) == [("online", "heartbeat"), ("offline", "timeout"), ("online", "heartbeat")]
        for name in living:
            assert env.edges(name) == [("online", "heartbeat")], env.edges(name)
        wait_until(lambda: d.status()["blind"] is False, 10, "the monitor to see")


def test_a_fleet_that_dies_whole(env, way):
    """Nothing at all comes any more, and the link is well: that is no blindness."""
    monitor(env, way)
    with Devices(env, NAMES, qos=way.qos) as devices:
        all_online(env)
        devices.silence(NAMES)
        told_offline(env, devices, NAMES)


# --- wills and goodbyes


def test_a_will(env, way):
    """The broker tells of a cut connection, long before the timeout. Who is there stays."""
    monitor(env, way, timeout="1h")
    with Devices(env, NAMES, qos=way.qos) as devices:
        all_online(env)
        devices.die(NAMES[:3])
        for name in NAMES[:3]:
            env.wait_store(name, "offline", 15)
            assert env.edges(name) == [("online", "heartbeat"), ("offline", "will")]
        nobody_offline(env, NAMES[3:])
        devices.come_back(NAMES[:3])
        all_online(env)
        status_becomes(env, NAMES[0], True)


def test_a_clean_goodbye(env, way):
    """Who says that it goes is offline at once; who only disconnects is left to its timeout: no will is published."""
    monitor(env, way, timeout="1h")
    with Devices(env, NAMES, qos=way.qos) as devices:
        all_online(env)
        says, leaves = devices["d0"], devices["d1"]
        says.silence()
        says.client.publish(env.status_topic("d0"), GONE, 1, True).wait_for_publish(10)
        says.leave()
        leaves.leave()
        env.wait_store("d0", "offline", 10)
        assert env.edges("d0") == [("online", "heartbeat"), ("offline", "will")]
        throughout(lambda: env.in_store("d1") == "online", 1)
        nobody_offline(env, NAMES[1:])


def test_the_monitor_s_own_will(env, way):
    """Killed, it is told to be gone by the broker."""
    d = monitor(env, way)
    observer = env.observer("heartwheel/%s/status" % env.node)
    d.awaited = True
    d.kill()
    wait_until(lambda: any((m.json() or {}).get("online") is False for m in observer.messages), 15, "the monitor's will")


# --- pauses


@pytest.mark.parametrize("seconds", [1.0, 4.0])
def test_a_pause_of_the_broker(env, way, seconds):
    d = monitor(env, way)
    with Devices(env, NAMES, qos=way.qos) as devices:
        all_online(env)
        env.broker.pause()
        try:
            pass_time(seconds)
        finally:
            env.broker.resume()
        after_a_disturbance(env, d, devices)


def test_short_pauses_of_the_broker(env, way):
    """Too short to be noticed as a standstill, and long enough for deadlines to pass while heartbeats lie in the broker's
    sockets: it is the pair of barriers alone that knows."""
    d = monitor(env, way, barrier_slow="2s")
    with Devices(env, NAMES, interval=0.75 * TIMEOUT, qos=way.qos) as devices:
        all_online(env)
        for _ in range(10):
            env.broker.pause()
            try:
                pass_time(0.6)
            finally:
                env.broker.resume()
            pass_time(0.7)
        gap = max(devices[n].gaps.worst() for n in NAMES)
        if gap >= TIMEOUT - MARGIN:
            raise Void("the devices were late themselves, by a gap of %.3f s" % gap)
        throughout(lambda: not env.offlines(NAMES), TIMEOUT, "nobody to be called offline")
        after_a_disturbance(env, d, devices)


def test_a_backlog_in_the_broker_s_sockets(env, way):
    """Each device has ninety heartbeats lying there when the broker goes on; barriers may overtake most of them."""
    d = monitor(env, way)
    with Devices(env, NAMES, qos=way.qos) as devices:
        all_online(env)
        env.broker.pause()
        try:
            for name in NAMES:
                for _ in range(EACH):
                    devices[name].client.publish(env.topic(name), b"", 0)
            pass_time(2 * TIMEOUT)
        finally:
            env.broker.resume()
        after_a_disturbance(env, d, devices)


@pytest.mark.parametrize("seconds", [1.0, 4.0])
def test_a_pause_of_the_monitor(env, way, seconds):
    d = monitor(env, way)
    with Devices(env, NAMES, qos=way.qos) as devices:
        all_online(env)
        paused(d, seconds)
        after_a_disturbance(env, d, devices)


def test_a_pause_longer_than_the_devices_keepalive(env, way):
    """The broker throws them out when it goes on, and publishes their wills, or they go of themselves; they come back."""
    d = monitor(env, way, grace="3s")
    with Devices(env, NAMES, qos=way.qos, keepalive=2) as devices:
        all_online(env)
        env.broker.pause()
        try:
            pass_time(6)
        finally:
            env.broker.resume()
        wait_until(devices.all_connected, 30, "the devices to be connected again")
        after_a_disturbance(env, d, devices)


def paused(d, seconds):
    d.signal(signal.SIGSTOP)
    try:
        pass_time(seconds)
    finally:
        d.signal(signal.SIGCONT)


def after_a_disturbance(env, d, devices, living=NAMES):
    """Nobody who lives has been called offline; the monitor sees again, and finds a death as before."""
    dying, living = living[:2], living[2:]
    wait_until(lambda: d.status()["blind"] is False, 30, "the monitor to see again")
    throughout(lambda: not env.offlines(dying + living), 2 * TIMEOUT, "nobody to be called offline")
    wait_until(lambda: d.status()["blind"] is False, 30, "the monitor to see again")
    devices.silence(dying)
    told_offline(env, devices, dying, late=2 * TIMEOUT + 6)
    nobody_offline(env, living)
    for name in living:
        assert env.edges(name) == [("online", "heartbeat")], env.edges(name)


# --- backlogs


def test_a_backlog_of_3600_heartbeats(env, way):
    """They wait for a monitor that stood still for longer than the timeout; those who sent them live on, and none of
    them is judged before its own have been read, or what was lost is known."""
    d = monitor(env, way, grace="2s")
    names = ["b%d" % i for i in range(PUBLISHERS)]
    with Devices(env, names, interval=0.5, qos=way.qos):
        all_online(env, names)
        d.signal(signal.SIGSTOP)
        try:
            burst(env, names)
            pass_time(2 * TIMEOUT)
        finally:
            d.signal(signal.SIGCONT)
        wait_until(lambda: d.status()["blind"] is False, 30, "the monitor to see again")
        throughout(lambda: not env.offlines(names), 2 * TIMEOUT, "nobody to be called offline")


def burst(env, names):
    """So many heartbeats of each device at once, from a connection of its own beside it."""
    for name in names:
        c = RawMqtt(env.broker.port, patience=20, **env.broker.credentials)
        c.publish(*[(env.topic(name), b"")] * EACH)
        c.goodbye()


@pytest.mark.parametrize("qos", [0, 1])
def test_a_barrier_behind_3600_messages(env, known, qos):
    """Where a broker brings the barrier that was published behind a backlog, none of the backlog comes after it. If it
    does not hold, or loses the barrier, the table says so: what is lost makes the monitor blind, not a device offline."""
    before, behind, lost = known["order"][str(qos)]
    assert before + (behind or 0) + lost == PUBLISHERS * EACH
    assert not behind, "%d of the backlog came after the barrier: a device may be judged before it was heard" % behind
    assert behind is None or not lost, "%d lost without a sign: the barrier came" % lost


# --- restarts


def test_a_restart_of_the_broker(env, way, known):
    """All wills may be published, the retained messages may be gone, everybody has to connect again: nobody is called
    offline who comes back, and who does not is found."""
    d = monitor(env, way, grace="4s")
    observer = env.observer()
    with Devices(env, NAMES, qos=way.qos) as devices:
        all_online(env)
        n = len(observer.messages)
        env.broker.stop()
        wait_until(lambda: not observer.client.is_connected(), 30, "the observer to have read what there was")
        known["wills_at_stop"] = any(m.payload == GONE for m in observer.messages[n:])
        devices.silence(["d0"])
        env.broker.start()
        wait_until(devices.all_connected, 30, "the devices to be connected again")
        wait_until(lambda: d.status()["blind"] is False, 70, "the monitor to see again")
        env.wait_store("d0", "offline", 3 * TIMEOUT + 8)
        nobody_offline(env, NAMES[1:])
        after_a_disturbance(env, d, devices, NAMES[1:])
        for name in ("d0", "d1", "d5"):
            status_becomes(env, name, name == "d5")


def test_restarts_of_the_broker_in_a_row(env, plainest):
    """Each time the monitor is back soon: a broker that let it in before is no broker that refuses it."""
    d = monitor(env, plainest, grace="4s")
    with Devices(env, NAMES) as devices:
        all_online(env)
        for _ in range(5):
            env.broker.restart()
            wait_until(lambda: d.status()["mqtt"] == "up", 5, "the monitor to be connected again")
        wait_until(devices.all_connected, 30, "the devices to be connected again")
        after_a_disturbance(env, d, devices)


def test_a_restart_of_the_monitor(env, way):
    """Who dies while it is away is found within three timeouts, and nobody else."""
    d = monitor(env, way)
    with Devices(env, NAMES, qos=way.qos) as devices:
        all_online(env)
        d.stop()
        devices.silence(["d0"])
        pass_time(1)
        d.start()
        env.wait_store("d0", "offline", 3 * TIMEOUT + LATE)
        throughout(lambda: not env.offlines(NAMES[1:]), 2 * TIMEOUT, "nobody to be called offline")


# --- what a broker lacks


LACKING_TIMEOUT = 1.0  # seconds
CAUSES = {"shared subscriptions": ("link", r"(?i)readers|shared"), "MQTT 5": ("link", r"3\.1\.1")}


def test_what_is_lacking_is_blindness(env, lacking, round_):
    """Devices that an earlier run of the monitor knew to be online beat all the time. The monitor is then configured in
    a way that this broker cannot serve: blind with its cause and a line that says what to do, at once, after a restart
    of its own, and after one of the broker; and nobody is called offline."""
    plain = {"protocol": "3.1.1", "qos": 0, "readers": 1, "reconnect_grace": 0}
    with Devices(env, NAMES, qos=lacking.qos) as devices:
        before = env.daemon(mqtt=plain, timeout="%ds" % LACKING_TIMEOUT)
        all_online(env)
        before.stop()
        d = monitor(env, lacking, timeout="%ds" % LACKING_TIMEOUT, seeing=False)
        stays_blind(env, d, lacking)
        d.stop()
        d.start(seeing=False)
        stays_blind(env, d, lacking)
        env.broker.restart()
        wait_until(devices.all_connected, 30, "the devices to be connected again")
        stays_blind(env, d, lacking)


def stays_blind(env, d, lacking):
    cause, line = CAUSES[lacking.lacks[0]]

    def blind():
        s = d.status()
        assert s["blind"] is True, "it says that it sees: %s" % s
        return True
    throughout(blind, 3 * LACKING_TIMEOUT + 0.5)
    assert d.status()["blind_cause"] == cause, d.status()
    assert d.get("/readyz").status == 503
    nobody_offline(env, NAMES)
    wait_until(lambda: re.search(line, d.log()), 5, "a line in the log that says what to do (%s)" % line)
