#!/bin/sh
# SPDX-License-Identifier: MIT
# system-tests.sh BUILD [-n N] ARGUMENT...: pytest with the programs in BUILD. -n N: so many at once, where
# python3-pytest-xdist is there; they mostly wait. A test that fails fails the run. Only one that asserts nothing but a
# bound on time, and says so in its source (@pytest.mark.timing), is run once more, alone: on a busy machine it can miss
# what it keeps otherwise. It is named then: "flaky: NAME". See conftest.py, which writes down what failed.
set -u
HW_BUILD=$1
HW_FAILED=$HW_BUILD/pytest-failed
export HW_BUILD HW_FAILED PYTHONDONTWRITEBYTECODE=1
shift
# Debian's own: its modules are Debian's packages.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
parallel=
if [ "${1-}" = -n ]; then
	"$python" -c 'import xdist' 2>/dev/null && parallel="-n $2"
	shift 2
fi
number()
{
	grep -E ' in [0-9.]+s' "$first" | tail -n 1 | grep -oE "[0-9]+ $1" | cut -d' ' -f1
}

first=$HW_BUILD/pytest-first.out
rm -f "$HW_FAILED"
# shellcheck disable=SC2086 # two words
"$python" -m pytest -p no:cacheprovider -q -rfEs $parallel "$@" >"$first" 2>&1
rc=$?
cat "$first"
[ "$rc" -eq 1 ] && [ -s "$HW_FAILED" ] && ! grep -qv '^timing ' "$HW_FAILED" || exit "$rc"

names=$(sed 's/^timing //' "$HW_FAILED")
printf '\nWhat asserts nothing but a bound on time is run again, alone:\n'
rm -f "$HW_FAILED"
HW_ONLY=$names "$python" -m pytest -p no:cacheprovider -q -rfEs "$@"
rc=$?
[ "$rc" -eq 0 ] || exit "$rc"
printf '%s\n' "$names" | sed 's/^/flaky: /'
passed=$(number passed)
failed=$(number failed)
skipped=$(number skipped)
printf '%d passed, %d skipped in 0.0s\n' $((${passed:-0} + ${failed:-0})) "${skipped:-0}"
