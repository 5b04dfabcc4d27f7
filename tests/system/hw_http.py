# SPDX-License-Identifier: MIT
"""HTTP on the control socket, and a strict reader of the metrics."""
import http.client
import json
import re
import socket

# Input that no server of ours may stumble over.
JUNK = (b"\x00" * 5000, b"GET", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/reload HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n", b"GET /v1/status HTTP/1.1\r\n" + b"X: y\r\n" * 20_000,
        b"POST /v1/reload HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"\r\n\r\n\r\n",
        b"DELETE /v1/devices/ HTTP/1.1\r\n\r\n", b"CONNECT x:1 HTTP/1.1\r\n\r\n", b"OPTIONS * HTTP/1.1\r\n\r\n",
        b"GET http://[::1/v1/status HTTP/1.1\r\n\r\n", b"GET //evil//v1/status HTTP/1.1\r\n\r\n")


class UnixHTTP(http.client.HTTPConnection):
    def __init__(self, path, timeout=30):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "<%d %r>" % (self.status, self.body[:500])


class Metrics:
    """A strict reader of the Prometheus text format."""

    SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$')
    LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)')

    def __init__(self, text):
        self.samples, self.types, self.helps = {}, {}, set()
        assert text.endswith("\n"), "the last line has no line end"
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name not in self.types, "two TYPE lines for " + name
                self.types[name] = kind
            elif line.startswith("# HELP "):
                self.helps.add(line.split(" ")[2])
            elif line and not line.startswith("#"):
                self.add(line)

    def add(self, line):
        m = self.SAMPLE.match(line)
        assert m, "not a sample: %r" % line
        name, text, value = m.groups()
        labels, at = [], 0
        while text and at < len(text):
            pair = self.LABEL.match(text, at)
            assert pair, "labels of %r" % line
            labels.append(pair.groups())
            at = pair.end()
        key = (name, tuple(sorted(labels)))
        assert key not in self.samples, "twice: %r" % line
        self.samples[key] = float(value)
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        assert name in self.types or self.types.get(family) == "histogram", "no TYPE before %r" % line

    def refused(self):
        """The number of all refused messages."""
        return self.get("refused_total")

    def get(self, name, **labels):
        """The sum over every sample of heartwheel_NAME that has these labels."""
        found = [v for (n, have), v in self.samples.items()
                 if n == "heartwheel_" + name and set(labels.items()) <= set(have)]
        return sum(found)

    def has(self, name):
        return any(n == "heartwheel_" + name for n, _ in self.samples)

    def labels(self, name, label):
        return {dict(have).get(label) for n, have in self.samples if n == "heartwheel_" + name}
