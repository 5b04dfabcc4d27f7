# SPDX-License-Identifier: MIT
"""Devices with a past of some weeks, in Redis and in heartwheel-history, under a monitor that runs: the data of the dashboard's
pages of a device, a group and the unreliable devices."""
from hw_env import NO_STALL, NO_STANDSTILL
from hw_history import History, Scribe, Sqlite, wait_read
from hw_process import free_port
from hw_wait import now_ms, wait_until

DAY, HOUR, MINUTE = 86_400_000, 3_600_000, 60_000
QUIET_TIMES = {"mqtt": NO_STANDSTILL, "monitor": NO_STALL}  # a machine that has other things to do voids no goodbye
PUMP = "hall 2/pump-7"


def write_past(env, now):
    """pump-7 was down for 2 h ten days ago, and 3 times for a minute today; the outage ten days ago was planned for half of its
    time; no monitor saw day 20 and an hour of yesterday; flappy changed 60 times this week; the fans are up except for one that
    is away since yesterday."""
    s = Scribe(env, 7, devices=0)
    s.group = {PUMP: "pumps", "flappy": "pumps"}
    edges = [(now - 40 * DAY, PUMP, "online"), (now - 10 * DAY, PUMP, "offline"), (now - 10 * DAY + 2 * HOUR, PUMP, "online")]
    for hours in (9, 6, 2):
        at = (now - hours * HOUR) // (15 * MINUTE) * 15 * MINUTE + 5 * MINUTE  # within one bar
        edges += [(at, PUMP, "offline"), (at + MINUTE, PUMP, "online")]
    edges += [(now - 30 * DAY, "flappy", "online")]
    for k in range(60):
        edges += [(now - 6 * DAY + k * 2 * HOUR, "flappy", "offline"), (now - 6 * DAY + k * 2 * HOUR + 5 * MINUTE, "flappy", "online")]
    for k in range(4):
        s.group["fan-%d" % k] = "fans"
        edges.append((now - 50 * DAY + k, "fan-%d" % k, "online"))
    edges += [(now - DAY, "fan-3", "offline"), (now - 5 * DAY, "old", "online"), (now - 4 * DAY, "old", "forgotten")]
    s.write([s.entry(d, state, t) for t, d, state in sorted(edges)])
    s.saw("seeing", now - 60 * DAY, now - 20 * DAY)
    s.saw("down", now - 20 * DAY, now - 19 * DAY)
    s.saw("seeing", now - 19 * DAY, now - 26 * HOUR)
    s.saw("blind", now - 26 * HOUR, now - 25 * HOUR, "link")
    s.saw("seeing", now - 25 * HOUR, now - 12 * HOUR)
    s.saw("blind", now - 12 * HOUR, now - 11 * HOUR, "link")
    s.saw("seeing", now - 11 * HOUR, now)
    s.plan(PUMP, now - 10 * DAY, now - 10 * DAY + HOUR)
    return s


def start_with_past(env):
    """Starts the daemon, with .url and .history, which has read everything."""
    env.check_events = False
    env.own_redis()
    scribe = write_past(env, now_ms())
    history = History(env, Sqlite(env.own_dir("db"))).start()
    port = free_port()
    groups = [("pumps", {"heartbeat": env.root + "/p/{id...}", "timeout": "1h"}), ("fans", {"heartbeat": env.root + "/f/{id}", "timeout": "1h"})]
    d = env.daemon(http={"listen": "127.0.0.1:%d" % port}, history={"socket": history.socket}, groups=groups, **QUIET_TIMES)
    d.url, d.history, d.scribe = "http://127.0.0.1:%d/" % port, history, scribe
    wait_read(history, env)
    wait_read(history, env, "device:incident_events")
    wait_until(lambda: d.status()["devices"] == 6, what="the devices to be loaded")
    return d
