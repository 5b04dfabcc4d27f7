# SPDX-License-Identifier: MIT
"""heartwheel-alert and the servers of its receivers are killed at random moments while devices come and go: no end is lost, and
a repeated message has the same key and content; with Redis, and with a state file. HW_ROUNDS: the number of kills of
heartwheel-alert, and of servers; `make faults-alert` makes 100 of each."""
import collections
import contextlib
import email
import json
import os
import random
import re
import threading
import time

import pytest

from hw_alert import Alert, Inbox, see, set_online
from hw_env import NO_STALL, NO_STANDSTILL
from hw_hook import Hook
from hw_send import Alertmanager, Exim
from hw_wait import NotWithin, throughout, wait_until

ROUNDS = int(os.environ.get("HW_ROUNDS", "12"))
DEVICES = ["d%d" % k for k in range(9)]  # two news of each fit into the 20 lines of a message
BEGIN, END = re.compile(r"device (d\d) of group default is offline"), re.compile(r"device (d\d) of group default was offline")


class Servers:
    """The installed servers: {receiver: server}, the messages that each receiver got, and the sections of monitor.conf."""

    def __init__(self, env):
        self.env, self.of, self.keys = env, {}, {}
        self.inbox = Inbox(env)
        self.keys["ops"] = self.inbox.receiver()
        for name in ("webhook", "ntfy"):
            self.add(name + "s", Hook(env.own_dir(name)), {"type": name, **({"text": "{list}"} if name == "ntfy" else {})})
        if Alertmanager.program:
            self.add("am", Alertmanager(env.own_dir("am"), "http://127.0.0.1:1"), {"type": "alertmanager"})
        if Exim.program and os.geteuid() == 0:
            nothing = env.dir / "nothing"
            nothing.write_text("")
            exim = Exim(env.own_dir("mail"), nothing, nothing, must_authenticate=False, offers_tls=False)
            exim.url = "smtp://127.0.0.1:%d" % exim.port
            self.add("post", exim, {"type": "smtp", "text": "{list}", "mail_from": "hub@example.org", "mail_to": "ops@example.org"})

    def add(self, name, server, keys):
        self.of[name] = server.start()
        self.keys[name] = {"interval": "100ms", "url": server.url, **keys}
        self.env.servers.append(server)

    def messages(self, name):
        """{number: content} of a receiver's messages. A repetition must have the same content."""
        found = {}
        for key, content in self.received(name):
            assert key.startswith(name + "-"), key
            assert found.setdefault(int(key.rsplit("-", 1)[1]), content) == content, "%s came with another content" % key
        return found

    def received(self, name):
        if name == "ops":
            return [(k, m) for k, m in self.inbox.tries()]
        if name == "post":
            mails = [email.message_from_bytes(m) for m in self.of["post"].mails()]
            return [(m["Message-ID"].split(".")[1], m.get_payload(decode=True).decode()) for m in mails]
        return self.of[name].posts()

    def news(self, name):
        """[(whether it begins, incident or device)] in the order of the messages."""
        found = []
        for _, content in sorted(self.messages(name).items()):
            if name in ("ops", "webhooks"):
                message = json.loads(content) if name == "webhooks" else content
                found += [(n["what"] == "opened", n["incident"]["id"]) for n in message["news"]]
                continue
            assert "more" not in content, content
            # A message may have the end of one incident of a device and the begin of the next one.
            lines = content.splitlines()
            found += [(False, m[1]) for m in map(END.match, lines) if m]
            found += [(True, m[1]) for m in map(BEGIN.match, lines) if m]
        return found


def check(news):
    """Each begin has one end after it. Returns the number of begins."""
    open_now = collections.Counter()
    for begins, name in news:
        open_now[name] += 1 if begins else -1
        assert 0 <= open_now[name] <= 1, "%s %s" % (name, "began twice" if begins else "ended without a begin, or twice")
    return sum(begins for begins, _ in news)


class Written:
    """Transitions that the test writes into Redis in place of heartwheeld."""

    def __init__(self, env):
        self.env = env
        self.see()

    def alert(self, receivers):
        return Alert(self.env, receivers=receivers, mass=0, flap_start=0)

    def set_online(self, device, online):
        set_online(self.env, device, online)

    def see(self):
        see(self.env)

    def at_the_end(self):
        assert not self.env.redis.zcard(self.env.key("incidents"))


class Heard:
    """A heartwheeld without Redis. It gets a heartbeat or a goodbye of a device."""

    def __init__(self, env):
        self.env, env.check_events = env, False
        env.own_redis(start=False)
        group = {"heartbeat": env.root + "/{id}/up", "goodbye": env.root + "/{id}/down x", "timeout": "1h"}
        self.daemon = env.daemon(monitor=NO_STALL, mqtt=NO_STANDSTILL, store={"type": "memory"}, groups=[("default", group)])
        for device in DEVICES:
            self.set_online(device, True)
        wait_until(lambda: self.daemon.status()["online"] == len(DEVICES))

    def alert(self, receivers):
        return Alert(self.env, receivers=receivers, mass=0, flap_start=0, memory=self.daemon.socket)

    def set_online(self, device, online):
        self.env.beat(device, b"x", 1, "up" if online else "down")

    def see(self):
        pass

    at_the_end = see


class Churn:
    """Devices that stop and return, in a thread."""

    def __init__(self, fleet, rng):
        self.fleet, self.rng, self.offline, self.stopping = fleet, rng, set(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopping.is_set():
            device = self.rng.choice(DEVICES)
            self.fleet.set_online(device, device in self.offline)
            self.offline ^= {device}
            self.fleet.see()
            self.stopping.wait(self.rng.uniform(0.02, 0.25))

    def stop(self):
        self.stopping.set()
        self.thread.join()


def pass_some(rng, least, most):
    time.sleep(rng.uniform(least, most))


def kill_some(alert, servers, rng):
    """Kills heartwheel-alert once and a server once, in random order; either may still be away when the other one is killed."""
    name = rng.choice(sorted(servers.of))
    server, away = servers.of[name], rng.uniform(0, 0.8)
    first = rng.random() < 0.5
    for k in (first, not first):
        pass_some(rng, 0.02, 0.5)
        if k:
            alert.die()
            alert.awaited = True
            pass_some(rng, 0, 0.2)
            alert.start(ready=False)
        else:
            server.kill()
            if rng.random() < 0.5:
                time.sleep(away)
                server.start()
    if not server.alive:
        server.start()
    return name


@pytest.mark.parametrize("kind", [Written, Heard])
def test_kills_at_random_moments(env, kind):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    servers, fleet = Servers(env), kind(env)
    a = fleet.alert(servers.keys).start()
    churn, killed = Churn(fleet, random.Random(seed + 1)), collections.Counter()
    try:
        for _ in range(ROUNDS):
            killed[kill_some(a, servers, rng)] += 1
    finally:
        churn.stop()
    wait_until(a.ready, 20, "the last run to work")
    shown = servers.of.get("am")
    if shown and churn.offline:
        fleet.see()
        wait_until(lambda: {x["labels"]["incident"] for x in shown.alerts()} == {i["id"] for i in a.incidents()}, 90,
                   "Alertmanager to have the open incidents")
    for device in sorted(churn.offline):
        fleet.set_online(device, True)
    fleet.see()

    names = [n for n in servers.keys if n != "am"]

    def counts(of_begins):
        return {n: sum(b == of_begins for b, _ in servers.news(n)) for n in names}

    def is_over():
        fleet.see()
        return a.incidents() == [] and not any(r["waiting"] for r in a.json("/v1/receivers")["receivers"])
    with contextlib.suppress(NotWithin):  # a lost end is no matter of time
        wait_until(lambda: is_over() and counts(True) == counts(False), 90)
    begins = {n: check(servers.news(n)) for n in names}
    assert counts(False) == begins and min(begins.values()) > ROUNDS / 2, (begins, counts(False))
    if shown:
        wait_until(lambda: shown.alerts() == [], 90, "no alert of Alertmanager to be left")
    tries = {n: len(servers.received(n)) - len(servers.messages(n)) for n in names}
    print("%s: %d kills of heartwheel-alert; of servers %s; incidents sent %s; messages %s, repeated %s" % (
        kind.__name__, ROUNDS, dict(killed), begins, {n: len(servers.messages(n)) for n in names}, tries))
    fleet.at_the_end()
    throughout(is_over, 0.5)
