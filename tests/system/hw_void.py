# SPDX-License-Identifier: MIT
"""Runs that prove nothing. A device of the test's own may get no processor for as long as its timeout: then it really was
silent, and the monitor is right to report that. The gaps of the devices are measured where their bytes are written, and a test
that fails after such a gap is void: it is repeated, and named "void: NAME: why". If a device wrote in time and is called
offline all the same, the test fails without a second try."""
import re
import time

import paho.mqtt.client as paho

TRIES = 3
MARGIN = 0.02  # seconds: a silence so much shorter than the timeout may be one, by the time it is read
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "": 1}


class Void(Exception):
    """The test itself was late, or could not do what it meant to: the run proves nothing and is repeated."""


class Gaps:
    """How long each topic that is meant to beat had no heartbeat while its connection was up: from just before one was written
    to just after the next was."""

    def __init__(self):
        self.meant, self.last, self.longest = set(), {}, 0.0
        self.spans = []  # (topic, from, until): wall time in ms in which a topic was beating, as long as its link was up
        self.since = {}  # of those that last

    def begin(self, *topics):
        self.meant.update(topics)
        self.since.update((t, time.time() * 1000) for t in topics)

    def end(self, *topics):
        self.meant.difference_update(topics)
        for t in topics:
            self.last.pop(t, None)
            self.close(t)

    def close(self, topic):
        if topic in self.since:
            self.spans.append((topic, self.since.pop(topic), time.time() * 1000))

    def link_lost(self):
        self.last.clear()
        for t in list(self.since):
            self.close(t)

    def beat_at(self, topic, ms, after_s):
        """Whether the topic was beating at that time, and had been for this long."""
        spans = self.spans + [(t, since, float("inf")) for t, since in list(self.since.items())]
        return any(t == topic and since + after_s * 1000 < ms < until for t, since, until in spans)

    def wrote(self, topic, before, after):
        if topic in self.meant:
            self.longest = max(self.longest, after - self.last.get(topic, after))
            self.last[topic] = before

    def worst(self):
        """The longest gap, including one that still lasts."""
        return max([self.longest, *(time.monotonic() - t for t in list(self.last.values()))])


def topic_of(packet):
    """The topic in the bytes of a PUBLISH."""
    at = 1
    while packet[at] & 0x80:
        at += 1
    return bytes(packet[at + 3:at + 3 + int.from_bytes(packet[at + 1:at + 3], "big")]).decode()


class WitnessedClient(paho.Client):
    """publish() only hands a message to the client's thread. This client knows when the message was written."""

    gaps = None

    def __init__(self, client_id, **options):
        # paho 2 asks which signatures the callbacks have; paho 1 has no other.
        if hasattr(paho, "CallbackAPIVersion"):
            options["callback_api_version"] = paho.CallbackAPIVersion.VERSION1
        super().__init__(client_id=client_id, **options)

    def _sock_send(self, buf):
        before = time.monotonic()
        n = super()._sock_send(buf)
        if self.gaps is not None and n == len(buf) and buf[0] & 0xF0 == 0x30:
            self.gaps.wrote(topic_of(buf), before, time.monotonic())
        return n


def least_timeout(text):
    """Of a configuration's groups, in seconds."""
    found = re.findall(r"^timeout = (\d+)(ms|s|m|h|d|)$", text, re.M)
    return min((int(n) * UNITS[unit] for n, unit in found), default=30.0)


def judge(gap, timeout):
    """Why a device's gap makes the run void, or None."""
    if gap < timeout - MARGIN:
        return None
    return "a device of the test's own wrote nothing for %.3f s, and the timeout is %.3f s" % (gap, timeout)


# --- pytest


def why_void(item, call):
    """Why a failed call proves nothing, or None."""
    if call.when != "call" or call.excinfo is None:
        return None
    if call.excinfo.errisinstance(Void):
        return str(call.excinfo.value)
    envs = {id(v): v for v in getattr(item, "funcargs", {}).values() if hasattr(v, "why_void")}
    return next((why for why in (e.why_void() for e in envs.values()) if why), None)


def run_until_it_proves(item, nextitem):
    """For pytest_runtest_protocol: a void run is repeated. The last run is reported, with the reasons before it. What is found
    when a test ends (a daemon that died, a transition that is there twice) does not depend on delays."""
    from _pytest.runner import runtestprotocol
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    voids = []
    for _ in range(TRIES):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        why = next((r.void for r in reports if getattr(r, "void", None)), None)
        if why is None or any(r.failed for r in reports if r.when == "teardown"):
            break
        voids.append(why)
    for r in reports:
        if r.when == "call":
            r.voids = voids
        item.ihook.pytest_runtest_logreport(report=r)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def name_voids(terminalreporter):
    """For pytest_terminal_summary."""
    for kind in ("passed", "failed", "skipped"):
        for r in terminalreporter.stats.get(kind, ()):
            for why in getattr(r, "voids", ()):
                terminalreporter.write_line("void: %s: %s" % (r.nodeid, why))
