# SPDX-License-Identifier: MIT
"""The servers, daemon and fleet to which a fault happens, and the oracles: two observers from outside.

The fleet is the truth. It is compared with the event stream, the state hashes and indexes in Redis, the retained statuses as a
new subscriber gets them, everything that was published on the status topics, the control API, and the daemon's own metrics.
"""
import http.client
import shutil
import threading
import time
from pathlib import Path

import redis

from fleet import Fleet
from hw_env import Env
from hw_http import UnixHTTP
from hw_process import free_port
from hw_wait import NotWithin, wait_within


class Void(Exception):
    """The test itself was late, or could not do what it meant to: the run proves nothing and is repeated."""


def waited_for_a_processor(*processes):
    """How long all threads of these processes were ready to run and got no processor, in seconds."""
    total = 0
    for p in processes:
        for path in Path("/proc/%d/task" % p.pid).glob("*/schedstat"):
            try:
                total += int(path.read_text().split()[1])
            except (OSError, IndexError, ValueError):
                pass
    return total / 1e9


class Watch:
    """Polls the control API whether the monitor is blind, and the system how long monitor and broker have waited for a
    processor."""

    def __init__(self, daemon, broker):
        self.daemon, self.broker = daemon, broker
        self.samples = []  # (monotonic, blind or None, cause)
        self.waits = []    # (monotonic, seconds)
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def ask(self):
        c = UnixHTTP(self.daemon.socket, timeout=20)
        try:
            c.request("GET", "/v1/status")
            return __import__("json").loads(c.getresponse().read())
        finally:
            c.close()

    def run(self):
        while not self.stopping.is_set():
            try:
                s = self.ask()
                self.samples.append((time.monotonic(), s["blind"], s.get("blind_cause")))
            except (OSError, ValueError, http.client.HTTPException):
                self.samples.append((time.monotonic(), None, None))
            self.waits.append((time.monotonic(), waited_for_a_processor(self.daemon, self.broker)))
            self.stopping.wait(0.02)

    def sees(self):
        return bool(self.samples) and self.samples[-1][1] is False

    def last_blind(self, start):
        """The latest moment since `start` at which the monitor was blind or did not answer; `start` if there was none."""
        times = [t for t, blind, _ in self.samples if t >= start and blind is not False]
        return max(times, default=start)

    def seeing_since(self, start, until):
        """The first answer that says the monitor sees, after it was blind or did not answer between these times; `start` if it
        was neither."""
        seen, blind = start, False
        for t, is_blind, _ in list(self.samples):
            if start <= t <= until:
                if blind and is_blind is False:
                    seen = t
                blind = is_blind is not False
        return until if blind else seen

    def waited(self, start, until):
        """How long monitor and broker have waited for a processor between these times, at most."""
        before = [w for t, w in self.waits if t <= start][-1:]
        after = [w for t, w in self.waits if t >= until][:1]
        return max(0.0, after[0] - before[0]) if before and after else 0.0

    def causes(self, start):
        return {c for t, blind, c in self.samples if t >= start and blind}

    def stop(self):
        self.stopping.set()
        self.thread.join(25)


class World:
    """A broker, a Redis, a daemon and a fleet. `netns`: a fault.Netns that the daemon and its broker link live in."""

    def __init__(self, base, timeout=1.0, grace=1.0, interval=0.2, mqtt=None, persistence=False, keepalive=4,
                 shim=None, netns=None, lost_dir=False, log_file=False):
        self.timeout, self.grace, self.shim, self.netns = timeout, grace, shim, netns
        self.env = Env(None, None, base)
        if lost_dir:  # a directory for Redis that can be taken from it
            self.env.dir.joinpath("lost").mkdir()
        self.log_path = self.env.dir / "daemon.log"
        self.env.own_redis(options=["--dir", str(self.env.dir / "lost")] if lost_dir else (),
                           unix_socket=self.env.dir / "redis.sock" if netns else None)
        self.env.own_broker(persistence=persistence, settings=[
            "max_queued_messages 100000", "max_inflight_messages 1000",
            *(["listener %d %s" % (netns.port, netns.outer), "allow_anonymous true"] if netns else [])])
        ms = "%dms" % int(timeout * 1000)
        link = {"reconnect_grace": "%dms" % int(grace * 1000), **(mqtt or {})}
        store = {}
        if netns:
            link.update(host=netns.outer, port=netns.port)
            store.update(unix_socket=self.env.dir / "redis.sock")
        self.daemon = self.env.configure(timeout=ms, mqtt=link, redis=store, monitor={
            "log": self.log_path if log_file else "stderr", "log_level": "info"})
        self.fleet = Fleet(self.env, interval=interval, keepalive=keepalive)
        self.observer = self.env.observer("%s/+/status" % self.env.root, "heartwheel/%s/status" % self.env.node)
        self.observer.client.reconnect_delay_set(1, 1)
        self.events = {}   # {device: its entries in the stream, oldest first, as far as read}
        self.event_at = "-"
        self.told = {}     # (device, seq) -> payload
        self.told_at = {}  # {device: the last message's seq}
        self.told_n = 0
        self.watch = None

    # --- the daemon

    def start_daemon(self, seeing=True):
        if self.netns:
            self.netns.enter(self.daemon)
        self.daemon.start(seeing=seeing, env=self.shim.env if self.shim else None)
        if self.watch is None:
            self.watch = Watch(self.daemon, self.env.broker)
        return self

    def begin(self):
        """Everything runs, every device is online."""
        self.start_daemon()
        self.fleet.start()
        self.fleet.revive(*self.fleet.names)
        self.agree(15)
        self.new_run()
        return self

    def new_run(self):
        """From here on events and messages belong to this run."""
        self.read_events()
        self.run_events = {name: len(self.events.get(name, ())) for name in self.fleet.names}
        self.run_began, self.run_began_ms = time.monotonic(), time.time() * 1000
        self.fleet.late = 0.0
        self.check_told()
        self.waited = self.cpu_wait()
        self.turns = self.slow_turns()

    def close(self):
        for part in (self.fleet, self.watch):
            if part is not None and part.thread.ident is not None:
                part.stop()
        self.env.check_events = False
        wrong = self.env.close()
        self.env.remove()
        if wrong:
            raise wrong

    # --- oracles

    def read_events(self):
        try:
            fresh = self.env.redis.xrange(self.env.key("events"), self.event_at, "+")
        except redis.exceptions.ResponseError:
            return
        for entry, fields in fresh:
            self.event_at = "(" + entry
            self.events.setdefault(fields["id"], []).append(dict(fields, entry=entry))

    def edges(self, name):
        """A device's entries of this run."""
        return self.events.get(name, [])[self.run_events.get(name, 0):]

    def forget_events(self):
        """The store has lost part of the stream: it is read from its beginning again."""
        self.events, self.event_at = {}, "-"
        self.read_events()
        self.run_events = {n: sum(int(e["entry"].split("-")[0]) < self.run_began_ms for e in self.events.get(n, ()))
                           for n in self.fleet.names}

    def differences(self, retained=True):
        """Where the observers' view differs from the truth: [text], empty if nowhere."""
        names, r = self.fleet.names, self.env.redis.pipeline(transaction=True)
        for n in names:
            r.exists(self.env.key("connected", n))
            r.exists(self.env.key("disconnected", n))
            r.zscore(self.env.key("offline"), n)
            r.hmget(self.env.key("state", n), "state", "seq")
        try:
            flat = r.execute()
        except redis.exceptions.RedisError as e:
            return ["Redis: %s" % e]
        wrong, seqs = [], {}
        for k, n in enumerate(names):
            connected, disconnected, score, (state, seq) = flat[4 * k:4 * k + 4]
            want, seqs[n] = self.fleet.state(n), seq
            have = (bool(connected), bool(disconnected), score is not None, state)
            if have != {"online": (True, False, False, "online"), "offline": (False, True, True, "offline")}[want]:
                wrong.append("%s is %s in Redis, and should be %s" % (n, have, want))
        if wrong or not retained:
            return wrong
        found = self.env.retained(self.env.root + "/+/status")
        for n in names:
            m = found.get(self.env.status_topic(n))
            j = m and m.json()
            if not isinstance(j, dict) or j.get("by") != self.env.node:
                wrong.append("%s: its retained status is %r" % (n, m and m.payload))
            elif j["online"] is not (self.fleet.state(n) == "online") or str(j["seq"]) != seqs[n]:
                wrong.append("%s: its retained status says %r, Redis says seq %s" % (n, m.payload, seqs[n]))
        return wrong

    def agree(self, timeout, retained=True):
        """Waits until the observers' view is the truth; returns when it was (monotonic)."""
        last = []

        def look():
            last[:] = self.differences(retained)
            return not last
        try:
            wait_within(look, timeout, interval=0.05)
        except NotWithin:
            self.check_fleet(last)
            raise AssertionError("not within %.1f s: %s" % (timeout, "; ".join(last[:5]))) from None
        return time.monotonic()

    def wait_marked(self, names, until):
        """Waits until each of these has an offline entry in this run."""
        def look():
            self.read_events()
            return all(any(e["state"] == "offline" for e in self.edges(n)) for n in names)
        try:
            wait_within(look, max(0.0, until - time.monotonic()), interval=0.03)
        except NotWithin:
            missing = [n for n in names if not self.edges(n)]
            raise AssertionError("dead and not told: %s" % missing) from None

    def check_living(self, victims):
        """Only victims were called offline."""
        self.read_events()
        false = {n: [(e["state"], e["reason"], e["entry"]) for e in self.edges(n)] for n in self.fleet.names
                 if n not in victims and any(e["state"] != "online" for e in self.edges(n))}
        self.check_fleet(sorted(false))
        assert not false, "FALSE OFFLINE: %s" % false

    def check_fleet(self, wrong):
        """Void if an error was found while the machine was too busy for the fleet: a device may really have been silent for its
        whole timeout."""
        if wrong and self.fleet.late + self.fleet.interval >= self.timeout:
            raise Void("the fleet was %.2f s late, and left its timeout: %s" % (self.fleet.late, wrong))

    def agree_by(self, deadline):
        """As agree(), until then. A later agreement proves nothing if the machine delayed the fleet as well."""
        try:
            return self.agree(deadline - time.monotonic())
        except AssertionError as e:
            if self.fleet.late < 0.3:
                raise
            self.agree(15)
            raise Void("the fleet was %.2f s late; %s" % (self.fleet.late, e)) from None

    def check_edges(self, victims=(), revived=()):
        """This run's transitions are exactly the true ones."""
        self.check_living(victims)
        for n in self.fleet.names:
            got = [e["state"] for e in self.edges(n)]
            want = ["offline"] if n in victims else ["online"] if n in revived else []
            if got != want:
                self.check_fleet(n)
            assert got == want, "%s made the transitions %s, and not %s" % (
                n, [(e["state"], e["reason"], e["time_ms"], e["last_seen_ms"], e["seq"]) for e in self.edges(n)], want)
            entries = self.events.get(n, [])
            for one, two in zip(entries, entries[1:]):
                assert int(two["seq"]) > int(one["seq"]), "seq did not grow: %s, %s" % (one, two)

    def check_told(self):
        """Repeated messages are equal: device, seq and content. seq never decreases."""
        messages = self.observer.messages[self.told_n:]
        self.told_n += len(messages)
        for m in messages:
            j = m.json()
            if m.topic.startswith("heartwheel/") or not isinstance(j, dict) or j.get("by") != self.env.node:
                continue
            device = m.topic.split("/")[-2]
            first = self.told.setdefault((device, j["seq"]), j)
            assert j == first, "told twice with another content: %s: %s, %s" % (device, first, j)
            if not m.retain:  # a broker that was killed may have kept an older one
                assert j["seq"] >= self.told_at.get(device, 0), "%s went back to %s" % (device, j)
                self.told_at[device] = j["seq"]

    def told_of(self, name):
        return [j for (device, _), j in sorted(self.told.items()) if device == name]

    # --- the loop's own figures

    def slow_turns(self):
        """(turns of the loop longer than 100 ms, all)"""
        m = self.daemon.metrics()
        every = m.get("loop_turn_seconds_bucket", le="+Inf")
        return every - m.get("loop_turn_seconds_bucket", le="0.1"), every

    def cpu_wait(self):
        """How long the daemon's loop has waited for a processor, in seconds."""
        try:
            return int(Path("/proc/%d/task/%d/schedstat" % (self.daemon.pid, self.daemon.pid)).read_text().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return 0.0

    def check_loop(self):
        slow = self.slow_turns()[0] - self.turns[0]
        waited = self.cpu_wait() - self.waited
        if slow and waited > 0.05 * slow:
            raise Void("the loop waited %.2f s for a processor" % waited)
        assert slow == 0, "%d turns of the loop took longer than 100 ms" % slow

    def check_punctual(self):
        if self.fleet.late > 0.4 * self.timeout:
            raise Void("the fleet was %.2f s late" % self.fleet.late)


class Netns:
    """A network namespace for the daemon, with one link to ours."""

    def __init__(self, number, run):
        self.name, self.run = "hwfault%d" % number, run
        self.outer_if, self.inner_if = "hwf%do" % number, "hwf%di" % number
        self.outer, self.inner = "10.213.%d.1" % (number % 250), "10.213.%d.2" % (number % 250)
        self.made = False
        self.port = free_port()

    def make(self):
        """Makes the namespace. Returns None, or why it is impossible."""
        if not shutil.which("ip"):
            return "no program ip"
        steps = [["netns", "add", self.name], ["link", "add", self.outer_if, "type", "veth", "peer", "name", self.inner_if],
                 ["link", "set", self.inner_if, "netns", self.name],
                 ["addr", "add", self.outer + "/30", "dev", self.outer_if], ["link", "set", self.outer_if, "up"],
                 ["-n", self.name, "addr", "add", self.inner + "/30", "dev", self.inner_if],
                 ["-n", self.name, "link", "set", self.inner_if, "up"], ["-n", self.name, "link", "set", "lo", "up"]]
        for step in steps:
            result = self.run("ip", *step)
            if result.returncode:
                self.remove()
                return "the user may not make a network namespace"
            self.made = True
        return None

    def enter(self, daemon):
        """Starts this daemon's processes in the namespace."""
        if getattr(daemon, "netns", None):
            return
        daemon.netns, plain = self.name, daemon.spawn
        daemon.spawn = lambda argv, env=None: plain(["ip", "netns", "exec", self.name, *argv], env)

    def cut(self, whole):
        """`whole`: our end goes down, and its route with it; otherwise packets leave and never arrive."""
        self.run("ip", *(["link", "set", self.outer_if, "down"] if whole else
                         ["-n", self.name, "link", "set", self.inner_if, "down"]))

    def mend(self):
        self.run("ip", "link", "set", self.outer_if, "up")
        self.run("ip", "-n", self.name, "link", "set", self.inner_if, "up")

    def remove(self):
        self.run("ip", "netns", "del", self.name)
        self.run("ip", "link", "del", self.outer_if)
