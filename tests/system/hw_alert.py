# SPDX-License-Identifier: MIT
"""heartwheel-alert, a program and a web server that receive its messages, and devices that go offline."""
import itertools
import json
import os
import re
import time
from pathlib import Path

from hw_build import BUILD
from hw_daemon import render
from hw_program import Program
from hw_wait import PATIENCE, NotWithin, wait_until

HEARTWHEEL_ALERT = BUILD / "heartwheel-alert"
SMALL_COMMITS = BUILD / "tests" / "system" / "alert_small_commits"  # at most 50 items
_numbers = itertools.count(1)


class Alert(Program):
    """One instance. `options`: the keys of [alert]; `receivers` and `silences`: {name: {key: value}}. `memory`: the socket of a
    heartwheeld without Redis."""

    name, program = "heartwheel-alert", HEARTWHEEL_ALERT

    def __init__(self, env, node=None, receivers=None, silences=None, redis=None, notify=None, memory=None,
                 **options):
        super().__init__(env.own_dir("ha"))
        self.env, self.socket = env, self.dir / "a.sock"
        self.node = node or env.node
        self.state_file = self.dir / "alert.json"
        self.sections = [
            ("monitor", {"node_id": self.node}),
            ("redis", {"host": "127.0.0.1", "port": env.redis_server.port, "key_prefix": env.prefix, **(redis or {})}),
            ("tasks", {"key_prefix": "t%d:task:" % env.number}),
            ("alert", {"socket": self.socket, "pid_file": self.pid_file, "user": "", "log": "stderr", "log_level": "debug",
                       **options})]
        if memory:
            self.sections += [("store", {"type": "memory"}), ("http", {"socket": memory})]
            self.sections[3][1].setdefault("state_file", self.state_file)
        self.sections += [("notify", notify)] if notify else []
        self.sections += [("receiver " + n, keys) for n, keys in (receivers or {}).items()]
        self.sections += [("silence " + n, keys) for n, keys in (silences or {}).items()]
        self.write()
        env.daemons.append(self)

    def write(self):
        self.conf.write_text(render(self.sections))

    def start(self, ready=True, env=None):
        """Ready: the instance holds the lease and has loaded the state."""
        assert not self.alive
        self.spawn([self.program, "-f", "-c", self.conf], env=env)
        wait_until(lambda: not self.alive or self.answers(), what="heartwheel-alert to answer")
        if ready:
            wait_until(lambda: not self.alive or self.ready(), what="heartwheel-alert to work")
        assert self.alive, self.log()[-3000:]
        return self

    def wake_ups(self):
        """How often it has slept since its start."""
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", Path("/proc/%d/status" % self.pid).read_text(), re.M)[1])

    def ready(self):
        return self.answers("/readyz")

    def json(self, path):
        a = self.get(path)
        assert a.status == 200, (path, a.status, a.body)
        return json.loads(a.body)

    def incidents(self, query=""):
        return self.json("/v1/incidents" + query)["incidents"]

    def wait_open(self, n=1, timeout=PATIENCE):
        return wait_until(lambda: (lambda found: found if len(found) == n else None)(self.incidents()) or (n == 0 and
                          not self.incidents()), timeout, "%d open incidents" % n)


class Inbox:
    """A program of type exec that keeps each message. Each try has its own file, so that repetitions are seen."""

    def __init__(self, env, name="inbox", delay="0", code=0):
        self.dir = env.own_dir(name)
        self.code = self.dir / "code"
        self.code.write_text(str(code))
        self.path = self.dir / "hook"
        self.path.write_text(
            '#!/bin/sh\nf=$(mktemp %s/note.XXXXXX) && cat >"$f.part" && echo "$IDEMPOTENCY_KEY" >"$f.key"\nsleep %s\n'
            'code=$(cat %s)\n[ "$code" = 0 ] && mv "$f.part" "$f.json"\nexit "$code"\n' % (self.dir, delay, self.code))
        os.chmod(self.path, 0o755)

    def receiver(self, **more):
        return {"type": "exec", "program": self.path, "interval": "100ms", **more}

    def tries(self):
        """[(key, message)], the oldest first."""
        found = []
        for p in self.dir.glob("note.*.json"):
            try:
                found.append((p.stat().st_mtime_ns, p.with_suffix(".key").read_text().strip(), json.loads(p.read_text())))
            except (OSError, ValueError):
                continue
        return [(k, m) for _, k, m in sorted(found, key=lambda x: x[0])]

    def messages(self):
        """Each message once."""
        return list({k: m for k, m in self.tries()}.values())

    def news(self):
        """[(what, device or kind)], in order, each message once."""
        return [(n["what"], n["incident"].get("device") or n["incident"]["kind"]) for m in self.messages() for n in m["news"]]

    def ids(self, what):
        return [n["incident"]["id"] for m in self.messages() for n in m["news"] if n["what"] == what]

    def wait(self, *news, timeout=PATIENCE):
        try:
            wait_until(lambda: sorted(self.news()) == sorted(news), timeout)
        except NotWithin:
            raise NotWithin("not within %.0f s: the news %s; they are %s" % (timeout, news, self.news())) from None


def set_online(env, device, online, group="default", **more):
    """Writes what heartwheeld would write: the state, the index and the entry."""
    now = int(time.time() * 1000)
    seq = now + next(_numbers)
    more = {k: v for k, v in more.items() if v is not None}
    state = "online" if online else "offline"
    p = env.redis.pipeline(transaction=True)
    p.hset(env.key("state", device), mapping={
        "state": state, "since": now, "last_seen": now, "timeout": more.get("timeout_ms", 1000), "group": group,
        "node": env.node, "seq": seq, "reason": "heartbeat" if online else "timeout",
        **({"parent": more["parent"]} if more.get("parent") else {})})
    if online:
        p.zrem(env.key("offline"), device)
        p.delete(env.key("disconnected", device))
    else:
        p.zadd(env.key("offline"), {device: now})
        p.set(env.key("disconnected", device), device)
    p.xadd(env.key("events"), {
        "id": device, "state": state, "reason": "heartbeat" if online else "timeout", "time_ms": now, "last_seen_ms": now,
        "group": group, "node": env.node, "seq": seq, **more})
    p.execute()


def see(env, node=None):
    """Writes a sight record, as heartwheeld does each second."""
    env.redis.set(env.key("monitor", node or env.node), "00000000000000aa %d" % int(time.time() * 1000))


def begin_incident(env):
    """An instance that has sent the opening of one incident, of pump-7: (inbox, instance)."""
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()})
    see(env)
    a.start()
    set_online(env, "pump-7", False)
    inbox.wait(("opened", "pump-7"))
    return inbox, a
