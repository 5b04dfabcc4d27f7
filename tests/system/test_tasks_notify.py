# SPDX-License-Identifier: MIT
"""Watched tasks that failed or expired: heartwheel-alert sends one notice for each."""
import signal
import time

import pytest

from hw_alert import Alert, Inbox, see
from hw_tasks import Sender, Tasks
from hw_wait import throughout, wait_until
from test_notify import web  # noqa: F401
from test_tasks_watch import Node, events, find, wait_for


def alerted(env, **more):
    """heartwheel-alert with a program, and the program's inbox."""
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver(**more)}).start()
    see(env)
    return a, inbox


def ends(inbox):
    """The sentences of all notices, sorted."""
    found = [n for m in inbox.messages() for n in m["news"]]
    assert all(n["incident"]["kind"] == "task" and n["what"] == "opened" for n in found), found
    return sorted(n["incident"]["sentence"] for n in found)


def untaken(n, receiver="b", within="1 s", sender="a"):
    return "task 'act %d' from %s to %s: no device accepted it within %s" % (n, sender, receiver, within)


def wait_expired(t, msg_id):
    wait_until(lambda: [e for e in events(t) if (e["msg_id"], e["state"]) == (msg_id, "expired")], what="%s to expire" % msg_id)


def test_each_failure_is_one_notice(env):
    alert, inbox = alerted(env)
    t = Tasks(env, watch="yes", run="1s").start()
    a, b = Node(t, "a"), Node(t, "b")
    a.send("b", 1, action="act 1")
    unfinished, broken = a.send("b", action="act 2"), a.send("b", action="blow up")
    done, late = a.send("b", action="act 3"), a.send("b", 1, action="act 4")
    b.say("a", "ack", unfinished)
    b.say("a", "failed", broken, error="broken")
    b.say("a", "complete", done)
    ours = Sender(t, "alice").submit("nobody", exp=time.time() + 1)  # its submitter gets to know it, and nobody else
    wait_expired(t, late)
    b.say("a", "failed", late)
    wait_until(lambda: [e for e in events(t) if (e["msg_id"], e["state"]) == (ours, "expired")], what="ours to expire")
    wait_until(lambda: [e for e in events(t) if e["why"] == "late"], what="the late answer to be noted")
    a.send("b", 1, action="act 5")
    expected = sorted([untaken(1), "task 'act 2' from a to b: accepted, but not finished within 1 s",
                       "task 'blow up' from a to b: b reports a failure", untaken(4), untaken(5)])
    wait_until(lambda: len(ends(inbox)) >= len(expected), what="each notice")
    heard = [e.split(" within ")[0] for e in ends(inbox)]  # waited_ms of an expired task is up to a second less
    assert heard == [e.split(" within ")[0] for e in expected], ends(inbox)
    throughout(lambda: len(ends(inbox)) == len(expected), 0.5)
    incident = [n["incident"] for m in inbox.messages() for n in m["news"] if "blow up" in n["incident"]["sentence"]][0]
    assert incident["device"] == "b" and alert.incidents() == [], "a notice is no open incident"
    # A restart repeats nothing.
    alert.stop()
    alert.start()
    a.send("b", 0.5, action="act 6")
    wait_until(lambda: [e for e in ends(inbox) if "'act 6'" in e], what="the next notice")
    assert len(ends(inbox)) == len(expected) + 1 and len(inbox.tries()) == len(inbox.messages())


def test_a_receiver_may_have_no_tasks(env):
    _, inbox = alerted(env, kinds="device mass blind")
    t = Tasks(env, watch="yes").start()
    wait_expired(t, Node(t, "a").send("b", 0.5))
    throughout(lambda: not inbox.messages(), 1)


def test_of_several_instances_one_notice(env):
    """Also if the broker or Redis goes away for a moment, and an instance restarts."""
    env.own_broker()
    env.own_redis()
    _, inbox = alerted(env)
    both = [Tasks(env, node="n%d" % i, watch="yes", instances="several").start() for i in (1, 2)]

    def send(n):
        a = Node(both[0], "a")
        for k in range(n, n + 20):
            a.send("b", 1, action="act %d" % k)
        wait_until(lambda: len(ends(inbox)) >= n + 20, 20, "a notice of each of %d" % (n + 20))
    send(0)
    env.broker.stop()
    env.broker.start()
    wait_until(lambda: all(t.ready() for t in both), what="both to be back")
    send(20)
    env.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wait_until(lambda: all(t.ready() for t in both), what="both to be back")
    both[0].stop()
    both[0].start()
    send(40)
    actions = sorted(e.split("'")[1] for e in ends(inbox))
    assert actions == sorted("act %d" % k for k in range(60)), "each once"


@pytest.mark.parametrize("how", ["stood still", "was started again"])
def test_what_was_answered_while_it_could_not_hear_is_no_end(env, how):
    """The answers wait for heartwheel-tasks, which reads them after their tasks' time is over: no notice of an answered task is
    sent."""
    _, inbox = alerted(env)
    t = Tasks(env, watch="yes").start()
    a, b = Node(t, "a"), Node(t, "b")
    exp = time.time() + 2
    sent = [a.send("b", exp=exp) for _ in range(20)]
    unanswered = a.send("b", exp=exp, action="unanswered")
    for m in sent + [unanswered]:
        wait_for(t, "a", m, "sent")
    t.proc.send_signal(signal.SIGSTOP) if how == "stood still" else t.stop()
    for m in sent:
        b.say("a", "complete", m)
    throughout(lambda: not inbox.messages(), exp + 2 - time.time())
    t.proc.send_signal(signal.SIGCONT) if how == "stood still" else t.start()
    wait_until(lambda: inbox.messages(), what="the notice of the one that no device took")
    assert [e.split(":")[0] for e in ends(inbox)] == ["task 'unanswered' from a to b"]
    assert all(find(t, "a", m)["state"] == "complete" for m in sent)


def test_names_that_would_deceive_stand_escaped(env, web):  # noqa: F811
    server = web()
    Alert(env, receivers={"chat": {"type": "webhook", "url": server.url, "template": "slack", "interval": "100ms"}}).start()
    see(env)
    t = Tasks(env, watch="yes").start()
    Node(t, "a").send("b", 0.5, action="<!channel> @everyone \u202ex")
    wait_until(lambda: server.messages(), what="the notice")
    text = server.messages()[0]["text"]
    assert "'&lt;!channel&gt; @\u200beveryone \\u202ex'" in text, text


def test_sighup_is_no_reload(env):
    t = Tasks(env, watch="yes").start()
    t.signal(signal.SIGHUP)
    wait_until(lambda: "SIGHUP ignored: settings of [tasks] change only at a restart" in t.log())
    assert t.ready() and t.request("POST", "/v1/reload").status == 404
