# SPDX-License-Identifier: MIT
"""The program: options, pid file, socket, daemonizing, log, signals, sd_notify, privileges."""
import fcntl
import grp
import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from hw_build import HEARTWHEELD
from hw_wait import in_time, wait_until

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give rights away")


def run(*args, timeout=20):
    return subprocess.run([str(HEARTWHEELD), *map(str, args)], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)


def test_version_and_help():
    r = run("-V")
    assert r.returncode == 0 and re.search(r"heartwheel\w* \d+\.\d+", r.stdout), r
    r = run("-h")
    assert r.returncode == 0 and "heartwheeld" in r.stdout and not r.stderr, r
    for option in ("-c", "-f", "-t", "-v", "-V", "-h", "--foreground", "--test"):
        assert option in r.stdout, option


@pytest.mark.parametrize("args", [["-x"], ["--nonsense"], ["-c"], ["-f", "extra"]])
def test_wrong_usage(args):
    r = run(*args)
    assert r.returncode == 2 and "heartwheeld" in r.stderr and not r.stdout, r


def test_verbose_says_more(env):
    d = env.configure(monitor={"log_level": "error"})
    d.start(args=("-f", "-v"))
    env.beat("x")
    wait_until(lambda: " debug: x: online (heartbeat)" in d.log(), what="-v to say what only debug says")


@pytest.mark.parametrize("qos", [0, 1])
def test_how_heartbeats_are_read_is_logged(env, qos):
    """The log says whether heartbeats are read past libmosquitto. They are where that is possible: libmosquitto 2.1 buffers
    what it reads."""
    d = env.daemon(mqtt={"qos": qos})
    path, *more = re.findall(r" info: broker: heartbeats are read (.*)", d.log())
    version = tuple(map(int, re.search(r"libmosquitto (\d+)\.(\d+)\.\d+", path).groups()))
    if qos:
        assert path.startswith("by libmosquitto") and path.endswith("([mqtt] qos is not 0)")
    elif version > (2, 0):
        assert path.startswith("by libmosquitto") and path.endswith("(libmosquitto has a read buffer since 2.1)")
    else:
        assert path.startswith("from the socket, without libmosquitto")
    assert not more


def test_second_instance_names_the_first(env):
    d = env.daemon()
    assert d.pid_file.read_text().strip() == str(d.pid)
    r = run("-f", "-c", d.conf)
    assert r.returncode == 1 and str(d.pid) in r.stderr, r
    r = run("-c", d.conf)
    assert r.returncode == 1 and str(d.pid) in r.stderr, "daemonizing: %s" % r
    assert d.status()["node"] == env.node and d.pid_file.read_text().strip() == str(d.pid)


def test_the_lock_of_a_daemon_that_was_killed(env):
    """The killed daemon may have been about to start a program, which shares the lock for a moment."""
    d = env.daemon()
    d.signal(signal.SIGKILL)
    pid = d.pid
    d.wait()
    with open(d.pid_file) as f:
        assert f.read().strip() == str(pid)
        fcntl.flock(f, fcntl.LOCK_EX)
        threading.Timer(0.3, fcntl.flock, (f, fcntl.LOCK_UN)).start()
        d.start()
    assert d.pid_file.read_text().strip() == str(d.pid)


def test_busy_control_socket(env):
    d = env.daemon()
    other = env.configure(text=d.conf.read_text().replace(str(d.pid_file), str(env.dir / "other.pid")))
    other.start(seeing=False, ready=False)
    assert other.wait() == 1
    lines = [l for l in other.log().splitlines() if str(d.socket) in l]
    assert len(lines) == 1, other.log()
    assert d.status()["node"] == env.node, "the first one is unharmed"
    assert not (env.dir / "other.pid").exists()


def test_stale_files_are_no_obstacle(env):
    d = env.daemon()
    d.signal(signal.SIGKILL)
    d.wait()
    assert d.socket.exists() and d.pid_file.exists()
    d.start()
    assert d.pid_file.read_text().strip() == str(d.pid)
    d.stop()
    d.pid_file.write_text("1\n")
    d.start()
    assert d.pid_file.read_text().strip() == str(d.pid)


def test_a_file_in_the_sockets_place_is_kept(env):
    d = env.configure()
    d.socket.write_text("precious")
    d.start(seeing=False, ready=False)
    assert d.wait() == 1 and str(d.socket) in d.log()
    assert d.socket.read_text() == "precious"


@pytest.mark.parametrize("what", ["pid_file", "socket"])
def test_a_directory_that_is_not_there(env, what):
    (env.dir / "plain-file").write_text("")
    missing = env.dir / "plain-file" / "file"
    options = {"monitor": {"pid_file": missing}} if what == "pid_file" else {"http": {"socket": missing}}
    d = env.configure(**options)
    d.start(seeing=False, ready=False)
    assert d.wait() == 1
    assert len([l for l in d.log().splitlines() if str(missing) in l]) == 1, d.log()
    assert "cannot start as user" not in d.log()


def test_socket_path_that_is_too_long(env):
    d = env.configure(http={"socket": "/tmp/" + "x" * 150})
    d.start(seeing=False, ready=False)
    assert d.wait() == 2
    assert re.fullmatch(r".*:\d+: key 'socket': is 155 bytes long: the limit is 107\n", d.log()), d.log()


def test_mode_of_the_control_socket(env):
    d = env.daemon()
    mode = d.socket.stat().st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o660, oct(mode)


@root_only
def test_group_of_the_control_socket(env):
    group = grp.getgrnam("daemon")
    d = env.daemon(http={"socket_group": "daemon"})
    assert d.socket.stat().st_gid == group.gr_gid and stat.S_IMODE(d.socket.stat().st_mode) == 0o660


def test_unknown_group_of_the_control_socket(env):
    d = env.configure(http={"socket_group": "nobody-of-that-name"})
    d.start(seeing=False, ready=False)
    assert d.wait() == 2
    assert re.fullmatch(r".*:\d+: key 'socket_group': there is no group 'nobody-of-that-name'\n", d.log()), d.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_clean_stop(env, number):
    """With nothing pending the stop takes a moment, not stop_timeout."""
    d = env.daemon(monitor={"stop_timeout": "10s"})
    env.settle(d)
    wait_until(lambda: d.status()["owed"] == 0)
    at = time.monotonic()
    d.signal(number)
    assert d.wait() == 0
    took = time.monotonic() - at
    assert not d.socket.exists() and not d.pid_file.exists()
    d.check_log()
    in_time(took, 6, "to stop")


def test_a_transition_of_the_last_moment_is_flushed(env):
    d = env.daemon(timeout="1h")
    for k in range(500):
        env.beat("d%d" % k)
    wait_until(lambda: d.status()["devices"] == 500)
    d.stop()
    assert len(env.events()) == 500
    assert len(env.retained(env.root + "/+/status")) == 500
    assert env.published() > max(int(e["seq"]) for e in env.events())


@pytest.mark.parametrize("away", ["redis", "broker"])
def test_forgetting_while_it_stops(env, away):
    """A DELETE that arrives while the daemon still waits for a sink is carried out and pending like any other: here more
    DELETEs than the core keeps between two drains."""
    env.own_broker(persistence=True)
    env.own_redis()
    d = env.daemon(timeout="1h", monitor={"stop_timeout": "20s"})
    ids = ["f%d" % k for k in range(1100)]
    for i in ids:
        env.beat(i)
    wait_until(lambda: len(env.events()) == 1100 and d.status()["owed"] == 0, 20)
    wait_until(lambda: not env.redis.hlen(env.key("outbox")), 20)
    server = env.redis_server if away == "redis" else env.broker
    server.signal(signal.SIGSTOP)
    try:
        assert d.forget(ids[0]).status == 204  # it is owed, so that the stop has to wait
        d.signal(signal.SIGTERM)
        wait_until(lambda: "stopping on SIGTERM" in d.log())
        for i in ids[1:]:
            a = d.forget(i)
            assert (a.status, a.body) == (204, b""), a
    finally:
        server.signal(signal.SIGCONT)
    assert d.wait(25) == 0
    assert sum(e["state"] == "forgotten" for e in env.events()) == 1100
    assert not env.redis.keys(env.prefix + "state:*")
    wait_until(lambda: not env.retained(env.root + "/+/status"), 5, "every status to be cleared")
    assert not env.redis.hlen(env.key("outbox")), "all was acknowledged in time"
    d.start()
    assert d.status()["devices"] == 0


def test_acknowledgements_of_the_last_moment_are_written(env):
    """The broker has acknowledged a status and Redis stands still: the stop waits until Redis has P."""
    env.own_broker()
    env.own_redis()
    d = env.daemon(timeout="1h", monitor={"stop_timeout": "10s"})
    observer = env.observer()
    env.redis_server.signal(signal.SIGSTOP)
    env.beat("late")
    wait_until(lambda: d.device("late"))
    env.broker.signal(signal.SIGSTOP)
    env.redis_server.signal(signal.SIGCONT)
    wait_until(lambda: env.redis.exists(env.key("state", "late")) and not d.metrics().get("owed", sink="redis"),
               what="a status that is owed to the broker alone")
    seq = int(env.hash("late")["seq"])
    assert env.published() <= seq
    env.redis_server.signal(signal.SIGSTOP)
    env.broker.signal(signal.SIGCONT)
    env.wait_status(observer, "late", True)
    wait_until(lambda: d.status()["owed"] == 0)
    d.signal(signal.SIGTERM)
    wait_until(lambda: "stopping on SIGTERM" in d.log())
    with pytest.raises(AssertionError):
        d.wait(0.3)
    env.redis_server.signal(signal.SIGCONT)
    assert d.wait() == 0
    assert env.published() > seq


def test_stop_is_bounded_by_stop_timeout(env):
    """Redis stands still with an answer outstanding: the stop waits no longer than stop_timeout."""
    env.own_redis()
    d = env.daemon(timeout="1h", monitor={"stop_timeout": "1s"})
    env.settle(d)
    env.redis_server.signal(signal.SIGSTOP)
    try:
        env.beat("owed")
        wait_until(lambda: d.device("owed"))
        at = time.monotonic()
        d.stop()
        in_time(time.monotonic() - at, 6, "to stop")
    finally:
        env.redis_server.signal(signal.SIGCONT)


def test_a_stop_does_not_flood_redis(env):
    """While the stop waits for the broker, each periodic command is sent once a second and no more often."""
    env.own_redis()
    env.own_broker()
    d = env.configure(timeout="1h", monitor={"stop_timeout": "4s"})
    d.start()
    env.beat("a")
    wait_until(lambda: d.device("a"))
    env.settle(d)
    env.broker.signal(signal.SIGSTOP)
    try:
        assert d.forget("a").status == 204  # its retained status waits for the broker

        def calls():
            return sum(v["calls"] for k, v in env.redis.info("commandstats").items() if k != "cmdstat_info")
        before, at = calls(), time.monotonic()
        d.stop()
        assert time.monotonic() - at > 3, "it did not wait"
        # About 17 a second; a flood of 50 a second of one of them alone would be 200.
        assert calls() - before < 120, env.redis.info("commandstats")
    finally:
        env.broker.signal(signal.SIGCONT)


def test_stop_while_everything_is_away(env):
    env.own_broker(start=False)
    env.own_redis(start=False)
    d = env.daemon(seeing=False, monitor={"stop_timeout": "2s"})
    at = time.monotonic()
    d.stop()
    in_time(time.monotonic() - at, 7, "to stop")


def test_foreground_long_option(env):
    d = env.configure().start(args=("--foreground",))
    assert d.pid_file.read_text().strip() == str(d.pid)


# --- daemonizing


def is_locked(path):
    with open(path, "r+") as f:
        for lock in (lambda: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB),
                     lambda: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)):
            try:
                lock()
            except OSError:
                return True
    return False


def gone(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.fixture
def daemonized(env):
    """Starts without -f; afterwards no process is left running, whatever the result was."""
    pids = []

    def start(**options):
        log = env.dir / "daemon.log"
        name_as = options.pop("name_as", str)
        d = env.configure(monitor={"log": log, "log_level": "debug", **options.pop("monitor", {})}, **options)
        r = run("-c", name_as(d.conf))
        if d.pid_file.exists():
            pids.append((int(d.pid_file.read_text()), d))
        return d, r, log
    yield start
    for pid, d in pids:
        if not gone(pid) and os.readlink("/proc/%d/exe" % pid) == str(HEARTWHEELD):
            os.kill(pid, signal.SIGKILL)


def test_daemonized(env, daemonized):
    d, r, log = daemonized()
    assert r.returncode == 0, (r, log.exists() and log.read_text())
    assert d.status()["node"] == env.node, "the parent exits once the control socket answers"
    pid = int(d.pid_file.read_text())
    assert not gone(pid) and is_locked(d.pid_file)
    assert os.readlink("/proc/%d/exe" % pid) == str(HEARTWHEELD)
    assert os.getsid(pid) != os.getsid(0) and os.readlink("/proc/%d/cwd" % pid) == "/"
    for fd in (0, 1, 2):
        assert os.readlink("/proc/%d/fd/%d" % (pid, fd)) == "/dev/null", fd
    d.wait_seeing()
    env.beat("x")
    env.wait_store("x", "offline")
    assert log.read_text(), "the log file is empty"
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: gone(pid), 10, "the daemon to end")
    assert not d.pid_file.exists() and not d.socket.exists()


def test_a_relative_path_is_found_again_by_a_reload(env, daemonized, monkeypatch):
    monkeypatch.chdir(env.dir)
    d, r, _ = daemonized(name_as=lambda path: os.path.relpath(path, env.dir))
    assert r.returncode == 0 and d.request("POST", "/v1/reload").status == 200


def test_daemonized_with_everything_away(env, daemonized):
    """The daemon is ready although neither the broker nor Redis can be reached."""
    env.own_broker(start=False)
    env.own_redis(start=False)
    d, r, _ = daemonized()
    assert r.returncode == 0 and d.status()["blind"] is True
    pid = int(d.pid_file.read_text())
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: gone(pid), 15)


def test_daemonizing_fails_in_sight(env, daemonized):
    """An error in the child becomes the parent's exit status and message."""
    (env.dir / "plain-file").write_text("")
    d, r, _ = daemonized(http={"socket": env.dir / "plain-file" / "control.sock"})
    assert r.returncode == 1 and "plain-file/control.sock" in r.stderr, r
    assert not d.pid_file.exists()
    d, r, _ = daemonized(monitor={"colour": "red"})
    assert r.returncode == 2 and "key 'colour'" in r.stderr, r


# --- the log


def test_log_file_and_sigusr1(env):
    log = env.dir / "hw.log"
    d = env.configure(monitor={"log": log}).start()
    env.settle(d)
    wait_until(lambda: log.exists() and log.read_text(), what="lines in the log file")
    old = env.dir / "hw.log.1"
    log.rename(old)
    d.signal(signal.SIGUSR1)
    wait_until(log.exists, 5, "the log file to be opened again")
    size = old.stat().st_size
    env.beat("after")
    env.wait_store("after", "offline")
    wait_until(lambda: log.read_text(), what="lines in the new log file")
    d.stop()
    assert old.stat().st_size == size, "it went on writing to the old file"
    assert " after: offline (timeout)" in log.read_text()
    assert log.read_text().endswith("\n")


def test_a_signal_during_the_start_ends_nothing(env):
    """The pid file names the daemon before its loop runs: a signal of logrotate or systemctl reload must then wait, not end
    it."""
    d = env.configure(monitor={"log": env.dir / "hw.log"})
    for k in range(20):
        d.start(seeing=False, ready=False)
        wait_until(lambda: d.pid_file.exists() and d.pid_file.read_text().strip() == str(d.pid), interval=0, what="the pid file")
        d.signal((signal.SIGUSR1, signal.SIGHUP)[k % 2])
        wait_until(d.answers, what="it to work")
        d.stop()


def test_log_file_that_cannot_be_opened(env):
    (env.dir / "plain-file").write_text("")
    d = env.configure(monitor={"log": env.dir / "plain-file" / "hw.log"})
    d.start(seeing=False, ready=False)
    assert d.wait() == 1 and "plain-file/hw.log" in d.log()


def test_syslog_needs_no_syslogd(env):
    d = env.configure(monitor={"log": "syslog"}).start()
    env.settle(d)
    d.stop()
    assert d.log() == "", "it is said elsewhere"


@root_only
@pytest.mark.skipif(os.path.exists("/dev/log"), reason="there is a syslogd")
def test_syslog(env):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslogd:
        try:
            syslogd.bind("/dev/log")
            syslogd.settimeout(10)
            d = env.configure(monitor={"log": "syslog", "log_level": "notice"}).start()
            said = syslogd.recv(4096).decode()
            assert re.fullmatch(r"<29>.* heartwheeld\[%d\]: heartwheeld \S+ is running: node '%s', .*" % (
                d.pid, env.node), said.rstrip("\n")), said
            d.stop()
        finally:
            os.unlink("/dev/log")


def test_a_log_that_is_not_read_holds_nothing_up(env):
    """stderr is a full pipe, as with a log driver that stands still: the daemon starts, works and ends."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    d = env.configure(timeout="300ms", monitor={"log": "stderr"})
    file, d.output = d.output, Path("/proc/self/fd/%d" % writer)
    d.start(seeing=False, ready=False)
    d.output = file
    wait_until(d.answers, 15, "the control socket to answer")
    d.wait_seeing()
    env.beat("x")
    env.wait_store("x", "offline")
    assert set(os.read(reader, 1 << 20)) == set(b"x")
    d.signal(signal.SIGUSR1)
    said = b""

    def reads(what):
        nonlocal said
        try:
            said += os.read(reader, 1 << 20)
        except BlockingIOError:
            pass
        return what in said
    wait_until(lambda: reads(b"log reopened"), 10, "the log to go on")
    assert re.search(rb"warning: left out [0-9]+ log lines", said), said
    with pytest.raises(BlockingIOError):
        os.set_blocking(writer, False)
        while True:
            os.write(writer, b"x" * 4096)
    d.stop()
    os.close(reader)
    os.close(writer)


def test_what_is_logged_is_one_line(env):
    """A device cannot write lines of its own into the log."""
    d = env.daemon(timeout="300ms")
    env.beat("x", {"version": "a\nFORGED line", "ip": "\nFORGED ip", "data": "\nFORGED"})
    env.beat("y", b'{"a":\nFORGED')
    env.wait_store("x", "offline")
    d.stop()
    assert not [l for l in d.log().splitlines() if l.startswith("FORGED")]


# --- privileges


@root_only
def test_privileges_are_dropped(env):
    user = pwd.getpwnam("nobody")
    d = env.configure(monitor={"user": "nobody"})
    os.chown(d.dir, user.pw_uid, user.pw_gid)
    d.start()
    status = open("/proc/%d/status" % d.pid).read()
    assert re.search(r"^Uid:\t(\d+)\t(\d+)\t(\d+)\t(\d+)", status, re.M).groups() == (str(user.pw_uid),) * 4
    assert re.search(r"^Gid:\t(\d+)\t(\d+)\t(\d+)\t(\d+)", status, re.M).groups() == (str(user.pw_gid),) * 4
    assert "0" not in re.search(r"^Groups:\t(.*)$", status, re.M)[1].split()
    socket_of = d.socket.stat()
    assert (socket_of.st_uid, socket_of.st_gid) == (user.pw_uid, user.pw_gid), "no socket_group: the daemon's own"
    env.settle(d)
    assert d.request("POST", "/v1/reload").status == 200
    d.stop()


def rights(path):
    st = os.stat(path)
    return st.st_uid, st.st_gid, st.st_mode, path.read_bytes()


@root_only
@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("what", ["heartwheeld.log", "heartwheeld.pid", "control.sock"])
def test_a_link_that_the_service_user_planted(env, what, link):
    """Root neither writes to the target of a link in the user's directory nor changes the target's owner, also if the target
    does not exist yet."""
    user = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(prefix="hw-link.") as top:
        os.chmod(top, 0o755)
        theirs, secret = Path(top, "theirs"), Path(top, "secret")
        theirs.mkdir()
        secret.write_text("root's alone\n")
        secret.chmod(0o600)
        os.chown(theirs, user.pw_uid, user.pw_gid)
        link(secret, theirs / what)
        before = rights(secret)
        d = env.configure(monitor={"user": "nobody", "log": theirs / "heartwheeld.log", "pid_file": theirs / "heartwheeld.pid"},
                          http={"socket": theirs / "control.sock"})
        d.start(ready=False, seeing=False)
        assert d.wait() == 1
        assert rights(secret) == before
        named = {"heartwheeld.log": "cannot log to", "heartwheeld.pid": "cannot open the pid file", "control.sock": "socket"}
        said = d.log() + ((theirs / "heartwheeld.log").read_text() if what == "control.sock" else "")
        assert named[what] in said and str(theirs / what) in said, said
        (theirs / what).unlink()
        os.symlink(Path(top, "made"), theirs / what)  # nothing is there yet
        d.start(ready=False, seeing=False)
        assert d.wait() == 1
        assert not Path(top, "made").exists()


@root_only
@pytest.mark.parametrize("what", ["heartwheeld.log", "heartwheeld.pid", "control.sock"])
@pytest.mark.parametrize("below", ["", "new/"])
def test_a_link_above_the_directory(env, what, below):
    """The path to the user's directory has a link to a directory of root's. Root makes nothing there; links that root owns are
    followed."""
    user = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(prefix="hw-link.") as top:
        os.chmod(top, 0o755)
        home, roots = Path(top, "home"), Path(top, "roots")
        home.mkdir()
        roots.mkdir(mode=0o755)
        os.chown(home, user.pw_uid, user.pw_gid)
        os.symlink(roots, home / "link")
        os.chown(home / "link", user.pw_uid, user.pw_gid, follow_symlinks=False)
        paths = {n: home / n for n in ("heartwheeld.log", "heartwheeld.pid", "control.sock")}
        paths[what] = home / "link" / (below + what)
        d = env.configure(monitor={"user": "nobody", "log": paths["heartwheeld.log"], "pid_file": paths["heartwheeld.pid"]},
                          http={"socket": paths["control.sock"]})
        d.start(ready=False, seeing=False)
        assert d.wait() == 1
        assert list(roots.iterdir()) == []
        said = d.log() + (paths["heartwheeld.log"].read_text() if what == "control.sock" else "")
        assert below or "a symbolic link that root must not follow" in said, said
        os.chown(home / "link", 0, 0, follow_symlinks=False)
        d.socket = paths["control.sock"]
        d.start(seeing=False)
        assert (home / "link" / (below + what)).stat().st_uid == user.pw_uid
        d.signal(signal.SIGTERM)
        assert d.wait() == 0


@root_only
def test_files_in_a_directory_of_roots_belong_to_the_user(env):
    """Root makes the files and gives them to the user; the next start opens them again."""
    user = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(prefix="hw-root.") as top:
        os.chmod(top, 0o755)
        d = env.configure(monitor={"user": "nobody", "log": top + "/heartwheeld.log", "pid_file": top + "/heartwheeld.pid"})
        os.chown(d.dir, user.pw_uid, user.pw_gid)
        for _ in range(2):
            d.start(seeing=False)
            for name in ("heartwheeld.log", "heartwheeld.pid"):
                assert os.stat(Path(top, name)).st_uid == user.pw_uid
            d.stop()


@root_only
def test_unknown_user_beside_another_mistake(env):
    d = env.configure(monitor={"user": "nobody-of-that-name", "colour": "red"})
    r = run("-t", "-c", d.conf)
    assert r.returncode == 2 and "key 'colour'" in r.stderr, r
    assert len([l for l in r.stderr.splitlines() if "nobody-of-that-name" in l and "key 'user'" in l]) == 1, r


def test_unknown_user(env):
    d = env.configure(monitor={"user": "nobody-of-that-name"})
    d.start(seeing=False, ready=False)
    assert d.wait() == 2
    assert len([l for l in d.log().splitlines() if "nobody-of-that-name" in l]) == 1, d.log()


# --- sd_notify


def with_systemd():
    out = subprocess.run(["ldd", str(HEARTWHEELD)], capture_output=True, text=True).stdout
    return "libsystemd" in out


def test_sd_notify(env):
    if not with_systemd():
        pytest.skip("built without libsystemd")
    path = env.dir / "notify.sock"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(str(path))
    listener.settimeout(0.1)
    heard, over = [], threading.Event()

    def hear():  # in a thread: nobody may find the socket full
        while not over.is_set():
            try:
                heard.extend((time.monotonic(), l) for l in listener.recv(65536).decode().splitlines())
            except socket.timeout:
                pass

    def listen():
        return [l for _, l in heard]
    thread = threading.Thread(target=hear, daemon=True)
    thread.start()
    d = env.configure()
    d.start(env={"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "2000000"})
    wait_until(lambda: "READY=1" in listen(), 5, "READY=1")
    wait_until(lambda: any(l.startswith("STATUS=") for l in listen()), 5, "STATUS=")
    wait_until(lambda: listen().count("WATCHDOG=1") >= 4, 15, "the watchdog to be fed")
    fed = [at for at, l in heard if l == "WATCHDOG=1"]
    d.stop()
    wait_until(lambda: "STOPPING=1" in listen(), 5, "STOPPING=1")
    over.set()
    thread.join()
    listener.close()
    assert max(b - a for a, b in zip(fed, fed[1:])) < 2, "WATCHDOG_USEC is 2 s"
