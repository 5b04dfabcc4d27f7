# SPDX-License-Identifier: MIT
"""Where the sources and the built programs are."""
import os
import re
import subprocess
from pathlib import Path

SRC = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HW_BUILD") or "build").resolve()
HEARTWHEELD = BUILD / "heartwheeld"
HEARTWHEELCTL = BUILD / "heartwheelctl"
FLEET = BUILD / "tests" / "system" / "fleet"
SANITIZER = re.compile(r"ERROR: \w*Sanitizer|runtime error:|WARNING: ThreadSanitizer")


def sanitizer_runtime():
    """The address sanitizer's library if the daemon is built with it, in a list."""
    linked = subprocess.run(["ldd", str(HEARTWHEELD)], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"=> (\S*/libasan\.\S*)", linked)
