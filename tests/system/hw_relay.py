# SPDX-License-Identifier: MIT
"""A link to a server that can be cut: TCP, forwarded byte by byte. One relay is one node's link to one server, so that a node
can be cut off from Redis, from the broker or from both while all others reach them."""
import socket
import threading
import time

GATHER = 0.002  # seconds that bytes may wait for more: a broker that sends small packets costs less so


class Relay:
    """`to()` is the server's port. `names()` is a table of replacements of equal length in the bytes from the server: so a
    Sentinel names relays. `asked` is such a table for the bytes to the server."""

    def __init__(self, to, names=dict, asked=None):
        self.to, self.names, self.asked = to, names, asked or {}
        self.refused = None  # a client that sends this is disconnected
        self.delay = 0  # seconds by which each piece of an answer is late
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.open, self.refusing, self.pairs, self.lock = threading.Event(), False, set(), threading.Lock()
        self.accepting, self.crowd = threading.Event(), []
        self.first, self.lost = {}, set()  # what a connection began with; those of which nothing arrives any more
        self.open.set()
        self.accepting.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def cut(self, silently=True):
        """Silently: nothing passes, and the waiting bytes pass when the link is mended. Otherwise every connection is closed,
        and none is accepted."""
        self.open.clear()
        self.refusing = not silently
        if not silently:
            self.drop()

    def swallow(self, end=True):
        """A client that connects gets no answer: the system drops connects beyond a full queue. It also retries by itself, so
        such a connect succeeds some time after the link was mended. `end`: every connection ends; otherwise the connections
        carry nothing."""
        self.accepting.clear()
        self.listener.listen(0)
        self.crowd = [socket.socket() for _ in range(4)]
        for s in self.crowd:
            s.setblocking(False)
            s.connect_ex(self.listener.getsockname())
        if end:
            self.drop()
        else:
            self.open.clear()

    def lose(self, word):
        """As when a NAT entry is lost: from each connection that began with a message with `word` nothing arrives any more, and
        neither end learns that. Later connections work. Returns their number."""
        with self.lock:
            lost = {pair for pair, first in self.first.items() if word in first and pair in self.pairs}
            self.lost |= lost
        return len(lost)

    def mend(self):
        for s in self.crowd:
            s.close()
        self.listener.listen(64)
        self.accepting.set()
        self.refusing = False
        self.open.set()

    def drop(self):
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for pair in pairs:
            self.end(pair)

    def close(self):
        self.listener.close()
        self.cut(silently=False)
        self.open.set()
        self.accepting.set()

    @staticmethod
    def end(pair):
        for s in pair:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            self.accepting.wait()
            if self.refusing:
                near.close()
                continue
            threading.Thread(target=self.connect, args=(near,), daemon=True).start()

    def connect(self, near):
        self.open.wait()
        try:
            far = socket.create_connection(("127.0.0.1", self.to()), 5)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        for s in near, far:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = (near, far)
        with self.lock:
            self.pairs.add(pair)
        ways = [threading.Thread(target=self.pump, args=(pair, near, far, False), daemon=True),
                threading.Thread(target=self.pump, args=(pair, far, near, True), daemon=True)]
        for w in ways:
            w.start()
        for w in ways:
            w.join()
        near.close()
        far.close()
        with self.lock:
            self.pairs.discard(pair)

    def pump(self, pair, source, sink, is_answer):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if not is_answer and self.refused and self.refused in data:
                    break
                if not is_answer:
                    self.first.setdefault(pair, data)
                for old, new in (self.names() if is_answer else self.asked).items():
                    data = data.replace(old, new)
                if is_answer:
                    time.sleep(self.delay)
                self.open.wait()
                if pair in self.lost:
                    continue
                sink.sendall(data)
                time.sleep(GATHER)
        except OSError:
            pass
        self.open.wait()  # a cut also keeps back the end of a connection
        self.end(pair)
