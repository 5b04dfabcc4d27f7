# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # top and results are the including script's
# For quickstart and .ci/run: how a suite is run and what it adds to the closing line.
#   $top      the source tree
#   $results  a file with a line "NAME: N passed, N failed, N skipped" for each suite so far

# run NAME SECONDS LOG COMMAND...: the log goes to a file, and its end is shown only if the command failed
run()
{
	local name=$1 limit=$2 log=$3 rc began=$SECONDS
	shift 3
	printf -- '--- %s\n' "$name"
	timeout -k 20 "$limit" "$@" >"$log" 2>&1 </dev/null
	rc=$?
	if [ "$rc" -eq 124 ]; then
		printf '%s was ended: it took longer than %s s\n' "$name" "$limit"
	fi
	if [ "$rc" -ne 0 ]; then
		printf 'the end of %s:\n' "$log"
		tail -n 60 "$log"
	fi
	printf '    %d s\n' $((SECONDS - began))
	return "$rc"
}

# tally STATUS NAME KIND FILE...: adds a suite's logs up (tally.sh). A suite that failed without a failed test counts as
# one failed test.
tally()
{
	local rc=$1 line
	shift
	line=$(sh "$top/tests/tools/tally.sh" "$@")
	if [ "$rc" -ne 0 ] && [[ $line == *', 0 failed'* ]]; then
		line=${line/, 0 failed/, 1 failed}
	fi
	printf '%s\n' "$line" | tee -a "$results"
}

# note NAME STATUS: a suite that is one thing, done or not
note()
{
	printf '%s: %d passed, %d failed, 0 skipped\n' "$1" $(($2 == 0)) $(($2 != 0)) | tee -a "$results"
}

# All suites, and last the one line that counts. Fails if anything failed, or nothing passed.
closing()
{
	printf '\n--- all suites\n'
	sed 's/^/    /' "$results"
	awk '{ sub(/^.*: /, ""); passed += $1; failed += $3; skipped += $5 }
		END { if (skipped) printf "%d skipped\n", skipped
			printf "%d passed, %d failed\n", passed, failed
			exit failed > 0 || passed == 0 }' "$results"
}

# The tests of one build. $1: its directory; $2: put before the suites' names; $3: seconds that the system tests may take.
test_build()
{
	local dir=$1 prefix=$2 limit=$3 rc kind logs
	rm -f "$dir"/tests/*/*.log "$dir"/tests/*/*.trs
	run "${prefix}make check" 900 "$dir/check.out" make -C "$dir" -k -j2 check
	rc=$?
	# As with the system tests: what failed beside others may pass alone, and its name stays in the output.
	if [ "$rc" -ne 0 ] && grep -qE '^(FAIL|ERROR): tests/system/' "$dir/check.out"; then
		grep -E '^(FAIL|ERROR): ' "$dir/check.out" | sed 's/^/run again, alone: /'
		run "${prefix}make recheck" 600 "$dir/check.out" make -C "$dir" -k -j1 recheck
		rc=$?
	fi
	for kind in unit property simulation system fuzz; do
		mapfile -t logs < <(compgen -G "$dir/tests/$kind/*.log")
		# There need not be a C program of each kind.
		case $kind in
		system | fuzz) [ "${#logs[@]}" -gt 0 ] || continue ;;
		esac
		tally 0 "$prefix$kind" check "${logs[@]}"
	done
	# What make check says beyond the programs' own results: a program that does not build has no log.
	grep -q "^# TOTAL:" "$dir/check.out" && [ "$rc" -eq 0 ] || grep -qE '^(FAIL|ERROR): ' "$dir/check.out" ||
		note "${prefix}make check" 1
	run "${prefix}system tests" "$limit" "$dir/pytest.out" sh "$top/tests/tools/system-tests.sh" "$dir" -n 4 \
		--ignore "$top/tests/system/test_detection.py" "$top/tests/system"
	tally $? "${prefix}system tests" pytest "$dir/pytest.out"
	# By itself, because it measures.
	run "${prefix}detection delay" 300 "$dir/detection.out" sh "$top/tests/tools/system-tests.sh" "$dir" \
		"$top/tests/system/test_detection.py"
	tally $? "${prefix}detection delay" pytest "$dir/detection.out"
	grep -E ' deaths: ' "$dir/detection.out"
}
