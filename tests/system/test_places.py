# SPDX-License-Identifier: MIT
"""Ids that consist of several levels of a topic: devices of one name in two places, and ids with slashes everywhere."""
import subprocess

import pytest

from hw_build import HEARTWHEELD
from hw_wait import wait_until


def places(env, **keys):
    r = env.root
    return [("places", {"heartbeat": r + "/{site}/{id}/up", "goodbye": r + "/{site}/down/{id} now",
                        "id": "{site}/{id}", "status": r + "/told/{site}/{id}", "timeout": "1h", **keys})]


def say(env, *levels, payload=b"1"):
    env.publisher.publish("/".join((env.root,) + levels), payload, 1)


@pytest.mark.parametrize("store", ["redis", "memory"])
def test_two_places(env, store):
    """One name in two places is two devices: in Redis, in the API, for heartwheelctl and after a restart."""
    d = env.daemon(groups=places(env, id_prefix="p-"), store={"type": store}, mqtt={"homeassistant": "yes",
                   "homeassistant_prefix": env.root + "-ha"})
    observer = env.observer(env.root + "/told/#")
    say(env, "north", "lamp", "up")
    say(env, "south", "lamp", "up", payload=b'{"battery":7}')
    say(env, "", "lamp", "up")
    wait_until(lambda: d.state("p-south/lamp") == "online" and d.state("p-north/lamp") == "online")
    say(env, "north", "down", "lamp", payload=b"now")
    wait_until(lambda: d.state("p-north/lamp") == "offline")
    assert d.device("p-south/lamp")["state"] == "online" and d.device("p-south/lamp")["battery"] == 7
    assert d.status()["devices"] == 2 and d.metrics().get("refused_total", kind="id") == 1
    for place, online in (("north", False), ("south", True)):
        topic = "%s/told/%s/lamp" % (env.root, place)
        wait_until(lambda: observer.on(topic) and observer.on(topic)[-1].json()["online"] is online, 5, topic)
    if store == "redis":
        env.wait_store("p-north/lamp", "offline")
        assert env.redis.get(env.key("connected", "p-south/lamp")) == "p-south/lamp"
        assert env.hash("p-south/lamp")["group"] == "places"
        assert env.edges("p-north/lamp") == [("online", "heartbeat"), ("offline", "will")]
    wait_until(lambda: len(env.retained(env.root + "-ha/binary_sensor/+/config")) == 2, 5, "two sensors")
    shown = d.ctl("show", "p-north/lamp")
    assert shown.returncode == 0 and "offline" in shown.stdout
    assert d.ctl("list", "--prefix", "p-n").stdout.count("lamp") == 1
    d.stop()
    d.start()
    wait_until(lambda: d.state("p-north/lamp") == "offline" and d.state("p-south/lamp") == "online", 10)
    assert d.ctl("forget", "p-north/lamp").returncode == 0
    wait_until(lambda: not env.retained(env.root + "/told/north/lamp"), 5, "the status to be cleared")
    assert env.retained(env.root + "/told/south/lamp")
    assert d.device("p-north/lamp") is None and d.state("p-south/lamp") == "online"
    wait_until(lambda: len(env.retained(env.root + "-ha/binary_sensor/+/config")) == 1, 5, "one sensor")


def test_names_with_slashes(env):
    r = env.root
    d = env.daemon(groups=[("z", {"heartbeat": r + "/{id...}", "goodbye": r + "/{id...}/gone", "status": "told-%s/{id}/s" % r,
                                  "ignore": [r + "/{id...}/set", r + "/bridge/#"], "timeout": "1h"})])
    observer = env.observer("told-%s/#" % r)
    for name in ("a", "a/b", "a/b/c"):
        say(env, name)
    say(env, "bridge", "state")
    say(env, "x", "set")
    for empty in ("/a", "a/", "a//b"):
        say(env, empty)
    say(env, "last")
    wait_until(lambda: d.state("last") == "online")
    assert d.status()["devices"] == 4 and d.metrics().get("refused_total", kind="id") == 3
    assert [d.state(i) for i in ("a", "a/b", "a/b/c", "x", "x/set", "bridge/state")] == ["online"] * 3 + [None] * 3
    say(env, "a/b", "gone")
    wait_until(lambda: d.state("a/b") == "offline")
    topic = "told-%s/a/b/s" % r
    wait_until(lambda: observer.on(topic) and observer.on(topic)[-1].json()["online"] is False)
    assert d.state("a") == "online" and d.state("a/b/c") == "online"
    page = d.get("/v1/devices?prefix=a%2F").json()["devices"]
    assert [p["id"] for p in page] == ["a/b", "a/b/c"]


def test_reload_to_other_ids(env):
    r = env.root
    d = env.daemon(groups=[("g", {"heartbeat": r + "/+/{id}/up", "timeout": "1h", "status": r + "/told/{id}"})])
    say(env, "north", "lamp", "up")
    wait_until(lambda: d.state("lamp") == "online")
    d.edit("/+/{id}/up", "/{site}/{id}/up\nid = {site}/{id}")
    d.edit("/told/{id}", "/told/{site}/{id}")
    assert {"group g.id", "group g.heartbeat", "group g.status"} == set(d.request("POST", "/v1/reload").json()["changed"])

    def heard():
        say(env, "north", "lamp", "up")
        return d.state("north/lamp") == "online"
    wait_until(heard)
    wait_until(lambda: env.retained(r + "/told/north/lamp"))
    assert d.state("lamp") == "online"
    wait_until(lambda: d.status()["owed"] == 0)
    assert d.forget("lamp").status == 204
    wait_until(lambda: d.status()["owed"] == 0)


def check(tmp_path, text):
    conf = tmp_path / "monitor.conf"
    conf.write_text("[monitor]\nuser =\n" + text)
    return str(conf), subprocess.run([str(HEARTWHEELD), "-t", "-v", "-c", str(conf)], capture_output=True, text=True)


def test_warnings(tmp_path):
    conf, p = check(tmp_path, "[group a]\nheartbeat = s/+/{id}/hb\n[group b]\nheartbeat = s/x/{id}/hb\n"
                              "[group c]\nheartbeat = c/{id}/+\nignore = d/#\n[group d]\nheartbeat = d/{id}\n"
                              "goodbye = d/{id}/lwt\n")
    assert p.returncode == 0 and p.stdout.endswith("%s: ok\n" % conf)
    lines = p.stderr.splitlines()
    assert len(lines) == 3, lines
    assert lines[0].startswith("%s:3: section 'group a': warning: 's/+/{id}/hb': two devices" % conf)
    assert lines[1].startswith("%s:5: section 'group b': warning: never matches: [group a]" % conf)
    assert lines[2].startswith("%s:10: section 'group d': warning: never matches: [group c]" % conf)


def test_one_status_topic_for_two_devices_is_warned_of(tmp_path):
    """An id_prefix makes the ids differ, but not the topics of the statuses."""
    conf, p = check(tmp_path, "[group a]\nheartbeat = a/{id}\n[group b]\nheartbeat = b/{id}\nid_prefix = b-\n"
                              "[group c]\nheartbeat = c/{id}\nid_prefix = c-\nstatus = c/{id}/told\n"
                              "[group d]\nheartbeat = d/{id}\nid_prefix = d-\nstatus =\n[group e]\nheartbeat = e/{id}\n"
                              "status =\n[group f]\nheartbeat = f/{id}\n")
    lines = p.stderr.splitlines()
    assert p.returncode == 0 and len(lines) == 2, lines
    assert lines[0].startswith("%s:5: section 'group b': warning: has the status topic of [group a]" % conf)
    assert lines[1].startswith("%s:19: section 'group f': warning: has the status topic of [group b]" % conf)


def test_nothing_to_warn_of(tmp_path):
    conf, p = check(tmp_path, "[group a]\nheartbeat = s/{id}/+\n[group b]\nheartbeat = s/{id}\nheartbeat = s/{id}/x\n"
                              "[group c]\nheartbeat = s/{id}/#\n")
    assert p.returncode == 0 and p.stderr == "", p.stderr
    printed = p.stdout[:p.stdout.rindex(conf)]
    assert "[group b]\npreset =\nheartbeat = s/{id}\nheartbeat = s/{id}/x\n" in printed
    _, again = check(tmp_path, printed.replace("[monitor]\n", "", 1).replace("user =\n", "", 1))
    assert again.returncode == 0 and again.stdout[:again.stdout.rindex(conf)] == printed


@pytest.mark.parametrize("group,line,key", [
    ("heartbeat = a/{id}/{floor}\n", 4, "heartbeat"), ("heartbeat = a/{id}\nid = {site}/{id}\n", 4, "heartbeat"),
    ("heartbeat = a/{id}\nid = x-{id}\n", 5, "id"), ("heartbeat = a/{s}/{id}\nid = {s}/{id}\nstatus = a/{id}\n", 6, "status"),
    ("heartbeat = a/{id}\ngoodbye = a/lwt off\n", 5, "goodbye"), ("heartbeat = a/{id...}\nignore = {what}\n", 5, "ignore"),
    ("heartbeat = a/{x}\nid = fixed\n", 4, "heartbeat"), ("heartbeat = a/{id...}/#\n", 4, "heartbeat"),
    ("heartbeat = a/{id}\nwhile = $share/x/t 1\n", 5, "while")])
def test_wrong_names(tmp_path, group, line, key):
    conf, p = check(tmp_path, "[group g]\n" + group)
    assert p.returncode == 2
    assert p.stderr.startswith("%s:%d: key '%s': " % (conf, line, key)) and p.stderr.count("\n") == 1, p.stderr
