# SPDX-License-Identifier: MIT
"""Fixtures: one mosquitto and one redis-server for the session, and a separate `env` for each test."""
import os
import shutil
import tempfile

import pytest

import hw_again
import hw_keyspace
import hw_void
from hw_browser import Chromium
from hw_env import NO_STALL, NO_STANDSTILL, Env
from hw_servers import Broker, Redis, Tls


@pytest.fixture(scope="session")
def base():
    """A short directory name, because a unix socket's path has at most 107 bytes."""
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
    b = Broker(directory(base, "mq"), settings=["set_tcp_nodelay true", "max_queued_messages 100000", "max_inflight_messages 1000"]).start()
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
    """A second authority that no program trusts."""
    return Tls(directory(base, "tls2"), "other")


@pytest.fixture(scope="session")
def chromium():
    c = Chromium()
    yield c
    c.close()


@pytest.fixture
def browser(chromium):
    """browser(OPTION=...): a page; the options are those of Playwright's newContext()."""
    pages = []

    def make(**options):
        pages.append(chromium.page(**options))
        return pages[-1]

    yield make
    for page in pages:
        page.close()


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


@pytest.fixture
def ks(env):
    """A Redis of the test's own, because keyspace notifications are set for a whole server."""
    env.own_redis(options=["--notify-keyspace-events", hw_keyspace.FLAGS])
    return env


class SharedDaemon:
    """A daemon that the tests of a module share, with a timeout of an hour: each test uses devices that no earlier test
    used."""

    def __init__(self, env):
        self.env, self.count = env, 0
        # Blindness would leave a goodbye to the timeout.
        self.d = env.daemon(timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)
        self.beat = env.beat

    def fresh(self):
        self.count += 1
        return "dev%d" % self.count

    def settle(self):
        self.env.settle(self.d)


@pytest.fixture(scope="module")
def shared_daemon(base, shared_broker, shared_redis):
    e = Env(shared_broker, shared_redis, base)
    yield SharedDaemon(e)
    wrong = e.close()
    if wrong:
        for name, text in e.logs():
            print("--- %s\n%s" % (name, text))
    e.remove()
    if wrong:
        raise wrong


@pytest.fixture(scope="session", autouse=True)
def long_runner(base, shared_broker, shared_redis, request):
    """(observer, node id) of a daemon that runs during the whole session; it is started only if a test needs it."""
    if not any("long_runner" in getattr(i, "fixturenames", ()) and i.name == "test_once_a_minute"
               for i in request.session.items):
        yield None
        return
    e = Env(shared_broker, shared_redis, base)
    try:
        observer = e.observer("heartwheel/%s/status" % e.node)
        e.daemon(timeout="1h", monitor=NO_STALL, mqtt=NO_STANDSTILL)  # the monitor publishes more often while it is blind
    except AssertionError:  # the daemon does not start at all: every test will report that
        e.close()
        yield None
        return
    yield observer, e.node
    wrong = e.close()
    e.remove()
    if wrong:
        raise wrong


def pytest_addoption(parser):
    parser.addoption("--write", action="store_true", help="test_api.py writes the manuals' answers and docs/openapi.json")


def pytest_collection_modifyitems(config, items):
    hw_again.select(config, items)


def pytest_terminal_summary(terminalreporter):
    """Names the skipped and the void tests, and writes the failed ones to a file."""
    hw_void.name_voids(terminalreporter)
    for r in terminalreporter.stats.get("skipped", ()):
        terminalreporter.write_line("skipped: %s: %s" % (
            r.nodeid, r.longrepr[2].replace("Skipped: ", "") if isinstance(r.longrepr, tuple) else r.longrepr))
    hw_again.write_failed(terminalreporter)


def pytest_runtest_protocol(item, nextitem):
    return hw_void.run_until_it_proves(item, nextitem)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.only_late = hw_again.is_only_late(item, call)
    report.void = hw_void.why_void(item, call)
    if report.when in ("setup", "call") and report.failed:
        arguments = getattr(item, "funcargs", {})
        for e in (arguments.get("env"), getattr(arguments.get("shared_daemon"), "env", None)):
            if e is not None:
                report.sections.extend(e.logs())
