#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""heartwheel-history: entries a second into SQLite, with their outages and months, bytes an entry, and how long a month's report
takes. The entries are in Redis before it starts, spread over the last month: what it does when it catches up. Then the whole
way: a million devices of heartwheeld's die at once, and all of that is in SQL so long after the last one."""
import random
import statistics
import subprocess
import time

import measure

O = measure.options(__doc__)  # before those of the bench that is borrowed from

import deaths  # noqa: E402
from hw_history import BUILT, History, Sqlite, wait_read  # noqa: E402
from hw_wait import wait_until  # noqa: E402


def fill(env, devices, entries, begin, end):
    """Transitions of all devices in turn, as the monitor writes them: online and offline by turns."""
    rng, now, p = random.Random(1), begin, env.redis.pipeline(transaction=False)
    step = max(1, (end - begin) // entries)
    for i in range(entries):
        device, now = i % devices, now + rng.randrange(1, 2 * step)
        now = min(now, end)
        online = i // devices % 2 == 0
        p.xadd(env.key("events"), {"id": "device-%07d" % device, "state": "online" if online else "offline",
                                   "reason": "heartbeat" if online else "timeout", "time_ms": now, "last_seen_ms": now - 30000,
                                   "group": "g%d" % (device % 4), "node": "hub", "seq": now + i})
        if i % 5000 == 4999:
            p.execute()
    p.execute()


def whole_way():
    """Devices that an earlier run has left in Redis fall silent all at once: from the last one's mark there to its row, with the
    history beside the monitor all the time."""
    n, limit_s = deaths.DEVICES, 60 + deaths.DEVICES / 2000
    with deaths.Place(True) as place:
        env, asked = place.env, deaths.configuration("redis", "1s", False, True)
        subprocess.run(deaths.program("script", "fill", env.redis_server.port, env.prefix, n), check=True)
        db = Sqlite(env.own_dir("db"))
        h = History(env, db, redis=asked["redis"]).start()
        used, marks = measure.cpu_s(h.pid), deaths.Marks(env, n, limit_s)
        marks.start()
        env.daemon(seeing=False, **{**asked, "groups": [("default", {"heartbeat": deaths.HEARTBEAT, "status": "", "timeout": "1s"})]})
        marks.join()
        assert marks.seen == n, "only %d were marked" % marks.seen
        wait_until(lambda: h.status()["n"] >= n, limit_s, "all to be in SQL", 0.02)
        took, used = time.monotonic() - marks.last, measure.cpu_s(h.pid) - used
        wait_read(h, env)
        down = db.rows("SELECT COUNT(*) FROM outage WHERE to_ms IS NULL AND reason = 'timeout'")[0][0]
        status = h.status()
        h.stop()
    measure.conditions("%s devices stop at once; heartwheeld, Redis, the broker and the history on one machine" % format(n, ",d"))
    measure.figure("history", "history: from the last death in Redis to all in SQL", took, "s", ("<=", 40),
                   "they died within %.1f s" % (marks.last - marks.first), worst=True)
    measure.figure("history", "history: deaths that SQL lacks, and gaps", n - down + status["gaps"], "", ("<=", 0), None, True)
    measure.figure("history", "history: CPU of a death", used / n * 1e6, "us")


def main():
    if not BUILT:
        return
    whole_way()
    devices, entries = (2000, 20000) if O.smoke else (100000, 200000)
    now = int(time.time() * 1000)
    with measure.world() as (env, _):
        env.check_events = False
        begin = now - 25 * 86_400_000
        fill(env, devices, entries, begin, now - 1000)
        env.redis.xadd(env.key("sight"), {"node": "hub", "state": "seeing", "cause": "", "from_ms": begin - 40 * 86_400_000,
                                          "to_ms": now + 3_600_000})
        db = Sqlite(env.own_dir("db"))
        h = History(env, db)
        began = time.monotonic()
        h.start()
        wait_read(h, env, timeout=600)
        took = time.monotonic() - began
        wait_read(h, env, "device:sight")
        used = measure.cpu_s(h.pid)
        measure.conditions("%d entries of %d devices, batches of 10,000" % (entries, devices))
        measure.figure("history", "history: entries a second into SQLite", entries / took, "/s", None if O.smoke else (">=", 30000),
                       "with outages and months, reading included")
        measure.figure("history", "history: CPU of an entry", used / entries * 1e6, "us", None, "its thread waits for the disk besides")
        times, used = [], measure.cpu_s(h.pid)
        for _ in range(7):
            began = time.monotonic()
            a = h.get("/v1/history/uptime?month=%s" % time.strftime("%Y-%m", time.gmtime(now / 1000)))
            times.append((time.monotonic() - began) * 1000)
            assert a.status == 200 and a.json()["all"]["devices"] == devices, a
        measure.figure("history", "history: a month's report", statistics.median(times), "ms", None if O.smoke else ("<=", 100),
                       "the worst hundred, and all together")
        measure.figure("history", "history: CPU of a month's report", (measure.cpu_s(h.pid) - used) / len(times) * 1000, "ms")
        h.stop()
        measure.figure("history", "history: bytes an entry", db.path.stat().st_size / entries, "bytes", None,
                       "of the database, all tables")


main()
