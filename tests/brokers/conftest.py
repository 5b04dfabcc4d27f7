# SPDX-License-Identifier: MIT
"""One broker for the whole run, started and probed before the tests are collected, so that there is a test for each way
of being connected that it has, and one for each that it lacks."""
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))

import paho.mqtt.client as paho  # noqa: E402

import facts  # noqa: E402
import hw_again  # noqa: E402
import hw_void  # noqa: E402
from adapters import ADAPTERS  # noqa: E402
from hw_env import Env  # noqa: E402
from hw_servers import Redis  # noqa: E402
from hw_wait import wait_until  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--broker", choices=sorted(ADAPTERS), default="mosquitto", help="against which the tests run")
    parser.addoption("--short", action="store_true", help="two ways of being connected instead of all")
    parser.addoption("--rounds", type=int, default=1, help="so often what the broker lacks is tried")
    parser.addoption("--facts", help="a file for what was found out about the broker, as JSON")


class Way:
    """How the monitor is connected: protocol, QoS and number of readers; and whether this broker can serve it."""

    def __init__(self, protocol, qos, readers, known):
        self.protocol, self.qos, self.readers = protocol, qos, readers
        self.lacks = []
        if protocol == "5" and not known["v5"]:
            self.lacks.append("MQTT 5")
        elif readers > 1 and not known["shared"][protocol]:
            self.lacks.append("shared subscriptions")
        self.mqtt = {"protocol": protocol, "qos": qos, "readers": readers}

    def __str__(self):
        return "mqtt%s-qos%d-readers%d" % (self.protocol, self.qos, self.readers)


def ways(known, short):
    every = [Way(p, q, r, known) for p in ("3.1.1", "5") for q in (0, 1) for r in (1, 2)]
    served, lacking = [w for w in every if not w.lacks], [w for w in every if w.lacks]
    if not short:
        return served, lacking
    # The plainest way and the furthest from it; of each lack the plainest.
    first = {tuple(w.lacks): w for w in reversed(lacking)}
    return [served[0], served[-1]], list(first.values())


class World:
    """The broker and Redis of this run. `known`: what was found out, and what the tests add to it."""

    def __init__(self, adapter):
        self.base = tempfile.mkdtemp(prefix="hwb-", dir="/tmp")
        os.chmod(self.base, 0o755)
        self.broker = self.redis = None
        self.known = {"version": adapter.version()}
        try:
            self.broker = adapter(self.directory("mq"))
            self.broker.start()
            self.known.update(facts.probe(self.broker))
            self.redis = Redis(self.directory("rd")).start()
        except BaseException:
            if self.broker:
                sys.stderr.write(self.broker.log()[-4000:])
            self.close()
            raise

    def directory(self, name):
        path = os.path.join(self.base, name)
        os.mkdir(path)
        return path

    def close(self):
        for server in (self.broker, self.redis):
            if server:
                server.kill()
        shutil.rmtree(self.base, ignore_errors=True)


def pytest_configure(config):
    config.world = None
    config.missing = ADAPTERS[config.getoption("--broker")].missing()


def pytest_sessionstart(session):
    config = session.config
    if not config.missing and not config.getoption("collectonly"):
        config.world = World(ADAPTERS[config.getoption("--broker")])


def pytest_sessionfinish(session):
    world = session.config.world
    if world is None:
        return
    path = session.config.getoption("--facts")
    if path:
        Path(path).write_text(json.dumps(world.known, indent=1) + "\n")
    world.close()


def pytest_generate_tests(metafunc):
    """A case that takes a `way` runs on each that the broker serves; one that takes the `plainest`, which takes long, on
    that alone, and not in short; one that takes a `lacking` on each that it lacks, and as often as --rounds says."""
    config = metafunc.config
    if "round_" in metafunc.fixturenames:
        metafunc.parametrize("round_", range(1, config.getoption("--rounds") + 1))
    if config.world is None:
        served, lacking = [None], [None]
    else:
        served, lacking = ways(config.world.known, config.getoption("--short"))
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", served, ids=str)
    if "plainest" in metafunc.fixturenames:
        metafunc.parametrize("plainest", served[:1], ids=str)
    if "lacking" in metafunc.fixturenames:
        metafunc.parametrize("lacking", lacking, ids=str)


def pytest_collection_modifyitems(config, items):
    """Where there is no broker, one test is left, and says so. Where nothing is lacking, that is no skipped test."""
    if config.world and not ways(config.world.known, False)[1]:
        items[:] = [i for i in items if "lacking" not in i.fixturenames]
    if config.getoption("--short"):
        items[:] = [i for i in items if "plainest" not in i.fixturenames]
    if config.missing:
        del items[1:]
        for item in items:
            item.add_marker(pytest.mark.skip(reason=config.missing))
    hw_again.select(config, items)


class BrokerEnv(Env):
    """With a broker that may want a name and a password, and may not speak MQTT 5."""

    def connect(self, **options):
        return super().connect(**{"protocol": paho.MQTTv311, **self.broker.credentials, **options})

    def sections(self, mqtt=None, directory=None, **options):
        credentials = {}
        if self.broker.credentials:
            path = self.dir / "password"
            path.write_text(self.broker.credentials["password"] + "\n")
            credentials = {"username": self.broker.credentials["username"], "password_file": path}
        return super().sections(mqtt={**credentials, **(mqtt or {})}, directory=directory, **options)

    def retained(self, *filters):
        """What a new subscriber gets. Some of these brokers send it behind later messages: until a while nothing comes."""
        c = self.connect()
        try:
            for f in filters:
                c.subscribe(f)
            c.fence()
            seen, since = len(c.messages), time.monotonic()

            def is_quiet():
                nonlocal seen, since
                if len(c.messages) != seen:
                    seen, since = len(c.messages), time.monotonic()
                return time.monotonic() - since > 0.3
            wait_until(is_quiet, 20, "what is retained", interval=0.02)
            return {m.topic: m for m in c.messages if m.retain}
        finally:
            c.close()

    def offlines(self, names):
        """The offline transitions of these devices."""
        wanted = set(names)
        return [e for e in self.events() if e["id"] in wanted and e["state"] == "offline"]


@pytest.fixture
def known(request):
    return request.config.world.known


@pytest.fixture
def env(request):
    world = request.config.world
    if not world.broker.alive:
        world.broker.start()
    e = BrokerEnv(world.broker, world.redis, world.base)
    yield e
    wrong = e.close()
    if wrong:
        for name, text in e.logs():
            print("--- %s\n%s" % (name, text))
    e.remove()
    if wrong:
        raise wrong


def pytest_terminal_summary(terminalreporter):
    hw_void.name_voids(terminalreporter)
    hw_again.write_failed(terminalreporter)


def pytest_runtest_protocol(item, nextitem):
    return hw_void.run_until_it_proves(item, nextitem)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.only_late = hw_again.is_only_late(item, call)
    report.void = hw_void.why_void(item, call)
    e = getattr(item, "funcargs", {}).get("env")
    if report.when in ("setup", "call") and report.failed and e is not None:
        report.sections.extend(e.logs())
