# SPDX-License-Identifier: MIT
"""Notifications: to a program, and to a web server."""
import email.header
import http.server
import itertools
import json
import os
import re
import signal
import socket
import threading
import time

import pytest

from hw_daemon import Daemon
from hw_env import NO_STALL, NO_STANDSTILL
from hw_process import free_port
from hw_wait import in_time, now_ms, pass_time, throughout, wait_until


class WebServer(http.server.ThreadingHTTPServer):
    """Keeps what is posted to it. `answers`: the status of each request in turn, the last one for all others; "hang":
    none at all until the server is closed."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answers=(200,), port=0):
        self.answers, self.requests, self.lock, self.closing = list(answers), [], threading.Lock(), threading.Event()
        super().__init__(("127.0.0.1", port), Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d/hook?key=secret" % self.server_address[1]

    def messages(self):
        return [r["json"] for r in self.requests]

    def close(self):
        self.closing.set()
        self.shutdown()
        self.server_close()


def parsed(body):
    """None: it is for people."""
    try:
        return json.loads(body)
    except ValueError:
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            n = len(self.server.requests)
            self.server.requests.append({"json": parsed(body), "text": body.decode(), "path": self.path, "at": time.monotonic(),
                                         "headers": dict(self.headers)})
            answer = self.server.answers[min(n, len(self.server.answers) - 1)]
        if answer == "hang":
            self.server.closing.wait(60)
            return
        self.send_response(answer)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


@pytest.fixture
def web():
    servers = []

    def make(*answers, port=0):
        servers.append(WebServer(answers or (200,), port))
        return servers[-1]
    yield make
    for s in servers:
        s.close()


def told(env, notify, **options):
    """The text of a configuration with [notify]."""
    directory = env.own_dir("hw")
    # Blindness is told too: none that a busy machine makes.
    options = {"timeout": "1h", **options, "monitor": {**NO_STALL, **options.get("monitor", {})},
               "mqtt": {**NO_STANDSTILL, **options.get("mqtt", {})}}
    text = env.text(directory=directory, **options)
    notify = {"blind_notify_after": "0", **notify}  # the end of the start's blindness is the first message
    text += "\n[notify]\n" + "".join("%s = %s\n" % kv for kv in notify.items())
    d = Daemon(directory, text, env.node, directory / "control.sock", directory / "heartwheeld.pid")
    env.daemons.append(d)
    return d


def script(env, text, name="hook"):
    path = env.dir / name
    path.write_text("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def collector(env):
    """A program that puts each message in a file of its own, and the messages so far."""
    path = script(env, 'f=$(mktemp %s/note.XXXXXX) && cat >"$f.part" && mv "$f.part" "$f.json"\n' % env.dir)

    def messages():
        notes = [json.loads(p.read_text()) for p in env.dir.glob("note.*.json")]
        return sorted(notes, key=lambda n: n["number"])
    return path, messages


def devices(messages):
    return [(e["id"], e["state"], e["reason"]) for m in messages for e in m["devices"]]


# --- the message


def test_message_to_program_and_server(env, web):
    server, (path, messages) = web(), collector(env)
    d = told(env, {"exec": path, "webhook": server.url, "notify_interval": "700ms"}, timeout="400ms",
             group={"timeout_max": "1h"}).start()
    before = int(time.time() * 1000)
    env.beat("a")
    env.beat("stay", {"timeout": 600})
    env.beat('ü"\\', {"online": False})
    wait_until(lambda: ("a", "offline", "timeout") in devices(server.messages()))
    wait_until(lambda: ("a", "offline", "timeout") in devices(messages()))
    env.wait_store("a", "offline")
    assert messages() == server.messages(), "both get the same"
    everything = server.messages()
    assert [m["number"] for m in everything] == list(range(1, len(everything) + 1))
    assert devices(everything)[:4] == [("a", "online", "heartbeat"), ("stay", "online", "heartbeat"),
                                       ('ü"\\', "offline", "will"), ("a", "offline", "timeout")]
    assert sum(m["online"] for m in everything) == 2 and sum(m["offline"] for m in everything) == 2
    assert [b["begun"] for m in everything for b in m["blind"]] == [False], "the blindness of the start has ended"
    for m in everything:
        assert set(m) == {"node", "number", "from_ms", "to_ms", "online", "offline", "forgotten", "counts", "devices",
                          "devices_left_out", "blind", "blind_left_out", "now"}
        assert m["node"] == env.node and before - 2000 <= m["from_ms"] <= m["to_ms"] <= time.time() * 1000
        counted = {}
        for c in m["counts"]:
            assert c["group"] == "default" and c["count"] > 0
            counted[c["state"]] = counted.get(c["state"], 0) + c["count"]
        assert counted == {s: m[s] for s in ("online", "offline", "forgotten") if m[s]}
    last = everything[-1]
    assert last["now"] == {"online": 1, "offline": 2, "blind": False}
    entry = [e for m in everything for e in m["devices"] if e["id"] == "a"][-1]
    assert set(entry) == {"id", "state", "reason", "group", "time_ms", "last_seen_ms", "seq"}
    assert entry["group"] == "default" and entry["seq"] == int(env.hash("a")["seq"])
    assert 300 <= entry["time_ms"] - entry["last_seen_ms"] < 2000
    request = server.requests[0]
    assert request["path"] == "/hook?key=secret" and request["headers"]["Content-Type"] == "application/json"
    assert request["headers"]["User-Agent"].startswith("heartwheel/")
    assert d.forget("a").status == 204
    wait_until(lambda: ("a", "forgotten", "operator") in devices(server.messages()))
    m = d.metrics()
    sent = len(server.messages())
    wait_until(lambda: d.metrics().get("notify_sent_total", kind="exec") == sent)
    assert m.get("notify_failed_total") == m.get("notify_dropped_total") == 0


def test_ten_thousand_deaths_are_one_message(env, web):
    server = web()
    d = told(env, {"webhook": server.url, "notify_interval": "5s"}, timeout="3s").start()
    ids = ["d%d" % k for k in range(10_000)]
    for i in ids:
        env.beat(i)
    wait_until(lambda: d.status()["online"] == 10_000 or d.status()["offline"], 20)
    wait_until(lambda: d.status()["offline"] == 10_000, 20)
    wait_until(lambda: sum(m["offline"] for m in server.messages()) == 10_000, 20)
    deaths = [m for m in server.messages() if m["offline"]]
    assert len(deaths) <= 2, "the interval may end among them, but no more"
    assert sum(m["online"] for m in server.messages()) == 10_000
    for m in server.messages():
        n = m["online"] + m["offline"]
        assert len(m["devices"]) == min(n, 1000) and len(m["devices"]) + m["devices_left_out"] == n
        assert len({(e["id"], e["state"]) for e in m["devices"]}) == len(m["devices"])
    assert {(c["state"], c["reason"]) for m in deaths for c in m["counts"]} >= {("offline", "timeout")}


def test_blindness_is_told(env, web):
    env.own_broker()
    server = web()
    d = told(env, {"webhook": server.url, "notify_interval": "200ms"}).start()
    env.broker.stop()
    d.wait_lost()
    env.broker.start()
    d.wait_seeing()
    blind = wait_until(lambda: (lambda b: len(b) >= 3 and b)([e for m in server.messages() for e in m["blind"]]))
    assert [e["begun"] for e in blind[:3]] == [False, True, False]
    assert blind[1]["cause"] == "link" and blind[1]["lossy"] is True and "length_ms" not in blind[1]
    assert blind[2]["length_ms"] > 0 and blind[2]["time_ms"] >= blind[1]["time_ms"]


def test_short_blindness_is_not_told(env, web):
    """Shorter than blind_notify_after: neither begin nor end. Longer: both, the begin when it has lasted so long."""
    env.own_broker()
    server = web()
    d = told(env, {"webhook": server.url, "notify_interval": "100ms", "blind_notify_after": "1h"}).start()

    def blind():
        return [e for m in server.messages() for e in m["blind"]]

    def lose_and_see():
        env.broker.stop()
        d.wait_lost()
        env.broker.start()
        d.wait_seeing()

    lose_and_see()
    env.beat("a")
    wait_until(lambda: [i for i, _, _ in devices(server.messages())] == ["a"])
    assert blind() == []
    d.edit("blind_notify_after = 1h", "blind_notify_after = 1s")
    assert d.ctl("reload").returncode == 0
    env.broker.stop()
    d.wait_lost()
    wait_until(lambda: [e["begun"] for e in blind()] == [True])
    assert now_ms() - blind()[0]["time_ms"] >= 1000
    env.broker.start()
    d.wait_seeing()
    wait_until(lambda: [e["begun"] for e in blind()] == [True, False])
    assert blind()[1]["length_ms"] >= 1000


# --- what goes wrong


def test_server_that_fails_is_tried_three_times(env, web):
    server = web(500, 503, 200)
    d = told(env, {"webhook": server.url, "notify_interval": "100ms"}).start()
    wait_until(lambda: d.metrics().get("notify_sent_total", kind="webhook") == 1, 15)
    assert len(server.requests) == 3 and server.messages()[0] == server.messages()[2]
    times = [r["at"] for r in server.requests]
    assert 0.9 < times[1] - times[0] < 3.4 and 3.5 < times[2] - times[1] < 8
    m = d.metrics()
    assert m.get("notify_retried_total", kind="webhook") == 2 and m.get("notify_failed_total") == 0


@pytest.mark.parametrize("answer", [500, 404, 302])
def test_server_that_only_fails_is_given_up(env, web, answer):
    server = web(answer)
    d = told(env, {"webhook": server.url, "notify_interval": "100ms"}).start()
    wait_until(lambda: d.metrics().get("notify_failed_total", kind="webhook") == 1, 15)
    assert len(server.requests) == 3 and d.metrics().get("notify_sent_total") == 0
    assert "[notify] webhook: a message was dropped after 3 tries: the server answered with status %d" % answer in d.log()
    assert "secret" not in d.log()


def test_no_server_at_all(env):
    d = told(env, {"webhook": "http://127.0.0.1:%d/" % free_port(), "notify_interval": "100ms"}).start()
    wait_until(lambda: d.metrics().get("notify_failed_total", kind="webhook") == 1, 15)
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")


def test_hanging_hooks_hold_nobody_up(env, web):
    """A server that never answers, and a program that never ends and never reads: the wheel turns, the API answers, the
    queue is bounded, and both are given up after their time."""
    server = web("hang")
    pid = env.dir / "pid"
    path = script(env, "echo $$ >%s\nsleep 100 &\nsleep 100\n" % pid)
    d = told(env, {"exec": path, "webhook": server.url, "notify_interval": "100ms"}, timeout="500ms",
             monitor={"stop_timeout": "1s"}).start()
    observer = env.observer()
    wait_until(lambda: server.requests and pid.exists() and pid.read_text().strip())
    child = int(pid.read_text())
    at = time.monotonic()
    k, slowest = 0, 0.0
    while d.metrics().get("notify_failed_total", kind="exec") == 0:
        in_time(time.monotonic() - at, 60, "until the program is given up")
        sent = env.beat("d%d" % k)
        m = env.wait_status(observer, "d%d" % k, False)
        assert 0.5 <= m.at - sent, m.at - sent
        asked = time.monotonic()
        assert d.get("/v1/status").status == 200
        slowest = max(slowest, m.at - sent, time.monotonic() - asked)
        k += 1
    assert time.monotonic() - at > 8, "10 s are allowed"
    wait_until(lambda: not os.path.exists("/proc/%d" % child), 5, "the program to be killed")
    assert "[notify] exec: a message was dropped after 1 try: it was still running after 10.0 s" in d.log()
    m = d.metrics()
    assert m.get("notify_waiting", kind="webhook") <= 16 and m.get("notify_waiting", kind="exec") <= 16
    assert m.get("loop_turn_seconds_count") == m.get("loop_turn_seconds_bucket", le="1")
    # The stop does not wait for longer than it may.
    began = time.monotonic()
    d.stop()
    in_time(time.monotonic() - began, 5, "to stop")
    in_time(slowest, 5, "and not the 10 s that a hook may take")


def test_full_queue_drops_the_oldest(env, web):
    server = web("hang")
    d = told(env, {"webhook": server.url, "notify_interval": "100ms"}, monitor={"stop_timeout": "100ms"}).start()
    k = 0

    def another():
        nonlocal k
        env.beat("d%d" % k)
        k += 1
        return d.metrics().get("notify_dropped_total") >= 2
    wait_until(another, 20, interval=0.12)
    assert d.metrics().get("notify_waiting", kind="webhook") == 16
    assert "the queue is full" in d.log()
    server.answers[:] = [200]


@pytest.mark.parametrize("text,why", [
    ("cat >/dev/null\nexit 3\n", "it ended with status 3"), ("kill -9 $$\n", "it was killed by signal 9"),
    (None, "No such file or directory")])
def test_program_that_fails(env, text, why):
    path = script(env, text) if text else env.dir / "missing"
    d = told(env, {"exec": path, "notify_interval": "100ms"}).start()
    wait_until(lambda: d.metrics().get("notify_failed_total", kind="exec") >= 1)
    assert "[notify] exec: a message was dropped after 1 try: " + why in d.log()
    if text is None:
        assert "[notify] exec = %s cannot be run: No such file" % path in d.log()
    assert d.metrics().get("notify_sent_total") == 0


def test_program_that_does_not_read(env):
    """A large message, of which nothing is read: that is no failure, and no SIGPIPE."""
    path = script(env, "exit 0\n")
    d = told(env, {"exec": path, "notify_interval": "300ms"}).start()
    for k in range(2000):
        env.beat("d%d" % k)
    wait_until(lambda: d.status()["devices"] == 2000)
    pass_time(0.4)  # what was gathered is on its way
    sent = wait_until(lambda: d.metrics().get("notify_sent_total", kind="exec"))
    env.beat("one more")
    wait_until(lambda: d.metrics().get("notify_sent_total", kind="exec") > sent)
    assert d.metrics().get("notify_failed_total") == 0


def test_slow_program_gets_one_message_at_a_time(env):
    path = script(env, 'echo "begin" >>%s/order\ncat >/dev/null\nsleep 0.4\necho "end" >>%s/order\n' % (env.dir, env.dir))
    d = told(env, {"exec": path, "notify_interval": "100ms"}).start()
    devices_so_far = itertools.count()

    def another():
        env.beat("d%d" % next(devices_so_far))
        return d.metrics().get("notify_sent_total", kind="exec") >= 4
    wait_until(another, interval=0.15)
    lines = (env.dir / "order").read_text().split()
    assert lines[:8] == ["begin", "end"] * 4


def test_the_program_inherits_nothing(env):
    """No descriptor of the daemon's, no ignored signal, no arguments, no shell."""
    out = env.dir / "out"
    path = script(env, 'cat >/dev/null\n{ echo "$# $0"; ls -l /proc/self/fd; grep SigIgn /proc/self/status; } >%s.part 2>&1\n'
                       'mv %s.part %s\n' % (out, out, out), "with space; $(touch no)")
    told(env, {"exec": path, "notify_interval": "100ms"})
    d = env.daemons[-1].start()
    wait_until(out.exists)
    text = out.read_text()
    assert text.startswith("0 %s\n" % path)
    assert "socket:" not in text and "eventpoll" not in text and "eventfd" not in text, text
    assert int(text.split("SigIgn:")[1].split()[0], 16) & (1 << (signal.SIGPIPE - 1)) == 0
    assert not (env.dir / "no").exists() and not (d.dir / "no").exists()


# --- life


def test_notify_is_live_on_reload(env, web):
    server = web()
    d = env.daemon(timeout="1h")
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    text = d.conf.read_text()
    d.rewrite(text + "\n[notify]\nwebhook = %s\nnotify_interval = 200ms\n" % server.url)
    answer = d.request("POST", "/v1/reload").json()
    assert answer == {"changed": ["notify.webhook", "notify.notify_interval"], "restart_needed": []}
    env.beat("b")
    wait_until(lambda: devices(server.messages()) == [("b", "online", "heartbeat")])
    d.rewrite(text)
    assert d.request("POST", "/v1/reload").status == 200
    env.beat("c")
    wait_until(lambda: d.state("c") == "online")
    throughout(lambda: len(server.messages()) == 1, 0.6)


def test_what_is_gathered_goes_out_at_the_stop(env, web):
    server, (path, messages) = web(), collector(env)
    d = told(env, {"webhook": server.url, "exec": path, "notify_interval": "1h"}).start()
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    assert not server.messages()
    d.stop()
    assert devices(server.messages()) == devices(messages()) == [("a", "online", "heartbeat")]


def test_server_that_comes_back(env, web):
    port = free_port()
    d = told(env, {"webhook": "http://127.0.0.1:%d/" % port, "notify_interval": "100ms"}).start()
    wait_until(lambda: d.metrics().get("notify_retried_total", kind="webhook") >= 1)
    server = web(port=port)
    wait_until(lambda: d.metrics().get("notify_sent_total", kind="webhook") == 1, 15)
    assert server.messages()[0]["number"] == 1


def test_a_program_gets_a_minimal_environment(env, tmp_path):
    path, seen = tmp_path / "tell", tmp_path / "seen"
    path.write_text("#!/bin/sh\ncat > /dev/null\nenv > %s.part\nmv %s.part %s\n" % (seen, seen, seen))
    path.chmod(0o755)
    d = told(env, {"exec": path, "notify_interval": "100ms"})
    d.start(env={"SECRET": "x", "TZ": "UTC", "LC_ALL": "C.UTF-8"})
    wait_until(seen.exists)
    names = {line.split("=")[0] for line in seen.read_text().splitlines()}
    assert {"PATH", "TZ", "LC_ALL"} <= names <= {"PATH", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_"}, names


def test_a_proxy_in_the_environment_is_not_used(env, web):
    server, proxy = web(), web()
    d = told(env, {"webhook": server.url, "notify_interval": "100ms"})
    d.start(env={"http_proxy": "http://127.0.0.1:%d" % proxy.server_address[1], "no_proxy": ""})
    wait_until(lambda: server.requests)
    assert not proxy.requests


def test_a_server_that_speaks_no_http(env):
    """What is no HTTP is a failure."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: answer_nonsense(listener), daemon=True).start()
    d = told(env, {"webhook": "http://127.0.0.1:%d/" % listener.getsockname()[1], "notify_interval": "100ms"}).start()
    wait_until(lambda: d.metrics().get("notify_failed_total", kind="webhook") == 1, 15)
    listener.close()


def answer_nonsense(listener):
    try:
        while True:
            c, _ = listener.accept()
            c.recv(65536)
            c.sendall(b"\x00\xff nonsense\r\n\r\n")
            c.close()
    except OSError:
        pass


class TrailerServer:
    """Answers each request with 200 and `n` trailers, fewer if the client closes the connection. `sent`: the bytes of each
    answer that has ended."""

    def __init__(self, n):
        self.n, self.sent, self.listener = n, [], socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d/" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        try:
            while True:
                c, _ = self.listener.accept()
                self.sent.append(self.answer(c))
        except OSError:
            pass

    def answer(self, c):
        sent = 0
        with c:
            c.settimeout(30)
            try:
                c.recv(65536)
                c.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
                while sent < 4 * self.n:
                    piece = b"a:\r\n" * min(self.n - sent // 4, 4096)
                    c.sendall(piece)
                    sent += len(piece)
                c.sendall(b"\r\n")
            except OSError:
                pass
        return sent


def test_an_answer_with_very_many_trailers_ends(env):
    """libcurl keeps each trailer, so the connection is closed. The server's end of it can buffer a few MB."""
    server = TrailerServer(20_000_000)
    d = told(env, {"webhook": server.url, "notify_interval": "100ms"}).start()
    wait_until(lambda: d.metrics().get("notify_failed_total", kind="webhook") == 1, 60)
    assert "the headers and trailers of the answer are longer than 300 KiB" in d.log()
    wait_until(lambda: len(server.sent) == 3)
    assert max(server.sent) < 40_000_000, server.sent
    server.listener.close()


def test_a_few_trailers_do_no_harm(env):
    server = TrailerServer(3)
    d = told(env, {"webhook": server.url, "notify_interval": "100ms"}).start()
    wait_until(lambda: d.metrics().get("notify_sent_total", kind="webhook") == 1, 15)
    assert server.sent == [12]
    server.listener.close()


# --- for people


def test_a_device_reads_as_a_sentence(env, web):
    server = web()
    d = told(env, {"webhook": server.url, "webhook_template": "text", "notify_interval": "300ms"}, timeout="400ms").start()
    wait_until(lambda: [r for r in server.requests if r["text"].startswith("monitor hears devices again, after ")])
    env.beat("pump-7")
    gone = wait_until(lambda: [r for r in server.requests if r["text"].startswith("pump-7 of default ")
                               and "pump-7 of default is offline: silent for " in r["text"]], what="the sentence")[0]
    assert gone["text"].endswith("\nNow 0 online, 1 offline.\n")
    assert gone["headers"]["Content-Type"] == "text/plain; charset=utf-8"
    assert d.metrics().get("notify_failed_total") == 0


def test_a_mass_death_is_one_sentence(env, web):
    server = web()
    d = told(env, {"webhook": server.url, "webhook_template": "slack", "title": "{count}|{summary}", "notify_interval": "2s"},
             timeout="1h", group={"timeout_max": "1h"}).start()

    def last():
        return server.requests[-1]["text"] if server.requests else ""
    for k in range(2000):
        env.beat("d%d" % k)
    wait_until(lambda: "Now 2,000 online, 0 offline." in last(), 20, "the births to be told")
    births = len(server.requests)
    for k in range(2000):
        env.beat("d%d" % k, {"online": False})
    wait_until(lambda: "Now 0 online, 2,000 offline." in last(), 20, "the deaths to be told")
    deaths = [r["json"]["text"] for r in server.requests[births:]]
    titles = [t.split("\n")[0].split("|") for t in deaths]
    assert sum(int(count.replace(",", "")) for count, _ in titles) == 2000, titles
    assert [t for _, t in titles if re.fullmatch(r"[0-9,]+ devices of default offline within \d+ s", t)], titles
    assert len(titles) < 20 and all(t.count("\n") <= 22 for t in deaths)


def test_words_of_ones_own_for_ntfy(env, web):
    server = web()
    told(env, {"webhook": server.url, "webhook_template": "ntfy", "title": "{node}: {device} {status}",
               "text": "{{{group}}}\\n{count}", "notify_interval": "200ms"}).start()
    env.beat("ü\u202e")
    hit = wait_until(lambda: [r for r in server.requests if r["text"] == "{default}\n1"], what="the device")[0]
    assert hit["headers"]["Content-Type"] == "text/plain; charset=utf-8" and hit["headers"]["Priority"] == "default"
    words = email.header.make_header(email.header.decode_header(hit["headers"]["Title"]))
    assert str(words) == "%s: ü\\u202e online" % env.node
    env.beat("ü\u202e", {"online": False})
    wait_until(lambda: any(r["headers"]["Priority"] == "high" for r in list(server.requests)), what="a death to be urgent")


def test_a_template_is_live(env, web):
    server = web()
    d = told(env, {"webhook": server.url, "webhook_template": "json", "notify_interval": "100ms"}).start()
    wait_until(lambda: server.messages())
    d.edit("webhook_template = json", "webhook_template = text\ntitle = only {device}\ntext =")
    assert d.request("POST", "/v1/reload").json()["changed"] == ["notify.webhook_template", "notify.title", "notify.text"]
    env.beat("a")
    wait_until(lambda: any(r["text"] == "only a\n" for r in list(server.requests)))


# --- what became of them


def entries(d):
    return d.get("/v1/notify").json()["notifications"]


def test_what_became_of_them(env, web):
    server = web(200, 500)
    path = script(env, "cat >/dev/null\nexit 3\n")
    d = told(env, {"exec": path, "exec_template": "text", "webhook": server.url, "notify_interval": "100ms"}).start()
    wait_until(lambda: entries(d) and not [e for e in entries(d) if e["result"] == "waiting"])
    first = sorted(entries(d), key=lambda e: e["channel"])
    assert [(e["channel"], e["result"], e["tries"], e["test"]) for e in first] == [
        ("exec", "failed", 1, False), ("webhook", "sent", 1, False)]
    assert first[0]["exit_status"] == 3 and first[0]["error"] == "it ended with status 3"
    assert first[1]["http_status"] == 200 and first[1]["error"] is None
    assert all(e["about"].startswith("monitor hears devices again, after ") for e in first)
    assert all(time.time() * 1000 - 60000 < e["time_ms"] <= e["ended_ms"] <= time.time() * 1000 for e in first)
    env.beat("a")
    trying = wait_until(lambda: [e for e in entries(d) if e["channel"] == "webhook" and e["number"] > 2 and e["tries"]])
    assert trying[0]["error"] == "the server answered with status 500"
    assert ("ended_ms" in trying[0]) == (trying[0]["result"] != "waiting")
    wait_until(lambda: d.metrics().get("notify_failed_total", kind="exec") == 2)
    exec_, webhook = d.get("/v1/notify").json()["channels"]
    assert exec_ == {"name": "exec", "target": str(path), "template": "text", "sent": 0, "failed": 2, "waiting": 0,
                     "failing": True}
    assert webhook["target"] == server.url.split("/hook")[0], "the rest may be a secret"
    assert (webhook["template"], webhook["sent"], webhook["waiting"] + webhook["failed"], webhook["failing"]) == ("json", 1, 1, True)
    assert "secret" not in d.get("/v1/notify").body.decode()
    gone = wait_until(lambda: [e for e in entries(d) if e["channel"] == "webhook" and e["result"] == "failed"], 15)[0]
    assert gone["tries"] == 3 and gone["http_status"] == 500
    assert [e["number"] for e in entries(d)] == [4, 3, 2, 1], "the newest first"
    listed = d.ctl("notify").stdout
    assert "exec     text   %s: 0 sent, 2 failed, 0 waiting; the last one did not arrive\n" % path in listed
    assert "a of default is online\n                     failed after 3 tries: the server answered with status 500\n" in listed
    assert "sent (status 200)\n" in listed and "secret" not in listed


def test_a_hundred_are_remembered(env, web):
    server = web()
    d = told(env, {"webhook": server.url, "notify_interval": "1h"}).start()
    for k in range(120):
        assert d.request("POST", "/v1/notify/test?channel=webhook").status == 200
        wait_until(lambda: entries(d)[0]["result"] == "sent", interval=0.01)
    assert [e["number"] for e in entries(d)] == list(range(120, 20, -1))


def test_a_test_is_sent(env, web):
    server, (path, messages) = web(), collector(env)
    d = told(env, {"exec": path, "webhook": server.url, "webhook_template": "text", "notify_interval": "1h"}).start()
    done = d.ctl("notify", "--test")
    assert (done.returncode, done.stdout, done.stderr) == (0, "exec: sent\nwebhook: sent (status 200)\n", "")
    assert [(m["number"], m["test"], m["offline"], m["devices"]) for m in messages()] == [(0, True, 0, [])]
    assert [r["text"].split("\n")[0] for r in server.requests] == ["test: this is how heartwheel's notifications arrive"]
    done = d.ctl("notify", "--test", "webhook", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["result"] == "sent" and len(messages()) == 1
    assert [(e["test"], e["channel"]) for e in entries(d)] == [(True, "webhook"), (True, "webhook"), (True, "exec")]
    # What was gathered is still there.
    d.stop()
    assert [b["begun"] for m in messages() for b in m["blind"]] == [False]


def test_a_test_that_fails_says_so(env, web):
    server = web(404)
    path = script(env, "exit 7\n")
    d = told(env, {"exec": path, "webhook": server.url, "notify_interval": "1h"}).start()
    done = d.ctl("notify", "--test")
    assert done.returncode == 1 and done.stdout == ("exec: failed: it ended with status 7\n"
                                                     "webhook: failed: the server answered with status 404\n")
    assert len(server.requests) == 1, "a test is tried once"
    done = d.ctl("notify", "--test", "webhok")
    assert done.returncode == 1 and "no such channel" in done.stderr
    assert d.ctl("notify", "webhook").returncode == 2
    assert d.ctl("notify", "--test", "exec", "webhook").returncode == 2


def test_a_test_goes_before_what_waits(env, web):
    server = web("hang")
    d = told(env, {"webhook": server.url, "notify_interval": "100ms"}, monitor={"stop_timeout": "100ms"}).start()
    births = itertools.count()

    def another():
        env.beat("d%d" % next(births))
        return d.metrics().get("notify_waiting", kind="webhook") >= 4
    wait_until(another, interval=0.12)
    number = d.request("POST", "/v1/notify/test").json()["tests"][0]["number"]
    server.answers[:] = [200]
    server.closing.set()
    wait_until(lambda: [e for e in entries(d) if e["number"] == number and e["result"] == "sent"], 20)
    all_of_them = server.messages()
    before = all_of_them[:[m.get("test", False) for m in all_of_them].index(True)]
    assert {m["number"] for m in before} == {all_of_them[0]["number"]}, "behind the first, which is tried again, and before the rest"


def test_nobody_is_told(env):
    d = env.daemon(timeout="1h")
    assert d.get("/v1/notify").json() == {"channels": [], "notifications": []}
    assert d.request("POST", "/v1/notify/test").status == 404
    done = d.ctl("notify")
    assert done.returncode == 0 and done.stdout == ("no notification is sent: set exec or webhook in [notify] of monitor.conf, then reload\n"
                                                    "nothing was sent since the daemon was started\n")
    done = d.ctl("notify", "--test")
    assert done.returncode == 1 and "no channel is set up" in done.stderr
