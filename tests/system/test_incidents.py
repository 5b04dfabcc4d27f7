# SPDX-License-Identifier: MIT
"""heartwheel-alert: offline devices become incidents, and each receiver gets one message when an incident begins and one when
it ends."""
import json
import os
import re
import resource
import signal
import socket
import threading
import time

import pytest

from hw_alert import Alert, Inbox, SMALL_COMMITS, begin_incident, see, set_online
from hw_wait import NotWithin, pass_time, throughout, wait_until
from test_notify import web  # a fixture


def test_a_device_stops_and_returns(env, web):
    """With the real monitor: a program and a web server each get one message, and later one end."""
    inbox, server = Inbox(env), web()
    a = Alert(env, receivers={"ops": inbox.receiver(), "hook": {"type": "webhook", "url": server.url, "interval": "100ms"}})
    d = env.daemon(timeout="500ms")
    a.start()
    env.beat("pump-7")
    wait_until(lambda: d.state("pump-7") == "offline")
    inbox.wait(("opened", "pump-7"))
    message = inbox.messages()[0]
    assert message["message"] == "ops-1" and message["node"] == a.node
    incident = message["news"][0]["incident"]
    assert incident["kind"] == "device" and incident["state"] == "open" and incident["devices"] == ["pump-7"]
    assert incident["sentence"].startswith("device pump-7 of group default is offline since"), incident
    assert [i["id"] for i in a.incidents()] == [incident["id"]]
    with env.beating(["pump-7"], 0.1):
        inbox.wait(("opened", "pump-7"), ("closed", "pump-7"))
        assert inbox.ids("closed") == [incident["id"]]
        wait_until(lambda: len(server.requests) == 2, what="both messages of the web server")
        assert [m["news"][0]["what"] for m in server.messages()] == ["opened", "closed"]
        assert [r["headers"]["Idempotency-Key"] for r in server.requests] == ["hook-1", "hook-2"]
        assert a.incidents() == []
        closed = a.incidents("?state=closed")
        assert [i["id"] for i in closed] == [incident["id"]]
        shown = a.json("/v1/incidents/" + incident["id"])
        assert shown["state"] == "closed" and sorted(s["receiver"] for s in shown["sent"]) == ["hook", "ops"]
        throughout(lambda: len(inbox.tries()) == 2 and len(server.requests) == 2, 1)
    assert env.redis.hget(env.key("receiver", "ops"), "sending") == ""
    assert not env.redis.zcard(env.key("incidents"))


def test_a_state_of_another_type_is_no_return(env):
    """device:offline names the device, but the key of its state is a string when heartwheel-alert starts: the incident stays
    open, without a message. The device's next transition ends it."""
    inbox, a = begin_incident(env)
    a.stop()
    key = env.key("state", "pump-7")
    env.redis.rename(key, key + ".kept")
    env.redis.set(key, "x")
    a.start()
    wait_until(lambda: a.metrics().get("alert_unusable_total", kind="device") == 1)
    throughout(lambda: inbox.news() == [("opened", "pump-7")] and len(a.incidents()) == 1, 4, "the incident to stay open")
    env.redis.rename(key + ".kept", key)
    set_online(env, "pump-7", True)
    inbox.wait(("opened", "pump-7"), ("closed", "pump-7"))


def ends_are_right(inbox, closed, open_now=()):
    """Each opening has one end unless its incident is open; no end comes without an opening; a repetition has the same key and
    content."""
    tries = {}
    for key, message in inbox.tries():
        assert tries.setdefault(key, message) == message, "the key %s came with another content" % key
    opened = inbox.ids("opened")
    assert len(set(opened)) == len(opened), "an incident was opened twice"
    assert len(set(inbox.ids("closed"))) == len(inbox.ids("closed")), "an end came twice"
    assert set(inbox.ids("closed")) == set(opened) - set(open_now), "ends: %s" % closed


class Commits:
    """What the commits of an instance write, as MONITOR of Redis shows it."""

    def __init__(self, env):
        self.prefix, self.lines = env.prefix, []
        self.socket = socket.create_connection(("127.0.0.1", env.redis_server.port), timeout=10)
        self.socket.sendall(b"MONITOR\r\n")
        self.file = self.socket.makefile("rb")
        assert self.file.readline() == b"+OK\r\n"
        self.thread = threading.Thread(target=lambda: self.lines.extend(self.file), daemon=True)
        self.thread.start()

    def end(self):
        """[{items, sent, receiver}]: the number of items; whether news count as sent; whether a message is stored."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        found = []
        for line in self.lines:
            source, words = line.split(b"]", 1)[0], re.findall(rb'"((?:[^"\\]|\\.)*)"', line)
            key = words[1].decode().removeprefix(self.prefix) if len(words) > 1 else ""
            if words[:1] == [b"EVALSHA"]:
                found.append({"items": 0, "sent": False, "receiver": False})
            elif source.endswith(b"lua") and words[0] in (b"HSET", b"HDEL", b"XADD"):
                if key.endswith(":members"):
                    found[-1]["items"] += len(words[2:]) // (2 if words[0] == b"HSET" else 1)
                elif key.startswith(("incident", "receiver:", "silence:")):
                    found[-1]["items"] += 1
                    found[-1]["sent"] |= any(w.startswith(b"to:") for w in words)
                    found[-1]["receiver"] |= key.startswith("receiver:")
        return [c for c in found if c["items"]]


@pytest.mark.parametrize("mass", [0, 20])
def test_many_devices_at_once_are_written_in_bounded_commits(env, mass):
    """News count as sent in the commit that stores the message, however many commits came before it."""
    env.check_events = False
    inbox, devices = Inbox(env), ["d%03d" % k for k in range(400)]
    a = Alert(env, receivers={"ops": inbox.receiver(interval="1s")}, mass=mass, flap_start=0)
    a.program = SMALL_COMMITS
    see(env)
    env.redis.hset(env.key("groups"), "default", "0 400 0")
    a.start()
    commits = Commits(env)
    for online in False, True:
        for device in devices:
            set_online(env, device, online)
        what = "closed" if online else "opened"
        wait_until(lambda: sum(len(m["news"]) + sum(m.get("more", {}).values()) for m in inbox.messages()
                               if what in {n["what"] for n in m["news"]} | set(m.get("more", {}))) >= (1 if mass else len(devices)), what=what)
        if not online:
            stored = [d for i in env.redis.zrange(env.key("incidents"), 0, -1) for d in env.redis.hkeys(env.key("incident:%s:members" % i))]
            assert sorted(stored) == devices
    a.wait_open(0)
    found = commits.end()
    assert 48 <= max(c["items"] for c in found if not c["receiver"]) <= 50 and sum(c["items"] for c in found) > 800
    assert max(c["items"] for c in found) <= 100, "what messages change is as many items again, at most"
    assert any(c["sent"] for c in found) and all(c["receiver"] for c in found if c["sent"])


def test_of_two_instances_one_works(env):
    """The holder is stopped and the other instance takes over; when the first one resumes, it stands by."""
    inbox = Inbox(env)
    receivers = {"ops": inbox.receiver()}
    a, b = Alert(env, "alert-a", receivers), Alert(env, "alert-b", receivers)
    see(env)
    a.start()
    b.start(ready=False)
    wait_until(lambda: b.get("/readyz").status == 503 and b"'alert-a' works" in b.get("/readyz").body,
               what="b to name the holder")
    assert b.get("/v1/incidents").status == 503
    set_online(env, "pump-7", False)
    inbox.wait(("opened", "pump-7"))
    wait_until(lambda: not env.redis.hget(env.key("receiver", "ops"), "sending"), what="the commit after the message")
    a.signal(signal.SIGSTOP)
    set_online(env, "pump-7", True)
    env.redis.pexpire(env.key("alert", "lease"), 50)  # as 30 s would
    wait_until(b.ready, 15, "b to take over")
    inbox.wait(("opened", "pump-7"), ("closed", "pump-7"))
    a.signal(signal.SIGCONT)
    wait_until(lambda: a.get("/readyz").status == 503 and b"'alert-b' works" in a.get("/readyz").body, 15,
               "a to stand by")
    set_online(env, "pump-8", False)
    inbox.wait(("opened", "pump-7"), ("closed", "pump-7"), ("opened", "pump-8"))
    set_online(env, "pump-8", True)
    inbox.wait(("opened", "pump-7"), ("closed", "pump-7"), ("opened", "pump-8"), ("closed", "pump-8"))
    assert len(inbox.tries()) == 4
    b.stop()
    wait_until(a.ready, 15, "a to take over")


@pytest.mark.parametrize("ttl", ["a day", "none"])
def test_a_lease_that_would_not_end(env, ttl):
    """Redis' clock was set back after the holder died, or another program has removed the lease's TTL."""
    lease, run = env.key("alert", "lease"), "1 died 00000000000000aa"
    env.redis.set(lease, run, px=86400000 if ttl == "a day" else None)
    b = Alert(env, "alert-b")
    see(env)
    b.start(ready=False)
    wait_until(lambda: 0 < env.redis.pttl(lease) <= 30000, what="the lease to end in its usual time")
    assert env.redis.get(lease) == run and b.get("/readyz").status == 503
    left = env.redis.pttl(lease)
    throughout(lambda: env.redis.pttl(lease) <= left, 5)  # it is bounded once, not prolonged at each look
    env.redis.pexpire(lease, 50)
    wait_until(b.ready, 15, "b to take over")


def test_the_same_name_twice(env):
    """The instance that starts later takes over at once; the first instance exits with status 1."""
    a, b = Alert(env, "twin"), Alert(env, "twin")
    a.start()
    b.start()
    assert a.wait(15) == 1
    a.awaited = True
    assert "with this node_id" in a.log()
    assert b.ready()


def test_redis_is_emptied(env):
    """Redis loses its data: open incidents stay open, and the end of each is sent once."""
    env.own_redis()
    inbox, a = begin_incident(env)
    wait_until(lambda: not env.redis.hget(env.key("receiver", "ops"), "sending"), what="the commit after the message")
    env.redis.flushall()
    see(env)
    wait_until(lambda: env.redis.zcard(env.key("incidents")) == 1, 15, "the incident to be written again")
    assert [i["device"] for i in a.incidents()] == ["pump-7"]
    set_online(env, "pump-7", True)
    inbox.wait(("opened", "pump-7"), ("closed", "pump-7"))
    a.stop()
    a.start()
    set_online(env, "pump-8", False)
    inbox.wait(("opened", "pump-7"), ("closed", "pump-7"), ("opened", "pump-8"))
    assert len(inbox.tries()) == 3
    env.check_events = False


def test_redis_is_put_back(env):
    """Redis has old data, as after a failover to a replica that lagged: the instance's memory is newer and is written again."""
    env.own_redis()
    env.check_events = False
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()}, mass=0)
    see(env)
    a.start()
    set_online(env, "pump-1", False)
    inbox.wait(("opened", "pump-1"))
    wait_until(lambda: not env.redis.hget(env.key("receiver", "ops"), "sending"), what="the commit after the message")
    env.redis.save()
    set_online(env, "pump-1", True)
    set_online(env, "pump-2", False)
    inbox.wait(("opened", "pump-1"), ("closed", "pump-1"), ("opened", "pump-2"))
    env.redis_server.signal(signal.SIGKILL)
    env.redis_server.wait()
    env.redis_server.start()
    assert env.redis.zcard(env.key("incidents")) == 1
    see(env)
    wait_until(lambda: "older state" in a.log(), 20, "the loss to be noticed")
    wait_until(lambda: [i["device"] for i in a.incidents()] == ["pump-2"], 20)
    open_ids = [i["id"] for i in a.incidents()]
    wait_until(lambda: env.redis.zrange(env.key("incidents"), 0, -1) == open_ids, 20, "the incidents to be written again")
    set_online(env, "pump-1", True)  # as the monitor writes its devices again
    set_online(env, "pump-2", False)
    a.stop()
    a.start()
    set_online(env, "pump-2", True)
    inbox.wait(("opened", "pump-1"), ("closed", "pump-1"), ("opened", "pump-2"), ("closed", "pump-2"))
    throughout(lambda: len(inbox.news()) == 4 and len(inbox.tries()) == len(inbox.messages()), 1)


def test_redis_is_away(env):
    """No news is lost while Redis is away, and Redis' absence is an incident itself."""
    env.own_redis(options=["--appendonly", "yes"])
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()}, blind_after="2s")
    see(env)
    a.start()
    set_online(env, "pump-7", False)
    inbox.wait(("opened", "pump-7"))
    wait_until(lambda: not env.redis.hget(env.key("receiver", "ops"), "sending"), what="the commit after the message")
    env.redis_server.kill()
    wait_until(lambda: ("opened", "blind") in inbox.news(), 20, "news of blindness")
    env.redis_server.start()
    see(env)
    set_online(env, "pump-7", True)
    def closed():
        see(env)
        return sorted(inbox.news()) == sorted([("opened", "pump-7"), ("opened", "blind"), ("closed", "blind"),
                                               ("closed", "pump-7")])
    wait_until(closed, 20, "both ends")
    ends_are_right(inbox, inbox.news())


@pytest.mark.parametrize("fault", ["", "the connection is closed", "the right is missing"])
def test_an_idle_instance_waits_for_entries(env, fault):
    """It wakes up rarely, and still reads each entry; also if the connection that waits for entries does not."""
    env.own_redis()
    inbox, a = begin_incident(env)
    r = env.redis
    if fault == "the right is missing":
        r.execute_command("ACL", "SETUSER", "default", "-xread")
        wait_until(lambda: "Redis does not report new entries of %s" % env.key("events") in a.log(), what="a warning")
    elif fault:
        waits = wait_until(lambda: [c for c in r.client_list() if c["cmd"] == "xread"], what="the waiting connection")
        r.client_kill_filter(_id=waits[0]["id"])
    before = a.wake_ups()
    pass_time(3)
    assert a.wake_ups() - before < 90
    set_online(env, "pump-7", True)
    inbox.wait(("opened", "pump-7"), ("closed", "pump-7"))
    if fault == "the connection is closed":
        wait_until(lambda: [c for c in r.client_list() if c["cmd"] == "xread"], what="a new connection")


def test_one_key_that_may_not_be_read(env):
    """Redis' ACL denies one key that the load needs: /readyz and the log name the command and the key."""
    env.own_redis()
    a = Alert(env)
    see(env)
    env.redis.execute_command("ACL", "SETUSER", "default", "resetkeys", "~%s[^g]*" % env.key(""), "~*:task:*")
    a.start(ready=False)
    what = "HGETALL %s: Redis' ACL denies" % env.key("groups")
    wait_until(lambda: "the state cannot be loaded: " + what in json.loads(a.get("/readyz").body)["error"])
    assert "Redis: " + what in a.log(), a.log()
    env.redis.execute_command("ACL", "SETUSER", "default", "allkeys")
    wait_until(a.ready, what="the load after the right is back")


def test_many_connections_leave_descriptors(env):
    """Who fills up the socket keeps no message from a program, and no connection from Redis."""
    env.check_events = False
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()})
    see(env)
    a.start()
    resource.prlimit(a.pid, resource.RLIMIT_NOFILE, (300, 300))
    clients = []
    while len(clients) < 400:
        c = socket.socket(socket.AF_UNIX)
        try:
            wait_until(lambda: c.setblocking(False) or c.connect_ex(str(a.socket)) == 0, 1)
        except NotWithin:
            break  # the queue of the socket is full
        c.sendall(b"GET /v1/incidents/events HTTP/1.1\r\nHost: x\r\n\r\n")
        clients.append(c)
    assert len(clients) > 300, len(clients)
    pass_time(1)
    news = []
    for k in range(5):
        set_online(env, "d%d" % k, False)
        news.append(("opened", "d%d" % k))
        inbox.wait(*news)
    assert len(os.listdir("/proc/%d/fd" % a.pid)) < 260
    for c in clients:
        c.close()
    wait_until(a.ready, what="the socket to be open again")


def test_a_trimmed_stream(env):
    """Entries that heartwheel-alert had not read are trimmed: it goes by device:offline instead."""
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()}, mass=0)
    see(env)
    a.start()
    set_online(env, "pump-1", False)
    set_online(env, "pump-2", False)
    inbox.wait(("opened", "pump-1"), ("opened", "pump-2"))
    a.die()
    a.awaited = True
    set_online(env, "pump-1", True)
    set_online(env, "pump-3", False)
    env.redis.xtrim(env.key("events"), maxlen=0)
    set_online(env, "pump-4", False)
    a.start()
    inbox.wait(("opened", "pump-1"), ("opened", "pump-2"), ("closed", "pump-1"), ("opened", "pump-3"), ("opened", "pump-4"))
    assert "Redis trimmed entries of" in a.log()
    env.check_events = False


def test_the_first_start_sends_nothing(env):
    """The incidents of the first start are listed; neither their openings nor their ends are sent."""
    inbox = Inbox(env)
    see(env)
    set_online(env, "old", False)
    a = Alert(env, receivers={"ops": inbox.receiver()}).start()
    a.wait_open(1)
    set_online(env, "new", False)
    inbox.wait(("opened", "new"))
    set_online(env, "old", True)
    set_online(env, "new", True)
    inbox.wait(("opened", "new"), ("closed", "new"))
    a.wait_open(0)


def test_many_names_of_monitors(env):
    """A monitor's node_id follows its pod, so it has many names: the hundredth name counts as the first did."""
    a = Alert(env, blind_after="6s")
    see(env)
    a.start()
    for k in range(100):
        set_online(env, "d%d" % k, True, node="pod-%d" % k)
    env.redis.xadd(env.key("sight"), {"node": "pod-99", "state": "sees"})
    again = time.monotonic() + 14
    while time.monotonic() < again:
        see(env, "pod-99")
        assert a.incidents() == []
        pass_time(0.5)
    [found] = a.wait_open(1, 40)
    assert found["kind"] == "blind"
    wait_until(lambda: see(env, "pod-99") or a.incidents() == [], what="the end of the blindness")


@pytest.mark.parametrize("name", ["offline", "events"])
def test_a_key_of_another_type(env, name):
    """The key is of another type, so the state cannot be loaded: this is logged, and retried with pauses. No outage ends
    because of it."""
    inbox, a = begin_incident(env)
    a.stop()
    r, key = env.redis, env.key(name)
    r.rename(key, key + "-kept")
    r.set(key, "text")
    a.start(ready=False)
    text = key + ": a key holds a type that heartwheel does not write there"
    wait_until(lambda: text in a.get("/readyz").body.decode(), what="the reason at /readyz")
    assert a.get("/readyz").status == 503
    before = r.info("commandstats")
    pass_time(5)
    calls = sum(v["calls"] - before.get(k, {"calls": 0})["calls"] for k, v in r.info("commandstats").items())
    assert calls < 5 * 200, "%d commands in 5 s" % calls
    assert text in a.json("/v1/status")["why"]
    assert 1 <= a.metrics().get("alert_unusable_total", kind="key") <= 4
    assert a.log().count("the state cannot be loaded: " + key) <= 4
    r.rename(key + "-kept", key)
    wait_until(a.ready, 40, "the state to be loaded")
    assert inbox.news() == [("opened", "pump-7")]
    set_online(env, "pump-7", True)
    inbox.wait(("opened", "pump-7"), ("closed", "pump-7"))
    # While it works: nothing new can be read, which /readyz shows.
    if name == "events":
        r.rename(key, key + "-kept")
        r.set(key, "text")
        wait_until(lambda: key + " cannot be read: a key holds a type" in a.get("/readyz").body.decode(), what="the reason")
        assert a.get("/v1/incidents").status == 200
        r.rename(key + "-kept", key)
        wait_until(a.ready, what="the stream to be read")


def test_wrong_values_in_redis(env):
    """Values that another program wrote are counted and skipped."""
    inbox, a = begin_incident(env)
    a.stop()
    r = env.redis
    r.zadd(env.key("incidents"), {"x" * 12: 1, "../../etc": 2, "0" * 12: 3})
    r.hset(env.key("incident", "x" * 12), mapping={"kind": "device", "state": "open", "opened_ms": "9" * 18})
    r.set(env.key("incident", "0" * 12), "text")
    r.zadd(env.key("offline"), {"ghost": 5, "bad\nid": 6, "plus+": 7})
    r.hset(env.key("alert"), mapping={"at:events": "nonsense", "at:tasks": "99999999999999-0"})
    r.sadd(env.key("silences"), "a" * 12, "b")
    r.hset(env.key("silence", "a" * 12), mapping={"match": "wrong term", "until_ms": "x"})
    r.hset(env.key("receiver", "ops"), "sending", '{"message":"other-1"}\nnonsense')
    r.hset(env.key("groups"), mapping={"default": "many few -1", "": "1 1 0"})
    r.set(env.key("monitor", "odd"), b"\xff\xfe")
    a.start()
    for fields in ({"id": "x"}, {"id": "a+b", "state": "offline", "seq": 1, "time_ms": 1},
                   {"id": "y", "state": "exploded", "seq": 1}, {"id": "z", "state": "offline", "seq": "9" * 30}):
        r.xadd(env.key("events"), fields)
    set_online(env, "pump-8", False)
    inbox.wait(("opened", "pump-7"), ("opened", "pump-8"))
    assert [i.get("device") for i in a.incidents()] == ["pump-8", "pump-7"]
    wait_until(lambda: a.metrics().get("alert_unusable_total", kind="group"), what="the groups to be counted")
    for kind in ("entry", "incident", "silence", "offset", "device"):
        assert a.metrics().get("alert_unusable_total", kind=kind) > 0, kind
    set_online(env, "pump-7", True)
    set_online(env, "pump-8", True)
    inbox.wait(("opened", "pump-7"), ("opened", "pump-8"), ("closed", "pump-7"), ("closed", "pump-8"))
    env.check_events = False
