# SPDX-License-Identifier: MIT
"""Fixtures: one mosquitto and one redis-server for the session, an `env` of its own for each test."""
import os
import shutil
import tempfile

import pytest

from hw_env import Broker, Env, Redis, Tls


@pytest.fixture(scope="session")
def base():
    """Short, because a unix socket's path has at most 107 bytes."""
    d = tempfile.mkdtemp(prefix="hwt-", dir="/tmp")
    os.chmod(d, 0o755)
    yield d
    shutil.rmtree(d, ignore_errors=True)


def directory(base, name):
    d = os.path.join(base, name)
    os.mkdir(d)
    return d


@pytest.fixture(scope="session")
def shared_broker(base):
    b = Broker(directory(base, "mq"), settings=["max_queued_messages 100000", "max_inflight_messages 1000"]).start()
    yield b
    b.kill()


@pytest.fixture(scope="session")
def shared_redis(base):
    r = Redis(directory(base, "rd")).start()
    yield r
    r.kill()


@pytest.fixture(scope="session")
def tls(base):
    return Tls(directory(base, "tls"))


@pytest.fixture(scope="session")
def other_tls(base):
    """A second authority that nobody trusts."""
    return Tls(directory(base, "tls2"), "other")


@pytest.fixture
def env(base, shared_broker, shared_redis, request):
    e = Env(shared_broker, shared_redis, base)
    yield e
    wrong = e.close()
    if wrong:
        for name, text in e.logs():
            print("--- %s\n%s" % (name, text))
    e.remove()
    if wrong:
        raise wrong


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    e = getattr(item, "funcargs", {}).get("env")
    if report.when == "call" and report.failed and e is not None:
        report.sections.extend(e.logs())
