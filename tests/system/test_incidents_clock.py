# SPDX-License-Identifier: MIT
"""heartwheel-alert on a machine whose clock is wrong by days, while Redis and the monitors have the right time."""
import os
import sys

import pytest

from hw_alert import Alert, Inbox, begin_incident, see, set_online
from hw_build import SRC
from hw_wait import throughout, wait_until

sys.path.append(os.path.join(SRC, "tests", "system", "faults"))
from shim import Shim  # noqa: E402

DAY = 86400


@pytest.mark.parametrize("days", [-3, 40])
def test_a_clock_that_is_wrong_by_days(env, days):
    """One message about each begin and each end, no false blindness, and the clock is named."""
    inbox, shim = Inbox(env), Shim(env.own_dir("shim"))
    a = Alert(env, receivers={"ops": inbox.receiver()}, blind_after="4s")
    see(env)
    a.start()
    set_online(env, "before", False)
    inbox.wait(("opened", "before"))
    a.stop()

    shim.step_wall(days * DAY)
    a.start(env=shim.env)
    assert shim.loaded
    set_online(env, "while", False)
    news = [("opened", "before"), ("opened", "while")]
    inbox.wait(*news)
    throughout(lambda: see(env) or a.ready(), 6, "ready")
    assert {i["kind"] for i in a.incidents()} == {"device"}
    assert abs(a.json("/v1/status")["clock_ahead_ms"] - days * DAY * 1000) < 60000
    assert a.log().count("s %s Redis' clock" % ("behind" if days < 0 else "ahead of")) == 1
    set_online(env, "before", True)
    news.append(("closed", "before"))
    inbox.wait(*news)

    shim.step_wall(0)  # the clock is right again, also for the next run
    wait_until(lambda: "agrees with Redis' clock again" in a.log(), what="the clocks to agree")
    set_online(env, "after", False)
    news.append(("opened", "after"))
    inbox.wait(*news)
    a.stop()
    a.start()
    assert "clock_ahead_ms" not in a.json("/v1/status")
    for device in ("while", "after"):
        set_online(env, device, True)
        news.append(("closed", device))
    inbox.wait(*news)
    assert sum(a.metrics().get("alert_unusable_total", kind=k) for k in ("incident", "entry", "offset")) == 0


def test_incidents_of_a_wrong_clock(env):
    """What a run wrote while its clock and Redis' clock were ahead is still its own: no second opening, and one end."""
    inbox, a = begin_incident(env)
    [i] = a.incidents()
    a.stop()
    r, key, ahead = env.redis, env.key("incident", i["id"]), 40 * DAY * 1000
    for name, value in r.hgetall(key).items():
        if name.endswith("_ms") and int(value):
            r.hset(key, name, int(value) + ahead)
    last, count, at, *rest = r.hget(key, "to:ops").split()
    r.hset(key, "to:ops", " ".join([last, count, str(int(at) + ahead), *rest]))
    for device, value in r.hgetall(key + ":members").items():
        cls, since, *rest = value.split()
        r.hset(key + ":members", device, " ".join([cls, str(int(since) + ahead), *rest]))
    a.start()
    a.wait_open(1)
    assert a.incidents()[0]["id"] == i["id"]
    set_online(env, "pump-7", True)
    inbox.wait(("opened", "pump-7"), ("closed", "pump-7"))
    assert a.metrics().get("alert_unusable_total", kind="incident") == 0
