#!/bin/sh
# SPDX-License-Identifier: MIT
# tally.sh NAME KIND FILE...: adds a suite's results up and prints "NAME: N passed, N failed, N skipped".
#   check   .log files of Check programs with their .trs beside them: counts single checks; a program that died without
#           a summary, or whose exit status was bad though its checks passed, counts as one failure
#   pytest  the output of one run of pytest
#   lines   output that ends with "WORD: N passed, N failed", or with that and ", N skipped"
# A suite without any result is one failure: a suite that did not run must not look like one that passed.
set -u
name=$1 kind=$2
shift 2
passed=0 failed=0 skipped=0

add_check()
{
	result=$(sed -n 's/^:test-result: //p' "${1%.log}.trs" 2>/dev/null | head -n 1)
	case $result in
	SKIP*)
		skipped=$((skipped + 1))
		return
		;;
	esac
	sums=$(sed -n 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\).*$/\1 \2 \3/p' "$1" |
		awk '{ n += $1; bad += $2 + $3 } END { print n + 0, bad + 0, NR }')
	# shellcheck disable=SC2086 # three numbers
	set -- "$1" $sums
	passed=$((passed + $2 - $3))
	failed=$((failed + $3))
	case $result in
	PASS*) [ "$4" -gt 0 ] || passed=$((passed + 1)) ;;
	*) [ "$3" -gt 0 ] || failed=$((failed + 1)) ;;
	esac
}

word()
{
	sed -n "s/^.*[^0-9]\([0-9][0-9]*\) $1[^[:alpha:]].*\$/\1/p" "$log.last"
}

add_pytest()
{
	log=$1
	grep -E '(passed|failed|error|errors|skipped|no tests ran).* in [0-9.]+s' "$log" | tail -n 1 | sed 's/^/ /; s/$/ /' \
		>"$log.last"
	for what in passed failed error errors skipped; do
		n=$(word "$what")
		[ -n "$n" ] || continue
		case $what in
		passed) passed=$((passed + n)) ;;
		skipped) skipped=$((skipped + n)) ;;
		*) failed=$((failed + n)) ;;
		esac
	done
	rm -f "$log.last"
}

add_lines()
{
	# shellcheck disable=SC2046 # two or three numbers
	set -- $(sed -n 's/^[a-z][a-z -]*: \([0-9]*\) passed, \([0-9]*\) failed\(, \([0-9]*\) skipped\)\{0,1\}.*$/\1 \2 \4/p' "$1" |
		tail -n 1)
	[ $# -ge 2 ] || return
	passed=$((passed + $1))
	failed=$((failed + $2))
	skipped=$((skipped + ${3:-0}))
}

for file; do
	[ -f "$file" ] || continue
	case $kind in
	check) add_check "$file" ;;
	pytest) add_pytest "$file" ;;
	lines) add_lines "$file" ;;
	*)
		echo "tally.sh: unknown kind $kind" >&2
		exit 2
		;;
	esac
done
[ $((passed + failed + skipped)) -gt 0 ] || failed=1
echo "$name: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
