# SPDX-License-Identifier: MIT
"""heartwheel-history: SQL equals the streams entry by entry, whatever happens meanwhile to the worker, to Redis and to SQL."""
import contextlib
import http.client
import os
import re
import signal
import sqlite3
import subprocess
import sys

import pytest
import redis as redis_client

from hw_build import SRC
from hw_history import (BUILT, HEARTWHEEL_HISTORY, MARIADBD, History, MariaDB, Scribe, Sqlite, check_outages, fill, gaps, in_sql, no_room,
                        wait_read)
from hw_wait import now_ms, throughout, wait_until

sys.path.append(os.path.join(SRC, "tests", "system", "faults"))
from shim import Shim  # noqa: E402

pytestmark = pytest.mark.skipif(not BUILT, reason="heartwheel-history is not built: SQLite is missing")
DAY = 86_400_000
KINDS = ["sqlite", pytest.param("mariadb", marks=pytest.mark.skipif(not MARIADBD, reason="no mariadbd"))]


@pytest.fixture
def redis(env):
    env.check_events = False
    return env.own_redis()


def database(env, kind="sqlite"):
    if kind == "sqlite":
        return Sqlite(env.own_dir("db"))
    db = MariaDB(env.own_dir("db"))
    env.servers.append(db)
    return db.start()


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_is_kept_with_its_outages(env, redis, kind):
    db, s = database(env, kind), Scribe(env, 1)
    s.some(1500)
    h = History(env, db, batch=100).start()
    wait_read(h, env)
    s.some(700)
    s.write([s.entry("d1", "forgotten", s.now + 5), s.entry("a,\"b\" \u00e4", "online", s.now + 6),
             s.entry("d1", "online", s.now + 1000)])
    wait_read(h, env)
    assert in_sql(db) == s.written
    check_outages(db)
    assert gaps(db) == []
    at = db.rows("SELECT at, n FROM position WHERE stream = 'device:events'")
    assert at == [(list(s.written)[-1], len(s.written))]
    assert db.rows("SELECT COUNT(*) FROM outage WHERE reason = 'forgotten' AND to_ms - from_ms = 995") == [(1,)]
    status = h.status()
    assert status["sql"] == status["redis"] == "up" and status["n"] == len(s.written) and status["lag_entries"] == 0, status
    assert h.metrics().get("history_rows_total", kind="transition") == len(s.written)
    h.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_an_unseen_device_has_no_outage(env, redis, kind):
    """A device that was never heard, and one that is expected again after it was forgotten."""
    db, s = database(env, kind), Scribe(env, 1)
    h = History(env, db, batch=100).start()
    s.write([s.entry("u1", "unseen", s.now), s.entry("u1", "online", s.now + 1000), s.entry("u1", "offline", s.now + 2000),
             s.entry("u2", "online", s.now), s.entry("u2", "offline", s.now + 100), s.entry("u2", "forgotten", s.now + 300),
             s.entry("u2", "unseen", s.now + 900), s.entry("u3", "unseen", s.now)])
    wait_read(h, env)
    assert in_sql(db) == s.written
    assert db.rows("SELECT d.id, o.reason = 'forgotten', o.to_ms - o.from_ms FROM outage o, device d WHERE d.dev = o.dev "
                   "ORDER BY d.id, o.from_ms") == [("u1", 1, 1000), ("u1", 0, None), ("u2", 0, 200), ("u2", 1, 600),
                                                  ("u2", 1, None), ("u3", 1, None)]
    assert sorted(db.rows("SELECT id, state FROM device")) == [("u1", "offline"), ("u2", "unseen"), ("u3", "unseen")]
    assert h.metrics().get("history_skipped_total", kind="fields") in (None, 0)
    h.stop()


def kill_amid(h, s):
    """Starts the worker and kills it as soon as it writes. Returns whether it had begun and not finished."""
    before = h.place()
    h.start(ready=False)

    def moved():
        try:
            return h.status()["n"] > max(before, 0)
        except (OSError, http.client.HTTPException, KeyError):
            return False
    wait_until(moved, what="a batch", interval=0.0005)
    h.die()
    return before < h.place() < len(s.written)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_in_the_midst_of_a_batch_loses_and_repeats_nothing(env, redis, kind):
    db, s = database(env, kind), Scribe(env, 2)
    h = History(env, db, batch=200)
    rounds, amid, tries = int(os.environ.get("HW_ROUNDS", "5")), 0, 0
    while amid < rounds:
        s.some(2000 if kind == "sqlite" else 1000, batch=1000)
        amid += kill_amid(h, s)
        tries += 1
        assert tries < 4 * rounds + 4, "only %d of %d kills came while it wrote" % (amid, tries)
    print("%s: %d kills, %d of them while it wrote" % (kind, tries, amid))
    h.start()
    wait_read(h, env, timeout=max(30, 2 * rounds))  # all that the kills left
    assert in_sql(db) == s.written
    check_outages(db)
    assert gaps(db) == []


def test_pages_of_a_batch_are_there_together_or_not_at_all(env, redis):
    """Redis is read by the thousand, and SQL is written in larger pieces: the worker is killed in these writes as well."""
    db, s = database(env), Scribe(env, 17)
    h = History(env, db, batch=3000)
    amid, tries = 0, 0
    while amid < 2:
        s.some(7_500, batch=1000)
        amid += kill_amid(h, s)
        tries += 1
        assert tries < 20, "only %d kills came while it wrote" % amid
    s.some(7_500, batch=1000)
    waiting = len(s.written) - h.place()
    h.start()
    wait_read(h, env)
    assert in_sql(db) == s.written and gaps(db) == []
    check_outages(db)
    assert h.metrics().get("history_batch_seconds_count") < -(-waiting // 1000), "they are not put together"
    assert h.metrics().get("history_rows_total", kind="transition") == waiting


@pytest.mark.parametrize("kind", KINDS)
def test_what_waits_is_just_so_many_pages(env, redis, kind):
    """Exactly full pages wait, and nothing follows the last one: an offset that does not move is no failure of SQL."""
    db, s = database(env, kind), Scribe(env, 18)
    h = History(env, db, batch=3000).start()
    s.some(10)
    wait_read(h, env)
    h.stop()
    s.some(2000, batch=1000)
    h.start()
    wait_read(h, env)
    assert in_sql(db) == s.written
    assert h.metrics().get("history_sql_losses_total") == 0


def test_what_was_trimmed_is_counted_and_the_last_of_it_found(env, redis):
    db, s = database(env), Scribe(env, 3)
    h = History(env, db, batch=100).start()
    lost = 0
    for round_ in range(int(os.environ.get("HW_TRIMS", "3"))):
        s.some(300)
        wait_read(h, env)
        h.stop()
        before = dict(in_sql(db))
        s.some(400, maxlen=100)
        h.start()
        wait_read(h, env)
        lost += 300
        assert [g[3] for g in gaps(db)] == [300] * (round_ + 1), gaps(db)
        have = in_sql(db)
        rest = dict(env.redis.xrange(s.stream))
        assert have == {**before, **{k: v for k, v in s.written.items() if k in rest}}
        assert h.status()["lost"] == lost and h.status()["gaps"] == round_ + 1
        # Each device's state is the last one, also of those whose entry was trimmed.
        now = dict(db.rows("SELECT id, state FROM device"))
        assert now == {d: s.state[d] for d in s.state}
    assert db.rows("SELECT COUNT(*) FROM transition WHERE found = 1")[0][0] > 0
    check_outages(db)


def allow(env, *rules):
    """Gives a Redis user the rights of the example and these rights. Returns the keys of [redis] for this user."""
    rights = re.search(r"^user heartwheel-history on >CHANGE-ME (.*)$", (SRC / "conf" / "redis-heartwheel.acl").read_text(), re.M)
    secret = env.dir / "redis-secret"
    secret.write_text("secret\n")
    env.redis.execute_command("ACL", "SETUSER", "history", "reset", "on", ">secret",
                              *rights[1].replace("~device:", "~" + env.prefix).split(), *rules)
    return {"username": "history", "password_file": secret}


def test_who_was_forgotten_within_a_gap_is_not_known_any_more(env, redis):
    db, s = database(env), Scribe(env, 13, devices=600)
    # With no more rights than the example gives it.
    h = History(env, db, batch=100, redis=allow(env)).start()
    s.write([s.entry(d, "online", s.now + i) for i, d in enumerate(s.devices)])
    s.write([s.entry("d7", "offline", s.now + 1000)])
    wait_read(h, env)
    last = int(list(s.written)[-1].split("-")[0])
    h.stop()
    s.now += 10_000
    s.write([s.entry(d, "forgotten", s.now) for d in s.devices if d not in ("d1", "d2", "d3")], maxlen=1)
    s.write([s.entry("d1", "online", s.now + 5), s.entry("d4", "online", s.now + 6)], maxlen=2)
    h.start()
    wait_read(h, env)
    assert h.status()["lost"] == 597
    now = dict(db.rows("SELECT id, state FROM device"))
    assert {d for d, state in now.items() if state == "online"} == {"d1", "d2", "d3", "d4"}
    assert len([d for d, state in now.items() if state == "forgotten"]) == 596
    assert db.rows("SELECT gone_ms, grp FROM device WHERE id = 'd9'") == [(last, s.group["d9"])]
    assert db.rows("SELECT to_ms FROM outage o JOIN device d ON d.dev = o.dev WHERE d.id = 'd7' AND o.reason = 'timeout'") == [(last,)]
    s.write([s.entry("d9", "online", s.now + 10)])
    wait_read(h, env)
    assert db.rows("SELECT state, gone_ms FROM device WHERE id = 'd9'") == [("online", None)]
    # An emptied Redis has no hash of anybody until the monitor writes them again: nobody is forgotten for that.
    env.redis.flushall()
    s.write([s.entry("d1", "offline", s.now + 20)])
    wait_until(lambda: h.status()["gaps"] == 2, what="the gap")
    wait_read(h, env)
    assert dict(db.rows("SELECT id, state FROM device"))["d2"] == "online"


def test_what_redis_refuses_is_no_fault_of_sql(env, redis):
    db, s = database(env), Scribe(env, 15)
    h = History(env, db, batch=100, redis=allow(env)).start()
    s.some(300)
    wait_read(h, env)
    h.stop()
    allow(env, "-hmget")  # so the hashes cannot be read back
    s.some(400, maxlen=100)
    h.start()
    wait_until(lambda: "state:*" in h.status()["redis"], what="the refusal to be told")
    assert "NOPERM" in h.status()["redis"] and h.status()["reading_back"], h.status()
    assert h.get("/readyz").status == 503
    s.some(50)
    wait_until(lambda: h.status()["n"] == len(s.written), what="the stream to be read all the same")
    # What holds something else than a hash is passed over, and nobody is forgotten for it.
    for i, device in enumerate(["somebody", s.devices[0]]):
        env.redis.delete(env.key("state", device))
        env.redis.set(env.key("state", device), i)
    allow(env)
    wait_read(h, env)
    assert db.rows("SELECT COUNT(*) FROM transition WHERE found = 1")[0][0] > 0
    assert dict(db.rows("SELECT id, state FROM device"))[s.devices[0]] != "forgotten"
    assert h.status()["redis"] == h.status()["sql"] == "up" and h.get("/readyz").status == 200
    allow(env, "resetkeys", "~%s" % env.key("sight"), "~task:events")
    s.some(30)
    wait_until(lambda: "events cannot" in h.status()["redis"], what="the refusal of the stream to be told")
    wait_until(lambda: h.status()["lag_entries"] is None, what="no word about its lag")
    s.saw("seeing", s.now - 1000, s.now)
    wait_read(h, env, "device:sight")
    allow(env)
    wait_read(h, env)
    wait_until(lambda: h.status()["redis"] == "up", what="the refusal to end")
    have, rest = in_sql(db), dict(env.redis.xrange(s.stream))
    assert all(have[k] == v for k, v in rest.items()) and [g[3] for g in gaps(db)] == [300]
    check_outages(db)
    assert h.metrics().get("history_sql_losses_total") == 0 and "SQL: NOPERM" not in h.log()
    assert [h.log().count(w) for w in ("device:state:* cannot", "device:events cannot", "device:events can be")] == [1, 1, 1], h.log()


def test_a_stream_that_is_gone_altogether_is_a_gap_too(env, redis):
    db, s = database(env), Scribe(env, 4)
    h = History(env, db).start()
    s.some(50)
    wait_read(h, env)
    h.stop()
    s.some(70)
    env.redis.xtrim(s.stream, maxlen=0)
    h.start()
    wait_read(h, env)
    assert [g[3] for g in gaps(db)] == [70]
    s.some(10)
    wait_read(h, env)
    assert [g[3] for g in gaps(db)] == [70] and len(in_sql(db)) == 60
    assert h.status()["n"] == 130


def test_an_emptied_redis_is_read_from_its_start(env, redis):
    db, s = database(env), Scribe(env, 5)
    h = History(env, db, batch=50).start()
    s.some(200)
    wait_read(h, env)
    before = in_sql(db)
    h.stop()
    env.redis.flushall()
    s.some(120, maxlen=100)
    h.start()
    wait_until(lambda: gaps(db), what="the gap")
    wait_read(h, env)
    assert in_sql(db) == {**before, **dict(env.redis.xrange(s.stream))}
    assert [g[3] for g in gaps(db)] == [20] and h.status()["lost"] == 20
    # And while it runs: nothing is lost that it has not missed.
    env.redis.flushall()
    s.some(80)
    wait_until(lambda: len(gaps(db)) == 2, what="the second gap")
    wait_read(h, env)
    assert len(in_sql(db)) == 380 and h.status()["lost"] == 20
    check_outages(db)


def test_a_redis_that_was_put_back_repeats_nothing(env, redis):
    db, s = database(env), Scribe(env, 6)
    h = History(env, db, batch=50).start()
    s.some(150)
    raw = redis_client.Redis("127.0.0.1", env.redis_server.port)
    old = raw.dump(s.stream)
    s.some(100)
    wait_read(h, env)
    before = in_sql(db)
    assert len(before) == 250
    raw.restore(s.stream, 0, old, replace=True)
    s.some(60)
    wait_until(lambda: gaps(db), what="the gap")
    wait_read(h, env)
    assert in_sql(db) == s.written
    assert [g[3] for g in gaps(db)] == [0], gaps(db)
    check_outages(db)


@pytest.mark.parametrize("batch", [50, 2000])
@pytest.mark.parametrize("kind", KINDS)
def test_two_workers_write_each_entry_once(env, redis, kind, batch):
    db, s = database(env, kind), Scribe(env, 7)
    n = 6000 if kind == "sqlite" or batch > 1000 else 2000
    workers = [History(env, db, batch=batch) for _ in range(2)]
    s.some(n // 2)
    for h in workers:
        h.start()
    s.some(n // 2, batch=50)
    for h in workers:
        wait_read(h, env)
    assert in_sql(db) == s.written
    check_outages(db)
    rows = [h.metrics().get("history_rows_total", kind="transition") for h in workers]
    assert sum(rows) == n, rows


def test_of_two_workers_that_read_the_same_one_writes(env, redis):
    """Both workers have read a trimmed stream from the same offset before either may write: the gap is recorded once."""
    db, s = database(env), Scribe(env, 12)
    workers = [History(env, db).start() for _ in range(2)]
    s.some(50)
    s.saw("seeing", s.now - 1000, s.now)
    env.redis.xadd(s.tasks, {"task": "t", "receiver": "d1", "sender": "alice", "state": "sent", "time_ms": s.now})
    for h in workers:
        for stream in ("device:events", "device:sight", "task:events"):
            wait_read(h, env, stream)
    raw = redis_client.Redis("127.0.0.1", env.redis_server.port, decode_responses=True)
    def those_at(command):
        return {c["id"] for c in raw.client_list() if c["cmd"] == command}
    both = wait_until(lambda: len(ids := those_at("xread")) == 2 and ids, what="both to wait")
    with contextlib.closing(sqlite3.connect(db.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        s.write([s.next() for _ in range(400)], maxlen=100)
        wait_until(lambda: both <= those_at("exec"), what="both to have read")  # nothing but a gap is read by EXEC
        other.execute("ROLLBACK")
    for h in workers:
        wait_read(h, env)
    assert [g[3] for g in gaps(db)] == [300], gaps(db)
    assert sum(h.metrics().get("history_yielded_total") for h in workers) >= 1
    check_outages(db)


@pytest.mark.skipif(not MARIADBD, reason="no mariadbd")
def test_mariadb_that_is_away_is_waited_for(env, redis):
    db, s = database(env, "mariadb"), Scribe(env, 8)
    h = History(env, db, batch=50).start()
    s.some(300)
    wait_read(h, env)
    db.stop(signal.SIGKILL)
    s.some(300)
    wait_until(lambda: h.status()["sql"] != "up", what="the loss of SQL to be noticed")
    assert h.get("/readyz").status == 503 and h.get("/healthz").status == 200
    db.start()
    wait_read(h, env, timeout=90)
    assert in_sql(db) == s.written
    check_outages(db)


def test_a_full_disk_is_waited_for(env, redis):
    place = env.own_dir("small")
    if not no_room(place):
        pytest.skip("no right to mount a file system of 4 MB")
    try:
        db, s = Sqlite(place), Scribe(env, 9)
        h = History(env, db, batch=200).start()
        s.some(500)
        wait_read(h, env)
        fill(place)
        s.some(3000, batch=1000)
        wait_until(lambda: h.status()["sql"] != "up", what="the full disk to be noticed")
        assert "full" in h.status()["sql"] or "disk" in h.status()["sql"], h.status()
        for _ in range(2):  # also what comes meanwhile is told as waiting
            s.some(500)
            wait_until(lambda: h.status()["lag_entries"] == env.redis.xlen(s.stream) - h.status()["n"] > 500, what="the lag without SQL")
        assert h.status()["lag_s"] > 0
        (place / "filler").unlink()
        wait_read(h, env, timeout=90)
        assert in_sql(db) == s.written
        check_outages(db)
        h.stop()
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def test_tasks_are_followed_to_their_end(env, redis):
    db, s = database(env), Scribe(env, 10)
    t = now_ms() - 60_000

    def entry(task, state, at, why=""):
        env.redis.xadd(s.tasks, {"task": task, "receiver": "pump-7", "sender": "alice", "msg_id": "m", "state": state, "why": why,
                                 "time_ms": at, "node": "n"})
    for task, steps in {"t1": ["scheduled", "sent", "sent", "acked", "complete"], "t2": ["held", "expired"], "t3": ["sent"]}.items():
        for i, state in enumerate(steps):
            entry(task, state, t + i, "no answer" if state == "expired" else "")
    h = History(env, db).start()
    wait_read(h, env, "task:events")
    assert db.rows("SELECT task, receiver, sender, at_ms, state, sent_ms, acked_ms, ended_ms, tries, why FROM task ORDER BY task") == [
        ("t1", "pump-7", "alice", t, "complete", t + 1, t + 3, t + 4, 2, ""),
        ("t2", "pump-7", "alice", t, "expired", None, None, t + 1, 0, "no answer"),
        ("t3", "pump-7", "alice", t, "sent", t, None, None, 1, "")]
    entry("t1", "sent", t + 9)
    wait_read(h, env, "task:events")
    assert db.rows("SELECT state, tries FROM task WHERE task = 't1'") == [("complete", 2)], "what has ended never changes"


@pytest.mark.parametrize("kind", KINDS)
def test_incidents_and_planned_outages_are_kept(env, redis, kind):
    """Entries that a restored Redis repeats are kept once. Planned outages of devices that were never down are not kept."""
    db, s = database(env, kind), Scribe(env, 12)
    t = s.now
    s.write([s.entry("d1", "online", t), s.entry("d1", "offline", t + 1000), s.entry("d1", "online", t + 9000)])
    midnight = (t // DAY + 3) * DAY
    s.write([s.entry("d3", "offline", midnight - 5000), s.entry("d3", "online", midnight + DAY + 5000)])

    def event(incident, what, at, **more):
        env.redis.xadd(s.incidents, {"id": incident, "what": what, "at_ms": t + at, "by": "", "receiver": "", **more})

    def write():
        event("0mabcdefg001", "opened", 1000, kind="device", group="g1", device="d1")
        event("0mabcdefg001", "opened", 1100, receiver="ops")
        event("0mabcdefg001", "acknowledged", 2000, by="ann")
        event("0mabcdefg001", "unacknowledged", 2500, by="bob")
        event("0mabcdefg001", "acknowledged", 3000, by="bob")
        event("0mabcdefg001", "closed", 9000)
        event("0mabcdefg001", "closed", 9100, receiver="ops")
        event("0mabcdefg002", "opened", 1000, kind="mass", group="g2")
        event("0mabcdefg003", "opened", 1000, kind="device", group="g2", device="d2")
        event("0mabcdefg003", "dropped", 1500)
        event("0mabcdefg004", "silenced", 1500, by="ann")
        s.plan("d1", t + 2000, t + 5000)
        s.plan("d1", t + 4000, t + 6000, "other")
        s.plan("unknown", t + 2000, t + 5000)
        s.plan("d3", midnight - 1000, midnight + DAY + 1000)
    write()
    h = History(env, db).start()
    incidents, planned = ("SELECT incident, kind, grp, device, opened_ms, closed_ms, state, acked_ms, acked_by, messages FROM incident ORDER BY incident",
                          "SELECT d.id, p.from_ms, p.to_ms, p.silence FROM planned p JOIN device d ON d.dev = p.dev ORDER BY p.from_ms")
    have = [("0mabcdefg001", "device", "g1", "d1", t + 1000, t + 9000, "closed", t + 2000, "ann", 2),
            ("0mabcdefg002", "mass", "g2", "", t + 1000, None, "open", None, None, 0)]
    parts = [("d1", t + 2000, t + 5000, "wash"), ("d1", t + 5000, t + 6000, "other"), ("d3", midnight - 1000, midnight, "wash"),
             ("d3", midnight, midnight + DAY, "wash"), ("d3", midnight + DAY, midnight + DAY + 1000, "wash")]
    wait_read(h, env, "device:incident_events")
    assert db.rows(incidents) == have and db.rows(planned) == parts
    page = h.get("/v1/history/incidents?since=0&limit=1").json()
    assert [i["id"] for i in page["incidents"]] == ["0mabcdefg002"] == [page["next"]]
    last, = h.get("/v1/history/incidents?since=0&after=" + page["next"]).json()["incidents"]
    assert last == {"id": "0mabcdefg001", "kind": "device", "group": "g1", "device": "d1", "state": "closed", "acked_by": "ann",
                    "opened_ms": t + 1000, "closed_ms": t + 9000, "acked_ms": t + 2000, "messages": 2}
    assert [i["id"] for i in h.get("/v1/history/incidents?since=0&group=g2").json()["incidents"]] == ["0mabcdefg002"]
    assert h.get("/v1/history/incidents?since=0&device=d2").json()["incidents"] == []
    one, = h.get("/v1/history/outages?since=0&device=d1").json()["outages"]
    assert (one["down_s"], one["planned_s"]) == (8, 4)
    long, = h.get("/v1/history/outages?since=0&device=d3").json()["outages"]
    assert (long["down_s"], long["planned_s"]) == (86410, 86402)
    assert db.rows("SELECT SUM(planned_ms) FROM month") == [(4000 + DAY + 2000,)]
    env.redis.delete(s.incidents)
    write()  # as a restored Redis
    wait_read(h, env, "device:incident_events")
    assert db.rows(planned) == parts and db.rows("SELECT SUM(planned_ms) FROM month") == [(4000 + DAY + 2000,)]
    h.stop()


def test_planned_outages_wait_for_the_transitions_of_their_devices(env, redis):
    db, s = database(env), Scribe(env, 13)
    s.some(3000)
    down = [e for e in s.written.values() if e["state"] == "offline"]
    for e in down:
        s.plan(e["id"], int(e["time_ms"]), int(e["time_ms"]) + 1)
    h = History(env, db, batch=100).start()
    wait_read(h, env, "device:incident_events")
    assert db.rows("SELECT COUNT(*) FROM planned") == [(len(down),)] and len(down) > 1000


@pytest.mark.parametrize("half", [False, True], ids=["whole", "half"])
@pytest.mark.parametrize("kind", KINDS)
def test_older_tables_are_updated(env, redis, kind, half):
    """The tables of version 2 are updated. half: the program was killed during the update."""
    db, s = database(env, kind), Scribe(env, 15)
    h = History(env, db).start()
    s.some(100)
    wait_read(h, env)
    h.stop()
    months = db.rows("SELECT dev, month, outages, down_ms, gone_ms FROM month ORDER BY dev, month")
    for table in "planned", "incident":
        db.change("DROP TABLE " + table)
    if not half:
        db.change("ALTER TABLE month DROP COLUMN planned_ms")
    db.change("UPDATE position SET n = 2 WHERE stream = 'schema'")
    db.change("DELETE FROM position WHERE stream = 'device:incident_events'")
    h.start()
    s.some(100)
    s.plan("d1", s.now, s.now + 5)
    wait_read(h, env)
    wait_read(h, env, "device:incident_events")
    assert db.rows("SELECT n FROM position WHERE stream = 'schema'") == [(3,)]
    assert in_sql(db) == s.written and db.rows("SELECT SUM(planned_ms) FROM month") == [(5,)]
    assert len(db.rows("SELECT dev FROM month")) >= len(months) > 0
    check_outages(db)
    h.stop()


def test_old_rows_go_and_months_stay(env, redis):
    db, s = database(env), Scribe(env, 11, start_ms=1_700_000_000_000)
    s.some(3000)
    down = next(e for e in s.written.values() if e["state"] == "offline")
    s.plan(down["id"], int(down["time_ms"]), int(down["time_ms"]) + 7)
    for incident, what in ("0mabcdefg001", "opened"), ("0mabcdefg001", "closed"), ("0mabcdefg002", "opened"):
        env.redis.xadd(s.incidents, {"id": incident, "what": what, "at_ms": s.now, "kind": "mass", "group": "g1"})
    h = History(env, db, keep="1d", keep_outages="1d").start()
    wait_read(h, env)
    wait_read(h, env, "device:incident_events")
    wait_until(lambda: db.rows("SELECT COUNT(*) FROM planned") == [(0,)], what="old planned outages to go")
    wait_until(lambda: db.rows("SELECT incident FROM incident") == [("0mabcdefg002",)], what="closed incidents to go")
    assert db.rows("SELECT SUM(planned_ms) FROM month") == [(7,)]
    wait_until(lambda: db.rows("SELECT COUNT(*) FROM transition") == [(0,)], what="old transitions to go")
    wait_until(lambda: db.rows("SELECT COUNT(*) FROM outage WHERE to_ms IS NOT NULL") == [(0,)], what="old outages to go")
    assert db.rows("SELECT COUNT(*) FROM device") == [(len(s.state),)]
    edges = sum(e["state"] == "offline" for e in s.written.values())
    assert db.rows("SELECT SUM(outages) FROM month") == [(edges,)]
    assert db.rows("SELECT COUNT(*) FROM transition") == [(0,)]
    assert gaps(db) == []


def test_a_clock_that_is_ahead_deletes_no_row(env, redis):
    """The machine's clock is 40 days ahead of Redis' clock: rows of the last hour are not older than `keep`."""
    shim, db, s = Shim(env.own_dir("shim")), database(env), Scribe(env, 11, start_ms=now_ms() - 3_600_000)
    s.some(300)
    h = History(env, db, keep="10d", keep_outages="10d").start()
    wait_read(h, env)
    n = db.rows("SELECT COUNT(*) FROM transition")
    h.stop()
    shim.step_wall(40 * 86400)
    h.spawn([HEARTWHEEL_HISTORY, "-f", "-c", h.conf], env=shim.env)
    wait_until(lambda: shim.loaded and h.answers())
    throughout(lambda: db.rows("SELECT COUNT(*) FROM transition") == n, 4, "no row to go")
    assert n[0][0] > 100


def documented():
    """The queries of docs/history.md, each with the line before it."""
    return re.findall(r"^([^\n]+)\n\n```sql\n(.*?);\n```$", (SRC / "docs" / "history.md").read_text(), re.S | re.M)


@pytest.mark.parametrize("kind", KINDS)
def test_the_queries_of_the_documentation_say_what_was(env, redis, kind):
    october, noon = 1_790_812_800_000, 1_791_979_200_000
    db, s = database(env, kind), Scribe(env, 14, devices=12, groups=2)
    s.group["pump-7"] = "north"
    s.write([s.entry(d, "online", october - 1000) for d in ["pump-7", *s.devices]])
    s.write([s.entry(d, "offline", noon - 9000 + i, "will") for i, d in enumerate(s.devices)])
    s.write([s.entry("pump-7", "offline", october + 10_000), s.entry("pump-7", "online", october + 25_500),
             s.entry("pump-7", "offline", october + 90_000), s.entry("pump-7", "online", october + 91_000)])
    s.saw("blind", october, october + 5, "link")
    s.saw("seeing", october + 5, noon)
    s.plan("pump-7", october + 10_000, october + 19_000)
    h = History(env, db, keep="0", keep_outages="0").start()
    for stream in "device:events", "device:sight", "device:incident_events":
        wait_read(h, env, stream)
    h.stop()
    s.some(60, maxlen=10)
    h.start()
    wait_read(h, env)
    h.stop()
    said = {title: db.rows(query) for title, query in documented()}
    assert len(said) == 11, list(said)
    how_often, when, away, flapped, groups, planned, noon_away, together, why, unseen, missing = said.values()
    assert [(n, float(d)) for n, d in how_often] == [(2, 16.5)]
    assert [(a, b, float(d), why) for a, b, d, why in when] == [(october + 90_000, october + 91_000, 1.0, "timeout"),
                                                                (october + 10_000, october + 25_500, 15.5, "timeout")]
    assert {x[0] for x in away} == {d for d in s.state if s.state[d] == "offline"} and [x[2] for x in away] == sorted(x[2] for x in away)
    assert ("pump-7", 2) in flapped and [x[1] for x in flapped] == sorted((x[1] for x in flapped), reverse=True)
    north = [x for x in groups if x[0] == "north"]
    assert [x[:4] for x in north] == [("north", 202610, 1, 2)] and abs(float(north[0][4]) - 16.5 / 3600) < 1e-4  # MariaDB rounds
    assert [x[0] for x in planned] == sorted(x[0] for x in planned)
    assert [(abs(float(a) - 16.5 / 3600) < 1e-4, abs(float(b) - 9 / 3600) < 1e-4) for g, a, b in planned if g == "north"] == [(True, True)]
    assert noon_away == [(12,)]
    assert (noon - 60_000, 12) in together or (noon - 9000 - (noon - 9000) % 60_000, 12) in together
    assert dict(why)["will"] == 12 and dict(why)["timeout"] >= 2
    assert unseen == [("n", october, october + 5, "link")]
    assert [x[3] for x in missing] == [50]


def section(title):
    """Of docs/history.md."""
    return re.search(r"^## %s\n(.*?)(?=^## |\Z)" % title, (SRC / "docs" / "history.md").read_text(), re.S | re.M)[1]


@pytest.mark.skipif(not MARIADBD, reason="no mariadbd")
def test_mariadb_as_the_documentation_sets_it_up(env, redis, tls, other_tls):
    """The statements of docs/history.md, and no further right: the worker connects by the socket, and by TLS alone; then the
    panel reads as a user with read rights alone."""
    db, s = MariaDB(env.own_dir("db"), ["--ssl-cert=%s" % tls.server_cert, "--ssl-key=%s" % tls.server_key]), Scribe(env, 16)
    env.servers.append(db)
    db.start()
    set_up = re.search(r"```\n(CREATE.*?)```", section("MariaDB, MySQL"), re.S)[1]
    assert db.query(set_up.replace("'...'", "'pass word'")).returncode == 0
    secret = env.own_dir("secret") / "mysql"
    secret.write_text("pass word\n")
    db.base = "heartwheel"
    db.address = "mysql://heartwheel@[%s]/heartwheel" % db.socket
    h = History(env, db, batch=100, keep="1h", password_file=secret).start()
    s.some(500)
    wait_read(h, env)
    h.stop()
    db.query("ALTER USER heartwheel@localhost REQUIRE SSL")
    db.address = "mysql://heartwheel@localhost:%d/heartwheel" % db.port
    s.some(400, maxlen=100)
    for ca, word in [(other_tls.ca, "certificate"), (None, "Access denied")]:
        refused = History(env, db, password_file=secret, tls_ca=ca or "").start()
        wait_until(lambda: word in refused.status()["sql"], what="the reason why not: " + word)
        refused.stop()
    h = History(env, db, batch=100, keep="1h", password_file=secret, tls_ca=tls.ca).start()
    wait_read(h, env)
    assert [g[3] for g in gaps(db)] == [300]
    wait_until(lambda: db.rows("SELECT COUNT(*) FROM transition") == [(0,)], what="what is old to go")
    assert h.metrics().get("history_sql_losses_total") == 0, h.log()
    report = h.get("/v1/history/uptime?since=%d&until=%d" % (s.now - DAY, s.now + 1)).json()
    outages = db.rows("SELECT COUNT(*) FROM outage WHERE from_ms BETWEEN %d AND %d" % (s.now - DAY, s.now))[0][0]
    assert report["all"]["outages"] == outages > 0
    h.stop()
    panel = re.search(r"```\n(SELECT.*?;)\n```", section("Grafana"), re.S)[1]
    for name, value in [("$__unixEpochFrom()", (s.now - DAY) // 1000), ("$__unixEpochTo()", s.now // 1000 + 1)]:
        assert name in panel
        panel = panel.replace(name, str(value))
    assert db.query("CREATE USER grafana@localhost; GRANT SELECT ON heartwheel.* TO grafana@localhost").returncode == 0
    assert len(db.query(panel, "heartwheel", "grafana").stdout.splitlines()) == outages
    assert "denied" in db.query("DELETE FROM gap", "heartwheel", "grafana").stderr


@pytest.mark.skipif(not MARIADBD, reason="no mariadbd")
def test_with_tls_ca_a_server_without_tls_is_refused(env, redis, tls):
    db = database(env, "mariadb")
    assert db.query("CREATE USER plain@localhost; GRANT ALL ON history.* TO plain@localhost").returncode == 0
    db.address = "mysql://plain@localhost:%d/history" % db.port
    h = History(env, db, tls_ca=tls.ca).start()
    wait_until(lambda: re.search("TLS|SSL", h.status()["sql"]), what="the refusal")
    h.stop()


def test_what_the_monitor_writes_arrives(env):
    """From heartbeats, a death and a stop of the monitor to the rows in SQL."""
    env.own_redis()
    d = env.daemon(timeout="1s")
    db = database(env)
    h = History(env, db).start()
    with env.beating(["a"], 0.1):
        env.beat("b")
        env.wait_store("b", "offline")
        wait_until(lambda: db.rows("SELECT id, state FROM device ORDER BY id") == [("a", "online"), ("b", "offline")],
                   what="both devices in SQL")
        wait_until(lambda: db.rows("SELECT COUNT(*) FROM sight WHERE cause = ''")[0][0] > 0, what="what the monitor saw")
        env.daemons.remove(d)
        d.stop()
    wait_until(lambda: db.rows("SELECT COUNT(*) FROM sight WHERE cause = 'stopped'") == [(1,)], what="the stop")
    check_outages(db)
    h.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_entries_are_skipped_and_the_rest_is_kept(env, redis, kind):
    """Another program writes arbitrary entries into the streams: no entry stops the worker, and each is counted and logged."""
    db, s = database(env, kind), Scribe(env, 19)
    h = History(env, db, batch=100).start()
    s.write([s.entry("d1", "online", s.now), s.entry("d2", "online", s.now + 1)])
    good = s.entry("d1", "offline", s.now + 2)

    def hostile(**fields):
        env.redis.xadd(s.stream, {**good, **fields})
    hostile(id="x", time_ms=1, seq=1)                                          # an outage from 1970 ...
    hostile(id="x", state="online", time_ms=2**63 - 1, seq=2)                  # ... that never ends
    hostile(time_ms=-5), hostile(time_ms="12x"), hostile(time_ms=now_ms() + 2 * DAY)
    hostile(seq=2**48 - 1), hostile(seq=2**64), hostile(seq=0)
    hostile(id=b"\xff\xfe"), hostile(id="y" * 300), hostile(state="odd")
    hostile(id="z", reason=b"a\xffb", group=b"\xc3" * 300, node=b"n\x00", last_seen_ms=2**62)
    s.saw("blind", s.now, s.now + 9, cause="c" * 41)
    s.saw("blind", s.now + 10, s.now + 19, cause=b"\xe2\x28\xa1")
    s.saw("blind", s.now + 20, 2**63 - 1, cause="link")
    env.redis.xadd(s.tasks, {"task": "t0", "receiver": "d1", "sender": "a", "state": "sent", "time_ms": s.now})
    env.redis.xadd(s.tasks, {"task": "t1", "receiver": "d1", "sender": b"\xff", "state": "failed", "time_ms": s.now, "why": b"\xfe" * 400})
    env.redis.xadd(s.tasks, {"task": "t2", "receiver": "d1", "sender": "a", "state": "sent", "time_ms": 2**63 - 1})
    event = {"id": "0mabcdefg001", "what": "opened", "at_ms": s.now, "kind": "k" * 300, "group": b"\xfe" * 300, "device": "d1"}
    s.plan("d1", 1, s.now)
    for more in {}, {"id": b"\xff"}, {"what": "acknowledged", "by": "b" * 300}:
        env.redis.xadd(s.incidents, {**event, **more})
    s.plan("d1", s.now, 2**62)
    s.write([good, s.entry("d2", "offline", s.now + 3)])
    for stream in ("device:events", "device:sight", "task:events", "device:incident_events"):
        wait_read(h, env, stream)
    assert dict(db.rows("SELECT id, state FROM device WHERE id LIKE 'd%'")) == {"d1": "offline", "d2": "offline"}
    assert db.rows("SELECT reason, last_seen_ms FROM transition t JOIN device d ON d.dev = t.dev WHERE d.id = 'z'") == [("a?b", 0)]
    assert db.rows("SELECT from_ms, cause FROM sight ORDER BY from_ms") == [(s.now, "c" * 40), (s.now + 10, "?(?")]
    assert db.rows("SELECT task, sender, why FROM task ORDER BY task") == [("t0", "a", ""), ("t1", "?", "?" * 255)]
    assert db.rows("SELECT incident, kind, grp, device, acked_by FROM incident") == [("0mabcdefg001", "k" * 255, "?" * 255, "d1", "b" * 255)]
    assert db.rows("SELECT COUNT(*) FROM planned") == [(0,)]
    m = h.metrics()
    assert [m.get("history_unusable_total", kind=k) for k in ("fields", "time", "seq", "text", "early", "row")] == [4, 8, 3, 6, 1, 0]
    assert db.rows("SELECT COUNT(*) FROM transition t JOIN device d ON d.dev = t.dev WHERE d.id = 'x' AND t.at_ms > %d" % s.now) == [(1,)]
    assert "more than a day ahead of Redis' clock; one is at" in h.log(), h.log()
    # The greatest place there is: it is longer than its column, and the worker resumes behind it.
    env.redis.xadd(s.stream, s.entry("d1", "online", s.now + 4), id="%d-%d" % (2**64 - 1, 2**64 - 1))
    wait_read(h, env)
    h.stop()
    h.start()
    wait_read(h, env)
    assert dict(db.rows("SELECT id, state FROM device"))["d1"] == "online" and h.metrics().get("history_sql_losses_total") == 0
    env.redis.delete(s.stream)
    s.write([s.entry("d1", "offline", s.now + 5)])
    wait_read(h, env)
    assert dict(db.rows("SELECT id, state FROM device"))["d1"] == "offline"
    h.stop()


def odd_rows(h):
    return h.metrics().get("history_unusable_total", kind="row")


@pytest.mark.parametrize("column, value", [("since_ms", -2**63), ("since_ms", -10**14), ("since_ms", 1), ("since_ms", 2**63 - 1),
                                           ("state", "'odd'"), ("state", "''"), ("seq", 2**63 - 1), ("seq", -1)])
@pytest.mark.parametrize("kind", KINDS)
def test_an_impossible_row_of_a_device_counts_as_unknown(env, redis, kind, column, value):
    """The database may have been changed as well: the next transition sets the device's state, and no month gets impossible
    figures."""
    db, s = database(env, kind), Scribe(env, 23)
    h = History(env, db).start()
    s.write([s.entry("d1", "online", s.now), s.entry("d1", "offline", s.now + 1000)])
    wait_read(h, env)
    assert db.change("UPDATE device SET %s = %s WHERE id = 'd1'" % (column, value)) == 1
    s.write([s.entry("d1", "online", s.now + 3000)])
    wait_read(h, env, timeout=15)
    assert db.rows("SELECT state, since_ms, seq FROM device") == [("online", s.now + 3000, s.seq["d1"])]
    known = column == "seq"
    assert db.rows("SELECT from_ms - %d, to_ms - from_ms FROM outage" % s.now) == [(1000, 2000 if known else 0)]
    assert db.rows("SELECT SUM(outages), SUM(down_ms), SUM(gone_ms) FROM month") == [(1, 2000 if known else 0, 0)]
    assert db.rows("SELECT COUNT(*) FROM transition") == [(3,)]
    assert odd_rows(h) == 1 and "is the row of d1" in h.log()
    s.write([s.entry("d1", "offline", s.now + 4000), s.entry("d1", "online", s.now + 5000)])
    wait_read(h, env)
    assert db.rows("SELECT to_ms - from_ms FROM outage WHERE from_ms = %d" % (s.now + 4000)) == [(1000,)] and odd_rows(h) == 1
    assert h.metrics().get("history_sql_losses_total") == 0
    h.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_impossible_outages_and_months_do_not_stop_the_worker(env, redis, kind):
    db, s = database(env, kind), Scribe(env, 24)
    h = History(env, db).start()
    s.write([s.entry(d, state, s.now + at) for d in ("d1", "d2") for at, state in ((0, "online"), (1000, "offline"))])
    wait_read(h, env)
    assert db.change("UPDATE outage SET from_ms = %d" % -2**62) == 2
    assert db.change("UPDATE month SET outages = %d, down_ms = %d, gone_ms = -1" % (2**63 - 1, 2**63 - 1)) >= 2
    s.write([s.entry("d1", "online", s.now + 3000), s.entry("d2", "online", s.now + 4000)])
    wait_read(h, env, timeout=15)
    assert db.rows("SELECT COUNT(*) FROM outage WHERE to_ms IS NULL") == [(0,)]
    assert db.rows("SELECT SUM(down_ms), SUM(gone_ms) FROM month") == [(2000 + 3000, 0)]
    for path in ("outages?since=0", "uptime?since=0", "counts?since=%d&step=1h" % (now_ms() - DAY), "devices/d1", "bars?device=d1&since=1d&step=1h", "status"):
        assert h.get("/v1/history/" + path).status == 200, path
    assert h.metrics().get("history_sql_losses_total") == 0
    h.stop()


@pytest.mark.parametrize("at, n", [("junk", 3), ("x", 3), ("", 3), ("007-1", 3), ("5-18446744073709551616", 3), ("5-5", 2**63 - 1),
                                   ("5-5", -2**63)])
@pytest.mark.parametrize("kind", KINDS)
def test_an_impossible_offset_in_the_database_is_replaced(env, redis, kind, at, n):
    """The stream is read from its start, and entries that the database has are not written twice."""
    db, s = database(env, kind), Scribe(env, 25)
    h = History(env, db).start()
    s.some(20)
    wait_read(h, env)
    h.stop()
    assert db.change("UPDATE position SET at = '%s', n = %d WHERE stream = 'device:events'" % (at, n)) == 1
    h.start()
    s.some(5)
    wait_read(h, env, timeout=15)
    assert in_sql(db) == s.written and gaps(db) == []
    check_outages(db)
    assert h.metrics().get("history_sql_losses_total") == 0 and odd_rows(h) == 1 and "the row of device:events" in h.log()
    h.stop()


def test_values_of_another_type_do_not_stop_the_worker(env, redis):
    """Each column of SQLite holds a value of any type."""
    db, s = database(env), Scribe(env, 26)
    h = History(env, db).start()
    s.write([s.entry("d1", "online", s.now), s.entry("d1", "offline", s.now + 1000)])
    wait_read(h, env)
    h.stop()
    for n in ("'junk'", "5.5", "x'00ff'", "1e308"):
        assert db.change("UPDATE position SET n = %s WHERE stream <> 'schema'" % n) >= 4
        assert db.change("UPDATE position SET at = CAST(at AS BLOB) WHERE stream <> 'schema'") >= 4
        assert db.change("UPDATE device SET since_ms = %s, seq = %s" % (n, n)) == 1
        assert db.change("UPDATE month SET down_ms = %s" % n) >= 1
        h.start()
        s.write([s.entry("d1", "online" if s.state["d1"] == "offline" else "offline", s.now + 2000)])
        s.now += 2000
        wait_read(h, env, timeout=15)
        assert db.rows("SELECT state, since_ms, seq FROM device") == [(s.state["d1"], s.now, s.seq["d1"])]
        assert h.metrics().get("history_yielded_total") == 0
        h.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_differ_by_a_space_are_two(env, redis, kind):
    """Two names that differ by a space are two devices, also in tables of an older version, which took them for one."""
    db, s = database(env, kind), Scribe(env, 21)
    h = History(env, db).start()

    def tasks(*names):
        for name in names:
            env.redis.xadd(s.tasks, {"task": name, "receiver": "d1", "sender": "a", "state": "sent", "time_ms": s.now})
            s.saw("seeing", s.now, s.now + 9, node=name)
        wait_read(h, env, "task:events")
        wait_read(h, env, "device:sight")
    tasks("a", "a ")
    assert db.rows("SELECT COUNT(*) FROM task") == db.rows("SELECT COUNT(*) FROM sight") == [(2,)]
    h.stop()
    if kind == "mariadb":
        assert db.query("DELETE FROM task; DELETE FROM sight; UPDATE position SET n = 1 WHERE stream = 'schema'; " + "; ".join(
            "ALTER TABLE %s MODIFY %s VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL" % c
            for c in (("device", "grp"), ("sight", "node"), ("task", "task"))), db.base).returncode == 0
        h.start()
        tasks("b", "b ")
        assert db.rows("SELECT COUNT(*) FROM task") == db.rows("SELECT COUNT(*) FROM sight") == [(2,)]
        h.stop()
    assert db.rows("SELECT n FROM position WHERE stream = 'schema'") == [(3,)]


def test_a_stream_that_tells_any_number_of_entries(env, redis):
    db, s = database(env), Scribe(env, 22)
    s.some(5)
    last = env.redis.xinfo_stream(s.stream)["last-generated-id"]
    env.redis.execute_command("XSETID", s.stream, last, "ENTRIESADDED", 2**63 - 1, "MAXDELETEDID", "0-1")
    h = History(env, db).start()
    wait_read(h, env)
    s.some(5)
    wait_read(h, env)
    assert in_sql(db) == s.written and gaps(db) == []
    assert 0 <= db.rows("SELECT n FROM position WHERE stream = 'device:events'")[0][0] <= 2**53
    h.stop()


def test_without_the_right_to_ask_redis_for_its_clock_times_are_checked_all_the_same(env, redis):
    db, s = database(env), Scribe(env, 20)
    h = History(env, db, batch=100, redis=allow(env, "-time")).start()
    s.some(50)
    env.redis.xadd(s.stream, {**s.next(), "time_ms": now_ms() + 2 * DAY})
    s.some(1)
    wait_read(h, env)
    assert in_sql(db).items() >= dict(list(s.written.items())[:50]).items()
    assert h.metrics().get("history_unusable_total", kind="time") == 1 and h.status()["redis"] == "up"
