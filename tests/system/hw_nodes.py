# SPDX-License-Identifier: MIT
"""A mirror of several nodes on a broker and a Redis of its own, and the views that are compared with the truth of a herd
(hw_herd.py): the event stream, the hashes and indexes in Redis, the retained statuses, everything that was published on the
status topics, and each node's control API."""
import binascii
import collections
import http.client
import json
import signal
import time

import redis

from hw_herd import Herd
from hw_relay import Relay
from hw_wait import PATIENCE, wait_until

PARTITIONS = 256
WALL = 0.002  # seconds: the times that are compared were rounded to milliseconds


def partition(device):
    return binascii.crc_hqx(device.encode(), 0) % 16384 // 64


def xxh64(data):
    """XXH64 of at most 31 bytes, as src/nodes/place.c computes it."""
    p1, p2, p3, p4, p5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)

    def u64(x):
        return x & (1 << 64) - 1

    def rotl(x, bits):
        return u64(x << bits | u64(x) >> (64 - bits))

    assert len(data) < 32
    h = p5 + len(data)
    for size, mix, bits, times, plus in ((8, lambda lane: u64(rotl(u64(lane * p2), 31) * p1), 27, p1, p4),
                                         (4, lambda lane: u64(lane * p1), 23, p2, p3), (1, lambda lane: u64(lane * p5), 11, p1, 0)):
        while len(data) >= size:
            h = u64(rotl(h ^ mix(int.from_bytes(data[:size], "little")), bits) * times + plus)
            data = data[size:]
    h = u64((h ^ h >> 33) * p2)
    h = u64((h ^ h >> 29) * p3)
    return h ^ h >> 32


def preferred(nodes):
    """The daemon that owns the fleet of a standby in the end, if all these are ready and can judge as much as each other."""
    return max(nodes, key=lambda d: xxh64(b"0 " + d.node.encode()))


def fair_share(n):
    """How many partitions a node of n may own: five standard deviations around what chance gives it."""
    spread = 5 * (PARTITIONS / n * (1 - 1 / n)) ** 0.5
    return PARTITIONS / n - spread, PARTITIONS / n + spread


class Mirror:
    """Nodes NAME-a, NAME-b, ... of an `env`. `cuttable`: each reaches Redis and the broker through relays of its own. `broker`:
    the settings of a broker of the mirror's own; False: the env's broker."""

    mode = "mirror"

    def __init__(self, env, n=2, lease=1.0, timeout=1.5, cuttable=False, guarded=None, broker=None, **options):
        self.env, self.lease, self.timeout, self.guarded = env, lease, timeout, guarded
        if guarded is None:
            env.own_redis()
        if broker is not False:
            env.own_broker(**(broker or {"settings": ["max_queued_messages 100000", "max_inflight_messages 1000",
                                                     "set_tcp_nodelay true"]}))
        self.options, self.cuttable = options, cuttable
        self.nodes, self.relays, self.cut_from_redis = [], {}, False
        for k in range(n):
            self.add("%s-%s" % (env.node, "abcdefgh"[k]))

    def ms(self, seconds):
        return "%dms" % round(1000 * seconds)

    def configuration(self, name):
        ways = self.relays.get(name) or {}
        store = dict(self.options.get("redis") or {})
        if self.guarded:
            store.update(self.guarded.conf())
            if ways:
                store["sentinels"] = ", ".join("127.0.0.1:%d" % r.port for r in ways["sentinels"])
        elif ways:
            store["port"] = ways["redis"][0].port
        mqtt = {"keepalive": "5s", **(self.options.get("mqtt") or {})}
        if ways:
            mqtt["port"] = ways["broker"][0].port
        more = {section: self.options[section] for section in ("keyspace", "notify") if section in self.options}
        return {"timeout": self.ms(self.timeout), "redis": store, "mqtt": mqtt, **more,
                "monitor": {"node_id": name, "log_level": "info", **(self.options.get("monitor") or {})},
                "cluster": {"mode": self.mode, "lease": self.ms(self.lease)}}

    def add(self, name):
        if self.cuttable:
            self.relays[name] = self.ways()
        d = self.env.configure(node=name, **self.configuration(name))
        self.nodes.append(d)
        return d

    # ways to the servers, and their cuts

    def ways(self):
        if not self.guarded:
            return {"broker": [Relay(lambda: self.env.broker.port)],
                    "redis": [Relay(lambda: self.env.redis_server.port)], "sentinels": []}
        servers = [Relay(lambda s=s: s.port) for s in self.guarded.servers]

        def names():
            return {str(s.port).encode(): str(r.port).encode() for s, r in zip(self.guarded.servers, servers)}
        return {"broker": [Relay(lambda: self.env.broker.port)], "redis": servers,
                "sentinels": [Relay(lambda s=s: s.port, names) for s in self.guarded.sentinels]}

    def from_redis(self, node):
        self.cut_from_redis = True
        return self.relays[node.node]["redis"] + self.relays[node.node]["sentinels"]

    def from_broker(self, node):
        return self.relays[node.node]["broker"]

    # begin and end

    def start(self, nodes=None, patience=PATIENCE):
        for d in nodes or self.nodes:
            d.start(seeing=False)
        self.wait_seeing(nodes or self.nodes, patience)
        self.wait_shared(patience=patience)
        return self

    def wait_seeing(self, nodes, patience=PATIENCE):
        for d in nodes:
            d.wait_seeing(patience)

    def who_answer(self, nodes):
        """The nodes among these that answer for the fleet."""
        return nodes

    def is_steady(self, nodes):
        """Whether the nodes are settled and stay so while nothing happens."""
        return self.is_settled(nodes)

    def begins(self):
        """Seconds that a new owner may need beyond a take-over before it reports a death."""
        return 0.0

    def herd(self, n, name="d%d", **options):
        h = Herd(self.env.broker.port, self.env.topic, [name % k for k in range(n)], **options)
        self.env.gaps.append(h.gaps)
        return h

    def close(self):
        for ways in self.relays.values():
            for r in sum(ways.values(), []):
                r.close()

    # who lives, and who owns what

    def members(self):
        """{NODE_ID: what the member's entry says, with its run and the count of its renewals}"""
        out = {}
        for node, text in self.env.redis.hgetall(self.env.key("nodes")).items():
            run, count, said = text.split(" ", 2)
            out[node] = dict(json.loads(said), run=run, count=int(count))
        return out

    def owners(self):
        """{partition: NODE_ID; None: released}"""
        out = {}
        for p, record in self.env.redis.hgetall(self.env.key("owners")).items():
            epoch, node, *mark = record.split(" ")
            assert int(epoch) > 0
            out[int(p)] = None if mark else node
        return out

    def shares(self):
        """{NODE_ID: how many partitions the node owns}"""
        return collections.Counter(self.owners().values())

    def owner(self, device):
        """The daemon that owns the device."""
        node = self.owners().get(partition(device))
        return next((d for d in self.nodes if d.node == node), None)

    def owned_by(self, node, devices):
        owners = self.owners()
        return [d for d in devices if owners.get(partition(d)) == node.node]

    def is_shared(self, nodes):
        """Whether these nodes and no other own all partitions, and each has a share."""
        return set(self.shares()) == {d.node for d in nodes} and len(self.owners()) == PARTITIONS

    def is_settled(self, nodes):
        """Whether all is shared, and these are the members, all ready."""
        m = self.members()
        return (set(m) == {d.node for d in nodes} and all(v["state"] == "ready" for v in m.values())
                and self.is_shared(nodes))

    def wait_shared(self, nodes=None, patience=PATIENCE):
        """Waits until these nodes, or those that run, share all. Returns how long it took."""
        began = time.monotonic()
        living = nodes or [d for d in self.nodes if d.alive]

        def look():
            try:
                return self.is_settled(living)
            except redis.exceptions.RedisError:
                return False
        try:
            wait_until(look, patience, interval=0.02)
        except AssertionError:
            raise AssertionError("not within %.1f s: %s shared by %s; members %s" % (
                patience, dict(self.shares()), [d.node for d in living], self.members())) from None
        return time.monotonic() - began

    def wait_calm(self, patience=PATIENCE):
        """Waits until no partition has moved for more than a second, and each node has about the share that chance gives it."""
        low, high = fair_share(sum(d.alive for d in self.nodes))
        seen, since = None, time.monotonic()

        def look():
            nonlocal seen, since
            now = self.owners()
            if now != seen:
                seen, since = now, time.monotonic()
            shares = self.shares().values()
            return time.monotonic() - since > 1.2 and low <= min(shares) and max(shares) <= high
        try:
            wait_until(look, patience, interval=0.05)
        except AssertionError:
            raise AssertionError("not within %.1f s: between %.0f and %.0f for each; is %s" % (
                patience, low, high, self.shares())) from None

    def takeover(self):
        """The contract's bound, and what a busy machine may add to each round trip and tick."""
        return 1.4 * self.lease + 2.0

    def crash(self, node, number=signal.SIGKILL):
        node.signal(number)
        if number == signal.SIGKILL:
            node.wait()


class Standby(Mirror):
    """Nodes one of which owns the fleet while the others stand by."""

    mode = "standby"
    grace = 0.5
    steady, since = None, 0.0

    def configuration(self, name):
        conf = super().configuration(name)
        conf["mqtt"].setdefault("reconnect_grace", self.ms(self.grace))
        return conf

    def wait_seeing(self, nodes, patience=PATIENCE):
        pass

    def head(self, nodes=None):
        """The daemon that owns the fleet, if it is one of these; or None."""
        shares = self.shares()
        return next((d for d in nodes or self.nodes if shares[d.node] == PARTITIONS), None)

    def who_answer(self, nodes):
        return [self.head(nodes)]

    def is_shared(self, nodes):
        return self.head(nodes) is not None

    def is_settled(self, nodes):
        """Also whether the owner has loaded, and sees."""
        head = self.head(nodes)
        if head is None or not super().is_settled(nodes):
            return False
        try:
            s = head.status()
        except (OSError, http.client.HTTPException, ValueError):
            return False
        return not (s["blind"] or s["loading"] or s["cluster"]["standing_by"])

    def wait_calm(self, patience=PATIENCE):
        """Waits until the fleet has not moved for more than a second."""
        seen, since = None, time.monotonic()

        def look():
            nonlocal seen, since
            now = self.owners()
            if now != seen:
                seen, since = now, time.monotonic()
            return time.monotonic() - since > 1.2 and self.is_settled([d for d in self.nodes if d.alive])
        wait_until(look, patience, "nothing to move", interval=0.05)

    def is_steady(self, nodes):
        """Not if the fleet moved lately: a node that is back may become the preferred owner once it has been ready for two
        renewals."""
        now = self.owners() if self.is_settled(nodes) else None
        if now is None or now != self.steady:
            self.steady, self.since = now, time.monotonic()
        return now is not None and time.monotonic() - self.since > self.lease + 0.2

    def begins(self):
        return 1.0 + self.grace + self.timeout

    def takeover(self):
        """T + start + grace: a timeout later a device is found that stopped meanwhile."""
        return super().takeover() + 1.0 + self.grace


class Told:
    """All reports about a herd: the stream, which is read as it grows, and the statuses as an observer gets them."""

    def __init__(self, mirror, herd):
        self.mirror, self.env, self.herd = mirror, mirror.env, herd
        self.entries, self.at, self.source = collections.defaultdict(list), "-", None
        self.observer = self.env.observer(self.env.root + "/+/status", "heartwheel/+/status")
        self.read_to = 0
        self.newest = {}  # {device: the greatest (epoch, seq) that was published so far}
        self.statuses = collections.defaultdict(list)

    # the stream

    def read(self):
        if self.source is not self.env.redis_server:  # another master has a stream of its own
            self.entries.clear()
            self.source, self.at = self.env.redis_server, "-"
        while True:
            some = self.env.redis.xrange(self.env.key("events"), self.at, "+", count=5000)
            for entry, fields in some:
                self.at = "(" + entry
                self.entries[fields["id"]].append(dict(fields, entry=entry))
            if len(some) < 5000:
                return self

    def states(self, device):
        return [e["state"] for e in self.entries.get(device, ())]

    def truth(self, device):
        """The states that the stream must have by now, or soon: one for each life's begin, and one for its end."""
        b = self.herd.beasts[device]
        full = ["online", "offline"] * len(b.lives)
        return full[:-1] if b.beats and full else full

    def wrong(self):
        """Where the stream differs from the truth in a way that time may mend: [text]."""
        self.read()
        return ["%s: told %s, true is %s" % (d, self.states(d), self.truth(d)) for d in self.herd.beasts
                if self.states(d) != self.truth(d)]

    def check(self):
        """Errors that no time mends: a device that beats is called offline, or one before its timeout; a transition is there
        twice, or without cause."""
        self.read()
        with self.herd.lock:  # each heartbeat that was sent is noted by now
            self.check_entries()
        return self

    def check_entries(self):
        seen = set()
        for d, entries in self.entries.items():
            b = self.herd.beasts.get(d)
            assert b, "who is %s?" % d
            for k, e in enumerate(entries):
                assert e["state"] == ("online", "offline")[k % 2], "%s: told twice: %s" % (d, entries)
                assert k // 2 < len(b.lives), "%s: told of a life that it did not have: %s" % (d, entries)
                self.check_instant(b, b.lives[k // 2], k // 2 == len(b.lives) - 1, e)
                mark = d, int(e["epoch"]), int(e["seq"])
                assert mark not in seen, "epoch and seq are not unique: %s" % entries
                seen.add(mark)
                if k:
                    before = entries[k - 1]
                    assert (int(e["epoch"]), int(e["seq"])) > (int(before["epoch"]), int(before["seq"])), entries

    def check_instant(self, b, life, is_latest, e):
        at = int(e["time_ms"]) / 1000
        if e["state"] == "online":
            # A turn of the monitor has one time for all of it: what it reads while the machine holds it up is later.
            written = int(e["entry"].split("-")[0]) / 1000
            assert life.born is not None and written >= life.born - WALL, "online before it beat: %s, born %s" % (
                e, life.born)
            return
        assert not (is_latest and b.beats), "FALSE OFFLINE: %s beats, for the last time at %.3f: %s" % (
            b.name, life.last, e)
        assert at >= life.last + self.mirror.timeout - WALL, "EARLY: %s beat at %.3f: %s" % (b.name, life.last, e)

    def wait(self, patience=PATIENCE, what="the stream to be as the truth"):
        """Waits until the stream has all that is true, and no more. Returns how long it took."""
        began, last = time.monotonic(), []

        def look():
            try:
                last[:] = self.wrong()
            except redis.exceptions.RedisError as e:
                last[:] = [str(e)]
            return not last
        try:
            wait_until(look, patience, interval=0.03)
        except AssertionError:
            self.check()
            raise AssertionError("not within %.1f s: %s: %s" % (patience, what, "; ".join(last[:5]))) from None
        self.check()
        return time.monotonic() - began

    def late(self, device):
        """How long after its deadline the device's latest death was reported, in seconds."""
        death = [e for e in self.entries[device] if e["state"] == "offline"][-1]
        return int(death["entry"].split("-")[0]) / 1000 - self.herd.last(device) - self.mirror.timeout

    def latest(self):
        """The greatest such delay of all deaths so far."""
        return max(int(e["entry"].split("-")[0]) / 1000 - self.herd.beasts[d].lives[k].last - self.mirror.timeout
                   for d, entries in self.entries.items()
                   for k, e in enumerate(e for e in entries if e["state"] == "offline"))

    # statuses

    def hear(self):
        """Reads what the observer got: for each device the fencing token and seq never decrease."""
        messages = self.observer.messages[self.read_to:]
        self.read_to += len(messages)
        for m in messages:
            if m.topic.startswith("heartwheel/") or not m.payload:
                continue
            device, j = m.topic.split("/")[-2], m.json()
            if device not in self.herd.beasts:  # a canary
                continue
            if device not in self.herd.beasts:  # a canary
                continue
            assert "epoch" in j, "no epoch: %s" % m
            mark = j["epoch"], j["seq"]
            if not m.retain:
                assert mark >= self.newest.get(device, (0, 0)), "%s went back from %s to %s" % (
                    device, self.newest[device], m)
            self.newest[device] = mark
            self.statuses[device].append((m.wall, j))
        return self

    def check_statuses(self):
        """Each offline status belongs to a death, and an owner publishes it once. An owner that is cut off from Redis publishes
        it without an entry in the stream, and its successor publishes it again."""
        self.hear()
        for d, told in self.statuses.items():
            deaths = sum(s == "offline" for s in self.truth(d))
            said = {(j["epoch"], j["seq"]): j for _, j in told if j["online"] is False}
            for j in said.values():
                assert self.was_dead(d, j["time"]), "%s beat when its status said offline: %s" % (d, j)
            owners = collections.Counter(epoch for epoch, _ in said)
            most = max(owners.values(), default=0) if self.mirror.cut_from_redis else len({seq for _, seq in said})
            assert most <= deaths, "%s: offline %d times by its statuses, and died %d times: %s" % (
                d, most, deaths, list(said.values()))
        return self

    def was_dead(self, device, second):
        """Whether, at some time of that second, the device's timeout had passed and no later life had begun."""
        lives = self.herd.lives(device)
        return any(life.last is not None and life.last + self.mirror.timeout - WALL < second + 1
                   and (k + 1 == len(lives) or lives[k + 1].born is None or second - WALL <= lives[k + 1].born)
                   for k, life in enumerate(lives))

    # the end: everything agrees

    def differences(self, retained=True):
        """Where Redis or the retained statuses differ from the truth: [text]."""
        names = list(self.herd.beasts)
        r = self.env.redis.pipeline(transaction=True)
        for n in names:
            r.exists(self.env.key("connected", n))
            r.exists(self.env.key("disconnected", n))
            r.zscore(self.env.key("offline"), n)
            r.hmget(self.env.key("state", n), "state", "seq", "epoch")
        try:
            flat = r.execute()
        except redis.exceptions.RedisError as e:
            return ["Redis: %s" % e]
        out, marks = [], {}
        for k, n in enumerate(names):
            connected, disconnected, score, (state, seq, epoch) = flat[4 * k:4 * k + 4]
            want = (self.truth(n) or [None])[-1]
            have = (bool(connected), bool(disconnected), score is not None, state)
            marks[n] = epoch, seq
            if have != {"online": (True, False, False, "online"), "offline": (False, True, True, "offline"),
                        None: (False, False, False, None)}[want]:
                out.append("%s is %s in Redis, and is %s" % (n, have, want))
        return out or (self.retained_differences(names, marks) if retained else [])

    def retained_differences(self, names, marks):
        found, out = self.env.retained(self.env.root + "/+/status"), []
        for n in names:
            m = found.get(self.env.status_topic(n))
            j = (m and m.json()) or {}
            want = (self.truth(n) or [None])[-1]
            if want is None:
                continue
            # The status has the token of its last publisher; the hash has that of its writer.
            epoch, seq = marks[n]
            if (j.get("online") is not (want == "online") or str(j.get("seq")) != seq
                    or int(j.get("epoch", 0)) < int(epoch)):
                out.append("%s is %s, (epoch, seq) %s; retained is %r" % (n, want, marks[n], m and m.payload))
        return out

    def agree(self, patience=PATIENCE):
        """Waits until stream, Redis and retained statuses are true."""
        self.wait(patience)
        last = []

        def look():
            last[:] = self.differences()
            return not last
        try:
            wait_until(look, patience, interval=0.1)
        except AssertionError:
            raise AssertionError("not within %.1f s: %s" % (patience, "; ".join(last[:5]))) from None
        self.check()
        self.check_statuses()
        return self

    def differences_of(self, node):
        """Where a node's API differs from the truth, or names another owner than Redis does."""
        owners, out, seen = self.mirror.owners(), [], set()
        try:
            devices = devices_of(node)
        except (OSError, http.client.HTTPException) as e:
            return ["%s: %s" % (node.node, e)]
        for d in devices:
            want = (self.truth(d["id"]) or [None])[-1] if d["id"] in self.herd.beasts else "nothing"
            if d["state"] != want or d.get("node") != owners.get(partition(d["id"])):
                out.append("%s says %s" % (node.node, d))
            seen.add(d["id"])
        missing = {n for n in self.herd.beasts if self.truth(n)} - seen
        return out + ["%s does not know %s" % (node.node, sorted(missing))] if missing else out

    def agree_all(self, nodes, patience=PATIENCE):
        """The API of each of these nodes answers for all devices."""
        last = []

        def look():
            last[:] = sum((self.differences_of(d) for d in nodes), [])
            return not last
        try:
            wait_until(look, patience, interval=0.1)
        except AssertionError:
            raise AssertionError("not within %.1f s: %s" % (patience, "; ".join(last[:5]))) from None
        return self


def devices_of(node):
    """All pages of /v1/devices."""
    out, after = [], ""
    while True:
        page = node.get("/v1/devices?limit=1000" + after).json()
        out += page["devices"]
        if "next" not in page:
            return out
        after = "&after=" + page["next"]
