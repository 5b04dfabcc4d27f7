# SPDX-License-Identifier: MIT
"""The keys of heartwheel-alert in memory, against a real Redis: the same calls of the four scripts and the same commands that
read, in random order, have the same answers, and leave the same keys."""
import os
import random
import subprocess
import time

import redis

from hw_build import BUILD
from hw_wait import wait_until

PROGRAM = BUILD / "tests" / "system" / "alert_keys"
COMMIT, RENEW, TAKE, TRIM = range(4)
P = "t:device:"
KEYED = [P + k for k in ("alert", "incidents", "incidents:closed", "silences", "incident_events")]
LEASED = [P + "alert:lease", P + "alert"]
IDS = ["%012d" % k for k in range(8)]
DEVICES = ["d%d" % k for k in range(6)]
EPOCH = 2_000_000_000  # more than the seconds of the clock, so that the script's own epoch decides


class Twins:
    def __init__(self, server, seed):
        self.redis, self.rng = server, random.Random(seed)
        self.proc = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.parser = self.proc.stdout
        self.texts = [subprocess.run([PROGRAM, str(k)], stdout=subprocess.PIPE, check=True).stdout.decode() for k in range(4)]
        self.shas = [server.script_load(t) for t in self.texts]
        assert [self.mine("SCRIPT", "LOAD", t) for t in self.texts] == ["%040d" % k for k in range(4)]
        self.epoch, self.number, self.known = EPOCH, 0, set()

    def close(self):
        self.proc.stdin.close()
        assert self.proc.wait(10) == 0

    # one command

    def mine(self, *words):
        words = [str(w).encode() for w in words]
        self.proc.stdin.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        self.proc.stdin.flush()
        return self.answer()

    def answer(self):
        line = self.parser.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        if kind == b"$":
            return None if rest == b"-1" else self.parser.read(int(rest) + 2)[:-2].decode()
        return int(rest) if kind == b":" else line.decode()

    def both(self, *words):
        theirs = self.plain(self.redis.execute_command(*words))
        assert self.mine(*words) == theirs, words
        return theirs

    @classmethod
    def plain(cls, answer):
        """The answer as it came over the wire."""
        if isinstance(answer, dict):
            answer = [x for pair in answer.items() for x in pair]
        if isinstance(answer, (list, tuple)):
            return [cls.plain(a) for a in answer]
        return answer.decode() if isinstance(answer, bytes) else answer

    def script(self, which, keys, args, compared=None):
        theirs = self.plain(self.redis.execute_command("EVALSHA", self.shas[which], len(keys), *keys, *args))
        ours = self.mine("EVALSHA", "%040d" % which, len(keys), *keys, *args)
        if compared:
            theirs, ours = theirs[:compared], ours[:compared]
        assert ours == theirs, (which, args)
        return ours

    # the scripts

    def take(self, run="r1"):
        answer = self.script(TAKE, LEASED, ["n1", run, 30000, 1, self.epoch, 0], 5)
        self.epoch, self.run = int(answer[1]), run
        self.number = int(answer[3] or 0)

    def renew(self):
        self.script(RENEW, LEASED, ["n1", self.rng.choice([self.run, self.run, "other"]), 30000, 0, self.epoch,
                                    self.rng.choice([0, 0, 0, 1])], 2)
        if not self.redis.exists(LEASED[0]):  # it was given back
            self.take()

    def item(self):
        r = self.rng
        i, d, n = r.choice(IDS), r.choice(DEVICES), r.randrange(1000)
        fields = [w for k in r.sample(range(9), 4) for w in ("f%d" % k, r.choice(["", "x y", "ü\n", str(n)]))]
        return r.choice([
            ["I", i, n, r.choice([0, 0, n]), len(fields), *fields], ["Z", i], ["D", i], ["T", i, "ops", "opened %d" % n],
            ["J", i, d, "down %d 1" % n], ["J", i, d, "down %d 1" % n], ["L", i, d], ["R", "ops", n, 5, '{"m":%d}' % n],
            ["S", i, len(fields), *fields], ["U", i], ["A", r.choice(["events", "parent_heard"]), "%d-0" % n],
            ["E", i, "opened", n, "", r.choice(["", "ops"]), r.choice(["", "device"]), "", r.choice(["", d]), ""],
            ["P", d, 1, n, "wash"]])

    def commit(self):
        r = self.rng
        number = self.number + r.choice([1] * 12 + [0, 2])
        rewrite = int(r.random() < 0.05)
        holder = r.choice(["n1 " + self.run] * 15 + ["n1 other"])
        items, moved = [], set()
        for item in (self.item() for _ in range(r.randrange(12))):
            # As the engine does: a commit has one item of a member, and none of the members of an incident that it drops.
            about = {(item[1], d) for d in (DEVICES if item[0] == "D" else item[2:3])} if item[0] in "JLD" else set()
            if not about & moved:
                moved |= about
                items += item
        verdict, text = self.script(COMMIT, KEYED, [holder, self.epoch, number, rewrite, P, 1000, *items])
        if verdict == "OK":
            self.number = int(text)

    def trim(self):
        r = self.rng
        self.script(TRIM, KEYED, [r.choice(["n1 " + self.run, "n1 other"]), self.epoch, P, r.choice([0, 100, 900]),
                                  r.choice([2, 1000]), r.choice([1, 100])])

    # what is read

    def scan(self, ask, command, key):
        found, cursor = {}, "0"
        while True:
            answer = ask(command, key, cursor, "COUNT", 2)
            if isinstance(answer[1], dict):
                found.update(answer[1])
            elif answer[1] and isinstance(answer[1][0], tuple):
                found.update(answer[1])
            else:
                found.update(zip(answer[1][::2], answer[1][1::2]))
            cursor = str(answer[0])
            if cursor == "0":
                return {k: float(v) if command == "ZSCAN" else v for k, v in found.items()}

    def read(self):
        r = self.rng
        self.both("ZRANGE", KEYED[1], *r.choice([(0, -1), (0, 2), (1, 1), (5, 2)]))
        self.both("ZREVRANGE", KEYED[2], r.randrange(4), r.randrange(8))
        self.both("ZREVRANK", KEYED[2], r.choice(IDS))
        self.both("ZRANGEBYSCORE", KEYED[2], r.choice([0, 100, "-inf"]), r.choice([500, "+inf"]), "LIMIT", 0, r.randrange(1, 6))
        self.both("MGET", P + "nothing", P + "text")

    def compare(self):
        """All keys are the same, and none is left over."""
        now = {k.decode() if isinstance(k, bytes) else k for k in self.redis.keys(P + "*")} - {LEASED[0]}
        for key in now | self.known:
            kind = self.redis.type(key)
            if kind == "stream":
                mine, theirs = self.mine("XRANGE", key, "-", "+", "COUNT", 5000), self.redis.xrange(key)
                assert [dict(zip(w[::2], w[1::2])) for _, w in mine] == [fields for _, fields in theirs], key
            elif kind == "set":
                assert set(self.mine("SMEMBERS", key)) == self.redis.smembers(key), key
            elif kind == "zset":
                assert self.scan(self.mine, "ZSCAN", key) == dict(self.redis.zrange(key, 0, -1, withscores=True)), key
            else:
                assert kind in ("hash", "none"), (key, kind)
                words = self.mine("HGETALL", key)
                assert dict(zip(words[::2], words[1::2])) == (self.redis.hgetall(key) if kind == "hash" else {}), key
                assert kind == "none" or self.scan(self.mine, "HSCAN", key) == self.redis.hgetall(key), key
        self.known |= now


def test_the_keys_in_memory_do_what_redis_does(env):
    server = env.own_redis()
    seed = int(os.environ.get("HW_SEED") or time.time_ns() % 1_000_000)
    print("HW_SEED=%d" % seed)
    client = redis.Redis(port=server.port, decode_responses=True)
    t = Twins(client, seed)
    try:
        assert t.script(RENEW, LEASED, ["n1", "r1", 30000, 0, 1, 0], 1) == ["GONE"]
        assert t.script(COMMIT, KEYED, ["n1 r1", 1, 1, 0, P, 1000]) == ["GONE", ""]
        t.take()
        done = {}
        for k in range(1500):
            act = t.rng.choice([t.commit] * 12 + [t.renew, t.trim, t.read])
            act()
            done[act.__name__] = done.get(act.__name__, 0) + 1
            if k % 10 == 0:
                t.compare()
            if t.rng.random() < 0.02:
                t.redis.delete(LEASED[0])
                t.take("r%d" % k)
        t.compare()
        assert t.number > 300 and min(done.values()) > 30, (t.number, done)
    finally:
        t.close()


def test_streams_in_memory_are_read_as_in_redis(env):
    server = env.own_redis()
    rng, ids = random.Random(5), []
    t = Twins(redis.Redis(port=server.port, decode_responses=False), 5)
    key, at = P + "events", 1
    try:
        for k in range(300):
            at += rng.randrange(1, 3)
            ids.append("%d-%d" % (at // 2, at % 2))
            t.both("XADD", key, "MAXLEN", "=" if k % 50 == 0 else "~", 100000, ids[-1], "id", "d%d" % k, "v", "")
        for _ in range(300):
            a, b, n = rng.choice(["-", *ids, "7", "400"]), rng.choice(["+", *ids]), rng.randrange(1, 20)
            for words in (("XRANGE", key, a, b, "COUNT", n), ("XREVRANGE", key, b, a, "COUNT", n)):
                theirs = [[i.decode(), [w.decode() for pair in f.items() for w in pair]] for i, f in t.redis.execute_command(*words)]
                assert t.mine(*words) == theirs, words
        assert t.mine("XADD", key, "MAXLEN", "~", 10, ids[0], "id", "x").startswith("-ERR")
        assert t.both("XTRIM", key, "MINID", ids[250]) == 250
        assert t.mine("HGETALL", key).startswith("-WRONGTYPE") and t.mine("NONSENSE", "x").startswith("-ERR")
    finally:
        t.close()


def test_what_memory_keeps_is_bounded(env):
    """Each store writes all keys, so at most 1,000 closed incidents are kept, and 1,000 entries of a stream that were read."""
    t = Twins(redis.Redis(port=env.own_redis().port, decode_responses=True), 5)

    def mine(which, keys, *args):
        return t.mine("EVALSHA", "%040d" % which, len(keys), *keys, *args)

    def commit(number, *items):
        assert mine(COMMIT, KEYED, "n1 r1", t.epoch, number, 0, P, 1000, *items) == ["OK", str(number)]
    try:
        t.take()
        commit(1, *(w for k in range(1, 1101) for w in ("I", "%012d" % k, k, k, 0)))
        assert mine(TRIM, KEYED, "n1 r1", t.epoch, P, 0, 100000, 1000) == 100
        assert t.mine("ZRANGE", KEYED[2], 0, 0) == ["%012d" % 101]
        for k in range(1, 1502):
            t.mine("XADD", P + "events", "MAXLEN", "~", 100000, "%d-0" % k, "id", "d")
        commit(2, "A", "events", "1501-0")
        kept = t.mine("XRANGE", P + "events", "-", "+", "COUNT", 5000)
        assert (kept[0][0], len(kept)) == ("501-0", 1001)
    finally:
        t.close()


def equal_in_fnv(n):
    """`n` names whose 32-bit FNV-1a has the same lowest 16 bits. These bits depend on no others, and a step can be reversed."""
    prime, inverse, letters = 0x193, pow(0x193, -1, 1 << 16), b"abcdefghijklmnopqrstuvwxyz0123456789"
    ends = {0: b""}
    for _ in range(3):
        ends = {(h * inverse & 0xffff) ^ b: bytes([b]) + end for h, end in ends.items() for b in letters}
    for k in range(1 << 30):
        h, name = 0x9dc5, b"pump-%d-" % k
        for b in name:
            h = (h ^ b) * prime & 0xffff
        if h in ends:
            yield (name + ends[h]).decode()
            n -= 1
        if not n:
            return


def test_chosen_names_cost_no_more_than_others(env):
    """Devices choose their ids. If the hash had no secret, 60,000 chosen ids would be one list of the table."""
    t = Twins(redis.Redis(port=env.own_redis().port), 1)

    def fill(key, names):
        begun = time.monotonic()
        for k in range(0, len(names), 500):
            t.mine("HSET", key, *[w for name in names[k:k + 500] for w in (name, "1")])
        assert t.mine("HSCAN", key, 0, "COUNT", 1)[0] == "59999"
        return time.monotonic() - begun
    try:
        fill("warm", ["a%d" % k for k in range(60000)])
        usual, chosen = fill("usual", ["d%d" % k for k in range(60000)]), fill("chosen", list(equal_in_fnv(60000)))
        assert chosen < 3 * usual + 1, (chosen, usual)
    finally:
        t.close()
