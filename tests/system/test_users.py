# SPDX-License-Identifier: MIT
"""Access over [http] listen: tokens, roles, guesses, TLS and floods; and requests that are passed on to the other daemons."""
import base64
import hashlib
import http.client
import http.server
import json
import os
import socket
import socketserver
import ssl
import subprocess
import threading
import time
import warnings

import pytest

from hw_build import HEARTWHEELCTL, HEARTWHEELD
from hw_history import BUILT, History, Sqlite, wait_read
from hw_http import JUNK, Answer
from hw_process import free_port
from hw_tasks import Tasks
from hw_wait import in_time, wait_until


JSON = {"Content-Type": "application/json"}


def line(name, role, token, expires=None):
    return "%s:%s:%s%s\n" % (name, role, hashlib.sha256(token.encode()).hexdigest(), ":%d" % expires if expires else "")


def bearer(token):
    return {"Authorization": "Bearer " + token}


def basic(name, token):
    return {"Authorization": "Basic " + base64.b64encode(("%s:%s" % (name, token)).encode()).decode()}


class Door:
    """A daemon's TCP address."""

    def __init__(self, port, tls=None):
        self.port, self.context = port, None
        if tls:
            self.context = ssl.create_default_context(cafile=str(tls.ca))

    def connection(self):
        if self.context:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self.context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def ask(self, path, headers=None, method="GET", body=None):
        c = self.connection()
        try:
            c.request(method, path, body, headers or {})
            return Answer(c.getresponse())
        finally:
            c.close()

    def status(self, path, headers=None, method="GET"):
        return self.ask(path, headers, method).status


@pytest.fixture
def users(env):
    path = env.own_dir("users") / "users"
    path.write_text("# who may\n\n" + line("otto", "operate", "tok-otto") + line("rita", "read", "tok-rita") +
                    line("gone", "operate", "tok-gone", expires=int(time.time()) - 1))
    return path


def guarded(env, users, tls=None, start=True, **options):
    http = {"listen": "127.0.0.1:%d" % free_port(), "users": users, **options.pop("http", {})}
    if tls:
        http.update(tls_cert=tls.server_cert, tls_key=tls.server_key)
    d = env.configure(http=http, **options)
    if start:
        d.start()
    return d, Door(int(http["listen"].rsplit(":", 1)[1]), tls)


def test_tokens_and_roles(env, users):
    d, door = guarded(env, users)
    env.beat("x")
    wait_until(lambda: d.state("x") == "online")
    for path in ("/v1/status", "/v1/devices", "/metrics", "/readyz", "/v1/events", "/nothing"):
        a = door.ask(path)
        assert a.status == 401 and a.headers["WWW-Authenticate"].startswith("Bearer"), path
        assert "token" in a.json()["error"]
    assert [door.status(p) for p in ("/healthz", "/", "/web/app.js")] == [200] * 3
    assert door.status("/v1/status", bearer("tok-rita")) == 200
    assert door.status("/v1/status", basic("rita", "tok-rita")) == 200
    assert door.status("/v1/status", {"Authorization": "bearer  tok-rita"}) == 200
    assert door.ask("/v1/devices/x", bearer("tok-otto")).json()["state"] == "online"
    for wrong in (basic("otto", "tok-rita"), bearer("tok-nobody"), bearer(""), {"Authorization": "Basic !"}):
        assert door.status("/v1/status", wrong) == 401, wrong
    a = door.ask("/v1/status", bearer("tok-gone"))
    assert a.status == 401 and "expired" in a.json()["error"]
    a = door.ask("/v1/devices/x", bearer("tok-rita"), "DELETE")
    assert a.status == 403 and "rita" in a.json()["error"]
    assert d.state("x") == "online"
    assert door.status("/v1/reload", bearer("tok-rita"), "POST") == 403
    assert door.status("/v1/devices/x", bearer("tok-otto"), "DELETE") == 204
    assert d.state("x") is None
    assert door.status("/v1/reload", {**bearer("tok-otto"), **JSON}, "POST") == 200
    assert d.get("/v1/status").status == 200  # the unix socket stays as it is
    m = d.metrics()
    assert m.get("http_refused_total", why="no_token") == 8
    assert m.get("http_refused_total", why="wrong_token") == 3
    assert m.get("http_refused_total", why="role") == 2


def test_the_inventory_is_changed_by_those_who_may_operate(env, users):
    d, door = guarded(env, users)
    wait_until(lambda: d.get("/v1/inventory").status == 200, what="the inventory to be read")
    csv = {"Content-Type": "text/csv"}

    def put(headers, body=b"id\na\n"):
        return door.ask("/v1/inventory", headers, "PUT", body).status
    assert put(csv) == 401 and put({**bearer("tok-rita"), **csv}) == 403
    assert put({**bearer("tok-otto"), **csv, "Origin": "http://elsewhere"}) == 403
    assert put({**bearer("tok-otto"), "Content-Type": "text/plain"}) == 415
    assert put({**bearer("tok-otto"), **csv}, b"id\n" + b"x" * 200000) == 413  # 64 KiB at the address
    assert put({**bearer("tok-otto"), **csv}) == 200
    assert door.ask("/v1/inventory", bearer("tok-rita")).body.startswith(b'{"id":"a",')
    for method, path in (("PATCH", "/v1/devices/a"), ("DELETE", "/v1/inventory/a")):
        assert door.ask(path, {**bearer("tok-rita"), **JSON}, method, b"{}").status == 403
        assert door.ask(path, {**bearer("tok-otto"), **JSON, "Origin": "http://elsewhere"}, method, b"{}").status == 403
    assert door.ask("/v1/devices/a", bearer("tok-otto"), "PATCH", b"{}").status == 415
    assert door.ask("/v1/devices/a", {**bearer("tok-otto"), **JSON}, "PATCH", b'{"name":"A"}').status == 200
    assert door.ask("/v1/inventory/a", bearer("tok-otto"), "DELETE").status == 204


def test_without_users_it_reads_alone(env):
    port = free_port()
    env.daemon(http={"listen": "127.0.0.1:%d" % port})
    door = Door(port)
    assert door.status("/v1/status") == 200
    assert door.status("/v1/status", bearer("whatever")) == 200
    assert door.status("/v1/reload", bearer("whatever"), "POST") == 405


def test_ten_wrong_tokens_close_the_address(env, users):
    d, door = guarded(env, users)
    for i in range(10):
        assert door.status("/v1/status", bearer("guess-%d" % i)) == 401
    a = door.ask("/v1/status", bearer("guess"))
    assert a.status == 429 and 0 < int(a.headers["Retry-After"]) <= 60
    assert door.status("/healthz") == 200
    assert door.status("/v1/status", bearer("tok-otto")) == 200  # behind one proxy guesses shut nobody else out
    assert d.get("/v1/status").status == 200
    assert d.metrics().get("http_refused_total", why="closed") == 1
    wait_until(lambda: "10 wrong API tokens came from 127.0.0.1" in d.log(), what="a line about it")


def test_guesses_slow_no_detection(env, users):
    d, door = guarded(env, users)
    observer, stop, asked = env.observer(), threading.Event(), []

    def guess():
        while not stop.is_set():
            try:
                asked.append(door.status("/v1/status", bearer("guess-%d" % len(asked))))
            except (OSError, http.client.HTTPException):
                stop.wait(0.01)

    threads = [threading.Thread(target=guess, daemon=True) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        wait_until(lambda: 429 in asked, what="the address to be closed")
        env.beat("x")
        env.wait_status(observer, "x", True)
        died, before = time.monotonic(), len(asked)
        env.wait_status(observer, "x", False)
        late = time.monotonic() - died - 1
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert len(asked) > before + 20 and set(asked) == {401, 429}, (len(asked), before)
    assert env.edges("x") == [("online", "heartbeat"), ("offline", "timeout")]
    in_time(late, 0.25, "a death amid guesses")


def test_a_token_that_is_missing_or_has_expired_closes_nothing(env, users):
    _, door = guarded(env, users)
    for _ in range(15):
        assert door.status("/v1/status") == 401
        assert door.status("/v1/status", bearer("tok-gone")) == 401
    assert door.status("/v1/status", bearer("tok-rita")) == 200


def ctl_user(*args):
    return subprocess.run([str(HEARTWHEELCTL), "user", *[str(a) for a in args]], capture_output=True, text=True, timeout=60)


def test_users_are_added_and_removed(env, users):
    d, door = guarded(env, users)
    added = ctl_user("add", "new", "--role", "operate", "--expires", "1d", "--file", users)
    assert added.returncode == 0, added
    token = added.stdout.strip()
    assert len(token) == 64 and token not in users.read_text() and users.read_text().startswith("# who may\n")
    assert door.status("/v1/status", bearer(token)) == 401  # not before the reload
    assert d.ctl("reload").returncode == 0
    assert door.status("/v1/status", bearer(token)) == 200
    assert door.status("/v1/reload", {**bearer(token), **JSON}, "POST") == 200
    listed = ctl_user("list", "--file", users)
    assert [l.split()[0] for l in listed.stdout.splitlines()] == ["gone", "new", "otto", "rita"]
    shown = [json.loads(l) for l in ctl_user("list", "--json", "--file", users).stdout.splitlines()]
    assert abs(shown[1]["expires"] - time.time() - 86400) < 300 and shown[2]["expires"] is None
    again = ctl_user("add", "new", "--role", "read", "--file", users)
    assert again.returncode == 1 and "'new'" in again.stderr and not again.stdout
    assert ctl_user("remove", "new", "--file", users).returncode == 0
    assert ctl_user("remove", "new", "--file", users).returncode == 1
    assert d.ctl("reload").returncode == 0
    assert door.status("/v1/status", bearer(token)) == 401
    assert door.status("/v1/status", bearer("tok-otto")) == 200
    for wrong in (("add", "a b", "--role", "read"), ("add", "a", "--role", "root"), ("add", "a"), ("add",), ("list", "x"),
                  ("add", "a", "--role", "read", "--expires", "soon"), ("drop", "a"), ()):
        assert ctl_user(*wrong, "--file", users).returncode == 2, wrong


def test_of_very_many_wrong_lines_a_thousand_are_named(env, users):
    d, door = guarded(env, users)
    good = users.read_text()
    users.write_text(good + "oops\n" * 3000)
    lines = d.request("POST", "/v1/reload").json()["lines"]
    assert len(lines) == 1001 and "%s:6: " % users in lines[0], (len(lines), lines[0])
    assert lines[-1].endswith("key 'users': 2000 more errors; is it the right file?"), lines[-1]
    wait_until(lambda: lines[-1] in d.log())
    assert d.log().count("oops") == 0 and d.log().count("key 'users'") == 1001
    assert door.status("/v1/status", bearer("tok-otto")) == 200
    listed = ctl_user("list", "--file", users)
    assert listed.returncode == 1 and len(listed.stderr.splitlines()) == 1001, listed.stderr[-200:]
    assert "%s: 2000 more errors; is it the right file?" % users in listed.stderr


def test_a_wrong_file_changes_nothing(env, users):
    d, door = guarded(env, users)
    good = users.read_text()
    users.write_text(good + "oops\n" + line("otto", "read", "tok-other"))
    refused = d.request("POST", "/v1/reload")
    assert refused.status == 400
    lines = refused.json()["lines"]
    assert len(lines) == 2 and all("key 'users'" in l for l in lines), lines
    assert "%s:6: " % users in lines[0] and "%s:7: " % users in lines[1]
    assert door.status("/v1/status", bearer("tok-otto")) == 200
    users.unlink()
    refused = d.request("POST", "/v1/reload")
    assert refused.status == 400 and "No such file" in refused.json()["lines"][0]
    assert door.status("/v1/status", bearer("tok-otto")) == 200
    assert door.status("/v1/status") == 401


@pytest.mark.parametrize("key", ["users", "tls_cert", "tls_key"])
def test_a_fifo_is_refused(env, users, tls, key):
    """Reading a FIFO would block the reload, and the loop with it, until a writer comes: the reload is refused, and so is the
    start."""
    d, door = guarded(env, users, tls)
    text, fifo = d.conf.read_text(), users.parent / "fifo"
    os.mkfifo(fifo)
    path = {"users": users, "tls_cert": tls.server_cert, "tls_key": tls.server_key}[key]
    d.rewrite(text.replace("%s = %s\n" % (key, path), "%s = %s\n" % (key, fifo)))
    refused = d.request("POST", "/v1/reload")
    assert refused.status == 400
    assert [l for l in refused.json()["lines"] if str(d.conf) in l and l.endswith("it is not a regular file")], refused.json()
    assert door.status("/v1/status", bearer("tok-otto")) == 200
    for said in refused_at_start(d):
        assert "it is not a regular file" in said, said


@pytest.mark.parametrize("kind", ["fifo", "large"])
@pytest.mark.parametrize("which", ["configuration", "users"])
def test_a_reload_reads_no_file_without_end(env, users, tls, which, kind):
    d, door = guarded(env, users, tls)
    path = d.conf if which == "configuration" else users
    kept = path.read_bytes()
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    else:
        with open(path, "wb") as f:
            f.truncate(8 << 30)
    refused = d.request("POST", "/v1/reload")
    why = "it is not a regular file" if kind == "fifo" else "it is larger than 16 MiB"
    assert refused.status == 400 and any(l.endswith(why) for l in refused.json()["lines"]), refused.json()
    assert door.status("/v1/status", bearer("tok-otto")) == 200
    path.unlink()
    path.write_bytes(kept)
    assert d.request("POST", "/v1/reload").status == 200


def test_a_fifo_as_password_file(env, users):
    """The reload keeps the password, and does not compare it."""
    users.write_text("pass\n")
    mqtt = {"username": "u", "password_file": users}
    d = env.configure(mqtt=mqtt)
    d.start()
    users.unlink()
    os.mkfifo(users)
    assert d.request("POST", "/v1/reload").json()["restart_needed"] == []
    for said in refused_at_start(d):
        assert "cannot read %s: it is not a regular file" % users in said, said


def test_a_reload_that_is_refused_late_changes_no_users(env, users):
    """Over all its reloads a daemon may have a limited number of groups. The last reload exceeds it, which is found only after
    all files were read."""
    d, door = guarded(env, users)
    text = d.conf.read_text()
    for name, status in [(n, 200) for n in "abcde"] + [("f", 400)]:  # 4,200; many at once take long to be judged
        d.conf.write_text(text + "".join("[group %s%d]\nheartbeat = x/%s/%d/{id}\n" % (name, i, name, i) for i in range(700)))
        if status == 400:
            users.write_text(line("new", "operate", "tok-new"))
        a = d.request("POST", "/v1/reload")
        assert a.status == status and ("too many groups" in a.body.decode()) == (status == 400), a
    assert door.status("/v1/status", bearer("tok-otto")) == 200 and door.status("/v1/status", bearer("tok-new")) == 401
    d.conf.write_text(text)
    assert d.request("POST", "/v1/reload").status == 200
    assert door.status("/v1/status", bearer("tok-otto")) == 401 and door.status("/v1/status", bearer("tok-new")) == 200


def refused_at_start(d):
    for args in (["-t"], ["-f"]):
        r = subprocess.run([str(HEARTWHEELD), *args, "-c", str(d.conf)], capture_output=True, text=True, timeout=60)
        assert r.returncode == 2, r
        yield r.stderr


def test_what_is_refused_at_the_start(env, users, tls, tmp_path):
    other = tls.issue("other", "subjectAltName=IP:127.0.0.1")
    locked = tmp_path / "locked.key"
    subprocess.run(["openssl", "pkey", "-in", tls.server_key, "-aes128", "-passout", "pass:secret", "-out", locked], check=True)
    for http, wanted in (
            ({"users": str(users) + ".not"}, "key 'users': No such file"),
            ({"tls_cert": tls.server_cert}, "key 'tls_cert': needs tls_key"),
            ({"tls_cert": tls.server_cert, "tls_key": other[1]}, "key 'tls_cert': cannot use the private key"),
            ({"tls_cert": tls.server_cert, "tls_key": locked}, "locked.key: has a password"),
            ({"tls_cert": users, "tls_key": tls.server_key}, "key 'tls_cert': cannot use the certificate"),
            ({"listen": "0.0.0.0:%d" % free_port()}, "key 'users': needs tls_cert and tls_key")):
        d, _ = guarded(env, users, start=False, http=http)
        for said in refused_at_start(d):
            assert wanted in said and str(d.conf) in said, said
    users.write_text("oops\n")
    d, _ = guarded(env, users, start=False)
    for said in refused_at_start(d):
        assert "key 'users': %s:1: " % users in said, said


def test_tls(env, users, tls):
    d, door = guarded(env, users, tls)
    assert door.status("/healthz") == 200
    assert door.status("/v1/status") == 401
    assert door.status("/v1/status", bearer("tok-rita")) == 200
    with pytest.raises((http.client.HTTPException, OSError)):
        Door(door.port).status("/healthz")
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", door.port)) as s:
        old.wrap_socket(s)
    # Another certificate, from a reload on; who is connected stays so.
    kept = door.connection()
    kept.request("GET", "/healthz")
    kept.getresponse().read()
    crt, key = tls.issue("second", "subjectAltName=IP:127.0.0.1")
    before = ssl.get_server_certificate(("127.0.0.1", door.port))
    d.edit(str(tls.server_cert), str(crt))
    d.edit(str(tls.server_key), str(key))
    assert sorted(d.request("POST", "/v1/reload").json()["changed"]) == ["http.tls_cert", "http.tls_key"]
    assert ssl.get_server_certificate(("127.0.0.1", door.port)) != before
    kept.request("GET", "/healthz")
    assert kept.getresponse().status == 200
    kept.close()
    # One that is wrong changes nothing.
    crt.write_text("nonsense")
    assert d.request("POST", "/v1/reload").status == 400
    assert door.status("/v1/status", bearer("tok-rita")) == 200
    # A handshake that is under way at the end.
    with socket.create_connection(("127.0.0.1", door.port)):
        assert door.status("/healthz") == 200  # whoever came before is let in before
        d.stop()


def test_tls_is_taken_away_and_comes_back(env, users, tls):
    d, door = guarded(env, users, tls)
    assert door.status("/healthz") == 200
    text = d.conf.read_text()
    d.rewrite("".join(l + "\n" for l in text.splitlines() if not l.startswith("tls_")))
    assert d.request("POST", "/v1/reload").status == 200
    plain = Door(door.port).connection()
    plain.request("GET", "/healthz")
    assert plain.getresponse().read() and Door(door.port).status("/v1/status", bearer("tok-rita")) == 200
    d.rewrite(text)
    assert d.request("POST", "/v1/reload").status == 200
    assert door.status("/v1/status", bearer("tok-rita")) == 200
    plain.request("GET", "/healthz")  # it was let in without
    assert plain.getresponse().status == 400
    plain.close()


def test_a_flood_of_handshakes(env, users, tls):
    """Silent connections are closed in time, and completed handshakes are paced; the monitor watches the fleet as usual."""
    d, door = guarded(env, users, tls)
    observer = env.observer()
    silent, stop = [], threading.Event()

    def flood():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        while not stop.is_set():
            try:
                with socket.create_connection(("127.0.0.1", door.port), timeout=1) as s, context.wrap_socket(s):
                    pass
            except OSError:
                stop.wait(0.01)

    for _ in range(60):
        s = socket.socket()
        s.settimeout(5)
        s.connect(("127.0.0.1", door.port))
        silent.append(s)
    threads = [threading.Thread(target=flood, daemon=True) for _ in range(4)]
    for t in threads:
        t.start()
    try:
        wait_until(lambda: d.metrics().get("tls_handshakes_cut_total") >= 20, what="silent handshakes to be cut off")
        env.beat("x")
        env.wait_status(observer, "x", True)
        died = time.monotonic()
        env.wait_status(observer, "x", False)
        late = time.monotonic() - died - 1
        began, done = time.monotonic(), d.metrics().get("tls_handshakes_total")
        assert wait_until(lambda: door.ask("/v1/status", bearer("tok-rita"))).status == 200
        wait_until(lambda: time.monotonic() - began > 2)
        rate = (d.metrics().get("tls_handshakes_total") - done) / (time.monotonic() - began)
    finally:
        stop.set()
        for t in threads:
            t.join()
        for s in silent:
            s.close()
    assert rate < 60, rate
    assert env.edges("x") == [("online", "heartbeat"), ("offline", "timeout")]
    in_time(late, 0.25, "a death amid the flood")


class Nuisance(threading.Thread):
    """Silent connections to a server; and again and again bytes that are no HTTP, requests whose answer is not awaited, and
    requests whose answers are not read."""

    def __init__(self, name, address, paths):
        super().__init__(daemon=True)
        self.name, self.address, self.paths, self.ended, self.rounds = name, address, paths, threading.Event(), 0
        self.silent = [self.connect() for _ in range(50)]

    def connect(self):
        s = socket.socket(socket.AF_INET if isinstance(self.address, tuple) else socket.AF_UNIX)
        s.settimeout(5)
        s.connect(self.address)
        return s

    def once(self, what, takes):
        try:
            with self.connect() as s:
                s.settimeout(0.2)
                s.sendall(what)
                if takes:
                    s.shutdown(socket.SHUT_WR)
                    s.recv(4096)
        except OSError:
            pass

    def run(self):
        while not self.ended.is_set():
            for junk in JUNK:
                self.once(junk, True)
            for path in self.paths:
                request = b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode()
                self.once(request, False)
                self.once(400 * request, False)
            self.rounds += 1

    def end(self):
        self.ended.set()
        self.join()
        for s in self.silent:
            s.close()


@pytest.mark.skipif(not BUILT, reason="heartwheel-history is not built: SQLite is missing")
def test_hostile_clients_of_each_daemon_slow_nothing(env, users):
    """On the doors of all four daemons at once: well-behaved clients are answered, and a death is reported in time and reaches
    SQL."""
    env.own_redis()
    h, t = History(env, Sqlite(env.own_dir("db"))).start(), Tasks(env).start()
    d, door = guarded(env, users, start=False)
    d.rewrite(d.conf.read_text() + "[tasks]\nsocket = %s\nroot = %s\n[history]\ndatabase = any\nsocket = %s\n" % (
        t.socket, env.root, h.socket))
    d.start()
    observer = env.observer()
    reports = ["/v1/history/uptime", "/v1/history/outages", "/v1/history/badge/x.svg"]
    crowd = [Nuisance("heartwheeld", str(d.socket), ["/v1/devices?limit=1000", "/v1/events", *reports]),
             Nuisance("listen", ("127.0.0.1", door.port), ["/v1/status", "/", *reports]),
             Nuisance("history", str(h.socket), [*reports, "/metrics"]),
             Nuisance("tasks", str(t.socket), ["/v1/tasks", "/v1/status"])]
    for c in crowd:
        c.start()
    try:
        env.beat("x")
        env.wait_status(observer, "x", True)
        died = time.monotonic()
        env.wait_status(observer, "x", False)
        late = time.monotonic() - died - 1
        wait_until(lambda: h.database.rows("SELECT state FROM device WHERE id = 'x'") == [("offline",)], what="the death in SQL")
        for c in crowd:
            wait_until(lambda: c.rounds >= 3 or not c.is_alive(), what="three rounds at " + c.name)
            assert c.is_alive(), c.name
        for path in ("/v1/status", "/v1/history/status", "/v1/history/metrics", "/v1/tasks"):
            wait_until(lambda: door.status(path, bearer("tok-rita")) == 200, what="an answer amid the crowd: " + path)
        assert t.request("POST", "/v1/tasks", {"receiver": "x", "action": "go"}).status == 201
    finally:
        for c in crowd:
            c.end()
    wait_read(h, env)
    assert env.edges("x") == [("online", "heartbeat"), ("offline", "timeout")]
    for one in (d, h, t):
        wait_until(lambda: one.metrics().get("process_open_fds") < 40, what="the crowd's descriptors to be given back")
    h.stop()
    in_time(late, 0.25, "a death amid hostile clients")


# --- the other daemons ------------------------------------------------------------------------------------------------

class Other(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = json.dumps({"method": self.command, "path": self.path, "user": self.headers["X-Heartwheel-User"],
                           "body": body.decode()}).encode()
        self.send_response(201 if self.command == "POST" else 200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = answer

    def address_string(self):
        return "unix"

    def log_message(self, *args):
        pass


def test_the_other_daemons_are_asked(env, users):
    where = env.own_dir("others")
    d, door = guarded(env, users, start=False)
    d.rewrite(d.conf.read_text() + "[tasks]\nsocket = %s\nroot = nodes\n[history]\ndatabase = any\nsocket = %s\n" % (
        where / "t.sock", where / "h.sock"))
    d.start()
    a = door.ask("/v1/tasks", bearer("tok-otto"))
    assert a.status == 503 and "heartwheel-tasks is not running" in a.json()["error"]
    servers = [Other(str(where / name), Echo) for name in ("t.sock", "h.sock")]
    for s in servers:
        threading.Thread(target=s.serve_forever, daemon=True).start()
    try:
        spoofed = {**bearer("tok-otto"), **JSON, "X-Heartwheel-User": "root"}
        a = door.ask("/v1/tasks?wait=1", spoofed, "POST", '{"x":1}')
        assert a.status == 201
        assert a.json() == {"method": "POST", "path": "/v1/tasks?wait=1", "user": "otto", "body": '{"x":1}'}
        assert door.ask("/v1/tasks/T1", bearer("tok-otto"), "DELETE").json()["method"] == "DELETE"
        assert door.ask("/v1/call", {**bearer("tok-otto"), **JSON}, "POST", "{}").json()["path"] == "/v1/call"
        assert door.ask("/v1/history/status", bearer("tok-rita")).json()["user"] == "rita"
        assert door.status("/v1/tasks", bearer("tok-rita"), "POST") == 403
        assert door.status("/v1/history/status") == 401
        c = door.connection()
        c.putrequest("GET", "/v1/tasks")
        for name, value in (*bearer("tok-otto").items(), ("X-Heartwheel-User", "a"), ("X-Heartwheel-User", "root")):
            c.putheader(name, value)
        c.endheaders()
        assert json.loads(c.getresponse().read())["user"] == "otto"
        c.close()
        # Over the unix socket nobody has a name.
        assert d.request("GET", "/v1/tasks", headers={"X-Heartwheel-User": "root"}).json()["user"] is None
    finally:
        for s in servers:
            s.shutdown()
            s.server_close()
