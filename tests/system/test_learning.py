# SPDX-License-Identifier: MIT
"""Learned timeouts: in force, shown, kept over a restart and over a take-over."""
import re
import signal

import pytest

from hw_mqtt import Beating
from hw_relay import Relay
from hw_wait import throughout, wait_until
from test_nodes_deaf import DEVICES, USERS, Nodes
from test_nodes_mirror import Pair

LEARNS = {"learn": "yes", "timeout_min": "2s"}
SHOWS = {"learn": "show", "timeout_min": "2s"}
FIRST = "5s"  # four of these must be over before anything is learned


def is_learned(d, device):
    found = d.device(device)
    return found and found["timeout_from"] == "learned" and found


def test_a_learned_timeout_is_in_force(env):
    d = env.daemon(timeout=FIRST, group=LEARNS)
    with env.beating(["a"], 0.3):
        assert wait_until(lambda: d.device("a"))["timeout_from"] == "group"
        found = wait_until(lambda: is_learned(d, "a"))
        assert found["learned_ms"] == found["timeout_ms"] == 2000 and found["gaps_seen"] >= 8, found
        assert 250 <= found["median_gap_ms"] <= found["largest_gap_ms"], found
        # Redis gets what was learned with a refresh, long before the next transition.
        wait_until(lambda: env.hash("a").get("learned") == "2000")
        assert env.hash("a")["timeout"] == "2000" and len(env.hash("a")["gaps"]) == 40, env.hash("a")
        assert 0 < env.redis.pttl(env.key("connected", "a")) <= 10_000
    env.wait_store("a", "offline", timeout=10)
    entry = [e for e in env.events() if e["state"] == "offline"][-1]
    assert 2000 <= int(entry["time_ms"]) - int(entry["last_seen_ms"]) < 5000, entry


def test_a_burst_is_not_enough_to_learn_from(env):
    """A device that sends ten messages when it starts, and one that does so each time."""
    d = env.daemon(timeout="6s", group={"learn": "yes", "timeout_min": "1s"})
    for device in "ab":
        for _ in range(10):
            env.beat(device)
    for device in "ab":
        env.wait_store(device, "online")
    assert d.device("a")["timeout_from"] == "group"
    for _ in range(5):
        throughout(lambda: all(env.in_store(device) == "online" for device in "ab"), 3)
        env.beat("a")
        for _ in range(10):
            env.beat("b")
    assert not [e for e in env.events() if e["state"] == "offline"]
    assert all(8 <= d.device(device)["gaps_seen"] for device in "ab")


def test_show_decides_nothing(env):
    d = env.daemon(timeout=FIRST, group=SHOWS)
    with env.beating(["a"], 0.3):
        found = wait_until(lambda: (d.device("a") or {}).get("learned_ms") and d.device("a"))
        assert (found["learned_ms"], found["timeout_ms"], found["timeout_from"]) == (2000, 5000, "group")
    throughout(lambda: env.in_store("a") == "online", 3)
    env.beat("a")
    wait_until(lambda: d.device("a")["learned_mistakes"] == 1)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_what_was_learned_survives_a_restart(env, how):
    d = env.daemon(timeout=FIRST, group=LEARNS)
    with env.beating(["a", "b"], 0.3):
        for device in "ab":
            wait_until(lambda device=device: is_learned(d, device))
            wait_until(lambda device=device: env.hash(device).get("learned") == "2000")
        env.redis.hset(env.key("state", "b"), "gaps", "!" + env.hash("b")["gaps"][1:])  # as another version would write it
        getattr(d, how)()
    seen = d.device
    d.start()
    found = wait_until(lambda: is_learned(d, "a"))
    assert found["timeout_ms"] == 2000 and found["gaps_seen"] >= 8, found
    env.wait_store("a", "offline", timeout=20)
    assert seen("b")["timeout_from"] == "group" and seen("b")["gaps_seen"] == 0, seen("b")


def test_a_forgotten_device_begins_again(env):
    d = env.daemon(timeout=FIRST, group=LEARNS)
    with env.beating(["a"], 0.3):
        wait_until(lambda: is_learned(d, "a"))
    env.wait_store("a", "offline", timeout=20)
    assert d.forget("a").status == 204
    wait_until(lambda: not env.hash("a"))
    env.beat("a")
    found = wait_until(lambda: d.device("a"))
    assert (found["gaps_seen"], found["learned_ms"], found["timeout_from"]) == (0, 0, "group")
    assert "gaps" not in env.hash("a")


def test_a_reload_ends_learning(env):
    d = env.daemon(timeout=FIRST, group=LEARNS)
    with env.beating(["a"], 0.3):
        wait_until(lambda: is_learned(d, "a") and env.hash("a").get("gaps"))
        d.edit("learn = yes", "learn = no")
        assert d.request("POST", "/v1/reload").json()["changed"] == ["group default.learn"]
        found = d.device("a")
        assert found["timeout_ms"] == 5000 and found["timeout_from"] == "group" and "learned_ms" not in found, found
    env.beat("a", {"online": False})
    env.wait_store("a", "offline")
    assert "gaps" not in env.hash("a") and "learned" not in env.hash("a")


def test_a_renamed_group_keeps_what_was_learned(env):
    d = env.daemon(timeout=FIRST, group=LEARNS)
    with env.beating(["a"], 0.3):
        seen = wait_until(lambda: is_learned(d, "a"))["gaps_seen"]
        d.edit("[group default]", "[group other]")
        assert d.request("POST", "/v1/reload").status == 200
        found = wait_until(lambda: (d.device("a") or {}).get("group") == "other" and d.device("a"))
        assert found["timeout_from"] == "learned" and found["gaps_seen"] >= seen, found
    env.wait_store("a", "offline", timeout=10)
    entry = [e for e in env.events() if e["state"] == "offline"][-1]
    assert int(entry["time_ms"]) - int(entry["last_seen_ms"]) < 4500, entry


def test_a_node_that_takes_over_has_learned_too(env):
    pair = Pair(env, timeout=FIRST, group=LEARNS)
    devices = ["d%d" % k for k in range(16)]
    with env.beating(devices, 0.3):
        for d in pair.nodes:
            for device in devices:
                wait_until(lambda d=d, device=device: is_learned(d, device))
        a, b = pair.nodes
        lost = [device for device in devices if pair.owner(device) == a.node]
        assert lost
        a.signal(signal.SIGKILL)
        a.wait()
        wait_until(lambda: all(pair.owner(device) == b.node for device in devices))
        for device in devices:
            assert is_learned(b, device), b.device(device)
    for device in devices:
        env.wait_store(device, "offline", timeout=20)


def test_a_node_that_was_blind_takes_what_the_owner_has_learned(env):
    relay = Relay(lambda: env.broker.port)
    pair = Pair(env, timeout="2s", group={"learn": "yes", "timeout_min": "500ms"}, of={"b": {"mqtt": {"port": relay.port}}})
    a, b = pair.nodes
    devices = ["d%d" % k for k in range(16)]
    with env.beating(devices, 0.1):
        for d in pair.nodes:
            for device in devices:
                wait_until(lambda d=d, device=device: is_learned(d, device))
        relay.cut(silently=False)
        pair.wait_owned_by(a)
    with env.beating(devices, 1.5):  # the owner learns this, after two mistakes a device
        for device in devices:
            wait_until(lambda device=device: int(env.hash(device).get("learned", 0)) > 3000, timeout=30)
            env.wait_store(device, "online")
        relay.mend()
        pair.wait_settled(pair.nodes)
        assert any(pair.owner(device) == b.node for device in devices)
        throughout(lambda: all(env.hash(device)["state"] == "online" for device in devices), 5)
        assert not [e for e in env.events() if e["state"] == "offline" and e["node"] == b.node], env.events()
    relay.close()


def test_a_node_that_was_deaf_takes_what_the_owner_has_learned(env):
    with Nodes(env, "mirror", learn="yes", timeout_min="500ms") as n:
        owner, deaf = n.all
        for d in n.all:
            for device in DEVICES:
                wait_until(lambda d=d, device=device: is_learned(d, device))
        n.deafen(USERS[1])
        wait_until(lambda: set(n.owner_by_device()) == {owner.node}, 30)
        n.stop(DEVICES)
        with Beating(n.client, [env.topic(device) for device in DEVICES], 1.5):
            for device in DEVICES:
                wait_until(lambda device=device: int(env.hash(device).get("learned", 0)) > 3000, timeout=30)
                env.wait_store(device, "online")
            n.deafen()
            wait_until(lambda: set(n.owner_by_device()) == {owner.node, deaf.node}, 30)
            throughout(lambda: all(env.in_store(device) == "online" for device in DEVICES), 5)
        assert not [e for e in env.events() if e["state"] == "offline" and e["node"] == deaf.node], env.events()


def test_heartwheelctl_shows_what_is_learned(env):
    d = env.daemon(timeout=FIRST, group=SHOWS)
    with env.beating(["a"], 0.3):
        wait_until(lambda: (d.device("a") or {}).get("learned_ms"))
        env.beat("new")
        wait_until(lambda: d.device("new"))
        shown = d.ctl("show", "a").stdout
        assert re.search(r"^  timeout +5s$", shown, re.M) and re.search(r"^  learned +2s, not in force$", shown, re.M), shown
        assert re.search(r"^  gaps +\d+( or more)?: median \w+, largest \w+; 0 longer than the learned timeout$", shown, re.M), shown
        shown = d.ctl("show", "new").stdout
        assert "nothing yet: too few heartbeats" in shown and not re.search("^  gaps", shown, re.M), shown
        head, *rows = [line.split() for line in d.ctl("list", "--columns", "learned").stdout.splitlines()]
        assert head == ["ID", "STATE", "TIMEOUT", "FROM", "LEARNED", "MEDIAN", "LARGEST", "MISTAKES", "GROUP"], head
        by = {row[0]: row for row in rows}
        assert by["new"][1:] == ["online", "5s", "group", "-", "-", "-", "0", "default"], by
        assert by["a"][1:4] == ["online", "5s", "group"] and by["a"][4] == "2s" and by["a"][7:] == ["0", "default"], by
        listed = {one["id"]: one for one in d.get("/v1/devices").json()["devices"]}
        assert listed["a"]["learned_ms"] == 2000 and listed["new"]["learned_ms"] == 0
    for wrong, why in ((["--columns", "x"], "--columns must be 'learned'"), (["--columns", "learned", "--json"], "exclude each other"),
                       (["--columns", "learned", "--names"], "exclude each other")):
        answer = d.ctl("list", *wrong)
        assert answer.returncode == 2 and why in answer.stderr, answer
