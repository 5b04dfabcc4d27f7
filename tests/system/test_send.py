# SPDX-License-Identifier: MIT
"""The receivers of heartwheel-alert: programs and web servers, working, busy and hostile."""
import base64
import json
import os
import random
import re
import threading
import time

import pytest

from hw_build import SRC
from hw_send import Hostile, Sender, Web, can_trust, message
from hw_wait import in_time, pass_time, throughout, wait_until


@pytest.fixture
def made(env):
    """Makes servers and senders that are closed at the end."""
    all_of_them = []

    def keep(one):
        all_of_them.append(one)
        return one
    yield keep
    for one in reversed(all_of_them):
        one.close()


def section(name, **keys):
    return "[receiver %s]\n%s" % (name, "".join("%s = %s\n" % kv for kv in keys.items()))


def secret(env, text, name="key", mode=0o600):
    path = env.dir / name
    path.write_text(text + "\n")
    os.chmod(path, mode)
    return path


def hook(env, text):
    path = env.dir / "hook"
    path.write_text("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def test_the_examples_of_the_docs(env):
    """The examples have no error except that the files with the secrets are missing."""
    text = (SRC / "docs" / "notify.md").read_text()
    [example] = [b for b in re.findall(r"```ini\n(.*?)```", text, re.S) if "[receiver chat" in b]
    s = Sender.__new__(Sender)
    with pytest.raises(AssertionError) as wrong:
        s.__init__(env.dir, example)
    assert "[receiver chat] key_file: cannot read /etc/heartwheel/chat-url: No such file or directory" in str(wrong.value)
    s.kill()


# --- a program


def test_a_program_gets_message_and_key(env, made):
    s = made(Sender(env.dir, section("ops", type="exec", program=hook(env, 'cat >%s/$IDEMPOTENCY_KEY\n' % env.dir))))
    sent = s.take("ops", 17)
    assert s.result(17) == ("sent", "")
    assert json.loads((env.dir / "ops-17").read_text()) == sent


def test_a_program_has_three_tries_with_one_key(env, made):
    s = made(Sender(env.dir, section("ops", type="exec", program=hook(env, 'echo $IDEMPOTENCY_KEY >>%s/tries; exit 7\n' % env.dir))))
    s.take("ops", 1)
    s.take("ops", 2)
    assert s.result(1) == ("given_up", "it ended with status 7")
    assert (env.dir / "tries").read_text().split()[:3] == ["ops-1"] * 3
    assert s.result(2)[0] == "given_up"
    assert (env.dir / "tries").read_text().split() == ["ops-1"] * 3 + ["ops-2"] * 3
    shown = s.show("ops")["messages"]
    assert [(m["message"], m["result"], m["tries"], m["code"]) for m in shown] == [("ops-2", "given_up", 3, 7), ("ops-1", "given_up", 3, 7)]
    assert any("message ops-1 is given up after 3 tries: it ended with status 7" in t for _, t in s.troubles)


def test_a_program_that_is_not_there(env, made):
    s = made(Sender(env.dir, section("ops", type="exec", program="/nowhere/hook")))
    s.take("ops", 1)
    assert s.result(1) == ("given_up", "No such file or directory")


# --- a web server


def test_a_webhook_gets_json_and_headers(env, made):
    web = made(Web())
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url("/x?y=z"), key_file=secret(env, "tok+en/1="))))
    sent = s.take("ops", 5)
    assert s.result(5) == ("sent", "")
    [r] = web.requests
    assert json.loads(r["body"]) == sent and r["path"] == "/x?y=z"
    assert r["headers"]["Idempotency-Key"] == "ops-5" and r["headers"]["Authorization"] == "Bearer tok+en/1="
    assert r["headers"]["Content-Type"] == "application/json" and "Expect" not in r["headers"]
    assert s.show("ops")["target"] == "http://127.0.0.1:%d" % web.port, "the rest may be a secret"


def test_a_webhook_with_a_password(env, made):
    web = made(Web())
    s = made(Sender(env.dir, section("ops", type="ntfy", url=web.url("/topic"), username="hub", password_file=secret(env, "a b:c"))))
    s.take("ops", 1)
    assert s.result(1)[0] == "sent"
    assert web.requests[0]["headers"]["Authorization"] == "Basic " + base64.b64encode(b"hub:a b:c").decode()


def test_a_url_from_a_file(env, made):
    web = made(Web())
    s = made(Sender(env.dir, section("chat", type="slack", key_file=secret(env, web.url("/services/T/B/x")))))
    s.take("chat", 1, sentence="device <!channel> is offline")
    assert s.result(1)[0] == "sent"
    [r] = web.requests
    assert r["path"] == "/services/T/B/x" and "Authorization" not in r["headers"]
    assert json.loads(r["body"]) == {"text": "device &lt;!channel&gt; is offline\ndevice &lt;!channel&gt; is offline"}
    assert s.show("chat")["target"] == "http://127.0.0.1:%d" % web.port


def test_ntfy(env, made):
    web = made(Web())
    s = made(Sender(env.dir, section("phone", type="ntfy", url=web.url("/pumps"))))
    s.take("phone", 1, sentence="device a\r\nX-Evil: 1 is offline")
    s.take("phone", 2, what="closed", sentence="device ä was offline")
    assert s.result(1)[0] == s.result(2)[0] == "sent"
    a, b = web.requests
    assert (a["headers"]["Priority"], a["headers"]["Tags"], a["headers"]["X-Evil"]) == ("high", "warning", None)
    assert a["headers"]["Title"] == r"device a\u000d\u000aX-Evil: 1 is offline"
    assert (b["headers"]["Priority"], b["body"].decode()) == ("default", "device ä was offline")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 599])
def test_a_busy_server_gets_the_same_again(env, made, status):
    web = made(Web(status, status, 204))
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url())))
    s.take("ops", 1)
    s.take("ops", 2)
    assert s.result(2) == ("sent", "")
    keys = [r["headers"]["Idempotency-Key"] for r in web.requests]
    assert keys == ["ops-1"] * 3 + ["ops-2"], "in order"
    assert len({r["body"] for r in web.requests[:3]}) == 1
    at = [r["at"] for r in web.requests]
    assert at[1] - at[0] > 0.95 and at[2] - at[1] > 1.95, "after 1 s, then 2 s"
    assert [t for _, t in s.troubles] == ["message ops-1 was not taken: status %d; the next try follows in 1 s" % status, "works again"]


@pytest.mark.parametrize("status", [300, 304, 400, 401, 403, 404, 410, 413, 422])
def test_another_status_is_given_up_in_its_words(env, made, status):
    web = made(Web((status, b'{"message":\n "no \x1b[31m\xff topic"}' if status != 304 else b"", {}), 200))
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url())))
    s.take("ops", 1)
    assert s.result(1) == ("given_up", r'{"message": "no \u001b[31m\xff topic"}' if status != 304 else "status 304")
    s.take("ops", 2)
    assert s.result(2)[0] == "sent"
    assert len(web.requests) == 2
    assert s.show("ops")["messages"][1]["code"] == status


def test_a_server_that_dies_with_the_message(env, made):
    """The server dies before it answers, with or without the message: no message is lost, and a repetition has the same key."""
    seed = int(time.time())
    print("seed", seed)
    dice = random.Random(seed)

    def dies(request, n):
        if dice.random() < 0.3:
            raise ConnectionAbortedError
        return 200
    web = made(Web(dies))
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url())))
    for n in range(30):
        s.take("ops", n)
    for n in range(30):
        assert s.result(n, timeout=120) == ("sent", "")
    keys = [r["headers"]["Idempotency-Key"] for r in web.requests]
    assert list(dict.fromkeys(keys)) == ["ops-%d" % n for n in range(30)] and keys == sorted(keys, key=lambda k: int(k[4:])), "in order"
    assert len({(k, r["body"]) for k, r in zip(keys, web.requests)}) == 30


def test_a_redirection_is_not_followed(env, made):
    other = made(Web())
    web = made(Web((302, b"", {"Location": other.url("/else")})))
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url(), key_file=secret(env, "token"))))
    s.take("ops", 1)
    assert s.result(1) == ("given_up", "redirections are not followed; the server names " + other.url("/else"))
    assert not other.requests


def test_retry_after_is_obeyed(env, made):
    web = made(Web((429, b"slow down", {"Retry-After": "4"}), 200))
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url())))
    s.take("ops", 1)
    assert s.result(1)[0] == "sent"
    assert web.requests[1]["at"] - web.requests[0]["at"] > 3.9
    assert s.troubles[0][1] == "message ops-1 was not taken: slow down; the next try follows in 4 s"


def test_retry_after_is_bounded(env, made):
    web = made(Web((503, b"", {"Retry-After": "86400"})))
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url())))
    s.take("ops", 1)
    wait_until(lambda: s.troubles)
    assert s.troubles[0][1].endswith("the next try follows in 300 s")


def test_no_receiver_waits_for_another(env, made):
    stuck, good = made(Web("hang")), made(Web())
    s = made(Sender(env.dir, section("stuck", type="webhook", url=stuck.url()) + section("good", type="webhook", url=good.url())))
    s.take("stuck", 1)
    wait_until(lambda: stuck.requests)
    began = time.monotonic()
    for n in range(20):
        s.take("good", n)
    s.result(19, "good")
    took = time.monotonic() - began
    assert len(stuck.requests) == 1 and s.show("stuck")["waiting"] == 1
    in_time(took, 10)


def test_a_try_lasts_15_seconds(env, made):
    web = made(Web("hang", 200))
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url())))
    s.take("ops", 1)
    assert s.result(1)[0] == "sent"
    first, second = (r["at"] for r in web.requests)
    assert second - first > 15.5
    assert "timed out" in s.troubles[0][1]
    in_time(second - first, 20)


def test_no_try_without_the_lease(env, made):
    web = made(Web())
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url())))
    s.ask("lease no")
    s.take("ops", 1)
    throughout(lambda: not web.requests, 2.5)
    began = time.monotonic()
    s.ask("lease yes")
    assert s.result(1)[0] == "sent"
    in_time(time.monotonic() - began, 0.9, "at once, not at the next look")


def test_a_test_message_waits_for_nobody(env, made):
    web = made(Web("hang", 200))
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url())))
    s.take("ops", 1)
    wait_until(lambda: web.requests)
    assert s.ask("test ops") == "ok"
    wait_until(lambda: s.show("ops")["messages"][0]["result"] == "sent")
    shown = s.show("ops")
    assert shown["messages"][0]["test"] and shown["sent"] == 0 and shown["waiting"] == 1
    body = json.loads(web.requests[1]["body"])
    assert body["news"][0]["what"] == "test" and body["message"].startswith("ops-test-")
    assert s.ask("test nobody") == "error ENOENT"


def test_a_failed_test_has_one_try(env, made):
    web = made(Web(503))
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url())))
    s.ask("test ops")
    wait_until(lambda: s.show("ops")["messages"][0]["result"] == "given_up")
    throughout(lambda: len(web.requests) == 1, 1.5)


def test_what_is_no_message_is_refused(env, made):
    web = made(Web(503))
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url())))
    assert s.ask('take ops 1 {"news":[]}') == "error EINVAL"
    assert s.ask("take other 1 " + json.dumps(message("other", 1))) == "error ENOENT"
    large = message("ops", 1, note="x" * 65536)
    assert s.ask("take ops 1 " + json.dumps(large)) == "error EINVAL"
    s.take("ops", 1)
    assert s.ask("take ops 1 " + json.dumps(message("ops", 1))) == "error EEXIST"
    for n in range(2, 65):
        s.take("ops", n)
    assert s.ask("take ops 65 " + json.dumps(message("ops", 65))) == "error ENOSPC"


def test_reload(env, made):
    web, other = made(Web(503)), made(Web())
    text = section("ops", type="webhook", url=web.url()) + section("gone", type="webhook", url=web.url())
    s = made(Sender(env.dir, text))
    s.take("ops", 1)
    s.take("gone", 1)
    s.take("gone", 2)
    wait_until(lambda: len(web.requests) >= 4)
    assert s.reload(section("ops", type="pagerduty", key_file="/nowhere")) == "error ENOENT"
    assert "wrong [receiver ops] key_file: cannot read /nowhere: No such file or directory" in s.answers
    assert [r["name"] for r in s.show()["receivers"]] == ["ops", "gone"], "nothing has changed"
    began = time.monotonic()
    assert s.reload(section("new", type="webhook", url=other.url()) + section("ops", type="slack", url=other.url())) == "ok"
    assert s.result(1, "ops")[0] == "sent"
    took = time.monotonic() - began
    assert json.loads(other.requests[0]["body"]).keys() == {"text"} and other.requests[0]["headers"]["Idempotency-Key"] == "ops-1"
    assert s.show()["dropped"] == 2
    assert [r["name"] for r in s.show()["receivers"]] == ["new", "ops"]
    throughout(lambda: len(s.done) == 1, 0.5)
    in_time(took, 0.9, "tried at once with the new settings")


def test_a_lost_lease_drops_what_another_holder_sends(env, made):
    web = made(Web(503, 200))
    s = made(Sender(env.dir, section("ops", type="webhook", url=web.url())))
    s.take("ops", 1)
    s.take("ops", 2)
    wait_until(lambda: web.requests)
    s.ask("lease no")
    s.ask("reset")
    s.ask("lease yes")
    s.take("ops", 3)
    assert s.result(3)[0] == "sent"
    throughout(lambda: [r["headers"]["Idempotency-Key"] for r in web.requests] == ["ops-1", "ops-3"], 1.5)
    assert [m["result"] for m in s.show("ops")["messages"]] == ["sent", "dropped", "dropped"] and len(s.done) == 1
    assert s.show()["stats"][0]["dropped"] == 2 and s.show()["dropped"] == 0


# --- PagerDuty

TOP = {"routing_key", "event_action", "dedup_key", "payload", "client", "client_url", "links", "images"}
PAYLOAD = {"summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"}


def pagerduty(request, n):
    """Answers as the published schema of Events v2 demands."""
    e = json.loads(request["body"])
    wrong = [k for k in e if k not in TOP] + [k for k in e.get("payload", {}) if k not in PAYLOAD]
    if not isinstance(e.get("routing_key"), str) or len(e["routing_key"]) != 32:
        wrong.append("'routing_key' is invalid")
    if e.get("event_action") not in ("trigger", "acknowledge", "resolve"):
        wrong.append("'event_action' is invalid")
    if e.get("event_action") != "trigger" and not e.get("dedup_key"):
        wrong.append("'dedup_key' is missing")
    if len(e.get("dedup_key", "")) > 255 or len(request["body"]) > 512 * 1024:
        wrong.append("too long")
    if e.get("event_action") == "trigger":
        p = e.get("payload", {})
        if not 0 < len(p.get("summary", "")) <= 1024 or not p.get("source"):
            wrong.append("'payload.summary' or 'payload.source' is missing or too long")
        if p.get("severity") not in ("critical", "error", "warning", "info"):
            wrong.append("'payload.severity' is invalid")
    if request["headers"]["Content-Type"] != "application/json":
        wrong.append("content type")
    if wrong:
        return 400, json.dumps({"status": "invalid event", "message": "Event object is invalid", "errors": wrong}).encode(), {}
    return 202, json.dumps({"status": "success", "message": "Event processed", "dedup_key": e["dedup_key"]}).encode(), {}


ROUTING_KEY = "0123456789abcdef0123456789abcdef"


def test_pagerduty(env, made):
    web = made(Web(pagerduty))
    s = made(Sender(env.dir, section("pager", type="pagerduty", url=web.url("/v2/enqueue"), key_file=secret(env, ROUTING_KEY))))
    s.take("pager", 1, id="0abcdefghaaa", unreachable=25, sentence="gateway ga is offline: 25 devices behind it\n" + "ü" * 1500)
    assert s.result(1)[0] == "sent"
    s.take("pager", 2, "acknowledged", id="0abcdefghaaa", by="anna")
    s.take("pager", 3, "closed", id="0abcdefghaaa")
    s.take("pager", 4, kind="mass", id="0abcdefghbbb", device=None, devices=["d" * 255] * 100, down=10000)
    for n in (2, 3, 4):
        assert s.result(n)[0] == "sent", s.result(n)
    events = {(e["dedup_key"], e["event_action"]): e for e in (json.loads(r["body"]) for r in web.requests)}
    assert set(events) == {("heartwheel/0abcdefghaaa", "trigger"), ("heartwheel/0abcdefghaaa", "acknowledge"),
                           ("heartwheel/0abcdefghaaa", "resolve"), ("heartwheel/0abcdefghbbb", "trigger")}
    assert events["heartwheel/0abcdefghaaa", "trigger"]["payload"]["severity"] == "critical"
    s.ask("test pager")
    wait_until(lambda: len(web.requests) == 6)
    test = [json.loads(r["body"]) for r in web.requests[4:]]
    assert [t["event_action"] for t in test] == ["trigger", "resolve"] and {t["dedup_key"] for t in test} == {"heartwheel/test"}


def test_pagerduty_refuses_in_its_words(env, made):
    web = made(Web(pagerduty))
    s = made(Sender(env.dir, section("pager", type="pagerduty", url=web.url(), key_file=secret(env, "short"))))
    s.take("pager", 1)
    result, words = s.result(1)
    assert result == "given_up" and "'routing_key' is invalid" in words


def test_pagerduty_gets_eight_at_a_time_and_one_of_an_incident(env, made):
    lock, now, most, free = threading.Lock(), [], [0], threading.Event()

    def slow(request, n):
        incident = json.loads(request["body"])["dedup_key"]
        with lock:
            assert incident not in now or most.append(-1)
            now.append(incident)
            most[0] = max(most[0], len(now))
        free.wait(20)
        pass_time(0.02)
        with lock:
            now.remove(incident)
        return pagerduty(request, n)
    web = made(Web(slow))
    s = made(Sender(env.dir, section("pager", type="pagerduty", url=web.url(), key_file=secret(env, ROUTING_KEY))))
    for n in range(40):
        s.take("pager", n, "opened" if n < 20 else "closed", id="0abcdefgh%03d" % (n % 20))
    wait_until(lambda: len(now) == 8)
    throughout(lambda: len(now) == 8, 0.5)
    free.set()
    for n in range(40):
        assert s.result(n)[0] == "sent"
    assert most == [8], "never two of one incident"
    actions = [(e["dedup_key"], e["event_action"]) for e in (json.loads(r["body"]) for r in web.requests)]
    assert all(actions.index((k, "trigger")) < actions.index((k, "resolve")) for k, _ in actions)


# --- hostile servers


def flood(c, begin, piece, end=2_000_000):
    """Sends `piece` again and again."""
    c.recv(65536)
    c.sendall(begin)
    for _ in range(0, end, len(piece)):
        c.sendall(piece)


def flood_once(c, text):
    c.recv(65536)
    c.sendall(text)
    pass_time(0.5)


def drip(c, text):
    for byte in text:
        c.sendall(bytes([byte]))
        pass_time(1)


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

TAKEN = {
    "endless body": lambda c: flood(c, OK + b"\r\n", b"x" * 10000),
    "endless trailers": lambda c: flood(c, CHUNKED + b"0\r\n", b"X-Trailer: %s\r\n" % (b"t" * 1000)),
    "endless chunks": lambda c: flood(c, CHUNKED, b"1\r\nx\r\n" * 1000),
    "body cut off": lambda c: flood(c, OK + b"Content-Length: 1000\r\n\r\n", b"x", 1),
    "100 before it": lambda c: flood_once(c, b"HTTP/1.1 100 Continue\r\n\r\n" * 50 + OK + b"Content-Length: 0\r\n\r\n"),
}


AGAIN = {
    "endless headers": (lambda c: flood(c, OK, b"X-Header: %s\r\n" % (b"h" * 1000)), "header"),
    "one endless header": (lambda c: flood(c, OK + b"X-Header: ", b"h" * 10000), "header"),
    "endless 100s": (lambda c: flood(c, b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "header"),
    "no HTTP": (lambda c: flood_once(c, b"SSH-2.0-OpenSSH_9\r\n"), "HTTP/0.9"),
    "nothing": (lambda c: c.recv(65536), "Empty reply"),
    "another protocol": (lambda c: flood_once(c, b"\x15\x03\x01\x00\x02\x02\x46"), ""),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_an_answer_counts_whatever_follows_it(env, made, kind):
    server = made(Hostile(TAKEN[kind]))
    s = made(Sender(env.dir, section("ops", type="webhook", url="http://127.0.0.1:%d/" % server.port)))
    s.take("ops", 1)
    assert s.result(1) == ("sent", "")
    assert server.connections == 1


@pytest.mark.parametrize("kind", AGAIN)
def test_what_is_no_answer_is_named_and_tried_again(env, made, kind):
    speak, words = AGAIN[kind]
    server = made(Hostile(speak))
    s = made(Sender(env.dir, section("ops", type="webhook", url="http://127.0.0.1:%d/" % server.port)))
    s.take("ops", 1)
    wait_until(lambda: server.connections >= 2)
    assert words in s.troubles[0][1], s.troubles
    assert not s.done


@pytest.mark.parametrize("text,taken", [(OK + b"X-Header: " + b"h" * 60, False), (OK + b"\r\n" + b"x" * 60, True)])
def test_slow_bytes(env, made, text, taken):
    server = made(Hostile(lambda c: (c.recv(65536), c.sendall(text[:-60]), drip(c, text[-60:]))))
    s = made(Sender(env.dir, section("ops", type="webhook", url="http://127.0.0.1:%d/" % server.port)))
    began = time.monotonic()
    s.take("ops", 1)
    if taken:
        assert s.result(1) == ("sent", "")
    else:
        wait_until(lambda: s.troubles)
        assert "timed out" in s.troubles[0][1]
    in_time(time.monotonic() - began, 17)


@pytest.mark.skipif(not can_trust(), reason="needs root and a mount namespace, to trust an authority of the test's own")
def test_tls(env, made, tls, other_tls):
    good = made(Web(tls=(tls.server_cert, tls.server_key)))
    alien = made(Web(tls=(other_tls.server_cert, other_tls.server_key)))
    cert, key = tls.issue("elsewhere", "subjectAltName=DNS:elsewhere.example")
    wrong = made(Web(tls=(cert, key)))
    plain = made(Web())
    text = "".join(section(name, type="webhook", url=url) for name, url in (
        ("good", good.url(host="localhost")), ("alien", alien.url()), ("wrong", wrong.url(host="localhost")),
        ("plain", "https://127.0.0.1:%d/" % plain.port)))
    s = made(Sender(env.dir, text, ca=tls.ca))
    for name in ("good", "alien", "wrong", "plain"):
        s.take(name, 1)
    assert s.result(1, "good")[0] == "sent"
    wait_until(lambda: {name for name, _ in s.troubles} == {"alien", "wrong", "plain"})
    said = dict(s.troubles)
    assert "certificate" in said["alien"] and "subject name" in said["wrong"] and "localhost" in said["wrong"] and said["plain"]
    assert not alien.requests and not wrong.requests and not plain.requests
