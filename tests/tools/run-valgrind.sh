#!/bin/sh
# SPDX-License-Identifier: MIT
# run-valgrind.sh PROGRAM...: each test program under valgrind, two at a time; an error, a leak or a failed test fails.
# The sanitized environment of each is the one of make check; HW_FEW_ROUNDS=1 tells a test to do fewer random rounds.
set -u
command -v valgrind >/dev/null || {
	echo 'valgrind is missing: apt-get install valgrind' >&2
	exit 1
}
HW_FEW_ROUNDS=1
export HW_FEW_ROUNDS
# A test's own time limits count real seconds, and valgrind makes them about thirty times slower.
CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-30}
export CK_TIMEOUT_MULTIPLIER
# shellcheck disable=SC2016 # for the inner shell
one='
	log=$1.valgrind
	if valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect,possible \
		--errors-for-leak-kinds=definite,indirect,possible --child-silent-after-fork=no --trace-children=no \
		--num-callers=20 "./$1" >"$log" 2>&1 && ! grep -q "^==[0-9]*== " "$log"; then
		echo "valgrind ok: $1"
	else
		echo "valgrind NOT OK: $1 (see $log)"
		grep -E "^==|[0-9]%: Checks|:[FE]:" "$log" | head -n 40
		exit 1
	fi
'
printf '%s\n' "$@" >valgrind.list
if xargs -P 2 -n 1 sh -c "$one" valgrind <valgrind.list >valgrind.log; then
	rc=0
else
	rc=1
fi
rm -f valgrind.list
cat valgrind.log
ok=$(grep -c '^valgrind ok: ' valgrind.log)
bad=$(grep -c '^valgrind NOT OK: ' valgrind.log)
echo "valgrind: $ok passed, $bad failed"
[ "$rc" -eq 0 ] && [ "$bad" -eq 0 ]
