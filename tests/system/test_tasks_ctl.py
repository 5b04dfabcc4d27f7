# SPDX-License-Identifier: MIT
"""heartwheelctl task."""
import json
import os
import subprocess

from hw_build import HEARTWHEELCTL
from hw_screen import Terminal
from hw_tasks import Device, Tasks
from hw_wait import now_ms, wait_until


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
    assert failed.returncode == 1 and "failed, device" in failed.stdout, failed
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
    assert again.returncode == 1 and "ended already" in again.stderr, again
    assert "no such task" in ctl(t, "show", "x").stderr
    status = ctl(t, "status")
    assert status.returncode == 0 and "Redis     up" in status.stdout and t.node in status.stdout, status
    assert len(device.done) == 2


def test_what_is_wrong_is_said(env):
    t = Tasks(env)  # not running
    for args, why in ((("send", "pump"), "a receiver and an action"), (("send", "a", "b", "{"), "not JSON"),
                      (("send", "a", "b", "--at", "x"), "--at is no time"), (("send", "a", "b", "--after", "x"), "--after"),
                      (("send", "a", "b", "--at", "1", "--after", "1s"), "exclude"), (("list", "--force"), "does not take"),
                      (("list", "--limit", "0"), "--limit"), (("show",), "which task"), (("x",), "unknown command"), (("stats",), "did you mean 'status'"),
                      ((), "which command"), (("list", "--nothing"), "unknown option")):
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
    """A line stays one; where a task's name has no room in it that has a line of its own, whole."""
    t = Tasks(env).start()
    given = ctl(t, "send", "valve-3", "restart-with-a-long-name-of-an-action", "--after", "1h", "--json")
    task = json.loads(given.stdout)["task"]
    for columns, n in ((120, 2), (80, 2), (75, 3), (40, 3)):
        lines = on_terminal(t, columns, "list")
        assert len(lines) == n and all(len(line) <= columns for line in lines), lines
        assert any(task in line for line in lines) and lines[1].startswith("scheduled "), lines
        assert ("TRIES" in lines[0]) == (columns == 120) and "AT" in lines[0], lines
    assert lines[2].strip() == task
