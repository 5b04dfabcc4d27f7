# SPDX-License-Identifier: MIT
"""heartwheeld: its configuration, its process and its control API."""
import subprocess
import time
import urllib.parse
from pathlib import Path

from hw_build import HEARTWHEELCTL, HEARTWHEELD
from hw_program import Program
from hw_wait import wait_until


def render(sections):
    """[(section, {key: value or list of values, None: left out})] -> the text of a configuration."""
    lines = []
    for name, keys in sections:
        lines.append("[%s]" % name)
        for key, value in keys.items():
            for v in value if isinstance(value, (list, tuple)) else [value]:
                if v is not None:
                    lines.append(("%s = %s" % (key, v)).rstrip())
    return "\n".join(lines) + "\n"


class Daemon(Program):
    """One configuration, and the heartwheeld that runs it (again and again, if the test wants that)."""

    name, alive_at = "heartwheeld", "/v1/status"

    def __init__(self, directory, text, node, socket_path, pid_file):
        super().__init__(directory, Path(socket_path), Path(pid_file))
        self.conf.write_text(text)
        self.node = node
        self.started = None  # monotonic, just before the latest start

    def rewrite(self, text):
        self.conf.write_text(text)

    def edit(self, old, new):
        text = self.conf.read_text()
        assert old in text, old
        self.conf.write_text(text.replace(old, new, 1))

    def start(self, seeing=True, ready=True, env=None, args=("-f",)):
        assert HEARTWHEELD.exists(), "no %s: set HW_BUILD to the build directory" % HEARTWHEELD
        assert not self.alive
        self.started = time.monotonic()
        self.spawn([HEARTWHEELD, *args, "-c", self.conf], env)
        if ready:
            wait_until(lambda: not self.alive or self.answers(), 15, "the control socket to answer")
            assert self.alive, "heartwheeld exited with %s:\n%s" % (self.proc.returncode, self.log()[-3000:])
        if seeing:
            self.wait_seeing()
        return self

    def wait_seeing(self, timeout=20):
        """Waits until the monitor sees and has read its store."""
        def sees():
            s = self.status()
            return s["blind"] is False and not s.get("loading")
        wait_until(sees, timeout, "the monitor to see")
        return self

    def wait_lost(self):
        """Waits until the readers know that the connections to the broker are lost. The cause of the blindness may be another
        one that came first, on a busy machine a standstill."""
        wait_until(lambda: self.metrics().get("link_up", link="reader") == 0, what="the loss of the broker to be noticed")
        assert self.status()["blind"] is True

    def status(self):
        a = self.get("/v1/status")
        assert a.status == 200, a
        return a.json()

    @staticmethod
    def path_of(device):
        return "/v1/devices/" + urllib.parse.quote(device, safe="")

    def device(self, device):
        """The device by the API, or None if it is unknown."""
        a = self.get(self.path_of(device))
        assert a.status in (200, 404), a
        return a.json() if a.status == 200 else None

    def state(self, device):
        d = self.device(device)
        return d and d["state"]

    def forget(self, device):
        return self.request("DELETE", self.path_of(device))

    def ctl(self, *args, timeout=60, socket_path=None, input=None):
        given = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        return subprocess.run([str(HEARTWHEELCTL), "-s", str(socket_path or self.socket), *args], capture_output=True,
                              text=True, timeout=timeout, **given)
