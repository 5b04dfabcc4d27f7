# SPDX-License-Identifier: MIT
"""heartwheelctl task."""
import json
import os
import re
import signal
import subprocess
import time

from hw_build import HEARTWHEELCTL
from hw_screen import Terminal
from hw_tasks import Device, Sender, Tasks
from hw_wait import in_time, now_ms, pass_time, wait_until
from test_tasks_watch import Node


def ctl(t, *args, conf=False):
    where = ("-c", str(t.conf)) if conf else ("-s", str(t.socket))
    return subprocess.run([str(HEARTWHEELCTL), *where, "task", *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def test_tasks_are_sent_listed_shown_cancelled_and_watched(env):
    t = Tasks(env).start()
    device = Device(t, "pump")
    Device(t, "bad", behave=("failed",))
    # The socket is looked up where the daemon has it from.
    done = ctl(t, "send", "pump", "set", '{"v": 2.50}', "--wait", "30s", "--json", "--id", "one", conf=True)
    assert done.returncode == 0, done
    task = json.loads(done.stdout)
    assert (task["state"], task["msg_id"], task["payload"]) == ("complete", "one", {"v": 2.5})
    watch = subprocess.Popen([str(HEARTWHEELCTL), "-s", str(t.socket), "task", "watch", "--receiver", "pump", "--state",
                              "complete", "--json"], stdout=subprocess.PIPE, text=True)
    wait_until(lambda: t.get("/v1/status").json()["event_clients"] == 1, what="watch to listen")
    plain = ctl(t, "send", "pump", "set", "--wait", "30s")
    assert plain.returncode == 0 and "complete" in plain.stdout and 'value     {"done":true}' in plain.stdout, plain
    event = json.loads(watch.stdout.readline())
    assert event["state"] == "complete" and event["task"] in plain.stdout
    watch.kill()
    watch.communicate()
    failed = ctl(t, "send", "bad", "set", "--wait", "30s")
    assert failed.returncode == 1 and "failed, device: the device reports a failure" in failed.stdout, failed
    before = now_ms()
    later = json.loads(ctl(t, "send", "pump", "set", "--after", "1h", "--exp", "5m", "--json").stdout)
    assert 3590_000 <= later["at_ms"] - before <= 3660_000 and 230_000 <= later["exp_ms"] - later["at_ms"] <= 301_000, later
    at = json.loads(ctl(t, "send", "pump", "set", "--at", "%d" % (before // 1000 + 7200), "--no-hold", "--json").stdout)
    assert at["at_ms"] == (before // 1000 + 7200) * 1000 and t.record(at["task"])["hold"] == "0"
    listed = ctl(t, "list", "--receiver", "pump")
    assert later["task"] in listed.stdout and "scheduled" in listed.stdout and "STATE" in listed.stdout, listed
    assert ctl(t, "list", "--names", "--limit", "1").stdout == later["task"] + "\n"
    assert [json.loads(x)["task"] for x in ctl(t, "list", "--state", "scheduled", "--json").stdout.splitlines()] == \
        [later["task"], at["task"]]
    assert "pump" in ctl(t, "show", at["task"]).stdout
    cancelled = ctl(t, "cancel", at["task"])
    assert cancelled.returncode == 0 and "was scheduled" in cancelled.stdout, cancelled
    again = ctl(t, "cancel", at["task"])
    assert again.returncode == 1 and "already ended: cancelled" in again.stderr, again
    for name in ("x", "status", "events", "../status", "01234567-89ab-4cde-8f01-23456789abcd", ""):
        for verb in ("show", "cancel"):
            unknown = ctl(t, verb, name)
            assert (unknown.returncode, unknown.stdout) == (1, "") and "no such task" in unknown.stderr, unknown
    status = ctl(t, "status")
    assert status.returncode == 0 and "Redis     up" in status.stdout and t.node in status.stdout, status
    assert len(device.done) == 2


def test_what_has_not_ended_in_time_goes_on(env):
    t = Tasks(env, watch="yes").start()
    Device(t, "slow", behave=("ack",))
    a = ctl(t, "send", "slow", "set", "--wait", "1s")
    task = a.stdout.split()[1]
    assert a.returncode == 1 and "state     acked\n" in a.stdout, a
    assert a.stderr == "heartwheelctl: the task has not ended within 1s and continues; see heartwheelctl task show %s\n" % task
    refused = ctl(t, "cancel", task)
    assert refused.returncode == 1 and "--force" in refused.stderr, refused
    assert ctl(t, "list", "--receiver", "typo").stdout == "no such task waits\n"
    Node(t, "anna").send("ben")
    others = wait_until(lambda: ctl(t, "list", "--watched", "--names").stdout.split(), what="anna's task to be seen")
    not_ours = ctl(t, "cancel", *others)
    assert not_ours.returncode == 1 and "between other clients" in not_ours.stderr, not_ours


def test_what_may_have_been_taken_can_be_sent_again(env):
    """Without an answer the result is unknown; heartwheelctl prints the msg_id that it made for the task, and with it a
    repetition is the same task."""
    env.own_redis()
    t = Tasks(env).start()
    device = Device(t, "pump")
    t.proc.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    a = ctl(t, "send", "pump", "set")
    took = time.monotonic() - begun
    t.proc.send_signal(signal.SIGCONT)
    assert a.returncode == 1 and "does not answer" in a.stderr, a
    msg_id = re.search(r"send it again with --id (ctl-[0-9a-f]+), and it remains one task", a.stderr).group(1)
    assert ctl(t, "send", "pump", "set", "--id", msg_id, "--wait", "30s").returncode == 0
    env.redis_server.proc.send_signal(signal.SIGSTOP)
    b = ctl(t, "send", "pump", "set")
    env.redis_server.proc.send_signal(signal.SIGCONT)
    msg_id = re.search(r"--id (ctl-[0-9a-f]+),", b.stderr).group(1)
    wait_until(t.ready, what="Redis to be back")
    assert ctl(t, "send", "pump", "set", "--id", msg_id, "--wait", "30s").returncode == 0
    t.stop()
    c = ctl(t, "send", "pump", "set")
    assert "is the daemon running?" in c.stderr and "--id" not in c.stderr, "it was not reached"
    assert len(device.done) == 2
    in_time(took, 40, "heartwheelctl before a heartwheel-tasks that stands still")


def test_status_tells_no_old_counts_as_new(env):
    """The tasks are counted when a client asks. Old counts are counted again first; while that is impossible, their age is
    shown."""
    env.own_redis()
    t = Tasks(env).start()
    alice = Sender(t)
    wait_until(lambda: t.get("/v1/status").json()["waiting"] == 0, what="it to have counted")
    alice.task(alice.submit("pump", after=3600))
    pass_time(65)  # for a minute after it was asked it counts
    alice.task(alice.submit("pump", after=3600))
    assert "waiting   2 scheduled, 0 held, 0 sent, 0 acked\n" in ctl(t, "status").stdout
    env.redis_server.proc.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: re.search(r"waiting   2 scheduled, 0 held, 0 sent, 0 acked; as counted \d+s ago\n", ctl(t, "status").stdout),
                   what="the age of the counts")
    finally:
        env.redis_server.proc.send_signal(signal.SIGCONT)


def test_what_is_wrong_is_said(env):
    t = Tasks(env)  # not running
    for args, why in ((("send", "pump"), "a receiver and an action"), (("send", "a", "b", "{"), "must be JSON"),
                      (("send", "a", "b", "--at", "x"), "--at must be a time"), (("send", "a", "b", "--after", "x"), "--after"),
                      (("send", "a", "b", "--at", "1", "--after", "1s"), "exclude"), (("list", "--force"), "unknown option '--force'"),
                      (("list", "--limit", "0"), "--limit"), (("show",), "which task"), (("x",), "unknown command"), (("stats",), "did you mean 'status'"),
                      (("watch", "--state", "complet"), "--state must be"), (("list", "--state", "held sent"), "--state must be"),
                      ((), "give a command"), (("list", "--nothing"), "unknown option")):
        a = ctl(t, *args)
        assert a.returncode == 2 and why in a.stderr, (args, a)
    a = ctl(t, "list", conf=True)
    assert a.returncode == 1 and "heartwheel-tasks" in a.stderr and str(t.socket) in a.stderr, a


def on_terminal(t, columns, *args):
    terminal = Terminal([str(HEARTWHEELCTL), "-s", str(t.socket), "task", *args], 40, columns, TERM="linux", LC_ALL="C.UTF-8")
    try:
        assert os.WEXITSTATUS(terminal.wait()) == 0
        return [line for line in terminal.lines if line]
    finally:
        terminal.close()


def test_a_list_on_a_narrow_terminal(env):
    """Each task stays one line; a name that has no room there gets its own line, in full."""
    t = Tasks(env).start()
    given = ctl(t, "send", "valve-3", "restart-with-a-long-name-of-an-action", "--after", "1h", "--json")
    task = json.loads(given.stdout)["task"]
    for columns, n in ((120, 2), (80, 2), (75, 3), (40, 3)):
        lines = on_terminal(t, columns, "list")
        assert len(lines) == n and all(len(line) <= columns for line in lines), lines
        assert any(task in line for line in lines) and lines[1].startswith("scheduled "), lines
        assert ("TRIES" in lines[0]) == (columns == 120) and "AT" in lines[0], lines
    assert lines[2].strip() == task


def test_a_receiver_that_is_no_text_is_refused(env):
    """Otherwise the task would be for another device, whose name has a replacement character."""
    t = Tasks(env).start()
    for args in ((b"pump\xff", "set"), ("pump", b"set\xff"), ("pump", "set", "1", "--id", b"one\xff")):
        a = ctl(t, "send", *args)
        assert a.returncode == 1 and "not UTF-8" in a.stderr, (args, a)
    assert not env.redis.keys(t.key("*-*-*"))
