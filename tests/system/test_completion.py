# SPDX-License-Identifier: MIT
"""What the shells offer after heartwheelctl, with the ids and groups of a running daemon."""
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import time

import pytest

from hw_build import HEARTWHEELCTL, SRC
from hw_wait import wait_until

COMPLETIONS = SRC / "completions"
COMMANDS = {"status", "top", "list", "show", "watch", "wheel", "groups", "nodes", "check", "forget", "notify", "reload", "discover", "history", "outages", "uptime", "incidents", "incident", "ack",
            "unack", "silence", "silences", "unsilence", "task", "user", "version", "devices"}


def needs(shell):
    return pytest.mark.skipif(not shutil.which(shell), reason="no %s on this machine (Debian package: %s)" % (shell, shell))


def run(argv, **more):
    environment = dict(os.environ, PATH="%s:%s" % (HEARTWHEELCTL.parent, os.environ["PATH"]))
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, env=environment, **more)


def bash(socket, *words):
    """The completions of a command line's last word."""
    script = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _heartwheelctl; printf "%s\\n" "${COMPREPLY[@]}"'
    r = run(["bash", "-c", script, "bash", COMPLETIONS / "heartwheelctl.bash", "heartwheelctl", "-s", str(socket), *words])
    assert r.returncode == 0 and not r.stderr, r
    return set(r.stdout.split("\n")) - {""}


def fish(socket, *words):
    line = " ".join(["heartwheelctl", "-s", str(socket), *words])
    r = run(["fish", "--no-config", "-c", 'source "%s"; complete -C "%s"' % (COMPLETIONS / "heartwheelctl.fish", line)])
    assert r.returncode == 0 and not r.stderr, r
    return {l.split("\t")[0] for l in r.stdout.splitlines()}


def zsh(socket, *words):
    """As bash(), but on a terminal: zsh completes nowhere else."""
    setup = ("PS1=READY; fpath=(%s $fpath); autoload -U compinit; compinit -u -D; zstyle ':completion:*' list-separator '#';"
             "unsetopt automenu; setopt autolist; LISTMAX=1000; bindkey '^I' complete-word\n" % COMPLETIONS)
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(PATH="%s:%s" % (HEARTWHEELCTL.parent, os.environ["PATH"]), TERM="dumb")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 500, 0, 0))  # a line that is not scrolled
    text = ""

    def until(pattern):
        nonlocal text
        deadline = time.monotonic() + 20
        while not re.search(pattern, text, re.S):
            assert time.monotonic() < deadline, text
            if select.select([fd], [], [], 0.1)[0]:
                text += os.read(fd, 65536).decode("utf-8", "replace")

    os.write(fd, setup.encode())
    until("(?<!=)READY(?!;)")
    text = ""
    os.write(fd, (" ".join(["heartwheelctl", "-s", str(socket), *words]) + "\t").encode())
    # The answer to a second key comes behind the completion: ^A^K empties the line, and the shell says so.
    os.write(fd, b"\x01echo DO''NE; : \n")
    until("DONE")
    os.close(fd)
    os.waitpid(pid, 0)
    return text


@pytest.fixture(scope="module")
def fleet(base, shared_broker, shared_redis):
    from hw_env import Env
    e = Env(shared_broker, shared_redis, base)
    d = e.daemon(groups=[("halls", {"heartbeat": e.root + "/h/{id}", "timeout": "1h"}),
                         ("yard", {"heartbeat": e.root + "/y/{id}", "timeout": "1h"})])
    for name in ("pump-1", "pump-2", "a pump's $x"):
        e.publisher.publish("%s/h/%s" % (e.root, name), b"")
    e.publisher.publish("%s/y/gate" % e.root, b"")
    wait_until(lambda: d.status()["devices"] == 4)
    yield d
    wrong = e.close()
    e.remove()
    if wrong:
        raise wrong


@needs("bash")
def test_bash(fleet):
    s = fleet.socket
    assert bash(s, "") == COMMANDS
    assert bash(s, "w") == {"watch", "wheel"}
    assert bash(s, "show", "pump") == {"pump-1", "pump-2"}
    assert bash(s, "forget", "") == {"pump-1", "pump-2", "gate", "a\\ pump\\'s\\ \\$x"}
    assert bash(s, "list", "--group", "") == {"halls", "yard"}
    assert bash(s, "list", "--state", "on") == {"online"}
    assert bash(s, "list", "--s") == {"--state", "--search", "--sort"}
    assert bash(s, "status", "--j") == {"--json"}
    assert bash(s, "history", "pump") == bash(s, "uptime", "pump") == {"pump-1", "pump-2"}
    assert bash(s, "history", "st") == {"status"} and bash(s, "outages", "--group", "") == {"halls", "yard"}
    assert bash("/nowhere", "show", "") == set()


@needs("fish")
def test_fish(fleet):
    s = fleet.socket
    assert fish(s, "w") == {"watch", "wheel"}
    assert fish(s, "show", "pump") == {"pump-1", "pump-2"}
    assert fish(s, "list", "--group", "") == {"halls", "yard"}
    assert fish(s, "list", "--state", "on") == {"online"}
    assert fish(s, "uptime", "pump") == {"pump-1", "pump-2"}
    assert fish("/nowhere", "show", "p") == set()


@needs("zsh")
def test_zsh(fleet):
    s = fleet.socket
    assert "pump-1" in (text := zsh(s, "show", "pump-")) and "pump-2" in text and "gate" not in text
    assert "halls" in (text := zsh(s, "list", "--group=")) and "yard" in text
    assert "watch" in (text := zsh(s, "w")) and "wheel" in text
    assert "pump-1" in zsh(s, "outages", "pump-")
    assert "forget gate" in zsh(s, "forget", "ga")


def test_every_command_and_option_is_completed():
    """All three shells complete each command and option that --help lists."""
    texts = [(COMPLETIONS / n).read_text() for n in ("heartwheelctl.bash", "_heartwheelctl", "heartwheelctl.fish")]
    r = run([HEARTWHEELCTL, "--help"])
    commands = set(re.findall(r"^  (\w+) ", r.stdout.split("options:")[0], re.M))
    assert commands == COMMANDS
    for command in commands:
        h = run([HEARTWHEELCTL, command, "--help"]).stdout
        for option in re.findall(r"--(\w+)", h):
            for text in texts:
                assert command in text and option in text, (command, option)
