# SPDX-License-Identifier: MIT
"""heartwheelctl top, on terminals of several kinds and sizes."""
import os
import re
import signal

import pytest

from hw_build import HEARTWHEELCTL
from hw_nodes import Mirror
from hw_past import QUIET_TIMES
from hw_screen import Terminal
from hw_tasks import Sender, Tasks
from hw_wait import wait_until


@pytest.fixture
def top(env):
    """Starts top on a terminal; ends it with the test."""
    running = []

    def start(daemon, rows=24, columns=80, job=False, **environment):
        t = Terminal([str(HEARTWHEELCTL), "-s", str(daemon.socket), "top"], rows, columns, job, **dict({"TERM": "linux", "LC_ALL": "C.UTF-8"}, **environment))
        running.append(t)
        return t
    yield start
    for t in running:
        t.close()


@pytest.fixture
def fleet(env):
    d = env.daemon(groups=[("pumps", {"heartbeat": env.root + "/a/{id}", "timeout": "1h"}),
                           ("fans", {"heartbeat": env.root + "/b/{id}", "timeout": "1h"})], **QUIET_TIMES)
    for topic, payload in (("a/pump-1", b'{"battery":55,"version":"1.2"}'), ("a/pump-2", b'{"online":false}'),
                           ("b/fan-1", b"1")):
        env.publisher.publish("%s/%s" % (env.root, topic), payload)
    wait_until(lambda: d.status()["devices"] == 3 and d.status()["offline"] == 1)
    return d


def part(text, title):
    """The lines below a heading, up to the next heading."""
    lines = text.split("\n")
    at = next((i for i, l in enumerate(lines) if l.startswith(title)), len(lines))
    rest = lines[at + 1:]
    return rest[:next((i for i, l in enumerate(rest) if re.match(r"[A-Z]{4}|/| q ", l)), len(rest))]


def test_it_follows_the_fleet(env, fleet, top):
    t = top(fleet)
    text = t.shows("heartwheel  " + env.node, " watching", "devices 3   online 2   offline 1", "pump-2 (will)", "1 of 1", "LAST CHANGES", "q leave")
    assert len([l for l in part(text, "OFFLINE") if "pump-2" in l and " will " in l and " pumps" in l]) == 1
    wait_until(lambda: re.search(r"pumps +1 online +1 offline", t.text) and re.search(r"fans +1 online +0 offline", t.text))
    assert len([l for l in part(text, "LAST CHANGES") if re.search(r"\d +offline +pump-2 \(will\)", l)]) == 1
    # What happens comes by itself.
    env.publisher.publish(env.root + "/b/fan-1", b'{"online":false}')
    t.shows("offline 2", "1 of 2, newest first", "fan-1 (will)")
    wait_until(lambda: [l.split()[0] for l in part(t.text, "OFFLINE")[1:] if l] == ["fan-1", "pump-2"])
    # The choice stays on its device.
    t.type("down")
    t.shows("2 of 2")
    env.publisher.publish(env.root + "/a/pump-1", b'{"online":false}')
    t.shows("3 of 3")
    t.type("enter")
    t.shows("pump-2\n state        offline", "ITS CHANGES", "timeout      1h", without=["GROUPS", "battery"])
    t.type("up", "up")
    t.shows("pump-1\n state", "battery      55", "version      1.2")
    t.type("q")
    t.shows("1 of 3", "GROUPS")
    fleet.forget("fan-1")
    t.shows("1 of 2", "devices 2")
    # A filter; all devices.
    t.type("/", "PUMP-", "x", "backspace", "2")
    t.shows("OFFLINE, id contains PUMP-2", "/PUMP-2", "1 of 1")
    env.publisher.publish(env.root + "/a/pump-2", b"1")
    t.shows("No such device's id contains that.")
    t.type("enter", "a")
    text = t.shows("ALL DEVICES, id contains PUMP-2", "1 of 1", " q leave")
    assert any(re.match(r" pump-2 +online ", l) for l in part(text, "ALL DEVICES"))
    t.type("escape")
    t.shows("ALL DEVICES  ", "1 of 2")
    # Other sizes: nothing is in two places, nothing is cut that was not to be.
    t.resize(12, 40)
    text = t.shows("ALL DEVICES", "pump-2", "offline 1  online 1  devices 2", " q leave  / filter  Enter open", without=["REASON", "GROUP"])
    assert len(t.lines) == 12 and max(map(len, t.lines)) <= 40
    t.resize(24, 40)
    wait_until(lambda: re.search(r"^ pumps +1 offline$", t.text, re.M), what="the groups, with who is offline")
    t.resize(50, 160)
    text = t.shows("ALL DEVICES", "LAST SEEN", "GROUPS", "LAST CHANGES")
    assert any(re.search(r" pump-2 +online.* pumps  +now|pump-2 +online.* pumps +\d", l) for l in text.split("\n"))
    t.resize(2, 10)
    t.resize(24, 80)
    t.shows("ALL DEVICES", "LAST CHANGES")
    t.type("q")
    assert t.wait() == 0 and t.as_it_was()


@pytest.mark.parametrize("environment", [{"TERM": "vt100"}, {"NO_COLOR": "1"}, {"TERM": "vt100", "LC_ALL": "C"}, {}],
                         ids=["vt100", "NO_COLOR", "C", "colour"])
def test_every_terminal(env, top, environment):
    """Each state that a colour shows is also a word; ids cannot garble the screen."""
    d = env.daemon(timeout="1h", **QUIET_TIMES)
    ids = ["k\u00fchl-\u202etxt", "a" * 60 + "-tail-7", "plain"]
    for i in ids:
        env.beat(i, {"online": False})
    wait_until(lambda: d.status()["offline"] == 3)
    t = top(d, **environment)
    text = t.shows("offline 3", "\\u202etxt", "-tail-7", " plain", "LAST CHANGES")
    plain = environment.get("LC_ALL") == "C"
    assert ("k\\u00fchl-" if plain else "k\u00fchl-") in text and ("..." if plain else "\u2026") in text
    assert "\u202e".encode() not in t.raw and (not plain or max(t.raw) < 128)
    colours = re.findall(rb"\x1b\[(?:\d+;)*3[0-7][;m]", t.raw)
    assert bool(colours) == (not environment), colours
    t.type("q")
    assert t.wait() == 0 and t.as_it_was()


def test_a_terminal_that_cannot(env, fleet, top):
    t = top(fleet, TERM="dumb")
    t.shows("cannot draw on a terminal of type 'dumb'")
    assert t.wait() != 0 and t.as_it_was()


def test_bad_moments(env, top):
    """Blindness, a daemon that stops and returns, a mass death: top shows each and goes on."""
    env.own_broker()
    d = env.daemon(timeout="1h", **QUIET_TIMES)
    for k in range(1500):
        env.publisher.publish("%s/d%04d/heartbeat" % (env.root, k), b"")
    wait_until(lambda: d.status()["online"] == 1500)
    t = top(d)
    t.shows("No device is offline.", "devices 1,500")
    for k in range(1500):
        env.publisher.publish("%s/d%04d/heartbeat" % (env.root, k), b'{"online":false}')
    t.shows("offline 1,500", "1 of 1,500, newest first")
    wait_until(lambda: re.search(r"offline +[\d,]+ of default within \S+ \(will\)", t.text))
    t.type("end")
    t.shows("1000 of 1,500")
    env.broker.kill()
    t.shows("cannot hear devices: broker connection lost", without=[" watching"])
    d.stop()
    t.shows("heartwheeld has not answered for")
    env.broker.start()
    d.start()
    t.shows("\n watching\n", "offline 1,500")
    wait_until(env.publisher.client.is_connected)
    env.beat("d0007", qos=1)
    t.shows("offline 1,499", "online     d0007 (heartbeat)", "of 1,499")
    assert t.status is None


def test_nodes(env, top):
    """With several nodes: how many are ready, what this node owns, and in words how many are lost."""
    m = Mirror(env, 2)
    try:
        m.start()
        m.wait_shared()
        t = top(m.nodes[0], TERM="vt100", LC_ALL="C")
        t.shows("nodes 2 ready of 2; this node owns ", " of 256", "devices 0")
        m.crash(m.nodes[1])
        t.shows("; 1 lost", "this node owns 256 of 256", "nodes 1 ready of ")
        t.type("q")
        assert t.wait() == 0 and t.as_it_was()
    finally:
        m.close()


def test_tasks(env, top):
    """With heartwheel-tasks, wherever its socket is: how many tasks wait, in which states, and what is wrong, such as Redis."""
    env.own_redis()
    tasks = Tasks(env)
    d = env.daemon(timeout="1h", tasks={"socket": tasks.socket}, **QUIET_TIMES)
    t = top(d)
    t.shows("No device is known yet", without=["tasks"])
    tasks.start()
    alice = Sender(tasks)
    tasks.set_online("pump-2", False)
    alice.task(alice.submit("pump-2", "set"))
    alice.task(alice.submit("valve", "open", after=3600))
    t.shows("tasks 2 waiting  ", "  scheduled 1", "  held 1")
    env.redis_server.kill()
    t.shows("tasks ", "  redis: ", without=["redis: up"])
    env.redis_server.start()
    tasks.stop()
    t.shows("No device", without=["tasks"])
    assert t.status is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_ended_by_a_signal(fleet, top, number):
    t = top(fleet)
    t.shows("devices 3")
    assert not t.as_it_was()
    if number == signal.SIGINT:
        t.type("\x03")
    else:
        os.kill(t.pid, number)
    status = t.wait()
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number and t.as_it_was()


def test_stopped_and_continued(env, fleet, top):
    t = top(fleet, job=True)
    t.shows("devices 3")
    t.type("\x1a")
    status = t.wait()
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTSTP and t.as_it_was()
    env.publisher.publish(env.root + "/b/fan-2", b'{"online":false}')
    wait_until(lambda: fleet.device("fan-2"))
    t.screen.reset()  # as if a shell had written there
    os.kill(t.pid, signal.SIGCONT)
    t.shows("devices 4", "fan-2", "GROUPS")
    assert not t.as_it_was()
    t.type("q")
    assert t.wait() == 0 and t.as_it_was()


def test_without_a_shell(fleet, top):
    """Without a shell no program could continue top, so it cannot be suspended; if the terminal goes away, top ends."""
    t = top(fleet)
    t.shows("devices 3")
    t.type("\x1a")
    t.screen.reset()
    t.shows("devices 3", "GROUPS")
    assert not t.as_it_was()
    t.hang_up()
    status = t.wait()
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGHUP


def test_where_there_is_no_place_for_it(fleet, top, tmp_path):
    r = fleet.ctl("top")
    assert r.returncode == 1 and "needs a terminal" in r.stderr and not r.stdout, r
    t = top(fleet, TERM="nonsense")
    assert os.WEXITSTATUS(t.wait()) == 1 and "top cannot draw on a terminal of type 'nonsense'" in t.text
    fleet.stop()
    t = top(fleet)
    assert os.WEXITSTATUS(t.wait()) == 1 and "is the daemon running?" in t.text.replace("\n", "") and t.as_it_was()


def test_the_time_zone_is_named(fleet, top):
    t = top(fleet, TZ="HWA+3")
    assert re.search(r" up \S+  \d\d:\d\d:\d\d HWA *\n", t.shows("offline 1", "LAST CHANGES") + "\n"), t.text
    t.type("enter")
    assert re.search(r"\d\d:\d\d:\d\d HWA", t.shows("ITS CHANGES", "last seen")), t.text


def test_what_has_no_room_is_left_out_and_not_cut(env, fleet, top):
    t = top(fleet, columns=40)
    t.shows("offline 1", "pump-2")
    t.type("enter")
    text = t.shows("ITS CHANGES", "last seen", "will")
    assert "\u2026" not in text and re.search(r"since +\d\d:\d\d:\d\d \(", text), text


def test_a_link_that_is_away_on_a_narrow_terminal(env, top):
    env.own_broker()
    d = env.daemon(timeout="1h", **QUIET_TIMES)
    with env.beating(["a"], 0.1):
        wait_until(lambda: d.status()["heartbeats_per_s"] > 1, what="heartbeats")
        env.broker.kill()
        d.wait_lost()
    t, wide = top(d, columns=40), top(d, columns=80)
    t.shows("mqtt away", "redis up", "pending 0")
    wide.shows("the broker running?", "heartbeats 0.0/s")
    assert d.ctl("status").stdout.count("0.0 a second") == 1


def test_what_tasks_lack_comes_before_how_many_there_are(env, top):
    env.own_broker()
    tasks = Tasks(env).start()
    d = env.daemon(timeout="1h", tasks={"socket": tasks.socket}, **QUIET_TIMES)
    Sender(tasks).submit("valve-3", "open", after=3600)
    wait_until(lambda: tasks.get("/v1/tasks/status").json()["waiting"] == 1, what="it to be counted")
    env.broker.kill()
    d.wait_lost()
    top(d, columns=40).shows("tasks 1 waiting  mqtt: away")
    top(d, columns=80).shows("tasks 1 waiting  mqtt: away  scheduled 1")


def test_names_of_the_inventory_stand_after_the_ids(env, fleet, top):
    body = b"id,name\npump-2,Boiler house\n"
    assert fleet.request("PUT", "/v1/inventory", body, {"Content-Type": "text/csv"}).status == 200
    wait_until(lambda: fleet.device("pump-2").get("name") == "Boiler house")
    text = top(fleet).shows("pump-2  Boiler house")
    assert len([l for l in part(text, "OFFLINE") if "pump-2  Boiler house" in l and " will " in l]) == 1
