# SPDX-License-Identifier: MIT
"""The inventory by the control API: imports, lists, changes of single entries. With Redis and with store = memory."""
import json
import os
import pathlib
import socket
import subprocess
import threading
import time

import pytest

from hw_build import HEARTWHEELCTL
from hw_history import fill, no_room
from hw_relay import Relay
from hw_wait import wait_until
from test_nodes_mirror import Pair
from test_stream import Events

GROUPS = [("valves", {"heartbeat": None, "timeout": "1h"}), ("pumps", {"heartbeat": None, "timeout": "1h"})]
CSV, NDJSON = "text/csv", "application/x-ndjson"


def daemon(env, store="redis", first_within="0", place=None, **more):
    groups = [(name, dict(keys, heartbeat="%s/%s/{id}" % (env.root, name), first_within=first_within)) for name, keys in GROUPS]
    monitor = {"inventory": (place or env.own_dir("inventory")) / "inventory.ndjson"} if store == "memory" else {}
    d = env.daemon(groups=groups, store={"type": store}, monitor=monitor, **more)
    wait_until(lambda: d.get("/v1/inventory").status == 200, what="the inventory to be read")
    return d


def put(d, body, query="", kind=CSV):
    body = body if isinstance(body, bytes) else body.encode()
    return d.request("PUT", "/v1/inventory" + query, body, {"Content-Type": kind})


def counts(answer, status=200):
    assert answer.status == status, answer
    a = answer.json()
    return {k: a[k] for k in ("added", "changed", "same", "removed", "wrong") if a[k]}


def entries(d, query="", accept=NDJSON):
    """Every entry, page by page: {id: entry}."""
    found, after = {}, ""
    while after is not None:
        a = d.get("/v1/inventory?limit=1000" + query + after, Accept=accept)
        assert a.status == 200, a
        for line in a.body.decode().splitlines():
            e = json.loads(line)
            assert e["id"] not in found
            found[e.pop("id")] = e
        after = "&after=" + a.headers["Heartwheel-Next"] if "Heartwheel-Next" in a.headers else None
    return found


def values(d, **query):
    """The entries without what the import adds."""
    return {k: {n: v for n, v in e.items() if n not in ("source", "since_ms")} for k, e in entries(d, **query).items()}


@pytest.fixture(params=["redis", "memory"])
def each(env, request):
    return daemon(env, request.param)


def test_import_is_one_change(each):
    d = each
    text = "id;name;group;labels;timeout\r\npump-1;Pump 1;pumps;\"site=north;floor=2\";5m\r\npump-2;;;;\r\n"
    assert counts(put(d, "\ufeff" + text, "?source=a.csv")) == {"added": 2}
    assert values(d) == {"pump-1": {"name": "Pump 1", "group": "pumps", "labels": {"floor": "2", "site": "north"},
                                    "timeout_ms": 300000}, "pump-2": {}}
    first = entries(d)
    assert {e["source"] for e in first.values()} == {"a.csv"} and all(e["since_ms"] > 0 for e in first.values())
    assert counts(put(d, text, "?source=a.csv")) == {"same": 2}
    assert entries(d) == first

    # A column that is missing leaves, an empty cell clears; since_ms stays.
    assert counts(put(d, "id,name,label.site\npump-1,,south\n", "?source=a.csv")) == {"changed": 1}
    now = entries(d)
    assert now["pump-1"]["labels"] == {"floor": "2", "site": "south"} and "name" not in now["pump-1"]
    assert now["pump-1"]["since_ms"] == first["pump-1"]["since_ms"] and now["pump-1"]["timeout_ms"] == 300000
    # The source is the last import that named the id.
    assert counts(put(d, "id\npump-2\n", "?source=b.csv")) == {"changed": 1}
    assert entries(d, "&source=b.csv").keys() == {"pump-2"}
    assert entries(d, "&group=pumps").keys() == {"pump-1"}
    # NDJSON
    assert counts(put(d, '{"id":"pump-1","timeout":null}\n{"id":"v","parent":["pump-1","pump-2"]}\n', kind=NDJSON)) == {
        "added": 1, "changed": 1}
    assert values(d)["v"] == {"parent": ["pump-1", "pump-2"]} and "timeout_ms" not in values(d)["pump-1"]


def test_a_wrong_line_stops_all(each):
    d = each
    text = "id,name,group,timeout\na,A,,\nb,B,pump,\na,again,,\nc,C,,soon\n,D,,\n" + "x" * 70000 + "\ne,E,,\n"
    a = put(d, text)
    assert counts(a, 400) == {"wrong": 5}
    assert [(e["line"], e["column"], e["message"].split(":")[0]) for e in a.json()["errors"]] == [
        (3, "group", "monitor.conf has no group 'pump'; did you mean 'pumps'?"), (4, "id", "'a' is in line 2 already"),
        (5, "timeout", "'soon' is not a duration"), (6, "id", "the id is missing"), (7, "", "the row is longer than 64 KiB")]
    assert a.json()["rows"] == 7 and entries(d) == {}
    assert counts(put(d, text, "?skip_bad=1&dry_run=1")) == {"added": 2, "wrong": 5}
    assert entries(d) == {}
    assert counts(put(d, text, "?skip_bad=1")) == {"added": 2, "wrong": 5}
    assert values(d) == {"a": {"name": "A"}, "e": {"name": "E"}}
    # Too many labels together with the stored ones.
    head = "id," + ",".join("label.l%d" % k for k in range(10))
    assert counts(put(d, head + "\na" + ",1" * 10 + "\n")) == {"changed": 1}
    a = put(d, head.replace("label.l", "label.m") + "\ne\na" + ",1" * 10 + "\n")
    assert counts(a, 400) == {"same": 1, "wrong": 1} or a.json()["wrong"] == 1
    assert a.json()["errors"][0]["line"] == 3 and "more than 16 labels" in a.json()["errors"][0]["message"]
    # At most 100 are listed.
    a = put(d, "id\n" + "".join("a+%d\n" % k for k in range(1000)))
    assert a.json()["wrong"] == 1000 and len(a.json()["errors"]) == 100
    a = put(d, "id,name\nk\u00fc,K\u00fcche\n".encode("latin-1"))
    assert a.status == 400 and a.json()["errors"][0]["line"] == 2 and "not UTF-8" in a.json()["errors"][0]["message"]


def test_prune(each):
    d = each
    rows = ["d-%03d\n" % k for k in range(500)]
    assert counts(put(d, "id\n" + "".join(rows), "?source=f")) == {"added": 500}
    assert counts(put(d, "id\nother\n", "?source=g")) == {"added": 1}
    assert counts(put(d, "id\n" + "".join(rows[:400]), "?source=f&prune=1&dry_run=1")) == {"same": 400, "removed": 100}
    a = put(d, "id\n" + "".join(rows[:399]), "?source=f&prune=1")
    assert a.status == 400 and "101 of the 500" in a.json()["error"], a
    assert len(entries(d)) == 501
    assert counts(put(d, "id\n" + "".join(rows[:399]), "?source=f&prune=1&force=1")) == {"same": 399, "removed": 101}
    assert counts(put(d, "id\n" + "".join(rows[:299]), "?source=f&prune=1")) == {"same": 299, "removed": 100}
    assert entries(d).keys() == {r.strip() for r in rows[:299]} | {"other"}


def test_parts(each):
    d = each
    assert counts(put(d, "id,name\na,A\n", "?source=s&import=i1&part=1")) == {}
    assert put(d, "id\nx\n").status == 409  # another import runs
    assert put(d, "b,B\n", "?source=s&import=i1&part=3").status == 409
    assert put(d, "b,B\n", "?source=t&import=i1&part=2").status == 409
    assert put(d, "b,B\n", "?source=s&import=i2&part=2").status == 409
    assert counts(put(d, "b,B\nc,", "?source=s&import=i1&part=2")) == {}
    assert entries(d) == {}
    assert counts(put(d, "C\n", "?source=s&import=i1&part=3&last=1")) == {"added": 3}
    assert values(d) == {k: {"name": k.upper()} for k in "abc"}
    assert put(d, "d\n", "?import=i1&part=4&last=1").status == 409  # it has ended
    # Part 1 again begins anew.
    assert counts(put(d, "id\ny\n", "?import=i3&part=1")) == {}
    assert counts(put(d, "id\nz\n", "?import=i3&part=1&last=1")) == {"added": 1}
    assert "y" not in entries(d)


def test_wrong_requests(each):
    d = each
    for query in ("?x=1", "?part=1", "?import=a", "?import=a&part=0", "?last=1", "?prune=1", "?prune=2&source=a", "?source=%01"):
        assert put(d, "id\na\n", query).status == 400, query
    assert put(d, "id\na\n", kind="application/json").status == 415
    assert put(d, "id\n" + "x" * 80 * 120000).status == 413
    for query in ("?after=x", "?limit=0", "?limit=1001", "?x=1"):
        assert d.get("/v1/inventory" + query).status == 400, query
    assert d.request("POST", "/v1/inventory", b"").status == 405
    assert counts(put(d, ""), 400) == {"wrong": 1}
    assert counts(put(d, "", kind=NDJSON)) == {}


def patch(d, device, body):
    return d.request("PATCH", d.path_of(device), json.dumps(body).encode(), {"Content-Type": "application/json"})


def test_single_entries(each):
    d = each
    a = patch(d, "pump/1", {"name": "Pump 1", "labels": {"site": "north", "old": "x"}, "timeout": "5m"})
    assert a.status == 201
    entry = a.json()
    assert entry.pop("since_ms") > 0
    assert entry == {"id": "pump/1", "name": "Pump 1", "labels": {"old": "x", "site": "north"}, "timeout_ms": 300000, "source": "local"}
    a = patch(d, "pump/1", {"labels": {"old": None, "new": "y"}, "name": None})
    assert a.status == 200 and a.json()["labels"] == {"new": "y", "site": "north"} and "name" not in a.json()
    assert values(d) == {"pump/1": {"labels": {"new": "y", "site": "north"}, "timeout_ms": 300000}}
    for body, what in (({"group": "x"}, "no group 'x'"), ({"parent": "pump/1"}, "own parent"), ({"nmae": 1}, "unknown column"),
                       ({"id": "a"}, "in the path"), ({"timeout": "5 min"}, "is not a duration"), ([], "not a JSON object")):
        a = patch(d, "pump/1", body)
        assert a.status == 400 and what in a.json()["error"], a
    assert patch(d, "a+b", {}).status == 400
    assert patch(d, "bare", {}).status == 201
    gone = d.request("DELETE", "/v1/inventory/" + "pump%2F1")
    assert gone.status == 204
    assert d.request("DELETE", "/v1/inventory/" + "pump%2F1").status == 404
    assert entries(d).keys() == {"bare"}


def test_a_full_disk(env):
    """With store = memory, a change that could not be written is refused, and later changes are not: what was accepted is there
    after a restart."""
    place = env.own_dir("inventory")
    if not no_room(place):
        pytest.skip("no right to mount a file system of 4 MB")
    try:
        d = daemon(env, "memory", place=place)
        patch(d, "a", {"note": "n"})
        fill(place)
        refused = next(k for k in range(100) if patch(d, "b%d" % k, {"note": "n" * 900}).status >= 400)
        assert patch(d, "c", {"note": "n"}).status >= 400 and "c" not in entries(d)
        (place / "filler").unlink()
        assert patch(d, "d", {"note": "n"}).status == 201
        d.request("DELETE", "/v1/inventory/a")
        before = entries(d)
        d.die()
        d.start()
        assert entries(d) == before and {"b%d" % refused, "d"} <= before.keys() and "a" not in before
        assert not [l for l in d.log().splitlines() if "not an entry of the inventory" in l], d.log()
        d.stop()
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_unseen_while_the_disk_is_full(env):
    """With store = memory, an id that became unseen while the disk was full is in the file as soon as there is room."""
    place = env.own_dir("inventory")
    if not no_room(place):
        pytest.skip("no right to mount a file system of 4 MB")
    try:
        d = daemon(env, "memory", first_within="1s", place=place)
        patch(d, "a", {"timeout": "2s", "note": "n" * 900})
        patch(d, "b", {"timeout": "6s"})
        fill(place)
        next(k for k in range(100) if patch(d, "c%d" % k, {"note": "n" * 900}).status >= 400)
        wait_until(lambda: d.get("/v1/devices/a").json().get("state") == "unseen", what="a to be unseen")
        (place / "filler").unlink()
        wait_until(lambda: d.get("/v1/devices/b").json().get("state") == "unseen", what="b to be unseen")
        d.die()
        lines = [json.loads(l) for l in (place / "inventory.ndjson").read_text().splitlines()]
        assert {x["id"] for x in lines if "unseen_ms" in x} == {"a", "b"}
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_it_survives_a_restart(env):
    escaped = 255 * "\\"
    for store in ("redis", "memory"):
        d = daemon(env, store)
        put(d, "id,name\na,A\nb,B\n%s,C\n" % escaped)
        patch(d, "b", {"name": "BB"})
        d.request("DELETE", "/v1/inventory/a")
        before = entries(d)
        d.die() if store == "redis" else d.stop()
        d.start()
        wait_until(lambda: d.get("/v1/inventory").status == 200, what="the inventory to be read")
        assert entries(d) == before and before.keys() == {"b", escaped}
        d.stop()


def test_without_a_file(env):
    d = env.daemon(timeout="1h", store={"type": "memory"})
    a = put(d, "id\na\n")
    assert a.status == 503 and "set [monitor] inventory" in a.json()["error"]
    assert d.get("/v1/inventory").status == 503 and patch(d, "a", {}).status == 503


def test_without_redis(env):
    redis = env.own_redis()
    d = daemon(env)
    redis.stop()
    wait_until(lambda: put(d, "id\na\n").status == 503, what="the loss of Redis")
    redis.start()
    wait_until(lambda: put(d, "id\na\n").status == 200, 20, what="Redis")
    assert entries(d).keys() == {"a"}


def test_changed_entries_with_a_distant_redis(env):
    """The table has a change some turns after the store. Each answer waits for it, and does not wait longer."""
    way = Relay(lambda: env.redis_server.port)
    d = daemon(env, redis={"port": way.port})
    way.delay = 0.03
    text = "id,name,note\na,%s," + "n" * 1000 + "\n"
    assert counts(put(d, text % "A")) == {"added": 1}
    for name in ("B", "C", "D"):
        begun = time.monotonic()
        assert counts(put(d, text % name)) == {"changed": 1}
        assert values(d)["a"]["name"] == name
        assert time.monotonic() - begun < 2
    way.close()


def test_an_export_is_an_import_that_changes_nothing(each):
    d = each
    rows = [{"id": "d-%d" % k, "name": "N;\"%d\"" % k, "labels": {"a": "x;y" if k % 2 else "z", "b": "\"q\""}, "note": "1\n2",
             "parent": ["g-1", "g,2"], "timeout": "90s", "group": "valves"} for k in range(1500)]
    assert counts(put(d, "".join(json.dumps(r) + "\n" for r in rows), "?source=s", NDJSON)) == {"added": 1500}
    before = entries(d)
    for accept in (CSV, NDJSON):
        body, after = b"", "?limit=1000"
        while after:
            a = d.get("/v1/inventory" + after, Accept=accept)
            assert a.headers["Content-Type"].startswith(accept)
            body += a.body
            after = "?limit=1000&after=" + a.headers["Heartwheel-Next"] if "Heartwheel-Next" in a.headers else None
        assert counts(put(d, body, "?source=s", accept)) == {"same": 1500}
        assert entries(d) == before


def test_clients_that_leave(each):
    """A client that disconnects does not keep the import, and its connection's end harms nobody."""
    d = each
    text = "id\n" + "".join("d-%06d\n" % k for k in range(20000))
    for k in range(5):
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(d.socket))
        s.sendall(("PUT /v1/inventory?source=s%d HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\nContent-Length: %d\r\n\r\n%s"
                   % (k, len(text), text)).encode())
        s.close()
    wait_until(lambda: len(entries(d)) == 20000, 30, "an import to end")
    wait_until(lambda: put(d, "id\nlast\n").status == 200, 30, "the imports to end")
    assert len(entries(d)) == 20001


def test_two_imports_at_once(each):
    d = each
    text = "id\n" + "".join("d-%06d\n" % k for k in range(100000))
    answers = []
    threads = [threading.Thread(target=lambda k=k: answers.append(put(d, text, "?source=s%d" % k).status)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert answers.count(200) >= 1 and set(answers) <= {200, 409}
    assert len(entries(d)) == 100000


# --- heartwheelctl devices


def written(d, name, text):
    path = d.dir / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_ctl_import_and_export(each):
    d = each
    file = written(d, "pumps.csv", "\ufeffid;name;labels;note\r\npump-1;\"Pump; 1\";\"site=north\";\"a\r\nb\"\r\npump-2;;;\r\n")
    r = d.ctl("devices", "import", file, "--dry-run")
    assert (r.returncode, r.stdout) == (0, "would be: 2 added, 0 changed, 0 the same, 0 removed\n"), r
    r = d.ctl("devices", "import", file)
    assert (r.returncode, r.stdout) == (0, "2 added, 0 changed, 0 the same, 0 removed\n"), r
    assert {e["source"] for e in entries(d).values()} == {"pumps.csv"}
    for more, name in (([], "x.csv"), (["--json"], "x.ndjson")):
        text = d.ctl("devices", "export", *more).stdout
        r = d.ctl("devices", "import", written(d, name, text), "--source", "pumps.csv")
        assert r.stdout == "0 added, 0 changed, 2 the same, 0 removed\n", r
        r = d.ctl("devices", "import", "-", "--source", "pumps.csv", input=text)
        assert r.stdout == "0 added, 0 changed, 2 the same, 0 removed\n", r
    assert d.ctl("devices", "export", "--group", "valves").stdout == "id,name,group,parent,labels,timeout,note\n"
    assert d.ctl("devices", "export", "--group", "x").returncode == 1
    assert d.ctl("devices", "import", "/nowhere.csv").returncode == 1


def test_ctl_names_each_wrong_row(each):
    d = each
    file = written(d, "bad.csv", "id,name,timeout\na,A,1\nb,K\u00fcche,5 min\n,C,\n".encode("latin-1"))
    r = d.ctl("devices", "import", file)
    assert r.returncode == 1 and entries(d) == {}
    lines = r.stderr.splitlines()
    assert lines[0].startswith(file + ":3: column 'name': byte 0xfc is not UTF-8"), lines
    assert lines[1].startswith(file + ":4: column 'id': the id is missing"), lines
    assert lines[2] == "heartwheelctl: 2 of 3 rows are wrong: nothing was imported"
    r = d.ctl("devices", "import", file, "--skip-bad")
    assert (r.returncode, r.stdout) == (0, "1 added, 0 changed, 0 the same, 0 removed, 2 wrong and left out\n"), r
    r = d.ctl("devices", "import", written(d, "book.xlsx", b"PK\x03\x04\x14\x00"))
    assert r.returncode == 1 and "xlsx, ods): save it as CSV UTF-8" in r.stderr


def test_ctl_sends_a_big_file_in_parts(each):
    d = each
    text = "id,note\n" + "".join("d-%06d,%s\n" % (k, "x" * 200) for k in range(50000))  # 10 MB
    r = d.ctl("devices", "import", written(d, "big.csv", text))
    assert (r.returncode, r.stdout) == (0, "50000 added, 0 changed, 0 the same, 0 removed\n"), r
    r = d.ctl("devices", "import", written(d, "big.csv", text.replace("d-049999,x", "d-049999+,x")))
    assert r.returncode == 1 and "big.csv:50001: column 'id'" in r.stderr, r
    r = d.ctl("devices", "import", written(d, "big.csv", "id\n"), "--prune")
    assert r.returncode == 1 and "50000 of the 50000 ids" in r.stderr, r
    r = d.ctl("devices", "import", written(d, "big.csv", "id\nd-000007\n"), "--prune", "--force")
    assert r.stdout == "0 added, 0 changed, 1 the same, 49999 removed\n", r


def test_ctl_a_file_that_changes_while_it_is_read(each):
    """Its end would be missing, and the device in its last line could have half of its name. With --prune, more."""
    d = each
    path = d.dir / "grows.csv"
    path.write_text("id,note\n" + "".join("d-%06d,%s\n" % (k, "x" * 200) for k in range(50000)))  # 10 MB
    assert put(d, "id\nother\n", "?import=other&part=1").status == 200
    ctl = subprocess.Popen([HEARTWHEELCTL, "-s", d.socket, "devices", "import", path], stderr=subprocess.PIPE, text=True)
    fds = pathlib.Path("/proc/%d/fd" % ctl.pid)  # the first part waits until the other import ends
    wait_until(lambda: [fd for fd in fds.iterdir() if os.path.realpath(fd) == str(path)
                        and "pos:\t0\n" not in (fds.parent / "fdinfo" / fd.name).read_text()], what="a file that is read")
    os.truncate(path, 9 << 20)
    assert put(d, "", "?import=other&part=2&last=1").status == 200
    err = ctl.communicate(timeout=60)[1]
    assert ctl.returncode == 1 and "grows.csv: was changed while it was read: nothing was imported" in err, err
    assert list(entries(d)) == ["other"]


def test_ctl_set_and_remove(each):
    d = each
    assert d.ctl("devices", "set", "pump/1", "name=Pump 7", "label.site=north", "timeout=5m", "note=a=b").returncode == 0
    assert values(d) == {"pump/1": {"name": "Pump 7", "labels": {"site": "north"}, "timeout_ms": 300000, "note": "a=b"}}
    assert d.ctl("devices", "set", "pump/1", "name=", "label.site=").returncode == 0
    assert values(d) == {"pump/1": {"timeout_ms": 300000, "note": "a=b"}}
    r = d.ctl("devices", "set", "pump/1", "nmae=x")
    assert r.returncode == 1 and "pump/1: column 'nmae': unknown column" in r.stderr
    r = d.ctl("devices", "set", "pump/1", b"label.site=\xff")
    assert r.returncode == 1 and "not UTF-8" in r.stderr, r
    assert d.ctl("devices", "set", "pump/1", "name").returncode == 2
    assert d.ctl("devices", "set", "pump/1").returncode == 2
    assert d.ctl("devices", "remove", "pump/1").returncode == 0 and entries(d) == {}
    assert d.ctl("devices", "remove", "pump/1").returncode == 1


# --- names, labels and notes where devices are shown


def ids(d, query):
    a = d.get("/v1/devices?limit=1000&" + query)
    assert a.status == 200, a
    return {e["id"] for e in a.json()["devices"]}


def test_names_and_labels_are_shown_and_found(env, each):
    d = each
    put(d, "id,name,label.site,label.floor,note\n"
           "pump-1,Main \"Pump\",north,1,seal changed\npump-2,,north wing,2,\npump-3,Valve \u00d6l,south,,\n")
    for k in range(1, 5):
        env.publisher.publish("%s/pumps/pump-%d" % (env.root, k), b"1")
    wait_until(lambda: d.status()["devices"] == 4, what="the devices")
    one = d.device("pump-1")
    assert (one["name"], one["labels"], one["note"]) == ('Main "Pump"', {"floor": "1", "site": "north"}, "seal changed")
    assert not {"name", "labels", "note"} & set(d.device("pump-4"))
    listed = {e["id"]: e.get("labels") for e in d.get("/v1/devices").json()["devices"]}
    assert listed == {"pump-1": {"floor": "1", "site": "north"}, "pump-2": {"floor": "2", "site": "north wing"},
                      "pump-3": {"site": "south"}, "pump-4": None}
    for query, found in (("search=MAIN", {1}), ("search=%22pump%22", {1}), ("search=north", {1, 2}), ("search=seal", {1}), ("search=site", set()),
                         ("search=pump-4", {4}), ("search=%C3%96l", {3}), ("search=labels", set()), ("label=site=north*", {1, 2}),
                         ("label=site=north", {1}), ("label=floor=*", {1, 2}), ("label=floor=?&search=wing", {2}),
                         ("label=x=*", set()), ("label=site=south&sort=id", {3}), ("state=online&label=site=s*", {3})):
        assert ids(d, query) == {"pump-%d" % k for k in found}, query
    for query in ("label=site", "label=Site=x", "label==x"):
        assert d.get("/v1/devices?" + query).status == 400, query
    shown = d.ctl("show", "pump-1").stdout
    assert 'Main "Pump"' in shown and "site=north" in shown and "seal changed" in shown
    assert "pump-2" in d.ctl("list", "--search", "wing").stdout


def test_an_expected_device_before_it_is_unseen(each):
    d = each
    put(d, "id\nsoon\n")
    for r in (d.ctl("show", "soon"), d.ctl("forget", "soon")):
        assert r.returncode == 1 and "soon: expected, and not heard yet" in r.stderr, r
    assert "no such device" in d.ctl("show", "other").stderr


def test_names_of_unseen_devices(env):
    d = daemon(env, first_within="1s")
    put(d, "id,name,group,label.site,timeout\npump-1,Pump 1,pumps,north,1s\npump-2,Pump 2,pumps,south,1s\n")
    wait_until(lambda: len(ids(d, "state=unseen")) == 2, 20, "the devices to be unseen")
    assert ids(d, "state=unseen&label=site=n*") == {"pump-1"} and ids(d, "state=unseen&search=pump%202") == {"pump-2"}
    lines = d.ctl("devices", "unseen").stdout.splitlines()
    assert len(lines) == 2 and all("Pump" in l and "pumps" in l for l in lines), lines
    assert d.ctl("devices", "unseen", "--group", "valves").stdout == ""
    assert len([json.loads(l) for l in d.ctl("devices", "unseen", "--json").stdout.splitlines()]) == 2


@pytest.mark.parametrize("store", ["redis", "memory"])
def test_a_removed_unseen_device_is_forgotten(env, store):
    """The clients of the event stream get it live, as it is in the stream."""
    d = daemon(env, store, first_within="1s")
    stream = Events(d)
    put(d, "id,group,timeout\na,pumps,1s\nb,pumps,1s\nlater,pumps,1h\n", "?source=s")
    wait_until(lambda: ids(d, "state=unseen") == {"a", "b"}, 20, "the devices to be unseen")
    assert d.ctl("devices", "remove", "later", "a").returncode == 0
    assert counts(put(d, "id\n", "?source=s&prune=1")) == {"removed": 1}
    wait_until(lambda: [stream.of(k) for k in ("a", "b", "later")] == [["unseen", "forgotten"]] * 2 + [[]], what="the events")
    events = [json.loads(e["data"]) for e in stream.events[2:]]
    assert [(e["id"], e["reason"], e["group"], e["seq"] == e["since_ms"]) for e in events] == [
        (k, "operator", "pumps", True) for k in "ab"]
    if store == "redis":
        assert [x["id"] for x in stream.events] == [at for at, _ in env.redis.xrange(env.key("events"))]
    stream.close()


def stored(env):
    return {k: json.loads(v) for k, v in env.redis.hgetall(env.key("expected")).items()}


def wait_equal(env, nodes):
    """Waits until each node has the entries that Redis has."""
    for d in nodes:
        wait_until(lambda: entries(d) == stored(env), 20)


def test_imports_at_two_nodes(env):
    """Two files that overlap are imported at two nodes at once: each row is that of one file, on both nodes and in Redis."""
    nodes = Pair(env).nodes
    files = {"a": range(0, 3000), "b": range(2000, 5000)}
    for n in range(3):
        answers = {}
        rows = {k: "id,name,label.%s\n" % k + "".join("d-%d,%s %d %d,x\n" % (j, k, n, j) for j in files[k]) for k in files}
        threads = [threading.Thread(target=lambda k, d: answers.update({k: put(d, rows[k], "?prune=1&source=" + k)}), args=(k, d))
                   for k, d in zip("ab", nodes)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert [answers[k].status for k in "ab"] == [200, 200], answers
        wait_equal(env, nodes)
        found = stored(env)
        assert found.keys() == {"d-%d" % j for j in range(5000)}
        for j in range(5000):
            e = found["d-%d" % j]
            assert j in files[e["source"]] and e["name"] == "%s %d %d" % (e["source"], n, j), e
            assert e["labels"].get(e["source"]) == "x", e


def test_connections_that_break_during_imports(env):
    """A node puts its own changes into the table by the script's answer. If the answer is lost, it reads them."""
    nodes, ended = Pair(env).nodes, threading.Event()
    rows = {k: "id,name\n" + "".join("d-%d,%s %d\n" % (j, k, j) for j in r) for k, r in (("a", range(9000)), ("b", range(6000, 15000)))}

    def repeat(k, d):
        def whole():
            last = ended.is_set()
            rows[k] = rows[k].replace("," + k, ",x" + k) if "," + k in rows[k] else rows[k].replace(",x" + k, "," + k)
            return put(d, rows[k], "?prune=1&force=1&source=" + k).status == 200 and last
        wait_until(whole, 60, "an import without a break")
    threads = [threading.Thread(target=repeat, args=(k, d)) for k, d in zip("ab", nodes)]
    for t in threads:
        t.start()
    for _ in range(6):
        time.sleep(0.4)
        env.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    ended.set()
    for t in threads:
        t.join()
    wait_equal(env, nodes)
    assert stored(env).keys() == {"d-%d" % j for j in range(15000)}


def test_prune_keeps_what_another_node_has_imported(env):
    """An import finds the entries to prune, and writes its rows first. Meanwhile another node imports such an entry."""
    a, b = Pair(env).nodes
    big = "id\n" + "".join("d-%d\n" % k for k in range(100000))
    assert counts(put(a, "id,name\nkept,old\nkept-2,old\ngone,old\n", "?source=f")) == {"added": 3}
    wait_equal(env, [a, b])
    answers = []
    t = threading.Thread(target=lambda: answers.append(put(a, big, "?source=f&prune=1&force=1")))
    t.start()
    wait_until(lambda: env.redis.hexists(env.key("expected"), "d-0"))
    assert counts(put(b, "id,name\nkept,new\nkept-2,new\n", "?source=f")) == {"changed": 2}
    assert not answers and not env.redis.hexists(env.key("expected"), "d-99999"), "the import was too fast for this test"
    t.join()
    assert counts(answers[0]) == {"added": 100000, "removed": 1}
    wait_until(lambda: values(b).keys() == values(a).keys(), 20)
    found = stored(env)
    assert "gone" not in found and [found[k]["name"] for k in ("kept", "kept-2")] == ["new", "new"]
    assert values(a)["kept"] == values(b)["kept"] == {"name": "new"}
