# SPDX-License-Identifier: MIT
"""The harness itself: its servers are real and private, and its clients do what the other tests rely on."""
import json
import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from hw_again import late_names, one_of_each
from hw_build import FLEET, SRC
from hw_herd import Herd
from hw_http import Metrics
from hw_mqtt import Beating, Client
from hw_relay import Relay
from hw_void import Gaps, WitnessedClient, judge, least_timeout
from hw_wait import now_ms, pass_time, throughout, wait_until, wait_within


@pytest.fixture(autouse=True)
def without_daemon(env):
    env.check_events = False


def test_retained_and_live(env):
    live = env.observer()
    env.beat("a", b"one", last="status", retain=True)
    wait_until(lambda: live.messages, what="a live message")
    assert not live.messages[0].retain
    found = env.retained(env.root + "/+/status")
    assert found[env.status_topic("a")].payload == b"one"
    env.beat("a", b"", last="status", retain=True)
    wait_until(lambda: not env.retained(env.root + "/+/status"), what="the clearing")


def test_raw_client_dies_with_its_will(env):
    seen = env.observer(env.root + "/#")
    raw = env.raw(will=(env.status_topic("w"), b"gone", True))
    raw.publish((env.topic("w"), b"1"), (env.topic("w"), b"2"))
    wait_until(lambda: len(seen.on(env.topic("w"))) == 2)
    raw.die()
    wait_until(lambda: seen.on(env.status_topic("w")))
    assert seen.on(env.status_topic("w"))[0].payload == b"gone"


def test_broker_restarts_on_its_port_and_clients_come_back(env):
    env.own_broker()
    seen = env.observer()
    env.beat("a", b"x", last="status", retain=True)
    wait_until(lambda: seen.messages)
    env.broker.stop()
    env.broker.start()
    wait_until(lambda: seen.connects == 2 and seen.granted, 10)
    wait_until(env.publisher.client.is_connected)
    assert env.retained(env.root + "/#") == {}


def test_the_fleet_counts_a_transition_once(env):
    """A status that is published again, as after a broker's restart, is neither a second transition nor an early one."""
    env.own_broker()
    broker = env.broker.port
    fleet = subprocess.Popen([str(FLEET), "--port", str(broker), "--devices", "1", "--interval-ms", "50", "--seconds", "0",
                              "--timeout-ms", "60000", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        seen = env.observer("nodes/+/heartbeat")
        beats = wait_until(lambda: seen.messages, what="the fleet's heartbeats")
        topic = beats[0].topic.replace("/heartbeat", "/status")

        def tell(online, reason, seq):
            env.publisher.publish(topic, '{"online":%s,"reason":"%s","by":"n","seq":%d}' % (
                str(online).lower(), reason, seq), 1)
            n = len(seen.messages)  # it is read before the fleet's next turn but one
            wait_until(lambda: len(seen.messages) > n + 2)
        tell(True, "heartbeat", 10)
        tell(False, "will", 11)
        tell(True, "heartbeat", 12)
        for seq in (12, 11, 10):
            tell(False, "timeout", seq)
        fleet.send_signal(signal.SIGTERM)
        account = json.loads(fleet.communicate(timeout=10)[0])
    finally:
        fleet.kill()
        fleet.wait(10)
    assert account["transitions"] == 3 and account["early"] == 0, account
    assert account["delay_ms"]["n"] == 0, account


def test_persistent_broker_keeps_retained(env):
    env.own_broker(persistence=True)
    env.beat("a", b"x", last="status", retain=True, qos=1)
    env.broker.stop()
    env.broker.start()
    assert env.retained(env.root + "/#")


def test_passwords_and_tls(env, tls):
    env.own_broker(users={"u": "right"})
    with pytest.raises(AssertionError):
        c = WitnessedClient("x")
        c.username_pw_set("u", "wrong")
        c.connect("127.0.0.1", env.broker.port)
        c.loop_start()
        try:
            wait_within(c.is_connected, 0.5)
        finally:
            c.loop_stop()
    Client(env.broker.port, username="u", password="right").close()
    env.own_broker(tls=tls)
    Client(env.broker.port, tls=tls).close()


def test_redis_of_ones_own(env):
    env.own_redis(password="p")
    env.redis.set("a", 1)
    env.redis_server.stop(signal.SIGKILL)
    env.redis_server.start()
    assert env.redis.dbsize() == 0


def test_throughout_fails_when_it_should():
    with pytest.raises(AssertionError):
        throughout(lambda: False, 0.1)


def test_metrics_reader():
    m = Metrics('# HELP heartwheel_a x\n# TYPE heartwheel_a counter\nheartwheel_a{k="v\\"",l="w"} 1\nheartwheel_a{k="z"} 2\n')
    assert m.get("a") == 3 and m.get("a", l="w") == 1 and m.labels("a", "k") == {'v\\"', "z"}
    with pytest.raises(AssertionError):
        Metrics("heartwheel_b 1\n")


# --- who is tried again


BOUNDS = """import pytest
from hw_wait import NotWithin, in_time, throughout, wait_until, wait_within


class Deadly:
    def called_dead(self):
        return True


@pytest.fixture
def false_edge():
    yield
    raise AssertionError("told twice")


@pytest.fixture
def dead():
    return Deadly()


@pytest.fixture
def slow():
    wait_within(lambda: False, 0)


def test_lost():
    wait_within(lambda: False, 0)


def test_late():
    in_time(2, 1)


def test_slow_to_begin(slow):
    pass


def test_untrue():
    assert 2 < 1


def test_untrue_before():
    try:
        assert 2 < 1
    finally:
        wait_within(lambda: False, 0)


def test_untrue_for_a_moment():
    throughout(lambda: False, 0)


def test_untrue_in_the_end(false_edge):
    wait_within(lambda: False, 0)


def test_somebody_was_called_dead(dead):
    wait_within(lambda: False, 0)


def test_broken():
    raise KeyError
"""


def run_pytest(tmp_path, **environment):
    """The tests of test_x.py, with this directory's conftest.py."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("HW_FAILED", "HW_ONLY")}
    return subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "conftest", "-q", "test_x.py"],
                          cwd=tmp_path, env={**inherited, "PYTHONPATH": str(SRC / "tests" / "system"), **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_only_a_bound_that_passed_is_no_falsehood(tmp_path):
    """A false report is no bound that passed, also if a bound passed as well."""
    (tmp_path / "test_x.py").write_text(BOUNDS)
    failed = tmp_path / "failed"
    done = run_pytest(tmp_path, HW_FAILED=str(failed))
    assert done.returncode == 1, done.stdout
    kinds = {}
    for line in failed.read_text().splitlines():
        kind, name = line.split(" test_x.py::")
        kinds.setdefault(name, set()).add(kind)
    late = {name for name, kind in kinds.items() if kind == {"late"}}
    assert late == {"test_lost", "test_late", "test_slow_to_begin"}, kinds
    assert len(kinds) == 9


def failures(*lines):
    return "".join(line + "\n" for line in lines)


@pytest.mark.parametrize("lines,names", [
    (["late b[1 2]", "late a"], ["a", "b[1 2]"]), (["late a", "other b"], []), (["late a", "other a"], []),
    (["late %d" % k for k in range(4)], list("0123")), (["late %d" % k for k in range(5)], []), ([], [])])
def test_who_may_be_run_again(tmp_path, lines, names):
    (tmp_path / "failed").write_text(failures(*lines))
    assert late_names(tmp_path / "failed") == names
    assert late_names(tmp_path / "none") == []


# Fails in the runs that are named, by their numbers.
SCRIPTED = """import os
import pathlib
from hw_wait import in_time


def number():
    path = pathlib.Path(os.environ["RUNS"])
    path.write_text(path.read_text() + "x" if path.exists() else "x")
    return len(path.read_text())


def test_scripted():
    in_time(1 if str(number()) in os.environ["LATE"].split() else 0, 0)


def test_beside_it():
    pass
"""


@pytest.mark.parametrize("late,runs,passes", [("", 1, True), ("1", 4, True), ("1 2", 2, False), ("1 4", 4, False)])
def test_alone_and_three_times(tmp_path, late, runs, passes):
    """The script contains a test that misses its bound in some of its runs: of the three runs one miss is one too many."""
    shutil.copy(SRC / "tests" / "system" / "hw_wait.py", tmp_path)
    (tmp_path / "test_x.py").write_text(SCRIPTED)
    (tmp_path / "conftest.py").write_text("from hw_conftest import *\n")
    shutil.copy(SRC / "tests" / "system" / "conftest.py", tmp_path / "hw_conftest.py")
    environment = {k: v for k, v in os.environ.items() if k not in ("HW_FAILED", "HW_ONLY")}
    environment.update(RUNS=str(tmp_path / "runs"), LATE=late, PYTHONPATH="%s:%s" % (tmp_path, SRC / "tests" / "system"))
    done = subprocess.run(["sh", str(SRC / "tests" / "tools" / "system-tests.sh"), str(tmp_path), "test_x.py"], cwd=tmp_path,
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (done.returncode == 0) is passes, done.stdout
    assert len((tmp_path / "runs").read_text()) == runs, done.stdout
    last = done.stdout.splitlines()[-2:]
    if passes and late:
        assert last == ["flaky: test_x.py::test_scripted", "2 passed, 0 skipped in 0.0s"], done.stdout
    assert "flaky: " not in done.stdout or passes and late


def test_a_device_that_was_called_dead_while_it_beat(env):
    """A device was called offline while it beat, by its transitions and by what the clients wrote: this is found also after the
    block of its heartbeats has ended."""
    env.daemon(timeout="1s")
    with env.beating(["a"], 0.1):
        env.wait_store("a", "online")
        pass_time(1.3)
        assert not env.called_dead()
        entry = {"id": "a", "state": "offline", "reason": "timeout", "time_ms": now_ms(), "seq": 1}
        env.redis.xadd(env.key("events"), entry)
        pass_time(0.05)
        assert env.called_dead()
    assert env.called_dead()
    env.redis.delete(env.key("events"))
    env.wait_store("a", "offline")
    assert len(env.events("a")) == 1 and not env.called_dead(), "it had ended to beat"


VOID = """import pytest
from hw_void import Void

runs = {}


class Late:
    def __init__(self, why):
        self.why = why

    def why_void(self):
        return self.why


@pytest.fixture
def late():
    yield Late("it was late")


@pytest.fixture
def punctual():
    yield Late(None)


def run_of(name):
    runs[name] = runs.get(name, 0) + 1
    return runs[name]


def test_proves_at_last():
    if run_of("last") < 3:
        raise Void("late indeed")


def test_is_always_void(late):
    run_of("always")
    assert 2 < 1


def test_punctual_and_failed(punctual):
    run_of("punctual")
    assert 2 < 1


def test_late_and_passed(late):
    run_of("passed")


def test_runs():
    assert runs == {"last": 3, "always": 3, "punctual": 1, "passed": 1}
"""


def test_only_what_its_own_devices_spoiled_is_repeated(tmp_path):
    """A test fails because its own devices were late: it is repeated and named. A test that fails although its devices were in
    time has failed."""
    (tmp_path / "test_x.py").write_text(VOID)
    done = run_pytest(tmp_path)
    assert done.returncode == 1 and "2 failed, 3 passed" in done.stdout, done.stdout
    said = [line for line in done.stdout.splitlines() if line.startswith("void: ")]
    assert sorted(said) == 3 * ["void: test_x.py::test_is_always_void: it was late"] + \
        2 * ["void: test_x.py::test_proves_at_last: late indeed"], said


def test_gaps_are_those_of_what_is_meant_to_beat():
    g = Gaps()
    g.begin("a", "b")
    for topic, before, after in (("a", 1.0, 1.1), ("b", 1.0, 1.1), ("other", 1.0, 1.1), ("a", 2.0, 2.5), ("other", 9.0, 9.1)):
        g.wrote(topic, before, after)
    assert g.longest == 1.5, "from before one to after the next"
    g.link_lost()
    g.wrote("a", 7.0, 7.1)
    assert g.longest == 1.5, "while the link was down it could not write"
    assert g.worst() > 7, "the one that lasts"
    g.end("a", "b")
    g.wrote("a", 19.0, 19.1)
    assert g.worst() == 1.5


def test_what_a_client_really_wrote(env):
    """A heartbeat counts from when its bytes were sent, not from when it was handed over: here the client's thread is
    delayed."""
    client, held = env.client(), threading.Event()
    client.client.on_message = lambda *_: held.wait(20)
    client.subscribe(env.topic("hold"))
    with Beating(client, [env.topic("a")], 0.05):
        wait_until(lambda: env.topic("a") in client.gaps.last)
        env.beat("hold")
        wait_until(lambda: client.gaps.worst() > 1.5, 15, "a gap that lasts")
        held.set()
        wait_until(lambda: client.gaps.longest > 1.5, 5, "the gap to end")


def test_a_silence_of_the_timeout_is_void():
    assert least_timeout("barrier_timeout = 5s\ntimeout = 1500ms\n[group b]\ntimeout = 2s\n") == 1.5
    assert judge(1.4, 1.5) is None and "1.490 s" in judge(1.49, 1.5)


# --- make mutate


SCRIPT = """
top=%s results=results running_aside=%s
. "$top/tests/tools/suites.sh"
trap stop_parts EXIT
trap 'exit 143' TERM
part() { attend bash -c 'sleep 300 & echo $! >begun.new; mv begun.new begun; wait'; }
if [ -n "$running_aside" ]; then aside part; rejoin; else part; fi
"""


def test_a_herd_knows_when_it_beat(env):
    observer = env.observer(env.root + "/+/heartbeat")
    with Herd(env.broker.port, env.topic, ["a", "b", "c"], interval=0.05) as herd:
        herd.revive("a", "b")
        wait_until(lambda: len(observer.on(env.topic("a"))) > 3 and len(observer.on(env.topic("b"))) > 3)
        herd.kill("a")
        assert herd.living() == {"b"} and herd.dead() == {"a", "c"} and not herd.heard("c")
        observer.fence()
        n, last = len(observer.on(env.topic("a"))), herd.last("a")
        assert observer.on(env.topic("a"))[-1].wall >= last
        wait_until(lambda: len(observer.on(env.topic("b"))) > n + 5)
        assert len(observer.on(env.topic("a"))) == n and herd.last("a") == last
        herd.revive("a")
        wait_until(lambda: len(observer.on(env.topic("a"))) > n)
        lives = herd.lives("a")
        assert len(lives) == 2 and lives[0].last == last and lives[0].born <= last < lives[1].born


@pytest.mark.parametrize("silently", [True, False])
def test_a_relay_that_is_cut(env, silently):
    relay = Relay(lambda: env.broker.port)
    observer = env.observer("relay/" + env.root)
    client = Client(relay.port)
    client.publish("relay/" + env.root, b"one")
    wait_until(lambda: len(observer.messages) == 1)
    relay.cut(silently)
    client.publish("relay/" + env.root, b"two", qos=1, wait=False)
    throughout(lambda: len(observer.messages) == 1, 0.3)
    assert client.client.is_connected() is silently or wait_until(lambda: not client.client.is_connected())
    relay.mend()
    wait_until(lambda: [m.payload for m in observer.messages] == [b"one", b"two"], 10, "what was kept back")
    client.close()
    relay.close()


def is_running(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("running_aside", ["", "yes"])
def test_a_signal_ends_all_that_a_script_of_suites_runs(tmp_path, running_aside):
    """The signal also ends a child whose parent, a shell, died of the signal without passing it on."""
    script = subprocess.Popen(["bash", "-c", SCRIPT % (SRC, running_aside)], cwd=tmp_path, stdout=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL)
    begun = tmp_path / "begun"
    try:
        wait_until(begun.exists, 20, "the part to begin")
        child = int(begun.read_text())
        assert is_running(child)
        script.send_signal(signal.SIGTERM)
        assert script.wait(40) == 143
        assert not is_running(child), "left behind"
    finally:
        script.kill()
        if begun.exists() and is_running(int(begun.read_text())):
            os.kill(int(begun.read_text()), signal.SIGKILL)


def find_mutations(tmp_path, text):
    """The output and exit status of tests/mutation/mutate.py for a list, about a tree of two files."""
    for name, content in (("src/a/one.c", "int f(void)\n{\n\treturn 1 +\n\t       2;\n}\n"), ("src/b/two.c", "int g;\nint h;\nint h;\n")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "list").write_text(text)
    done = subprocess.run([sys.executable, str(SRC / "tests" / "mutation" / "mutate.py"), "--find", "--top", str(tmp_path),
                           "--list", str(tmp_path / "list")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout, done.returncode


@pytest.mark.parametrize("at,old,says,status", [
    ("f", "return 1 + 2;", "mutations found: 1 passed, 0 failed", 0),  # however it is broken into lines
    ("one.c:f", "return 1 + 2;", "mutations found: 1 passed, 0 failed", 0),
    ("two.c:f", "return 1 + 2;", "0 times in two.c:f", 1),
    ("g", "return 1 + 2;", "0 times in g", 1),
    ("f", "return 3;", "0 times in f", 1),
    ("f", "return", "mutations found: 1 passed, 0 failed", 0),
    ("h", "int h;", "2 times in h", 1),
])
def test_a_mutation_is_found_by_its_place_and_pattern(tmp_path, at, old, says, status):
    said, rc = find_mutations(tmp_path, "# == 1 chapter\n\nname m\nat %s\n- %s\n+ x\nrun unit/test_x\n" % (at, old))
    assert says in said and rc == status, said


@pytest.mark.parametrize("text", ["name m\nat f\n- return\n", "at f\n", "name m\nat f\n- a\nrun x\nfoo\n", "name m\n- a\nrun x\n",
                                  2 * "name m\nat f\n- a\n+ b\nrun x\n"])
def test_a_list_of_mutations_that_makes_no_sense(tmp_path, text):
    said, rc = find_mutations(tmp_path, text)
    assert rc == 1 and str(tmp_path / "list") in said, said


def test_of_each_test_one_set_of_parameters():
    """Of each test one set of parameters is run, and not the same set of all tests: each protocol is run with some test. The
    next seed chooses the next set."""
    names = ["a.py::plain", "a.py::x[3.1.1]", "a.py::x[5]", "a.py::y[3.1.1]", "a.py::y[5]", "b.py::x[3.1.1]", "b.py::x[5]"]
    assert one_of_each(names, 0) == {"a.py::plain", "a.py::x[3.1.1]", "a.py::y[5]", "b.py::x[3.1.1]"}
    assert one_of_each(names, 1) == {"a.py::plain", "a.py::x[5]", "a.py::y[3.1.1]", "b.py::x[5]"}
