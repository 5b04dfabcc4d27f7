# SPDX-License-Identifier: MIT
"""Child processes: each ends with the test run (PDEATHSIG) if it is not stopped before, and each port is a free one of
127.0.0.1."""
import ctypes
import itertools
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from hw_wait import PATIENCE, NotWithin, wait_until

_numbers = itertools.count(1)
_ports = itertools.count(os.getpid() * 37)
_WORKERS = 16  # each takes ports of its own, if pytest has no more
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw%d" % (8 + os.getpid() % 8)).removeprefix("gw"))
_libc = ctypes.CDLL(None, use_errno=True)


def next_number():
    """A number that was not used before in this test run."""
    return next(_numbers)


def own_numbers():
    """Numbers that no other process uses either: what a server left on a port that is free again must not look like ours."""
    global _numbers, _ports
    _numbers = itertools.count(os.getpid() * 100000)
    _ports = itertools.count(os.getpid() * 37)


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def free_port():
    """A port below those of outgoing connections, of which one could take the port before its server does; see free_port.h. Two
    workers of a test run never get the same port: otherwise a test could reach the server of another test."""
    while True:
        port = 10240 + (next(_ports) * _WORKERS + _worker) % 9760
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Process:
    """A child with its output in a file. Subclasses define how it is started and when it is ready."""

    name = "process"

    def __init__(self, directory):
        self.dir = Path(directory)
        self.proc = None
        self.output = self.dir / ("%s.log" % self.name)

    def spawn(self, argv, env=None):
        self.awaited = False  # whether a test expects its end
        with open(self.output, "ab") as out:
            self.proc = subprocess.Popen(
                [str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.dir,
                env=dict(os.environ, **(env or {})), preexec_fn=_die_with_parent)

    @property
    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    @property
    def pid(self):
        return self.proc.pid

    def signal(self, number):
        self.proc.send_signal(number)

    def wait(self, timeout=PATIENCE):
        self.awaited = True
        try:
            return self.proc.wait(timeout)
        except subprocess.TimeoutExpired:
            raise NotWithin("%s (pid %d) did not exit within %.0f s" % (self.name, self.pid, timeout)) from None

    def kill(self):
        if self.alive:
            self.proc.send_signal(signal.SIGCONT)
            self.proc.kill()
            self.proc.wait(10)

    def log(self):
        try:
            return self.output.read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""


class Server(Process):
    """A server on a port that was free a moment ago: if another process got the port first, another port is tried."""

    patience = PATIENCE  # seconds that it may take to start, or to stop before it is killed

    def __init__(self, directory):
        super().__init__(directory)
        self.port = None

    def launch(self):
        raise NotImplementedError

    def answers(self):
        raise NotImplementedError

    def start(self):
        keep = self.port is not None
        for _ in range(5):
            if not keep:
                self.port = free_port()
            self.launch()
            wait_until(lambda: not self.alive or self.answers(), self.patience, "%s to answer" % self.name)
            if self.alive:
                return self
            if keep:
                time.sleep(0.2)
        raise RuntimeError("%s does not start:\n%s" % (self.name, self.log()[-2000:]))

    def stop(self, number=signal.SIGTERM):
        if self.alive:
            self.signal(number)
            try:
                self.proc.wait(self.patience)
            except subprocess.TimeoutExpired:
                self.kill()
