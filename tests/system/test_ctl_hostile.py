# SPDX-License-Identifier: MIT
"""heartwheelctl and a server that sends arbitrary bytes: none of them reaches the terminal as a control sequence, and no number
overflows."""
import http.server
import json
import os
import pty
import re
import select
import signal
import socketserver
import subprocess
import threading

import pytest

from hw_build import HEARTWHEELCTL, SRC
from hw_wait import wait_until

ESC = "\x1b]0;owned\x07\x9b31m\u202e\r\n"
LISTS = ("devices", "transitions", "groups", "nodes", "streams", "channels", "notifications", "tasks", "outages", "levels",
         "changed", "restart_needed", "added", "removed", "differs", "hours", "warnings")
OBJECTS = ("cluster", "all", "keys", "states", "ended")
TASK = "01234567-89ab-4cde-8f01-23456789abcd"
NUMBERS = 9e18, -9e18, 1e308, -1e308, 2.0**63, -2.0**63, 1.5e16, 9.1e15 / 1000
COMMANDS = [["status"], ["list"], ["list", "--names"], ["groups"], ["nodes"], ["show", "d"], ["wheel"], ["notify"], ["check"],
            ["version"], ["reload"], ["forget", "d"], ["history", "d"], ["outages"], ["uptime"], ["uptime", "d"], ["history", "status"],
            ["task", "list"], ["task", "list", "--names"], ["task", "show", TASK], ["task", "cancel", TASK], ["task", "status"]]
SANITIZER = re.compile("runtime error|Sanitizer")


def keys():
    """The name of each member that heartwheelctl reads."""
    found = set()
    for source in (SRC / "src" / "ctl").glob("*.c"):
        found |= set(re.findall(r'"([a-z][a-z0-9_]*)"', source.read_text()))
    return sorted(found - set(LISTS) - set(OBJECTS) - {"next"})  # pages without end


def answer(value, depth=1):
    one = {k: value for k in keys()}
    one["slots"] = [value] * 31
    if depth > 0:
        inner = answer(value, depth - 1)
        one.update({k: [inner, inner] for k in LISTS})
        one.update({k: inner for k in OBJECTS})
    one[ESC] = value
    return one


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, path):
        self.body = b"{}"
        self.asked = 0
        super().__init__(str(path), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self):
        self.server.asked += 1
        stream = "events" in self.path and "history" not in self.path and "limit" not in self.path
        event = "".join("event: %s\nid: 1-%d\ndata: %s\n\n" % (k, i, self.server.body.decode()) for i, k in
                        enumerate(("sight", "transition", "task"))).encode()
        body = event if stream else self.server.body
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.send_header("Content-Length", str(len(body) + (1 << 20 if stream else 0)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = reply

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass


@pytest.fixture
def server(env):
    s = Server(env.dir / "hostile.sock")
    yield s
    s.shutdown()
    s.server_close()


def run(server, command, seconds=20):
    """Runs heartwheelctl on a terminal without colours; returns its output."""
    master, slave = pty.openpty()
    asked = server.asked
    p = subprocess.Popen([str(HEARTWHEELCTL), "-s", server.server_address, *command],
                         stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                         env={**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "TERM": "linux"})
    os.close(slave)
    out = b""
    follows = command[-1] == "watch"
    while True:
        ready, _, _ = select.select([master], [], [], 1 if follows and out else seconds)
        assert ready or follows, "%s does not end: %r" % (command, out[-500:])
        try:
            data = os.read(master, 65536) if ready else b""
        except OSError:
            break
        out += data
        if not data or (follows and out.count(b"\n") >= 2):
            break
    if follows:
        os.kill(p.pid, signal.SIGTERM)
    os.close(master)
    code = p.wait(20)
    assert server.asked > asked, "%s ended with %d without a question: %r" % (command, code, out)
    return code, out


def check(command, code, out):
    assert code in (-signal.SIGTERM, 0, 1, 2, 3), (command, code, out[-2000:])
    text = out.decode("utf-8").replace("\r\n", "\n")
    bad = [c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e"]
    assert not bad and "owned" not in text.split("\\x1b]0;")[0][-6:], (command, bad, text[-2000:])
    assert not SANITIZER.search(text), (command, text)


@pytest.mark.parametrize("command", COMMANDS + [["watch"], ["task", "watch"]], ids=" ".join)
def test_no_control_character_reaches_the_terminal(server, command):
    server.body = json.dumps(answer("offline" + ESC)).encode()
    code, out = run(server, command)
    check(command, code, out)
    server.body = json.dumps({**answer(1), **{k: ESC for k in ("error", "state", "reason", "id", "node")}}).encode()
    check(command, *run(server, command))


@pytest.mark.parametrize("command", COMMANDS + [["watch"], ["task", "watch"]], ids=" ".join)
def test_no_number_overflows(server, command):
    for number in NUMBERS:
        server.body = json.dumps(answer(number)).encode()
        check(command, *run(server, command))
    server.body = json.dumps({**answer(9.1e15), "ticks_per_s": 1}).encode()
    check(command, *run(server, command))
