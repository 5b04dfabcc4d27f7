#!/bin/sh
# SPDX-License-Identifier: MIT
# system-tests.sh BUILD [-n N] ARGUMENT...: pytest with the programs in BUILD. -n N: so many at once, where
# python3-pytest-xdist is there; they mostly wait. A test that fails fails the run. Only one in which nothing was wrong but
# that a bound on time had passed is run again, alone, and has to pass three times: on a busy machine it can miss what it
# keeps otherwise. It is named then: "flaky: NAME". More than four of them fail the run. See hw_again.py.
set -u
HW_BUILD=$1
HW_FAILED=$HW_BUILD/pytest-failed
export HW_BUILD HW_FAILED PYTHONDONTWRITEBYTECODE=1
shift
here=$(cd "$(dirname "$0")/../system" && pwd)
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
	grep -E ' in [0-9.]+s' "$1" | tail -n 1 | grep -oE "[0-9]+ $2" | cut -d' ' -f1
}

first=$HW_BUILD/pytest-first.out
again=$HW_BUILD/pytest-again.out
rm -f "$HW_FAILED"
# shellcheck disable=SC2086 # two words
"$python" -m pytest -p no:cacheprovider -q -rfEs $parallel "$@" >"$first" 2>&1
rc=$?
cat "$first"
[ "$rc" -eq 1 ] || exit "$rc"
names=$(PYTHONPATH=$here "$python" -c 'import sys, hw_again; print("\n".join(hw_again.late_names(sys.argv[1])))' "$HW_FAILED")
[ -n "$names" ] || exit "$rc"
many=$(printf '%s\n' "$names" | wc -l)

for try in 1 2 3; do
	printf '\nWhere nothing but a bound on time had passed is run again, alone, %d of 3:\n' "$try"
	HW_ONLY=$names "$python" -m pytest -p no:cacheprovider -q -rfEs "$@" >"$again" 2>&1
	rc=$?
	cat "$again"
	# Each of them has run, and was not left out. If not, the numbers of the first run stand.
	if [ "$rc" -ne 0 ] || [ "$(number "$again" passed)" != "$many" ]; then
		grep -E ' in [0-9.]+s' "$first" | tail -n 1
		exit 1
	fi
done
printf '%s\n' "$names" | sed 's/^/flaky: /'
passed=$(number "$first" passed)
skipped=$(number "$first" skipped)
printf '%d passed, %d skipped in 0.0s\n' $((${passed:-0} + many)) "${skipped:-0}"
