# SPDX-License-Identifier: MIT
"""The dashboard in bad moments: it must not contradict itself. And: which transitions it shows as new, and where."""
import csv
import io
import json
import re
import signal
from pathlib import Path

import pytest

from hw_browser import MODULES, missing
from hw_wait import pass_time, wait_until
from test_one_truth import die, wait_for
from test_dashboard import say_nothing, start

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
AWAY = ["ERR_", "Failed to load", "net::"]


def hidden(b, element):
    return b.get('document.getElementById("%s").hidden' % element)


def dims(b):
    return b.get('document.body.classList.contains("dim")')


def icon(b):
    return b.get('document.getElementById("icon").getAttribute("href")')


def go(b, address):
    b.run("await page.evaluate((h) => { location.hash = h; }, %s)" % json.dumps(address))


def no_fault_that_axe_finds(b):
    axe = Path(MODULES) / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.exists():
        pytest.skip("no axe-core in HW_NODE")
    # The page's policy would not let it in by itself.
    b.run('await page.evaluate(require("node:fs").readFileSync(%s, "utf8"))' % json.dumps(str(axe)))
    found = b.get("axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html + n.failureSummary)]))")
    assert found == []


def colour(b, selector):
    return b.get("getComputedStyle(document.querySelector(%s)).color" % json.dumps(selector))


def many(env, d, group, n):
    for k in range(n):
        env.publisher.publish("%s/%s/hall-%d.dev-%03d" % (env.root, group, k % 3, k), "")
    wait_until(lambda: d.status()["online"] >= n)


def die_all(env, d, names):
    """As die()."""
    want = d.status()["offline"] + len(names)

    def gone():
        for name in names:
            env.beat(name, {"online": False})
        return wait_for(lambda: d.status()["offline"] == want, 2)
    wait_until(gone, 20)


def two_groups(env):
    return [("sensors", {"heartbeat": env.root + "/s/{id}", "timeout": "1500ms"}),
            ("pumps", {"heartbeat": env.root + "/p/{id}", "timeout": "1h"})]


def test_first_run(env, browser):
    """An empty page says what to do, and doing so fills it."""
    d = start(env, timeout="1h", mqtt={"reconnect_grace": "1m"}, seeing=False)
    b = browser()
    b.open(d.url)
    wait_until(lambda: not hidden(b, "first") and "mosquitto_pub" in b.text("#first-try"))
    assert b.text("#first-broker") == "127.0.0.1:%d" % env.broker.port
    assert b.text("#first-try").startswith("mosquitto_pub -h 127.0.0.1 -p %d -t '%s/my-device/heartbeat'" % (env.broker.port, env.root))
    assert b.get("(() => { const e = document.getElementById('first-try'); return e.scrollWidth <= e.clientWidth; })()")
    wait_until(lambda: b.text("#banner").startswith("Starting: devices have ") and dims(b))
    assert hidden(b, "by-level")
    assert icon(b) == "web/icon-blind.svg" and b.text("#watching") == "Starting"
    env.publisher.publish(env.root + "/my-device/heartbeat", "")
    wait_until(lambda: hidden(b, "first") and not hidden(b, "devices"))
    say_nothing(b)


def test_redis_away_and_the_monitor_gone(env, browser):
    env.own_redis()
    d = start(env, timeout="1h")
    for name in ("a", "b"):
        env.beat(name)
    wait_until(lambda: d.status()["online"] == 2 and d.status()["owed"] == 0)
    b = browser()
    b.open(d.url)
    wait_until(lambda: b.text("#offline-since") == "all devices are online" and icon(b) == "web/icon.svg")
    env.redis_server.kill()
    die(env, d, "a")
    wait_until(lambda: b.rows() == ["a"] and b.feed()[0] == ["a", "offline"] and b.text("#offline") == "1", 10, "who died")
    wait_until(lambda: not hidden(b, "redis-banner") and "Redis is away since" in b.text("#redis-banner"))
    assert "everybody" not in b.text("#offline-since") and icon(b) == "web/icon-offline.svg" and not dims(b)
    assert b.text("#redis") == "away" and b.text("#redis-banner").count("Connection refused") == 1
    wait_until(lambda: b.get("document.getElementById('chart-offline').getAttribute('aria-label')").endswith("now 1"))
    b.run("await page.reload()")
    wait_until(lambda: b.text("#redis-banner").startswith("Redis is away: "), what="no time that the page cannot know")
    env.redis_server.start()
    wait_until(lambda: hidden(b, "redis-banner") and d.status()["owed"] == 0, 20)
    die(env, d, "b")
    wait_until(lambda: b.feed()[0] == ["b", "offline"])
    assert [f for f in b.feed() if f[1] == "offline"] == [["b", "offline"], ["a", "offline"]], "told twice"
    d.stop()
    wait_until(lambda: not hidden(b, "trouble") and dims(b), 10, "the page to say so")
    assert "has not answered since" in b.text("#trouble") and b.text("#watching") == "No answer"
    soft = colour(b, "#node")
    assert {colour(b, e) for e in ("#offline", "#online", "#groups td", "#levels td", "#mqtt", "#redis", "#space .state")} == {soft}
    b.run('await page.locator("#space .row").first().click()')
    wait_until(lambda: "the device's state is not known now" in b.text("#page") and b.text("#page").count("Not known while") == 3)
    for page in ("group/default", "unreliable", "tasks", "notify"):
        go(b, "#/" + page)
        wait_until(lambda: "Not known while the monitor does not answer." in b.text("#page") and "Looking" not in b.text("#page"))
    go(b, "#/group/default")
    d.start()
    wait_until(lambda: "No history: heartwheel-history is not running" in b.text("#page") and "timeout 1 h" in b.text("#page"))
    say_nothing(b, also=AWAY + ["503"])


# The page takes events up in bursts: a burst is held while `window.hold`, and window.heard has all events that came.
HOLD = """await page.addInitScript(() => {
	const real = window.setTimeout, parse = JSON.parse;
	window.hold = false;
	window.heard = [];
	window.setTimeout = (f, ms, ...rest) => {
		const held = () => (window.hold ? real(held, 20) : f(...rest));
		return real(ms === 200 ? held : f, ms, ...rest);
	};
	JSON.parse = (...all) => { const d = parse(...all); window.heard.push([d.id, d.state, d.seq]); return d; };
})"""


def test_once_although_told_twice_at_once(env, browser):
    """While Redis is late the daemon reports a transition, and again with its offset in the stream: both may come in one burst,
    and the page shows it once."""
    env.own_redis()
    d = start(env, timeout="1h")
    for name in ("a", "b"):
        env.beat(name)
    wait_until(lambda: d.status()["online"] == 2 and d.status()["owed"] == 0)
    b = browser()
    b.run(HOLD)
    b.open(d.url)
    wait_until(lambda: len(b.feed()) == 2 and b.text("#found") == "No device is offline.")
    env.redis_server.signal(signal.SIGSTOP)
    die(env, d, "a")
    wait_until(lambda: b.feed()[0] == ["a", "offline"])
    b.run("await page.evaluate(() => { window.hold = true; })")
    die(env, d, "b")
    told = "window.heard.filter(([id, state]) => id === 'b' && state === 'offline')"
    wait_until(lambda: len(b.get(told)) == 1, 10, "the daemon's own word")
    env.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: len(b.get(told)) == 2, 20, "the stream's")
    assert b.get(told + ".every((t, i, all) => t[2] === all[0][2])"), "one transition"
    assert b.feed()[0] == ["a", "offline"]
    b.run("await page.evaluate(() => { window.hold = false; })")
    wait_until(lambda: b.feed()[0] == ["b", "offline"])
    assert [f for f in b.feed() if f[1] == "offline"] == [["b", "offline"], ["a", "offline"]], "told twice"
    wait_until(lambda: b.rows() == ["b", "a"] and b.text("#found") == "2 offline devices")
    say_nothing(b)


def deaths(b):
    """The number of deaths in the feed, in one entry or, on a busy machine, in several."""
    some = [re.fullmatch("([0-9,]+)(?: or more)? of default", name) for name, state in b.feed() if state == "offline"]
    return sum(int(one[1].replace(",", "")) if one else 1 for one in some)


def test_what_is_told_late_is_no_news(env, browser):
    """There are more transitions than the page requests, and the older ones have no offset yet when the page is opened."""
    env.own_redis()
    d = start(env, timeout="1h")
    for name in range(1100):
        env.beat("d%04d" % name)
    wait_until(lambda: d.status()["online"] == 1100 and d.status()["owed"] == 0)
    env.redis_server.signal(signal.SIGSTOP)
    die_all(env, d, ["d%04d" % name for name in range(100)])
    pass_time(1.5)  # so that these are an entry of their own
    die_all(env, d, ["d%04d" % name for name in range(100, 1100)])
    b = browser()
    b.run(HOLD)
    b.open(d.url)
    wait_until(lambda: deaths(b) == 1000, 10, "the latest thousand")
    env.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: len(b.get("window.heard.filter(([id, state]) => state === 'offline')")) == 1100, 20)
    env.beat("d0007")
    wait_until(lambda: b.feed()[0] == ["d0007", "online"])
    assert deaths(b) in (1000, 999)
    wait_until(lambda: b.text("#found") == "1,099 offline devices")
    say_nothing(b)


def test_what_was_left_out(env, browser):
    """What the page left out may belong to each of the oldest entries."""
    d = start(env, groups=two_groups(env)[1:] + [("fans", {"heartbeat": env.root + "/f/{id}", "timeout": "1h"})])
    for k in range(600):
        for group in "pf":
            env.publisher.publish("%s/%s/%s-%d" % (env.root, group, group, k), "")
    wait_until(lambda: d.status()["online"] == 1200)
    b = browser()
    b.open(d.url)
    wait_until(lambda: b.feed())
    oldest = {name.split(" of ")[1]: name for name, state in b.feed()}
    assert "or more" in oldest["pumps"] and "or more" in oldest["fans"]


def test_a_list_that_is_not_answered(env, browser):
    """A list request that gets no answer shows no device as online again."""
    d = start(env, timeout="1h")
    env.beat("b")
    die(env, d, "a")
    wait_until(lambda: d.status()["devices"] == 2)
    b = browser()
    b.run("""await page.route("**/v1/devices?*", (route) => (state.deny ? route.fulfill({ status: 503, json: { error: "busy" } })
        : route.continue()).catch(() => {})); state.deny = true;""")
    b.open(d.url)
    wait_until(lambda: b.text("#offline") == "1" and len(b.feed()) > 0)
    asked = 'return state.requests.filter((r) => r.includes("sort=newest&limit=500")).length'
    wait_until(lambda: b.run(asked) >= 3, what="it to be asked for again")
    assert b.text("#found") == "Not known: busy." and b.rows() == []
    b.run("state.deny = false;")
    wait_until(lambda: b.rows() == ["a"] and b.text("#found") == "1 offline device")
    say_nothing(b, also=["503"])


def test_blind_and_back(env, browser):
    env.own_broker()
    d = start(env, timeout="1h", mqtt={"reconnect_grace": "8s"})
    env.beat("a")
    b = browser()
    b.open(d.url)
    wait_until(lambda: b.text("#watching") == "Watching" and b.text("#online") == "1" and not dims(b))
    env.broker.stop()
    wait_until(lambda: "broker connection lost" in b.text("#banner"), 15)
    assert "no device is judged" in b.text("#banner") and dims(b) and icon(b) == "web/icon-blind.svg"
    assert b.get('getComputedStyle(document.getElementById("banner")).display') == "block"
    # It is said once, not each second.
    said = b.text("#announce")
    assert said.startswith("Cannot hear devices")
    before = b.text("#banner")
    wait_until(lambda: b.text("#banner") != before, 10)
    assert b.text("#announce") == said
    no_fault_that_axe_finds(b)
    env.broker.start()
    wait_until(lambda: b.text("#banner").startswith("Heartbeats arrive again: devices have "), 15)
    assert b.text("#watching") == "Hears again" and b.get("document.getElementById('banner').className") == "banner warn"
    wait_until(lambda: hidden(b, "banner") and not dims(b), 15)
    say_nothing(b)


def test_a_mass_death(env, browser):
    """One entry of the feed, which can be opened; counts by group and by a level of the id; each links to the devices."""
    d = start(env, groups=two_groups(env))
    many(env, d, "p", 9)
    b = browser()
    b.open(d.url)
    b.run("await page.evaluate(() => { window.wrong = 0; new MutationObserver(() => {"
          " if (document.getElementById('offline').textContent !== '0' && document.getElementById('offline-since').textContent"
          " === 'all devices are online') window.wrong++; }).observe(document.getElementById('tile-offline'),"
          " { subtree: true, childList: true, characterData: true }); })")
    for k in range(60):
        env.publisher.publish("%s/s/site-%d.dev-%03d" % (env.root, k % 2, k), "")
    for k in range(40):  # more beginnings than there is room for beside the list
        env.publisher.publish("%s/p/one%d.x" % (env.root, k), "")
    wait_until(lambda: d.status()["offline"] == 60, 20)
    bundle = 'document.querySelector("#feed .bundle.offline")'
    wait_until(lambda: b.get("%s?.textContent.includes('60 of sensors')" % bundle), 10, "one entry")
    assert re.search(r"within \d+ s", b.get("%s.innerText" % bundle)) and b.get("window.wrong") == 0
    assert b.get('document.querySelectorAll("#feed button[tabindex=\'0\']").length') == 1, "the list is one stop of the tab key"
    b.run('await page.locator("#feed .bundle.offline button").click()')
    wait_until(lambda: b.get('document.querySelectorAll("#feed li.offline:not(.bundle)").length') == 60)
    wait_until(lambda: "60" in b.text("#groups") and "site-" in b.text("#levels") and "hall-" in b.text("#levels"))
    wait_until(lambda: b.text("#found") == "60 offline devices" and icon(b) == "web/icon-offline.svg")
    assert b.get('document.getElementById("places").offsetHeight') <= 600
    b.run('await page.locator("#groups").getByRole("link", { name: "49 online in pumps" }).click()')
    wait_until(lambda: b.text("#found") == "49 online devices" and "group=pumps" in b.get("location.hash"))
    b.run("await page.goBack()")
    wait_until(lambda: b.text("#found") == "60 offline devices")
    go(b, "#/?prefix=site-1.")
    wait_until(lambda: b.text("#found") == "30 offline devices" and "begins with site-1." in b.text("#prefix"))
    b.run('await page.locator("#prefix").click()')
    wait_until(lambda: b.text("#found") == "60 offline devices")
    no_fault_that_axe_finds(b)
    say_nothing(b)


def test_below_the_list_stands_what_the_tile_says(env, browser):
    """Below the list stands the tile's number, also while the list itself is late, as it is when thousands of devices change at
    once."""
    d = start(env, groups=two_groups(env))
    many(env, d, "p", 400)
    b = browser()
    b.open(d.url)
    env.publisher.publish(env.root + "/p/hall-0.dev-000", '{"online":false}')
    wait_until(lambda: b.text("#found") == "1 offline device" and len(b.rows()) == 1)
    # What is asked for from here on is not answered: first for more than are changed one by one.
    b.run("""state.held = []; await page.route("**/v1/devices?*", (r) => state.held ? void state.held.push(r) : r.continue());""")
    for k in range(1, 400):
        env.publisher.publish("%s/p/hall-%d.dev-%03d" % (env.root, k % 3, k), '{"online":false}')
    wait_until(lambda: b.text("#offline") == "400")
    assert b.text("#found") == "400 offline devices"
    b.run("const held = state.held; state.held = null; for (const r of held) await r.continue()")
    wait_until(lambda: len(b.rows()) > 1)
    assert b.text("#found") == "400 offline devices"
    say_nothing(b)


def test_what_is_shown_can_be_sent_and_saved(env, browser):
    d = start(env, groups=two_groups(env))
    many(env, d, "p", 12)
    env.publisher.publish(env.root + "/p/=1*1", '{"online":false}')
    wait_until(lambda: d.status()["offline"] == 1)
    b = browser(acceptDownloads=True)
    b.open(d.url + "#/?state=all&sort=id-back&search=dev-00")
    wait_until(lambda: b.text("#found") == "10 devices" and b.rows()[0] == "hall-2.dev-008")
    assert b.get('(() => { getSelection().selectAllChildren(document.querySelector("#space .row")); const data = new DataTransfer();'
                 ' document.dispatchEvent(new ClipboardEvent("copy", { clipboardData: data, bubbles: true, cancelable: true }));'
                 ' return data.getData("text/plain"); })()').startswith("hall-2.dev-008\n"), "an id is copied whole"
    b.run('await page.locator("#by-id button").click()')
    wait_until(lambda: b.rows()[0] == "hall-0.dev-000" and "sort=id&" in b.get("location.hash") + "&")
    assert b.get('document.getElementById("by-id").getAttribute("aria-sort")') == "ascending"
    b.run('await page.locator("#found").click(); await page.keyboard.press("/");'
          'await page.waitForFunction(() => document.activeElement.id === "search"); await page.keyboard.type("5")')
    wait_until(lambda: b.text("#found") == "1 device" and b.rows() == ["hall-2.dev-005"], 10)
    b.run("await page.reload()")
    wait_until(lambda: b.rows() == ["hall-2.dev-005"])
    go(b, "#/?search=dev-00")
    wait_until(lambda: b.text("#found") == "No offline device matches." and not hidden(b, "found-all"))
    b.run('await page.locator("#found-all").click()')
    wait_until(lambda: b.text("#found") == "10 devices" and hidden(b, "found-all"))
    go(b, "#/?state=all&sort=id")
    wait_until(lambda: b.text("#found") == "13 devices")
    text = b.run("""const [file] = await Promise.all([page.waitForEvent("download"), page.locator("#csv").click()]);
        const parts = []; for await (const p of await file.createReadStream()) parts.push(p);
        return Buffer.concat(parts).toString()""")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [r["id"] for r in rows] == sorted([r["id"] for r in rows], key=lambda i: i.lstrip("'")) and len(rows) == 13
    assert rows[0]["id"] == "'=1*1" and rows[0]["state"] == "offline" and rows[0]["group"] == "pumps"
    say_nothing(b)


@pytest.mark.parametrize("size", [1440, 1024, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_that_axe_finds(env, browser, size, scheme):
    d = start(env, groups=two_groups(env))
    many(env, d, "p", 9)
    env.publisher.publish(env.root + "/p/a-pump-with-a-name-that-is-longer-than-a-phone-is-wide-" + "x" * 60 + "-1", '{"online":false}')
    wait_until(lambda: d.status()["offline"] == 1)
    b = browser(viewport={"width": size, "height": 844}, colorScheme=scheme)
    b.open(d.url)
    wait_until(lambda: len(b.rows()) == 1)
    # What tells ids apart that begin alike can be seen.
    assert b.get('(() => { const t = document.querySelector("#space .mid > span:last-child").getBoundingClientRect();'
                 ' const c = document.querySelector("#space .row > span").getBoundingClientRect();'
                 ' return t.width > 20 && t.right <= c.right + 1; })()')
    # How the monitor is stands in the first line, and the list takes no more room than it needs.
    assert b.get('Math.abs(document.getElementById("watching").getBoundingClientRect().bottom'
                 ' - document.querySelector("h1").getBoundingClientRect().bottom) < 8')
    assert b.get('document.getElementById("grid").clientHeight') < 200
    assert (b.get('document.querySelector("#space .state").offsetWidth') == 0) == (size == 390), "all are offline"
    for address in ("#/", "#/diagnostics"):
        go(b, address)
        wait_until(lambda: b.get("document.documentElement.scrollWidth <= innerWidth"))
        no_fault_that_axe_finds(b)
    say_nothing(b)


def test_a_moments_standstill_is_no_banner(env, browser):
    """Under a second: no banner and no colour. A chart shows it with its true length, and says since when its counts are
    complete."""
    d = start(env, timeout="1h")
    b = browser()
    b.open(d.url)
    wait_until(lambda: b.text("#watching") == "Watching")
    wait_until(lambda: b.text("#chart-since").startswith("From "), what="the charts to say where they begin")
    b.run("""await page.route("**/v1/overview", async (route) => {
        try {
            const response = await route.fetch(), all = await response.json();
            state.asked = (state.asked ?? 0) + 1;
            await route.fulfill({ response, json: { ...all, status: { ...all.status, blind: true, blind_cause: "standstill", starting: false, judges_in_ms: null,
                blind_for_ms: state.lasts ?? 600 } } });
        } catch { } // it came to its end in between
    })""")
    wait_until(lambda: b.run("return (state.asked ?? 0) >= 3"), what="the page to be told of it")
    assert b.text("#watching") == "Watching" and b.get('document.getElementById("banner").hidden') and not dims(b)
    b.run("state.lasts = 1500")
    wait_until(lambda: b.text("#watching") == "Cannot hear devices" and dims(b))
    span = b.get("""import("./web/charts.js").then((m) => m.blindSpan([{ time_ms: 10000, blind: false, blind_from_ms: null, blind_ms: 0 },
        { time_ms: 20000, blind: true, blind_from_ms: 15000, blind_ms: 500 }], 1))""")
    assert span == [15000, 15500]
    say_nothing(b, also=["503"])


def test_the_tiles_of_a_stopped_daemon_say_as_of_when(env, browser):
    d = start(env, timeout="1h")
    env.beat("a")
    b = browser()
    b.open(d.url)
    wait_until(lambda: b.text("#online") == "1" and "as of" not in b.text("#online-share"))
    d.stop()
    wait_until(lambda: all(re.match(r"as of \d\d:\d\d:\d\d, \d+ s ago$", b.text(note)) for note in ("#online-share", "#offline-since", "#beats")))
    d.start()
    wait_until(lambda: "as of" not in b.text("#online-share") + b.text("#offline-since") + b.text("#beats"))
