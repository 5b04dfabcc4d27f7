# SPDX-License-Identifier: MIT
"""Followers whose offset Redis has trimmed: entries that heartwheel-history keeps come from there, the rest is reported as a
gap."""
import http.server
import itertools
import json
import os
import socketserver
import threading
import time

import pytest

from hw_history import BUILT, History, Scribe, Sqlite, wait_read
from hw_relay import Relay
from hw_tasks import Sender, Tasks
from hw_wait import pass_time, throughout, wait_until
from test_tasks_follow import ack, heard, offset

pytestmark = pytest.mark.skipif(not BUILT, reason="heartwheel-history is not built")


class Rig:
    """A stream, heartwheel-history, and heartwheel-tasks, which knows its socket; `me` follows from the stream's beginning
    on."""

    def __init__(self, env, seed, follow=None, devices=6, **options):
        env.own_redis()
        self.env, self.scribe = env, Scribe(env, seed, devices=devices)
        self.history = History(env, Sqlite(env.own_dir("db")))
        self.tasks = Tasks(env, ack_wait="60s", history={"socket": self.history.socket}, **options)
        self.stream, self.me, self.follow = self.scribe.stream, env.root + "-me", follow or {}

    def begin(self, n=5):
        """Some entries that the follower acknowledges, and that heartwheel-history has read."""
        self.scribe.some(n)
        self.history.start()
        wait_read(self.history, self.env)
        self.tasks.start()
        self.follower = Sender(self.tasks, self.me)
        self.follower.wait(self.follower.ask("follow", {"from": "start", **self.follow}), "complete")
        wanted = [i for i, e in self.scribe.written.items() if self.matches(e)]
        wait_until(lambda: len(heard(self.follower)) >= len(wanted), what="what there is")
        self.ack(wanted[-1])
        self.at = wanted[-1]
        self.tasks.stop()
        return self

    def matches(self, e):
        return e["id"] in self.follow.get("ids", [e["id"]]) and e["group"] == self.follow.get("group", e["group"])

    def ack(self, msg_id):
        ack(self.follower, msg_id)
        wait_until(lambda: offset(self.tasks, self.me) == msg_id, what="the ack")

    def trim(self, keep):
        self.env.redis.xtrim(self.stream, maxlen=keep, approximate=False)
        return self.env.redis.xrange(self.stream, count=1)[0][0]

    def back(self):
        """The follower returns and gets all messages, acknowledging whenever the window is full: (action, msg_id, payload),
        without repetitions."""
        self.n = len(heard(self.follower))
        self.tasks.start()
        last = next(i for i in reversed(self.scribe.written) if self.matches(self.scribe.written[i]))

        def all_of_it():
            got = self.got()
            if got and len(got) % 100 == 0 and got[-1][1] != last:
                ack(self.follower, got[-1][1])
            return got and got[-1][1] == last
        wait_until(all_of_it, 60, "all to come, to %s" % last)
        return self.got()

    def got(self):
        return [(t["action"], t["msg_id"], t["payload"]) for t in heard(self.follower)[self.n:]]

    def want(self, ids):
        """The transitions of these entries, as the follower gets them."""
        return [("transition", i, {**{k: e[k] for k in ("id", "state", "reason", "group", "node")},
                                   **{k: int(e[k]) for k in ("time_ms", "last_seen_ms", "seq")}})
                for i, e in ((i, self.scribe.written[i]) for i in ids) if self.matches(e)]

    def behind(self, at):
        ids = list(self.scribe.written)
        return ids[ids.index(at) + 1:]


def before(place):
    ms, n = (int(x) for x in place.split("-"))
    return "%d-%d" % (ms, n - 1) if n else "%d-%d" % (ms - 1, 2 ** 64 - 1)


def gap(after, to, lost=None):
    return ("gap", before(to), {"after": after, "before": to, "lost": lost})


def test_what_was_trimmed_comes_from_history_in_order_and_once(env):
    """More than a window, and more than a page of heartwheel-history; then Redis' entries follow."""
    r = Rig(env, 1).begin()
    r.scribe.some(750)
    odd = 'a/"<&,\u00e4'
    r.scribe.write([r.scribe.entry(odd, "online", r.scribe.now + 1), r.scribe.entry(odd, "offline", r.scribe.now + 2, "will")])
    r.scribe.some(60)
    wait_read(r.history, env)
    r.trim(40)
    assert r.back() == r.want(r.behind(r.at))
    new = r.scribe.write([r.scribe.next()])
    ack(r.follower, r.got()[-1][1])
    wait_until(lambda: r.got()[-1][1] == new[0], what="what comes then")


def test_a_filter_holds_for_what_history_has(env):
    r = Rig(env, 2, follow={"ids": ["d1", "d4"], "group": "g1"}).begin(40)
    r.scribe.some(1200)
    wait_read(r.history, env)
    r.trim(10)
    want = r.want(r.behind(r.at))
    assert 100 < len(want) < 400 and {w[2]["id"] for w in want} == {"d1"}
    assert r.back() == want


def test_without_history_it_is_a_gap(env):
    r = Rig(env, 3).begin()
    r.scribe.some(50)
    oldest = r.trim(10)
    r.history.stop()
    assert r.back() == [gap(r.at, oldest)] + r.want(list(r.scribe.written)[-10:])


class Between(Relay):
    """A link to Redis. `happen` is called once, between Redis' answer where a stream begins and the read of the entries after
    it."""

    ASKED = b"\r\n$1\r\n-\r\n$1\r\n+\r\n$5\r\nCOUNT\r\n$1\r\n1\r\n"

    def __init__(self, to, happen):
        super().__init__(to)
        self.happen, self.answered = happen, threading.Event()

    def pump(self, pair, source, sink, is_answer):
        try:
            while data := source.recv(65536):
                at = data.find(self.ASKED) + len(self.ASKED)
                if not is_answer and self.happen and at >= len(self.ASKED):
                    happen, self.happen = self.happen, None
                    self.answered.clear()
                    sink.sendall(data[:at])
                    self.answered.wait(10)
                    happen()
                    data = data[at:]
                sink.sendall(data)
                if is_answer:
                    self.answered.set()
        except OSError:
            pass
        finally:
            self.end(pair)


def test_what_is_trimmed_between_two_questions_is_told(env):
    """XADD MAXLEN may trim at any moment: also just after the stream's first entry was still the follower's next one. The loss
    is reported."""
    way = Between(lambda: env.redis_server.port, None)
    r = Rig(env, 11, redis={"port": way.port}).begin()
    r.history.stop()
    r.scribe.some(30)
    way.happen = lambda: r.trim(10)
    rest = list(r.scribe.written)[-10:]
    assert r.back() == [gap(r.at, rest[0])] + r.want(rest)
    assert way.happen is None, "it has happened between the two"
    way.close()


def test_what_history_has_not_either_is_a_gap(env):
    """heartwheel-history was away while Redis trimmed; it knows the number of these entries."""
    r = Rig(env, 4).begin()
    r.scribe.some(30)
    wait_read(r.history, env)
    r.history.stop()
    ids = list(r.scribe.written)
    r.scribe.some(40)
    oldest = r.trim(15)
    r.history.start()
    wait_read(r.history, env)
    r.scribe.some(20)
    wait_read(r.history, env)
    r.trim(8)
    first = ids.index(r.at) + 1
    assert r.back() == r.want(ids[first:]) + [gap(ids[-1], oldest, 25)] + r.want(r.behind(before_of(r, oldest)))


def before_of(r, msg_id):
    ids = list(r.scribe.written)
    return ids[ids.index(msg_id) - 1]


def test_a_history_that_began_later_has_the_rest(env):
    """What lay between the follower's offset and the first entry that heartwheel-history keeps is unknown."""
    r = Rig(env, 5).begin()
    r.scribe.some(30)
    r.trim(20)
    other = History(env, Sqlite(env.own_dir("db2")), socket=r.history.socket)
    r.history.stop()
    other.socket = r.history.socket
    other.start()
    wait_read(other, env)
    r.scribe.some(20)
    wait_read(other, env)
    begun = list(r.scribe.written)[15]
    r.trim(6)
    assert r.back() == [gap(r.at, begun)] + r.want(r.behind(before_of(r, begun)))


def test_a_history_that_stands_behind_is_waited_for(env):
    """heartwheel-history may be about to write the trimmed entries, so the follower waits for it, but not for ever."""
    r = Rig(env, 6).begin()
    r.scribe.some(30)
    wait_read(r.history, env)
    ids = list(r.scribe.written)
    # Redis is not let to history: it answers, and stays where it is.
    r.history.stop()
    r.history.conf.write_text(r.history.conf.read_text().replace("port = %d" % env.redis_server.port, "port = 1"))
    r.history.start()
    r.scribe.some(30)
    oldest = r.trim(10)
    first = ids.index(r.at) + 1
    assert r.back() == r.want(ids[first:]) + [gap(ids[-1], oldest)] + r.want(list(r.scribe.written)[-10:])


def test_a_slow_follower_of_whom_redis_trims_meanwhile_loses_nothing(env):
    """The slow follower acknowledges, so no message is repeated; entries that Redis trims between two of its windows come from
    heartwheel-history."""
    r = Rig(env, 7).begin()
    r.scribe.some(300)
    wait_read(r.history, env)
    r.n = len(heard(r.follower))
    r.tasks.start()
    wait_until(lambda: len(r.got()) == 100, what="a window")
    r.trim(20)
    ack(r.follower, r.got()[-1][1])
    wait_until(lambda: len(r.got()) == 200, what="the next")
    ack(r.follower, r.got()[-1][1])
    wait_until(lambda: len(r.got()) == 300, what="the last")
    assert r.got() == r.want(r.behind(r.at))


def test_a_slow_follower_without_history_is_told_what_redis_trims_meanwhile(env):
    r = Rig(env, 8).begin()
    r.history.stop()
    r.scribe.some(300)
    r.n = len(heard(r.follower))
    r.tasks.start()
    wait_until(lambda: len(r.got()) == 100, what="a window")
    oldest = r.trim(20)
    last = r.got()[-1][1]
    ack(r.follower, last)
    wait_until(lambda: len(r.got()) == 121, what="the rest")
    assert r.got()[100:] == [gap(last, oldest)] + r.want(list(r.scribe.written)[-20:])


def test_a_history_that_is_being_started_is_waited_for(env):
    """All daemons are restarted, or SQL is away for a moment: the follower waits for heartwheel-history's entries."""
    r = Rig(env, 12).begin()
    r.scribe.some(30)
    wait_read(r.history, env)
    r.history.stop()
    r.trim(10)
    r.n = len(heard(r.follower))
    r.tasks.start()
    throughout(lambda: r.got() == [], 2)
    r.history.start()
    want = r.want(r.behind(r.at))
    wait_until(lambda: len(r.got()) >= len(want), what="what was trimmed")
    assert r.got() == want


def test_each_time_that_history_stands_behind_it_is_waited_for(env):
    """heartwheel-history had caught up meanwhile, so an earlier wait does not shorten this one."""
    r = Rig(env, 13).begin()
    r.history.stop()
    r.scribe.some(150)
    ids = list(r.scribe.written)[-150:]
    r.trim(10)
    rows = [json.dumps({**w[2], "event": w[1]}) for w in r.want(ids[:140])]
    known = [0]  # of them it has read so many

    def body(path):
        after = path.split("after=")[1].split("&")[0]
        first = ids.index(after) + 1 if after in ids else 0
        at = ids[known[0] - 1] if known[0] else r.at
        return ('{"events":[%s],"gaps":[],"at":"%s","from":"1-1"}' % (",".join(rows[first:known[0]]), at)).encode()
    server = Silent(r.history.socket, body)
    try:
        r.n = len(heard(r.follower))
        r.tasks.start()
        wait_until(lambda: server.asked, what="it to be asked")
        begun = time.monotonic()
        throughout(lambda: r.got() == [], 1)
        known[0] = 100
        wait_until(lambda: len(r.got()) == 100, what="a window")
        throughout(lambda: len(r.got()) == 100, 10 - (time.monotonic() - begun))
        asked = server.asked
        ack(r.follower, r.got()[-1][1])
        wait_until(lambda: server.asked >= asked + 2, what="it to be asked again")
        known[0] = 140
        wait_until(lambda: len(r.got()) >= 150, what="the rest")
        assert r.got() == r.want(ids)
    finally:
        server.shutdown()
        server.server_close()
        os.unlink(r.history.socket)


@pytest.mark.parametrize("instances", ["one", "several"])
def test_it_is_waited_for_behind_what_it_has_just_given(env, instances):
    """Waits for entries after those that heartwheel-history has just given, and after those that are not acknowledged yet."""
    r = Rig(env, 14, instances=instances).begin()
    r.history.stop()
    r.scribe.some(30)
    ids = list(r.scribe.written)[-30:]
    r.trim(5)
    rows = [json.dumps({**w[2], "event": w[1]}) for w in r.want(ids[:25])]
    known = [10]  # of them it has read so many

    def body(path):
        after = path.split("after=")[1].split("&")[0]
        first = ids.index(after) + 1 if after in ids else 0
        return ('{"events":[%s],"gaps":[],"at":"%s","from":"1-1"}' % (",".join(rows[first:known[0]]), ids[known[0] - 1])).encode()
    server = Silent(r.history.socket, body)
    try:
        r.n = len(heard(r.follower))
        r.tasks.start()
        wait_until(lambda: len(r.got()) >= 10, what="what it has read")
        throughout(lambda: len(r.got()) == 10, 2)
        known[0] = 25
        wait_until(lambda: len(r.got()) >= 30, what="the rest")
        assert r.got() == r.want(ids)
    finally:
        server.shutdown()
        server.server_close()
        os.unlink(r.history.socket)


class Silent(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A server that takes requests, and answers with `body`, or with what body(path) returns, or never."""

    daemon_threads = True

    def __init__(self, path, body=None):
        self.body, self.asked, self.over = body, 0, threading.Event()
        super().__init__(str(path), SilentHandler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class SilentHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked += 1
        if self.server.body is None:
            self.server.over.wait(60)
            return
        body = self.server.body(self.path) if callable(self.server.body) else self.server.body
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "-"

    def log_message(self, *args):
        pass


def test_nobody_waits_for_a_history_that_is_silent(env):
    """Other followers, and tasks, go on; the follower that needs heartwheel-history gets a gap in the end."""
    r = Rig(env, 9).begin()
    r.history.stop()
    r.scribe.some(30)
    oldest = r.trim(10)
    server = Silent(r.history.socket)
    try:
        r.n = len(heard(r.follower))
        r.tasks.start()
        wait_until(lambda: server.asked, what="it to be asked")
        other = Sender(r.tasks, env.root + "-other")
        other.wait(other.ask("follow", {"from": "start"}), "complete")
        wait_until(lambda: len(heard(other)) >= 10, what="the other to get what there is")
        assert r.got() == []
        wait_until(lambda: len(r.got()) == 11, what="the gap, and the rest")
        assert r.got()[0] == gap(r.at, oldest)
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        os.unlink(r.history.socket)


SENSELESS = [b"", b"[]", b"{", b"{}", b"null", b'{"events":{},"gaps":[],"at":"9-9","from":"1-1"}', b'{"events":[],"gaps":[],"at":9,"from":"1-1"}',
             b'{"events":[],"gaps":[],"at":"9-9","from":null}', b'{"events":[1,{}],"gaps":[]}', b"x" * 5_000_000,
             json.dumps({"events": [], "gaps": [], "at": "x", "from": "1-1"}).encode(),
             b'{"events":[{},7],"gaps":[],"at":"9-9","from":"1-1","next":"9-9"}']


@pytest.mark.parametrize("bodies", [SENSELESS[:4], SENSELESS[4:8], SENSELESS[8:11], SENSELESS[11:]], ids=range(4))
def test_answers_that_make_no_sense_are_a_gap(env, bodies):
    """heartwheel-history is asked once a second for a while; then the follower gets a gap."""
    r = Rig(env, 10).begin()
    r.history.stop()
    r.scribe.some(12)
    oldest = r.trim(4)
    turn = itertools.cycle(bodies)
    server = Silent(r.history.socket, lambda path: next(turn))
    try:
        assert r.back() == [gap(r.at, oldest)] + r.want(list(r.scribe.written)[-4:])
        assert len(bodies) <= server.asked <= 15
    finally:
        server.shutdown()
        server.server_close()
        os.unlink(r.history.socket)


def test_a_place_that_is_there_is_no_gap(env):
    """The entry at the follower's offset is the stream's first: heartwheel-history is not asked, and no gap is reported."""
    r = Rig(env, 11).begin()
    r.history.stop()
    r.scribe.some(20)
    r.trim(21)
    assert r.env.redis.xrange(r.stream, count=1)[0][0] == r.at
    assert r.back() == r.want(r.behind(r.at))
    throughout(lambda: all(a == "transition" for a, _, _ in r.got()), 0.3)
