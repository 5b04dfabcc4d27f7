# SPDX-License-Identifier: MIT
"""[notify] of heartwheel-tasks: tasks of others that came to nothing are told like devices that fell silent, and each once."""
import email
import json
import signal
import subprocess
import time

import pytest

from hw_build import HEARTWHEELCTL
from hw_tasks import HEARTWHEEL_TASKS, Sender, Tasks
from hw_wait import in_time, throughout, wait_until
from test_notify import collector, script, told, web  # noqa: F401
from test_tasks_watch import Node, events, find, wait_for


def ends(messages):
    """{msg_id: [(state, why)]} of all that was told."""
    found = {}
    for e in (e for m in messages for e in m["tasks"]):
        found.setdefault(e["msg_id"], []).append((e["state"], e["why"]))
    return found


def wait_expired(t, msg_id):
    wait_until(lambda: [e for e in events(t) if (e["msg_id"], e["state"]) == (msg_id, "expired")], what="%s to expire" % msg_id)


def test_what_came_to_nothing_is_told_once(env, web):  # noqa: F811
    server, (path, messages) = web(), collector(env)
    t = Tasks(env, watch="yes", run="1s", notify={"exec": path, "webhook": server.url, "notify_interval": "200ms"}).start()
    begun = int(time.time() * 1000)
    a, b = Node(t, "a"), Node(t, "b")
    untaken, unfinished, broken, done, late = a.send("b", 1), a.send("b"), a.send("b", action="blow up"), a.send("b"), a.send("b", 1)
    b.say("a", "ack", unfinished)
    b.say("a", "failed", broken, error="broken")
    b.say("a", "complete", done)
    ours = Sender(t, "alice").submit("nobody", exp=time.time() + 1)  # its submitter is told, and nobody else
    wait_expired(t, late)
    b.say("a", "failed", late)
    wait_until(lambda: len(ends(server.messages())) == 4, what="all to be told")
    wait_until(lambda: [e for e in events(t) if (e["msg_id"], e["state"]) == (ours, "expired")], what="ours to expire")
    wait_until(lambda: [e for e in events(t) if e["why"] == "late"], what="the late answer to be noted")
    last = a.send("b", 0.5)
    wait_until(lambda: last in ends(server.messages()), what="what was sent behind all to be told")
    assert ends(server.messages()) == {untaken: [("expired", "exp")], unfinished: [("failed", "run")], broken: [("failed", "device")],
                                       late: [("expired", "exp")], last: [("expired", "exp")]}
    wait_until(lambda: messages() == server.messages(), what="the program to get the same")
    for m in server.messages():
        assert set(m) == {"node", "number", "from_ms", "to_ms", "expired", "failed", "tasks", "tasks_left_out", "online", "offline",
                          "forgotten", "counts", "devices", "devices_left_out", "blind", "blind_left_out", "now"}
        assert m["node"] == env.node and begun <= m["from_ms"] <= m["to_ms"] <= time.time() * 1000
        assert m["expired"] + m["failed"] == len(m["tasks"]) and m["tasks_left_out"] == 0 and m["devices"] == [] and m["offline"] == 0
        assert m["now"]["watched"] >= len(m["tasks"])
    assert [m["number"] for m in server.messages()] == list(range(1, len(server.messages()) + 1))
    by = {e["msg_id"]: e for m in server.messages() for e in m["tasks"]}
    assert {k: by[broken][k] for k in ("sender", "receiver", "action")} == {"sender": "a", "receiver": "b", "action": "blow up"}
    assert by[unfinished]["waited_ms"] == 1000 and 500 <= by[untaken]["waited_ms"] <= 1000
    sent = len(server.messages())
    wait_until(lambda: t.metrics().get("notify_sent_total", kind="webhook") == sent, what="them to be counted")
    t.stop()


def test_in_plain_words(env, web):  # noqa: F811
    """The times in the words are those of the tasks: 2 s from what was sent to its end."""
    slack, ntfy = web(), web()
    mail = env.dir / "mail"
    taker = script(env, "cat >%s.part && mv %s.part %s\n" % (mail, mail, mail))
    as_slack = Tasks(env, watch="yes", instances="several", notify={
        "exec": taker, "exec_template": "mail", "mail_from": "hw@example.org", "mail_to": "ops@example.org", "webhook": slack.url,
        "webhook_template": "slack", "notify_interval": "1s"}).start()
    a, b = Node(as_slack, "anna"), Node(as_slack, "pump-7")
    m = a.send("pump-7", 2)
    waited = wait_for(as_slack, "anna", m, "sent")
    span = (waited["exp_ms"] - waited["sent_ms"]) / 1000
    assert 1 < span <= 2
    words = "task 'set' from anna to pump-7: no device accepted it within "
    wait_until(lambda: slack.messages() and mail.exists(), what="both to be told")
    text = slack.messages()[0]["text"]
    assert text.startswith(words) and text.endswith("Now 1 watched task is known."), text
    assert float(text[len(words):].split(" s\n")[0]) == pytest.approx(span, abs=0.11)
    letter = email.message_from_string(mail.read_text())
    assert letter["Subject"].startswith(words) and words in letter.get_payload(decode=True).decode()
    assert "set" in as_slack.get("/v1/tasks/notify").json()["notifications"][0]["about"]
    as_slack.stop()
    as_ntfy = Tasks(env, watch="yes", run="1s", notify={
        "webhook": ntfy.url, "webhook_template": "ntfy", "notify_interval": "5s", "title": "{count} {device} {status} {group}: {summary}"}).start()
    m, n = a.send("pump-7"), a.send("pump-8", action="x" * 40)
    b.say("anna", "ack", m)
    wait_for(as_ntfy, "anna", m, "failed")
    b.say("anna", "failed", n)
    wait_until(lambda: ntfy.requests, what="it to be told")
    got = ntfy.requests[0]
    assert got["headers"]["Title"].startswith("2 several devices failed no group: 2 tasks to several devices failed within ")
    assert got["headers"]["Title"].endswith(": 1 not finished, 1 failed") and got["headers"]["Priority"] == "high"
    assert "task 'set' from anna to pump-7: accepted, but not finished within 1 s\n" in got["text"], got["text"]
    assert "task '%s' from anna to pump-8: pump-8 reports a failure\n" % ("x" * 40) in got["text"], got["text"]


def test_a_storm_is_one_message(env, web):  # noqa: F811
    server = web()
    t = Tasks(env, watch="yes", notify={"webhook": server.url, "notify_interval": "10s"}).start()
    a = Node(t, "a")
    exp = time.time() + 3
    sent = [a.send("b%d" % (k % 7), exp=exp) for k in range(1500)]
    wait_until(lambda: sum(m["expired"] for m in server.messages()) == 1500, 60, what="all to be told")
    assert len(server.messages()) <= 2, "the interval may end among them, but no more"
    assert all(len(m["tasks"]) == min(m["expired"], 1000) and len(m["tasks"]) + m["tasks_left_out"] == m["expired"]
               for m in server.messages())
    assert {x for m in server.messages() for e in m["tasks"] for x in [e["msg_id"]]} <= set(sent)
    about = t.get("/v1/tasks/notify").json()["notifications"][-1]["about"]
    assert "tasks to several devices failed within" in about and "not accepted" in about


def test_of_several_instances_one_tells(env, web):  # noqa: F811
    """Also when the broker, or Redis, goes away for a moment, and whoever is started anew."""
    env.own_broker()
    env.own_redis()
    server = web()
    both = [Tasks(env, node="n%d" % i, watch="yes", instances="several",
                  notify={"webhook": server.url, "notify_interval": "300ms"}).start() for i in (1, 2)]
    a = Node(both[0], "a")
    sent = [a.send("b", 1) for _ in range(60)]
    wait_until(lambda: set(ends(server.messages())) == set(sent), what="all to be told")
    env.broker.stop()
    env.broker.start()
    wait_until(lambda: all(t.ready() for t in both), what="both to be back")
    a = Node(both[0], "a")
    sent += [a.send("b", 1) for _ in range(60)]
    wait_until(lambda: set(ends(server.messages())) == set(sent), what="all to be told, the second time")
    env.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wait_until(lambda: all(t.ready() for t in both), what="both to be back")
    sent += [a.send("b", 1) for _ in range(60)]
    wait_until(lambda: set(ends(server.messages())) == set(sent), what="all to be told, the third time")
    both[0].stop()
    both[0].start()
    last = a.send("b", 1)
    wait_until(lambda: last in ends(server.messages()), what="the last to be told")
    assert ends(server.messages()) == {m: [("expired", "exp")] for m in sent + [last]}, "each once"


def test_who_dies_before_it_has_told_leaves_it_to_another(env, web):  # noqa: F811
    """It has read an entry and not acknowledged it: whoever takes it over tells of it, once."""
    env.own_redis()
    server = web()
    notify = {"webhook": server.url, "notify_interval": "100ms"}
    t = Tasks(env, node="n1", watch="yes", instances="several", notify=notify).start()
    t.stop()
    # What an instance was given that died at once.
    env.redis.xgroup_create(t.key("events"), "tell", "0", mkstream=True) if not env.redis.exists(t.key("events")) else None
    env.redis.xadd(t.key("events"), {"task": "01234567-89ab-4cde-8f01-23456789abcd", "receiver": "b", "sender": "a", "msg_id": "m",
                                     "state": "expired", "why": "exp", "time_ms": int(time.time() * 1000), "node": "n9", "watched": "1",
                                     "action": "set", "waited_ms": 86_400_000})
    assert env.redis.xreadgroup("tell", "n9", {t.key("events"): ">"}, count=10)
    t.start()
    wait_until(lambda: server.messages(), 60, what="it to be taken over, and told")
    assert ends(server.messages()) == {"m": [("expired", "exp")]}
    about = t.get("/v1/tasks/notify").json()["notifications"][0]["about"]
    assert about == "task 'set' from a to b: no device accepted it within 1 d"
    # Its acknowledgement is lost, and so is the connection.
    key, pending = t.key("events"), lambda: env.redis.xpending(t.key("events"), "tell")["pending"]
    wait_until(lambda: not pending(), what="it to be acknowledged")
    env.redis.execute_command("XCLAIM", key, "tell", "n1", 0, env.redis.xrevrange(key, count=1)[0][0], "FORCE")
    env.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wait_until(lambda: not pending(), what="it to be acknowledged again")
    last = Node(t, "a").send("b", 0.5)
    wait_until(lambda: last in ends(server.messages()), what="what came behind it to be told")
    assert ends(server.messages()) == {"m": [("expired", "exp")], last: [("expired", "exp")]}, "each once"


def test_an_answer_that_was_lost_loses_no_end_and_tells_none_twice(env, web):  # noqa: F811
    """On a new connection it reads again what it was given and has not acknowledged: of some it was told, of others not."""
    env.own_redis()
    server = web()
    t = Tasks(env, node="n1", watch="yes", notify={"webhook": server.url, "notify_interval": "100ms"}).start()
    key = t.key("events")

    def entry(msg_id):
        return {"task": "01234567-89ab-4cde-8f01-23456789abcd", "receiver": "b", "sender": "a", "msg_id": msg_id, "state": "expired",
                "why": "exp", "time_ms": int(time.time() * 1000), "node": "n1", "watched": "1", "action": "set", "waited_ms": 1000}

    def pending():
        return env.redis.xpending(key, "tell")["pending"]
    told_of = env.redis.xadd(key, entry("told"))
    wait_until(lambda: server.messages() and not pending(), what="the first to be told, and acknowledged")
    p = env.redis.pipeline(transaction=True)
    p.execute_command("XCLAIM", key, "tell", "n1", 0, told_of, "FORCE")  # as if that had not reached Redis
    p.xadd(key, entry("lost"))
    p.xreadgroup("tell", "n1", {key: ">"})
    p.execute()
    assert pending() == 2
    env.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wait_until(lambda: "lost" in ends(server.messages()), what="the other to be told")
    wait_until(lambda: not pending(), what="both to be acknowledged")
    env.redis.xadd(key, entry("last"))
    wait_until(lambda: "last" in ends(server.messages()), what="the last to be told")
    assert ends(server.messages()) == {m: [("expired", "exp")] for m in ("told", "lost", "last")}


@pytest.mark.parametrize("how", ["stood still", "was started anew"])
def test_what_was_answered_while_it_could_not_hear_is_no_end(env, web, how):  # noqa: F811
    """The answers wait for it, and are read when their tasks' time is over."""
    server = web()
    t = Tasks(env, watch="yes", notify={"webhook": server.url, "notify_interval": "200ms"}).start()
    a, b = Node(t, "a"), Node(t, "b")
    exp = time.time() + 2
    sent = [a.send("b", exp=exp) for _ in range(20)]
    unanswered = a.send("b", exp=exp)
    for m in sent + [unanswered]:
        wait_for(t, "a", m, "sent")
    t.proc.send_signal(signal.SIGSTOP) if how == "stood still" else t.stop()
    for m in sent:
        b.say("a", "complete", m)
    throughout(lambda: not server.messages(), exp + 2 - time.time())
    t.proc.send_signal(signal.SIGCONT) if how == "stood still" else t.start()
    wait_until(lambda: server.messages(), what="the one to be told that nobody took")
    assert ends(server.messages()) == {unanswered: [("expired", "exp")]}
    assert all(find(t, "a", m)["state"] == "complete" for m in sent)


def test_a_program_that_hangs_holds_nothing_up(env):
    t = Tasks(env, watch="yes", notify={"exec": script(env, "sleep 60\n"), "notify_interval": "100ms"}).start()
    a, b = Node(t, "a"), Node(t, "b")
    a.send("b", 0.5)
    wait_until(lambda: t.metrics().get("notify_waiting", kind="exec") == 1, what="it to be run")
    m = a.send("b")
    b.say("a", "complete", m)
    wait_for(t, "a", m, "complete")
    assert t.metrics().get("notify_waiting", kind="exec") == 1
    t.stop()  # and the program goes with it


def test_a_stop_tells_what_was_gathered(env, web):  # noqa: F811
    server = web()
    t = Tasks(env, watch="yes", notify={"webhook": server.url, "notify_interval": "1h"})
    sent = []
    for _ in range(4):  # and once each, whenever within a second it is stopped
        t.start()
        sent.append(Node(t, "a").send("b", 0.5))
        wait_until(lambda: t.metrics().get("task_watched_total", state="expired") == 1, what="it to be read")
        t.stop()
        assert ends(server.messages()) == {m: [("expired", "exp")] for m in sent}
        assert env.redis.xpending(t.key("events"), "tell")["pending"] == 0


def test_names_that_would_deceive_stand_escaped(env, web):  # noqa: F811
    server = web()
    t = Tasks(env, watch="yes", notify={"webhook": server.url, "webhook_template": "slack", "notify_interval": "100ms"}).start()
    Node(t, "a").send("b", 0.5, action="<!channel> @everyone \u202ex")
    wait_until(lambda: server.messages(), what="it to be told")
    text = server.messages()[0]["text"]
    assert "'&lt;!channel&gt; @\u200beveryone \\u202ex'" in text, text


def test_a_task_with_long_names_hides_no_other(env, web):  # noqa: F811
    server = web()
    t = Tasks(env, watch="yes", notify={"webhook": server.url, "webhook_template": "slack", "notify_interval": "5s"}).start()
    odd, exp = "\u202e" * 85, time.time() + 1
    Node(t, odd).send(odd, exp=exp, action=odd)
    Node(t, "anna").send("pump-7", exp=exp + 1)
    wait_until(lambda: server.messages(), what="both to be told")
    text = "".join(m["text"] for m in server.messages())
    assert "task 'set' from anna to pump-7: no device accepted" in text and len(text) < 2000, text


def test_heartwheelctl_shows_both_daemons(env, web):  # noqa: F811
    server = web()
    notify = {"webhook": server.url, "notify_interval": "100ms"}
    t = Tasks(env, watch="yes", notify=notify)
    d = told(env, notify)
    d.conf.write_text(d.conf.read_text() + "[tasks]\nsocket = %s\n" % t.socket)
    d.start()

    def ctl(*args):
        return subprocess.run([str(HEARTWHEELCTL), "-s", str(d.socket), "notify", *args], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL)
    before = ctl()
    assert before.returncode == 0 and "heartwheel-tasks" not in before.stdout + before.stderr, before
    assert "tasks" not in json.loads(ctl("--json").stdout)
    t.start()
    Node(t, "anna").send("pump-7", 0.5)
    wait_until(lambda: "by heartwheel-tasks" in ctl().stdout, what="it to show what was sent")
    wait_until(lambda: "1 sent, 0 failed" in ctl().stdout.split("by heartwheel-tasks")[1], what="it to have arrived")
    shown = ctl().stdout.split("by heartwheel-tasks")[1]
    assert "task 'set' from anna to pump-7: no device accepted it" in shown and "sent (status 200)" in shown, shown
    assert "secret" not in shown and json.loads(ctl("--json").stdout)["tasks"]["notifications"][0]["result"] == "sent"
    # It stands still: it is named, and heartwheeld's are shown.
    t.proc.send_signal(signal.SIGSTOP)
    longest = 0
    for args in ((), ("--json",)):
        begun = time.monotonic()
        still = ctl(*args)
        longest = max(longest, time.monotonic() - begun)
        assert still.returncode == 1 and "heartwheel-tasks does not answer" in still.stderr, still
        assert "webhook" in still.stdout and "anna" not in still.stdout, still.stdout
    t.proc.send_signal(signal.SIGCONT)
    wait_until(lambda: "by heartwheel-tasks" in ctl().stdout, what="it to go on")
    in_time(longest, 15, "heartwheelctl beside a heartwheel-tasks that stands still")


def reload_by(t, how):
    """(status, answer), or what the log says of it."""
    if how == "HTTP":
        a = t.request("POST", "/v1/reload")
        return a.status, a.json()
    n = len(t.log())
    t.proc.send_signal(signal.SIGHUP)
    return wait_until(lambda: [line for line in t.log()[n:].splitlines() if "reload" in line and (
        "refused" in line or "reloaded" in line)], what="the log to tell of the reload")


@pytest.mark.parametrize("how", ["HTTP", "SIGHUP"])
def test_a_reload_puts_notify_in_force(env, web, how):  # noqa: F811
    """From nobody to somebody, and on to somebody else; what was gathered meanwhile is not lost."""
    first, second = web(), web()
    t = Tasks(env, watch="yes").start()
    a, plain = Node(t, "a"), t.conf.read_text()
    wait_expired(t, a.send("b", 0.5))
    t.conf.write_text(plain + "\n[notify]\nwebhook = %s\nnotify_interval = 1h\n" % first.url)
    answer = reload_by(t, how)
    if how == "HTTP":
        assert answer == (200, {"changed": ["notify.webhook", "notify.notify_interval"], "restart_needed": []})
    gathered = a.send("b", 0.5)
    wait_until(lambda: t.metrics().get("task_watched_total", state="expired") == 2, what="it to be read")
    assert not first.messages()
    # What is gathered waits for the interval that was in force when it began; so another one is let go by a stop.
    t.conf.write_text(plain.replace("log_level = debug", "log_level = info")
                      + "\n[notify]\nwebhook = %s\nnotify_interval = 100ms\n" % second.url)
    answer = reload_by(t, how)
    if how == "HTTP":
        assert answer == (200, {"changed": ["notify.webhook", "notify.notify_interval"], "restart_needed": ["tasks.log_level"]})
        assert t.request("POST", "/v1/reload").json() == {"changed": [], "restart_needed": ["tasks.log_level"]}
    else:
        assert "tasks.log_level changed: restart needed" in t.log()
    assert t.get("/v1/tasks/notify").json()["channels"][0]["target"] == second.url.split("/hook")[0]
    t.stop()
    assert ends(second.messages()) == {gathered: [("expired", "exp")]} and not first.messages()


@pytest.mark.parametrize("how", ["HTTP", "SIGHUP"])
def test_a_reload_of_a_wrong_file_changes_nothing(env, web, how):  # noqa: F811
    server, other = web(), web()
    t = Tasks(env, watch="yes", notify={"webhook": server.url, "notify_interval": "100ms"}).start()
    right = t.conf.read_text()
    t.conf.write_text(right.replace(server.url, other.url) + "text = {nobody}\n")
    answer = reload_by(t, how)
    line = "%s:%d: key 'text': there is no field {nobody}" % (t.conf, right.count("\n") + 1)
    if how == "HTTP":
        assert answer[0] == 400 and "nothing was changed" in answer[1]["error"] and answer[1]["lines"][0].startswith(line), answer
    wait_until(lambda: line in t.log(), what="the log to say what is wrong")
    m = Node(t, "a").send("b", 0.5)
    wait_until(lambda: server.messages(), what="it to be told as before")
    assert ends(server.messages()) == {m: [("expired", "exp")]} and not other.messages()
    # The file is away: as wrong as any.
    t.conf.rename(str(t.conf) + ".away")
    reload_by(t, how)
    assert t.ready() and t.get("/v1/tasks/notify").json()["channels"][0]["target"] == server.url.split("/hook")[0]


def test_heartwheelctl_reloads_it(env):
    t = Tasks(env, watch="yes").start()
    t.conf.write_text(t.conf.read_text() + "\n[notify]\nexec = /nowhere/at-all\n")
    r = subprocess.run([str(HEARTWHEELCTL), "-s", str(t.socket), "reload"], capture_output=True, text=True, timeout=60)
    assert (r.returncode, r.stdout) == (0, "changed:\n  notify.exec\n"), r
    assert "[notify] exec = /nowhere/at-all cannot be run" in t.log()


@pytest.mark.parametrize("line,why", [
    ("text = {nobody}", "there is no field {nobody}"),
    ("webhook = ftp://x/y", "must be an http:// or https:// URL"),
    ("exec_template = mail", "needs mail_from"),
    ("notify_interval = 1ms", "notify_interval"),
    ("webhok = http://x/", "webhook")])
def test_a_wrong_section_is_told(env, line, why):
    t = Tasks(env, watch="yes")
    t.conf.write_text(t.conf.read_text() + "\n[notify]\n" + line + "\n")
    r = subprocess.run([str(HEARTWHEEL_TASKS), "-t", "-c", str(t.conf)], capture_output=True, text=True, timeout=60)
    assert r.returncode == 2 and why in r.stderr, r
