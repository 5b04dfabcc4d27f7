#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What several nodes that mirror one another cost, and how fast one takes over.

`carried`: as many heartbeats as the broker brings to every node, in a closed loop (bench/flood.c), with a monitor by itself
and with 1, 2 and 3 nodes, there and back again. Each arrangement has servers of its own.
`watched`: a monitor by itself (under keys of its own), a node that owns every partition, and one that owns none, beside one
another: all three subscribe to one broker and hear the same heartbeats in the same seconds, at a pace that leaves all of
them time. Two nodes of one cluster would share; but one of another cluster's name on the same Redis is handed nothing, and
renews, follows the stream and watches as any does. Both shares are looked at before and after.
`deaths`: a pair like that on servers of its own; all devices of the owner die at once, and the watcher reads their entries
in the stream. Then the same with a monitor by itself.
`renewal`: the script as a node called it, with that node's own entry under as many names as there are members, and all 256
partitions owned; once as in calm, once as after a change, when the answer has all owners.
`take-over`: a node is killed (SIGKILL), from then until the other owns all that it owned, and until a death that is due
200 ms after the kill is in the stream; the other has heard the fleet all along.

Same work? `watched`: the same packets, and no statuses, so that no share of them is anybody's. The owner refreshes keys
in Redis as the single monitor does; the watcher has none of that, which is what is shown. `carried`: the loop is closed by
the slowest node, so none is given less. `deaths`: as many entries as devices, counted in Redis.
Same batching? In `watched` yes: one pace, one gathering time, one machine. In `carried` no: the processor is shared by
broker, nodes and flood, a node that gets less of it reads more at a time, and costs less a heartbeat. So CPU a heartbeat
is compared in `watched`, and rates and the broker's CPU in `carried`.
Real code path? heartwheeld, mosquitto and redis-server as installed. Partitions are released beforehand, as by a node that
left, or the first claim would wait for a lease; nothing else is put there. The renewal is sent by the bench; its script and
arguments are a node's own.
Worst run for losses? Lost heartbeats, and the longest take-over, are held to their goals in each run. The bound of a
take-over is the contract's T = 1.4 leases, and 100 ms for its round trips. Clocks: the kill, and the stream's ids, are read
on this machine.

A monitor by itself has to pay nothing for all this: that is in the benches `instructions` (which counts) and `ingest`, whose
figures are of one program each, before and after: one run cannot hold two.
"""
import binascii
import json
import re
import signal
import subprocess
import time

import measure

TARGET = 12
O = measure.options(__doc__.splitlines()[0])

from hw_wait import wait_until  # noqa: E402
from receivers import threads_cpu_s  # noqa: E402

SMOKE = O.smoke
DEVICES, SECONDS = (2000, 0.5) if SMOKE else (20000, 4)
ARRANGEMENTS = (0, 2) if SMOKE else (0, 1, 2, 3, 3, 2, 1, 0)  # 0: mode = off
CONNECTIONS, WINDOW, PAYLOAD = 4, 4000, "1"
PACED, PACED_S = (2000, 1) if SMOKE else (10000, 6)  # heartbeats a second, and for how long
DEAD = 2000 if SMOKE else 50000
ROUNDS = ((1, 1),) if SMOKE else ((1, 12), (5, 2))  # lease in s, so many times
TIMEOUT_S, DUE_S, SLACK_S = 1.5, 0.2, 0.1
RENEWALS = 200 if SMOKE else 1000
PARTITIONS, LEASE = 256, 1 if SMOKE else 5
BROKER = ("set_tcp_nodelay true", "max_queued_messages %d" % (10 * WINDOW), "max_inflight_messages 1000")


def figure(label, value, unit, goal=None, note=None, worst=False):
    measure.figure(TARGET, label, value, unit, goal, note, worst)


def partition(device):
    return binascii.crc_hqx(device.encode(), 0) % 16384 // 64


def cpu(pid):
    return sum(threads_cpu_s(pid).values())


# --- nodes


class Place:
    """A broker and a Redis, whose partitions a node that left has released."""

    def __init__(self):
        self.world = measure.world(settings=BROKER)
        self.env, _ = self.world.__enter__()
        self.env.check_events = False
        self.env.root = "nodes"  # as bench/frames.c has it
        self.paces = []

    def __enter__(self):
        r = self.env.redis
        r.hset(self.env.key("owners"), mapping={p: "1700000000 %s-x -" % self.env.node for p in range(PARTITIONS)})
        return self

    def __exit__(self, *exc):
        for p in self.paces:
            p.kill()
            p.wait()
        for d in self.env.daemons:
            if d.alive:
                d.signal(signal.SIGCONT)
            d.kill()
        self.world.__exit__(*exc)

    def monitor(self, name, lease=None, timeout="1h", status=True, prefix=None, cluster="heartwheel"):
        """`lease` None: a monitor by itself."""
        env = self.env
        topic = env.root + "/{id}/%s"
        options = {"group": {"heartbeat": topic % "heartbeat", "status": topic % "status" if status else ""},
                   "monitor": {"node_id": "%s-%s" % (env.node, name), "log_level": "notice",
                               "max_devices": 2 * max(DEVICES, DEAD)},
                   "redis": {"events_max": 4 * DEAD, "key_prefix": prefix or env.prefix}, "timeout": timeout,
                   "mqtt": {"republish_rate": 0}}
        if lease:
            options["cluster"] = {"mode": "mirror", "lease": "%ds" % lease, "name": cluster}
        d = env.configure(node=options["monitor"]["node_id"], **options)
        d.again = lambda **more: d.rewrite(env.text(directory=d.dir, **{**options, **more}))
        return d

    def owned(self, d):
        return {p for p, record in self.env.redis.hgetall(self.env.key("owners")).items()
                if record.split(" ")[1:] == [d.node]}

    def wait_shared(self, nodes):
        """All is owned, by each of these some, and nothing moves for a second; of small sizes it may still move."""
        last, since = None, 0

        def look():
            nonlocal last, since
            now = [self.owned(d) for d in nodes]
            if now != last:
                last, since = now, time.monotonic()
            return all(now) and sum(map(len, now)) == PARTITIONS and (SMOKE or time.monotonic() - since > 1)
        wait_until(look, 60, "the nodes to share everything", interval=0.05)

    def beat(self, devices, interval_ms):
        p = subprocess.Popen([str(a) for a in (O.build / "bench" / "pace", self.env.broker.port, self.env.root, devices,
                                               interval_ms, 16)], stdout=subprocess.PIPE, text=True)
        self.paces.append(p)
        return p

    def reader_port(self, d):
        """Its end of the connection that heartbeats come over: the broker says whose each is."""
        said = re.findall(r"connected from 127\.0\.0\.1:(\d+) as heartwheel-%s-r0 " % d.node, self.env.broker.log())
        return said[-1]

    def all_beat(self, devices, nodes):
        """Until all are known to these, nothing is owed, and nothing that was sent is still on its way."""
        p = self.beat(devices, max(500, devices // 20))
        wait_until(lambda: all(d.status()["online"] >= devices and d.status()["owed"] == 0 for d in nodes), 120,
                   "all devices to be known", interval=0.1)
        p.terminate()
        sent = int(p.communicate()[0].split()[1])
        last, since = None, time.monotonic()
        while time.monotonic() - since < 2 and any(heard(d) < sent for d in nodes):
            if (now := [heard(d) for d in nodes]) != last:
                last, since = now, time.monotonic()
            time.sleep(0.05)


def heard(d):
    return int(d.metrics().get("heartbeats_total"))


# --- as many as the broker carries


def flood(place, nodes, seconds):
    ports = [place.reader_port(d) for d in nodes]
    argv = (O.build / "bench" / "flood", place.env.broker.port, CONNECTIONS, DEVICES, seconds, WINDOW, PAYLOAD, "each",
            *ports)
    out = subprocess.run([str(a) for a in argv], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {key: float(value) for key, value in map(str.split, out.splitlines())}


def carried(n):
    """One arrangement: what was sent and lost, how fast, and what it cost."""
    with Place() as place:
        nodes = [place.monitor("n%d" % k, LEASE).start() for k in range(n)] or [place.monitor("n0").start()]
        if n:
            place.wait_shared(nodes)
        flood(place, nodes, 0)
        wait_until(lambda: all(d.status()["online"] >= DEVICES and d.status()["owed"] == 0 for d in nodes), 120,
                   "all devices to be known", interval=0.1)
        before, pids = [heard(d) for d in nodes], [place.env.broker.pid] + [d.pid for d in nodes]
        used = [cpu(p) for p in pids]
        said = flood(place, nodes, SECONDS)
        used = [cpu(p) - u for p, u in zip(pids, used)]
        patience = time.monotonic() + 5
        while (lost := max(said["sent"] - heard(d) + b for d, b in zip(nodes, before))) > 0 and time.monotonic() < patience:
            time.sleep(0.05)
        return {"lost": max(lost, 0), "rate": said["sent"] / said["seconds"], "broker": used[0] / said["sent"] * 1e6,
                "node": sum(used[1:]) / len(nodes) / said["sent"] * 1e6}


def mean(results, key):
    return sum(r[key] for r in results) / len(results)


def report_carried():
    measure.conditions("%s devices, payload of a byte, as fast as the slowest node takes them, all on one machine" % format(
        DEVICES, ",d"))
    found = {n: [] for n in ARRANGEMENTS}
    for n in ARRANGEMENTS:
        found[n].append(carried(n))
    names = {0: "a monitor by itself", 1: "1 node", 2: "2 nodes", 3: "3 nodes"}
    figure("carried: lost by any", sum(r["lost"] for some in found.values() for r in some), "messages", ("<=", 0), None, True)
    for n, some in sorted(found.items()):
        figure("carried: %s" % names[n], mean(some, "rate"), "/s")
        figure("carried: CPU of the broker, %s" % names[n], mean(some, "broker"), "ms/1,000 heartbeats")
        figure("carried: CPU of each, %s" % names[n], mean(some, "node"), "us/heartbeat")
    for n in sorted(found)[1:]:
        figure("carried: rate, %s to a monitor by itself" % names[n], mean(found[n], "rate") / mean(found[0], "rate"), "x")
        figure("carried: CPU of the broker, %s to a monitor by itself" % names[n],
               mean(found[n], "broker") / mean(found[0], "broker"), "x")


# --- an owner and a watcher


def share_out(place, owner, watcher):
    """The one owns all and the other none."""
    wait_until(lambda: len(place.owned(owner)) == PARTITIONS, 30, "one node to own everything", interval=0.05)
    watcher.start()
    wait_until(lambda: ready(place, watcher), 30, "the watcher to be ready", interval=0.05)


def ready(place, d):
    text = place.env.redis.hget(place.env.key("nodes"), d.node)
    return bool(text) and json.loads(text.split(" ", 2)[2])["state"] == "ready"


def check_shares(owner, watcher):
    shares = [int(d.metrics().get("partitions_owned")) for d in (owner, watcher)]
    assert shares == [PARTITIONS, 0], "not what is measured: they own %s" % shares


def watched():
    """{who: us a heartbeat}"""
    with Place() as place:
        single = place.monitor("s", timeout="30s", status=False, prefix="single:").start()
        owner = place.monitor("o", LEASE, "30s", False).start()
        watcher = place.monitor("w", LEASE, "30s", False, cluster="another")
        place.beat(2 * PACED, 2000)
        wait_until(lambda: all(d.status()["online"] == 2 * PACED for d in (single, owner)), 30, "all to be known")
        share_out(place, owner, watcher)
        all3 = single, owner, watcher
        wait_until(lambda: watcher.status()["online"] == 2 * PACED, 15, "the watcher to know all", interval=0.05)
        check_shares(owner, watcher)
        before, used, redis = [heard(d) for d in all3], [cpu(d.pid) for d in all3], cpu(place.env.redis_server.pid)
        time.sleep(PACED_S)
        used = [cpu(d.pid) - u for d, u in zip(all3, used)]
        n = [heard(d) - b for d, b in zip(all3, before)]
        check_shares(owner, watcher)
        assert max(n) - min(n) < 0.05 * max(n), "they did not hear the same: %s" % n
    return {name: u / k * 1e6 for name, u, k in zip(("single", "owner", "watcher"), used, n)}


def report_watched():
    measure.conditions("%s heartbeats a second, %s devices, JSON, timeout 30s, no status" % (
        format(PACED, ",d"), format(2 * PACED, ",d")))
    each = watched()
    figure("watched: CPU, a monitor by itself", each["single"], "us/heartbeat")
    for name in ("owner", "watcher"):
        figure("watched: CPU, %s" % name, each[name], "us/heartbeat")
        figure("watched: CPU, %s to a monitor by itself" % name, each[name] / each["single"], "x")


# --- a mass death


def offline(place, prefix):
    return place.env.redis.zcard(prefix + "offline")


def kill_all(place, d, prefix, watcher=None):
    """Their timeout becomes a second by a reload. What it cost (deciding, following, Redis) and how long both took."""
    pids = [d.pid, (watcher or d).pid, place.env.redis_server.pid]
    used, began, followed = [cpu(p) for p in pids], time.monotonic(), None
    d.again(timeout="1s")
    assert d.request("POST", "/v1/reload").status == 200

    def told():
        nonlocal followed
        if watcher and followed is None and watcher.status()["offline"] == DEAD:
            followed = time.monotonic() - began
        return offline(place, prefix) == DEAD and d.status()["owed"] == 0
    wait_until(told, 120, "all to be dead", interval=0.05)
    written = time.monotonic() - began
    if watcher and followed is None:
        wait_until(lambda: watcher.status()["offline"] == DEAD, 30, "the watcher to know", interval=0.02)
        followed = time.monotonic() - began
    return [cpu(p) - u for p, u in zip(pids, used)], written, followed


def followed_deaths():
    with Place() as place:
        owner = place.monitor("o", LEASE, status=False).start()
        watcher = place.monitor("w", LEASE, status=False, cluster="another")
        place.all_beat(DEAD, [owner])
        share_out(place, owner, watcher)
        wait_until(lambda: watcher.status()["online"] == DEAD, 15, "the watcher to know all", interval=0.05)
        check_shares(owner, watcher)
        result = kill_all(place, owner, place.env.prefix, watcher)
        check_shares(owner, watcher)
        entries = place.env.redis.xlen(place.env.key("events"))
        assert entries == 2 * DEAD, "%d entries" % entries
        return result


def deaths():
    measure.conditions("%s devices stop at once, no status" % format(DEAD, ",d"))
    (o, w, r), written, followed = followed_deaths()
    with Place() as place:
        single = place.monitor("s", status=False, prefix="single:").start()
        place.all_beat(DEAD, [single])
        (s, _, rs), alone, _ = kill_all(place, single, "single:")
    figure("deaths: CPU, a monitor by itself", s / DEAD * 1e6, "us/death")
    figure("deaths: CPU, owner", o / DEAD * 1e6, "us/death")
    figure("deaths: CPU, watcher", w / DEAD * 1e6, "us/entry", note="it follows the stream, and decides nothing")
    figure("deaths: CPU, owner to a monitor by itself", o / s, "x")
    figure("deaths: CPU of Redis, with a watcher to without", r / rs, "x")
    figure("deaths: until all are written, owner to a monitor by itself", written / alone, "x")
    figure("deaths: watcher, from the reload to its last entry", followed * 1e3, "ms")
    figure("deaths: owner, from the reload until all are written", written * 1e3, "ms")
    figure("deaths: watcher behind the owner", max(0, followed - written) * 1e3, "ms")


# --- a renewal


def renewal_of(place, d):
    """The script's digest and arguments, as a node has called it last. Redis' log cuts long ones short: those come from what
    was stored by it."""
    r = place.env.redis
    r.config_set("slowlog-log-slower-than", 0)
    r.config_set("slowlog-max-len", 1000)

    keys = [place.env.key(k) for k in ("nodes", "owners", "nodes_left")]

    def find():
        for entry in r.slowlog_get(1000):
            words = entry["command"]
            words = (words.decode() if isinstance(words, bytes) else words).split(" ")
            if words[0].upper() == "EVALSHA" and words[3:6] == keys and len(words) > 10 and words[6] == d.node and words[9] == "R":
                return words
        return None
    words = wait_until(find, 10, "a renewal", interval=0.1)
    r.config_set("slowlog-log-slower-than", -1)
    run, count, said = r.hget(place.env.key("nodes"), d.node).split(" ", 2)
    epoch = {record.split(" ")[0] for record in r.hgetall(place.env.key("owners")).values()}
    assert len(epoch) == 1 and words[7] == run
    return words[1], words[8], run, int(count), said, "0-%d:%s" % (PARTITIONS - 1, epoch.pop())


def cost_of_calls(place, n, *words):
    """CPU of Redis, of one of n such calls, in us."""
    pid, pipe = place.env.redis_server.pid, place.env.redis.pipeline(transaction=False)
    for _ in range(n):
        pipe.execute_command(*words)
    before = cpu(pid)
    answers = pipe.execute()
    used = cpu(pid) - before
    assert all(a[0] == "DONE" for a in answers), answers[0]
    return used / n * 1e6, answers[-1]


def renewal():
    measure.conditions("256 partitions, all of one owner; sent in a row over one connection")
    with Place() as place:
        d = place.monitor("a", 1).start()
        wait_until(lambda: len(place.owned(d)) == PARTITIONS, 30, "it to own everything")
        sha, digest, run, count, said, claims = renewal_of(place, d)
        d.signal(signal.SIGSTOP)
        r, nodes, owners = place.env.redis, place.env.key("nodes"), place.env.key("owners")
        keys = ("EVALSHA", sha, 3, nodes, owners, place.env.key("nodes_left"), d.node, run)
        for members in (2, 3, 8):
            for k in range(1, members):
                r.hset(nodes, "%s-%d" % (d.node, k), "%016x %d %s" % (k, count, said))
            tail = ("R", count + 1, said, claims)
            _, answer = cost_of_calls(place, 1, *keys, "", *tail)
            assert len(answer[3]) == 2 * PARTITIONS and len(answer[2]) == 2 * members, "not a renewal's answer"
            calm, answer = cost_of_calls(place, RENEWALS, *keys, answer[1], *tail)
            assert not answer[3]
            changed, _ = cost_of_calls(place, RENEWALS, *keys, "", *tail)
            figure("renewal: CPU of Redis, %d members" % members, calm, "us")
            figure("renewal: CPU of Redis, %d members, owners changed" % members, changed, "us")


# --- taking over


class Round:
    """One node is killed while the other goes on."""

    def __init__(self, place, victim, survivor, device):
        self.place, self.victim, self.survivor, self.device = place, victim, survivor, device

    def run(self):
        """(until all is owned, until the death is told behind its deadline), in s."""
        env, topic = self.place.env, self.place.env.topic(self.device)
        beats = time.monotonic()
        while time.monotonic() - beats < TIMEOUT_S + 0.5:  # the survivor has heard it for a timeout
            env.publisher.publish(topic, b"", qos=0)
            last = time.time()
            time.sleep(0.1)
        time.sleep(max(0, last + TIMEOUT_S - DUE_S - time.time()))
        theirs, killed = self.place.owned(self.victim), time.time()
        self.victim.signal(signal.SIGKILL)
        began = time.monotonic()
        wait_until(lambda: theirs <= self.place.owned(self.survivor), 30, "the other to own all", interval=0.002)
        owned = time.monotonic() - began
        self.victim.wait()
        told = wait_until(self.entry, 30, "the death to be told", interval=0.01)
        return owned, told - killed, told - (last + TIMEOUT_S)

    def entry(self):
        env = self.place.env
        last = env.redis.xrevrange(env.key("events"), count=50)
        for at, e in last:
            if e["id"] == self.device:
                return e["state"] == "offline" and e["node"] == self.survivor.node and int(at.split("-")[0]) / 1000
        return False


def take_overs(lease, rounds):
    with Place() as place:
        timeout = "%dms" % (1000 * TIMEOUT_S)
        nodes = [place.monitor(k, lease, timeout).start() for k in "ab"]
        place.wait_shared(nodes)
        results = []
        for n in range(rounds):
            victim, survivor = nodes
            wait_until(lambda: ready(place, survivor) and place.owned(victim), 60, "the next round", interval=0.02)
            time.sleep(lease)  # two renewals, and what goes to it first
            mine = place.owned(victim)
            device = next(i for i in ("r%d-%d" % (n, k) for k in range(100000)) if str(partition(i)) in mine)
            results.append(Round(place, victim, survivor, device).run())
            victim.start()
        return results


def report_take_overs():
    for lease, rounds in ROUNDS:
        measure.conditions("SIGKILL, lease %ds, timeout %ss, %d times a run" % (lease, TIMEOUT_S, rounds))
        results = take_overs(lease, rounds)
        owned, told, late = ([1e3 * r[k] for r in results] for k in range(3))
        bound = 1e3 * (1.4 * lease + SLACK_S)
        name = "take-over, lease %ds" % lease
        for what, values, goal in (("owned by the other", owned, bound), ("a death that was due is told", told, None),
                                   ("that death, behind its deadline", late, bound)):
            figure("%s: %s, p50" % (name, what), measure.percentile(values, 50), "ms")
            figure("%s: %s, longest" % (name, what), max(values), "ms", ("<=", round(bound)) if goal else None,
                   "T of the contract and %d ms" % (1e3 * SLACK_S) if goal else None, bool(goal))


if __name__ == "__main__":
    report_take_overs()
    report_watched()
    deaths()
    renewal()
    report_carried()
