# SPDX-License-Identifier: MIT
"""monitor.conf: valid files, the errors with their lines, and what a reload changes."""
import re
import signal
import subprocess
import time

import pytest

from hw_alert import HEARTWHEEL_ALERT
from hw_build import HEARTWHEELD, SRC
from hw_daemon import render
from hw_env import short
from hw_wait import throughout, wait_until, wait_within


def check(path, *args, program=HEARTWHEELD):
    return subprocess.run([str(program), "-t", "-c", str(path), *args], capture_output=True, text=True, timeout=20,
                          stdin=subprocess.DEVNULL)


def check_text(env, text, *args):
    path = env.dir / "check.conf"
    path.write_text(text)
    return path, check(path, *args)


@pytest.mark.parametrize("name", ["monitor.conf", "monitor.conf.example"])
def test_the_shipped_files_are_right(name):
    r = check(SRC / "conf" / name)
    # Its user need not exist on the machine that tests it; everything else is right.
    complaints = [l for l in r.stderr.splitlines() if "key 'user'" not in l]
    assert not complaints and (r.returncode == 0 or "heartwheel" in r.stderr), (r.returncode, r.stderr)


def test_a_right_file(env):
    path, r = check_text(env, env.text())
    assert r.returncode == 0, r.stderr
    assert not [l for l in r.stderr.splitlines() if str(path) + ":" in l]


def test_checking_starts_nothing(env):
    d = env.daemon()
    r = check(d.conf)
    assert r.returncode == 0, r.stderr
    assert d.status()["node"] == env.node
    assert subprocess.run([str(HEARTWHEELD), "--test", "-c", str(d.conf)], capture_output=True).returncode == 0


def not_there(env, **more):
    """A file that names things that do not exist. Each such line is reported, with -t and at the start, together with the other
    errors."""
    missing = env.dir / "nowhere"
    path, r = check_text(env, env.text(
        mqtt={"username": "u", "password_file": missing, "tls_ca": missing, "tls_cert": missing, "tls_key": missing},
        redis={"password_file": missing}, http={"socket_group": "nobody-of-that-name"}, **more))
    assert r.returncode == 2 and ": ok" not in r.stdout, r
    start = subprocess.run([str(HEARTWHEELD), "-f", "-c", str(path)], capture_output=True, text=True, timeout=20)
    assert start.returncode == 2 and start.stderr == r.stderr, start
    lines = path.read_text().splitlines()
    told = [l.split(": ", 2) for l in r.stderr.splitlines()]
    for where, key, what in told:
        number = int(where.rpartition(":")[2])
        assert lines[number - 1].startswith(key.split("'")[1]) and where == "%s:%d" % (path, number)
    assert sum(str(missing) in what for _, _, what in told) == 5 and "nobody-of-that-name" in told[-1][2], told
    return [key for _, key, _ in told]


NOT_THERE = ["key '%s'" % k for k in ("password_file", "tls_ca", "tls_cert", "tls_key", "password_file", "socket_group")]


def test_files_and_groups_that_are_not_there(env):
    assert not_there(env) == NOT_THERE


def test_not_there_beside_other_mistakes(env):
    assert not_there(env, monitor={"log_level": "bad"}) == ["key 'log_level'"] + NOT_THERE


WRONG = [  # section, line, key that has to be named
    ("monitor", "colour = red", "colour"),
    ("monitor", "max_devices = many", "max_devices"),
    ("monitor", "max_devices = -5", "max_devices"),
    ("monitor", "forget_after = 5 parsecs", "forget_after"),
    ("monitor", "forget_once_after = 1.5h", "forget_once_after"),
    ("monitor", "stop_timeout = -1s", "stop_timeout"),
    ("monitor", "stall_after = ms", "stall_after"),
    ("monitor", "log_level = loud", "log_level"),
    ("monitor", "log = relative/path", "log"),
    ("mqtt", "port = 70000", "port"),
    ("mqtt", "protocol = 4", "protocol"),
    ("mqtt", "readers = 0", "readers"),
    ("mqtt", "qos = 2x", "qos"),
    ("mqtt", "keepalive = soon", "keepalive"),
    ("mqtt", "Host = upper-case", "Host"),
    ("mqtt", "republish_rate = 1e3", "republish_rate"),
    ("store", "type = oracle", "type"),
    ("redis", "port = 0", "port"),
    ("redis", "db = -1", "db"),
    ("redis", "ttl_factor = 0", "ttl_factor"),
    ("redis", "events_max = 99999999999999999999", "events_max"),
    ("redis", "pasword_file = /x", "pasword_file"),
    ("group a", "timeout = 99ms", "timeout"),
    ("group a", "heartbeat = nodes/x/y", "heartbeat"),
    ("group a", "heartbeat = {id}/{id}", "heartbeat"),
    ("group a", "heartbeat = a/x{id}/b", "heartbeat"),
    ("group a", "heartbeat = a/#/{id}", "heartbeat"),
    ("group a", "heartbeat = a/b+/{id}", "heartbeat"),
    ("group a", "heartbeat =", "heartbeat"),
    ("group a", "status = a/+/{id}", "status"),
    ("group a", "timeout_max = 0", "timeout_max"),
    ("group a", "id_prefix = a+", "id_prefix"),
    ("group a", "beat = a/{id}", "beat"),
]
RIGHT = {"group a": ["heartbeat = right/{id}"]}


def test_every_wrong_line_is_named_with_its_number(env):
    lines, expected, section = [], {}, None
    for where, line, key in WRONG:
        if where != section:
            lines += ["", "# a comment", "[%s]" % where] + RIGHT.get(where, [])
            section = where
        lines.append(line)
        expected[len(lines)] = key
    path, r = check_text(env, "\n".join(lines) + "\n")
    assert r.returncode == 2
    said = r.stderr.splitlines()
    for number, key in expected.items():
        head = "%s:%d: key '%s': " % (path, number, key)
        found = [l for l in said if l.startswith(head) and len(l) > len(head)]
        assert found, "nothing starts with %r for %r in\n%s" % (head, lines[number - 1], r.stderr)
    numbers = {int(l[len(str(path)) + 1:].split(":")[0]) for l in said if l.startswith(str(path) + ":")}
    assert numbers == set(expected), "right lines are blamed: %s" % [lines[n - 1] for n in numbers - set(expected)]
    # The same at a start, which starts nothing.
    d = env.configure("\n".join(lines) + "\n")
    d.start(seeing=False, ready=False)
    assert d.wait() == 2
    assert d.log().count("key '") == r.stderr.count("key '") and not d.socket.exists()


@pytest.mark.parametrize("text, line, word", [
    ("[nonsense]\na = b\n", 1, "nonsense"),
    ("[monitor\nnode_id = x\n", 1, ""),
    ("[monitor]\nnode_id = x\nno equals sign\n", 3, ""),
    ("node_id = x\n", 1, "node_id"),
    ("[group ]\nheartbeat = a/{id}\n", 1, ""),
    ("[group a]\ntimeout = 1s\n", 1, "heartbeat"),
    ("[group a]\nheartbeat = a/{id}\n[group a]\nheartbeat = b/{id}\n", 3, "a"),
    ("[monitor]\nnode_id = x\n  log_level = info\n", 3, ""),
    ("[monitor]\nnode_id = %s\n" % ("n" * 5000), 2, ""),
    ("[monitor]\nnode_id = a+b\n", 2, "node_id"),
    ("[monitor]\nnode_id = a/#\n", 2, "node_id"),
    ("[monitor]\nuser = nobody-of-that-name\n", 2, "user"),
    ("[mqtt]\nqos = 2\n", 2, "qos"),
    ("[group a]\nheartbeat = a/{id}\ntimeout = 4000d\n", 3, "timeout")], ids=short)
def test_one_wrong_thing(env, text, line, word):
    """An error that belongs to no key is still reported with its line."""
    path, r = check_text(env, text)
    assert r.returncode == 2, r.stderr
    blamed = [l for l in r.stderr.splitlines() if l.startswith("%s:%d: " % (path, line)) and word in l]
    assert blamed, r.stderr


@pytest.mark.parametrize("address, warned", [
    ("127.0.0.1:8731", False), ("127.1.2.3:8731", False), ("[::1]:8731", False), ("0.0.0.0:8731", True),
    ("[::]:8731", True), ("192.0.2.1:8731", True)])
def test_a_listen_that_is_not_loopback_is_warned_of(env, address, warned):
    path, r = check_text(env, "[monitor]\nuser =\n[http]\nlisten = %s\n" % address)
    assert r.returncode == 0 and r.stdout == "%s: ok\n" % path
    assert r.stderr.startswith("%s:4: key 'listen': warning: %s is not a loop" % (path, address)) is warned, r.stderr
    assert warned or r.stderr == ""


@pytest.mark.parametrize("program", [HEARTWHEELD, HEARTWHEEL_ALERT])
def test_notifications_need_no_redis(env, program):
    path = env.dir / "alert.conf"
    path.write_text("[monitor]\nuser =\n[store]\ntype = memory\n[alert]\nuser =\nstate_file = %s/s.json\n[notify]\nexec = /bin/true\n" % env.dir)
    r = check(path, program=program)
    assert r.returncode == 0 and r.stdout == "%s: ok\n" % path and r.stderr == "", r.stderr


def test_a_receivers_file_is_named_with_the_line_of_its_key(env):
    path = env.dir / "alert.conf"
    terms = "".join("match = id:a%d id:b%d\n" % (k, k) for k in range(40))
    path.write_text("[monitor]\nuser =\n[alert]\nuser =\n[notify]\nexec = /nowhere/a\n[receiver b]\ntype = exec\ninterval = 1s\n"
                    "program = /nowhere/b\n[receiver c]\nkey_file = /nowhere/c\ntype = pagerduty\n[receiver d]\n"
                    "type = smtp\nurl = smtp://h:25\nmail_from = a@b\nmail_to = a@b\nusername = u\npassword_file = /nowhere/d\n")
    r = check(path, program=HEARTWHEEL_ALERT)
    assert r.returncode != 0
    named = dict(re.findall(r":(\d+): key '(\w+)': of receiver ", r.stderr))
    assert named == {"6": "program", "10": "program", "12": "key_file", "20": "password_file"}, r.stderr
    path.write_text("[monitor]\nuser =\n[alert]\nuser =\n[receiver b]\ntype = exec\nprogram = /bin/true\n" + terms)
    r = check(path, program=HEARTWHEEL_ALERT)
    assert r.returncode != 0 and "%s:47: key 'match': the lines have more than" % path in r.stderr, r.stderr


def test_every_value_in_force_is_printed(env):
    path, r = check_text(env, "[monitor]\nuser =\nstall_after = 700ms\n[group a]\nheartbeat = n/{id}\n", "-v")
    assert r.returncode == 0, r.stderr
    printed = r.stdout[:r.stdout.index(str(path))]
    assert "\nstall_after = 700ms\n" in printed and "\nreconnect_grace = 15s\n" in printed, printed
    path.write_text(printed)
    assert check(path, "-v").stdout == r.stdout, "what is printed reads back"


def test_other_programs_sections_are_passed_over(env):
    others = "[tasks]\nroot = r\nport = none\n[history]\nkeep = 9d\n"
    path, r = check_text(env, "[monitor]\nuser =\n" + others)
    assert (r.returncode, r.stdout, r.stderr) == (0, "%s: ok\n" % path, ""), r
    printed = check(path, "-v").stdout
    assert "# [tasks] in line 3 belongs to another program\n# [history] in line 6 " in printed, printed
    path, r = check_text(env, "[monitor]\nuser =\n" + others.replace("[tasks]", "[task]"))
    assert r.returncode == 2 and "%s:3: section 'task': unknown section: did you mean [tasks]?" % path in r.stderr, r
    d = env.daemon(timeout="1h")
    d.rewrite(others + d.conf.read_text())
    a = d.request("POST", "/v1/reload")
    assert a.status == 200 and a.json() == {"changed": [], "restart_needed": []}, a


@pytest.mark.parametrize("line", [
    "timeout = 100ms", "timeout = 3650d", "timeout = 87600h", "timeout = 30", "timeout = 5m", "timeout_max = 3650d",
    "heartbeat = a/{id}/#", "heartbeat = +/+/{id}", "heartbeat = {id}", "heartbeat = a b/{id}/c ; a comment",
    "status = st/{id}", "status =", "id_prefix = p-", "id_prefix =", "# a comment", "; a comment", "timeout=2s",
    "timeout =    2s   ", "heartbeat = a;b/{id}", "heartbeat = #/{id}"], ids=short)
def test_what_is_right(env, line):
    path, r = check_text(env, "[monitor]\nuser =\n[group a]\nheartbeat = n/{id}\n%s\n" % line)
    if line == "heartbeat = #/{id}":
        assert r.returncode == 2, "a # is only allowed as the last level"
    else:
        assert r.returncode == 0, r.stderr


def test_values_mean_what_they_say(env):
    d = env.daemon(groups=[("a", {"heartbeat": env.root + "/{id}/#", "timeout": "2m ; two minutes"}),
                           ("b", {"heartbeat": env.root + "b/{id}", "timeout": "90"})])
    env.beat("x", last="a/b")
    env.publisher.publish(env.root + "b/y", b"")
    wait_until(lambda: d.device("x") and d.device("y"))
    assert d.device("x")["timeout_ms"] == 120_000 and d.device("y")["timeout_ms"] == 90_000


def test_a_file_that_is_not_there(env):
    r = check(env.dir / "missing.conf")
    assert r.returncode == 2 and "missing.conf" in r.stderr and "No such file" in r.stderr
    r = check(env.dir)
    assert r.returncode == 2 and str(env.dir) in r.stderr


def test_files_that_are_none(env):
    for name, content in (("empty", b""), ("binary", bytes(range(256)) * 50), ("nul", b"[monitor]\nnode_id = a\0b\n"),
                          ("long", b"[monitor]\n" + b"x" * 3_000_000)):
        path = env.dir / name
        path.write_bytes(content)
        r = subprocess.run([str(HEARTWHEELD), "-t", "-c", str(path)], capture_output=True, timeout=20)
        assert r.returncode in (0, 2) if name == "empty" else r.returncode == 2, (name, r)
        assert name == "empty" or str(path).encode() in r.stderr


def test_crlf_and_no_last_line_end(env):
    path = env.dir / "crlf.conf"
    path.write_bytes(env.text().replace("\n", "\r\n").encode().rstrip())
    r = check(path)
    assert r.returncode == 0, r.stderr


def test_a_secret_that_cannot_be_read(env):
    d = env.configure(mqtt={"username": "u", "password_file": env.dir / "no-such-secret"})
    d.start(seeing=False, ready=False)
    assert d.wait() in (1, 2)
    lines = [l for l in d.log().splitlines() if "no-such-secret" in l]
    assert len(lines) == 1, d.log()


# --- reload


def hup(d):
    d.signal(signal.SIGHUP)


def test_a_day_shortened_to_a_second_by_reload(env):
    d = env.daemon(timeout="1d")
    observer = env.observer()
    for k in range(500):
        env.beat("d%d" % k)
    wait_until(lambda: d.status()["online"] == 500)
    with env.beating(["beats"], 0.2):
        d.edit("timeout = 1d", "timeout = 1s")
        last = env.beat("late")
        hup(d)
        wait_within(lambda: d.status()["offline"] >= 501, 11.5, "501 devices to be offline")
        m = env.wait_status(observer, "late", False)
        assert m.at - last >= 1.0
        assert d.state("beats") == "online" and d.device("beats")["timeout_ms"] == 1000
    wait_until(lambda: env.redis.zcard(env.key("offline")) == 502, 20)


def test_a_longer_timeout_by_reload(env):
    d = env.daemon(timeout="3s")
    env.beat("x")
    env.wait_store("x", "online")
    d.edit("timeout = 3s", "timeout = 1h")
    assert d.request("POST", "/v1/reload").status == 200
    throughout(lambda: d.state("x") == "online", 4)
    assert d.device("x")["timeout_ms"] == 3_600_000


def test_groups_appear_and_go_by_reload(env):
    d = env.daemon(timeout="1h")
    extra = env.root + "x"
    env.publisher.publish(extra + "/early", b"1")
    env.beat("old")
    env.settle(d)
    assert d.device("early") is None
    text = d.conf.read_text()
    d.rewrite(text + render([("group extra", {"heartbeat": extra + "/{id}", "timeout": "700ms"})]))
    hup(d)

    def heard():
        env.publisher.publish(extra + "/new", b"1")
        return d.device("new")
    assert wait_until(heard, 10, "a device of the new group", interval=0.05)["group"] == "extra"
    assert d.device("new")["timeout_ms"] == 700
    env.wait_store("new", "offline")
    assert d.state("old") == "online"
    d.rewrite(text)
    hup(d)

    def unheard():
        before = d.status()["heartbeats_total"]
        env.publisher.publish(extra + "/again%d" % time.monotonic_ns(), b"1")
        env.settle(d)
        return d.status()["heartbeats_total"] == before + 1
    wait_until(unheard, 10, "the group that went to be unheard", interval=0.1)
    assert d.state("old") == "online"
    assert "reload: group extra added" in d.log() and "reload: group extra removed" in d.log()
    assert "reload: group extra changed" not in d.log()


def test_a_reload_names_the_groups_that_came_and_went(env):
    d = env.daemon(timeout="1h")
    text = d.conf.read_text()
    d.rewrite(text + render([("group extra", {"heartbeat": env.root + "x/{id}"})]))
    answer = d.request("POST", "/v1/reload").json()
    assert answer == {"changed": ["group extra"], "restart_needed": [], "added": ["group extra"]}
    d.rewrite(text)
    answer = d.request("POST", "/v1/reload").json()
    assert answer == {"changed": ["group extra"], "restart_needed": [], "removed": ["group extra"]}


def test_a_filter_that_moves_by_reload(env):
    d = env.daemon(timeout="1h")
    d.edit(env.root + "/{id}/heartbeat", env.root + "/{id}/pulse")
    a = d.request("POST", "/v1/reload")
    assert a.status == 200, a

    def heard():
        env.beat("p", last="pulse")
        return d.device("p")
    wait_until(heard, 10, "the new filter to be heard", interval=0.05)
    env.beat("h")
    env.beat("s", b"1", last="status")
    wait_until(lambda: d.device("s"))
    assert d.device("h") is None


def test_max_devices_by_reload(env):
    d = env.daemon(timeout="1h", monitor={"max_devices": 3})
    for k in range(6):
        env.beat("d%d" % k)
    wait_until(lambda: d.metrics().refused() == 3)
    d.edit("max_devices = 3", "max_devices = 6")
    assert d.request("POST", "/v1/reload").status == 200
    for k in range(6):
        env.beat("d%d" % k)
    wait_until(lambda: d.status()["devices"] == 6)


def test_log_level_by_reload(env):
    d = env.daemon(monitor={"log_level": "error"})
    assert d.log() == "", "there is no error"
    d.edit("log_level = error", "log_level = debug")
    assert d.request("POST", "/v1/reload").status == 200
    env.beat("x")
    env.wait_store("x", "offline")
    wait_until(lambda: " debug: x: offline (timeout)" in d.log(), what="the transition in the log")


def test_a_bad_reload_changes_nothing_and_says_so(env):
    d = env.daemon(timeout="1h")
    env.beat("x")
    wait_until(lambda: d.device("x"))
    good = d.conf.read_text()
    d.rewrite(good.replace("timeout = 1h", "timeout = soon").replace("qos", "qos") + "[mqtt]\nport = none\n")
    text = d.conf.read_text().splitlines()
    numbers = [text.index("timeout = soon") + 1, text.index("port = none") + 1]
    a = d.request("POST", "/v1/reload")
    assert a.status == 400, a
    j = a.json()
    assert j["error"] and isinstance(j["lines"], list)
    for n, key in zip(numbers, ("timeout", "port")):
        assert any("%s:%d: key '%s': " % (d.conf, n, key) in l for l in j["lines"]), j
    n = len(d.log())  # the refused request may have said the same
    hup(d)
    wait_until(lambda: "%s:%d: key 'timeout': " % (d.conf, numbers[0]) in d.log()[n:], what="the log to name the line")
    env.beat("y")
    wait_until(lambda: d.device("y"))
    assert d.device("x")["timeout_ms"] == d.device("y")["timeout_ms"] == 3_600_000
    wait_until(lambda: d.status()["mqtt"] == "up")
    d.conf.unlink()
    a = d.request("POST", "/v1/reload")
    assert a.status == 400 and str(d.conf) in a.body.decode(), a
    d.rewrite(good)
    assert d.request("POST", "/v1/reload").status == 200


def test_a_log_that_cannot_be_opened_refuses_a_reload(env):
    d = env.daemon(timeout="1h")
    good = d.conf.read_text()
    d.edit("timeout = 1h", "timeout = 2h")
    d.edit("log = stderr", "log = %s/no/such.log" % env.dir)
    line = d.conf.read_text().splitlines().index("log = %s/no/such.log" % env.dir) + 1
    a = d.request("POST", "/v1/reload")
    assert a.status == 400 and a.json()["lines"] == [
        "%s:%d: key 'log': cannot log to %s/no/such.log: No such file or directory" % (d.conf, line, env.dir)], a
    env.beat("x")
    wait_until(lambda: d.device("x"))
    assert d.device("x")["timeout_ms"] == 3_600_000, "nothing of it is in force"
    d.rewrite(good.replace("log = stderr", "log = %s/such.log" % env.dir))
    assert d.request("POST", "/v1/reload").json()["changed"] == ["monitor.log"]
    assert "reloaded" in (env.dir / "such.log").read_text()


def test_what_a_reload_answers(env):
    d = env.daemon(timeout="1h")
    a = d.request("POST", "/v1/reload")
    assert a.status == 200 and a.json() == {"changed": [], "restart_needed": []}, a
    d.edit("timeout = 1h", "timeout = 2h")
    d.edit("[mqtt]", "[mqtt]\nqos = 1\nkeepalive = 44s")
    d.edit("log_level = debug", "log_level = info")
    j = d.request("POST", "/v1/reload").json()
    assert len(j["changed"]) == 2 and len(j["restart_needed"]) == 2, j
    assert any("timeout" in c for c in j["changed"]) and any("log_level" in c for c in j["changed"]), j
    assert any("qos" in c for c in j["restart_needed"]) and any("keepalive" in c for c in j["restart_needed"]), j
    assert "restart" in d.log().lower()


def test_forget_after_by_reload(env):
    d = env.daemon(timeout="200ms")
    env.beat("x")
    env.beat("x")
    env.wait_store("x", "offline")
    d.edit("[monitor]", "[monitor]\nforget_after = 1s\nforget_once_after = 1s")
    assert d.request("POST", "/v1/reload").status == 200
    wait_until(lambda: d.device("x") is None, 15, "x to be forgotten")


def test_a_storm_of_signals(env):
    d = env.daemon(timeout="1h")
    for k in range(300):
        d.signal((signal.SIGHUP, signal.SIGUSR1)[k % 2])
    env.settle(d)
    assert d.status()["devices"] == 1


def test_a_filter_goes_to_a_later_group(env):
    """The filter's devices move with their next heartbeat and stay in the later group over a restart; all other devices
    stay."""
    first = {"heartbeat": [env.root + "/{id}/a", env.root + "/{id}/b"], "timeout": "1h", "status": env.root + "s/{id}"}
    d = env.daemon(groups=[("lamps", first)])

    def beat():
        env.beat("x", last="a")
        env.beat("y", last="b")
        both = [d.device("x"), d.device("y")]
        return all(both) and [one["group"] for one in both]
    wait_until(lambda: beat() == ["lamps", "lamps"], 10, "both in the first group")
    filter_b = "heartbeat = %s/{id}/b\n" % env.root
    d.edit(filter_b, "")
    d.conf.write_text(d.conf.read_text() + "[group slow]\n" + filter_b + "timeout = 2h\n")
    assert d.request("POST", "/v1/reload").status == 200
    wait_until(lambda: beat() == ["lamps", "slow"], 10, "the second device to be in the second group")
    assert beat() == ["lamps", "slow"]
    d.stop()
    d.start()
    wait_until(lambda: beat() == ["lamps", "slow"], 10, "the same after a restart")


def test_a_group_that_is_renamed_by_a_restart(env):
    """Its devices are judged at once by the group that has their filters, also if two groups exchange their names."""
    groups = [(name, {"heartbeat": "%s/{id}/%s" % (env.root, name), "timeout": timeout, "status": env.root + "s/{id}"})
              for name, timeout in (("fast", "1s"), ("slow", "1h"))]
    d = env.daemon(groups=groups)

    def of():
        return [one and (one["group"], one["state"]) for one in (d.device("f"), d.device("s"))]

    def beat():
        env.beat("f", last="fast")
        env.beat("s", last="slow")
        return of() == [("fast", "online"), ("slow", "online")]
    wait_until(beat, 10, "both to be online")
    d.stop()
    text = d.conf.read_text()
    d.conf.write_text(text.replace("[group fast]", "[group x]").replace("[group slow]", "[group fast]")
                      .replace("[group x]", "[group slow]"))
    d.start()
    wait_until(lambda: of() == [("slow", "offline"), ("fast", "online")], 15, "the device of the renamed group: %s" % of())
    assert d.status()["unjudged"] == 0
    env.beat("f", last="fast")  # back online: its transition leaves the form in Redis
    wait_until(lambda: d.device("f")["state"] == "online")
    env.wait_store("f", "online")
    assert env.redis.hget(env.key("state", "f"), "form")
    wait_until(lambda: d.device("f")["state"] == "offline")
    d.stop()
    d.conf.write_text(text.replace("[group fast]", "[group other]"))
    d.start()
    assert of() == [("other", "offline"), ("slow", "online")]
