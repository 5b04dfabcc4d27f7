#!/bin/sh
# SPDX-License-Identifier: MIT
# system-tests.sh BUILD [-n N] ARGUMENT...: pytest with the programs in BUILD. -n N: so many at once, where
# python3-pytest-xdist is there; they mostly wait. Beside others, on a busy machine, a test can miss a deadline that it
# keeps alone; so what failed with -n is run once more, one at a time, and counts as failed only if it fails again. The
# first failures stay in the output, under their names.
set -u
HW_BUILD=$1
export HW_BUILD PYTHONDONTWRITEBYTECODE=1
shift
# Debian's own: its modules are Debian's packages.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
if [ "${1-}" != -n ]; then
	exec "$python" -m pytest -p no:cacheprovider -q -rfEs "$@"
fi
jobs=$2
shift 2
"$python" -c 'import xdist' 2>/dev/null && parallel="-n $jobs" || parallel=

cache=$HW_BUILD/pytest-cache
first=$HW_BUILD/pytest-first.out
rm -rf "$cache"
# shellcheck disable=SC2086 # two words
"$python" -m pytest -o "cache_dir=$cache" -q -rfEs $parallel "$@" >"$first" 2>&1
rc=$?
cat "$first"
[ "$rc" -eq 1 ] || exit "$rc"

number()
{
	grep -E ' in [0-9.]+s' "$2" | tail -n 1 | grep -oE "[0-9]+ $1" | cut -d' ' -f1
}

second=$HW_BUILD/pytest-second.out
printf '\nWhat failed is run again, one at a time:\n'
"$python" -m pytest -o "cache_dir=$cache" --lf --lfnf none -q -rfEs "$@" >"$second" 2>&1
rc=$?
cat "$second"
passed=$(number passed "$first")
again=$(number passed "$second")
failed=$(number failed "$second")
errors=$(number error "$second")
skipped=$(number skipped "$first")
printf '\n%d passed, %d failed, %d skipped in 0.0s (%d of them only when run again, alone)\n' \
	$((${passed:-0} + ${again:-0})) $((${failed:-0} + ${errors:-0})) "${skipped:-0}" "${again:-0}"
exit "$rc"
