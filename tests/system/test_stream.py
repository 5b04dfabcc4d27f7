# SPDX-License-Identifier: MIT
"""The event stream as server-sent events, from a real store; and the API's behaviour without one."""
import http.client
import json
import socket
import threading

from hw_http import UnixHTTP
from hw_process import free_port
from hw_wait import pass_time, wait_until


class Events:
    """A client of /v1/events that reads in its own thread. `aside`: events without an offset in the stream, which may come at
    any time on a busy machine: a transition that Redis is late with, a change of sight."""

    def __init__(self, daemon, last=None):
        self.events, self.aside, self.comments, self.closed = [], [], 0, False
        self.connection = UnixHTTP(daemon.socket, timeout=60)
        self.connection.request("GET", "/v1/events", headers={"Last-Event-ID": last} if last else {})
        self.response = self.connection.getresponse()
        assert self.response.status == 200
        assert self.response.getheader("Content-Type") == "text/event-stream"
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        one = {}
        try:
            while True:
                line = self.response.readline()
                if not line:
                    break
                line = line.decode().rstrip("\n")
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    key, _, value = line.partition(": ")
                    one[key] = value
                elif "event" in one:
                    (self.events if "id" in one else self.aside).append(one)
                    one = {}
                else:
                    one = {}
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass
        self.closed = True

    def of(self, device):
        return [json.loads(e["data"])["state"] for e in self.events
                if e["event"] == "transition" and json.loads(e["data"])["id"] == device]

    def close(self):
        if self.connection.sock:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)
        self.connection.close()


def test_events_are_those_of_the_stream(env):
    d = env.daemon(timeout="1s")
    e = Events(d)
    env.beat("a")
    wait_until(lambda: e.of("a") == ["online"])
    with env.beating(["b"]):
        wait_until(lambda: e.of("a") == ["online", "offline"] and e.of("b") == ["online"])
    stream = env.redis.xrange(env.prefix + "events")
    assert [x["id"] for x in e.events] == [at for at, _ in stream]
    for got, (_, want) in zip(e.events, stream):
        data = json.loads(got["data"])
        assert {k: str(data[k]) for k in ("id", "state", "reason", "group", "seq")} == {
            k: want[k] for k in ("id", "state", "reason", "group", "seq")}
        assert str(data["since_ms"]) == want["time_ms"] and str(data["last_seen_ms"]) == want["last_seen_ms"]
        assert data["timeout_ms"] == 1000 and data["source"] == "mqtt"
    assert d.forget("a").status == 204
    wait_until(lambda: e.of("a")[-1] == "forgotten")
    e.close()


def test_resume(env):
    d = env.daemon(timeout="1h")
    e = Events(d)
    for k in range(5):
        env.beat("d%d" % k)
    wait_until(lambda: len(e.events) == 5)
    last = e.events[2]["id"]
    e.close()
    for k in range(5, 700):
        env.beat("d%d" % k)
    wait_until(lambda: d.status()["devices"] == 700 and d.status()["owed"] == 0)
    e = Events(d, last)
    wait_until(lambda: len(e.events) == 697)
    assert {json.loads(x["data"])["id"] for x in e.events} == {"d%d" % k for k in range(3, 700)}
    assert [x["id"] for x in e.events] == [at for at, _ in env.redis.xrange(env.prefix + "events")][3:]
    env.beat("late")
    wait_until(lambda: e.of("late") == ["online"])
    e.close()
    # Another run, the same stream.
    d.stop()
    d.start()
    e = Events(d, last)
    wait_until(lambda: len(e.events) == 698)
    assert d.get("/v1/transitions?limit=1").json()["transitions"][0]["event_id"] == e.events[-1]["id"]
    e.close()


def test_gone(env):
    d = env.daemon(timeout="1h")
    env.beat("a")
    wait_until(lambda: d.status()["devices"] == 1 and d.status()["owed"] == 0)
    e = Events(d, "1-1")
    wait_until(lambda: e.events)
    assert e.events[0]["event"] == "reset" and e.events[0]["id"] == env.redis.xrevrange(env.prefix + "events", count=1)[0][0]
    env.beat("b")
    wait_until(lambda: e.of("b") == ["online"])
    e.close()


def test_redis_away(env):
    env.own_redis()
    d = env.daemon(timeout="1h")
    e = Events(d)
    env.beat("a")
    wait_until(lambda: e.of("a") == ["online"])
    env.redis_server.signal(19)  # SIGSTOP: written perhaps, never answered
    env.beat("b")
    wait_until(lambda: d.status()["redis"] != "up", 20, "Redis to be missed")
    env.beat("c")
    assert e.of("c") == []
    env.redis_server.signal(18)
    wait_until(lambda: e.of("b") == ["online"] and e.of("c") == ["online"], 20, "what was missed")
    pass_time(0.5)
    ids = [x["id"] for x in e.events]
    assert len(ids) == len(set(ids)) == 3
    assert ids == [at for at, _ in env.redis.xrange(env.prefix + "events")]
    # Aside, and without a place, what happened meanwhile was told at once.
    assert [json.loads(x["data"])["id"] for x in e.aside if x["event"] == "pending"][-2:] == ["b", "c"]
    e.close()


def test_emptied(env):
    env.own_redis()
    env.check_events = False
    d = env.daemon(timeout="1h")
    e = Events(d)
    env.beat("a")
    wait_until(lambda: e.of("a") == ["online"])
    port = env.redis_server.port
    env.redis_server.stop()
    env.redis_server.port = port
    env.redis_server.start()
    wait_until(lambda: e.events[-1]["event"] == "reset", 20, "a reset")
    env.beat("b")
    wait_until(lambda: e.of("b") == ["online"])
    e.close()


def test_memory(env):
    d = env.daemon(timeout="1h", store={"type": "memory"})
    e = Events(d)
    env.beat("a")
    env.beat("b")
    wait_until(lambda: len(e.events) == 2)
    first, last = (x["id"] for x in e.events)
    e.close()
    e = Events(d, first)
    wait_until(lambda: e.of("b") == ["online"])
    assert e.of("a") == []
    e.close()
    d.stop()
    d.start()
    e = Events(d, last)
    wait_until(lambda: e.events)
    assert e.events[0]["event"] == "reset"
    e.close()


def test_device_events(env):
    d = env.daemon(timeout="1s")
    env.beat("a")
    with env.beating(["b"]):
        wait_until(lambda: d.state("a") == "offline")
        wait_until(lambda: len(d.get("/v1/devices/a/events").json()["transitions"]) == 2)
        got = d.get("/v1/devices/a/events").json()["transitions"]
    assert [t["state"] for t in got] == ["offline", "online"]
    assert [t["reason"] for t in got] == ["timeout", "heartbeat"]


def test_storm(env):
    """A burst that is faster than a socket: each event arrives once and in order."""
    d = env.daemon(timeout="1h")
    e = Events(d)
    for k in range(20000):
        env.publisher.publish("%s/d%05d/heartbeat" % (env.root, k), b"")
    wait_until(lambda: len(e.events) == 20000, 60, "every event")
    assert [json.loads(x["data"])["id"] for x in e.events] == ["d%05d" % k for k in range(20000)]
    assert d.metrics().get("event_clients") == 1
    e.close()
    wait_until(lambda: d.metrics().get("event_clients") == 0)


def test_listen(env):
    port = free_port()
    d = env.daemon(timeout="1h", http={"listen": "127.0.0.1:%d" % port})
    env.beat("a")
    wait_until(lambda: d.status()["devices"] == 1 and d.status()["owed"] == 0)

    def ask(method, path):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        c.request(method, path)
        r = c.getresponse()
        r.read()
        c.close()
        return r.status

    assert ask("GET", "/v1/devices/a") == 200 and ask("GET", "/v1/wheel") == 200
    assert ask("DELETE", "/v1/devices/a") == 405 and ask("POST", "/v1/reload") == 405
    assert d.state("a") == "online"
    assert "loopback" not in d.log()


def test_listen_in_use(env):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        d = env.daemon(timeout="1h", http={"listen": "127.0.0.1:%d" % free_port()})
        d.stop()
        d.edit("listen = ", "listen = 127.0.0.1:%d ;" % s.getsockname()[1])
        d.start(seeing=False, ready=False)
        assert d.wait() == 1
        assert "listen" in d.log() and "in use" in d.log()


def test_listen_warns(env):
    d = env.daemon(timeout="1h", http={"listen": "0.0.0.0:%d" % free_port()})
    assert "is not a loopback address" in d.log()
