#!/bin/sh
# SPDX-License-Identifier: MIT
# rounds.sh BUILD ROUNDS [JOBS [PYTEST-ARGUMENT...]]: each case of tests/system/test_links.py so often, and how many of
# each passed. In every round living devices beat all the while, and one that is called offline fails it.
set -u
HW_BUILD=$1 HW_ROUNDS=$2 jobs=${3-4}
export HW_BUILD HW_ROUNDS PYTHONDONTWRITEBYTECODE=1
if [ $# -gt 3 ]; then shift 3; else shift $#; fi
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(mktemp)
trap 'rm -f "$out"' EXIT
/usr/bin/python3 -m pytest -p no:cacheprovider -q -rA --tb=short -n "$jobs" "$here/system/test_links.py" "$@" >"$out" 2>&1
grep -E '^(PASSED|FAILED|ERROR) ' "$out" | sed -E 's/^([A-Z]+) .*::([^[ ]*)\[[0-9]+-?(.*)\]( - .*)?$/\1 \2 \3/' |
	sort | uniq -c | awk '{ r = $2; n = $1; $1 = $2 = ""; c[$0] += n; if (r == "PASSED") p[$0] += n }
	END { for (k in c) { printf "%4d of %d passed %s\n", p[k], c[k], k; if (p[k] < c[k]) bad = 1 }; exit bad || !length(c) }'
rc=$?
[ "$rc" -eq 0 ] || grep -E '^E  ' "$out" | sort | uniq -c | head -40
exit "$rc"
