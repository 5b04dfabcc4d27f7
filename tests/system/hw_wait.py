# SPDX-License-Identifier: MIT
"""Waiting until a condition holds, with a deadline, and letting time pass."""
import time

PATIENCE = 30  # seconds that anything may take on a machine that has other things to do; a deadline costs nothing when it is met


class NotWithin(AssertionError):
    """A bound on time has passed before something happened, or something took longer. On a busy machine this alone proves
    little, so such a test is repeated, alone and three times (hw_again.py). False states raise other exceptions."""


def wait_until(predicate, timeout=PATIENCE, what="", interval=0.01):
    """Polls until predicate() is true and returns its value; fails after `timeout` seconds, but not before PATIENCE is over.
    Not for short states, which polling may miss; and not if the deadline itself is tested: wait_within()."""
    return wait_within(predicate, max(timeout, PATIENCE), what, interval)


def wait_within(predicate, seconds, what="", interval=0.01):
    """As wait_until(), if the test claims that it takes no longer. The longer it takes, the more rarely it polls: polling costs
    the programs under test, and a browser, more than the test."""
    began = time.monotonic()
    while True:
        value = predicate()
        if value:
            return value
        waited = time.monotonic() - began
        if waited > seconds:
            raise NotWithin("not within %.1f s: %s" % (seconds, what or predicate))
        time.sleep(max(interval, min(0.1, waited / 50)))


def in_time(took, most, what=""):
    """Fails if something took longer than allowed. Call it last in a test: false states are to be reported first."""
    if took > most:
        raise NotWithin("%.4g, and at most %.4g: %s" % (took, most, what))


def throughout(predicate, seconds, what=""):
    """Fails if predicate() is ever false within `seconds`: lets time pass by polling."""
    deadline = time.monotonic() + seconds
    while True:
        assert predicate(), "did not hold for %.1f s: %s" % (seconds, what or predicate)
        left = deadline - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(0.02, left))


def pass_time(seconds):
    """Lets silence pass."""
    time.sleep(max(0, seconds))


def now_ms():
    return int(time.time() * 1000)
