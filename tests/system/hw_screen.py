# SPDX-License-Identifier: MIT
"""A program on a terminal: what is typed, and what the screen shows then."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios

import pyte

from hw_wait import wait_until

KEYS = {"down": "\x1b[B", "up": "\x1b[A", "enter": "\r", "escape": "\x1b", "backspace": "\x7f", "end": "\x1b[4~"}


class Terminal:
    """A terminal on which the program runs; pyte keeps its screen, and `raw` has every byte that came. With `job` the program
    has a parent on that terminal, as with a shell: without, it cannot be suspended from there."""

    def __init__(self, argv, rows=24, columns=80, job=False, **environment):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw, self.status = b"", None
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes = termios.tcgetattr(self.master)
        self.shell, (said, say) = None, os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(slave, fd)
            if job:
                self.be_shell(say)
            keep = {k: v for k, v in os.environ.items() if not k.startswith("LC_") and k not in ("LANG", "NO_COLOR", "COLUMNS", "LINES")}
            os.execve(argv[0], argv, dict(keep, **environment))
        os.close(slave)
        os.close(say)
        if job:
            self.shell, self.said = self.pid, said
            self.pid = int(os.read(said, 16))
        else:
            os.close(said)

    @staticmethod
    def be_shell(say):
        """Returns in a child in the foreground; the parent writes the child's number, and then each change of its status."""
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            return
        os.write(say, b"%-15d\n" % pid)
        status = 0x7F
        while os.WIFSTOPPED(status) or status == 0x7F:
            status = os.waitpid(pid, os.WUNTRACED)[1]
            os.write(say, b"%-15d\n" % status)
        os._exit(0)

    def read(self):
        while self.master is not None and select.select([self.master], [], [], 0)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:  # nobody holds it any more
                return
            if not data:
                return
            self.raw += data
            self.stream.feed(data)

    @property
    def lines(self):
        self.read()
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self):
        return "\n".join(self.lines)

    def shows(self, *words, without=()):
        """Waits until the screen shows all these texts, and none of those."""
        def there():
            text = self.text
            return all(w in text for w in words) and not any(w in text for w in without)
        try:
            wait_until(there, 20)
        except AssertionError as e:
            raise type(e)("%s, without %s: %s\n%s" % (words, without, e, self.text)) from None
        return self.text

    def type(self, *keys):
        for k in keys:
            os.write(self.master, KEYS.get(k, k).encode())

    def resize(self, rows, columns):
        self.read()
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def as_it_was(self):
        """Whether the modes are those before the program, the cursor is shown, and the usual screen is back."""
        self.read()
        return termios.tcgetattr(self.master) == self.modes and not self.screen.cursor.hidden

    def wait(self):
        """Waits until the program has ended or, as a job, is suspended; returns the status of waitpid()."""
        def ended():
            self.read()
            if self.shell:
                return (int(os.read(self.said, 16)),) if select.select([self.said], [], [], 0)[0] else None
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return (status,) if pid else None
        status = wait_until(ended, 10)[0]
        if not os.WIFSTOPPED(status):
            self.status = status
        return status

    def hang_up(self):
        os.close(self.master)
        self.master = None

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
        if self.shell or self.status is None:
            os.waitpid(self.shell or self.pid, 0)
        if self.shell:
            os.close(self.said)
        if self.master is not None:
            self.hang_up()
