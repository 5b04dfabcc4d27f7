# SPDX-License-Identifier: MIT
"""The receivers of heartwheel-alert with servers of others: Debian's Alertmanager and Exim."""
import email
import email.header
import json
import re
import time

import pytest

from hw_send import Alertmanager, Exim, Hostile, Sender, Web, can_trust
from hw_wait import in_time, pass_time, throughout, wait_until
from test_send import made, secret, section  # noqa: F401 (a fixture)

# --- Alertmanager

alertmanager_only = pytest.mark.skipif(not Alertmanager.program, reason="needs prometheus-alertmanager")


@pytest.fixture
def manager(env, made):  # noqa: F811
    """An Alertmanager, and the server that it notifies."""
    hook = made(Web())
    one = Alertmanager(env.own_dir("am"), hook.url()).start()
    yield one, hook
    one.kill()


def notified(hook):
    """What Alertmanager has sent: (status, labels) of each alert."""
    return [(a["status"], a["labels"]["incident"]) for r in hook.requests for a in json.loads(r["body"])["alerts"]]


def ends_far_away(alert):
    return time.mktime(time.strptime(alert["endsAt"][:19], "%Y-%m-%dT%H:%M:%S")) - time.mktime(time.gmtime()) > 80000


@alertmanager_only
def test_an_alert_appears_and_is_resolved_once(env, made, manager):  # noqa: F811
    am, hook = manager
    text = section("am", type="alertmanager", url=am.url)
    s = made(Sender(env.dir, text))
    s.take("am", 1, id="0abcdefghaaa", labels={"site": "north", "a.b": "1", "alertname": "x"}, device='q"\n<ü>')
    assert s.result(1) == ("sent", "")
    wait_until(lambda: notified(hook))
    [alert] = am.alerts()
    assert alert["labels"] == {"alertname": "HeartwheelDevice", "incident": "0abcdefghaaa", "device": r'q"\u000a<ü>', "group": "pumps",
                               "site": "north", "a_b": "1", "label_alertname": "x"}
    assert alert["annotations"]["summary"].startswith("device pump-7") and ends_far_away(alert)
    # The sender stops: nothing ends by that.
    s.kill()
    throughout(lambda: am.alerts() and notified(hook) == [("firing", "0abcdefghaaa")], 1)
    # It starts again, and is handed what the receiver knows: nothing new for Alertmanager.
    s.start()
    incident = {"id": "0abcdefghaaa", "kind": "device", "state": "open", "device": 'q"\n<ü>', "group": "pumps",
                "labels": {"site": "north", "a.b": "1", "alertname": "x"}, "since_ms": int(time.time() * 1000) - 30000, "sentence": "again"}
    s.known("am", incident)
    wait_until(lambda: am.alerts()[0]["annotations"]["summary"] == "again", what="the first post follows a second after the start")
    assert len(am.alerts()) == 1 and notified(hook) == [("firing", "0abcdefghaaa")]
    # The end, and a restart after it: resolved once.
    s.take("am", 2, "closed", **incident | {"state": "closed"})
    assert s.result(2) == ("sent", "")
    wait_until(lambda: len(notified(hook)) == 2)
    s.kill()
    s.start()
    s.known("am", incident | {"state": "closed", "closed_ms": int(time.time() * 1000) - 1000})
    pass_time(1.5)
    throughout(lambda: notified(hook) == [("firing", "0abcdefghaaa"), ("resolved", "0abcdefghaaa")], 1)
    assert s.show("am")["failing"] is False and s.show()["stats"][0]["failed_posts"] == 0


@alertmanager_only
def test_alertmanager_restarted_and_emptied(env, made, manager):  # noqa: F811
    """Alertmanager keeps no alerts over a restart: the posts of each minute bring them back, and an end that it missed as
    well."""
    am, hook = manager
    s = made(Sender(env.dir, section("am", type="alertmanager", url=am.url)))
    for n in range(450):
        s.take("am", n, id="0abcdefgh%03d" % n, device="pump-%d" % n)
        if n % 50 == 49:
            s.result(n)
    wait_until(lambda: len(am.alerts()) == 450)
    am.kill()
    s.take("am", 450, "closed", id="0abcdefgh007", device="pump-7")
    wait_until(lambda: s.show("am")["failing"])
    am.start()
    assert s.reload(section("am", type="alertmanager", url=am.url)) == "ok"  # or in a minute
    wait_until(lambda: len(am.alerts()) == 449, what="three batches")
    assert s.result(450) == ("sent", "")
    throughout(lambda: len(am.alerts()) == 449, 0.5)


@alertmanager_only
def test_one_of_two_alertmanagers_is_enough(env, made, manager):  # noqa: F811
    am, _ = manager
    stuck = made(Web("hang"))
    s = made(Sender(env.dir, section("am", type="alertmanager", url="%s, http://127.0.0.1:1 , %s" % (stuck.url(), am.url))))
    began = time.monotonic()
    s.take("am", 1)
    assert s.result(1) == ("sent", "")
    assert time.monotonic() - began < 10, "the server that does not answer is not waited for"
    wait_until(lambda: len(am.alerts()) == 1)
    wait_until(lambda: s.show()["stats"][0]["failed_posts"] >= 1)
    assert any(t.startswith("server 2 did not take the open alerts: ") for _, t in s.troubles)


@alertmanager_only
def test_alertmanager_refuses_in_its_words(env, made, manager):  # noqa: F811
    am, _ = manager
    s = made(Sender(env.dir, section("am", type="alertmanager", url=am.url + "/elsewhere")))
    s.take("am", 1)
    result, words = s.result(1)
    assert result == "given_up" and "404" in words


@alertmanager_only
def test_an_alert_of_a_test_ends_by_itself(env, made, manager):  # noqa: F811
    am, _ = manager
    s = made(Sender(env.dir, section("am", type="alertmanager", url=am.url)))
    assert s.ask("test am") == "ok"
    wait_until(am.alerts)
    [alert] = am.alerts()
    assert alert["labels"]["alertname"] == "HeartwheelTest" and not ends_far_away(alert)


# --- mail

mail_only = pytest.mark.skipif(not Exim.program, reason="needs exim4-daemon-light")
trust_only = pytest.mark.skipif(not can_trust(), reason="needs root and a mount namespace, to trust an authority of the test's own")


@pytest.fixture
def post(env, tls):
    started = []

    def make(cert=tls.server_cert, key=tls.server_key, **options):
        started.append(Exim(env.own_dir("mail"), cert, key, **options).start())
        return started[-1]
    yield make
    for server in started:
        server.kill()


def mailing(port, host="localhost", **keys):
    return section("post", type="smtp", url="smtp://%s:%d" % (host, port),
                   **{"mail_from": "Heartwheel <hub@example.org>", "mail_to": "ops@example.org", **keys})


def subject(mail):
    return str(email.header.make_header(email.header.decode_header(email.message_from_bytes(mail)["Subject"])))


def body(mail):
    return email.message_from_bytes(mail).get_payload(decode=True).decode()


@mail_only
@trust_only
def test_a_mail_with_tls_and_auth(env, made, tls, post):  # noqa: F811
    server = post()
    login = {"username": "hub", "password_file": secret(env, "se cret")}
    s = made(Sender(env.dir, mailing(server.port, mail_to="ops@example.org, Anna <anna@example.org>", **login), ca=tls.ca))
    s.take("post", 1, sentence="device ä\r\nBcc: evil@example.org\r\n\r\n.\r\nx is offline", device="ä\r\nBcc: evil@example.org")
    assert s.result(1) == ("sent", "")
    wait_until(server.mails)
    [mail] = server.mails()
    m = email.message_from_bytes(mail)
    assert m["From"] == "Heartwheel <hub@example.org>" and m["To"] == "ops@example.org, Anna <anna@example.org>"
    assert m["Return-path"] == "<hub@example.org>" and m["Envelope-to"].split() == ["ops@example.org,", "anna@example.org"] and m["Bcc"] is None
    assert subject(mail) == r"device ä\u000d\u000aBcc: evil@example.org\u000d\u000a\u000d\u000a.\u000d\u000ax is offline"
    assert m["Message-ID"].startswith("<heartwheel.post-1.") and m["Auto-Submitted"] == "auto-generated"
    assert "ä" in body(mail) and "A=PLAIN:hub" in server.log() and "X=TLS" in server.log()


@mail_only
@trust_only
def test_lines_with_dots_and_long_ones(env, made, tls, post):  # noqa: F811
    server = post()
    login = {"username": "hub", "password_file": secret(env, "se cret")}
    s = made(Sender(env.dir, mailing(server.port, text=r".\n..\n{list}\n.", **login), ca=tls.ca))
    long = "device " + "ü€😀" * 80 + " is offline"
    s.take("post", 1, sentence=long)
    assert s.result(1) == ("sent", "")
    wait_until(server.mails)
    [mail] = server.mails()
    assert body(mail).rstrip("\n").split("\n") == [".", "..", long, "."] and long.startswith(subject(mail)[:300])
    assert max(len(line) for line in mail.split(b"\n")) <= 998


@mail_only
@trust_only
@pytest.mark.parametrize("wrong", ["password", "certificate", "name", "no tls"])
def test_no_password_without_trust(env, made, tls, other_tls, post, wrong):  # noqa: F811
    cert = {"certificate": (other_tls.server_cert, other_tls.server_key),
            "name": tls.issue("else", "subjectAltName=DNS:elsewhere.example")}.get(wrong, (tls.server_cert, tls.server_key))
    server = post(*cert, offers_tls=wrong != "no tls")
    login = {"username": "hub", "password_file": secret(env, "false" if wrong == "password" else "se cret")}
    s = made(Sender(env.dir, mailing(server.port, **login), ca=tls.ca))
    s.take("post", 1)
    if wrong == "password":
        result, words = s.result(1)
        assert result == "given_up" and words.startswith("535 ")
        return
    wait_until(lambda: s.troubles)
    words = {"certificate": "certificate", "name": "localhost", "no tls": "STARTTLS"}[wrong]
    assert words in s.troubles[0][1], s.troubles
    assert not server.mails() and "A=PLAIN" not in server.log() and not s.done


@mail_only
def test_without_a_username_tls_is_used_if_offered(env, made, other_tls, post):  # noqa: F811
    server = post(other_tls.server_cert, other_tls.server_key, must_authenticate=False)
    plain = post(must_authenticate=False, offers_tls=False)
    s = made(Sender(env.dir, mailing(server.port) + mailing(plain.port).replace("receiver post", "receiver plain")))
    s.take("post", 1)
    s.take("plain", 1)
    assert s.result(1, "post") == s.result(1, "plain") == ("sent", "")
    wait_until(lambda: server.mails() and plain.mails())
    assert "X=TLS" in server.log() and "X=TLS" not in plain.log()


@mail_only
def test_refusals_in_the_servers_words(env, made, post):  # noqa: F811
    server = post(must_authenticate=False)
    some = mailing(server.port, mail_to="nobody@example.org, ops@example.org").replace("receiver post", "receiver some")
    none = mailing(server.port, mail_to="nobody@example.org").replace("receiver post", "receiver none")
    busy = mailing(server.port, mail_to="busy@example.org").replace("receiver post", "receiver busy")
    s = made(Sender(env.dir, some + none + busy + mailing(server.port)))
    for name in ("some", "none", "busy"):
        s.take(name, 1)
    s.take("post", 1, sentence="refuse this one")
    assert s.result(1, "some") == ("sent", "550 no such user here"), "the other one got it"
    assert s.result(1, "none") == ("given_up", "550 no such user here")
    assert s.result(1, "post") == ("given_up", "550 this mail is refused")
    wait_until(lambda: [t for name, t in s.troubles if name == "busy"])
    assert any("was not taken: 451 come back later" in t for name, t in s.troubles if name == "busy")
    wait_until(lambda: s.show("busy")["messages"][0]["tries"] >= 2)
    assert s.show("none")["messages"][0]["code"] == 550 and not any(d[0] == "busy" for d in s.done)


@mail_only
def test_a_mail_server_that_stops(env, made, post):  # noqa: F811
    server = post(must_authenticate=False)
    s = made(Sender(env.dir, mailing(server.port)))
    s.take("post", 1)
    assert s.result(1)[0] == "sent"
    server.kill()
    s.take("post", 2)
    s.take("post", 3)
    wait_until(lambda: s.show("post")["messages"][1]["tries"] >= 2)
    server.start()
    assert s.result(3)[0] == "sent"
    wait_until(lambda: len(server.mails()) == 3)
    ids = {email.message_from_bytes(m)["Message-ID"].split(".")[1] for m in server.mails()}
    assert ids == {"post-1", "post-2", "post-3"}


@pytest.mark.parametrize("kind", ["endless greeting", "one endless line", "silence", "closed", "421"])
def test_hostile_mail_servers(env, made, kind):  # noqa: F811
    speak, words = {
        "endless greeting": (lambda c: flood_at_once(c, b"220-hello\r\n"), "header|replies"),
        "one endless line": (lambda c: flood_at_once(c, b"220-" + b"x" * 10000), ""),
        "silence": (lambda c: pass_time(30), "timed out"),
        "closed": (lambda c: None, ""),
        "421": (lambda c: c.sendall(b"421 too many connections\r\n"), "421 too many connections"),
    }[kind]
    server = made(Hostile(speak))
    s = made(Sender(env.dir, mailing(server.port, "127.0.0.1")))
    s.take("post", 1)
    wait_until(lambda: server.connections >= 2)
    assert re.search(words, s.troubles[0][1]) and not s.done


def converse(c, replies):
    """A mail server that answers each line, and then stops answering."""
    c.sendall(b"220 here\r\n")
    lines, data = c.makefile("rb"), False
    for line in lines:
        data &= line != b".\r\n"
        if data:
            continue
        if not replies:
            pass_time(40)
            return
        reply = replies.pop(0)
        data = reply.startswith(b"354")
        c.sendall(reply + b"\r\n")


@pytest.mark.parametrize("replies,result", [
    ([b"250 hello", b"250 ok", b"250 ok", b"354 go on", b"250 taken"], ("sent", "")),
    ([b"250 hello", b"250 ok", b"550 no"], ("given_up", "550 no")),
    ([b"250 hello", b"550 no"], ("given_up", "550 no")),
    ([b"250 hello", b"250 ok", b"250 ok", b"354 go on", b"554 no"], ("given_up", "554 no")),
    ([b"250 hello", b"250 ok", b"250 ok", b"354 go on", b"452 full"], None),
], ids=["taken", "rcpt", "mail", "data", "full"])
def test_a_mail_server_that_is_silent_at_the_end(env, made, replies, result):  # noqa: F811
    """libcurl waits for the reply to QUIT; nothing else waits for it."""
    web = made(Web())
    server = made(Hostile(lambda c: converse(c, list(replies))))
    s = made(Sender(env.dir, mailing(server.port, "127.0.0.1") + section("ops", type="webhook", url=web.url())))
    began = time.monotonic()
    s.take("post", 1)
    if result:
        assert s.result(1, "post") == result
    else:
        wait_until(lambda: s.troubles)
        assert "452 full" in s.troubles[0][1]
    s.take("ops", 1)
    assert s.result(1, "ops")[0] == "sent"
    in_time(time.monotonic() - began, 10)


def flood_at_once(c, piece):
    for _ in range(0, 3_000_000, len(piece)):
        c.sendall(piece)
