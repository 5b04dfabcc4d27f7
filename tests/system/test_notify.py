# SPDX-License-Identifier: MIT
"""[notify]: `exec` and `webhook` are receivers of heartwheel-alert; the other daemons send nothing."""
import email.header
import http.server
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import pytest

from hw_alert import HEARTWHEEL_ALERT, Alert, Inbox, see, set_online
from hw_env import NO_STALL, NO_STANDSTILL
from hw_process import free_port
from hw_tasks import Tasks
from hw_wait import throughout, wait_until


class WebServer(http.server.ThreadingHTTPServer):
    """Keeps each posted message. `answers`: the status of each request in turn, the last one for all others; "hang": no answer
    until the server is closed."""

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
    """None: the text is for people."""
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


def script(env, text, name="hook"):
    path = env.dir / name
    path.write_text("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def monitored(env, a, **options):
    """heartwheeld, which passes requests on to heartwheel-alert."""
    return env.daemon(alert={"socket": a.socket}, **{"monitor": NO_STALL, "mqtt": NO_STANDSTILL, **options})


def messages_of(a, name):
    """A receiver's last messages, the newest first."""
    return next(r for r in a.json("/v1/receivers")["receivers"] if r["name"] == name)["messages"]


# --- who sends


def test_both_receivers_get_the_same(env, web):
    server, inbox = web(), Inbox(env)
    a = Alert(env, notify={"exec": inbox.path, "webhook": server.url, "notify_interval": "300ms"})
    a.start()
    monitored(env, a, timeout="500ms")
    env.beat("pump-7")
    inbox.wait(("opened", "pump-7"))
    wait_until(lambda: server.messages(), what="the web server's message")
    with env.beating(["pump-7"], 0.1):
        inbox.wait(("opened", "pump-7"), ("closed", "pump-7"))
        wait_until(lambda: len(server.messages()) == 2, what="the end at the web server")
    assert [m["news"] for m in server.messages()] == [m["news"] for m in inbox.messages()], "both get the same"
    assert [m["message"] for m in inbox.messages()] == ["exec-1", "exec-2"]
    assert [r["headers"]["Idempotency-Key"] for r in server.requests] == ["webhook-1", "webhook-2"]
    assert server.requests[0]["path"] == "/hook?key=secret" and "secret" not in a.log()
    assert server.requests[0]["headers"]["User-Agent"].startswith("heartwheel/")


def test_heartwheeld_serves_the_metrics_at_its_tcp_address(env):
    a = Alert(env, receivers={"ops": Inbox(env).receiver()}).start()
    port = free_port()
    monitored(env, a, http={"listen": "127.0.0.1:%d" % port})
    with urllib.request.urlopen("http://127.0.0.1:%d/v1/incidents/metrics" % port, timeout=30) as r:
        assert r.headers["Content-Type"].startswith("text/plain") and b"\nheartwheel_alert_works 1\n" in r.read()


def test_the_other_daemons_send_nothing(env, web):
    """They ignore [notify]; only heartwheel-alert checks it."""
    server = web()
    notify = {"webhook": server.url, "notify_interval": "100ms", "no_such_key": "1"}
    d = env.daemon(timeout="300ms", notify=notify)
    t = Tasks(env, watch="yes", notify=notify).start()
    env.beat("pump-7")
    env.wait_store("pump-7", "offline")
    for daemon in (d, t):
        assert not [k for k in daemon.get("/metrics").body.decode().split() if k.startswith("heartwheel_notify")]
        assert daemon.get("/v1/notify").status == 404
    throughout(lambda: not server.requests, 1)
    wrong = subprocess.run([str(HEARTWHEEL_ALERT), "-t", "-c", str(d.conf)], capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 2 and "key 'no_such_key': unknown in [notify]" in wrong.stderr, wrong


def test_blindness_of_the_monitor(env):
    """The broker goes away: one message after blind_after, and one when the monitor sees again."""
    env.own_broker()
    inbox = Inbox(env)
    a = Alert(env, notify={"exec": inbox.path, "notify_interval": "100ms"}, blind_after="2s").start()
    d = monitored(env, a, timeout="1h")
    env.broker.stop()
    d.wait_lost()
    inbox.wait(("opened", "blind"))
    env.broker.start()
    d.wait_seeing()
    inbox.wait(("opened", "blind"), ("closed", "blind"))
    env.broker.stop()
    d.wait_lost()
    env.broker.start()
    d.wait_seeing()
    throughout(lambda: len(inbox.news()) == 2, 2)


# --- the text


def test_a_mass_outage_is_one_sentence(env, web):
    server = web()
    a = Alert(env, notify={"webhook": server.url, "webhook_template": "slack", "title": "{count}|{summary}",
                           "notify_interval": "5s"}).start()
    d = monitored(env, a, timeout="1h", group={"timeout_max": "1h"})
    for k in range(2000):
        env.beat("d%d" % k)
    wait_until(lambda: d.status()["online"] == 2000, 20)
    for k in range(2000):
        env.beat("d%d" % k, {"online": False})
    wait_until(lambda: d.status()["offline"] == 2000, 20)
    wait_until(lambda: server.requests, 20, "a message")
    throughout(lambda: len(server.requests) <= 2, 6)
    count, summary = server.messages()[-1]["text"].split("\n")[0].split("|")
    assert count == "2,000" and "2,000" in summary and "default" in summary, server.messages()
    assert all(m["text"].count("\n") <= 22 for m in server.messages())


def test_an_own_text_for_ntfy(env, web):
    server = web()
    Alert(env, notify={"webhook": server.url, "webhook_template": "ntfy", "title": "{node}: {device} {status}",
                       "text": "{{{group}}}\\n{count}", "notify_interval": "200ms"}).start()
    see(env)
    set_online(env, "ü\u202e", False)
    hit = wait_until(lambda: [r for r in server.requests if r["text"] == "{default}\n1"], what="the device")[0]
    assert hit["headers"]["Content-Type"] == "text/plain; charset=utf-8" and hit["headers"]["Priority"] == "high"
    words = email.header.make_header(email.header.decode_header(hit["headers"]["Title"]))
    assert str(words) == "%s: ü\\u202e opened" % env.node
    set_online(env, "ü\u202e", True)
    wait_until(lambda: any(r["headers"]["Priority"] == "default" for r in list(server.requests)), what="the end")


def test_a_reload_applies_notify(env, web):
    first, second = web(), web()
    a = Alert(env).start()
    see(env)
    a.sections.append(("notify", {"webhook": first.url, "notify_interval": "100ms"}))
    a.write()
    assert a.request("POST", "/v1/reload").json() == {"changed": ["notify.webhook", "notify.notify_interval"], "restart_needed": []}
    set_online(env, "pump-7", False)
    wait_until(lambda: first.messages(), what="the first message")
    a.sections[-1] = ("notify", {"webhook": second.url, "webhook_template": "text", "title": "only {device}", "text": "",
                                 "notify_interval": "100ms"})
    a.write()
    a.signal(signal.SIGHUP)
    wait_until(lambda: "reload: notify.webhook changed" in a.log(), what="the reload")
    set_online(env, "pump-8", False)
    wait_until(lambda: any(r["text"] == "only pump-8\n" for r in list(second.requests)), what="the new text at the new server")
    assert len(first.requests) == 1


# --- what a program and a server can do to the daemon


def test_a_program_inherits_nothing(env):
    """The program has no descriptor of the daemon, no ignored signal, no arguments, no shell, and a minimal environment."""
    out = env.dir / "out"
    path = script(env, 'cat >/dev/null\n{ echo "$# $0"; env; ls -l /proc/self/fd; grep SigIgn /proc/self/status; } >%s.part 2>&1\n'
                       'mv %s.part %s\n' % (out, out, out), "with space; $(touch no)")
    a = Alert(env, notify={"exec": path, "notify_interval": "100ms"}).start(
        env={**os.environ, "SECRET": "x", "TZ": "UTC", "LC_ALL": "C.UTF-8"})
    assert a.request("POST", "/v1/receivers/exec/test").status == 202
    wait_until(out.exists)
    text = out.read_text()
    assert text.startswith("0 %s\n" % path)
    names = {line.split("=")[0] for line in text.splitlines()[1:] if "=" in line.split(" ")[0]}
    assert {"PATH", "TZ", "LC_ALL", "IDEMPOTENCY_KEY"} <= names <= {"PATH", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "PWD", "OLDPWD", "SHLVL",
                                                                    "_", "IDEMPOTENCY_KEY"}, names
    assert "socket:" not in text and "eventpoll" not in text and "eventfd" not in text, text
    assert int(text.split("SigIgn:")[1].split()[0], 16) & (1 << (signal.SIGPIPE - 1)) == 0
    assert not (env.dir / "no").exists() and not (a.dir / "no").exists()


def test_a_proxy_in_the_environment_is_not_used(env, web):
    server, proxy = web(), web()
    a = Alert(env, notify={"webhook": server.url})
    a.start(env={**os.environ, "http_proxy": "http://127.0.0.1:%d" % proxy.server_address[1], "no_proxy": ""})
    assert a.request("POST", "/v1/receivers/webhook/test").status == 202
    wait_until(lambda: server.requests)
    assert not proxy.requests


def test_a_program_that_hangs_delays_nothing(env, web):
    """The other receiver gets its messages, the API answers, and a stop kills the program."""
    server, pid = web(), env.dir / "pid"
    a = Alert(env, notify={"exec": script(env, "echo $$ >%s\nsleep 100 &\nsleep 100\n" % pid), "webhook": server.url,
                           "notify_interval": "100ms"}).start()
    see(env)
    set_online(env, "pump-7", False)
    wait_until(lambda: pid.exists() and pid.read_text().strip(), what="the program")
    set_online(env, "pump-8", False)
    wait_until(lambda: len(server.messages()) == 2, what="both messages at the web server")
    child, began = int(pid.read_text()), time.monotonic()
    assert a.metrics().get("notifications_total", receiver="exec", result="sent") == 0
    a.stop()
    assert time.monotonic() - began < 12 and not os.path.exists("/proc/%d" % child)


# --- heartwheelctl


def test_what_was_sent(env, web):
    server, path = web(200, 404), script(env, "cat >/dev/null\nexit 3\n")
    a = Alert(env, notify={"exec": path, "webhook": server.url, "notify_interval": "100ms"}).start()
    d = monitored(env, a, timeout="1h")
    assert d.ctl("notify").stdout.endswith("nothing was sent since heartwheel-alert was started\n")
    for device in ("pump-7", "pump-8"):
        set_online(env, device, False)
        wait_until(lambda: any(device in m["about"] and m["result"] != "waiting" for m in messages_of(a, "webhook")), what=device)
    env.check_events = False
    wait_until(lambda: any(m["result"] == "given_up" for m in messages_of(a, "exec")), 15, "the program to be given up")
    listed = d.ctl("notify").stdout
    assert "exec          exec          %s: 0 sent, " % path in listed and "; the last one did not arrive\n" in listed, listed
    assert "  sent (status 200)\n" in listed and "  given up (status 404): ok\n" in listed, listed
    assert "given up after 3 tries: it ended with status 3\n" in listed and "secret" not in listed, listed
    assert json.loads(d.ctl("notify", "--json").stdout)["receivers"][0]["name"] == "exec"


def test_a_test_message(env, web):
    server, inbox = web(200, 200, 404), Inbox(env)
    a = Alert(env, notify={"exec": inbox.path, "webhook": server.url, "webhook_template": "text"}).start()
    d = monitored(env, a, timeout="1h")
    done = d.ctl("notify", "--test")
    assert (done.returncode, done.stdout, done.stderr) == (0, "exec: sent\nwebhook: sent (status 200)\n", "")
    assert [(n["what"], n["incident"]["id"]) for m in inbox.messages() for n in m["news"]] == [("test", "test")]
    assert "sends this to test the receiver" in server.requests[0]["text"].split("\n")[0]
    done = d.ctl("notify", "--test", "webhook", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["result"] == "sent" and len(inbox.messages()) == 1
    done = d.ctl("notify", "--test", "webhook")
    assert done.returncode == 1 and done.stdout == "webhook: given up (status 404): ok\n"
    done = d.ctl("notify", "--test", "webhok")
    assert done.returncode == 1 and "there is no such receiver" in done.stderr
    assert d.ctl("notify", "webhook").returncode == 2
    assert d.ctl("notify", "--test", "exec", "webhook").returncode == 2


def test_no_receiver_and_no_heartwheel_alert(env):
    a = Alert(env).start()
    d = monitored(env, a, timeout="1h")
    done = d.ctl("notify")
    assert done.returncode == 0 and done.stdout == (
        "no notification is sent: add a section [receiver NAME] to monitor.conf, then reload heartwheel-alert\n"
        "nothing was sent since heartwheel-alert was started\n")
    done = d.ctl("notify", "--test")
    assert done.returncode == 1 and "there is no receiver" in done.stderr
    a.stop()
    for args in ((), ("--test",), ("--json",)):
        done = d.ctl("notify", *args)
        assert done.returncode == 1 and done.stderr == "heartwheelctl: heartwheel-alert is not running\n" and not done.stdout, done


# --- hostile servers


class TrailerServer:
    """Answers each request with 200 and `n` trailers, or fewer if the client closes the connection. `sent`: the bytes of each
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
    """libcurl keeps each trailer, so the daemon closes the connection. The server's end of it can buffer a few MB."""
    server = TrailerServer(20_000_000)
    a = Alert(env, notify={"webhook": server.url}).start()
    assert a.request("POST", "/v1/receivers/webhook/test").status == 202
    wait_until(lambda: server.sent, 60)
    assert max(server.sent) < 40_000_000, server.sent
    server.listener.close()
