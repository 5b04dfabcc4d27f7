# SPDX-License-Identifier: MIT
"""Which ids name a device, and what happens to the others."""
import pytest

from hw_env import short
from hw_wait import pass_time, wait_until


def refused(d):
    return d.metrics().refused()


STRANGE = ["a", "255" + "x" * 252, "é" * 127 + "y", "😀" * 63 + "abc", " ", " x ", "a b", "%41", "%", "a%2Fb", "a?b=c&d", "a;b",
           "'\"\\", "{id}", "..", ".", "*", "[a]", "a:b", ":", "connected:x", "a\u00adb", "\u202e", "$SYS", "-", "--json",
           "null", "ﷺ", "a\u0300", "<b>", "0", "~", "`id`", "$(id)", "events"]


@pytest.mark.parametrize("device", STRANGE, ids=short)
def test_strange_ids_that_are_fine(shared_daemon, device):
    """Up to 255 bytes of valid UTF-8: every output has exactly this id."""
    env, d = shared_daemon.env, shared_daemon.d
    assert len(device.encode()) <= 255
    env.beat(device, {"battery": 1})
    wait_until(lambda: d.device(device), what="%r to be known" % device)
    assert d.device(device)["id"] == device
    env.wait_store(device, "online")
    assert env.redis.get(env.key("connected", device)) == device
    assert env.edges(device) == [("online", "heartbeat")]
    wait_until(lambda: env.retained_status(device))
    env.beat(device, {"online": False})
    env.wait_store(device, "offline")
    assert env.redis.zscore(env.key("offline"), device) is not None
    assert d.forget(device).status == 204
    env.wait_store(device, None)
    wait_until(lambda: not env.retained_status(device))


@pytest.mark.parametrize("device", ["x" * 256, "x" * 1000, "é" * 128, "😀" * 64, "x" * 30_000, ""], ids=short)
def test_ids_that_are_refused_and_counted(shared_daemon, device):
    env, d = shared_daemon.env, shared_daemon.d
    before = refused(d), d.status()["devices"], d.status()["heartbeats_total"]
    env.beat(device, b"1")
    wait_until(lambda: refused(d) == before[0] + 1, what="%r to be refused" % device[:20])
    assert (d.status()["devices"], d.status()["heartbeats_total"]) == before[1:]
    assert not any(e["id"] == device for e in env.events())


@pytest.mark.parametrize("device", [b"a\x01b", b"\x1f", b"a\x7fb", b"a\xc2\x80b", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80",
                                    b"\xc0\xaf", b"a\x00b", b"\xf4\x90\x80\x80", b"a+b", b"a#"], ids=short)
def test_ids_that_the_broker_itself_refuses(shared_daemon, device):
    """A control character, a wildcard or invalid UTF-8 in a topic: mosquitto disconnects the sender. If mosquitto lets one
    pass, the monitor refuses and counts it; in either case it makes no device."""
    env, d = shared_daemon.env, shared_daemon.d
    before = refused(d), d.status()["devices"]
    raw = env.raw()
    raw.publish((env.root.encode() + b"/" + device + b"/heartbeat", b"1"))
    wait_until(lambda: raw.is_closed() or refused(d) > before[0], 5, "somebody to refuse %r" % device)
    assert d.status()["devices"] == before[1]
    raw.die()


def test_refusals_are_named_and_logged_once(env):
    """1,000 refusals of one kind are 1,000 in the metrics and one line in the log."""
    d = env.daemon(monitor={"log_level": "info"})
    for k in range(1000):
        env.beat("y" * 256 + str(k))
    env.settle(d)
    assert refused(d) == 1000
    kinds = {k for k in d.metrics().labels("refused_total", "kind") if d.metrics().get("refused_total", kind=k)}
    assert len(kinds - {"monitor"}) == 1, kinds

    def lines():
        return [l for l in d.log().splitlines() if "y" * 20 in l or "refus" in l.lower()]
    wait_until(lines, 5, "the log to name it")
    for k in range(300):
        env.beat("y" * 256 + str(k))
    pass_time(2)
    assert len(lines()) == 1, "at most once per 10 s: %s" % lines()[:5]
    lines = lines()
    assert all(len(l) < 1000 for l in lines)


def test_devices_beyond_max_devices(env):
    """1,000 ids too many are refused and counted; the known devices stay, and forgetting one makes room."""
    d = env.daemon(timeout="3s", monitor={"max_devices": 100, "log_level": "info"})
    observer = env.observer()
    known = ["k%d" % i for i in range(100)]
    for i in known:
        env.beat(i)
    wait_until(lambda: d.status()["devices"] == 100)
    before = refused(d)
    with env.beating(known[:50], 0.3):
        for i in range(1000):
            env.beat("beyond%d" % i)
        for i in known[:50]:
            env.beat(i)
        wait_until(lambda: refused(d) == before + 1000, what="1,000 refusals")
        assert d.status()["devices"] == 100
        assert d.device("beyond0") is None and not env.hash("beyond999")
        for i in known[50:]:
            env.wait_status(observer, i, False)
        assert all(d.state(i) == "online" for i in known[:50])
        assert not any(b'"online":false' in m.payload for i in known[:50] for m in observer.on(env.status_topic(i)))
        assert refused(d) == before + 1000
        # The log names the limit, and not a thousand times.
        lines = [l for l in d.log().splitlines() if "max_devices" in l]
        assert len(lines) == 1, lines[:5]
        # A goodbye of an unknown one takes no room either.
        env.beat("beyond-bye", {"online": False})
        wait_until(lambda: refused(d) == before + 1001)
        assert d.forget(known[99]).status == 204
        wait_until(lambda: env.in_store(known[99]) is None)

        def room():
            env.beat("late")
            return d.state("late") == "online"
        wait_until(room, 5, "room for a device where one was forgotten", interval=0.05)
