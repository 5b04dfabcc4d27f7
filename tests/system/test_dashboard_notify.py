# SPDX-License-Identifier: MIT
"""The dashboard's page of notifications, in a real browser, with a real heartwheel-alert and a real web server. Needs what
test_dashboard.py needs."""
import signal

import pytest

from hw_alert import Alert, set_online
from hw_browser import missing
from hw_env import NO_STALL, NO_STANDSTILL
from hw_wait import wait_until
from test_dashboard import say_nothing, start
from test_dashboard_device import axe_finds_nothing, page, visit
from test_notify import script, web  # noqa: F401

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

NOT_RUNNING = "heartwheel-alert is not running: no notification is sent"


def rows(b, card):
    return b.get('[...document.querySelectorAll(\'[aria-label="%s"] tbody tr\')].map((r) => [...r.children].slice(-3).map((c) => c.textContent))'
                 % card)


def trouble(b):
    return b.get('[...document.querySelectorAll("#page .trouble")].filter((e) => !e.hidden).map((e) => e.textContent).join("|")')


def link(b):
    return b.text('header nav a[href="#/notify"]')


def monitored(env, a):
    env.check_events = False
    return start(env, alert={"socket": a.socket}, timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)


def test_what_was_sent_and_what_was_not(env, browser, web):  # noqa: F811
    server = web(404)
    a = Alert(env, notify={"exec": script(env, "cat >/dev/null\n"), "webhook": server.url, "webhook_template": "slack",
                           "notify_interval": "100ms"}).start()
    d, b = monitored(env, a), browser()
    b.open(d.url)
    b.run('await page.locator("nav a", { hasText: "Notifications" }).click()')
    wait_until(lambda: len(rows(b, "Receivers")) == 2, what="the receivers")
    assert b.get("location.hash") == "#/notify" and "No message was sent" in page(b) and trouble(b) == ""
    assert "No notification is sent when" not in page(b)
    axe_finds_nothing(b)
    set_online(env, "<b>\u202epump", False)
    wait_until(lambda: [r for r in rows(b, "Notifications sent") if r[0] == "exec" and r[2] == "sent"], what="what was sent")
    assert rows(b, "Notifications sent")[0][1].startswith("device <b>\\u202epump of group default is offline since"), rows(b, "Notifications sent")
    wait_until(lambda: trouble(b) == "Notifications do not arrive at receiver webhook: ok.", what="the failure")
    assert [r[2] for r in rows(b, "Notifications sent") if r[0] == "webhook"] == ["given up, status 404: ok"]
    assert server.url.split("/hook")[0] in page(b) and "secret" not in page(b)
    axe_finds_nothing(b)
    visit(b, d, "#/")
    assert link(b) == "Notifications fail", "the link says so on other pages"
    visit(b, d, "#/unreliable")
    b.run("await page.reload()")
    wait_until(lambda: link(b) == "Notifications fail", 30, "a page that is loaded again to know it")
    server.answers[:] = [200]
    assert d.ctl("notify", "--test", "webhook").returncode == 0
    wait_until(lambda: link(b) == "Notifications", 30, "the overview to know that it is over")
    visit(b, d, "#/notify")
    wait_until(lambda: rows(b, "Notifications sent"), what="the list")
    assert trouble(b) == "" and rows(b, "Receivers") == [["1", "0", "0"], ["0", "1", "0"]], rows(b, "Receivers")
    assert rows(b, "Notifications sent")[0][2] == "sent, status 200"
    say_nothing(b, ["503", "404"])


def test_heartwheel_alert_is_away(env, browser, web):  # noqa: F811
    """The page says that heartwheel-alert is away and shows what it knows; the monitor's own pages go on."""
    a = Alert(env, notify={"webhook": web().url, "notify_interval": "100ms"})
    d, b = monitored(env, a), browser()
    b.open(d.url)
    visit(b, d, "#/notify")
    wait_until(lambda: trouble(b) == NOT_RUNNING + ".", what="that it does not run")
    assert "Add lines to monitor.conf" in page(b) and link(b) == "Notifications"
    axe_finds_nothing(b)
    a.start()
    wait_until(lambda: rows(b, "Receivers"), 30, "the receivers")
    assert trouble(b) == "" and "Add lines to monitor.conf" not in page(b)
    set_online(env, "pump-7", False)
    wait_until(lambda: rows(b, "Notifications sent"), what="the message")
    a.signal(signal.SIGSTOP)
    wait_until(lambda: trouble(b) == "heartwheel-alert does not answer: later messages are not shown.", what="that it stands still")
    a.signal(signal.SIGCONT)
    wait_until(lambda: trouble(b) == "", what="its answers")
    a.stop()
    wait_until(lambda: trouble(b) == NOT_RUNNING + ", and earlier ones are shown.", what="that it has stopped")
    assert len(rows(b, "Notifications sent")) == 1 and b.get('document.querySelector("#page .old").getAttribute("aria-label")') == "Notifications sent"
    axe_finds_nothing(b)
    say_nothing(b, ["503", "404", "ERR_INCOMPLETE"])


def test_a_failure_is_shown_while_the_monitor_is_away(env, browser, web):  # noqa: F811
    a = Alert(env, notify={"webhook": web(500).url, "webhook_template": "slack", "notify_interval": "100ms"}).start()
    d, b = monitored(env, a), browser()
    set_online(env, "a", False)
    b.open(d.url)
    visit(b, d, "#/notify")
    wait_until(lambda: "Notifications do not arrive at receiver webhook" in trouble(b), what="the failure")
    d.stop()
    wait_until(lambda: b.text("#watching") == "No answer", 15, "the page to know")
    asked = 'state.requests.filter((r) => r.endsWith("v1/receivers")).length'
    n = b.run("return " + asked)
    wait_until(lambda: b.run("return " + asked) >= n + 2, what="the page to have asked in vain")
    assert "Notifications do not arrive at receiver webhook" in trouble(b) and link(b) == "Notifications fail"
    say_nothing(b, ["503", "404", "ERR_", "Failed to load", "net::"])


@pytest.mark.parametrize("width", [1440, 390])
def test_it_fits(env, browser, web, width):  # noqa: F811
    server = web()
    a = Alert(env, notify={"webhook": server.url, "notify_interval": "100ms"}).start()
    d, b = monitored(env, a), browser(viewport={"width": width, "height": 900})
    set_online(env, "hall-7.pump-" + "x" * 200, False)
    wait_until(lambda: server.requests)
    b.open(d.url)
    visit(b, d, "#/notify")
    wait_until(lambda: rows(b, "Notifications sent"), what="the list")
    assert b.get("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
