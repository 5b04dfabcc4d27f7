# SPDX-License-Identifier: MIT
"""Expected devices that were never heard: each is unseen once, over restarts, kills, take-overs and an emptied Redis."""
import json
import os
import random
import sys
import time

import pytest

from hw_build import SRC
from hw_env import NO_STALL, NO_STANDSTILL
from hw_wait import pass_time, throughout, wait_until

sys.path.append(os.path.join(SRC, "tests", "system", "faults"))
from shim import Shim  # noqa: E402
from test_deaf import DEVICES, PROTOCOLS, Fleet, acl, lines as log_lines  # noqa: E402
from test_nodes_mirror import Pair  # noqa: E402
from test_stream import Events  # noqa: E402

DAY = 86400
CALM = {"monitor": NO_STALL, "mqtt": NO_STANDSTILL}


def expect(env, *ids, **entry):
    """The inventory as another node would write it."""
    since = entry.pop("since_ms", int(time.time() * 1000))
    pipe = env.redis.pipeline(transaction=True)
    for i in ids:
        pipe.hset(env.key("expected"), i, json.dumps({**entry, "since_ms": since}, separators=(",", ":")))
    pipe.xadd(env.key("inventory"), {"ids": "\n".join(ids), "source": entry.get("source", "")})
    pipe.execute()


def unexpect(env, *ids):
    env.redis.hdel(env.key("expected"), *ids)
    env.redis.xadd(env.key("inventory"), {"ids": "\n".join(ids), "source": ""})


def unseen(d, query=""):
    return sorted(x["id"] for x in d.get("/v1/devices?state=unseen" + (query or "&limit=1000")).json()["devices"])


def in_redis(env):
    return sorted(env.redis.zrange(env.key("unseen"), 0, -1))


def wait_unseen(env, d, ids, timeout=15):
    wait_until(lambda: unseen(d) == sorted(ids) and in_redis(env) == sorted(ids), timeout, "%d devices to be unseen" % len(ids))


def group(env, first_within="1s", **keys):
    return {"group": {"first_within": first_within, **keys}}


def test_unseen_once(env):
    d = env.daemon(timeout="1s", **group(env), **CALM)
    env.beat("heard")
    wait_until(lambda: d.state("heard") == "online")
    begun = time.time()
    expect(env, "never", "heard", "later", name="Pump 7")
    wait_unseen(env, d, ["later", "never"])
    assert time.time() - begun >= 0.9
    assert env.edges("never") == [("unseen", "never_seen")]
    entry = env.events("never")[0]
    assert entry["last_seen_ms"] == "0" and entry["group"] == "default" and entry["seq"] == entry["time_ms"]
    assert env.redis.exists(env.key("state", "never")) == 0
    assert d.status()["unseen"] == 2 and d.status()["devices"] == 1
    assert d.metrics().get("devices", group="default", state="unseen") == 2
    assert d.device("never")["state"] == "unseen" and d.device("never")["reason"] == "never_seen"
    assert unseen(d, "&prefix=l") == ["later"] and unseen(d, "&search=EVE") == ["never"]
    first = d.get("/v1/devices?state=unseen&limit=1").json()
    second = d.get("/v1/devices?state=unseen&limit=1&after=" + first["next"]).json()
    assert sorted(x["devices"][0]["id"] for x in (first, second)) == ["later", "never"] and "next" not in second
    assert d.get("/v1/devices?state=unseen&sort=id").status == 400
    env.beat("later")
    wait_unseen(env, d, ["never"])
    assert env.edges("later") == [("unseen", "never_seen"), ("online", "heartbeat")]
    d.stop()
    d.start()
    wait_until(lambda: unseen(d) == ["never"])
    throughout(lambda: env.edges("never") == [("unseen", "never_seen")], 2.5)
    unexpect(env, "never")
    wait_until(lambda: unseen(d) == [])


def test_an_entry_that_could_not_be_written(env):
    """device:events refuses the entry for a while: the device is unseen only with its entry, and then once."""
    d = env.daemon(timeout="1s", **group(env), **CALM)
    env.check_events = False
    kept = env.key("kept")
    env.beat("heard")
    wait_until(lambda: env.edges("heard"))
    env.redis.rename(env.key("events"), kept)
    env.redis.set(env.key("events"), "x")
    expect(env, "never")
    wait_until(lambda: unseen(d) == ["never"] or "WRONGTYPE" in d.log(), what="the entry to be refused")
    throughout(lambda: not in_redis(env), 2, "it is not in device:unseen without an entry")
    env.redis.rename(kept, env.key("events"))
    wait_unseen(env, d, ["never"], 30)
    assert env.edges("never") == [("unseen", "never_seen")]


def test_unseen_before_the_import(env):
    """A device that was unseen is removed and imported again. The entry of the stream that names it as unseen is read
    together with both changes: the device is not unseen."""
    d = env.daemon(timeout="1s", **group(env, "1h"), **CALM)
    now = int(time.time() * 1000)
    pipe = env.redis.pipeline(transaction=True)
    pipe.hset(env.key("expected"), "a", json.dumps({"since_ms": now}))
    for fields in ({"source": ""}, {"unseen_ms": now - 5000}, {"source": ""}):
        pipe.xadd(env.key("inventory"), {"ids": "a", **fields})
    pipe.execute()
    wait_until(lambda: b'"a"' in d.get("/v1/inventory").body)
    throughout(lambda: unseen(d) == [], 2)


def test_no_room(env):
    """The table is full: a device whose heartbeats are refused is not unseen, also after a restart."""
    d = env.daemon(timeout="1s", monitor={**NO_STALL, "max_devices": 1}, mqtt=NO_STANDSTILL, **group(env))
    env.beat("known")
    wait_until(lambda: d.state("known") == "online")
    expect(env, "sends", "silent")

    def only_the_silent_one():
        env.beat("sends")
        return unseen(d) in ([], ["silent"])

    for _ in range(2):
        throughout(only_the_silent_one, 4)
        assert unseen(d) == ["silent"] and "sends" not in in_redis(env)
        d.stop()
        d.start()


@pytest.mark.parametrize("keys, payload, retain", [({"max_age": "10s"}, '{"time":1700000000}', False),
                                                   ({"retained": "ignore"}, "", True)], ids=["old", "flagged"])
def test_ignored_messages(env, keys, payload, retain):
    """Messages that are ignored are no heartbeats: the device is unseen."""
    d = env.daemon(timeout="1s", **group(env, **keys), **CALM)
    expect(env, "a")

    def sends():
        env.beat("a", payload, retain=retain)
        return unseen(d) == ["a"]

    wait_until(sends)
    throughout(sends, 2)


def test_events_reach_the_clients(env):
    d = env.daemon(timeout="1s", **group(env), **CALM)
    stream = Events(d)
    expect(env, "never")
    wait_until(lambda: stream.of("never") == ["unseen"])
    env.beat("never")
    wait_until(lambda: stream.of("never") == ["unseen", "online"])
    assert [x["id"] for x in stream.events] == [at for at, _ in env.redis.xrange(env.key("events"))]
    stream.close()


def test_first_within(env):
    """0: never; at least the device's timeout; a reload applies at once; the group of the entry counts."""
    groups = [("a", {"heartbeat": env.root + "/a/{id}/up", "status": "", "timeout": "1s", "first_within": "0"}),
              ("b", {"heartbeat": env.root + "/b/{id}/up", "status": "", "timeout": "1s", "first_within": "1s"})]
    d = env.daemon(groups=groups, **CALM)
    expect(env, "a1")
    expect(env, "b1", group="b")
    expect(env, "b2", group="b", timeout_ms=3600000)
    wait_unseen(env, d, ["b1"])
    assert env.events("b1")[0]["group"] == "b"
    throughout(lambda: unseen(d) == ["b1"], 2)
    d.edit("first_within = 0", "first_within = 1s")
    assert d.ctl("reload").returncode == 0
    wait_unseen(env, d, ["a1", "b1"])


def test_forgotten_is_expected_anew(env):
    d = env.daemon(timeout="1s", **group(env, "3s"), **CALM)
    expect(env, "a", name="A")
    before = json.loads(env.redis.hget(env.key("expected"), "a"))["since_ms"]
    env.beat("a")
    wait_until(lambda: d.state("a") == "offline", 10)
    throughout(lambda: in_redis(env) == [], 3)
    forgotten = time.time()
    assert d.forget("a").status == 204
    wait_until(lambda: json.loads(env.redis.hget(env.key("expected"), "a"))["since_ms"] > before)
    assert json.loads(env.redis.hget(env.key("expected"), "a"))["name"] == "A"
    wait_unseen(env, d, ["a"])
    assert time.time() - forgotten >= 2.9
    assert [s for s, _ in env.edges("a")] == ["online", "offline", "forgotten", "unseen"]


def test_expected_devices_are_kept(env):
    """forget_once_after and forget_after do not apply to an expected device."""
    d = env.daemon(timeout="500ms", monitor={**NO_STALL, "forget_once_after": "1s", "forget_after": "1s"}, mqtt=NO_STANDSTILL)
    expect(env, "a")
    wait_until(lambda: d.get("/metrics") and True)
    env.beat("a")
    env.beat("b")
    wait_until(lambda: d.state("b") is None and env.edges("b") and env.edges("b")[-1][0] == "forgotten", 20)
    throughout(lambda: d.state("a") == "offline", 3)
    unexpect(env, "a")
    wait_until(lambda: d.state("a") is None, 20, "a to be forgotten once it is not expected any more")


def test_timeout_of_the_inventory(env):
    d = env.daemon(timeout="1h", **CALM)
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    expect(env, "a", timeout_ms=1000)
    wait_until(lambda: d.state("a") == "offline", 10, "the shorter timeout to be in force")
    assert d.device("a")["timeout_ms"] == 1000 and d.device("a")["timeout_from"] == "inventory"
    expect(env, "b", timeout_ms=1500)
    pass_time(0.5)
    env.beat("b")
    wait_until(lambda: d.state("b") == "offline", 10)
    assert d.device("b")["timeout_ms"] == 1500
    unexpect(env, "a", "b")
    wait_until(lambda: d.device("a")["timeout_from"] == "group")


def test_an_emptied_redis(env):
    """Entries and unseen ids are written again, without an event."""
    env.own_redis()
    d = env.daemon(timeout="1s", **group(env), **CALM)
    expect(env, "a", "b", name="N")
    wait_unseen(env, d, ["a", "b"])
    scores = env.redis.zrange(env.key("unseen"), 0, -1, withscores=True)
    pass_time(1.5)  # the sight record is written each second
    env.redis.flushall()
    wait_until(lambda: in_redis(env) == ["a", "b"] and env.redis.hlen(env.key("expected")) == 2, 20)
    assert env.redis.zrange(env.key("unseen"), 0, -1, withscores=True) == scores
    throughout(lambda: env.events("a") == [] and unseen(d) == ["a", "b"], 3)
    expect(env, "c")
    wait_unseen(env, d, ["a", "b", "c"])


@pytest.mark.parametrize("mode", ["mirror", "standby"])
def test_nodes_whose_redis_is_emptied(env, mode):
    """The owners are lost too: each entry is written again, whoever owns its partition by then."""
    env.own_redis()
    nodes = [env.configure(node=n, monitor={"node_id": n, **NO_STALL}, mqtt=NO_STANDSTILL,
                           cluster={"mode": mode, "lease": "2s"},
                           groups=[(g, {"heartbeat": "%s/%s/{id}/up" % (env.root, g), "status": "", "timeout": "1s",
                                        "first_within": within}) for g, within in (("new", "1s"), ("old", "1h"))])
             for n in ("n1", "n2")]
    for d in nodes:
        d.start(seeing=False)

    def known():
        """How many devices each node that can answer has in its inventory."""
        answers = [d.get("/v1/inventory?limit=1000", Accept="application/x-ndjson") for d in nodes]
        return {len(a.body.splitlines()) for a in answers if a.status == 200}
    never, waiting = ["u%d" % k for k in range(20)], ["w%d" % k for k in range(20)]
    expect(env, *never, group="new")
    expect(env, *waiting, group="old")
    wait_until(lambda: in_redis(env) == sorted(never) and known() == {40}, 20, "all to be known")
    pass_time(1.5)  # the sight record is written each second
    env.redis.flushall()
    wait_until(lambda: env.redis.hlen(env.key("expected")) == 40 and in_redis(env) == sorted(never), 20, "all to be written again")
    assert [e for e in env.events() if e["state"] == "unseen"] == []
    pass_time(7)  # until the nodes have looked for what is still missing
    unexpect(env, *waiting)
    wait_until(lambda: known() == {20}, 20, "the removal to be known")
    throughout(lambda: env.redis.hlen(env.key("expected")) == 20, 6)


def test_blind(env):
    """An id that is overdue is unseen only after the monitor has seen for the timeout."""
    d = env.daemon(timeout="4s", **group(env, "1h"), **CALM)
    begun = time.monotonic()
    expect(env, "a", since_ms=int((time.time() - 86400) * 1000))
    throughout(lambda: in_redis(env) == [], max(0.1, 2.5 - (time.monotonic() - begun)))
    wait_unseen(env, d, ["a"])
    assert len(env.edges("a")) == 1


@PROTOCOLS
def test_a_right_to_read_that_is_missing_from_the_start(env, protocol):
    """The expected devices send heartbeats that the monitor may not read: none is unseen, and the group is deaf."""
    f = Fleet(env, protocol, first=acl(read=False), group={"first_within": "3s"})
    expect(env, *DEVICES, "silent")
    with f.beating:
        f.is_deaf()
        throughout(lambda: in_redis(env) == [] and f.d.status()["blind_cause"] == "deaf", 8)
        assert log_lines(f.d, r"blind \(deaf\): no message on .* devices of group .default. are not judged"), f.d.log()
        f.set_acl(acl())
        f.all_online()
        wait_unseen(env, f.d, ["silent"])
    assert [e["id"] for e in env.events() if e["state"] == "unseen"] == ["silent"]


@pytest.mark.parametrize("started, stepped", [(40, 40), (0, 40), (40, 0), (-40, 0)],
                         ids=["ahead", "set-ahead", "set-right", "behind-then-right"])
def test_a_wrong_clock_calls_nothing_unseen(env, started, stepped):
    """The time since the import is measured by Redis' clock, whatever this machine's clock shows."""
    shim = Shim(env.own_dir("shim"))
    shim.step_wall(started * DAY)
    d = env.daemon(timeout="1s", env=shim.env, **group(env, "1d"), **CALM)
    expect(env, "a", "b")
    expect(env, "over", since_ms=int((time.time() - 2 * DAY) * 1000))
    wait_unseen(env, d, ["over"])
    shim.step_wall(stepped * DAY)
    throughout(lambda: in_redis(env) == ["over"], 4)
    assert abs(int(env.events("over")[0]["time_ms"]) / 1000 - time.time()) < 60
    d.stop()
    d.start(env=shim.env)
    throughout(lambda: in_redis(env) == ["over"], 4)


@pytest.mark.parametrize("days", [40, -40])
def test_an_import_by_a_wrong_clock(env, days):
    """since_ms is by Redis' clock: the devices are unseen in time, and not at once."""
    shim = Shim(env.own_dir("shim"))
    shim.step_wall(days * DAY)
    d = env.daemon(timeout="1s", env=shim.env, **group(env, "4s"), **CALM)
    begun = time.time()
    rows = env.own_dir("rows") / "pumps.csv"
    with open(rows, "w") as f:
        f.write("id,name\na,A\n")
    assert d.ctl("devices", "import", rows).returncode == 0
    assert d.ctl("devices", "set", "b", "name=B").returncode == 0
    wait_until(lambda: env.redis.hlen(env.key("expected")) == 2)
    for i in ("a", "b"):
        assert abs(json.loads(env.redis.hget(env.key("expected"), i))["since_ms"] / 1000 - begun) < 10
    throughout(lambda: in_redis(env) == [], max(0.1, 3 - (time.time() - begun)))
    wait_unseen(env, d, ["a", "b"])


def test_a_stored_time_that_is_ahead(env):
    """A since_ms that is more than a day ahead counts as now, and is replaced."""
    far = int((time.time() + 40 * DAY) * 1000)
    expect(env, "a", since_ms=far)
    shim = Shim(env.own_dir("shim"))
    shim.step_wall(-40 * DAY)  # an entry whose time is right is not ahead of this clock
    d = env.daemon(timeout="1s", env=shim.env, **group(env, "2s"), **CALM)
    expect(env, "b", since_ms=far)
    expect(env, "right")
    wait_unseen(env, d, ["a", "b", "right"])
    for i in ("a", "b"):
        assert abs(json.loads(env.redis.hget(env.key("expected"), i))["since_ms"] / 1000 - time.time()) < 60
    assert "has a since_ms that is more than a day ahead" in d.log()


def test_kills(env):
    """heartwheeld is killed again and again around the times at which devices become unseen."""
    rng = random.Random(int(os.environ.get("HW_SEED", "7")))
    d = env.daemon(timeout="300ms", **group(env, "1s"), **CALM)
    ids = ["d%d" % i for i in range(300)]
    for k in range(6):
        expect(env, *ids[50 * k:50 * k + 50])
        pass_time(0.8 + rng.random())
        d.kill()
        d.start(seeing=False)
    wait_unseen(env, d, ids, 40)
    pass_time(1)
    assert sorted(e["id"] for e in env.events()) == sorted(ids)


def test_several_nodes(env):
    """Each device is unseen once, whoever owns it, also if the owner is killed at that moment."""
    pair = Pair(env, timeout="1s", **{"group": {"first_within": "2s"}, "mqtt": NO_STANDSTILL})
    a, b = pair.nodes
    ids = ["d%d" % i for i in range(400)]
    expect(env, *ids)
    pass_time(1.9)
    a.kill()
    wait_unseen(env, b, ids, 40)
    assert b.status()["unseen"] == 400
    a.start(seeing=False)
    a.wait_seeing()
    wait_until(lambda: unseen(a, "&limit=1000") == sorted(ids), 20)
    pair.wait_settled(pair.nodes, 40)
    for i in ids[:20]:
        env.beat(i)
    for d in pair.nodes:
        wait_until(lambda: unseen(d, "&limit=1000") == sorted(ids[20:]), 20)
    wait_until(lambda: in_redis(env) == sorted(ids[20:]))
    states = {i: [e["state"] for e in env.events(i)] for i in ids}
    for k, i in enumerate(ids):  # a device that has sent once may be offline again by now
        assert states[i][:2] == (["unseen", "online"] if k < 20 else ["unseen"]), states
        assert states[i][2:] in ([], ["offline"]), states


def test_a_node_without_the_group(env):
    """A rolling change of two nodes: the node that lacks the entry's group does not call its devices unseen by another group."""
    both = [("fast", {"heartbeat": env.root + "/a/{id}/up", "status": "", "timeout": "1s", "first_within": "1s"}),
            ("fresh", {"heartbeat": env.root + "/f/{id}/up", "status": "", "timeout": "1s", "first_within": "1h"})]
    pair = Pair(env, of={"a": {"groups": both}, "b": {"groups": both[:1]}}, mqtt=NO_STANDSTILL)
    a, b = pair.nodes
    ids = ["x%d" % i for i in range(40)]
    expect(env, *ids, group="fresh")
    expect(env, "of_fast", "of_none")
    wait_unseen(env, b, ["of_fast", "of_none"])
    throughout(lambda: in_redis(env) == ["of_fast", "of_none"], 4)
    assert "in group 'fresh', which this monitor does not have" in b.log()
    assert "which this monitor does not have" not in a.log()
    b.rewrite(b.conf.read_text().replace("[group fast]", "[group fresh]\nheartbeat = %s/f/{id}/up\ntimeout = 1s\n"
                                         "first_within = 1s\n\n[group fast]" % env.root))
    a.edit("first_within = 1h", "first_within = 1s")
    for d in pair.nodes:
        assert d.ctl("reload").returncode == 0
    wait_unseen(env, b, ["of_fast", "of_none", *ids], 20)
    assert {e["group"] for i in ids for e in env.events(i)} == {"fresh"}


def lines(path):
    return [json.loads(l) for l in path.read_text().splitlines()]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_memory(env, how):
    """store = memory: the inventory and what is unseen are in a file."""
    path = env.dir / "inventory.ndjson"
    since = int(time.time() * 1000)
    path.write_text("".join(json.dumps(x) + "\n" for x in [
        {"id": "a", "name": "old", "since_ms": 5}, {"id": "b", "since_ms": since}, {"id": "gone", "since_ms": 5},
        {"id": "a", "name": "A", "since_ms": since}, {"id": "gone", "removed": True}]) + '{"id":"cut')
    d = env.daemon(timeout="1s", store={"type": "memory"}, monitor={**NO_STALL, "inventory": path}, mqtt=NO_STANDSTILL,
                   **group(env))
    assert "inventory.ndjson:6: not an entry of the inventory" in d.log()
    assert [x["id"] for x in lines(path)] == ["a", "b"] and lines(path)[0]["name"] == "A"
    wait_until(lambda: unseen(d) == ["a", "b"])
    wait_until(lambda: sum("unseen_ms" in x for x in lines(path)) == 2)
    at = d.device("a")["since_ms"]
    env.beat("b")
    wait_until(lambda: unseen(d) == ["a"])
    getattr(d, how)()
    d.start()
    assert unseen(d) == ["a"] and d.device("a")["since_ms"] == at
    assert [x.get("unseen_ms") for x in lines(path)] == [at, None]
    throughout(lambda: d.log().count("it is unseen") <= 2, 2)


@pytest.mark.parametrize("first_within, days", [("1d", 40), ("2s", .5)], ids=["early", "late"])
def test_memory_and_a_clock_that_was_behind(env, first_within, days):
    """store = memory: the machine starts with a clock that is behind, and NTP sets it. The stored times are right by the
    new clock: each device is unseen in time."""
    path = env.dir / "inventory.ndjson"
    path.write_text(json.dumps({"id": "a", "since_ms": int(time.time() * 1000)}) + "\n")
    shim = Shim(env.own_dir("shim"))
    shim.step_wall(-days * DAY)
    d = env.daemon(timeout="1s", env=shim.env, store={"type": "memory"}, monitor={**NO_STALL, "inventory": path},
                   mqtt=NO_STANDSTILL, **group(env, first_within))
    shim.step_wall(0)
    wait_until(lambda: "the wall clock was set forward" in d.log())
    begun = time.time()
    assert d.ctl("devices", "set", "b", "name=B").returncode == 0
    if first_within == "2s":
        wait_until(lambda: unseen(d) == ["a", "b"])
        return
    d.stop()
    d.start(env=shim.env)
    throughout(lambda: unseen(d) == [], 4)
    assert all(abs(x["since_ms"] / 1000 - begun) < 30 for x in lines(path))


def test_labels(env):
    """The labels of the inventory are in the hash, and in the entries of the stream, for the matchers of heartwheel-alert."""
    d = env.daemon(timeout="1s", **CALM)
    env.beat("a")
    wait_until(lambda: env.hash("a").get("state") == "online")
    expect(env, "a", "b", labels={"floor": "2", "site": 'no"rth'})
    wait_until(lambda: json.loads(env.hash("a").get("labels", "{}")) == {"floor": "2", "site": 'no"rth'})
    wait_until(lambda: d.state("a") == "offline")
    env.beat("b")
    wait_until(lambda: len(env.events("b")) == 2)
    for e in (env.events("a")[1], *env.events("b")):
        assert json.loads(e["labels"]) == {"floor": "2", "site": 'no"rth'}
    assert "labels" not in env.events("a")[0]
    expect(env, "a", labels={"site": "south"})
    wait_until(lambda: env.hash("a").get("labels") == '{"site":"south"}')
    expect(env, "a", name="A")
    unexpect(env, "b")
    wait_until(lambda: "labels" not in env.hash("a") and "labels" not in env.hash("b"))
    assert env.hash("a")["state"] == "offline"
