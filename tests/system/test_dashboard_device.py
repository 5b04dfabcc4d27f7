# SPDX-License-Identifier: MIT
"""The dashboard's pages of a device, of a group and of the unreliable devices, in a real browser. Needs what test_dashboard.py
needs; if axe-core is installed next to playwright-core, the pages are also checked with it."""
import json
import signal
from pathlib import Path
from time import sleep

import pytest

from hw_browser import MODULES, missing
from hw_history import BUILT, History, Sqlite, wait_read
from hw_past import PUMP, start_with_past
from hw_wait import NotWithin, now_ms, wait_until, wait_within
from test_dashboard import say_nothing, start

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
needs_history = pytest.mark.skipif(not BUILT, reason="heartwheel-history is not built: SQLite is missing")
QUIET = ["503", "404"]  # of heartwheel-tasks, which is not there, and of devices that are not known
AXE = Path(MODULES) / "node_modules" / "axe-core" / "axe.min.js"


def visit(b, d, route):
    b.run("await page.goto(%s)" % json.dumps(d.url + route))


def page(b):
    return b.text("#page")


def axe_finds_nothing(b):
    """axe finds no fault. The page's policy admits no foreign script, so axe is loaded through the debugger."""
    if AXE.exists():
        b.run("await page.evaluate(%s)" % json.dumps(AXE.read_text()))
        found = b.run("return (await page.evaluate(() => axe.run())).violations.map((v) => [v.id, v.nodes.map((n) => n.html)])")
        assert found == [], found


def says(env, d, topic, device, payload, state):
    """Repeats the device's message until it takes effect: a goodbye does not count if the monitor just stood still, as on a
    busy machine."""
    def believed():
        env.publisher.publish(topic, payload)
        try:
            return wait_within(lambda: d.state(device) == state, 3)
        except NotWithin:
            return False
    wait_until(believed, what="%s to be %s" % (device, state))


def heights(b, strip):
    """The heights of each bar's parts, from the top."""
    return b.get('[...document.querySelectorAll(".bars")[%d]?.children ?? []].map((c) => [...c.children].map((p) => p.className))' % strip)


@needs_history
def test_a_device_with_a_past(env, browser):
    d = start_with_past(env)
    b = browser(timezoneId="Europe/Berlin")
    b.open(d.url)
    b.run('await page.locator("#state").selectOption("online"); await page.locator("#space .row", { hasText: "pump-7" }).click()')
    wait_until(lambda: len(heights(b, 0)) == 96 and len(heights(b, 1)) == 90, what="the bars")
    assert b.get("location.hash") == "#/device/hall%202%2Fpump-7" and b.text(".about h2") == PUMP
    assert "Europe/Berlin" in page(b)
    day, quarter = heights(b, 0), heights(b, 1)
    assert sum("down" in c for c in day) == 3 and 4 <= sum("unseen" in c for c in day) <= 7
    assert quarter[:48] == [["none"]] * 48 and quarter[52:60] == [["up"]] * 8 and sum("down" in c for c in quarter) in (2, 3)
    outage = "".join(b.get('[...document.querySelectorAll(".bars")[1].parentNode.querySelectorAll(".words li")].map((w) => w.textContent)'))
    assert sum("planned" in c for c in quarter) in (1, 2) and not any("planned" in c for c in day) and "planned" in outage, (quarter, outage)
    # What the bars say is there in words.
    label = b.get('document.querySelectorAll(".bars")[0].getAttribute("aria-label")')
    assert "3 outages, down 3 m" in label and "seen 95." in label
    assert "down 1 m, 1 outage" in b.get('document.querySelector(".words").textContent')
    b.run('await page.locator(".bars").first().hover({ position: { x: 3, y: 9 } })')
    wait_until(lambda: b.text(".bar-note >> nth=0").endswith(": up"))
    rows = b.get('[...document.querySelectorAll("#page tbody tr")].map((r) => r.children[2].textContent)')
    assert rows == ["1 m", "1 m", "1 m", "2 h"]
    assert b.run("return await page.title()").endswith(PUMP + " · heartwheel")
    assert not b.run('return await page.getByRole("region", { name: "Tasks" }).count()'), "nobody answers for tasks"
    # It changes by itself: the monitor's word at once, and what the history makes of it.
    b.run("page.evaluate(() => { window.untouched = true; })")
    says(env, d, "%s/p/%s" % (env.root, PUMP), PUMP, '{"online":false,"battery":51}', "offline")
    wait_until(lambda: b.text(".about .pill") == "offline" and "Battery\n51 %" in page(b))
    lasts = wait_until(lambda: b.get('document.querySelector("#page tr.lasts")?.textContent'))
    assert "said goodbye" in lasts
    assert b.get('document.querySelectorAll("#page .lately li")[0].textContent').endswith("offlinesaid goodbye")
    wait_until(lambda: "4 outages" in b.get('document.querySelectorAll(".bars")[0].getAttribute("aria-label")'))
    env.publisher.publish("%s/p/%s" % (env.root, PUMP), "")
    wait_until(lambda: b.text(".about .pill") == "online" and b.get('document.querySelector("#page tr.lasts")') is None)
    axe_finds_nothing(b)
    b.run("await page.goBack()")  # to the table, as it was
    wait_until(lambda: b.run('return await page.locator("#grid").isVisible()'))
    assert b.get("window.untouched") is True
    say_nothing(b, also=QUIET)


@needs_history
def test_groups_and_who_is_unreliable(env, browser):
    d = start_with_past(env)
    b = browser()
    visit(b, d, "#/unreliable")
    wait_until(lambda: "together" in page(b))
    tables = b.get('[...document.querySelectorAll("#page table")].map((t) => [...t.tBodies[0].rows].map((r) => [0, 1, 2].map((i) =>'
                   ' r.cells[i].textContent)))')
    assert tables[0] == [["flappy", "60", "4 h 55 m"], [PUMP, "3", "3 m"]]
    assert [r[0] for r in tables[1]] == ["fan-3", "flappy", PUMP]
    axe_finds_nothing(b)
    b.run('await page.getByRole("link", { name: "pumps" }).first().click()')
    wait_until(lambda: b.text(".about h2") == "Group pumps" and "Months are in UTC" in page(b))
    assert "2 online, 0 offline, timeout 1 h" in page(b)
    month = d.history.get("/v1/history/uptime?group=pumps").json()["all"]
    first = b.get('[...document.querySelector("#page tbody").rows[0].cells].map((c) => c.textContent)')
    assert first[1] == "%.2f %%" % (int(month["uptime"] * 10000) / 100) and int(first[2]) == month["outages"] and "" not in first
    b.run('await page.getByRole("link", { name: "flappy" }).click()')
    wait_until(lambda: b.text(".about h2") == "flappy" and len(heights(b, 1)) == 90)
    shown = 'document.querySelectorAll("#page .lately li").length'
    assert b.get(shown) == 10
    b.run('await page.getByRole("region", { name: "Transitions" }).getByRole("button").click()')
    wait_until(lambda: b.get(shown) == 110)
    b.run('await page.getByRole("region", { name: "Transitions" }).getByRole("button").click()')
    wait_until(lambda: b.get(shown) == 121)  # the history's second page
    visit(b, d, "#/device/old")
    wait_until(lambda: b.text(".about .pill") == "forgotten" and "heartwheel-history does" in page(b))
    visit(b, d, "#/device/none")
    wait_until(lambda: b.text(".about .pill") == "not known" and "has nothing about this device" in page(b))
    axe_finds_nothing(b)
    say_nothing(b, also=QUIET)


@needs_history
def test_groups_and_who_is_unreliable_change_by_themselves(env, browser):
    d = start_with_past(env)
    first = '[...document.querySelector("#page tbody").rows[0].cells].map((c) => c.textContent)'
    b, c = browser(), browser()
    for one, route, sign in ((b, "#/group/pumps", "Months are in UTC"), (c, "#/unreliable", "together")):
        one.run("await page.clock.install()")
        visit(one, d, route)
        wait_until(lambda: sign in page(one), what="the page to be filled")
    assert "2 online, 0 offline" in page(b)
    months = b.get('document.querySelector("#page tbody").rows.length')
    times = int(b.get(first)[2])
    assert c.get(first)[:2] == ["flappy", "60"]
    says(env, d, env.root + "/p/flappy", "flappy", '{"online":false}', "offline")
    wait_read(d.history, env)
    b.run("await page.clock.fastForward(4000)")
    wait_until(lambda: "1 online, 1 offline" in page(b), what="the group's counts")
    for one in (b, c):
        one.run("await page.clock.fastForward(61000)")
    wait_until(lambda: int(b.get(first)[2]) == times + 1, what="this month's outages")
    assert b.get('document.querySelector("#page tbody").rows.length') == months
    wait_until(lambda: c.get(first)[:2] == ["flappy", "61"], what="this week's outages")
    d.history.stop()
    for one in (b, c):
        one.run("await page.clock.fastForward(61000)")
        wait_until(lambda: "No history: heartwheel-history is not running" in page(one), what="the page to say so")
        assert not one.run('return await page.locator("#page table:visible").count()'), "what is said not to be there"
    d.history.start()
    for one in (b, c):
        one.run("await page.clock.fastForward(4000)")
        wait_until(lambda: "No history" not in page(one) and one.run('return await page.locator("#page table:visible").count()'), what="it to be there again")
    say_nothing(b, also=QUIET)
    say_nothing(c, also=QUIET)


@needs_history
def test_a_history_that_stands_still_is_named(env, browser):
    """heartwheel-history stands still: the page names it, and does not say that the monitor does not answer."""
    d = start_with_past(env)
    d.history.proc.send_signal(signal.SIGSTOP)
    pages = [(browser(), "#/group/pumps"), (browser(), "#/unreliable"), (browser(), "#/device/flappy")]
    for b, route in pages:
        visit(b, d, route)
    for b, route in pages:
        wait_until(lambda: "No history: heartwheel-history does not answer." in page(b), 60, "the page to name it")
        assert "Not known while" not in page(b) and "systemctl" not in page(b)
    d.history.proc.send_signal(signal.SIGCONT)
    for b, route in pages:
        wait_until(lambda: "No history" not in page(b), 60, "it to be there again")
        say_nothing(b, also=QUIET)


@needs_history
def test_a_history_of_nobody(env, browser):
    env.own_redis()
    history = History(env, Sqlite(env.own_dir("db"))).start()
    d = start(env, history={"socket": history.socket}, timeout="1h")
    b = browser()
    visit(b, d, "#/unreliable")
    wait_until(lambda: "heartwheel-history has no device yet." in page(b), what="the page to say so")
    assert "\u2013" not in page(b)
    say_nothing(b, also=QUIET)


def test_without_a_history_and_with_any_id(env, browser):
    d = start(env, groups=[("any", {"heartbeat": env.root + "/{id...}", "timeout": "1h"})])
    odd = "a b/\u202e%41?x=1&y#z/\u00fc<b>"
    topic = "%s/%s" % (env.root, odd.replace("#", "*"))
    odd = odd.replace("#", "*")  # no topic may have it
    for payload in ("", '{"online":false}', '{"data":{"on":true}}', '{"online":false,"version":"\u202ev1"}'):
        says(env, d, topic, odd, payload, "offline" if "false" in payload else "online")
    b = browser(viewport={"width": 390, "height": 800}, colorScheme="dark")
    b.open(d.url)
    b.run('await page.locator("#space .row").first().click()')
    wait_until(lambda: "No history: heartwheel-history is not running" in page(b))
    address = b.get("location.href")
    assert b.text(".about h2") == odd.replace("\u202e", "\\u202e") and "\u202e" not in page(b)
    states = b.get('[...document.querySelectorAll("#page .lately .state")].map((s) => s.textContent)')
    assert states == ["offline", "online", "offline", "online"]
    assert b.get('document.querySelectorAll("#page tbody tr").length') == 2, "outages, as the transitions tell"
    assert b.get('document.documentElement.scrollWidth') <= 390
    axe_finds_nothing(b)
    # The address can be sent; and it is shown live where there was nothing.
    c = browser()
    c.run("await page.goto(%s)" % json.dumps(address))
    wait_until(lambda: c.text(".about .pill") == "offline")
    d.forget(odd)
    wait_until(lambda: c.text(".about .pill") == "forgotten")
    env.publisher.publish(topic, "")
    wait_until(lambda: c.text(".about .pill") == "online")
    for route in ("#/unreliable", "#/group/any", "#/group/none"):
        visit(c, d, route)
        wait_until(lambda: "No history" in page(c))
    say_nothing(b, also=QUIET)
    say_nothing(c, also=QUIET)


def test_tasks(env, browser):
    """The page of tasks, with an answer as heartwheel-tasks gives it."""
    d = start(env, timeout="1h")
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    b = browser()
    b.run("""await page.route("**/v1/tasks?receiver=a&limit=*", (route) => route.fulfill({ json: { tasks: route.request().url().includes("watched=1") ? [
        { task: "z", state: "acked", receiver: "a", action: "open", sender: "anna", sent_ms: 1795439926400, watched: true }] : [
        { task: "x", state: "waiting", receiver: "a", action: "set\\u202e", sender: "user:otto", created_ms: 1, at_ms: 1795439926400 },
        { task: "y", state: "sent", receiver: "a", topic: "a/cmd", sender: "local", created_ms: 1795439926400 }] } }))""")
    visit(b, d, "#/device/a")
    wait_until(lambda: b.run('return await page.getByRole("region", { name: "Tasks" }).count()'))
    rows = b.get('[...document.querySelectorAll("section[aria-label=Tasks] tbody tr")].map((r) => [...r.cells].map((c) => c.textContent))')
    assert [r[0:2] + r[3:] for r in rows] == [["set\\u202e", "waiting", "user:otto"], ["a/cmd", "sent", "local"],
                                             ["open", "acked", "anna"]]
    assert rows[0][2] == rows[1][2] == rows[2][2] and rows[0][2].startswith("2026-11-2")
    say_nothing(b, also=QUIET)


def test_a_node_that_stands_by(env, browser):
    d = start(env, timeout="1h")
    b = browser()
    b.run("""await page.route("**/v1/overview", async (route) => {
        try {
            const response = await route.fetch(), all = await response.json();
            await route.fulfill({ response, json: { ...all, groups: null, status: { ...all.status,
                cluster: { mode: "standby", standing_by: true, owner: "b" } } } });
        } catch { } // it came to its end in between
    })""")
    visit(b, d, "#/tasks")
    wait_until(lambda: b.run('return await page.locator("#standby").isVisible()'), what="the page to say so")
    assert b.text("#standby").startswith("This node stands by. b owns the fleet") and b.text("#watching") == "Standing by"
    assert b.run('return await page.locator("main:visible").count()') == 1
    axe_finds_nothing(b)
    say_nothing(b, also=QUIET)


def test_blind_and_gone(env, browser):
    env.own_broker()
    d = start(env, timeout="1h", mqtt={"reconnect_grace": "20s"})
    env.beat("a")
    wait_until(lambda: d.state("a") == "online")
    b = browser()
    visit(b, d, "#/device/a")
    wait_until(lambda: b.text(".about .pill") == "online" and "Offline in" in page(b))
    env.broker.stop()
    wait_until(lambda: "No device is judged now" in page(b), 15)
    assert "Offline in" not in page(b) and b.get('document.querySelector(".about .pill").className').strip() == "pill"
    env.broker.start()
    wait_until(lambda: b.text("#watching") == "Hears again", 15)
    wait_until(lambda: "No device is judged yet: devices have time to report." in page(b), 15)
    assert "cannot hear devices" not in page(b), "the page says above that it hears again"
    d.stop()
    wait_until(lambda: "this is its last answer" in page(b), 15)
    assert b.text(".about .pill") == "online"
    say_nothing(b, also=["ERR_", "Failed to load", "net::"])


@needs_history
def test_a_history_without_redis_says_as_of_when_it_is(env, browser):
    d = start_with_past(env)
    env.redis_server.stop()
    pages = [(browser(), "#/device/flappy"), (browser(), "#/group/pumps"), (browser(), "#/unreliable")]
    wait_until(lambda: now_ms() - (d.history.get("/v1/history/outages").json()["as_of_ms"] or now_ms()) > 6000, what="the history to be old")
    for b, route in pages:
        visit(b, d, route)
        wait_until(lambda: "The history is as of " in page(b), what="the page to say as of when it is")
        say_nothing(b, also=QUIET)


def test_gaps_are_drawn(env, browser):
    """The page draws the gaps that end while it is open, and the timeout as a line: a gap that took the device offline stands
    out. The labels that the group gives are there."""
    d = start(env, groups=[("halls", {"heartbeat": env.root + "/{hall}/{id}", "label": "hall {hall}", "timeout": "7s", "learn": "show",
                                      "timeout_min": "2s"})])
    topic = env.root + "/north/a"
    env.publisher.publish(topic, "")
    wait_until(lambda: d.state("a") == "online")
    b = browser(viewport={"width": 390, "height": 800}, colorScheme="dark")
    visit(b, d, "#/device/a")
    kinds = lambda: b.get('[...document.querySelectorAll(".gaps i")].map((i) => i.className)')
    wait_until(lambda: kinds() == ["up lasts"], what="the silence that lasts")
    assert "Labels\nhall=north" in page(b)
    for n in range(1, 4):
        sleep(4)
        env.publisher.publish(topic, "")
        wait_until(lambda n=n: kinds() == ["up"] * n + ["up lasts"], what="gap %d" % n)
    wait_until(lambda: d.state("a") == "offline", 20)
    wait_until(lambda: kinds() == ["up"] * 3 + ["down lasts"], what="the silence to be longer than the timeout")
    says(env, d, topic, "a", "", "online")
    wait_until(lambda: kinds() == ["up"] * 3 + ["down", "up lasts"], what="the gap to have ended")
    line = float(b.get('document.querySelector(".gaps b.timeout").style.bottom.slice(0, -1)'))
    high = [float(h) for h in b.get('[...document.querySelectorAll(".gaps i")].map((i) => i.style.height.slice(0, -1))')]
    assert all(h < line for h in high[:3]) and high[3] > line, (high, line)
    words = b.get('document.querySelector(".gaps").getAttribute("aria-label")')
    assert "4 gaps since " in words and "1 longer than the timeout" in words and "timeout in force, of the group: 7 s" in words
    assert "largest gap that is learned from: " in words, words
    b.run('await page.locator(".gaps").hover({ position: { x: 3, y: 9 } })')  # no bar is there yet
    assert b.text(".gaps + .note").startswith("4 gaps since ")
    # in one step: the page may draw the bars again at any time
    b.run('const box = await page.evaluate(() => document.querySelector(".gaps i.down").getBoundingClientRect().toJSON()); '
          'await page.mouse.move(box.x + box.width / 2, box.y + 9)')
    wait_until(lambda: b.text(".gaps + .note").endswith(", longer than the timeout"), what="the gap in words")
    assert b.get('document.documentElement.scrollWidth') <= 390
    axe_finds_nothing(b)
    # A page that stood still may have missed heartbeats: it draws no gap over that time.
    count = len(kinds())
    b.run('await page.route("**/v1/devices/a", (route) => route.abort())')
    for battery in (73, 72, 71):
        sleep(4)
        env.publisher.publish(topic, '{"battery":%d}' % battery)
    b.run('await page.unroute("**/v1/devices/a")')
    wait_until(lambda: "71 %" in page(b), what="an answer after that time")
    assert len(kinds()) == count, kinds()
    say_nothing(b, also=[*QUIET, "ERR_FAILED", "Failed to load"])
