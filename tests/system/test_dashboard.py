# SPDX-License-Identifier: MIT
"""The dashboard in a real browser (hw_browser.py), as an operator sees it."""
import hashlib
import json
import re

import pytest

from hw_browser import MODULES, missing
from hw_past import QUIET_TIMES
from hw_process import free_port
from hw_wait import in_time, now_ms, pass_time, wait_until

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def start(env, monitor=None, mqtt=None, **options):
    """Starts a daemon which a busy machine cannot make blind by a stall, and whose goodbyes therefore count."""
    port = free_port()
    d = env.daemon(http={"listen": "127.0.0.1:%d" % port}, monitor={**QUIET_TIMES["monitor"], **(monitor or {})},
                   mqtt={**QUIET_TIMES["mqtt"], **(mqtt or {})}, **options)
    d.url = "http://127.0.0.1:%d/" % port
    return d


def say_nothing(b, also=()):
    complaints = [c for c in b.run("return state.complaints") if not any(a in c for a in also)]
    assert not complaints, complaints
    assert b.run("return state.dialogs") == []


def test_loads(env, browser):
    d = start(env, groups=[("pumps", {"heartbeat": env.root + "/p/{id}", "timeout": "1h"}),
                           ("fans", {"heartbeat": env.root + "/f/{id}", "timeout": "20m"})])
    env.publisher.publish(env.root + "/p/pump-1", '{"battery":51}')
    env.publisher.publish(env.root + "/f/fan-1", "")
    env.publisher.publish(env.root + "/f/fan-2", '{"online":false}')
    wait_until(lambda: d.status()["devices"] == 3)
    b = browser()
    b.open(d.url)
    wait_until(lambda: b.rows() == ["fan-2"])
    assert b.text("#watching") == "Watching" and b.text("#offline") == "1" and b.text("#online") == "2"
    assert env.node in b.text("#node")
    wait_until(lambda: b.text("#offline-since").startswith("since "))
    wait_until(lambda: b.text("#redis") == "up" and b.text("#mqtt").startswith("up"))
    wait_until(lambda: len(b.feed()) >= 3)
    assert sorted(b.feed()) == [["fan-1", "online"], ["fan-2", "offline"], ["pump-1", "online"]]
    assert b.run("return await page.title()") == "(1) heartwheel"
    b.run('await page.evaluate(() => { location.hash = "#/diagnostics"; })')
    # The wheel: 4 rings of 31 slots, and what is in them.
    assert b.get('document.querySelectorAll("#wheel .slot").length') == 124
    wait_until(lambda: b.get('[...document.querySelectorAll("#wheel-levels td:last-child")].map((c) => Number(c.textContent))'
                             '.reduce((a, n) => a + n, 0)') == 3)
    b.run("await page.goBack()")
    # The charts are drawn: more than one colour is on each canvas.
    for canvas in ("chart-offline", "chart-online"):
        wait_until(lambda: b.get('(() => { const c = document.getElementById("%s"); const d = c.getContext("2d").getImageData(0, 0,'
                     ' c.width, c.height).data; const seen = new Set(); for (let i = 0; i < d.length; i += 4)'
                     ' seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size > 3; })()' % canvas), what=canvas)
    # Everything comes from here, and nothing complains.
    assert all(r.startswith(d.url) for r in b.run("return state.requests"))
    say_nothing(b)


def test_keys_are_in_the_wheel(env, browser):
    env.own_redis(options=["--notify-keyspace-events", "Exg$e"])
    d = start(env, timeout="1h", keyspace={"enabled": "yes"})
    wait_until(lambda: d.metrics().get("keyspace_up") == 1)
    env.beat("beats")
    for device in ("one", "two"):
        env.redis.setex(env.key("connected", device), 20, "x")
    wait_until(lambda: d.status()["online"] == 3)
    b = browser()
    b.open(d.url + "#/diagnostics")
    wait_until(lambda: b.get('document.querySelector("#wheel text").textContent') == "3")
    assert "with 3 devices" in b.get('document.getElementById("wheel").getAttribute("aria-label")')
    rows = b.get('[...document.querySelectorAll("#wheel-levels td:last-child")].map((c) => Number(c.textContent))')
    assert sum(rows) == 3, rows
    # Both keys are in the slot that is as far ahead of the hand as they are of their own cursor; both cursors move.
    look = """fetch("v1/wheel").then((r) => r.json()).then((w) => {
        const l = w.levels[1], k = w.keys.levels[1];
        const ahead = k.slots.findIndex((n) => n > 0) - k.cursor;
        const title = (i) => document.querySelectorAll("#wheel .slot")[31 + (i + 31) % 31].firstChild.textContent;
        return [-1, 0, 1].map((late) => title(l.cursor + ahead + late)).join(" ");
    })"""

    def stands():
        for device in ("one", "two"):
            env.redis.setex(env.key("connected", device), 20, "x")
        return re.search(": [12]", b.get(look))
    wait_until(stands, what="the keys in the slot where they are")
    say_nothing(b)


def test_policy(env):
    d = start(env, timeout="1h")
    a = d.get("/")
    assert a.status == 200 and a.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = a.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy and "*" not in policy
    assert a.headers["X-Content-Type-Options"] == "nosniff"
    text = a.body.decode()
    assert "http://" not in text and "https://" not in text and "style=" not in text and "onclick" not in text
    for name, kind in (("app.js", "text/javascript"), ("style.css", "text/css"), ("icon.svg", "image/svg+xml"),
                       ("chart.js", "text/javascript")):
        a = d.get("/web/" + name)
        assert a.status == 200 and a.headers["Content-Type"].startswith(kind), (name, a)
        again = d.request("GET", "/web/" + name, headers={"If-None-Match": a.headers["ETag"]})
        assert again.status == 304 and not again.body
    assert d.get("/web/").status == 200
    for path in ("/web/none.js", "/web/../monitor.conf", "/web/..%2findex.html", "/index.html", "/web/app.js/"):
        assert d.get(path).status == 404, path


def test_lives(env, browser):
    """A device goes offline and returns: the page shows both without a reload."""
    d = start(env, timeout="1500ms")
    b = browser()
    with env.beating(["steady"]):
        env.beat("mortal")
        wait_until(lambda: d.status()["online"] == 2)
        b.open(d.url)
        b.run("page.evaluate(() => { window.untouched = true; })")
        wait_until(lambda: b.rows() == ["mortal"], 10, "the dead device in the table")
        wait_until(lambda: b.feed()[0] == ["mortal", "offline"])
        both = wait_until(lambda: b.get('document.getElementById("offline").textContent === "1"'
                                        ' && [document.getElementById("offline-since").textContent]'))
        assert both[0] != "all devices are online"
        wait_until(lambda: b.text("#offline") == "1" and b.text("#online") == "1")
        env.beat("mortal", {"timeout": 600})
        wait_until(lambda: b.rows() == [], 10, "the table to be empty")
        wait_until(lambda: b.text("#offline") == "0")
        wait_until(lambda: b.feed()[0] == ["mortal", "online"] and "No device is offline" in b.text("#found"))
        wait_until(lambda: b.text("#offline-since") == "all devices are online")
        d.forget("mortal")
        wait_until(lambda: b.feed()[0] == ["mortal", "forgotten"])
    wait_until(lambda: b.rows() == ["steady"], 10)
    assert b.get("window.untouched") is True
    say_nothing(b)


def test_searches_and_sorts(env, browser):
    d = start(env, groups=[("halls", {"heartbeat": env.root + "/h/{id}", "timeout": "1h"}),
                           ("yards", {"heartbeat": env.root + "/y/{id}", "timeout": "1h"})])
    for name in ("h/Pump-3", "h/pump-1", "y/gate", "h/pump-2"):
        env.publisher.publish("%s/%s" % (env.root, name), '{"online":false}')
        wait_until(lambda: d.device(name[2:]))
        pass_time(0.005)  # each has a millisecond of its own
    env.publisher.publish(env.root + "/y/lamp", "")
    wait_until(lambda: d.status()["devices"] == 5)
    b = browser()
    b.open(d.url)
    wait_until(lambda: b.rows() == ["pump-2", "gate", "pump-1", "Pump-3"])
    b.run('await page.getByRole("searchbox", { name: "Search" }).fill("PUMP")')
    wait_until(lambda: b.rows() == ["pump-2", "pump-1", "Pump-3"])
    wait_until(lambda: b.text("#found") == "3 offline devices")
    b.run('await page.getByLabel("Order").selectOption("id")')
    wait_until(lambda: b.rows() == ["Pump-3", "pump-1", "pump-2"])
    b.run('await page.getByRole("searchbox", { name: "Search" }).fill("nobody")')
    wait_until(lambda: b.rows() == [] and "No offline device matches" in b.text("#found"))
    b.run('await page.getByRole("searchbox", { name: "Search" }).fill("")')
    b.run('await page.locator("#group").selectOption("yards")')
    wait_until(lambda: b.rows() == ["gate"])
    b.run('await page.getByLabel("State").selectOption("all")')
    wait_until(lambda: b.rows() == ["gate", "lamp"])
    # What comes fits the filters, or does not show.
    env.publisher.publish(env.root + "/h/other", '{"online":false}')
    env.publisher.publish(env.root + "/y/door", '{"online":false}')
    wait_until(lambda: b.rows() == ["door", "gate", "lamp"])
    say_nothing(b)


def test_survives_a_restart(env, browser):
    d = start(env, timeout="1h")
    env.beat("a")
    wait_until(lambda: d.device("a"))
    b = browser()
    b.open(d.url)
    wait_until(lambda: d.metrics().get("event_clients") == 1)
    d.stop()
    wait_until(lambda: b.get('!document.getElementById("trouble").hidden'), 10, "the page to say so")
    assert b.text("#watching") == "No answer" and "has not answered" in b.text("#trouble")
    d.start()
    wait_until(lambda: b.get('document.getElementById("trouble").hidden') and b.text("#watching") == "Watching", 15)
    wait_until(lambda: d.metrics().get("event_clients") == 1, 15, "the page to listen again")
    env.beat("a", {"online": False})
    wait_until(lambda: b.rows() == ["a"] and b.text("#offline") == "1")
    wait_until(lambda: b.feed()[0] == ["a", "offline"])
    say_nothing(b, also=["ERR_", "Failed to load", "net::"])


def test_a_hundred_thousand(env, browser):
    """With 100,000 offline devices the table stays quick: only the rows in sight exist."""
    n = 100000
    d = start(env, timeout="1h", store={"type": "memory"}, group={"status": ""})
    for k in range(n):
        env.publisher.publish("%s/dev-%06d/heartbeat" % (env.root, k), '{"online":false}')
    wait_until(lambda: d.status()["offline"] == n, 120)
    b = browser()
    b.open(d.url)
    wait_until(lambda: len(b.rows()) > 5)
    assert b.text("#offline") == "100,000"
    at = now_ms()
    b.run('await page.getByRole("searchbox", { name: "Search" }).fill("99999")')
    wait_until(lambda: b.rows() == ["dev-099999"], 10)
    took = now_ms() - at
    print("a search took %d ms" % took)
    b.run('await page.getByRole("searchbox", { name: "Search" }).fill("")')
    b.run('await page.getByLabel("Order").selectOption("id")')
    wait_until(lambda: b.rows()[:2] == ["dev-000000", "dev-000001"], 10)
    wait_until(lambda: b.text("#found") == "100,000 offline devices", 10)
    b.run('await page.locator("#grid").focus(); await page.keyboard.press("End")')
    wait_until(lambda: b.rows()[-1:] == ["dev-099999"], 10, "the end, in one press")
    assert b.rows() == sorted(b.rows()) and "…" not in b.rows()
    b.get('document.getElementById("grid").scrollTo(0, 36 * 3000)')  # what is between comes when it is looked at
    wait_until(lambda: "dev-003003" in b.rows() and b.rows() == sorted(b.rows()) and "…" not in b.rows(), 20)
    assert b.get('document.querySelectorAll("#space .row").length') < 60
    # Live all the same.
    env.publisher.publish(env.root + "/new/heartbeat", "")
    wait_until(lambda: b.feed()[0] == ["new", "online"])
    say_nothing(b)
    in_time(took, 3000, "a search")


def test_keyboard_and_names(env, browser):
    d = start(env, timeout="1h")
    for k in range(30):
        env.beat("d%02d" % k, {"online": False, "battery": 7, "data": {"x": 1}})
    wait_until(lambda: d.status()["offline"] == 30)
    b = browser()
    b.open(d.url)
    wait_until(lambda: len(b.rows()) > 10)
    for role, name in (("searchbox", "Search"), ("combobox", "State"), ("combobox", "Order"), ("grid", "Devices"),
                       ("img", "Devices offline over the last hour"), ("img", "Devices online over the last hour"), ("list", "What just happened"),
                       ("heading", "heartwheel"), ("region", "Devices"), ("region", "At a glance")):
        assert b.run('return await page.getByRole("%s", { name: "%s" }).first().count()' % (role, name)) == 1, (role, name)
    # The name of a chart says what it shows; of a monitor in its first second, too.
    wait_until(lambda: b.run('return await page.getByRole("img", { name: /online over the last hour: now [0-9]/ }).count()') == 1, 5)
    # To the table by the link for that purpose, then row by row.
    b.run('await page.keyboard.press("Tab")')
    assert b.get("document.activeElement.textContent") == "Skip to the devices"
    b.run('await page.keyboard.press("Enter")')
    b.run('await page.locator("#grid").focus()')
    for key in ("ArrowDown", "ArrowDown", "End", "Home", "PageDown", "ArrowUp"):
        b.run('await page.keyboard.press("%s")' % key)
    active = b.get('document.getElementById(document.getElementById("grid").getAttribute("aria-activedescendant"))'
                   '.children[0].textContent')
    assert active in b.rows()
    b.run('await page.keyboard.press("Enter")')
    wait_until(lambda: "Battery" in b.text("#page") and '{"x":1}' in b.text("#page"))
    assert b.get("document.activeElement.textContent") == active and not b.run('return await page.locator("#grid").isVisible()')
    b.run("await page.goBack()")
    wait_until(lambda: b.run('return await page.locator("#grid").isVisible()'))
    assert b.get("document.activeElement.id") == "grid" and active in b.rows()
    say_nothing(b, also=["503"])


def test_hostile_ids(env, browser):
    d = start(env, timeout="1h")
    name = "<img src=x onerror=alert(1)>\u202e"
    env.publisher.publish("%s/%s/heartbeat" % (env.root, name), '{"online":false,"version":"<script>alert(2)</script>"}')
    wait_until(lambda: d.status()["offline"] == 1)
    b = browser()
    b.open(d.url)
    wait_until(lambda: b.rows() == [name.replace("\u202e", "\\u202e")])
    b.run('await page.locator("#space .row").first().click()')
    wait_until(lambda: "<script>" in b.text("#page"))
    assert b.get('document.querySelectorAll("#grid img, #feed img, #page img, #page script").length') == 0
    assert b.text(".about h2") == b.rows()[0] and b.get("document.body.textContent.includes('\u202e')") is False
    say_nothing(b, also=["503"])


def test_blind(env, browser):
    env.own_broker()
    d = start(env, timeout="1h")
    b = browser()
    b.open(d.url)
    wait_until(lambda: b.text("#watching") == "Watching")
    env.broker.stop()
    wait_until(lambda: b.text("#watching") == "Cannot hear devices", 15)
    assert b.run("return await page.title()").startswith("BLIND")


def give(b, token):
    b.run("await page.fill('#token-field', %s); await page.press('#token-field', 'Enter')" % json.dumps(token))


def test_asks_for_a_token(env, browser):
    users = env.own_dir("users") / "users"
    users.write_text("".join("%s:read:%s\n" % (name, hashlib.sha256(token.encode()).hexdigest())
                             for name, token in (("otto", "tok-otto"), ("rita", "tok-rita"))))
    port = free_port()
    d = env.daemon(timeout="1h", http={"listen": "127.0.0.1:%d" % port, "users": users})
    env.beat("x")
    wait_until(lambda: d.state("x") == "online")
    b = browser()
    b.run("await page.goto('http://127.0.0.1:%d/')" % port)
    wait_until(lambda: b.get('document.getElementById("token").open'))
    give(b, "tok-nobody")
    wait_until(lambda: "belongs to no user" in b.text("#token-why"))
    assert b.get('document.getElementById("token").open') and b.text("#online") == "–"
    give(b, "tok-otto")
    wait_until(lambda: b.text("#online") == "1", what="the page to be filled")
    assert not b.get('document.getElementById("token").open')
    wait_until(lambda: ["x", "online"] in b.feed())
    env.beat("y")  # told of by the stream
    wait_until(lambda: ["y", "online"] in b.feed())
    # The tab keeps it over a reload of the page; nothing else does.
    b.run("await page.reload()")
    wait_until(lambda: b.text("#online") == "2")
    assert b.get("[localStorage.length, document.cookie, location.href.includes('tok')]") == [0, "", False]
    # A token that is taken away: asked for once more, without guessing on.
    users.write_text("".join(l for l in users.read_text().splitlines(True) if not l.startswith("otto")))
    assert d.ctl("reload").returncode == 0
    wait_until(lambda: b.get('document.getElementById("token").open'))
    wrong = d.metrics().get("http_refused_total", why="wrong_token")
    give(b, "tok-rita")
    wait_until(lambda: not b.get('document.getElementById("token").open'))
    env.beat("z")
    wait_until(lambda: b.text("#online") == "3")
    assert wrong < 10 and d.metrics().get("http_refused_total", why="wrong_token") == wrong
    say_nothing(b, also=["401", "ERR_INCOMPLETE_CHUNKED_ENCODING"])


NODES = {"mode": "mirror", "name": "heartwheel", "lease_ms": 1000, "member": True, "lapsed": False, "partitions": 256, "owned": 131,
         "unowned": 0, "stream_lag_ms": 0}


def node(name, state, owns, **more):
    return {"node": name, "self": False, "state": state, "since_ms": now_ms() - 3700000, "owns": owns, "blind_cause": None,
            "owed": 0, "differs": [], **more}


def answer_with(b, nodes, **more):
    """From now on the page receives these nodes; the daemon's other answers are unchanged."""
    b.run("state.nodes = %s" % json.dumps({**NODES, "nodes": nodes, **more}))
    b.run("""if (state.routed)
            return;
        state.routed = true; // for good: a request that is being answered could not be taken back
        await page.route("**/v1/overview", async (route) => {
            try {
                const response = await route.fetch(), all = await response.json();
                await route.fulfill({ response, json: { ...all, nodes: state.nodes,
                    status: { ...all.status, cluster: { mode: "mirror" }, ...state.says } } });
            } catch { } // it came to its end in between
        })""")


def shown(b):
    return b.get('[...document.querySelectorAll("#node-list li")].map((l) => [l.querySelector("b").textContent,'
                 ' l.querySelector(".pill").textContent, l.querySelector(".note").textContent.split(" · ")[0]])')


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nodes(env, browser, scheme):
    d = start(env, timeout="1h")
    env.beat("a")
    wait_until(lambda: d.device("a"))
    b = browser(colorScheme=scheme)
    b.open(d.url)
    assert b.get('document.getElementById("nodes").hidden')  # alone
    answer_with(b, [node("a", "ready", 131, self=True), node("b", "ready", 125)])
    wait_until(lambda: shown(b) == [["a", "ready", "owns 131 of 256"], ["b", "ready", "owns 125 of 256"]])
    assert b.get('document.getElementById("nodes-trouble").hidden') and b.text("#nodes-note") == "2 ready"
    answer_with(b, [node("a", "ready", 131, self=True), node("b", "lost", 125)])
    wait_until(lambda: b.text("#nodes-trouble") == "Node b is lost: 125 of 256 partitions wait to be taken over.")
    answer_with(b, [node("a", "ready", 256, self=True), node("b", "lost", 0)])
    wait_until(lambda: b.text("#nodes-trouble") == "Node b is lost: the other nodes watch their devices.")
    assert shown(b)[1] == ["b", "lost", "owns 0 of 256"]
    answer_with(b, [node("<b>a</b>" * 20, "blind", 0, self=True, blind_cause="link", differs=["config"])], unowned=256, member=False)
    wait_until(lambda: b.text("#nodes-trouble").startswith("256 of 256 partitions have no owner. This node is not a member of"))
    assert shown(b)[0][:2] == ["<b>a</b>" * 20, "blind: link"]
    assert b.get("document.documentElement.scrollWidth <= innerWidth")
    # What has no room is left out of the middle of a name: the end tells nodes apart.
    assert b.get('(() => { const b = document.querySelector(".who b"), end = b.querySelector(".mid > span:last-child").getBoundingClientRect();'
                 ' return end.width > 0 && end.right <= b.getBoundingClientRect().right + 1; })()')
    b.run("await page.unrouteAll({ behavior: 'ignoreErrors' })")
    wait_until(lambda: b.get('document.getElementById("nodes").hidden'))
    say_nothing(b)


def test_numbers_are_of_one_moment(env, browser):
    """Each answer has other numbers, and one answer comes late: tiles, list, groups and nodes show those of one answer."""
    d = start(env, timeout="1h")
    env.beat("a")
    wait_until(lambda: d.device("a"))
    b = browser()
    b.run("""state.asked = [];
        page.on("request", (r) => state.asked.push(new URL(r.url()).pathname));
        let n = 10;
        await page.route("**/v1/overview", async (route) => {
            const k = ++n;
            try {
                const response = await route.fetch(), all = await response.json();
                if (k %% 4 === 0)
                    await new Promise((done) => setTimeout(done, 2500));
                await route.fulfill({ response, json: { ...all, groups: [{ ...all.groups[0], online: 7, offline: k }],
                    nodes: { ...%s, nodes: Array(k).fill(%s) },
                    status: { ...all.status, devices: k + 7, online: 7, offline: k, cluster: { mode: "mirror" } } } });
            } catch { } // it came to its end in between
        })""" % (json.dumps(NODES), json.dumps(node("x", "ready", 1))))
    b.open(d.url)
    wait_until(lambda: b.text("#offline").isdigit(), what="the first answer")
    seen = []

    def looks_right():
        tile, group, nodes, row = b.get("""[document.getElementById("offline").textContent,
            document.querySelector("#groups td.offline").textContent, document.getElementById("nodes-note").textContent,
            document.getElementById("found").textContent]""")
        assert group == tile and nodes == tile + " ready" and tile in row, (tile, group, nodes, row)
        assert not seen or int(tile) >= seen[-1], "an older answer was shown after %d: %s" % (seen[-1], tile)
        seen.append(int(tile))
        return len(set(seen)) >= 6
    wait_until(looks_right, what="six answers")
    asked = b.run("return state.asked")
    assert not {"/v1/status", "/v1/nodes", "/v1/groups"} & set(asked), set(asked)


def test_a_node_that_cannot_see_links_to_one_that_can(env, browser):
    d = start(env, timeout="1h")
    b = browser()
    b.open(d.url)
    shows = 'document.getElementById("elsewhere").hidden ? null : document.getElementById("elsewhere").textContent'
    links = '[...document.querySelectorAll("#elsewhere a")].map((a) => [a.textContent, a.href])'
    nodes = [node("a", "ready", 131, self=True), node("b", "ready", 125, url="https://b.example:8731/"), node("c", "lost", 0)]
    answer_with(b, nodes)
    wait_until(lambda: len(shown(b)) == 3)
    assert b.get(shows) is None
    assert b.get('[...document.querySelectorAll("#node-list a")].map((a) => a.href)') == ["https://b.example:8731/"]
    b.run("state.says = { blind: true, blind_cause: 'link', blind_for_ms: 5000, starting: false, judges_in_ms: null }")
    wait_until(lambda: b.get(shows) == "This node cannot hear devices. Node b is ready.")
    assert b.get(links) == [["b", "https://b.example:8731/"]]
    b.run("await page.evaluate(() => { location.hash = '#/diagnostics'; })")
    wait_until(lambda: b.get(links) == [["b", "https://b.example:8731/#/diagnostics"]], what="the link to lead to the same view")
    # What stands in Redis may be anybody's: nothing but a web address is a link, and no address of another machine's own.
    for url in "javascript:alert(1)", "", None, 7, "http://u:p@b.example/", "ftp://b.example/", "x" * 9000:
        answer_with(b, [nodes[0], node("b", "ready", 125, url=url)])
        wait_until(lambda: b.get(shows) and "its address is not known" in b.get(shows) and b.get(links) == [],
                   what="no link to %r" % url)  # noqa: B023
    far = """import("./web/nodes.js").then((m) => m.pageOf({ url: "http://127.0.0.1:8731/" }, { hostname: "%s", hash: "" }))"""
    assert b.get(far % "a.example") is None and b.get(far % "localhost") == "http://127.0.0.1:8731/"
    answer_with(b, nodes)
    b.run("""state.says = { cluster: { mode: "standby", standing_by: true, owner: "b", owner_state: "ready" } }""")
    wait_until(lambda: b.get(shows) == "The owner's page shows the devices. Node b is ready.")
    b.run("state.says = {}")
    wait_until(lambda: b.get(shows) is None)
    d.stop()
    wait_until(lambda: b.get(shows) == "Another node may show the fleet. Node b is ready.", what="a stopped node's page to say so")
    assert b.get(links) == [["b", "https://b.example:8731/#/diagnostics"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone(env, browser, scheme):
    d = start(env, timeout="1h")
    env.beat("a-device-with-a-name-that-is-longer-than-a-phone-is-wide-" + "x" * 60, {"online": False})
    wait_until(lambda: d.status()["offline"] == 1)
    b = browser(viewport={"width": 360, "height": 780}, isMobile=True, hasTouch=True, deviceScaleFactor=2, colorScheme=scheme)
    b.open(d.url)
    wait_until(lambda: b.rows())
    assert b.get("document.documentElement.scrollWidth <= innerWidth")
    light = b.get('getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((c) => c > 200)')
    assert light == (scheme == "light")
    say_nothing(b)
