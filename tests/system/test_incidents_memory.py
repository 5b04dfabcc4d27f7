# SPDX-License-Identifier: MIT
"""heartwheel-alert without Redis: [store] type = memory. It follows heartwheeld's events, and keeps its state in a file."""
import os
import random
import time

import pytest

from hw_alert import Alert, Inbox
from hw_env import NO_STALL, NO_STANDSTILL
from hw_herd import Herd
from hw_wait import pass_time, wait_until

CHILDREN = ["c%d" % k for k in range(4)]
ROUNDS = int(os.environ.get("HW_ROUNDS", "6"))


class Site:
    """A gateway with children, heartwheeld without Redis, and heartwheel-alert."""

    def __init__(self, env, **alert):
        env.check_events = False
        env.own_redis(start=False)
        self.env, self.inbox = env, Inbox(env)
        groups = [("gateways", {"heartbeat": env.root + "/gw/{id}/up", "status": env.root + "/gw/{id}/state", "timeout": "2s"}),
                  ("valves", {"heartbeat": env.root + "/{gw}/v/{id}/up", "status": env.root + "/valves/{id}/state", "timeout": "2s",
                              "parent": "{gw}"})]
        self.daemon = env.daemon(monitor=NO_STALL, mqtt=NO_STANDSTILL, store={"type": "memory"}, groups=groups)
        self.alert = Alert(env, receivers={"ops": self.inbox.receiver()}, memory=self.daemon.socket, **alert)
        self.state_file = self.alert.state_file

    def topic(self, name):
        return self.env.root + ("/gw/%s/up" % name if name.startswith("g") else "/g1/v/%s/up" % name)

    def begin(self):
        self.alert.start()
        self.herd = Herd(self.env.broker.port, self.topic, ["g1", *CHILDREN], interval=0.25)
        self.env.gaps.append(self.herd.gaps)
        self.herd.thread.start()
        self.start("g1", *CHILDREN)
        pass_time(0.6)
        return self

    def stop(self, *names):
        self.herd.kill(*names)
        self.wait_state("offline", *names)

    def start(self, *names):
        self.herd.revive(*names)
        self.wait_state("online", *names)

    def wait_state(self, state, *names):
        wait_until(lambda: not [n for n in names if self.daemon.state(n) != state], what="%s to be %s" % (names, state))


@pytest.fixture
def site(env):
    made = []

    def make(**options):
        made.append(Site(env, **options))
        return made[-1]
    yield make
    for s in made:
        if hasattr(s, "herd"):
            s.herd.stop()


def test_a_gateway_stops_and_returns(site):
    s = site().begin()
    before = s.alert.wake_ups()
    pass_time(3)
    assert s.alert.wake_ups() - before < 90
    s.stop("g1", *CHILDREN)
    s.inbox.wait(("opened", "g1"))
    [i] = wait_until(lambda: [i for i in s.alert.incidents() if i["unreachable"] == 4], what="all members")
    assert i["device"] == "g1"
    s.start("g1", *CHILDREN)
    s.inbox.wait(("opened", "g1"), ("closed", "g1"))
    assert s.alert.json("/v1/status")["redis"] == "off"
    [closed] = s.alert.incidents("?state=closed")
    assert closed["id"] == i["id"]
    assert [m["class"] for m in s.alert.json("/v1/incidents/" + i["id"])["members"]] == []


def test_the_api_of_heartwheeld_passes_on(env, site):
    """Acknowledgements and silences are still there after a kill; the history of events is too."""
    s = site()
    s.daemon.edit("[http]", "[alert]\nsocket = %s\n[http]" % s.alert.socket)
    s.daemon.stop()
    s.daemon.start()
    s.begin()
    s.stop("c0")
    s.inbox.wait(("opened", "c0"))
    [i] = s.daemon.get("/v1/incidents").json()["incidents"]
    assert s.daemon.request("POST", "/v1/incidents/%s/ack" % i["id"], {"by": "anna", "note": "I go"}).status == 204
    silence = s.daemon.request("POST", "/v1/silences", {"match": "id:c1", "until_online": True, "by": "anna"})
    assert silence.status == 201
    s.alert.die()
    s.alert.start()
    [i] = s.alert.incidents()
    assert i["by"] == "anna", i
    assert [x["id"] for x in s.alert.json("/v1/silences")["silences"]] == [silence.json()["id"]]
    s.start("c0")
    s.inbox.wait(("opened", "c0"), ("acknowledged", "c0"), ("closed", "c0"))


def test_heartwheeld_restarts_while_a_gateway_is_offline(site):
    """heartwheeld has lost its transitions, and knows of the devices only what the broker retains. The incident stays, with the
    children behind their gateway, and ends once. The same after heartwheel-alert was killed at the same time."""
    s = site().begin()
    s.stop("g1", *CHILDREN)
    s.inbox.wait(("opened", "g1"))
    for both in (False, True):
        wait_until(lambda: [i for i in s.alert.incidents() if i["unreachable"] == 4], what="all members")
        s.daemon.die()
        if both:
            s.alert.die()
        s.daemon.start()
        if both:
            s.alert.start()
        wait_until(lambda: s.alert.log().count("the list of heartwheeld's offline devices was read") >= 2 + both, what="the devices to be listed")
        s.wait_state("offline", "g1", *CHILDREN)
    wait_until(lambda: [i for i in s.alert.incidents() if i["unreachable"] == 4], what="all members")
    assert s.inbox.news() == [("opened", "g1")], s.inbox.news()
    s.start("g1", *CHILDREN)
    s.inbox.wait(("opened", "g1"), ("closed", "g1"))


def test_a_gateway_stops_while_heartwheeld_restarts(site):
    """heartwheeld knows the parents of the devices from their retained statuses, before any heartbeat names them."""
    s = site().begin()
    s.daemon.die()
    s.herd.kill("g1", *CHILDREN)
    s.daemon.start()
    s.wait_state("offline", "g1", *CHILDREN)
    wait_until(lambda: [i for i in s.alert.incidents() if i["unreachable"] == 4], what="all members")
    s.inbox.wait(("opened", "g1"))
    s.start("g1", *CHILDREN)
    s.inbox.wait(("opened", "g1"), ("closed", "g1"))


def test_heartwheeld_is_away(site):
    s = site(blind_after="2s").begin()
    s.daemon.die()
    s.inbox.wait(("opened", "blind"))
    [i] = s.alert.incidents()
    assert i["sentence"].startswith("no monitor has received the fleet's messages since "), i
    s.daemon.start()
    s.inbox.wait(("opened", "blind"), ("closed", "blind"))


@pytest.mark.parametrize("text", ["", "{", '{"keys":[]}\n', '{"heartwheel_alert_state":2,"keys":[]}', '{"heartwheel_alert_state":1,"keys":[["SET",1]]}',
                                  "cut"])
def test_a_state_file_that_is_damaged_is_not_used(site, text):
    """It is left as it is, and named."""
    s = site()
    s.alert.start()
    s.alert.stop()
    if text == "cut":
        text = s.state_file.read_text().splitlines()[0][:-20]
    is_refused(s, text)
    s.state_file.unlink()
    s.alert.start()


def is_refused(s, text):
    s.state_file.write_text(text)
    s.alert.spawn([s.alert.program, "-f", "-c", s.alert.conf])
    assert s.alert.wait(10) == 1
    assert "cannot start: %s is damaged, or no state of heartwheel-alert" % s.state_file in s.alert.log()
    assert s.state_file.read_text() == text


def test_a_write_appends_its_changes(site):
    """The file is the same one with a line more. A last line that a crash has cut is ignored; another wrong line is not. When
    the changes are more than all keys and a megabyte, there is a new file."""
    s = site().begin()
    inode, before = s.state_file.stat().st_ino, s.state_file.read_text()
    n = len(before.splitlines())
    s.stop("c0")
    s.inbox.wait(("opened", "c0"))
    [i] = s.alert.incidents()
    assert s.state_file.stat().st_ino == inode
    s.alert.die()
    text = s.state_file.read_text()
    lines = text.splitlines()
    assert len(lines) > n and text.startswith(before)
    is_refused(s, "\n".join([*lines[:n], lines[n][:-1], *lines[n + 1:], "[]"]) + "\n")
    for end in ('[["DEL"', '[["DEL"\n', "[[\0\0\0]]\n"):
        s.state_file.write_text(text + end)
        s.alert.start()
        assert [x["id"] for x in s.alert.incidents()] == [i["id"]]
        s.alert.die()
    s.alert.start()
    inode = s.state_file.stat().st_ino
    longest = 0
    for _ in range(600):
        made = s.alert.request("POST", "/v1/silences", {"match": "id:x", "until_online": True, "reason": "r" * 1000})
        assert made.status == 201
        assert s.alert.request("DELETE", "/v1/silences/" + made.json()["id"]).status == 204
        longest = max(longest, s.state_file.stat().st_size)
        if s.state_file.stat().st_ino != inode:
            break
    assert s.state_file.stat().st_ino != inode and 1 << 20 < longest < 1.2 * (1 << 20), longest
    s.start("c0")
    s.inbox.wait(("opened", "c0"), ("closed", "c0"))
    s.alert.die()
    s.alert.start()
    assert s.alert.incidents() == [] and s.alert.json("/v1/silences")["silences"] == []


def test_one_instance_alone_uses_the_file(site):
    s = site()
    s.alert.start()
    other = Alert(s.env, memory=s.daemon.socket, state_file=s.state_file)
    other.spawn([other.program, "-f", "-c", other.conf])
    assert other.wait(10) == 1
    assert "another heartwheel-alert uses %s" % s.state_file in other.log()
    assert s.alert.ready()


@pytest.mark.parametrize("fault", ["full", "folder"])
def test_a_state_file_that_cannot_be_written(site, fault):
    """Nothing is sent that is not stored, except that this is so. When the file can be written again, each message is sent once."""
    s = site(blind_after="2s").begin()
    fresh = s.state_file.with_suffix(".json.new")
    s.state_file.unlink()  # no change can be appended
    if fault == "full":
        fresh.symlink_to("/dev/full")  # for one try
    else:
        fresh.mkdir()
    s.stop("c0")
    if fault == "full":
        s.inbox.wait(("opened", "c0"))
        assert "cannot be written: No space left on device" in s.alert.log()
    else:
        s.inbox.wait(("opened", "blind"))
        assert s.inbox.messages()[0]["news"][0]["incident"]["sentence"].startswith("heartwheel-alert could not store its state")
        a = s.alert.get("/readyz")
        assert a.status == 503 and b"alert.json cannot be written: Is a directory" in a.body, a.body
        fresh.rmdir()
        s.inbox.wait(("opened", "blind"), ("closed", "blind"), ("opened", "c0"))
    s.start("c0")
    wait_until(lambda: s.inbox.news()[-1] == ("closed", "c0"))
    assert s.inbox.news().count(("opened", "c0")) == 1


def test_kills(site):
    """heartwheel-alert and heartwheeld are killed at random moments while devices come and go. Each begin has one end, and a
    repeated message has the same key and content. HW_ROUNDS: the number of kills."""
    s = site().begin()
    seed = int(os.environ.get("HW_SEED") or time.time_ns() % 1_000_000)
    print("HW_SEED=%d" % seed)
    rng = random.Random(seed)
    names = ["g1", *CHILDREN]
    away = {"g1"}
    s.herd.kill("g1")
    wait_until(s.inbox.tries, what="a message of the first incident: later ones may wait for the gateway")
    for _ in range(ROUNDS):
        for n in names:
            if rng.random() < 0.3:
                (s.herd.revive if n in away else s.herd.kill)(n)
                away ^= {n}
        for program in rng.sample([s.alert, s.daemon], rng.choice([1, 1, 2])):
            pass_time(rng.uniform(0.1, 6))
            program.die()
            program.start(**({"ready": False} if program is s.alert else {"seeing": False}))
    s.start(*names)
    wait_until(lambda: s.alert.ready() and s.alert.incidents() == [], 90, "all incidents to close")
    wait_until(lambda: not [r for r in s.alert.json("/v1/receivers")["receivers"] if r.get("waiting")], what="all messages")
    pass_time(1)
    tries, by_key = s.inbox.tries(), {}
    for k, m in tries:
        assert by_key.setdefault(k, m) == m, k
    news = [(n["what"], n["incident"]["id"]) for m in by_key.values() for n in m["news"]]
    begun, ended = [i for what, i in news if what == "opened"], [i for what, i in news if what in ("closed", "merged")]
    assert len(set(begun)) == len(begun) and sorted(begun) == sorted(ended), (news, tries)
    assert begun
