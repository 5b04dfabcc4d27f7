# SPDX-License-Identifier: MIT
"""Nodes that have different groups, as during a rolling reload: a node judges no device that it cannot hear. Such devices go to
a node that hears them, or are reported as unjudged, with their group."""
import re
import signal
import threading

import pytest

from hw_mqtt import Beating
from hw_nodes import preferred
from hw_wait import throughout, wait_until
from test_nodes_mirror import node, partition

N = 20
PUMPS = ["pump%d" % k for k in range(N)]
PLAIN = ["plain%d" % k for k in range(N)]


def pumps_group(env, filters="pumps", name="pumps", timeout="1s"):
    return "\n[group %s]\nheartbeat = %s/%s/{id}/heartbeat\nstatus = %s/pumps/{id}/status\ntimeout = %s\n" % (
        name, env.root, filters, env.root, timeout)


class Beats:
    """Pumps and plain devices that beat; some pumps can be stopped."""

    def __init__(self, env):
        self.env = env
        self.pumps = {d: Beating(env.publisher, ["%s/pumps/%s/heartbeat" % (env.root, d)]) for d in PUMPS}
        self.plain = env.beating(PLAIN)

    def __enter__(self):
        self.plain.__enter__()
        for b in self.pumps.values():
            b.__enter__()
        return self

    def stop(self, pump):
        self.pumps.pop(pump).__exit__(None, None, None)

    def __exit__(self, *args):
        for b in self.pumps.values():
            b.__exit__(*args)
        self.plain.__exit__(*args)


def owner_of(env, device):
    return (env.redis.hget(env.key("owners"), partition(device)) or " ").split(" ")[1]


def all_online(env, devices):
    return all(env.in_store(d) == "online" for d in devices)


def offline(env):
    """The devices that have an offline entry in the stream."""
    return sorted({e["id"] for e in env.events() if e["state"] == "offline"})


def reports(d, group, n):
    """Status, groups, metrics and heartwheelctl name the group and this number of unjudged devices."""
    s = d.status()
    g = [x for x in d.get("/v1/groups").json()["groups"] if x["name"] == group]
    return (s["unjudged"] == n and s["unjudged_groups"] == [group] and g and g[0]["unjudged"] == n
            and d.metrics().get("unjudged", group=group) == n
            and re.search(r"group '%s'(: unjudged: | is not configured, and .* cannot be judged)" % group, d.log())
            and "unjudged" in d.ctl("status").stdout and group in d.ctl("status").stdout)


OTHERS = {"lacks the group": lambda env: "", "has other filters": lambda env: pumps_group(env, "elsewhere")}


@pytest.mark.parametrize("how", OTHERS)
def test_the_node_that_hears_them_is_killed(env, how):
    """The other node owns all partitions, calls no device offline, and reports which devices it does not judge. When the first
    node is back, it finds a death."""
    a, b = (node(env, "%s-%s" % (env.node, k)) for k in "ab")
    b.rewrite(b.conf.read_text() + OTHERS[how](env))
    a.rewrite(a.conf.read_text() + pumps_group(env))
    for d in (a, b):
        d.start(seeing=False)
    with Beats(env) as beats:
        wait_until(lambda: all_online(env, PUMPS + PLAIN), 30, "all to be online, also in the partitions of the other")
        wait_until(lambda: all(owner_of(env, d) == a.node for d in PUMPS), 20, "the first to own the pumps")
        a.signal(signal.SIGKILL)
        a.wait()
        wait_until(lambda: all(owner_of(env, d) == b.node for d in PUMPS), 20, "the other to own the pumps")
        throughout(lambda: not offline(env), 4, "no device is called offline: %s" % offline(env))
        wait_until(lambda: reports(b, "pumps", N), 10, "the other to report them: %s" % b.status())
        shown = b.ctl("nodes").stdout
        assert "unjudged" in shown and "pumps" in shown, shown
        assert b.get("/v1/nodes").json()["nodes"][-1]["unjudged_groups"] == ["pumps"]
        beats.stop(PUMPS[0])
        throughout(lambda: not offline(env), 2.5, "nor one that has stopped, which it cannot know")
        a.start(seeing=False)
        wait_until(lambda: offline(env) == [PUMPS[0]], 30, "the first to find the death")
        throughout(lambda: offline(env) == [PUMPS[0]], 2.5, "and no other")
        wait_until(lambda: b.status()["unjudged"] == 0, 15, "the other to have nothing to report")
        assert "group 'pumps': all its devices are judged again" in b.log()


def test_a_rolling_reload(env):
    """A group is removed on one node and put back; then it is changed on one node after the other. No device that beats is
    called offline, and the node that hears a device reports its death meanwhile."""
    a, b = (node(env, "%s-%s" % (env.node, k)) for k in "ab")
    plain = a.conf.read_text(), b.conf.read_text()
    for d in (a, b):
        d.rewrite(d.conf.read_text() + pumps_group(env))
        d.start(seeing=False)
    with Beats(env) as beats:
        wait_until(lambda: all_online(env, PUMPS + PLAIN), 30)
        a.rewrite(plain[0])
        assert a.ctl("reload").returncode == 0
        throughout(lambda: not offline(env), 3, "no device is called offline: %s" % offline(env))
        wait_until(lambda: all(owner_of(env, d) == b.node for d in PUMPS), 20, "the node that hears them to own them")
        beats.stop(PUMPS[0])
        wait_until(lambda: offline(env) == [PUMPS[0]], 10, "a death to be told")
        a.rewrite(plain[0] + pumps_group(env))
        assert a.ctl("reload").returncode == 0
        wait_until(lambda: a.node in {owner_of(env, d) for d in PUMPS}, 30, "both to own some")
        throughout(lambda: offline(env) == [PUMPS[0]], 3, "no device is called offline: %s" % offline(env))
        for d, text in zip((a, b), plain):
            more = "\nheartbeat = %s/pumps/{id}/more\n" % env.root
            d.rewrite(text + pumps_group(env) + more)
            assert d.ctl("reload").returncode == 0
            throughout(lambda: offline(env) == [PUMPS[0]], 3, "no device is called offline: %s" % offline(env))
        beats.stop(PUMPS[1])
        wait_until(lambda: offline(env) == sorted(PUMPS[:2]), 15, "a death behind all that")
        assert a.status()["unjudged"] == b.status()["unjudged"] == 0


VALVES = ["v%d" % k for k in range(2 * N)]
GATEWAYS = ["g%d" % k for k in range(N)]


def family(env, filters="plant", valves="child_proves = yes\n"):
    """A group of gateways, and a group of valves behind them; `valves`: more lines of the latter, None: without it."""
    text = "\n[group gateways]\nheartbeat = %s/gw/{id}/up\nstatus = %s/family/{id}/status\ntimeout = 2s\n" % (env.root, env.root)
    if valves is not None:
        text += "\n[group valves]\nheartbeat = %s/%s/{gw}/{id}/up\nstatus = %s/family/{id}/status\ntimeout = 2s\nparent = {gw}\n%s" % (
            env.root, filters, env.root, valves)
    return text


LACKS = {"lacks the group": {"valves": None}, "has other filters": {"filters": "elsewhere"},
         "has other rules": {"valves": "parent_death = note\n"}}


@pytest.mark.parametrize("how", LACKS)
def test_gateways_that_only_one_node_can_prove(env, how):
    """A rolling reload adds the group of the gateways' children, or changes it, or removes it. Meanwhile only one node receives
    the children that prove their gateways. The other calls no gateway offline; the node that hears the children finds a death."""
    a, b = (node(env, "%s-%s" % (env.node, k), mqtt={"reconnect_grace": "500ms"}) for k in "ab")
    plain = {d: d.conf.read_text() for d in (a, b)}

    def configure(d, **keys):
        d.rewrite(plain[d] + family(env, **keys))

    def reload(d, **keys):
        configure(d, **keys)
        assert d.ctl("reload").returncode == 0

    configure(a)
    configure(b, **LACKS[how])
    for d in (a, b):
        d.start(seeing=False)
    valves = {g: Beating(env.publisher, ["%s/plant/%s/%s/up" % (env.root, g, v) for v in VALVES[k::N]], 0.3)
              for k, g in enumerate(GATEWAYS)}
    for beats in valves.values():
        beats.__enter__()
    try:
        wait_until(lambda: all_online(env, VALVES), 30, "the valves to be online")
        wait_until(lambda: b.node in {owner_of(env, g) for g in GATEWAYS}, 30, "the second to own some of the gateways")
        for g in GATEWAYS:
            env.publisher.publish("%s/gw/%s/up" % (env.root, g), b"", 1)
        wait_until(lambda: all_online(env, GATEWAYS), 10, "the gateways to be online")
        throughout(lambda: not offline(env), 10, "no device is called offline: %s" % offline(env))
        wait_until(lambda: all(owner_of(env, g) == a.node for g in GATEWAYS), 15, "the node that hears the valves to own them")
        assert "group 'gateways': unjudged" in b.log()
        valves.pop(GATEWAYS[0]).__exit__(None, None, None)
        dead = sorted([GATEWAYS[0]] + VALVES[0::N])
        wait_until(lambda: offline(env) == dead, 30, "the deaths to be found: %s" % offline(env))
        for d, keys in ((b, {}), (a, LACKS[how])):
            reload(d, **keys)
            throughout(lambda: offline(env) == dead, 8, "no other device is called offline: %s" % offline(env))
        wait_until(lambda: a.status()["unjudged"] == b.status()["unjudged"] == 0, 15)
    finally:
        for beats in valves.values():
            beats.__exit__(None, None, None)
    wait_until(lambda: set(GATEWAYS) <= set(offline(env)), 30, "all gateways to be offline: %s" % offline(env))


def test_of_two_timeouts_the_longer_one(env):
    """Of two timeouts the longer one applies, also after the node that has it is killed. The pumps beat more slowly than the
    shorter timeout, on purpose, so they are not among the devices whose gaps make a run void."""
    a, b = (node(env, "%s-%s" % (env.node, k)) for k in "ab")
    a.rewrite(a.conf.read_text() + pumps_group(env, timeout="6s"))
    b.rewrite(b.conf.read_text() + pumps_group(env, timeout="500ms"))
    for d in (a, b):
        d.start()
    wait_until(lambda: len(env.redis.hgetall(env.key("nodes"))) == 2)
    client, over = env.client(), threading.Event()

    def beat():
        while not over.wait(1.2):
            for p in PUMPS:
                client.publish("%s/pumps/%s/heartbeat" % (env.root, p), b"")
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        wait_until(lambda: all_online(env, PUMPS), 30)
        wait_until(lambda: {d.device(PUMPS[0])["timeout_ms"] for d in (a, b)} == {6000}, 10)
        throughout(lambda: not offline(env), 3, "no device is called offline: %s" % offline(env))
        a.signal(signal.SIGKILL)
        a.wait()
        wait_until(lambda: all(owner_of(env, d) == b.node for d in PUMPS), 20)
        throughout(lambda: not offline(env), 4, "no device is called offline: %s" % offline(env))
    finally:
        over.set()
        thread.join(10)
    wait_until(lambda: offline(env) == sorted(PUMPS), 20, "their deaths")


def test_a_standby_with_other_groups(env):
    """The standby takes the fleet only because no other node is there, calls no device offline, and gives the fleet back."""
    a, b = (node(env, "%s-%s" % (env.node, k)) for k in "ab")
    for d in (a, b):
        d.rewrite(d.conf.read_text().replace("mode = mirror", "mode = standby"))
    a.rewrite(a.conf.read_text() + pumps_group(env))
    a.start()
    with Beats(env) as beats:
        wait_until(lambda: all_online(env, PUMPS + PLAIN), 30)
        b.start(seeing=False)
        throughout(lambda: owner_of(env, PUMPS[0]) == a.node, 3, "the one that hears all keeps the fleet")
        a.signal(signal.SIGKILL)
        a.wait()
        wait_until(lambda: owner_of(env, PUMPS[0]) == b.node, 20, "the other to take over")
        b.wait_seeing()
        throughout(lambda: not offline(env), 4, "no device is called offline: %s" % offline(env))
        wait_until(lambda: reports(b, "pumps", N), 10, "it to report them: %s" % b.status())
        beats.stop(PUMPS[0])
        a.start(seeing=False)
        wait_until(lambda: owner_of(env, PUMPS[0]) == a.node, 20, "the fleet to go back")
        wait_until(lambda: offline(env) == [PUMPS[0]], 20, "the death to be found")
        throughout(lambda: offline(env) == [PUMPS[0]], 2.5, "and no other")


def owned_times(*nodes):
    return [d.log().count("this node owns the fleet") for d in nodes]


@pytest.mark.parametrize("how", ["kill", "reload"])
def test_a_standby_keeps_the_fleet_if_no_node_has_the_group(env, how):
    """A group is removed on both nodes. No node can judge its devices, so the fleet does not move because of them. Its owner
    judges the devices of the other group, and reports the rest as unjudged. The node that was killed first may own the fleet
    before the other node is ready again: then the fleet moves once, to the preferred owner."""
    a, b = (node(env, "%s-%s" % (env.node, k)) for k in "ab")
    plain = {}
    for d in (a, b):
        d.rewrite(d.conf.read_text().replace("mode = mirror", "mode = standby"))
        plain[d] = d.conf.read_text()
        d.rewrite(plain[d] + pumps_group(env))
        d.start(seeing=False)
    owner = preferred((a, b))
    with Beats(env):
        wait_until(lambda: all_online(env, PUMPS + PLAIN), 30)
        for d in (a, b):
            d.rewrite(plain[d])
            if how == "kill":
                d.signal(signal.SIGKILL)
                d.wait()
                d.start(seeing=False)
            else:
                assert d.ctl("reload").returncode == 0
        wait_until(lambda: owner_of(env, PUMPS[0]) == owner.node and owner.status()["unjudged"] == N, 40, "the owner to count them")
        wait_until(lambda: reports(owner, "pumps", N), 10, "the owner to report them")
        before = owned_times(a, b)
        throughout(lambda: owned_times(a, b) == before, 8, "the fleet stays where it is")
        throughout(lambda: not offline(env), 1, "no device is called offline: %s" % offline(env))
    wait_until(lambda: offline(env) == sorted(PLAIN), 20, "the deaths of the other group: %s" % offline(env))
    assert owned_times(a, b) == before and reports(owner, "pumps", N)


def test_one_monitor_whose_configuration_lost_a_group(env):
    """Its devices are not judged by another group's filters, neither after a reload nor after a restart."""
    d = env.configure(timeout="1s")
    plain = d.conf.read_text()
    d.rewrite(plain + pumps_group(env))
    d.start()
    with Beats(env):
        wait_until(lambda: all_online(env, PUMPS + PLAIN), 20)
        d.rewrite(plain)
        assert d.ctl("reload").returncode == 0
        throughout(lambda: not offline(env), 3, "no device is called offline: %s" % offline(env))
        wait_until(lambda: reports(d, "pumps", N), 10, "it to report them: %s" % d.status())
        d.stop()
        d.start()
        throughout(lambda: not offline(env), 3, "no device is called offline: %s" % offline(env))
        wait_until(lambda: reports(d, "pumps", N), 10, "it to report them: %s" % d.status())
        d.rewrite(plain + pumps_group(env))
        assert d.ctl("reload").returncode == 0
        wait_until(lambda: d.status()["unjudged"] == 0, 10)
        throughout(lambda: not offline(env), 2, "no device is called offline: %s" % offline(env))
    wait_until(lambda: offline(env) == sorted(PUMPS + PLAIN), 15, "all deaths")
