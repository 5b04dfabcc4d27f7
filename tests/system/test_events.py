# SPDX-License-Identifier: MIT
"""The event stream for consumers that must not miss a transition: a consumer group one of whose consumers dies, and the
procedure of docs/events.md for that, word for word."""
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

from hw_build import SRC
from hw_wait import wait_until

# A consumer as docs/events.md describes it. It acknowledges what it has handled, which is to write the entry's id to a file of
# its own; told to hold, it takes entries and handles none.
CONSUMER = textwrap.dedent("""
    import sys, redis
    port, stream, group, name, how, out = sys.argv[1:]
    r = redis.Redis("127.0.0.1", int(port), decode_responses=True)
    done = open(out, "a", buffering=1)
    def handle(entries):
        for entry, fields in entries:
            done.write("%s %s %s %s\\\\n" % (entry, fields["id"], fields["state"], fields["seq"]))
            if how != "hold":
                r.xack(stream, group, entry)
    while True:
        if how == "heir":
            start = "0-0"
            while True:
                start, entries, _ = r.xautoclaim(stream, group, name, min_idle_time=300, start_id=start, count=10)
                handle(entries)
                if start == "0-0":
                    break
        for _, entries in r.xreadgroup(group, name, {stream: ">"}, count=10, block=100):
            handle(entries)
""").replace("\\\\n", "\\n")


class Consumer:
    def __init__(self, env, name, how):
        self.out = env.dir / ("%s.txt" % name)
        self.out.touch()
        self.proc = subprocess.Popen([sys.executable, "-c", CONSUMER, str(env.redis_server.port), env.key("events"),
                                      "alerts", name, how, str(self.out)])

    def entries(self):
        return [l.split() for l in self.out.read_text().splitlines() if l.count(" ") == 3]

    def kill(self):
        self.proc.kill()
        assert self.proc.wait(10) == -signal.SIGKILL, "the consumer had died by itself"


def told(env):
    return {(e["id"], e["state"], e["seq"]) for e in env.events()}


def test_a_consumer_that_dies_with_entries_in_its_hands(env):
    env.own_redis()
    env.redis.xgroup_create(env.key("events"), "alerts", "0", mkstream=True)
    d = env.daemon(timeout="300ms")
    holder, heir = Consumer(env, "holder", "hold"), None
    try:
        fleet = ["dev%02d" % k for k in range(40)]
        for name in fleet[:20]:
            env.beat(name)
        # Whoever is there first may take all that there is: so he is alone until he has something.
        wait_until(holder.entries, 15, "one consumer to have something in its hands")
        heir = Consumer(env, "heir", "work")
        for name in fleet[20:]:
            env.beat(name)
        wait_until(lambda: len(env.events()) == 2 * len(fleet), 15, "everybody to come and go")
        wait_until(lambda: len(holder.entries()) + len(heir.entries()) == 2 * len(fleet), 15, "all to be taken")
        held = {e[0] for e in holder.entries()}
        holder.kill()
        # The other one acknowledges what it has handled.
        wait_until(lambda: env.redis.xpending(env.key("events"), "alerts")["pending"] == len(held), 15,
                   "nothing but that to be pending")
        # It goes on without him, and what he held comes back to who claims it.
        for name in fleet[:5]:
            env.beat(name)
        heir.kill()
        heir = Consumer(env, "heir", "heir")
        wait_until(lambda: env.redis.xpending(env.key("events"), "alerts")["pending"] == 0 and
                   len(env.events()) == 2 * len(fleet) + 10, 20, "nothing to be pending")
        wait_until(lambda: told(env) <= {tuple(e[1:]) for e in heir.entries()}, 10, "every transition to be handled")
        assert held <= {e[0] for e in heir.entries()}
        wait_until(lambda: d.status()["owed"] == 0, 10, "nothing to be owed")
    finally:
        for c in filter(None, (holder, heir)):
            c.proc.kill()
            c.proc.wait(10)


def test_a_group_outlives_the_daemon_and_loses_nothing(env):
    """The transitions that were written while the daemon was killed and started, and that no consumer had read, are each
    delivered once and in order."""
    stream = env.key("events")
    env.redis.xgroup_create(stream, "alerts", "0", mkstream=True)
    d = env.daemon(timeout="300ms")
    for round_ in range(3):
        env.beat("x")
        env.wait_store("x", "online")
        d.kill()
        d.awaited = True
        d.start()
        env.wait_store("x", "offline")
    got = env.redis.xreadgroup("alerts", "one", {stream: ">"})[0][1]
    assert [f["state"] for _, f in got] == ["online", "offline"] * 3
    seqs = [int(f["seq"]) for _, f in got]
    assert seqs == sorted(set(seqs))


def section():
    """The commands of a section of docs/events.md, by their first words."""
    text = (SRC / "docs/events.md").read_text()
    part = re.search(r"^## Consuming the event stream\n(.*?)^## ", text, re.M | re.S)
    assert part, "docs/events.md has no such section"
    lines = re.findall(r"^(redis-cli .*?)(?:\s+#.*)?$", part[1], re.M)
    return {l.split()[1]: l for l in lines}


@pytest.mark.skipif(not shutil.which("redis-cli"), reason="redis-cli is not there")
def test_the_commands_of_the_page(env):
    """Each command as docs/events.md has it, except for the port, the entry, and how long an entry must have been idle."""
    env.own_redis()
    env.prefix = "device:"
    commands = section()
    assert list(commands) == ["xgroup", "xreadgroup", "xack", "xautoclaim", "xpending"]

    def run(name, **put):
        line = commands[name].replace("redis-cli", "redis-cli -p %d" % env.redis_server.port, 1)
        for old, new in put.items():
            assert old in line or old == "idle"
            line = line.replace("60000" if old == "idle" else old, new)
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=20,
                              env=dict(os.environ, TERM="dumb"))
        assert done.returncode == 0 and not re.match(r"[A-Z]+ .*|ERR", done.stdout), done
        return done.stdout
    run("xgroup")
    env.daemon(timeout="1h")
    env.beat("x")
    env.wait_store("x", "online")
    out = run("xreadgroup")
    assert "heartbeat" in out and re.search(r"^x$", out, re.M)
    entry = re.search(r"^(\d+-\d+)$", out, re.M)[1]
    assert entry in run("xautoclaim", idle="0")
    assert run("xpending").split()[0] == "1"
    assert run("xack", ID=entry).strip() == "1"
    assert run("xpending").split()[0] == "0"
