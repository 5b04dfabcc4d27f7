#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Everybody returns: a broker is back after an hour, and a million devices come online at once: is that as bounded as
their deaths were, in memory, in time, and for those who live and die beside it?

All are brought online, and die in one tick, as in bench/deaths.py: what that took is what the return is next to. Then the
broker ends, and comes again; each device beats as soon as there is a broker, as fast as that passes it on. Each is marked
online in Redis and told in its retained status. Meanwhile others beat, and some who do fall silent: they are to be found
out as ever. Then everybody beats twice a timeout, and the keys of all are refreshed, which came due together.
"""
import signal
import sys
import time

import deaths
import measure
from deaths import O, OTHERS, Marks, Others, Place, Watch, all_online, configuration, worst_turn
from hw_wait import wait_until

TARGET = 13
DEVICES = 5000 if O.smoke else deaths.DEVICES
RATE = 60000  # heartbeats a second of who returns, at most
WITNESSES, WITNESS_TIMEOUT_S = (50, 1) if O.smoke else (500, 2)
TIMEOUT_S = 2 if O.smoke else 60  # of who has returned
LIMIT_S = 20 + DEVICES / 8000


def figure(label, value, unit, goal=None, note=None, worst=False):
    measure.figure(TARGET, label, value, unit, goal, note, worst)


def options(timeout):
    o = configuration("redis", timeout, True, False)
    o["groups"].append(("witnesses", {"heartbeat": "witness/{id}/heartbeat", "status": "", "id_prefix": "w-",
                                      "timeout": "%ds" % WITNESS_TIMEOUT_S}))
    o["monitor"]["max_devices"] += WITNESSES
    o["mqtt"]["reconnect_grace"] = "1s"
    return o


def peak_kb(pid, anew=False):
    """The most memory that a process ever had; `anew`: since now."""
    if anew:
        with open("/proc/%d/clear_refs" % pid, "w") as f:
            f.write("5")
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))


def reload(place, d, timeout):
    d.rewrite(place.env.text(directory=d.dir, **options(timeout)))
    assert d.request("POST", "/v1/reload").status == 200


def transit(place, d, name, back, action):
    """`action` makes every device die, or return (`back`). Says how fast that was marked and told, and what memory and
    turns it took; returns the two rates."""
    watch = Watch(place, DEVICES, LIMIT_S, '"online":%s' % ("true" if back else "false"))
    marks = Marks(place.env, DEVICES, LIMIT_S, WITNESSES if back else None)
    before, rss = d.metrics(), measure.rss_kb(d.pid)
    peak_kb(d.pid, anew=True)
    marks.start()
    action()
    marks.join()
    seen = watch.seen()
    wait_until(lambda: d.status()["owed"] == 0, LIMIT_S, "all to be written", 0.1)
    grown, after = (peak_kb(d.pid) - rss) * 1024 / DEVICES, d.metrics()
    assert marks.seen == DEVICES and seen["seen"] == DEVICES, (marks.seen, seen)
    marked, status = DEVICES / (marks.last - marks.first), DEVICES / (seen["last"] - seen["first"])
    figure("%s: marked in Redis" % name, marked, "/s")
    figure("%s: statuses told" % name, status, "/s")
    figure("%s: memory that it takes meanwhile, a device" % name, grown, "bytes", ("<=", 80) if back else None,
           "a ring of messages of 8 MiB, one of at most 262,144 edges: no more, however many they are")
    figure("%s: memory at its peak, a device" % name, peak_kb(d.pid) * 1024 / DEVICES, "bytes", None, "all that is resident")
    turn(name, before, after)
    return marked, status


def turn(name, before, after):
    figure("%s: longest turn of the loop, CPU" % name, worst_turn(before, after, "cpu_"), "ms",
           ("<=", 10) if name != "all die" else None, "the histogram's bound above it", True)


def detected(before, after):
    """(how many were found out, within which bound 99 % of them, in ms)"""
    def found(m):
        return {float(dict(labels)["le"].replace("+Inf", "inf")): value for (name, labels), value in m.samples.items()
                if name == "heartwheel_detection_delay_seconds_bucket"}
    then, now = found(before), found(after)
    n = {bound: now[bound] - then[bound] for bound in now}
    total = n[float("inf")]
    return total, min((b for b in n if n[b] >= 0.99 * total), default=0) * 1000


def outage(place, d):
    """The broker goes, and is there again."""
    place.env.broker.stop()
    wait_until(lambda: d.status()["blind"], 30, "the monitor to be blind")
    place.env.broker.start()
    wait_until(lambda: not d.status()["blind"], 60, "the monitor to see")


def come_back(place, d):
    """Everybody beats, once; whoever the broker has dropped, again. In the midst of it the witnesses die."""
    witness = place.start("pace", place.port, "witness", WITNESSES, WITNESS_TIMEOUT_S * 250, 1)
    wait_until(lambda: d.metrics().get("devices", group="witnesses", state="online") == WITNESSES, 60, "the witnesses")
    with Others(place, d) as others:
        wait_until(lambda: d.metrics().get("devices", group="others", state="online") == OTHERS, 60, "the others")
        quiet = others.measured(lambda: time.sleep(deaths.QUIET_S))
        before = d.metrics()

        def home():
            seconds = max(1, DEVICES // RATE)
            for _ in range(5):
                fleet = place.start("pace", place.port, "fleet", DEVICES, seconds * 1000, 1, 1)
                time.sleep(seconds / 2)
                witness.send_signal(signal.SIGTERM)
                assert fleet.wait(180) == 0
                time.sleep(0.3)
                if d.metrics().get("devices", group="fleet", state="online") == DEVICES:
                    return
        result = []
        heard = others.measured(lambda: result.append(transit(place, d, "all return", True, home)))
        figure("all return: others heard, share of the quiet rate", heard / quiet, "x", (">=", 0.8))
        wait_until(lambda: detected(before, d.metrics())[0] >= WITNESSES, 60, "the witnesses to be found out")
        n, bound = detected(before, d.metrics())
    figure("all return: of those who die beside it, not found out", max(0, WITNESSES - n), "", ("<=", 0), None, True)
    figure("all return: timeout to the transition of these, 99 % within", bound, "ms", None, "the histogram's bound above it")
    return result[0]


def refreshes(place, d):
    """A timeout in which everybody's keys are refreshed. Nobody is taken for dead."""
    def old():
        """Whose key is the one from before, or is gone (-2)."""
        left = {i: redis.pttl("device:connected:d%d" % i) for i in sample}
        return [i for i in sample if not 0 <= left[i] <= 30000 * TIMEOUT_S]
    redis, sample = place.env.redis, range(0, DEVICES, max(1, DEVICES // 1000))
    fleet = place.start("pace", place.port, "fleet", DEVICES, TIMEOUT_S * 500, 1)
    time.sleep(TIMEOUT_S / 2 + 0.5)
    before, rss = d.metrics(), measure.rss_kb(d.pid)
    peak_kb(d.pid, anew=True)
    reload(place, d, "%ds" % TIMEOUT_S)
    began = time.monotonic()
    wait_until(lambda: not old(), 3 * TIMEOUT_S, "the keys of all to be refreshed", 0.5)
    took, after = time.monotonic() - began, d.metrics()
    fleet.terminate()
    fleet.wait()
    figure("all are refreshed: timeouts that it takes", took / TIMEOUT_S, "", ("<=", 2), "looked at a thousand keys")
    figure("all are refreshed: memory that it takes meanwhile, a device", (peak_kb(d.pid) - rss) * 1024 / DEVICES, "bytes")
    figure("all are refreshed: beat, and are called offline", after.get("devices", group="fleet", state="offline"), "",
           ("<=", 0), None, True)
    turn("all are refreshed", before, after)


# Entries of devices dN behind an id that say that they are online, and the last id, of as many entries.
COUNT = """
local n, last, all = 0, ARGV[1], redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', 20000)
for _, entry in ipairs(all) do
	local f = {}
	for i = 1, #entry[2], 2 do f[entry[2][i]] = entry[2][i + 1] end
	if f.state == 'online' and f.id:match('^d%d+$') then n = n + 1 end
	last = entry[1]
end
return {n, last, #all}
"""


def returned_since(place, entry):
    n, redis = 0, place.env.redis
    while True:
        some, entry, looked = redis.eval(COUNT, 1, place.env.key("events"), entry)
        n += some
        if not looked:
            return n


def main():
    measure.conditions("%s devices, Redis and statuses; %s others send" % (format(DEVICES, ",d"), format(OTHERS, ",d")))
    with Place(True) as place:
        d = place.env.daemon(**options("1h"))
        all_online(place, d, DEVICES, RATE)
        died = transit(place, d, "all die", False, lambda: reload(place, d, "1s"))
        reload(place, d, "1h")
        outage(place, d)
        last = place.env.redis.xrevrange(place.env.key("events"), count=1)[0][0]
        came = come_back(place, d)
        for was, is_, what in zip(died, came, ("marked", "told")):
            figure("all return: %s, next to when all die" % what, is_ / was, "x", (">=", 0.7))
        figure("all return: entries of the event stream, too many or too few",
               abs(returned_since(place, last) - DEVICES), "", ("<=", 0), None, True)
        figure("all die and return: transitions that are left out of the event stream", d.metrics().get("redis_transitions_dropped_total"), "",
               ("<=", 0), "by the daemon's count, since its start", True)
        refreshes(place, d)


if __name__ == "__main__":
    main()
