# SPDX-License-Identifier: MIT
"""[http] listen against pages of foreign web servers, against clients that use up its connections, and for users whose right is
taken away."""
import http.client
import resource
import select
import signal
import socket
import threading
import time

import pytest

from hw_process import free_port
from hw_tasks import Tasks
from hw_wait import PATIENCE, in_time, wait_until
from test_users import JSON, Door, basic, bearer, guarded, line, refused_at_start, users  # noqa: F401 (a fixture)

def with_host(door, path, host, headers=None, method="GET"):
    c = door.connection()
    try:
        c.putrequest(method, path, skip_host=True)
        for name, value in {**({"Host": host} if host else {}), **(headers or {}), "Content-Length": "0"}.items():
            c.putheader(name, value)
        c.endheaders()
        return c.getresponse().status
    finally:
        c.close()


def test_a_foreign_name_reads_nothing(env):
    """DNS rebinding: a page of evil.example reaches the address under its own name, and is refused."""
    port = free_port()
    d = env.daemon(http={"listen": "127.0.0.1:%d" % port, "names": "fleet.example, Monitor"})
    door = Door(port)
    for path in ("/v1/status", "/v1/devices", "/metrics", "/", "/healthz", "/v1/events"):
        for host in ("evil.example", "evil.example:%d" % port, "192.0.2.7:%d" % port, "", "localhost.evil.example", "[::2]"):
            assert with_host(door, path, host or "x") == 403, (path, host)
    for host in ("127.0.0.1:%d" % port, "127.0.0.1", "LOCALHOST:%d" % port, "localhost.", "[::1]:%d" % port,
                 "fleet.example", "fleet.example:443", "monitor", None):
        assert with_host(door, "/v1/status", host) == 200, host
    assert d.metrics().get("http_refused_total", why="foreign") == 36
    assert d.get("/v1/status").status == 200  # the socket's Host says nothing
    d.rewrite(d.conf.read_text().replace("fleet.example, Monitor", "other.example"))
    assert d.request("POST", "/v1/reload").json()["changed"] == ["http.names"]
    assert with_host(door, "/v1/status", "fleet.example") == 403
    assert with_host(door, "/v1/status", "other.example") == 200


def test_any_address_names_a_server_that_listens_on_all(env):
    port = free_port()
    env.daemon(http={"listen": "0.0.0.0:%d" % port})
    assert with_host(Door(port), "/v1/status", "192.0.2.7:8731") == 200
    assert with_host(Door(port), "/v1/status", "evil.example") == 403


def test_a_foreign_page_writes_nothing(env, users):  # noqa: F811
    d, door = guarded(env, users, http={"names": "fleet.example"})
    otto, own = basic("otto", "tok-otto"), "http://127.0.0.1:%d" % door.port
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "http://fleet.example.evil.org"):
        assert door.status("/v1/reload", {**otto, **JSON, "Origin": origin}, "POST") == 403, origin
        assert door.status("/v1/devices/x", {**otto, "Origin": origin}, "DELETE") == 403, origin
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", ""):
        assert door.status("/v1/reload", {**otto, "Content-Type": kind}, "POST") == 415, kind
    assert door.status("/v1/reload", otto, "POST") == 415
    for good in ({}, {"Origin": own}, {"Origin": "https://fleet.example"}):
        assert door.status("/v1/reload", {**otto, **JSON, **good}, "POST") == 200, good
    assert door.status("/v1/reload", {**otto, "Content-Type": "Application/JSON; charset=utf-8"}, "POST") == 200
    assert door.status("/v1/devices/x", otto, "DELETE") == 404
    assert d.request("POST", "/v1/reload").status == 200  # the socket asks for neither


def test_every_answer_is_what_it_says(env, users):  # noqa: F811
    """Each answer has nosniff and a policy: answers, errors, the errors that libevent answers itself, the page, and answers of
    other daemons."""
    _, door = guarded(env, users)
    rita = bearer("tok-rita")
    for path in ("/v1/status", "/healthz", "/nothing", "/", "/web/app.js", "/metrics", "/v1/tasks", "/v1/history/status"):
        for headers in (rita, {}):
            a = door.ask(path, headers)
            assert a.headers.get_all("X-Content-Type-Options") == ["nosniff"], (path, a)
            policy = a.headers.get_all("Content-Security-Policy")
            assert len(policy) == 1 and policy[0].startswith("default-src 'none'"), (path, policy)
    assert "script-src 'self'" in door.ask("/").headers["Content-Security-Policy"]
    with socket.create_connection(("127.0.0.1", door.port), timeout=30) as s:
        s.sendall(b"what is this\r\n\r\n")
        assert b"nosniff" in s.recv(4096)


@pytest.mark.parametrize("wrong, what", [({"names": "http://fleet.example"}, "is not a host name"),
                                         ({"names": "fleet.example:443"}, "is not a host name"),
                                         ({"trusted_proxies": "nginx"}, "is not a list of addresses"),
                                         ({"trusted_proxies": "10.0.0.0/33"}, "0 to 32")])
def test_what_is_refused(env, wrong, what):
    d = env.configure(http={"listen": "127.0.0.1:%d" % free_port(), **wrong})
    for out in refused_at_start(d):
        assert "key '%s'" % next(iter(wrong)) in out and what in out, out


TOO_LONG = {"line": b"x" * 17000, "header": b"GET / HTTP/1.1\r\nA: " + b"y" * 20000,
            "uri": b"GET /" + b"z" * 20000 + b" HTTP/1.1\r\n\r\n", "garbage": b"no request\r\n\r\n"}


@pytest.mark.parametrize("reads", [True, False], ids=["reads", "does_not_read"])
@pytest.mark.parametrize("kind", list(TOO_LONG))
def test_a_refusal_over_tls_is_sent_once(env, users, tls, kind, reads):  # noqa: F811
    """libevent refuses such a request before the Host and the token are checked, and the connection is closed after one
    answer."""
    d, door = guarded(env, users, tls)
    with socket.create_connection(("127.0.0.1", door.port), timeout=PATIENCE) as plain:
        with door.context.wrap_socket(plain, server_hostname="127.0.0.1") as s:
            s.sendall(TOO_LONG[kind])
            if not reads:
                poll = select.poll()
                poll.register(s, select.POLLRDHUP)
                assert poll.poll(PATIENCE * 1000), "the connection stays open"
            answer = b""
            while len(answer) < 5000 and (piece := s.recv(65536)):
                answer += piece
    assert answer.count(b"HTTP/1.1 400") == 1 and answer.endswith(b"}\n"), answer[:1000]
    assert d.request("GET", "/healthz").status == 200


# --- users who lose their right


class Stream(threading.Thread):
    """A client that reads the event stream until it ends."""

    def __init__(self, door, token, path="/v1/events"):
        super().__init__(daemon=True)
        self.connection = door.connection()
        self.connection.request("GET", path, headers=bearer(token))
        self.response = self.connection.getresponse()
        assert self.response.status == 200
        self.read, self.ended = b"", None
        self.start()

    def run(self):
        try:
            while piece := self.response.read1(4096):
                self.read += piece
        except (OSError, http.client.HTTPException):
            pass
        self.ended = time.monotonic()


def test_streams_of_users_who_are_removed_end(env, users):  # noqa: F811
    d, door = guarded(env, users)
    streams = {name: Stream(door, "tok-" + name) for name in ("rita", "otto")}
    users.write_text(line("rita", "read", "tok-rita") + line("eve", "read", "tok-eve"))
    a = d.request("POST", "/v1/reload").json()
    assert a["changed"] == ["http.users"], a
    assert a["users"] == "+eve -gone -otto, 1 stream closed", a
    assert "reload: [http] users: +eve -gone -otto, 1 stream closed" in d.log()
    wait_until(lambda: streams["otto"].ended, what="the stream of a user who was removed to end")
    env.beat("x")
    wait_until(lambda: b'"id":"x"' in streams["rita"].read, what="the other stream to go on")
    assert not streams["rita"].ended and b'"id":"x"' not in streams["otto"].read
    # The same name with another token is another user.
    users.write_text(line("rita", "read", "tok-new") + line("eve", "read", "tok-eve"))
    out = d.ctl("reload").stdout
    assert "users: ~rita, 1 stream closed" in out and "nothing changed" not in out, out
    wait_until(lambda: streams["rita"].ended, what="the stream of an old token to end")
    assert d.ctl("reload").stdout.strip() == "nothing changed"


def test_the_stream_of_a_token_that_expires_ends(env, users):  # noqa: F811
    d, door = guarded(env, users, start=False)
    until = int(time.time()) + 4
    users.write_text(line("rita", "read", "tok-rita", until) + line("otto", "operate", "tok-otto"))
    d.start()
    rita, otto = Stream(door, "tok-rita"), Stream(door, "tok-otto")
    wait_until(lambda: rita.ended, what="the stream to end with its token")
    assert time.time() >= until and not otto.ended


def test_streams_that_are_passed_on_end_too(env, users):  # noqa: F811
    """/v1/tasks/events belongs to another daemon, but its client is connected to heartwheeld, which ends the stream."""
    t = Tasks(env).start()
    d, door = guarded(env, users, start=False)
    d.rewrite(d.conf.read_text() + "[tasks]\nsocket = %s\nroot = %s\n" % (t.socket, env.root))
    d.start()
    stream = Stream(door, "tok-otto", "/v1/tasks/events")
    wait_until(lambda: stream.read, what="the stream to begin")
    users.write_text(line("rita", "read", "tok-rita"))
    assert d.request("POST", "/v1/reload").json()["users"] == "-gone -otto, 1 stream closed"
    wait_until(lambda: stream.ended, what="the stream to end")
    assert t.ready()


def test_a_stream_that_has_not_begun_ends_too(env, users):  # noqa: F811
    """heartwheel-tasks has not answered yet when the reload removes the user."""
    t = Tasks(env).start()
    d, door = guarded(env, users, start=False)
    d.rewrite(d.conf.read_text() + "[tasks]\nsocket = %s\nroot = %s\n" % (t.socket, env.root))
    d.start()
    t.signal(signal.SIGSTOP)
    try:
        c = door.connection()
        c.request("GET", "/v1/tasks/events", headers=bearer("tok-otto"))
        # heartwheeld takes connections in order: it has passed the request on when a later client has an answer.
        assert door.status("/healthz") == 200
        users.write_text(line("rita", "read", "tok-rita"))
        assert d.request("POST", "/v1/reload").json()["users"] == "-gone -otto, 1 stream closed"
        with pytest.raises((http.client.HTTPException, OSError)):
            c.getresponse()
    finally:
        t.signal(signal.SIGCONT)


def test_a_changed_password_needs_a_restart(env):
    secret = env.own_dir("secret") / "password"
    secret.write_text("first\n")
    d = env.daemon(mqtt={"username": "u", "password_file": secret})
    assert d.request("POST", "/v1/reload").json()["restart_needed"] == []
    secret.write_text("second\n")
    assert d.request("POST", "/v1/reload").json()["restart_needed"] == ["mqtt.password_file"]
    assert "reload: mqtt.password_file changed: restart needed" in d.log()


# --- guesses


def test_behind_a_proxy_each_client_counts_by_itself(env, users):  # noqa: F811
    d, door = guarded(env, users, http={"trusted_proxies": "127.0.0.0/8, 10.1.1.1"})

    def ask(client, token):
        return door.status("/v1/status", {**bearer(token), "X-Forwarded-For": client})

    for i in range(10):
        assert ask("203.0.113.5, 10.1.1.1", "guess-%d" % i) == 401
    assert ask("203.0.113.5, 10.1.1.1", "guess") == 429
    assert ask("198.51.100.2, 203.0.113.5", "guess") == 429  # what a client writes itself is not believed
    assert ask("203.0.113.6", "guess") == 401
    assert ask("203.0.113.5", "tok-rita") == 200
    wait_until(lambda: "10 wrong API tokens came from 203.0.113.5" in d.log(), what="a line with the client's address")


# --- clients that fill the address up


@pytest.mark.parametrize("kind", ["silent", "slow", "idle"])
def test_a_full_address_leaves_the_rest_its_descriptors(env, users, kind):  # noqa: F811
    d, door = guarded(env, users)
    resource.prlimit(d.pid, resource.RLIMIT_NOFILE, (300, 300))
    observer, crowd, stop = env.observer(), [], threading.Event()
    env.beat("x")
    env.wait_status(observer, "x", True)
    stream = Stream(door, "tok-rita")

    def fill():
        while not stop.is_set():
            try:
                while len(crowd) < 400:
                    s = socket.create_connection(("127.0.0.1", door.port), timeout=1)
                    if kind == "idle":
                        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    crowd.append(s)
                if kind == "slow":
                    for s in crowd:
                        s.send(b"G")
            except OSError:
                pass
            stop.wait(0.2)

    t = threading.Thread(target=fill, daemon=True)
    t.start()
    try:
        wait_until(lambda: d.metrics().get("http_closed_total") > 0, what="connections to be closed to make room")
        for _ in range(20):
            assert d.get("/v1/status").status == 200  # the control socket
        began = time.monotonic()
        assert wait_until(lambda: ask_or_none(door)) == 200
        late = time.monotonic() - began
        died = time.monotonic()
        env.wait_status(observer, "x", False)
    finally:
        stop.set()
        t.join()
        for s in crowd:
            s.close()
    assert env.edges("x") == [("online", "heartbeat"), ("offline", "timeout")]
    assert "Too many open files" not in d.log()
    in_time(late, 5, "an answer of a full address")
    in_time(time.monotonic() - died, 1.5, "a death beside a full address")
    del stream


def ask_or_none(door):
    try:
        return door.status("/v1/status", bearer("tok-rita"))
    except (OSError, http.client.HTTPException):
        return None
