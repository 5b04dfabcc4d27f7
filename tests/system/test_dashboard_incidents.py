# SPDX-License-Identifier: MIT
"""The dashboard's open incidents, in a real browser, through heartwheeld to a real heartwheel-alert. Needs what test_dashboard.py
needs."""
import json

import pytest

from hw_alert import Alert, Inbox
from hw_browser import missing
from hw_wait import throughout, wait_until
from test_dashboard import say_nothing, start
from test_dashboard_device import axe_finds_nothing, page, visit
from test_inventory import NDJSON, put
from test_parents import gateway, groups, valve
from test_users import line

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
UNTIL_OFFLINE = 30


def fleet(env, users=True, timeout="1500ms", **alert):
    """heartwheeld with an address, and a heartwheel-alert that is not started yet."""
    env.check_events = False
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()}, **{"mass": 0, "flap_start": 0, **alert})
    path = env.own_dir("users") / "users"
    path.write_text(line("otto", "operate", "tok-otto") + line("rita", "read", "tok-rita"))
    d = start(env, groups=groups(env, gateway=timeout, valve="1s"), alert={"socket": a.socket})
    if users:
        d.stop()
        d.edit("listen = ", "users = %s\nlisten = " % path)
        d.start()
    return d, a, inbox


def sign_in(b, token):
    b.run('await page.addInitScript((t) => sessionStorage.setItem("heartwheel-token", t), %s)' % json.dumps(token))


def report(env, d, gw, *valves):
    gateway(env, "gateway-" + gw)
    for v in valves:
        valve(env, gw, v)
    wait_until(lambda: all(d.state(x) == "online" for x in ("gateway-" + gw, *valves)))


def sentences(b):
    return b.get('[...document.querySelectorAll("#incident-list > li .line .link")].map((e) => e.textContent)')


def badges(b):
    return b.get('[...document.querySelectorAll("#incident-list > li")].map((l) => [...l.querySelectorAll(".badge")].map((e) => e.textContent))')


def quiet(b):
    return b.get('[...document.querySelectorAll("#incident-list > li")].map((l) => l.classList.contains("quiet"))')


def press(b, name):
    b.run('await page.locator("#incidents").getByRole("button", { name: %s, exact: true }).filter({ visible: true }).first().click()' % json.dumps(name))


def note(b):
    return b.text("#incidents-note")


def test_a_gateway_with_its_devices(env, browser):
    """The gateway and its devices are one incident with one sentence. It can be acknowledged and silenced here; then it is
    grey, but never hidden."""
    d, a, inbox = fleet(env)
    b = browser()
    sign_in(b, "tok-otto")
    b.open(d.url)
    wait_until(lambda: note(b) == "heartwheel-alert is not running.")
    say_nothing(b)
    a.start()
    wait_until(lambda: note(b) == "None.", what="heartwheel-alert to be asked")
    report(env, d, "a", "v1", "v2", "v3")
    wait_until(lambda: sentences(b) and "3 devices behind it are unreachable" in sentences(b)[0], UNTIL_OFFLINE)
    inbox.wait(("opened", "gateway-a"))
    assert sentences(b) == [a.incidents()[0]["sentence"]] and sentences(b)[0].startswith("gateway gateway-a is offline since ")
    assert badges(b) == [["new"]] and quiet(b) == [False]
    b.run('await page.locator("#incident-list .link").first().click()')
    wait_until(lambda: b.get('[...document.querySelectorAll("#incident-list .inside > .tree > li > a")].map((e) => e.textContent)') == ["gateway-a"])
    assert b.get('[...document.querySelectorAll("#incident-list .tree .tree a")].map((e) => e.textContent)') == ["v1", "v2", "v3"]
    wait_until(lambda: "opened to ops at " in b.text("#incident-list .inside"))
    axe_finds_nothing(b)
    press(b, "Acknowledge")
    b.run('await page.getByLabel("Note").fill("on <b>my</b> way"); await page.keyboard.press("Enter")')
    wait_until(lambda: badges(b) == [["new", "acknowledged by otto: on <b>my</b> way"]] and quiet(b) == [True])
    assert (a.incidents()[0]["by"], a.incidents()[0]["note"]) == ("otto", "on <b>my</b> way")
    axe_finds_nothing(b)
    press(b, "Take back")
    wait_until(lambda: quiet(b) == [False])
    press(b, "Silence")
    b.run('await page.locator("#incidents form select").selectOption("until it is online"); await page.getByLabel("Reason").fill("new mast");'
          'await page.keyboard.press("Enter")')
    wait_until(lambda: badges(b) == [["new", "silenced"]] and quiet(b) == [True])
    silence, = a.json("/v1/silences")["silences"]
    assert (silence["match"], silence["until_online"], silence["reason"], silence["by"]) == ("id:gateway-a", True, "new mast", "otto")
    assert b.text("#silences summary") == "1 silence" and b.text("#silences li").startswith("id:gateway-a, until the devices are online, by otto: new mast")
    b.run('await page.locator("#silences summary").click()')
    press(b, "End")
    wait_until(lambda: quiet(b) == [False] and not b.run('return await page.locator("#silences").isVisible()'))

    def is_over():
        report(env, d, "a", "v1", "v2", "v3")
        return sentences(b) == []
    wait_until(is_over, what="the incident to be over")
    say_nothing(b)


def test_a_name_is_a_text(env, browser):
    """The sentence and the device have the name from the inventory, whatever characters it has."""
    d, a, _ = fleet(env)
    a.start()
    name = '<b>Mast</b> & <img src="x" onerror="document.title = 1">'
    assert put(d, json.dumps({"id": "gateway-a", "name": name}), kind=NDJSON).status == 200
    b = browser()
    sign_in(b, "tok-otto")
    b.open(d.url)
    report(env, d, "a", "v1")
    wait_until(lambda: sentences(b) and "1 device behind it is unreachable" in sentences(b)[0], UNTIL_OFFLINE)
    assert sentences(b)[0].startswith("gateway %s (gateway-a) is offline since " % name)
    b.run('await page.locator("#incident-list .link").first().click()')
    wait_until(lambda: b.get('[...document.querySelectorAll("#incident-list .tree a")].map((e) => e.textContent)') == [name + " (gateway-a)", "v1"])
    assert b.get('document.querySelectorAll("#incident-list b, #incident-list img").length') == 0
    axe_finds_nothing(b)
    say_nothing(b)


def test_who_may_only_read(env, browser):
    """With the role `read`, or at an address without users, there is no button, and the page says what to do instead."""
    d, a, _ = fleet(env)
    a.start()
    report(env, d, "a")
    b = browser()
    sign_in(b, "tok-rita")
    b.open(d.url)
    wait_until(lambda: len(sentences(b)) == 1, UNTIL_OFFLINE)
    assert b.run('return await page.locator("#incidents button:visible").count()') == 1
    b.run('await page.locator("#incident-list .link").click()')
    wait_until(lambda: "heartwheelctl ack " + a.incidents()[0]["id"] in b.text("#incident-list .inside"))
    assert d.get("/v1/overview").json()["may_write"] is True  # the socket
    say_nothing(b)
    d.edit("users = ", "; users = ")
    d.stop()
    d.start()
    c = browser()
    c.open(d.url)
    wait_until(lambda: len(sentences(c)) == 1, UNTIL_OFFLINE)
    assert c.run('return await page.locator("#incidents button:visible").count()') == 1


def test_what_is_new_since_the_last_look(env, browser):
    d, a, _ = fleet(env, users=False)
    a.start()
    report(env, d, "a")
    b = browser()
    wait_until(lambda: len(a.incidents()) == 1, UNTIL_OFFLINE)
    b.open(d.url)
    wait_until(lambda: len(sentences(b)) == 1)
    assert badges(b) == [[]], "all would be new at a first look"
    b.run('await page.goto("about:blank")')
    report(env, d, "b")
    wait_until(lambda: len(a.incidents()) == 2, UNTIL_OFFLINE)
    b.open(d.url)
    wait_until(lambda: len(sentences(b)) == 2)
    assert badges(b) == [["new"], []] and "gateway-b" in sentences(b)[0]
    b.run("await page.reload()")
    wait_until(lambda: len(sentences(b)) == 2)
    assert badges(b) == [[], []], "the viewer has seen both"
    say_nothing(b)


def test_heartwheel_alert_is_away(env, browser):
    """One line says that heartwheel-alert is away; the incidents that were known stay, and the rest of the page works as
    usual."""
    d, a, _ = fleet(env, users=False)
    a.start()
    report(env, d, "a")
    b = browser()
    b.open(d.url)
    wait_until(lambda: len(sentences(b)) == 1, UNTIL_OFFLINE)
    a.kill()
    wait_until(lambda: note(b).startswith("As of ") and "heartwheel-alert" in note(b), 30)
    assert b.get('document.getElementById("incidents").classList.contains("old")') and len(sentences(b)) == 1
    report(env, d, "b")
    wait_until(lambda: "gateway-b" in b.rows(), UNTIL_OFFLINE, "the table to go on")
    a.start()
    wait_until(lambda: note(b) == "" and len(sentences(b)) == 2, 30)
    assert not b.get('document.getElementById("incidents").classList.contains("old")')
    a.stop()
    wait_until(lambda: note(b).startswith("As of ") and note(b).endswith(": heartwheel-alert is not running."), 30)


def test_blindness_is_not_grey(env, browser):
    """While the monitor is blind, what it knew of the devices is grey. The incident of the blindness itself is not: it is new."""
    env.own_broker()
    d, a, _ = fleet(env, users=False, blind_after="1s")
    a.start()
    report(env, d, "a")
    b = browser()
    b.open(d.url)
    wait_until(lambda: len(sentences(b)) == 1, UNTIL_OFFLINE)
    env.broker.stop()
    wait_until(lambda: len(sentences(b)) == 2 and sentences(b)[0].startswith("no monitor has received the fleet's messages since "), 30)
    weights = '[...document.querySelectorAll("#incident-list > li .line .link")].map((e) => getComputedStyle(e).fontWeight)'
    wait_until(lambda: b.get('document.body.classList.contains("dim")'))
    assert b.get(weights)[1:] == ["400"] and b.get(weights)[0] != "400", b.get(weights)


def test_a_device_shows_its_parent_and_its_children(env, browser):
    d, _, _ = fleet(env, users=False, timeout="1h")
    report(env, d, "a", "v1", "v2")
    wait_until(lambda: d.state("v1") == "offline", UNTIL_OFFLINE)
    b = browser()
    b.open(d.url)
    visit(b, d, "#/device/v1")
    wait_until(lambda: "Parents: gateway-a (online)" in page(b))
    b.run('await page.locator("#page .family a").first().click()')
    wait_until(lambda: b.get("location.hash") == "#/device/gateway-a")
    wait_until(lambda: "2 devices are behind it: v1 (offline), v2 (offline)" in page(b))
    throughout(lambda: "Parents:" not in page(b), 0.5)
