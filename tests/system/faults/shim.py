# SPDX-License-Identifier: MIT
"""The test's side of shim.c: builds it, and arms it through a shared file."""
import mmap
import os
import shlex
import struct
import subprocess
from pathlib import Path

from hw_build import sanitizer_runtime

POINTS = ["script-before", "script-sent", "script-reply", "script-done", "publish-before", "publish-after",
          "puback-before", "puback-after", "p-before", "p-sent", "p-reply"]
TASK_POINTS = [*("%s-%s" % (script, when) for script in ("submit", "claim", "answer")
                 for when in ("before", "sent", "reply", "done")),
               *("%s-%s" % (what, when) for what in ("task", "notice")
                 for when in ("before", "after", "puback-before", "puback-after")),
               "group-reply", "told-before", "told-sent", "told-reply"]
WALL, POINT, COUNTDOWN, ALLOC_MODE, ALLOC_N, ALLOC_CALLS, ALLOC_FAILED, LOADED, BOOT = range(9)
ALLOC_OFF, ALLOC_ONCE, ALLOC_EVERY = range(3)


class Shim:
    """`env` is the environment in which to start a daemon; without `allocations`, any other program as well."""

    def __init__(self, directory, allocations=True):
        directory = Path(directory)
        library, control = directory / "shim.so", directory / "shim.control"
        runtime = sanitizer_runtime() if allocations else []  # must be first; the sanitizer calls the next library: the shim
        subprocess.run([*shlex.split(os.environ.get("CC") or "cc"), "-std=gnu17", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC",
                        *(["-DWITHOUT_ALLOCATIONS"] if runtime or not allocations else []),
                        "-o", str(library), str(Path(__file__).with_name("shim.c")), "-ldl"], check=True)
        control.write_bytes(bytes(9 * 8))
        with open(control, "r+b") as f:
            self.memory = mmap.mmap(f.fileno(), 9 * 8)
        self.env = {"LD_PRELOAD": " ".join([*runtime, str(library)]), "HW_SHIM": str(control)}

    def get(self, slot):
        return struct.unpack_from("q", self.memory, 8 * slot)[0]

    def set(self, slot, value):
        struct.pack_into("q", self.memory, 8 * slot, value)

    @property
    def loaded(self):
        return self.get(LOADED) == 1

    def step_wall(self, seconds):
        self.set(WALL, int(seconds * 1e9))

    def suspend(self, seconds):
        """The machine was suspended for this long in all, by the clock that continues meanwhile."""
        self.set(BOOT, int(seconds * 1e9))

    def kill_at(self, point, countdown):
        """The daemon is killed when it passes this point for the countdown-th time."""
        self.set(COUNTDOWN, countdown)
        self.set(POINT, 1 + (POINTS + TASK_POINTS).index(point))

    def fail_allocations(self, mode, n):
        self.set(ALLOC_CALLS, 0)
        self.set(ALLOC_FAILED, 0)
        self.set(ALLOC_N, n)
        self.set(ALLOC_MODE, mode)

    def calm(self):
        """No more kills and no more failing allocations."""
        self.set(POINT, 0)
        self.set(ALLOC_MODE, ALLOC_OFF)
