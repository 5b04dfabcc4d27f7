# SPDX-License-Identifier: MIT
"""What programs see of heartwheel-tasks: its HTTP API, calls among several instances, and requests through heartwheeld."""
import http.client
import json
import os
import signal
import socket
import threading
import time
import urllib.request
import uuid

import pytest

from hw_http import UnixHTTP
from hw_process import next_number
from hw_relay import Relay
from hw_tasks import Device, Tasks
from hw_wait import in_time, now_ms, wait_until


def post(t, body, query="", **headers):
    return t.request("POST", "/v1/tasks" + query, body, headers)


def task(receiver, **more):
    return {"receiver": receiver, "action": "set", **more}


class Stream:
    """The events of heartwheel-tasks, in the order of their arrival."""

    def __init__(self, t, last=None, path="/v1/tasks/events"):
        self.events = []
        self.connection = UnixHTTP(t.socket, timeout=60)
        self.connection.request("GET", path, None, {"Last-Event-ID": last} if last else {})
        self.response = self.connection.getresponse()
        self.status = self.response.status
        assert self.status == 200, self.response.read()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        event = {}
        try:
            for line in self.response:
                line = line.decode().rstrip("\n")
                if not line and "data" in event:
                    self.events.append((event["event"], event["id"], json.loads(event["data"])))
                    event = {}
                elif ": " in line:
                    key, value = line.split(": ", 1)
                    event[key] = value
        except (OSError, http.client.HTTPException, AttributeError, ValueError):
            pass

    def states(self, task):
        return [d["state"] for kind, _, d in list(self.events) if kind == "task" and d["task"] == task]

    def close(self):
        self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        self.connection.close()


def test_a_task_is_taken_followed_and_known_again(env):
    t = Tasks(env).start()
    device = Device(t, "pump")
    body = task("pump", msg_id="m1", payload={"b": [1, 2.50]})
    before = now_ms()
    a = post(t, body, "?wait=20")
    assert a.status == 201, a
    done = a.json()
    assert (done["state"], done["sender"], done["receiver"], done["msg_id"]) == ("complete", "local", "pump", "m1"), done
    assert done["value"] == {"done": True} and done["payload"] == {"b": [1, 2.50]} and done["tries"] == 1
    assert before - 1000 <= done["created_ms"] <= done["sent_ms"] <= done["acked_ms"] <= done["ended_ms"]
    assert b'"payload":{"b": [1, 2.5]}' in a.body  # byte for byte as it was given
    assert device.wait()["origin"] == "local"
    again = post(t, body)
    assert again.status == 200 and again.json()["task"] == done["task"] and again.json()["state"] == "complete"
    other = post(t, task("pump", msg_id="m1", payload=7))
    assert other.status == 409 and "other content" in other.json()["error"], other
    # Without a msg_id each is another one.
    one, two = (post(t, task("pump")) for _ in range(2))
    assert one.status == two.status == 201 and one.json()["task"] != two.json()["task"] and one.json()["msg_id"]
    shown = t.get("/v1/tasks/" + done["task"])
    assert shown.status == 200 and shown.json() == done, (shown, done)
    assert t.get("/v1/tasks/" + str(uuid.uuid4())).status == t.get("/v1/tasks/zzz").status == 404
    m = t.metrics()
    for name in ("tasks_total", "task_lateness_seconds_count", "task_ack_seconds_count", "task_retries_total",
                 "task_refused_total", "task_late_answers_total", "task_foreign_answers_total", "task_overdue",
                 "task_clock_held"):
        assert m.has(name), name
    wait_until(lambda: t.metrics().get("tasks_total", state="complete") >= 3, what="the ends to be counted")
    assert m.get("task_clock_held") == 0
    s = t.get("/v1/status").json()
    assert s["redis"] == s["mqtt"] == "up" and s["node"] == t.node and t.get("/v1/tasks/status").json()["node"] == t.node


@pytest.mark.parametrize("first", [b"13", b"15"])
def test_an_answer_of_redis_about_more_or_fewer_tasks_is_refused(env, first):
    """The script counts the tasks from another argument, so its answer is for another number of tasks and is refused."""
    found = b"each(%s, 1, function(a)\nlocal task = ARGV[a]\nreturn { call('HGETALL'"
    way = Relay(lambda: env.redis_server.port, asked={found % b"14": found % first})
    t = Tasks(env, redis={"port": way.port}).start()
    Device(t, "pump")
    for body in ([task("pump"), task("pump"), task("no/name")], [task("no/name"), task("pump")], task("pump")):
        a = post(t, body, "?wait=5")
        assert a.status == 503 and "does not match the request" in a.json()["error"], a
        one = post(t, body)
        assert one.status == (201 if isinstance(body, dict) else 200), one
    assert t.get("/v1/tasks/" + one.json()["task"]).status == 503
    t.stop()
    way.close()


def test_many_tasks_in_one_request_have_their_own_results(env):
    t = Tasks(env, max_per_receiver=3, window=1).start()
    t.set_online("held", False)
    later = now_ms() / 1000 + 3600
    bodies = [task("held", msg_id="a"), task("held", msg_id="b", at=later), task("no/name"), 7,
              task("other", msg_id="a"), task("held", msg_id="c", after=1), task("held", msg_id="d"),
              task("x", time=time.time() - 400000), task("x", at=later, exp=later - 1),
              {"topic": "t/x", "payload": "p"}, task("held", msg_id="b", at=later)]
    a = post(t, bodies)
    assert a.status == 200, a
    r = a.json()["results"]
    assert [x["status"] for x in r] == [201, 201, 400, 400, 409, 201, 503, 409, 409, 403, 200], r
    assert "receiver" in r[2]["error"] and "object" in r[3]["error"] and "content" in r[4]["error"], r
    assert "max_per_receiver" in r[6]["error"] and "older" in r[7]["error"] and "exp" in r[8]["error"]
    assert "publish" in r[9]["error"] and r[10]["task"] == r[1]["task"]
    # Those that wait are listed, page by page, filtered, and counted.
    wait_until(lambda: t.state(r[0]["task"]) == "held", what="one to be held")
    listed = t.get("/v1/tasks?receiver=held").json()
    assert [x["msg_id"] for x in listed["tasks"]] == ["a", "c", "b"] and "next" not in listed, listed
    assert listed["tasks"][2]["at_ms"] == round(later * 1000)
    found, after = [], ""
    while True:
        page = t.get("/v1/tasks?limit=1" + after).json()
        found += [x["task"] for x in page["tasks"]]
        if "next" not in page:
            break
        after = "&after=" + page["next"]
    assert sorted(found) == sorted(x["task"] for x in (r[0], r[1], r[5])) and len(found) == 3
    assert [x["task"] for x in t.get("/v1/tasks?state=held&limit=5").json()["tasks"]][0] == r[0]["task"]
    assert t.get("/v1/tasks?receiver=nobody").json() == {"tasks": []}
    wait_until(lambda: t.metrics().get("tasks", state="held") >= 1 and t.get("/v1/status").json()["waiting"] == 3,
               what="what waits to be counted")
    # Cancelled: whoever is told of it may have been late.
    gone = t.request("DELETE", "/v1/tasks/" + r[1]["task"])
    assert gone.status == 200 and gone.json()["was"] == "scheduled" and gone.json()["tries"] == 0, gone
    assert t.request("DELETE", "/v1/tasks/" + r[1]["task"]).status == 409
    assert t.request("DELETE", "/v1/tasks/" + str(uuid.uuid4())).status == 404
    device = Device(t, "slow", behave=("ack",))
    slow = post(t, task("slow"), "?wait=0").json()["task"]
    t.wait_state(slow, "acked")
    refused = t.request("DELETE", "/v1/tasks/" + slow)
    assert refused.status == 409 and "force" in refused.json()["error"], refused
    assert t.request("DELETE", "/v1/tasks/" + slow + "?force=1").json()["was"] == "acked"
    assert device.got


def test_events_come_as_they_happen_and_go_on_where_they_ended(env):
    t = Tasks(env).start()
    Device(t, "pump")
    live = Stream(t)
    first = post(t, task("pump", msg_id="1")).json()["task"]
    wait_until(lambda: live.states(first) == ["scheduled", "sent", "acked", "complete"] or
               live.states(first)[-1:] == ["complete"], what="the events")
    place = next(i for kind, i, d in live.events if d["task"] == first)
    ids = [i for _, i, _ in live.events]
    live.close()
    second = post(t, task("pump", msg_id="2"), "?wait=20").json()["task"]
    back = Stream(t, last=place)
    wait_until(lambda: "complete" in back.states(second), what="what came meanwhile")
    assert [i for _, i, _ in back.events][:len(ids) - 1] == ids[1:] and len({i for _, i, _ in back.events}) == len(back.events)
    third = post(t, task("pump", msg_id="3"), "?wait=20").json()["task"]
    wait_until(lambda: "complete" in back.states(third), what="what comes now")
    assert [k for k, _, _ in back.events if k != "task"] == []
    # What is gone is said to be.
    lost = Stream(t, path="/v1/tasks/events?after=5-5")
    wait_until(lambda: lost.events and lost.events[0][0] == "reset", what="a reset")
    fourth = post(t, task("pump", msg_id="4"), "?wait=20").json()["task"]
    wait_until(lambda: "complete" in lost.states(fourth), what="events behind the reset")
    assert t.get("/v1/tasks/events?after=x").status == 400
    back.close()
    lost.close()


def test_who_waits_is_answered_at_the_end_or_in_time(env):
    t = Tasks(env, ack_wait="1s").start()
    began = time.monotonic()
    a = post(t, task("nobody"), "?wait=1")
    assert a.status == 201 and a.json()["state"] in ("scheduled", "sent"), a
    assert 0.9 <= time.monotonic() - began
    failing = Device(t, "bad", behave=("failed",))
    a = post(t, [task("bad"), task("bad", exp=time.time() + 0.5, at=time.time() + 0.2), 3], "?wait=20")
    r = a.json()["results"]
    assert r[0]["state"] == "failed" and r[0]["error"] == "broken" and r[2]["status"] == 400, r
    # A client that goes away while it waits is nothing to the daemon.
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(t.socket))
    body = json.dumps(task("nobody", after=30)).encode()
    s.sendall(b"POST /v1/tasks?wait=40 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    wait_until(lambda: len(t.get("/v1/tasks?receiver=nobody").json()["tasks"]) == 2, what="it to be taken")
    s.close()
    assert failing.got and t.get("/healthz").status == 200


@pytest.mark.parametrize("method,path,body,status", [
    ("POST", "/v1/tasks", b"", 400), ("POST", "/v1/tasks", b"{", 400), ("POST", "/v1/tasks", b"[]", 400),
    ("POST", "/v1/tasks", b"[" * 100000, 400), ("POST", "/v1/tasks", b"7", 400), ("POST", "/v1/tasks", b"\xff{}", 400),
    ("POST", "/v1/tasks", b'{"receiver":"a","action":"b","at":1,"after":1}', 400),
    ("POST", "/v1/tasks", b'{"receiver":"a","action":"b","msg_id":"a b"}', 400),
    ("POST", "/v1/tasks?wait=51", b'{"receiver":"a","action":"b"}', 400),
    ("POST", "/v1/tasks?wait=-1", b'{"receiver":"a","action":"b"}', 400),
    ("POST", "/v1/tasks?weit=1", b'{"receiver":"a","action":"b"}', 400),
    ("POST", "/v1/tasks", b"[" + b"{}," * 1000 + b"{}]", 400),
    ("POST", "/v1/tasks", b'{"receiver":"a","action":"b","payload":"' + b"x" * 70000 + b'"}', 400),
    ("PUT", "/v1/tasks", b"{}", 405), ("DELETE", "/v1/tasks", None, 405), ("POST", "/v1/status", b"", 405),
    ("GET", "/v1/tasks?state=complete", None, 400), ("GET", "/v1/tasks?state=x", None, 400),
    ("GET", "/v1/tasks?after=1", None, 400), ("GET", "/v1/tasks?limit=0", None, 400), ("GET", "/v1/tasks?x=1", None, 400),
    ("GET", "/v1/tasks?receiver=a%2Fb", None, 400), ("GET", "/v1/tasks/%00", None, 404), ("GET", "/nothing", None, 404),
    ("DELETE", "/v1/tasks/x?force=2", None, 400), ("POST", "/v1/call", b"{}", 400), ("GET", "/v1/call", None, 405),
    ("POST", "/v1/call", b'{"topic":"a","reply":"b","payload":1}', 403),
    ("POST", "/v1/call", b'{"topic":"a/#","reply":"b"}', 400), ("POST", "/v1/call", b'{"topic":"a"}', 400),
    ("POST", "/v1/call", b'{"topic":"a","reply":"b","timeout":51}', 400)],
    ids=lambda v: str(v)[:24] if isinstance(v, (str, int)) else None)
def test_what_is_wrong_is_said_in_json(hostile, method, path, body, status):
    a = hostile.request(method, path, body)
    assert a.status == status and a.json()["error"], a


@pytest.fixture(scope="module")
def hostile(base, shared_broker, shared_redis):
    from hw_env import Env
    e = Env(shared_broker, shared_redis, base)
    yield Tasks(e).start()
    wrong = e.close()
    e.remove()
    if wrong:
        raise wrong


def test_bodies_beyond_the_bound_and_a_daemon_without_redis(env):
    redis = env.own_redis()
    t = Tasks(env).start()
    large = post(t, b" " * (5 << 20))
    assert large.status == 413 and large.json()["error"], large
    big = [task("r%d" % i, payload="x" * 2000) for i in range(1000)]
    results = post(t, big).json()["results"]
    assert [r["status"] for r in results] == [201] * 1000
    redis.stop() if hasattr(redis, "stop") else redis.kill()
    wait_until(lambda: t.get("/readyz").status == 503, what="it not to be ready")
    for a in (post(t, task("a")), t.get("/v1/tasks"), t.get("/v1/tasks/" + results[0]["task"]),
              t.request("DELETE", "/v1/tasks/" + results[0]["task"])):
        assert a.status == 503 and a.json()["error"], a
    assert t.get("/v1/status").status == 200 and t.metrics().get("task_redis_up") == 0
    redis.start()
    wait_until(lambda: t.get("/readyz").status == 200, what="it to be ready again")
    wait_until(lambda: post(t, task("a")).status == 201, what="tasks to be taken again")


class Answerer:
    """A device that answers each message on ROOT/NAME/request on the topic that the request names."""

    def __init__(self, env, name, quiet=()):
        self.asked = []
        self.client = env.client()
        self.client.client.on_message = self.on_message
        self.env, self.name, self.quiet = env, name, quiet
        self.client.subscribe("%s/%s/request" % (env.root, name), 1)

    def on_message(self, client, userdata, message):
        body = json.loads(message.payload)
        self.asked.append(body)
        if body["n"] not in self.quiet:
            self.client.publish("%s/%s/response/%d" % (self.env.root, self.name, body["n"]), {"answer": body["n"]}, qos=1,
                                wait=False)


def call(t, env, n, timeout=10, name="dock", **more):
    return t.request("POST", "/v1/call", {"topic": "%s/%s/request" % (env.root, name), "payload": {"n": n},
                                          "reply": "%s/%s/response/%d" % (env.root, name, n), "timeout": timeout, **more})


def test_the_instance_whose_client_waits_gets_the_answer(env):
    env.own_redis()
    env.own_broker()
    answers, publish = env.root + "/+/response/+", env.root + "/+/request"
    three = [Tasks(env, node="n%d-%d" % (i, next_number()), instances="several", answers=answers, publish=publish).start()
             for i in range(3)]
    dock = Answerer(env, "dock", quiet=range(1000, 2000))
    wait_until(lambda: all(call(t, env, 9000 + i, timeout=3).status == 200 for i, t in enumerate(three)),
               what="calls to be answered")
    # A shared subscription gives each answer to the next of them in turn, whoever has asked.
    for n in range(30):
        a = call(three[n // 10], env, n)
        assert a.status == 200 and a.json()["payload"] == {"answer": n} and a.json()["topic"].endswith("/%d" % n), a
    heard = [t.metrics().get("task_calls_total", result="answered") for t in three]
    assert all(h >= 10 for h in heard), heard
    a = three[0].request("POST", "/v1/call", {"topic": env.root + "/dock/request", "reply": env.root + "/dock/other",
                                              "timeout": 0.5})
    assert a.status == 403 and "answers" in a.json()["error"], a
    # No answer: 504, and nothing is left in Redis.
    a = call(three[0], env, 1000, timeout=0.5)
    assert a.status == 504 and "time" in a.json()["error"], a
    wait_until(lambda: env.redis.keys("mqtt:*") == [], what="the callbacks to be gone")
    assert call(three[0], env, 1, name="nobody").status == 504  # nobody subscribes: at once
    # What an instance leaves behind that dies, and what has no callback any more, hinders nobody.
    topic = "%s/dock/response/1001" % env.root
    c = UnixHTTP(three[2].socket)
    c.request("POST", "/v1/call", json.dumps({"topic": env.root + "/dock/request", "payload": {"n": 1001}, "reply": topic,
                                              "timeout": 20}))
    wait_until(lambda: env.redis.scard("mqtt:topic:" + topic) == 1, what="the call to be registered")
    cb = next(iter(env.redis.smembers("mqtt:topic:" + topic)))
    h = env.redis.hgetall("mqtt:callback:" + cb)
    assert h["callbackId"] == cb and h["topic"] == topic and h["nodeId"] == three[2].node and h["timeoutMs"] == "20000", h
    assert 55000 <= env.redis.pttl("mqtt:callback:" + cb) <= 60000 and env.redis.pttl("mqtt:topic:" + topic) > 55000
    three[2].die()
    c.close()
    env.redis.sadd("mqtt:topic:" + topic, "stale")
    got = {}
    waiting = threading.Thread(target=lambda: got.update(a=three[0].request(
        "POST", "/v1/call", {"topic": env.root + "/dock/request", "payload": {"n": 1002}, "reply": topic, "timeout": 20})))
    waiting.start()
    wait_until(lambda: env.redis.scard("mqtt:topic:" + topic) == 3, what="the second call to be registered")
    wait_until(lambda: any(b["n"] == 1002 for b in dock.asked), what="the device to be asked")

    def answered():
        dock.client.publish(topic, "plain text", qos=1)
        waiting.join(0.5)
        return "a" in got
    wait_until(answered, what="the living to get the answer")  # the broker may give it to the dead one first
    assert got["a"].status == 200 and got["a"].json()["payload"] == "plain text", got
    assert not env.redis.sismember("mqtt:topic:" + topic, "stale")


def test_who_is_passed_on_by_heartwheeld_is_named(env):
    import hashlib
    t = Tasks(env).start()
    Device(t, "pump")
    users = env.own_dir("users") / "users"
    users.write_text("".join("%s:%s:%s\n" % (n, r, hashlib.sha256(("tok-" + n).encode()).hexdigest())
                             for n, r in (("otto", "operate"), ("rita", "read"))))
    from hw_process import free_port
    port = free_port()
    text = env.text(http={"listen": "127.0.0.1:%d" % port, "users": users,
                          "socket": env.dir / "c.sock"}) + "[tasks]\nsocket = %s\n" % t.socket
    d = env.configure(text)
    d.socket = env.dir / "c.sock"
    d.pid_file = env.dir / "heartwheeld.pid"
    d.start()

    def ask(method, path, token, body=None, **headers):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            c.request(method, path, body and json.dumps(body), {"Authorization": "Bearer " + token,
                                                                  "Content-Type": "application/json", **headers})
            r = c.getresponse()
            return r.status, json.loads(r.read())
        finally:
            c.close()
    status, done = ask("POST", "/v1/tasks?wait=20", "tok-otto", task("pump", msg_id="u"), **{"X-Heartwheel-User": "root"})
    assert status == 201 and done["sender"] == "user:otto" and done["state"] == "complete", done
    assert ask("GET", "/v1/tasks/" + done["task"], "tok-rita")[1] == done
    assert ask("GET", "/v1/tasks?receiver=pump", "tok-rita")[0] == 200
    assert ask("GET", "/v1/tasks/status", "tok-rita")[1]["node"] == t.node
    with urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:%d/v1/tasks/metrics" % port,
                                                       headers={"Authorization": "Bearer tok-rita"}), timeout=30) as r:
        assert r.headers["Content-Type"].startswith("text/plain") and b"\nheartwheel_task_known " in r.read()
    for method, path in (("POST", "/v1/tasks"), ("DELETE", "/v1/tasks/" + done["task"]), ("POST", "/v1/call")):
        assert ask(method, path, "tok-rita", task("pump"))[0] == 403
    assert ask("POST", "/v1/call", "tok-otto", {"topic": "a", "reply": "b"})[0] == 403  # of [tasks] publish
    assert ask("DELETE", "/v1/tasks/" + done["task"], "tok-otto")[0] == 409
    # Over heartwheeld's own socket nobody is named, whatever he says; and over the tasks' socket another user may not name
    # anybody.
    a = d.request("POST", "/v1/tasks", json.dumps(task("pump", msg_id="v")), {"X-Heartwheel-User": "otto"})
    assert a.status == 201 and t.record(a.json()["task"])["sender"] == "local", a
    if os.getuid() == 0:
        os.chmod(t.socket, 0o666)
        for uid, sender in ((65534, []), (0, ["user:otto"])):
            pid = os.fork()
            if pid == 0:
                try:
                    os.setuid(uid)
                    t.request("POST", "/v1/tasks", task("pump", msg_id="f%d" % uid), {"X-Heartwheel-User": "otto"})
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
            found = [env.redis.hgetall(k) for k in env.redis.scan_iter(t.key("????????-*"))]
            assert [f["sender"] for f in found if f.get("msg_id") == "f%d" % uid] == sender
    # Where heartwheel-tasks is away, that is said.
    t.signal(signal.SIGTERM)
    t.wait(20)
    status, said = ask("GET", "/v1/tasks", "tok-rita")
    assert status == 503 and "heartwheel-tasks" in said["error"]
