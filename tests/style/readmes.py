#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""readmes.py DIRECTORY: each README of its folders has at most 15 lines, and names only files that are there. A line that
names files has their names, without suffix, and three blanks behind them."""
import glob
import sys
from pathlib import Path

for readme in sorted(Path(sys.argv[1]).rglob("README")):
    lines = readme.read_text(encoding="utf-8").splitlines()
    if len(lines) > 15:
        print(f"{readme}:16: more than 15 lines")
    for number, line in enumerate(lines[1:], 2):
        names, gap, _ = line.partition("   ")
        for name in names.split() if gap and names else []:
            path = glob.escape(str(readme.parent)) + "/" + name
            if not any(glob.glob(path + suffix) for suffix in ("", ".c", ".h")):
                print(f"{readme}:{number}: there is no file '{name}'")
