# SPDX-License-Identifier: MIT
"""The wall clock steps by a day, in both directions: no transition and no wrong age follows."""
import os
import signal
import sys
import time

import pytest

from hw_build import SRC
from hw_wait import in_time, pass_time, throughout, wait_until

sys.path.append(os.path.join(SRC, "tests", "system", "faults"))
from shim import Shim  # noqa: E402
from test_nodes_mirror import node  # noqa: E402

DAY = 86400


@pytest.fixture
def shim(env):
    return Shim(env.own_dir("shim"))


def online_ages(d, names, offset):
    """The age of each device's last heartbeat by the API, computed with the daemon's own wall clock."""
    now = time.time() + offset
    return [now - d.device(n)["last_seen_ms"] / 1000 for n in names]


def test_steps_of_a_day(env, shim):
    names = ["a", "b", "c"]
    # A busy machine makes no stall or standstill of this length; a clock that went wrong by a day would.
    d = env.daemon(timeout="1s", env=shim.env, monitor={"stall_after": "60s"},
                   mqtt={"barrier_slow": "60s", "barrier_timeout": "60s"})
    assert shim.loaded
    with env.beating(names, 0.1):
        for n in names:
            env.wait_store(n, "online")
        events = env.events()
        for step in (DAY, -DAY, -DAY, DAY):
            shim.step_wall(step)
            throughout(lambda: env.events() == events, 2.5, "no event because of a step to %d s" % step)
            assert all(-0.2 <= age <= 5 for age in online_ages(d, names, step)), online_ages(d, names, step)
            assert d.status()["blind"] is False
        assert d.metrics().get("blind_seconds_total", cause="stall") == 0
    for n in names:
        env.wait_store(n, "offline")
    for e in env.events()[3:]:
        silent = int(e["time_ms"]) - int(e["last_seen_ms"])
        assert 900 <= silent < DAY * 500, e
        in_time(silent / 1000, 5, "until a death was told")


@pytest.mark.parametrize("step", [DAY, -DAY])
def test_a_death_across_a_step(env, shim, step):
    """The death is found in time and reports a silence of one timeout, and seq grows although the clock went back."""
    observer = env.observer()
    env.daemon(timeout="1500ms", env=shim.env)
    at = env.beat("a")
    env.wait_store("a", "online")
    seq = int(env.hash("a")["seq"])
    pass_time(0.5)
    shim.step_wall(step)
    m = env.wait_status(observer, "a", False)
    assert 1.5 <= m.at - at, m.at - at
    env.wait_store("a", "offline")
    event = env.events("a")[1]
    silent = int(event["time_ms"]) - int(event["last_seen_ms"])
    assert 1400 <= silent < DAY * 500, event
    assert int(event["seq"]) > seq
    # It comes back in yet another time.
    shim.step_wall(-2 * step)
    env.beat("a")
    env.wait_store("a", "online")
    assert env.edges("a") == [("online", "heartbeat"), ("offline", "timeout"), ("online", "heartbeat")]
    assert int(env.hash("a")["seq"]) > int(event["seq"])
    in_time(max(m.at - at, silent / 1000), 5, "until the death was told")


@pytest.mark.parametrize("step", [DAY, -DAY])
def test_a_step_while_the_monitor_was_away(env, shim, step):
    """At a start only the wall clock gives the age, so the age is no evidence of silence."""
    d = env.daemon(timeout="2s", env=shim.env)
    env.beat("a")
    env.wait_store("a", "online")
    pass_time(1.2)  # the mark says until when it saw
    d.signal(signal.SIGKILL)
    d.wait()
    shim.step_wall(step)
    d.start(env=shim.env)
    began = time.monotonic()
    with env.beating(["a"], 0.2):
        throughout(lambda: env.edges("a") == [("online", "heartbeat")], 3.0)
    wait_until(lambda: len(env.edges("a")) == 2)
    assert time.monotonic() - began >= 1.5


def test_a_machine_that_was_suspended(env, shim):
    """The suspension is recognised by the clock that continues during it. Messages may have been lost, so silence counts from
    the wake-up, and the suspension is reported."""
    d = env.daemon(timeout="5s", env=shim.env)
    at = env.beat("x")
    env.wait_store("x", "online")
    pass_time(2)
    shim.suspend(60)
    wait_until(lambda: "the machine was suspended for 60.0 s" in d.log(), what="the suspension to be noticed")
    throughout(lambda: env.edges("x") == [("online", "heartbeat")], 6 - (time.monotonic() - at), "silence to count anew")
    env.wait_store("x", "offline")
    n = d.log().count("was suspended")
    pass_time(1.5)
    assert d.log().count("was suspended") == n == 1


# --- forgetting -------------------------------------------------------------------------------------------------------

FOREVER = 40 * DAY  # more than forget_after


def kill_quietly(d):
    d.signal(signal.SIGKILL)
    d.wait()


def die(env, names):
    """Devices that beat more than once, since forget_after applies only to these, and then go offline."""
    with env.beating(names, 0.1):
        for n in names:
            env.wait_store(n, "online")
        pass_time(0.2)
    for n in names:
        env.wait_store(n, "offline")


def forgets_none(env, d, names, seconds):
    throughout(lambda: not [e for e in env.events() if e["state"] == "forgotten"], seconds, "no device to be forgotten")
    assert {n: d.state(n) for n in names} == dict.fromkeys(names, "offline")


@pytest.mark.parametrize("died, restarted", [(0, FOREVER), (-FOREVER, 0)], ids=["ahead-at-the-restart", "behind-before-it"])
def test_a_wrong_clock_forgets_no_device(env, shim, died, restarted):
    names = ["d%d" % k for k in range(30)]
    shim.step_wall(died)
    d = env.daemon(timeout="500ms", env=shim.env)
    die(env, names)
    kill_quietly(d)
    shim.step_wall(restarted)
    d.start(env=shim.env)
    forgets_none(env, d, names, 3)


@pytest.mark.parametrize("first, second", [(0, FOREVER), (-FOREVER, 0)], ids=["one-ahead", "one-behind"])
def test_a_wrong_clock_of_a_node_forgets_no_device(env, shim, first, second):
    """One of two nodes has a wrong clock: what the other node wrote is neither old nor in the future to it."""
    names = ["d%d" % k for k in range(30)]
    shim.step_wall(first)
    a = node(env, env.node + "-a", timeout="500ms").start(env=shim.env)
    die(env, names)
    other = Shim(env.own_dir("other"))
    other.step_wall(second)
    b = node(env, env.node + "-b", timeout="500ms").start(env=other.env)
    wait_until(lambda: len(b.get("/v1/nodes").json()["nodes"]) == 2, what="both nodes to be members")
    forgets_none(env, b, names, 4)
    # The partitions of a node that is killed are taken over with their devices.
    kill_quietly(a)
    wait_until(lambda: {d["node"] for d in b.get("/v1/devices?limit=1000").json()["devices"]} == {b.node},
               what="the other node to own all")
    forgets_none(env, b, names, 3)


def test_forgetting_goes_on_across_restarts(env, shim):
    """Only the time in which a monitor ran counts, whatever the wall clock shows."""
    conf = {"forget_after": "8s", "forget_once_after": "8s"}
    d = env.daemon(timeout="500ms", env=shim.env, monitor=conf)
    die(env, ["a"])
    went = time.monotonic()
    wait_until(lambda: env.redis.get(env.key("watched")), what="the time watched to be written")
    watched = int(env.redis.get(env.key("watched")).split()[0])
    pass_time(4)
    at, seq = env.hash("a")["watched"].split()
    assert seq == env.hash("a")["seq"] and abs(int(at) - watched) < 3000
    kill_quietly(d)
    pass_time(2)
    d.start(env=shim.env)
    away = time.monotonic() - went - 4
    wait_until(lambda: [e["reason"] for e in env.events("a") if e["state"] == "forgotten"] == ["forget_after"])
    took = time.monotonic() - went
    assert took >= 8 + 2 - 0.2, took  # the time without a monitor is not counted
    env.beat("a")
    env.wait_store("a", "online")
    assert "watched" not in env.hash("a")
    in_time(took - away, 8 + 3, "until it was forgotten")


def test_a_step_is_logged(env, shim):
    d = env.daemon(timeout="1s", env=shim.env)
    shim.step_wall(DAY)
    wait_until(lambda: "the wall clock was set forward by 86400" in d.log(), what="the step to be logged")
    wait_until(lambda: "ahead of Redis' clock" in d.log(), what="the difference to be logged")
    shim.step_wall(0)
    wait_until(lambda: "the wall clock was set back by 86400" in d.log(), what="the step to be logged")
    wait_until(lambda: "agrees with Redis' clock again" in d.log(), what="the end of the difference to be logged")


def test_a_step_makes_no_heartbeat_too_old(env, shim):
    """max_age uses the clock as it was before the step until Redis' clock agrees with the new time."""
    d = env.daemon(timeout="1500ms", group={"max_age": "60s"}, env=shim.env)
    env.beat("a", {"time": int(time.time())})
    env.wait_store("a", "online")

    def beat_on():
        env.beat("a", {"time": int(time.time())})
        return d.state("a") == "online"
    for step in (3600, 0, -3600, 0):
        shim.step_wall(step)
        throughout(beat_on, 3, "heartbeats to count after a step to %d s" % step)
    assert "no heartbeat is refused as too old (max_age), by this clock alone" in d.log()
    assert env.edges("a") == [("online", "heartbeat")]
    env.beat("old", {"time": int(time.time()) - 65})
    wait_until(lambda: d.metrics().get("refused_total", kind="stale") == 1, what="an old heartbeat to be refused")
    assert d.device("old") is None
