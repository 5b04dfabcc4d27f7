# SPDX-License-Identifier: MIT
"""The systemd unit: what systemd reports about it, which lines it must contain, and the daemon at work under its filters.

Run as a program (`test_hardening.py ALLOWED COMMAND...`) it applies the unit's system-call filter, address families, namespaces
and W^X to itself, then executes COMMAND. ALLOWED is a comma-separated list of system-call numbers.
"""
import ctypes
import errno
import functools
import os
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

UNIT = Path(__file__).resolve().parents[2] / "conf" / "heartwheeld.service"
HEADERS = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h")

# --- the filter, in classic BPF (seccomp(2)); x86-64 only

LOAD, JEQ, JSET, AND, RET = 0x20, 0x15, 0x45, 0x54, 0x06
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
SOCKET, MMAP, MPROTECT, PKEY_MPROTECT, CLONE, CLONE3 = 41, 9, 10, 329, 56, 435
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
PROT_WRITE_EXEC, PROT_EXEC = 6, 4
NEW_NAMESPACES = 0x7E020080  # CLONE_NEW*


def only_if(number, body):
    """`body` applies to this system call; it ends in a RET or falls through."""
    return [(JEQ, 0, len(body) + 1, number)] + body + [(LOAD, 0, 0, 0)]


def argument(i):
    return (LOAD, 0, 0, 16 + 8 * i)  # its low half


def program(allowed):
    """The BPF program. A call that is not allowed kills the process, so that no refusal goes unnoticed. A call that systemd
    answers with an error gets that error."""
    code = [(LOAD, 0, 0, 4), (JEQ, 1, 0, 0xC000003E), (RET, 0, 0, KILL), (LOAD, 0, 0, 0)]
    code += only_if(SOCKET, [argument(0)] + [x for f in FAMILIES for x in ((JEQ, 0, 1, int(f)), (RET, 0, 0, ALLOW))]
                    + [(RET, 0, 0, ERROR | errno.EAFNOSUPPORT)])
    code += only_if(MMAP, [argument(2), (AND, 0, 0, PROT_WRITE_EXEC), (JEQ, 0, 1, PROT_WRITE_EXEC), (RET, 0, 0, KILL)])
    for call in (MPROTECT, PKEY_MPROTECT):
        code += only_if(call, [argument(2), (JSET, 0, 1, PROT_EXEC), (RET, 0, 0, KILL)])
    code += only_if(CLONE, [argument(0), (JSET, 0, 1, NEW_NAMESPACES), (RET, 0, 0, KILL)])
    code += only_if(CLONE3, [(RET, 0, 0, ERROR | errno.ENOSYS)])
    for n in allowed:
        code += [(JEQ, 0, 1, n), (RET, 0, 0, ALLOW)]
    return code + [(RET, 0, 0, KILL)]


def put_on(allowed):
    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
    code = b"".join(struct.pack("=HBBI", op, yes, no, k) for op, yes, no, k in program(allowed))
    prog = Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(prog), 0, 0):  # NO_NEW_PRIVS, SECCOMP
        raise OSError(ctypes.get_errno(), "no filter")


if __name__ == "__main__":
    put_on([int(n) for n in sys.argv[1].split(",")])
    os.execv(sys.argv[2], sys.argv[2:])

# --- the tests

import email  # noqa: E402
import email.policy  # noqa: E402

import pytest  # noqa: E402

from hw_alert import Alert, see, set_online  # noqa: E402
from hw_build import HEARTWHEELD, SRC  # noqa: E402
from hw_smtp import MailServer  # noqa: E402
from hw_wait import wait_until  # noqa: E402

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not there")


def directives():
    """{name: [values]}, of [Service]."""
    found, section = {}, ""
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def analyze(*args):
    return subprocess.run(["systemd-analyze", "--no-pager", *args], capture_output=True, text=True, timeout=60)


@pytest.fixture
def unit(tmp_path):
    """The unit with the built program in the place of the installed one."""
    path = tmp_path / UNIT.name
    text = UNIT.read_text()
    assert text.count("/usr/sbin/heartwheeld") == 1
    path.write_text(text.replace("/usr/sbin/heartwheeld", str(HEARTWHEELD)))
    return path


@needs_systemd
def test_systemd_finds_nothing_wrong(unit):
    done = analyze("verify", "--man=no", str(unit))
    assert done.returncode == 0 and not done.stdout + done.stderr, done


@needs_systemd
def test_exposure(unit):
    done = analyze("security", "--offline=true", "--threshold=14", str(unit))
    print(done.stdout[-120:])
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name,value", [
    ("NoNewPrivileges", "yes"), ("ProtectSystem", "strict"), ("ProtectHome", "yes"), ("PrivateTmp", "yes"),
    ("PrivateDevices", "yes"), ("CapabilityBoundingSet", ""), ("AmbientCapabilities", ""),
    ("RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6"), ("MemoryDenyWriteExecute", "yes"),
    ("RestrictNamespaces", "yes"), ("SystemCallArchitectures", "native"), ("Type", "notify"), ("User", "heartwheel"),
    ("RestrictSUIDSGID", "yes"), ("LockPersonality", "yes"), ("ProtectKernelTunables", "yes"),
    ("ProtectControlGroups", "yes"), ("RestartPreventExitStatus", "2 3"),
])
def test_the_sandbox_is_whole(name, value):
    assert directives().get(name) == [value]


def test_limits_and_watchdog():
    d = directives()
    assert int(d["LimitNOFILE"][0]) >= 1024
    assert 0 < int(d["WatchdogSec"][0]) <= 60
    assert int(d["TimeoutStopSec"][0]) > 10  # stop_timeout
    assert d["SystemCallFilter"][0] == "@system-service"


@functools.lru_cache(maxsize=None)
def calls_of(name):
    """The system calls of a group such as @system-service."""
    done = analyze("syscall-filter", name)
    assert done.returncode == 0, done
    found = set()
    for line in done.stdout.splitlines()[1:]:
        word = line.strip()
        if word and not word.startswith("#"):
            found |= calls_of(word) if word.startswith("@") else {word}
    return frozenset(found)


def allowed_calls():
    """The system calls that the unit's SystemCallFilter= lines allow (systemd.exec(5))."""
    allowed = set(calls_of("@default"))
    for rule in directives()["SystemCallFilter"]:
        names = rule.lstrip("~").split()
        calls = set().union(*(calls_of(n) if n.startswith("@") else {n} for n in names))
        allowed = allowed - calls if rule.startswith("~") else allowed | calls
    return allowed


def numbers():
    header = next((h for h in HEADERS if os.path.exists(h)), None)
    if platform.machine() != "x86_64" or header is None:
        pytest.skip("the filter is made for x86-64, with its unistd_64.h")
    return {m[0]: int(m[1]) for m in re.findall(r"#define __NR_(\w+) (\d+)", Path(header).read_text())}


def under_filter(d):
    """From now on the daemon starts under the unit's filters."""
    known = numbers()
    allowed = ",".join(str(known[c]) for c in sorted(allowed_calls()) if c in known)
    spawn = d.spawn
    d.spawn = lambda argv, env=None: spawn([sys.executable, __file__, allowed, *argv], env)
    return d


@pytest.fixture
def filtered(env):
    """env.daemon(), under the unit's filters."""
    configure = env.configure
    env.configure = lambda **options: under_filter(configure(**options))
    return env


@needs_systemd
def test_the_filter_bites(filtered):
    """A call that is not allowed ends the process, so the following tests prove something."""
    allowed = ",".join(str(n) for n in (numbers()[c] for c in allowed_calls() if c in numbers()))
    done = subprocess.run([sys.executable, __file__, allowed, sys.executable, "-c",
                           "import ctypes; ctypes.CDLL(None).chroot(b'/')"], timeout=20)
    assert done.returncode == -signal.SIGSYS
    done = subprocess.run([sys.executable, __file__, allowed, sys.executable, "-c",
                           "import mmap; mmap.mmap(-1, 4096, prot=7)"], timeout=20)
    assert done.returncode == -signal.SIGSYS


@needs_systemd
@pytest.mark.parametrize("kind", ["plain", "tls"])
def test_the_daemon_under_the_filter(filtered, kind, tls):
    """The whole life of the daemon: names to resolve, TLS, a log file, reload, rotation, the watchdog, a group for the
    socket."""
    env = filtered
    env.own_redis()
    env.own_broker(tls=tls if kind == "tls" else None)
    secure = {"tls": tls} if kind == "tls" else {}
    env._publisher = env.client(**secure)
    observer = env.observer(**secure)
    log = env.dir / "heartwheeld.log"
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(env.dir / "notify"))
    manager.setblocking(False)
    told = b""

    def has_told(word):
        nonlocal told
        try:
            while True:
                told += manager.recv(65536) + b"\n"
        except BlockingIOError:
            return word in told
    d = env.daemon(timeout="500ms", monitor={"log": log}, http={"socket_group": str(os.getegid())},
                   mqtt={"host": "localhost", **({"tls_ca": tls.ca} if kind == "tls" else {})},
                   redis={"host": "localhost"},
                   env={"NOTIFY_SOCKET": str(env.dir / "notify"), "WATCHDOG_USEC": "2000000",
                        "ASAN_OPTIONS": "detect_leaks=0"})  # that would need ptrace()
    wait_until(lambda: has_told(b"READY=1"), 10, "systemd to be told")
    assert "\nSeccomp:\t2\n" in Path("/proc/%d/status" % d.pid).read_text()
    env.beat("x", {"battery": 50})
    env.wait_status(observer, "x", True)
    env.wait_status(observer, "x", False)
    env.wait_store("x", "offline")
    assert d.get("/metrics").status == 200 and d.get("/v1/devices").json()["devices"]
    d.edit("timeout = 500ms", "timeout = 400ms")
    d.signal(signal.SIGHUP)
    wait_until(lambda: "timeout" in log.read_text() or "reload" in log.read_text(), 10, "the reload")
    log.rename(str(log) + ".1")
    d.signal(signal.SIGUSR1)
    wait_until(log.exists, 10, "the log to be opened again")
    assert d.forget("x").status == 204
    wait_until(lambda: has_told(b"WATCHDOG=1"), 10, "the watchdog to be fed")
    env.redis_server.stop()
    wait_until(lambda: d.status()["redis"] != "up")
    env.redis_server.start()
    env.broker.stop()
    d.wait_lost()
    env.broker.start()
    d.wait_seeing()
    wait_until(lambda: d.status()["redis"] == "up", 20)
    d.stop()
    assert has_told(b"STOPPING=1")


def example(kind):
    """The first block of docs/notify.md that shows how mails are sent: "ini" or "sh"."""
    text = (SRC / "docs" / "notify.md").read_text()
    return re.search(r"^```%s\n(.*?)^```$" % kind, text[text.index("## By mail"):], re.S | re.M)[1]


@pytest.fixture
def mails():
    server = MailServer()
    yield server
    server.close()


@needs_systemd
@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_the_mail_example_works_under_the_filter(env, mails):
    """The mail example of docs/notify.md, word by word except for the path and the port, as the unit runs it: without new
    privileges, and under its filter, which kills on each call that is not allowed."""
    program = env.dir / "tell-me"
    assert "smtp://127.0.0.1 " in example("sh")
    program.write_text(example("sh").replace("smtp://127.0.0.1 ", mails.url + " "))
    program.chmod(0o755)
    assert "/usr/local/bin/tell-me\n" in example("ini")
    notify = example("ini").replace("/usr/local/bin/tell-me", str(program))
    a = under_filter(Alert(env))
    a.conf.write_text(a.conf.read_text() + "\n" + notify + "notify_interval = 200ms\ntext = .{device}\\n.\\n{list}\n")
    see(env)
    a.start(env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    assert "\nSeccomp:\t2\n" in Path("/proc/%d/status" % a.pid).read_text()
    assert "\nNoNewPrivs:\t1\n" in Path("/proc/%d/status" % a.pid).read_text()
    assert a.request("POST", "/v1/receivers/exec/test").status == 202
    set_online(env, "pümp", False)

    def read():
        return [email.message_from_bytes(m["data"], policy=email.policy.default) for m in list(mails.mails)]
    dead = wait_until(lambda: [m for m in read() if "device pümp of group default is offline since " in m.get_content()
                               and m.get_content().startswith(".pümp")], what="the mail")
    text = dead[0].get_content().replace("\r\n", "\n")
    assert text.startswith(".pümp\n.\n") and dead[0]["Subject"].startswith("device pümp of group default "), (text, dead[0]["Subject"])
    assert (dead[0]["From"], dead[0]["To"]) == ("heartwheel@example.org", "ops@example.org")
    assert all((m["from"], m["to"]) == ("<heartwheel@example.org>", ["<ops@example.org>"]) for m in mails.mails)
    assert not [m.defects for m in read() if m.defects] and all(m["Message-ID"] and m["Date"] for m in read())
    wait_until(lambda: all(m["result"] == "sent" for r in a.json("/v1/receivers")["receivers"] for m in r["messages"]), what="both results")
    assert len(mails.mails) == 2
