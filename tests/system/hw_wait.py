# SPDX-License-Identifier: MIT
"""Waiting until something holds, with a deadline, and letting time pass."""
import time


def wait_until(predicate, timeout=10.0, what="", interval=0.01):
    """Polls until predicate() is true and returns its value; fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("not within %.1f s: %s" % (timeout, what or predicate))
        time.sleep(interval)


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
    throughout(lambda: True, seconds)


def now_ms():
    return int(time.time() * 1000)
