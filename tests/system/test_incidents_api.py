# SPDX-License-Identifier: MIT
"""heartwheel-alert: its API, its configuration, parents, mass incidents and silences."""
import json
import signal
import subprocess
import threading
import time

import pytest

from hw_alert import HEARTWHEEL_ALERT, Alert, Inbox, see, set_online
from hw_build import HEARTWHEELCTL
from hw_history import BUILT, History, Sqlite
from hw_http import UnixHTTP
from hw_wait import throughout, wait_until
from test_users import bearer, guarded, line, users  # noqa: F401 (a fixture)


@pytest.fixture
def works(env):
    """An instance that works, its inbox, and a monitor that sees."""
    env.check_events = False
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()}, flap_start=0)
    see(env)
    return a, inbox


def test_an_acknowledgement(env, works):
    a, inbox = works
    a.start()
    set_online(env, "pump-7", False)
    inbox.wait(("opened", "pump-7"))
    path = "/v1/incidents/%s" % a.incidents()[0]["id"]
    assert a.request("POST", path + "/ack", {"by": "ann", "note": "on \"my\" way"}).status == 204
    inbox.wait(("opened", "pump-7"), ("acknowledged", "pump-7"))
    shown = a.json(path)
    assert (shown["by"], shown["note"]) == ("ann", "on \"my\" way")
    assert shown["members"] == [{"id": "pump-7", "class": "down", "since_ms": shown["members"][0]["since_ms"]}]
    # The monitor has admitted eve: she cannot sign with another name.
    eve = {"X-Heartwheel-User": "eve"}
    assert a.request("POST", path + "/ack", {"by": "max"}, eve).status == 204
    assert a.json(path)["by"] == "eve"
    assert a.request("POST", "/v1/silences", {"match": "id:x", "until_online": True, "by": "max"}, eve).status == 201
    assert [s["by"] for s in a.json("/v1/silences")["silences"]] == ["eve"]
    assert a.request("DELETE", path + "/ack", {"by": "max"}, eve).status == 204
    assert "by" not in a.json(path)
    assert ("unacknowledged", "eve") in [(e.get("what"), e.get("by")) for _, e in env.redis.xrange(env.key("incident_events"))]
    assert a.metrics().get("incidents", state="open", kind="device") == 1
    for body in ("[]", "{", '{"by":1}', '{"other":"x"}', json.dumps({"note": "x" * 2000})):
        assert a.request("POST", path + "/ack", body).status == 400, body
    assert a.request("POST", "/v1/incidents/%s/ack" % ("0" * 12)).status == 404
    assert a.get("/v1/incidents/" + "0" * 12).status == 404
    assert a.get("/v1/incidents/../x").status in (400, 404)
    set_online(env, "pump-7", True)
    wait_until(lambda: a.json(path)["state"] == "closed")
    inbox.wait(("opened", "pump-7"), ("acknowledged", "pump-7"), ("closed", "pump-7"))
    for method in "POST", "DELETE":
        wait_until(lambda m=method: a.request(m, path + "/ack").status == 409, what="409, also after the end was sent")
    wait_until(lambda: a.json("/v1/receivers")["receivers"][0]["waiting"] == 0)
    assert ctl(a, "ack", path.rsplit("/", 1)[1]) == (1, "", "heartwheelctl: the incident is closed\n")


def test_pages_of_a_list(env, works):
    a, inbox = works
    a.sections = [(n, {**keys, "mass": 0} if n == "alert" else keys) for n, keys in a.sections]
    a.write()
    a.start()
    for k in range(7):
        set_online(env, "p%d" % k, False, group="odd" if k % 2 else "even")
    a.wait_open(7)
    seen, after = [], ""
    while True:
        page = a.json("/v1/incidents?limit=3" + after)
        seen += [i["device"] for i in page["incidents"]]
        if "next" not in page:
            break
        after = "&after=" + page["next"]
    assert sorted(seen) == ["p%d" % k for k in range(7)]
    assert sorted(i["device"] for i in a.incidents("?group=odd")) == ["p1", "p3", "p5"]
    assert a.incidents("?kind=mass") == []
    for k in range(7):
        set_online(env, "p%d" % k, True)
    a.wait_open(0)
    wait_until(lambda: len(a.incidents("?state=closed")) == 7)
    first = a.json("/v1/incidents?state=closed&limit=5")
    second = a.json("/v1/incidents?state=closed&limit=5&after=" + first["next"])
    assert sorted(i["device"] for i in first["incidents"] + second["incidents"]) == ["p%d" % k for k in range(7)]
    for query in ("?state=x", "?kind=x", "?limit=0", "?nonsense=1", "?state=closed&after=zzz"):
        assert a.get("/v1/incidents" + query).status == 400, query


def test_a_gateway_with_children(env, works):
    """The gateway and its children stop, in any order: one message and one end are sent."""
    a, inbox = works
    a.start()
    set_online(env, "v1", False, parent="gw", wait_ms=3000)
    set_online(env, "v2", False, parent="gw", wait_ms=3000)
    throughout(lambda: not inbox.news(), 0.5)
    set_online(env, "gw", False)
    set_online(env, "v3", False, parent="gw")
    inbox.wait(("opened", "gw"))
    wait_until(lambda: a.incidents()[0]["unreachable"] == 3)
    shown = a.json("/v1/incidents/" + a.incidents()[0]["id"])
    assert sorted((m["id"], m["class"], m.get("parent")) for m in shown["members"]) == [
        ("gw", "down", None), *((v, "unreachable", "gw") for v in ("v1", "v2", "v3"))]
    assert "3 devices behind it are unreachable" in a.incidents()[0]["sentence"]
    for device in ("gw", "v1", "v2", "v3"):
        set_online(env, device, True, parent=None if device == "gw" else "gw")
    inbox.wait(("opened", "gw"), ("closed", "gw"))
    ended = inbox.messages()[1]["news"][0]["incident"]["sentence"]
    assert ended.startswith("gateway gw was offline from ") and ended.endswith(", with 3 devices behind it"), ended
    assert [i["sentence"] for i in a.incidents("?state=closed")] == [ended]


def test_a_parent_that_works(env, works):
    """A child stops alone. Its parent is heard afterwards, so the child itself is down."""
    a, inbox = works
    a.start()
    set_online(env, "v1", False, parent="gw", wait_ms=60000)
    throughout(lambda: not inbox.news(), 0.5)
    entry = env.redis.xrevrange(env.key("events"), count=1)[0][1]
    env.redis.xadd(env.key("parent_heard"), {"id": "v1", "seq": entry["seq"], "parent": "gw", "settle_ms": 0})
    inbox.wait(("opened", "v1"))


def test_many_devices_of_a_group(env, works):
    """The devices that stop together are one incident, and one message is sent."""
    a, inbox = works
    a.sections = [(n, {**keys, "mass": 5, "mass_share": 10} if n == "alert" else keys) for n, keys in a.sections]
    a.sections = [(n, {**keys, "interval": "2s"} if n == "receiver ops" else keys) for n, keys in a.sections]
    a.write()
    env.redis.hset(env.key("groups"), "default", "20 0 0")
    a.start()
    for k in range(12):
        set_online(env, "p%02d" % k, False)
    inbox.wait(("opened", "mass"))
    opened = inbox.messages()[0]["news"][0]["incident"]
    assert opened["down"] == 12
    # device:groups is still of the time before they stopped.
    assert opened["sentence"].startswith("12 of 20 devices of group default are offline since "), opened
    assert "; 8 still send heartbeats" in opened["sentence"], opened
    for k in range(12):
        set_online(env, "p%02d" % k, True)
    inbox.wait(("opened", "mass"), ("closed", "mass"))


def test_silences(env, works):
    """An incident that begins during a silence is not sent; if the device is still down when the silence ends, it is sent then.
    An end is always sent."""
    a, inbox = works
    a.start()
    set_online(env, "pump-1", False)
    inbox.wait(("opened", "pump-1"))
    body = {"match": "id:pump-*", "until": int(time.time() * 1000) + 600000, "reason": "work", "by": "ann"}
    answer = a.request("POST", "/v1/silences", body)
    assert answer.status == 201
    silence = json.loads(answer.body)["id"]
    shown, = a.json("/v1/silences")["silences"]
    assert (shown["id"], shown["match"], shown["in_force"], shown["by"]) == (silence, "id:pump-*", True, "ann")
    assert a.incidents()[0]["silenced"] == 1
    shown = a.json("/v1/incidents/" + a.incidents()[0]["id"])
    assert shown["silenced"] == 1 and shown["members"][0]["silenced"] is True
    set_online(env, "pump-2", False)
    set_online(env, "pump-1", True)
    inbox.wait(("opened", "pump-1"), ("closed", "pump-1"))
    a.die()
    a.awaited = True
    a.start()
    assert [s["id"] for s in a.json("/v1/silences")["silences"]] == [silence]
    throughout(lambda: len(inbox.news()) == 2, 1)
    assert a.request("DELETE", "/v1/silences/" + silence).status == 204
    inbox.wait(("opened", "pump-1"), ("closed", "pump-1"), ("opened", "pump-2"))
    assert a.request("DELETE", "/v1/silences/" + silence).status == 404
    for wrong in ({}, {"match": "x", "until_online": True}, {"match": "id:*"}, {"match": "id:*", "until": 1},
                  {"match": "id:*", "until": 10 ** 15}, {"match": "id:*", "until": "soon"}):
        assert a.request("POST", "/v1/silences", wrong).status == 400, wrong


def test_a_planned_silence_of_the_file(env):
    env.check_events = False
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()},
              silences={"always": {"match": "group:washers", "when": "* 00:00-24:00", "reason": "they rest"}})
    see(env)
    a.start()
    shown, = a.json("/v1/silences")["silences"]
    assert (shown["id"], shown["file"], shown["in_force"], shown["planned"]) == ("always", True, True, True)
    assert a.request("DELETE", "/v1/silences/always").status == 409
    set_online(env, "w1", False, group="washers")
    set_online(env, "x1", False)
    inbox.wait(("opened", "x1"))
    a.wait_open(2)
    a.sections = [s for s in a.sections if not s[0].startswith("silence")]
    a.write()
    a.signal(signal.SIGHUP)
    inbox.wait(("opened", "x1"), ("opened", "w1"))


@pytest.mark.skipif(not BUILT, reason="heartwheel-history is not built")
def test_a_planned_outage_in_the_history(env):
    """The part of an outage that a silence covers is planned, to the millisecond; another outage has no planned part. Incidents
    are kept in SQL, too."""
    env.check_events = False
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()}, silences={"always": {"match": "group:washers", "when": "* 00:00-24:00"}})
    h = History(env, Sqlite(env.own_dir("db"))).start()
    see(env)
    a.start()
    for online in True, False, True:
        set_online(env, "w1", online, group="washers")
        set_online(env, "x1", online)
        if not online:
            inbox.wait(("opened", "x1"))
            a.wait_open(2)
    inbox.wait(("opened", "x1"), ("closed", "x1"))
    a.wait_open(0)
    rows = wait_until(lambda: h.database.rows("SELECT kind, grp, device, state, messages FROM incident WHERE closed_ms > 0 ORDER BY device")[1:] and
                      h.database.rows("SELECT kind, grp, device, state, messages FROM incident ORDER BY device"), what="the incidents")
    assert rows == [("device", "washers", "w1", "closed", 0), ("device", "default", "x1", "closed", 2)]
    wait_until(lambda: h.database.rows("SELECT 1 FROM planned"), what="the planned outage")
    outages = {o["id"]: o for o in h.get("/v1/history/outages?since=1h").json()["outages"]}
    assert outages["w1"]["planned_s"] == outages["w1"]["down_s"] > 0 == outages["x1"]["planned_s"]


def events_of(a, after=None, n=1, timeout=20):
    """The next n server-sent events: [(name, id, object)]."""
    c = UnixHTTP(a.socket)
    c.request("GET", "/v1/incidents/events", headers={"Last-Event-ID": after} if after else {})
    r = c.getresponse()
    assert r.status == 200
    found, event = [], {}
    deadline = time.monotonic() + timeout
    while len(found) < n and time.monotonic() < deadline:
        line = r.fp.readline().decode().rstrip("\n")
        if not line and "data" in event:
            found.append((event.get("event"), event.get("id"), json.loads(event["data"])))
            event = {}
        elif ": " in line and not line.startswith(":"):
            event.update([line.split(": ", 1)])
    c.close()
    return found


def test_events(env, works):
    """A client receives each change, and resumes after the last change that it received."""
    a, inbox = works
    a.start()
    found = []
    t = threading.Thread(target=lambda: found.extend(events_of(a, n=2)))
    t.start()
    wait_until(lambda: a.json("/v1/status")["event_clients"] == 1)
    time.sleep(0.2)
    set_online(env, "pump-7", False)
    inbox.wait(("opened", "pump-7"))
    t.join(20)
    assert [e[2]["what"] for e in found] == ["opened", "opened"], found  # the incident; to the receiver
    assert found[1][2]["receiver"] == "ops"
    set_online(env, "pump-7", True)
    inbox.wait(("opened", "pump-7"), ("closed", "pump-7"))
    again = events_of(a, after=found[0][1], n=2)
    assert again[0] == found[1] and again[1][2]["what"] == "closed"
    assert a.get("/v1/incidents/events?after=x").status == 400


def test_a_receiver_that_fails(env):
    """The message is retried, then given up with the program's own result; other receivers do not wait."""
    env.check_events = False
    good, bad = Inbox(env), Inbox(env, "bad", code=3)
    a = Alert(env, receivers={"good": good.receiver(), "bad": bad.receiver()})
    see(env)
    a.start()
    set_online(env, "pump-7", False)
    good.wait(("opened", "pump-7"))
    wait_until(lambda: a.metrics().get("notifications_total", receiver="bad", result="given_up") == 1, 30)
    set_online(env, "pump-7", True)
    good.wait(("opened", "pump-7"), ("closed", "pump-7"))
    receivers = {r["name"]: r for r in a.json("/v1/receivers")["receivers"]}
    assert set(receivers) == {"good", "bad"}
    assert a.request("POST", "/v1/receivers/good/test").status == 202
    wait_until(lambda: len(good.tries()) == 3, what="the test message")
    assert a.request("POST", "/v1/receivers/none/test").status == 404


def test_a_reload(env, works):
    """A receiver that a reload adds gets later incidents only; a wrong file changes nothing."""
    a, inbox = works
    a.start()
    set_online(env, "pump-1", False)
    inbox.wait(("opened", "pump-1"))
    second = Inbox(env, "second")
    a.sections.append(("receiver second", second.receiver()))
    a.write()
    assert json.loads(a.request("POST", "/v1/reload").body)["changed"] == ["receiver second"]
    set_online(env, "pump-2", False)
    second.wait(("opened", "pump-2"))
    text = a.conf.read_text()
    a.conf.write_text(text + "[silence x]\nmatch = nonsense\n")
    answer = a.request("POST", "/v1/reload")
    assert answer.status == 400 and b"has no window, so it never begins" in answer.body
    a.conf.write_text(text.replace("[receiver second]", "[receiver third]"))
    assert a.request("POST", "/v1/reload").status == 200
    set_online(env, "pump-1", True)
    inbox.wait(("opened", "pump-1"), ("opened", "pump-2"), ("closed", "pump-1"))
    assert second.news() == [("opened", "pump-2")]


def ctl(a, *words):
    r = subprocess.run([HEARTWHEELCTL, "-c", a.conf, *words], capture_output=True, text=True)
    return r.returncode, r.stdout, r.stderr


def test_heartwheelctl(env, works):
    a, inbox = works
    assert ctl(a, "incidents")[0] == 1
    a.start()
    assert ctl(a, "incidents") == (0, "no open incident\n", "")
    set_online(env, "pump-7", False)
    inbox.wait(("opened", "pump-7"))
    incident = a.incidents()[0]["id"]
    code, out, _ = ctl(a, "incidents")
    assert code == 0 and out.startswith(incident + "  open") and "pump-7 of group default is offline since" in out
    assert ctl(a, "ack", incident, "-m", "I look") == (0, "", "")
    code, out, _ = ctl(a, "incident", incident)
    assert code == 0 and "note          I look\n" in out and "down          pump-7, since" in out, out
    assert "acknowledged" in ctl(a, "incidents")[1]
    assert ctl(a, "unack", incident)[0] == 0
    code, silence, _ = ctl(a, "silence", "group:default", "id:pump-*", "--for", "2h", "--message", "work")
    assert code == 0
    shown, = a.json("/v1/silences")["silences"]
    assert (shown["id"], shown["match"], shown["reason"]) == (silence.strip(), "group:default id:pump-*", "work")
    assert "in force" in ctl(a, "silences")[1]
    assert ctl(a, "unsilence", silence.strip())[0] == 0
    assert ctl(a, "silences")[1] == "no silence\n"
    set_online(env, "pump-7", True)
    a.wait_open(0)
    wait_until(lambda: "closed" in ctl(a, "incidents", "--all")[1])
    for words, why in ((("silence", "id:x"), "--for D"), (("silence", "--for", "2h"), "which devices?"),
                       (("silence", "id:x", "--for", "soon"), "must be a duration"), (("ack",), "which incident?")):
        code, _, err = ctl(a, *words)
        assert code == 2 and why in err, (words, err)
    code, _, err = ctl(a, "ack", "0" * 12)
    assert code == 1 and "no such incident" in err


def test_the_monitor_passes_requests_on(env, works):
    """heartwheeld passes requests on, also for users of its address: a user with the role `read` cannot acknowledge."""
    a, inbox = works
    d = env.configure(timeout="1h")
    d.rewrite(d.conf.read_text() + "\n[alert]\nsocket = %s\n" % a.socket)
    d.start()
    assert d.get("/v1/incidents").status == 503
    a.start()
    set_online(env, "pump-7", False)
    inbox.wait(("opened", "pump-7"))
    found, = json.loads(d.get("/v1/incidents").body)["incidents"]
    assert found["device"] == "pump-7"
    assert d.request("POST", "/v1/incidents/%s/ack" % found["id"], {"by": "ann"}).status == 204
    assert json.loads(d.get("/v1/incidents/" + found["id"]).body)["by"] == "ann"
    answer = d.request("POST", "/v1/silences", {"match": "id:*", "until_online": True})
    assert answer.status == 201
    assert len(json.loads(d.get("/v1/silences").body)["silences"]) == 1
    assert d.request("DELETE", "/v1/silences/" + json.loads(answer.body)["id"]).status == 204
    assert [r["name"] for r in json.loads(d.get("/v1/receivers").body)["receivers"]] == ["ops"]


def test_a_user_with_many_streams(env, works, users):  # noqa: F811
    """One user's streams leave room for other users and for the unix socket."""
    a, _ = works
    a.start()
    d, door = guarded(env, users, start=False)
    d.rewrite(d.conf.read_text() + "\n[alert]\nsocket = %s\n" % a.socket)
    d.start()
    streams = {}
    for name, most in ("rita", 16), ("otto", 16), ("eve", 8):
        if name == "eve":
            users.write_text(users.read_text() + line("eve", "read", "tok-eve"))
            assert d.request("POST", "/v1/reload").status == 200
        streams[name] = []
        for _ in range(20):
            c = door.connection()
            c.request("GET", "/v1/incidents/events", headers=bearer("tok-" + name))
            streams[name].append((c, c.getresponse()))
        assert [r.status for _, r in streams[name]] == [200] * most + [503] * (20 - most), name
        if name == "rita":
            assert door.status("/v1/incidents", bearer("tok-otto")) == 200
        assert d.get("/v1/incidents").status == 200
    for c, _ in streams["rita"]:
        c.close()
    wait_until(lambda: door.status("/v1/incidents", bearer("tok-eve")) == 200, what="room")


WRONG = """[alert]
flap_start = 3
flap_end = 3
[silence never]
match = group:a
[silence night]
match = washers
when = Someday 02:00-04:00
zone = Mars
[receiver a b]
type = webhook
url = https://example.com/x
[receiver ops]
type = pagerduty
[receiver chat]
type = smoke
kinds = device fire
"""


def test_what_a_wrong_file_is_told(env):
    path = env.dir / "wrong.conf"
    path.write_text(WRONG)
    found = subprocess.run([HEARTWHEEL_ALERT, "-t", "-c", path], capture_output=True, text=True)
    assert found.returncode == 2
    lines = found.stderr.splitlines()
    for part in (":3: key 'flap_end': must be less than flap_start",
                 ":4: section 'silence never': has no window, so it never begins",
                 ":7: key 'match': 'washers' is not a matcher: give terms group:GLOB",
                 ":8: key 'when': 'Someday 02:00-04:00' is not a window, so it never begins",
                 ":9: key 'zone': 'Mars' is unknown: give local or utc",
                 ":10: section 'a b': a receiver's name may have letters",
                 ":13: ", "key_file", ":16: key 'type': 'smoke' is unknown"):
        assert any(part in line for line in lines), (part, lines)
    path.write_text("[alert]\nuser =\n")
    found = subprocess.run([HEARTWHEEL_ALERT, "-t", "-c", path], capture_output=True, text=True)
    assert found.returncode == 0 and "there is no receiver" in found.stderr, found.stderr


def test_a_matcher_that_matches_nothing(env):
    """-t, a start and a reload warn about the matcher and name the group that was probably meant."""
    groups = "[group pumps]\nlabel = site north\nheartbeat = a/{id}\n[group washers]\nheartbeat = b/{id}\n"
    path = env.dir / "some.conf"
    path.write_text("[alert]\nuser =\n" + groups + "[silence w]\nmatch = id:x group:wahsers\nwhen = * 02:00-04:00\n"
                    "[receiver ops]\ntype = exec\nprogram = /bin/true\nmatch = group:pump* label:site=north label:sitte=* label:owner=me\nmatch = group:valves\n")
    found = subprocess.run([HEARTWHEEL_ALERT, "-t", "-c", path], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    what = "no group of this file matches group:%s, so this term matches no device; %s"
    assert found.stderr.splitlines() == [
        "%s:8: warning: [silence w]: %s" % (path, what % ("wahsers", "did you mean group:washers?")),
        "%s:11: warning: [receiver ops]: no group of this file gives the label sitte, so this term matches only devices that have "
        "it from the inventory; did you mean label:site?" % path,
        "%s:11: warning: [receiver ops]: %s" % (path, what % ("valves", "there are group:pumps group:washers"))]
    a = Alert(env, receivers={"ops": {"type": "exec", "program": "/bin/true", "match": "group:pump"}})
    a.start()
    assert "no group" not in a.log(), "without groups in the file nothing is known about them"
    a.conf.write_text(a.conf.read_text() + groups)
    a.signal(signal.SIGHUP)
    wait_until(lambda: "[receiver ops]: " + what % ("pump", "did you mean group:pumps?") in a.log())
