# SPDX-License-Identifier: MIT
"""The dashboard's page of tasks, in a real browser, through heartwheeld to a real heartwheel-tasks. Needs what test_dashboard.py
needs."""
import signal
import time

import pytest

from hw_browser import missing
from hw_tasks import Device, Sender, Tasks
from hw_wait import wait_until
from test_dashboard import say_nothing, start
from test_dashboard_device import axe_finds_nothing, page, says, visit
from test_tasks_watch import Node, wait_for

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def rows(b, card):
    return b.get('[...document.querySelectorAll(\'[aria-label="%s"] tbody tr\')].map((r) => [...r.children].slice(0, 3).map((c) => c.textContent))'
                 % card)


def test_what_waits_and_what_ended_badly(env, browser):
    tasks = Tasks(env)
    d = start(env, tasks={"socket": tasks.socket}, timeout="1h")
    b = browser()
    b.open(d.url)
    visit(b, d, "#/tasks")
    wait_until(lambda: "heartwheel-tasks" in page(b), what="the page to say that there is no heartwheel-tasks")
    assert "Looking" not in page(b) and not b.run('return await page.locator("#page .card:visible, #page .trouble:visible").count()')
    tasks.start()
    alice = Sender(tasks)
    Device(tasks, "pump-1", behave=("ack", "failed"))
    tasks.set_online("pump-2", False)
    alice.task(alice.submit("pump-2", "set"))
    alice.task(alice.submit("valve<b>3", "open", after=3600))
    wait_until(lambda: sorted(rows(b, "Waiting")) == [["pump-2", "set", "held"], ["valve<b>3", "open", "scheduled"]], what="two that wait")
    assert rows(b, "Failed in the last hour") == []
    waiting = dict(b.get('[...document.querySelectorAll("#page .facts dt")].map((e) => [e.textContent.split(" ")[0], e.nextSibling.textContent])'))
    assert (waiting["held"], waiting["scheduled"]) == ("1", "1"), "what the list says"
    assert alice.wait(alice.submit("pump-1", "set"), "failed")
    wait_until(lambda: [r[1:] for r in rows(b, "Failed in the last hour")] == [["pump-1", "failed"]], what="one that failed")
    b.run("await page.reload()")
    wait_until(lambda: [r[1:] for r in rows(b, "Failed in the last hour")] == [["pump-1", "failed"]], what="what ended before the page was there")
    axe_finds_nothing(b)
    b.run('await page.locator("#page select").selectOption("held")')
    wait_until(lambda: rows(b, "Waiting") == [["pump-2", "set", "held"]], what="what is held alone")
    assert b.get("location.hash") == "#/tasks?state=held"
    b.run('await page.locator("#page a", { hasText: "pump-2" }).click()')
    wait_until(lambda: b.get("location.hash") == "#/device/pump-2", what="the device's page")
    say_nothing(b, ["503", "404"])


def test_what_ended_badly_leaves_the_last_hour(env, browser):
    tasks = Tasks(env)
    d = start(env, tasks={"socket": tasks.socket}, timeout="1h")
    entered = {}

    def fail(receiver, ago_s):
        ms = entered[receiver] = int((time.time() - ago_s) * 1000)
        env.redis.xadd(tasks.key("events"), {"task": "01234567-89ab-4cde-8f01-23456789abcd", "receiver": receiver, "sender": "anna",
                                             "msg_id": receiver, "state": "failed", "why": "device", "time_ms": ms, "node": "n"}, "%d-0" % ms)

    def shown():
        return [r[1] for r in rows(b, "Failed in the last hour")]
    tasks.start()
    b = browser()
    b.open(d.url)
    fail("old", 3600 - 15)
    fail("young", 60)
    visit(b, d, "#/tasks")
    wait_until(lambda: shown() == ["young", "old"], what="both")
    wait_until(lambda: shown() == ["young"], what="the old one to leave")
    assert time.time() * 1000 > entered["old"] + 3600_000
    # A stream that ends, as at a restart, is begun again.
    tasks.stop()
    tasks.start()
    fail("new", 0)
    wait_until(lambda: shown() == ["new", "young"], what="what ends behind a restart")
    say_nothing(b, ["503", "404", "ERR_"])


def test_what_others_sent_one_another(env, browser):
    tasks = Tasks(env, watch="yes", run="30s").start()
    d = start(env, tasks={"socket": tasks.socket}, timeout="1h")
    b = browser()
    b.open(d.url)
    visit(b, d, "#/tasks")
    wait_until(lambda: "None." in page(b), what="the card of others' tasks")
    anna, ben = Node(tasks, "anna"), Node(tasks, "ben")
    first, second = anna.send("ben"), anna.send("carl")
    wait_for(tasks, "anna", second, "sent")
    ben.say("anna", "ack", first)
    wait_for(tasks, "anna", first, "acked")
    wait_until(lambda: sorted(rows(b, "Of others")) == [["ben", "set", "acked"], ["carl", "set", "sent"]], what="both of anna's tasks")
    assert rows(b, "Waiting") == []
    axe_finds_nothing(b)
    visit(b, d, "#/device/ben")
    wait_until(lambda: [r[:2] for r in rows(b, "Tasks")] == [["set", "acked"]], what="the device's page to show it")
    say_nothing(b, ["503", "404"])


def old_cards(b):
    return b.get('[...document.querySelectorAll("#page .old")].map((e) => e.getAttribute("aria-label"))')


def test_what_is_shown_while_heartwheel_tasks_is_away_is_old(env, browser):
    tasks = Tasks(env).start()
    d = start(env, tasks={"socket": tasks.socket}, timeout="1h")
    alice = Sender(tasks)
    Device(tasks, "pump-1", behave=("ack", "failed"))
    tasks.set_online("pump-2", False)
    alice.task(alice.submit("pump-2", "set"))
    b = browser()
    b.open(d.url)
    visit(b, d, "#/tasks")
    wait_until(lambda: rows(b, "Waiting") == [["pump-2", "set", "held"]], what="one that waits")
    tasks.stop()
    wait_until(lambda: "heartwheel-tasks is not running: this is the last answer." in page(b), what="the page to say so")
    assert old_cards(b) == ["How many", "Waiting", "Of others", "Failed in the last hour"]
    assert "No tasks" not in page(b) and rows(b, "Waiting") == [["pump-2", "set", "held"]]
    axe_finds_nothing(b)
    tasks.start()
    wait_until(lambda: old_cards(b) == [], what="the page to hear of tasks again")
    assert alice.wait(alice.submit("pump-1", "set"), "failed")
    wait_until(lambda: [r[1:] for r in rows(b, "Failed in the last hour")] == [["pump-1", "failed"]], what="what ends after that")
    d.stop()
    wait_until(lambda: "The monitor does not answer: this is the last answer." in page(b), what="the page to say what is old")
    assert len(old_cards(b)) == 4 and "Not known" not in page(b)
    say_nothing(b, ["503", "404", "ERR_", "Failed to load", "net::"])


def with_one_held(env):
    """heartwheel-tasks and a monitor, with a held task of a device that is offline."""
    tasks = Tasks(env).start()
    d = start(env, tasks={"socket": tasks.socket}, timeout="1h")
    says(env, d, env.topic("pump-2"), "pump-2", '{"online":false}', "offline")
    alice = Sender(tasks)
    alice.task(alice.submit("pump-2", "set"))
    return tasks, d


def test_who_stands_still_is_named(env, browser):
    """If the monitor answers, the page names heartwheel-tasks as the one that stands still; otherwise the monitor."""
    tasks, d = with_one_held(env)
    b, other = browser(), browser()
    for one, where in ((b, "#/tasks"), (other, "#/device/pump-2")):
        one.open(d.url)
        visit(one, d, where)
    wait_until(lambda: rows(b, "Waiting") and rows(other, "Tasks"), what="one that waits")
    tasks.proc.send_signal(signal.SIGSTOP)
    says(env, d, env.topic("pump-2"), "pump-2", "", "online")  # which makes the device's page look again
    silent = "heartwheel-tasks does not answer: this is the last answer."
    wait_until(lambda: silent in page(b) and silent in page(other), 60, "both pages to name it")
    assert len(old_cards(b)) == 4 and old_cards(other) == ["Tasks"] and "The monitor does not answer" not in page(b)
    axe_finds_nothing(b)
    b.run("await page.reload()")
    wait_until(lambda: "No tasks: heartwheel-tasks does not answer." in page(b), 60, "a page that is opened now to name it")
    assert "Not known" not in page(b) and "systemctl" not in page(b)
    tasks.proc.send_signal(signal.SIGCONT)
    wait_until(lambda: [r[:2] for r in rows(b, "Waiting")] == [["pump-2", "set"]] and old_cards(b) == [], 60, "tasks to be back")
    d.proc.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: "The monitor does not answer: this is the last answer." in page(b), 60, "the monitor to be named")
        assert "heartwheel-tasks does not answer" not in page(b)
    finally:
        d.proc.send_signal(signal.SIGCONT)
    wait_until(lambda: old_cards(b) == [], 60, "both to be back")
    say_nothing(b, ["503", "404", "ERR_"])


def test_the_tasks_of_a_device_come_back(env, browser):
    tasks, d = with_one_held(env)
    b = browser()
    b.open(d.url)
    visit(b, d, "#/device/pump-2")
    wait_until(lambda: [r[:2] for r in rows(b, "Tasks")] == [["set", "held"]], what="what waits for it")
    tasks.stop()
    says(env, d, env.topic("pump-2"), "pump-2", "", "online")  # which makes the page look again
    wait_until(lambda: "heartwheel-tasks is not running: this is the last answer." in page(b), what="the page to say so")
    assert old_cards(b) == ["Tasks"] and [r[:2] for r in rows(b, "Tasks")] == [["set", "held"]]
    tasks.start()
    says(env, d, env.topic("pump-2"), "pump-2", '{"online":false}', "offline")
    wait_until(lambda: old_cards(b) == [], what="the page to hear of tasks again")
    say_nothing(b, ["503", "404"])


def test_an_hour_later_it_did_not_end_in_the_last_hour(env, browser):
    tasks = Tasks(env).start()
    d = start(env, tasks={"socket": tasks.socket}, timeout="1h")
    alice = Sender(tasks)
    Device(tasks, "pump-1", behave=("ack", "failed"))
    assert alice.wait(alice.submit("pump-1", "set"), "failed")
    b = browser()
    b.open(d.url)
    # As if the monitor's clock went on: the page goes by that.
    b.run("""state.ahead = 0;
        await page.route("**/v1/overview", async (route) => {
            try {
                const response = await route.fetch(), all = await response.json();
                await route.fulfill({ response, json: { ...all, status: { ...all.status, now_ms: all.status.now_ms + state.ahead } } });
            } catch { } // it came to its end in between
        })""")
    visit(b, d, "#/tasks")
    wait_until(lambda: [r[1:] for r in rows(b, "Failed in the last hour")] == [["pump-1", "failed"]], what="one that failed")
    b.run("state.ahead = 3700000")
    wait_until(lambda: rows(b, "Failed in the last hour") == [], what="it to be too long ago")
    assert "None in the last hour." in page(b)
    say_nothing(b, ["503", "404"])


def test_without_redis_nobody_is_told_to_start_what_runs(env, browser):
    env.own_redis()
    tasks = Tasks(env).start()
    d = start(env, tasks={"socket": tasks.socket}, timeout="1h")
    env.redis_server.kill()
    b = browser()
    b.open(d.url)
    visit(b, d, "#/tasks")
    wait_until(lambda: "No tasks: cannot reach Redis" in page(b), what="the page to say why")
    assert "systemctl" not in page(b)
    say_nothing(b, ["503", "404"])
