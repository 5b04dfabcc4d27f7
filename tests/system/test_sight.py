# SPDX-License-Identifier: MIT
"""The stream device:sight: when the monitor saw, was blind, was stopped or was killed."""
import signal

from hw_wait import in_time, now_ms, pass_time, wait_until


def told(env, state=None, start=0):
    """The entries, oldest first, each with its times as numbers."""
    out = []
    for _, e in env.redis.xrange(env.key("sight"))[start:]:
        e["from_ms"], e["to_ms"] = int(e["from_ms"]), int(e["to_ms"])
        assert set(e) == {"node", "state", "cause", "from_ms", "to_ms"}, e
        assert e["node"] == env.node and e["from_ms"] <= e["to_ms"] <= now_ms(), e
        out.append(e)
    return [e for e in out if state in (None, e["state"])]


def wait_told(env, state, start=0, what=lambda e: True):
    wait_until(lambda: any(what(e) for e in told(env, state, start)), what="device:sight to say %s" % state)
    return next(e for e in told(env, state, start) if what(e))


def test_seeing_grows_blindness_has_its_cause_and_a_stop_is_told(env):
    before = now_ms()
    env.own_broker()
    d = env.daemon()
    start = wait_told(env, "blind")
    assert start["cause"] == "link" and before <= start["from_ms"], "the start is blind, until it hears"
    wait_told(env, "seeing", what=lambda e: e["to_ms"] - e["from_ms"] >= 3000)
    grown = told(env, "seeing")
    assert len({e["from_ms"] for e in grown}) == 1 and len(grown) >= 2, grown
    assert grown[0]["from_ms"] == start["to_ms"], "no time between two periods"
    env.broker.stop()
    d.wait_lost()
    env.broker.start()
    d.wait_seeing()
    blind = wait_told(env, "blind", what=lambda e: e["from_ms"] > start["from_ms"])
    assert blind["cause"] in ("link", "standstill", "barrier"), blind
    last = told(env, "seeing")
    assert any(e["from_ms"] == grown[0]["from_ms"] and e["to_ms"] == blind["from_ms"] for e in last), (last, blind)
    d.stop()
    end = told(env)[-2:]
    assert [e["state"] for e in end] == ["seeing", "stopped"], end
    assert end[0]["from_ms"] == blind["to_ms"] and end[0]["to_ms"] == end[1]["from_ms"] == end[1]["to_ms"], (end, blind)
    assert env.redis.xinfo_stream(env.key("sight"))["length"] < 40


def test_down_is_from_the_mark_to_the_next_start(env):
    d = env.daemon()
    wait_until(lambda: env.redis.get(env.key("monitor", env.node)), what="the mark")
    assert not told(env, "down"), "the first of its name has no predecessor"
    wait_told(env, "seeing")
    d.signal(signal.SIGKILL)
    d.wait()
    mark, n = int(env.redis.get(env.key("monitor", env.node)).split()[1]), len(told(env))
    pass_time(0.3)
    began = now_ms()
    d.start()
    down = wait_told(env, "down", n)
    assert down["from_ms"] == mark and began <= down["to_ms"], (down, mark, began)
    blind = wait_told(env, "blind", n)
    assert len(told(env, "down")) == 1
    in_time(abs(blind["from_ms"] - down["to_ms"]) / 1000, 0.05, (blind, down))


def test_what_it_saw_while_redis_was_away_is_told_when_it_is_back(env):
    env.own_redis(options=("--appendonly", "yes"))
    env.own_broker()
    d = env.daemon()
    wait_told(env, "seeing")
    n, up = len(told(env)), d.status()["redis"]
    env.redis_server.stop()
    wait_until(lambda: d.status()["redis"] != up, what="the loss of Redis to be noticed")
    lost = now_ms()
    for _ in range(2):
        env.broker.stop()
        d.wait_lost()
        env.broker.start()
        d.wait_seeing()
    back = now_ms()
    env.redis_server.start()
    wait_until(lambda: len([e for e in told(env, "blind", n) if lost - 1000 <= e["from_ms"] and e["to_ms"] <= back]) >= 2,
               what="both blind periods")
    periods = sorted({(e["from_ms"], e["state"]): e for e in told(env, start=n)}.values(), key=lambda e: e["from_ms"])
    assert [e["state"] for e in periods][:3] == ["seeing", "blind", "seeing"], periods
    for a, b in zip(periods, periods[1:]):
        assert a["to_ms"] == b["from_ms"], periods
