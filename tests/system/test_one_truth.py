# SPDX-License-Identifier: MIT
"""The API reports what the daemon itself knows about the fleet: also while Redis is away, and while the daemon cannot hear the
fleet."""
import json
import signal

import pytest

from hw_wait import NotWithin, wait_until, wait_within
from test_ctl import Watch


def die(env, d, device):
    """Sends a goodbye, and repeats it if it is void: a standstill of the machine makes it so."""
    def gone():
        env.beat(device, {"online": False})
        return wait_for(lambda: d.state(device) == "offline", 2)
    wait_until(gone, 20)


def wait_for(predicate, seconds):
    try:
        return wait_within(predicate, seconds)
    except NotWithin:
        return False


def transitions(d, device=None):
    path = d.path_of(device) + "/events" if device else "/v1/transitions"
    return [(t["id"], t["state"], t["event_id"] is not None) for t in d.get(path).json()["transitions"]]


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_redis_away(env, how):
    """A death meanwhile is reported at once and only once, and has its offset in the stream when Redis is back."""
    env.own_redis()
    d = env.daemon(timeout="1h")
    for name in ("a", "b"):
        env.beat(name)
    wait_until(lambda: d.status()["devices"] == 2 and d.status()["owed"] == 0)
    people, programs = Watch(d), Watch(d, "--json")
    wait_until(lambda: d.metrics().get("event_clients") == 2)
    if how == "killed":
        env.redis_server.kill()
    else:
        env.redis_server.signal(signal.SIGSTOP)
    die(env, d, "a")
    wait_until(lambda: d.state("a") == "offline")
    assert transitions(d)[0] == ("a", "offline", False) == transitions(d, "a")[0]
    wait_until(lambda: [l for l in people.lines if "  a  " in l and " offline " in l], 10, "the line of who died")
    wait_until(lambda: programs.lines, 10)
    late = Watch(d)  # who comes now hears of what is to come
    wait_until(lambda: d.metrics().get("event_clients") == 3)
    die(env, d, "b")
    wait_until(lambda: [l for l in late.lines if "  b  " in l], 10, "another one")
    if how == "killed":
        env.redis_server.start()
    else:
        env.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: d.status()["owed"] == 0, 30)
    wait_until(lambda: [t[2] for t in transitions(d)] == [True] * 4, 10, "all to have their place")
    env.beat("a")
    for w in (people, programs, late):
        wait_until(lambda: [l for l in w.lines if "online" in l], 10)
        w.stop()
    assert [t[:2] for t in transitions(d)][:3] == [("a", "online"), ("b", "offline"), ("a", "offline")]
    assert len(transitions(d)) == 5
    told = [(x["id"], x["state"]) for x in map(json.loads, programs.lines)]
    assert told == [("a", "offline"), ("b", "offline"), ("a", "online")]
    assert len([l for l in people.lines if "line  " in l]) == 3
    assert len([l for l in late.lines if "  b  " in l]) == 1


def test_blindness_is_told(env):
    env.own_broker()
    d = env.daemon(timeout="1h", mqtt={"reconnect_grace": "2s"})
    w = Watch(d)
    wait_until(lambda: d.metrics().get("event_clients") == 1)
    env.broker.stop()
    wait_until(lambda: [l for l in w.lines if " blind " in l and "cannot hear devices" in l], 15, "the line in watch")
    out = d.ctl("status").stdout
    assert "cannot hear devices" in out and "no device is judged" in out, out
    env.broker.start()
    wait_until(lambda: d.status()["judges_in_ms"], 15)
    s = d.status()
    assert 0 < s["judges_in_ms"] <= 2000 and s["starting"] is False
    wait_until(lambda: [l for l in w.lines if " watching " in l and "heartbeats arrive again" in l], 15)
    w.stop()


def test_a_start(env):
    d = env.daemon(timeout="1h", mqtt={"reconnect_grace": "1m"}, seeing=False)
    wait_until(lambda: d.status()["judges_in_ms"])
    s = d.status()
    assert s["starting"] is True and 50000 < s["judges_in_ms"] <= 60000 and s["broker_port"] == env.broker.port
    assert "starting: devices have" in d.ctl("status").stdout
    w = Watch(d)  # who comes while it lasts
    wait_until(lambda: w.lines and " blind " in w.lines[0])
    w.stop()


def test_a_restart_says_that_it_remembers_a_part(env):
    """After a start the daemon has the stream's last two hundred entries: it does not present them as all."""
    d = env.daemon()
    for name in "a", "b", "c":
        env.beat(name)
    wait_until(lambda: d.status()["offline"] == 3 and d.status()["owed"] == 0)
    for path, limit, complete in (("/v1/transitions", 6, True), ("/v1/transitions", 1000, True), ("/v1/transitions", 5, False),
                                  (d.path_of("a") + "/events", 2, True), (d.path_of("a") + "/events", 1, False)):
        a = d.get("%s?limit=%d" % (path, limit)).json()
        assert a["complete"] is complete, (path, limit, a)
    d.stop()
    d.start()
    wait_until(lambda: len(d.get("/v1/transitions?limit=1000").json()["transitions"]) == 6)
    assert d.get("/v1/transitions?limit=1000").json()["complete"] is True  # so few are all read again
    for i in range(150):
        env.beat("x%d" % i)
    wait_until(lambda: d.status()["offline"] == 153 and d.status()["owed"] == 0)
    assert d.get("/v1/transitions?limit=1000").json()["complete"] is True
    d.stop()
    d.start()
    wait_until(lambda: d.get("/v1/transitions?limit=1000").json()["transitions"])
    a = d.get("/v1/transitions?limit=1000").json()
    assert len(a["transitions"]) < 306 and a["complete"] is False
    assert d.get(d.path_of("a") + "/events").json()["complete"] is False
