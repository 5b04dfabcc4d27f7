# SPDX-License-Identifier: MIT
"""The dashboard's page of notifications, in a real browser, with a real web server to be told. Needs what test_dashboard.py
needs."""
import signal

import pytest

from hw_browser import missing
from hw_env import NO_STALL, NO_STANDSTILL
from hw_wait import wait_until
from test_dashboard import say_nothing, start
from test_dashboard_device import axe_finds_nothing, page, visit
from hw_tasks import Tasks
from test_notify import script, web  # noqa: F401
from test_tasks_watch import Node

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def rows(b, card):
    return b.get('[...document.querySelectorAll(\'[aria-label="%s"] tbody tr\')].map((r) => [...r.children].slice(-3).map((c) => c.textContent))'
                 % card)


def trouble(b):
    return b.get('[...document.querySelectorAll("#page .trouble")].filter((e) => !e.hidden).map((e) => e.textContent).join("|")')


def link(b):
    return b.text('header nav a[href="#/notify"]')


def test_what_was_told_and_what_was_not(env, browser, web):
    server = web(500)
    d = start(env, timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)
    b = browser()
    b.open(d.url)
    b.run('await page.locator("nav a", { hasText: "Notifications" }).click()')
    wait_until(lambda: "No notification is sent when devices go offline" in page(b), what="the page to say how to be told")
    assert b.get("location.hash") == "#/notify" and "No message was sent" in page(b) and trouble(b) == ""
    axe_finds_nothing(b)
    path = script(env, "cat >/dev/null\n")
    d.rewrite(d.conf.read_text() + "\n[notify]\nexec = %s\nwebhook = %s\nwebhook_template = slack\nnotify_interval = 100ms\n"
              % (path, server.url))
    assert d.request("POST", "/v1/reload").status == 200
    env.beat("<b>\u202epump")
    what = "<b>\\u202epump of default is online"
    wait_until(lambda: ["exec", what, "sent"] in rows(b, "Notifications sent"), what="what was sent")
    assert "No notification is sent when" not in page(b)
    wait_until(lambda: "Notifications do not arrive through webhook: the last message to the web server did not arrive, the server answered with "
                       "status 500." in trouble(b), what="the failure, while it is tried again")
    wait_until(lambda: ["webhook", what, "failed after 3 tries: the server answered with status 500"] in rows(b, "Notifications sent"), 15)
    assert server.url.split("/hook")[0] in page(b) and "secret" not in page(b)
    axe_finds_nothing(b)
    visit(b, d, "#/")
    assert link(b) == "Notifications fail", "the way there says so on other pages"
    server.answers[:] = [200]
    assert d.ctl("notify", "--test", "webhook").returncode == 0
    wait_until(lambda: link(b) == "Notifications", 15, "the overview to hear that it is over")
    visit(b, d, "#/notify")
    wait_until(lambda: rows(b, "Notifications sent"), what="the list")
    assert trouble(b) == ""
    assert rows(b, "Channels") == [["1", "0", "0"], ["1", "1", "0"]]
    assert rows(b, "Notifications sent")[0][2] == "sent, status 200"
    say_nothing(b, ["503", "404"])


def test_what_heartwheel_tasks_told_stands_below(env, browser, web):
    """It is asked aside: one that does not run, or stands still, holds nothing up."""
    server = web()
    notify = "\n[notify]\nwebhook = %s\nnotify_interval = 100ms\nblind_notify_after = 0\n" % server.url
    t = Tasks(env, watch="yes")
    t.conf.write_text(t.conf.read_text() + notify)
    d = start(env, tasks={"socket": t.socket}, timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)
    d.rewrite(d.conf.read_text() + notify)
    assert d.request("POST", "/v1/reload").status == 200
    env.beat("pump-1")
    b = browser()
    b.open(d.url)
    visit(b, d, "#/notify")
    wait_until(lambda: rows(b, "Notifications sent"), what="the monitor's own")
    assert "heartwheel-tasks" not in page(b) and trouble(b) == "", "nobody who has none reads of it"
    t.start()
    server.answers[:] = [500]
    node = Node(t, "anna")
    node.send("pump-<b>7", 0.5)
    wait_until(lambda: "of tasks do not arrive through webhook: the last message to the web server did not arrive" in trouble(b), 40, "the failure")
    wait_until(lambda: rows(b, "By heartwheel-tasks")[1:] and rows(b, "By heartwheel-tasks")[1][2].startswith("failed after 3 tries"), 15)
    assert rows(b, "By heartwheel-tasks")[1][1].startswith("task 'set' from anna to pump-<b>7: no device accepted it within ")
    assert "pump-<b>7" not in "".join(r[1] for r in rows(b, "Notifications sent"))
    axe_finds_nothing(b)
    visit(b, d, "#/")
    assert link(b) == "Notifications fail"
    server.answers[:] = [200]
    node.send("pump-8", 0.5)
    wait_until(lambda: link(b) == "Notifications", 30, "the overview to hear that it is over")
    visit(b, d, "#/notify")
    wait_until(lambda: len(rows(b, "By heartwheel-tasks")) == 3, what="both")
    t.proc.send_signal(signal.SIGSTOP)
    wait_until(lambda: trouble(b) == "heartwheel-tasks does not answer: later messages are not shown.", what="it to be named")
    env.beat("pump-2")
    wait_until(lambda: "pump-2" in page(b), what="the monitor's own to go on")
    t.proc.send_signal(signal.SIGCONT)
    wait_until(lambda: trouble(b) == "", what="it to be back")
    say_nothing(b, ["503", "404"])


def test_heartwheel_tasks_away_behind_a_restart_of_the_monitor(env, browser, web):
    """The monitor says the same as before it was away; who is silent after that is heartwheel-tasks. Stopped, it is no trouble."""
    server = web(500)
    t = Tasks(env, watch="yes", notify={"webhook": server.url, "notify_interval": "100ms"}).start()
    d = start(env, tasks={"socket": t.socket}, timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)
    Node(t, "anna").send("pump-7", 0.5)
    b = browser()
    b.open(d.url)
    visit(b, d, "#/notify")
    failed = "Notifications of tasks do not arrive through webhook"
    wait_until(lambda: failed in trouble(b) and "failed after 3 tries" in page(b), 40, "the failure")
    d.stop()
    wait_until(lambda: b.text("#watching") == "No answer", 15, "the page to know")
    asked = 'state.requests.filter((r) => r.endsWith("notify")).length'
    n = b.run("return " + asked)
    wait_until(lambda: b.run("return " + asked) >= n + 4, what="both to have been asked in vain")
    assert failed in trouble(b)
    d.start()
    wait_until(lambda: b.text("#watching") != "No answer", 15, "the monitor to be back")
    t.proc.send_signal(signal.SIGSTOP)
    wait_until(lambda: trouble(b) == "heartwheel-tasks does not answer: later messages are not shown.", what="it to be named")
    axe_finds_nothing(b)
    t.proc.send_signal(signal.SIGCONT)
    wait_until(lambda: failed in trouble(b), what="it to be back")
    t.stop()
    wait_until(lambda: trouble(b) == "heartwheel-tasks is not running: what it sent before is shown.", what="it to be missed")
    assert link(b) == "Notifications" and b.get('document.querySelector("#page .old").getAttribute("aria-label")') == "By heartwheel-tasks"
    axe_finds_nothing(b)
    t.start()
    wait_until(lambda: trouble(b) == "" and "By heartwheel-tasks" not in page(b), 30, "the new one, which has told nothing")
    say_nothing(b, ["503", "404", "ERR_", "Failed to load", "net::"])


def test_that_nobody_is_told_stands_there_while_the_monitor_is_away(env, browser, web):
    server = web(500)
    d = start(env, timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL,
              notify={"webhook": server.url, "webhook_template": "slack", "notify_interval": "100ms", "blind_notify_after": "0"})
    env.beat("a")
    b = browser()
    b.open(d.url)
    visit(b, d, "#/notify")
    wait_until(lambda: "Notifications do not arrive through webhook" in trouble(b), what="the failure")
    d.stop()
    wait_until(lambda: b.text("#watching") == "No answer", 15, "the page to know")
    asked = 'state.requests.filter((r) => r.endsWith("v1/notify")).length'
    n = b.run("return " + asked)
    wait_until(lambda: b.run("return " + asked) >= n + 2, what="the page to have asked in vain")
    assert "Notifications do not arrive through webhook" in trouble(b) and link(b) == "Notifications fail"
    say_nothing(b, ["503", "404", "ERR_", "Failed to load", "net::"])


@pytest.mark.parametrize("width", [1440, 390])
def test_it_fits(env, browser, web, width):
    server = web()
    d = start(env, timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)
    notify = "\n[notify]\nwebhook = %s\nnotify_interval = 100ms\nblind_notify_after = 0\n" % server.url
    t = Tasks(env, watch="yes")
    t.conf.write_text(t.conf.read_text() + notify)
    t.start()
    d.rewrite(d.conf.read_text().replace("[redis]", "[tasks]\nsocket = %s\n[redis]" % t.socket, 1) + notify)
    d.stop()
    d.start()
    env.beat("hall-7.pump-" + "x" * 200)
    Node(t, "anna").send("pump-" + "y" * 200, 0.5)
    wait_until(lambda: len(server.requests) >= 2)
    b = browser(viewport={"width": width, "height": 900})
    b.open(d.url)
    visit(b, d, "#/notify")
    wait_until(lambda: rows(b, "Notifications sent") and rows(b, "By heartwheel-tasks"), what="the lists")
    assert b.get("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
