# SPDX-License-Identifier: MIT
"""The control API on its unix socket."""
import json
import socket
import urllib.parse

import pytest

from hw_env import Env, short
from hw_http import JUNK, Answer, UnixHTTP
from hw_wait import now_ms, throughout, wait_until

DEVICE = {"id": str, "state": str, "since_ms": int, "last_seen_ms": int, "timeout_ms": int, "timeout_from": str, "reason": str,
          "group": str, "source": str, "seq": int}
COUNT = 2500


@pytest.fixture(scope="module")
def crowd(base, shared_broker, shared_redis):
    """A daemon with 2,500 devices of two groups, every fifth of them offline."""
    env = Env(shared_broker, shared_redis, base)
    d = env.daemon(groups=[
        ("even", {"heartbeat": env.root + "/even/{id}", "timeout": "1h"}),
        ("odd", {"heartbeat": env.root + "/odd/{id}", "timeout": "1h"})])
    for payload, step in ((b"1", 1), (b'{"online":false}', 5)):
        for k in range(0, COUNT, step):
            env.publisher.publish("%s/%s/dev-%04d" % (env.root, ("even", "odd")[k % 2], k), payload)
    wait_until(lambda: d.status()["devices"] == COUNT and d.status()["offline"] == COUNT // 5, 20, "the crowd")
    yield d
    wrong = env.close()
    env.remove()
    if wrong:
        raise wrong


def page_through(d, between=None, **query):
    """Every id, collected page by page."""
    ids, after = [], None
    while True:
        parts = dict(query, **({"after": after} if after is not None else {}))
        a = d.get("/v1/devices?" + urllib.parse.urlencode(parts))
        assert a.status == 200, a
        j = a.json()
        ids += [one["id"] for one in j["devices"]]
        assert len(j["devices"]) <= int(query.get("limit", 100))
        if "next" not in j:
            return ids
        after = j["next"]
        if between:
            between(after)


@pytest.mark.parametrize("limit", [None, 1, 7, 100, 999, 1000])
def test_paging_neither_repeats_nor_skips(crowd, limit):
    query = {} if limit is None else {"limit": limit}
    if limit == 1:
        query["prefix"] = "dev-00"
    ids = page_through(crowd, **query)
    expected = {"dev-%04d" % k for k in range(100 if limit == 1 else COUNT)}
    assert len(ids) == len(set(ids)) and set(ids) == expected


def test_first_page(crowd):
    j = crowd.get("/v1/devices").json()
    assert len(j["devices"]) == 100 and isinstance(j["next"], str)
    for one in j["devices"]:
        for key, kind in DEVICE.items():
            assert type(one[key]) is kind, (key, one)
        assert one["state"] in ("online", "offline") and one["source"] == "mqtt"
        assert abs(one["since_ms"] - now_ms()) < 600_000
    a = crowd.get("/v1/devices")
    assert a.headers["Content-Type"].startswith("application/json")


def test_limit_has_a_limit(crowd):
    a = crowd.get("/v1/devices?limit=5000")
    assert a.status == 400 or len(a.json()["devices"]) == 1000


@pytest.mark.parametrize("query, expected", [
    ({"state": "offline"}, lambda k: k % 5 == 0),
    ({"state": "online"}, lambda k: k % 5 != 0),
    ({"group": "odd"}, lambda k: k % 2 == 1),
    ({"group": "odd", "state": "offline"}, lambda k: k % 10 == 5),
    ({"prefix": "dev-1"}, lambda k: 1000 <= k < 2000),
    ({"prefix": "dev-12", "group": "even", "state": "online"}, lambda k: 1200 <= k < 1300 and k % 2 == 0 and k % 5),
    ({"prefix": "zzz"}, lambda k: False), ({"prefix": ""}, lambda k: True),
    ({"state": "", "group": ""}, lambda k: True)], ids=lambda p: short(p) if isinstance(p, dict) else "")
@pytest.mark.parametrize("limit", [60, 1000])
def test_filters(crowd, query, expected, limit):
    ids = page_through(crowd, limit=limit, **query)
    assert len(ids) == len(set(ids))
    assert set(ids) == {"dev-%04d" % k for k in range(COUNT) if expected(k)}


def test_paging_while_devices_come_and_go(env):
    """Each device that stays is listed once, even if the device at which a page ended is forgotten."""
    d = env.daemon(timeout="1h")
    stay = ["stay%03d" % k for k in range(300)]
    go = ["go%03d" % k for k in range(100)]
    for pair in zip(stay[::3], go):
        for i in pair:
            env.beat(i)
    for i in stay:
        env.beat(i)
    wait_until(lambda: d.status()["devices"] == 400)
    coming = iter("come%03d" % k for k in range(1000))
    gone = []

    def between(after):
        for _ in range(5):
            env.beat(next(coming))
        env.settle(d)
        for i in [after] + go[len(gone):len(gone) + 4]:
            if i.startswith("go") and i not in gone:
                assert d.forget(i).status == 204
                gone.append(i)
    ids = page_through(d, between, limit=10)
    kept = [i for i in ids if i.startswith("stay")]
    assert len(kept) == len(set(kept)), "repeated"
    assert set(kept) == set(stay), "skipped: %s" % sorted(set(stay) - set(kept))[:5]
    assert len(ids) == len(set(ids))
    assert len(gone) >= 20


def test_one_device(env):
    d = env.daemon(timeout="20s")
    env.beat("one", {"battery": 5, "timeout": 10})
    env.wait_store("one", "online")
    one = d.device("one")
    for key, kind in dict(DEVICE, due_in_ms=int, level=int, slot=int, rounds=int).items():
        assert type(one[key]) is kind, (key, one)
    h = env.hash("one")
    assert (one["id"], one["state"], one["reason"], one["group"], one["timeout_ms"], one["battery"]) == \
        ("one", "online", "heartbeat", "default", 10_000, 5)
    assert one["seq"] == int(h["seq"]) and abs(one["since_ms"] - int(h["since"])) <= 1
    assert 0 < one["due_in_ms"] <= 10_000 and 0 <= one["level"] <= 3 and 0 <= one["slot"] < 31 and one["rounds"] == 0
    listed = d.get("/v1/devices?prefix=one").json()["devices"]
    assert [i["id"] for i in listed] == ["one"]
    assert {k: listed[0][k] for k in DEVICE if k != "last_seen_ms"} == {k: one[k] for k in DEVICE if k != "last_seen_ms"}


def test_status(env):
    d = env.daemon(timeout="500ms")
    s = d.status()
    assert set(s) >= {"node", "version", "uptime_s", "blind", "blind_cause", "mqtt", "redis", "devices", "online",
                      "offline", "owed", "heartbeats_total"}, s
    assert s["node"] == env.node and s["blind"] is False
    wait_until(lambda: (d.status()["mqtt"], d.status()["redis"]) == ("up", "up"))
    assert (s["devices"], s["online"], s["offline"], s["heartbeats_total"]) == (0, 0, 0, 0)
    for _ in range(3):
        env.beat("a")
    env.beat("b", {"timeout": 60})
    wait_until(lambda: d.status()["offline"] == 1 and d.status()["heartbeats_total"] >= 4)
    s = d.status()
    assert (s["devices"], s["online"], s["offline"], s["heartbeats_total"]) == (2, 1, 1, 4), s
    wait_until(lambda: d.status()["owed"] == 0)
    assert 0 <= s["uptime_s"] < 60


@pytest.mark.parametrize("method, path, code", [
    ("GET", "/v1/devices/unknown", 404), ("DELETE", "/v1/devices/unknown", 404), ("GET", "/nowhere", 404),
    ("GET", "/v1", 404), ("GET", "/v1/", 404), ("GET", "/v2/status", 404), ("GET", "/v1/status/x", 404),
    ("GET", "/v1/devices/a/b", 404), ("GET", "/v1/devices/a%2Fb", 404), ("GET", "/v1/devices/%2e%2e", 404),
    ("GET", "/v1/devices/../status", 404),
    ("POST", "/v1/status", 405), ("DELETE", "/v1/status", 405), ("DELETE", "/v1/devices", 405),
    ("PUT", "/v1/devices/unknown", 405), ("POST", "/v1/devices", 405), ("GET", "/v1/reload", 405),
    ("POST", "/metrics", 405), ("POST", "/healthz", 405), ("DELETE", "/readyz", 405),
    ("GET", "/v1/devices?limit=0", 400), ("GET", "/v1/devices?limit=-1", 400), ("GET", "/v1/devices?limit=x", 400),
    ("GET", "/v1/devices?limit=99999999999999999999", 400),
    ("GET", "/v1/devices?state=flying", 400), ("GET", "/v1/devices/%zz", 400), ("GET", "/v1/devices/%4", 400),
    ("GET", "/v1/devices/%ff%fe", 400), ("GET", "/v1/devices/%00", 400),
    ("GET", "/v1/devices/a%00b", 400), ("GET", "/v1/devices/" + "x" * 256, 400)], ids=short)
def test_errors_say_what_is_wrong(shared_daemon, method, path, code):
    a = shared_daemon.d.request(method, path)
    assert a.status == code, a
    assert a.headers["Content-Type"].startswith("application/json"), a.headers
    assert isinstance(a.json()["error"], str) and a.json()["error"]


def test_limit_above_the_most_is_no_crash(shared_daemon):
    assert shared_daemon.d.get("/v1/devices?limit=1001").status == 400
    assert shared_daemon.d.get("/v1/devices?unknown=1").status == 400
    a = shared_daemon.d.get("/v1/devices?group=nobody")
    assert a.status == 400 and "group" in a.json()["error"], a


def test_a_body_that_is_too_large(shared_daemon):
    c = UnixHTTP(shared_daemon.d.socket)
    try:
        c.request("POST", "/v1/reload", b"x" * 2_000_000)
    except BrokenPipeError:
        pass  # it need not read it all to know
    a = Answer(c.getresponse())
    c.close()
    assert a.status == 413 and a.json()["error"], a
    assert shared_daemon.d.status()


@pytest.mark.parametrize("device", ["a b", "ü😀", "%41", "a%2Fb", "..", ".", "x?y=1", "q&a", "\"quoted\\\""], ids=short)
def test_percent_encoded_ids(shared_daemon, device):
    device = "pe " + device
    d = shared_daemon.d
    shared_daemon.beat(device, b"1")
    wait_until(lambda: d.device(device))
    assert d.device(device)["id"] == device
    path = "/v1/devices/" + "".join("%%%02x" % b for b in device.encode())
    assert d.get(path).json()["id"] == device
    listed = d.get("/v1/devices?prefix=" + urllib.parse.quote(device)).json()["devices"]
    assert device in [one["id"] for one in listed]
    assert d.request("DELETE", path).status == 204
    assert d.get(path).status == 404


def test_health_and_readiness(env):
    d = env.daemon(seeing=False, mqtt={"reconnect_grace": "2s"})
    assert d.get("/healthz").status == 200
    assert d.get("/readyz").status == 503
    d.wait_seeing()
    wait_until(lambda: d.get("/readyz").status == 200)


def read_answers(sock, count):
    """The status codes of this many answers."""
    data, codes = b"", []
    sock.settimeout(5)
    while len(codes) < count:
        head, mark, rest = data.partition(b"\r\n\r\n")
        if mark:
            length = [int(l.split(b":")[1]) for l in head.split(b"\r\n") if l.lower().startswith(b"content-length:")]
            need = length[0] if length else 0
            if len(rest) >= need:
                codes.append(int(head.split()[1]))
                data = rest[need:]
                continue
        got = sock.recv(65536)
        assert got, "closed after %s" % codes
        data += got
    return codes


def connect(d):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(str(d.socket))
    return s


def test_two_requests_in_one_write_and_half_of_one(shared_daemon):
    d = shared_daemon.d
    with connect(d) as s:
        one = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        s.sendall(one + one + b"GET /v1/st")
        assert read_answers(s, 2) == [200, 200]
        s.sendall(b"atus HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answers(s, 1) == [200]


def test_garbage_and_silence_on_the_socket(shared_daemon):
    d = shared_daemon.d
    idle = [connect(d) for _ in range(100)]
    for junk in JUNK:
        with connect(d) as s:
            try:
                s.sendall(junk)
                s.shutdown(socket.SHUT_WR)
                s.settimeout(0.3)
                s.recv(4096)
            except OSError:
                pass
        assert d.status()["node"], junk[:40]
    for s in idle:
        s.close()


def test_head_and_keep_alive(shared_daemon):
    """HEAD and GET in turns on one connection: an answer to HEAD has no body, which the client would take for the next
    answer."""
    c = UnixHTTP(shared_daemon.d.socket)
    for _ in range(3):
        c.request("GET", "/v1/status")
        a = Answer(c.getresponse())
        assert a.status == 200 and a.json()["devices"] >= 0
        c.request("HEAD", "/healthz")
        a = Answer(c.getresponse())
        assert (a.status, a.body) == (200, b""), a
    c.close()


def test_a_reader_that_does_not_read(crowd):
    """A client requests big answers and reads none: other clients are served."""
    with connect(crowd) as s:
        s.setblocking(False)
        try:
            for _ in range(200):
                s.send(b"GET /v1/devices?limit=1000 HTTP/1.1\r\nHost: x\r\n\r\n")
        except BlockingIOError:
            pass
        throughout(lambda: crowd.get("/healthz").status == 200, 1.0)


# --- metrics


NAMES = {"build_info": "gauge", "devices": "gauge", "heartbeats_total": "counter", "transitions_total": "counter",
         "detection_delay_seconds": "histogram", "blind": "gauge", "blind_seconds_total": "counter",
         "loop_turn_seconds": None, "loop_turn_cpu_seconds": "histogram", "barrier_seconds": None,
         "redis_script_seconds": None, "owed": "gauge",
         "refused_total": "counter", "payload_errors_total": "counter", "own_messages_total": "counter", "reconnects_total": "counter",
         "ring_messages": "gauge", "redis_commands_total": "counter", "wakeups_total": "counter"}


def test_metrics(env):
    d = env.daemon(timeout="500ms")
    a = d.get("/metrics")
    assert a.status == 200 and a.headers["Content-Type"].startswith("text/plain"), a.headers
    env.beat("a")
    env.beat("a")
    env.beat("b", {"timeout": 100})
    env.beat("c", {"online": False})
    env.beat("d", b"{broken")
    env.wait_store("a", "offline")
    env.wait_store("d", "offline")
    m = d.metrics()
    for name, kind in NAMES.items():
        assert "heartwheel_" + name in m.types, "no metric " + name
        assert kind is None or m.types["heartwheel_" + name] == kind, name
        assert "heartwheel_" + name in m.helps, "no HELP for " + name
    assert all(n.startswith(("heartwheel_", "process_")) for n in m.types), m.types
    assert m.get("build_info") == 1 and m.labels("build_info", "version") == {d.status()["version"]}
    assert m.get("devices", group="default", state="online") == 1
    assert m.get("devices", group="default", state="offline") == 3
    assert m.get("heartbeats_total", group="default") == 4
    assert m.get("transitions_total", reason="heartbeat") == 3
    assert m.get("transitions_total", reason="timeout") == 2
    assert m.get("transitions_total", reason="will") == 1
    assert m.get("payload_errors_total") == 1
    assert m.get("blind") == 0
    bounds = [float(b) for b in m.labels("detection_delay_seconds_bucket", "le") if b != "+Inf"]
    assert sorted(bounds) == [.01, .02, .033, .05, .1, .25, 1, 5]
    assert m.get("detection_delay_seconds_count") == m.get("detection_delay_seconds_bucket", le="+Inf") == 2
    last = 0
    for bound in sorted(m.labels("detection_delay_seconds_bucket", "le"), key=float):
        value = m.get("detection_delay_seconds_bucket", le=bound)
        assert value >= last, "buckets are cumulative"
        last = value
    assert 0 <= m.get("detection_delay_seconds_sum") < 2
    assert "link" in m.labels("blind_seconds_total", "cause")
    assert m.get("redis_commands_total") > 0 and m.get("wakeups_total") > 0
    wait_until(lambda: d.metrics().get("owed") == 0)
    again = d.metrics()
    for key, value in m.samples.items():
        if m.types.get(key[0]) == "counter":
            assert again.samples[key] >= value, key


def test_metrics_while_blind(env):
    env.own_broker(start=False)
    d = env.daemon(seeing=False)
    assert d.metrics().get("blind") >= 1
    before = d.metrics().get("blind_seconds_total", cause="link")
    wait_until(lambda: d.metrics().get("blind_seconds_total", cause="link") > before + 0.2, 5,
               "blind time to be counted while it lasts")


def test_metrics_of_a_group_with_a_strange_name(env):
    name = 'a "b" \\c'
    d = env.daemon(groups=[(name, {"heartbeat": env.root + "/{id}/x", "timeout": "1h"})])
    env.beat("x", last="x")
    wait_until(lambda: d.device("x"))
    assert d.device("x")["group"] == name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    assert d.metrics().get("devices", group=escaped, state="online") == 1
    assert json.dumps(d.device("x"))
