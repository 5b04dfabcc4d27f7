# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # top and results are the including script's
# For quickstart, .ci/run and tests/full: how a suite is run and what it adds to the closing line.
#   $top      the source tree
#   $results  a file with a line "NAME: N passed, N failed, N skipped" for each suite so far;
#             beside it $results.names, with the names of what was skipped or flaky

asides=()

# attend COMMAND...: runs it and waits. A wait, unlike a command, ends when a signal comes; stop_parts then ends the
# command. Nothing that takes longer than a moment may be run otherwise: a trap waits for a command's end.
attend()
{
	set -m # or the command would ignore Ctrl-C's signal
	"$@" </dev/null &
	set +m
	wait "$!"
}

# run NAME SECONDS LOG COMMAND...: the log goes to a file; what it says of failures, and its end, are shown only if the
# command failed. Last, how long it took, and how much of that the processors worked for it: what waits may run beside
# what works.
run()
{
	local name=$1 limit=$2 log=$3 rc began=$SECONDS TIMEFORMAT='%0U %0S'
	shift 3
	printf -- '--- %s\n' "$name"
	{ time attend timeout -k 20 "$limit" "$@" >"$log" 2>&1; } 2>"$log.time"
	rc=$?
	if [ "$rc" -eq 124 ]; then
		printf '%s was ended: it took longer than %s s\n' "$name" "$limit"
	fi
	[ "$rc" -eq 0 ] || show_failure "$log"
	printf '    %s: %d s' "$name" $((SECONDS - began))
	awk 'NF == 2 { worked = $1 + $2 } END { printf ", processors %d s\n", worked }' "$log.time"
	return "$rc"
}

# The lines with which pytest, Check, make, the compiler and our own scripts name a cause; then the log's end.
show_failure()
{
	local causes='^E  |^(FAILED|ERROR|FAIL|flaky):? |^not ok|NOT OK|:[FE]:[^:]+:[^:]+:|[Ee]rror: |\*\*\* |Sanitizer:'
	printf 'what %s says of it:\n' "$1"
	grep -nE "$causes" "$1" | cut -c1-400 | head -n 80
	printf 'the end of %s:\n' "$1"
	tail -n 60 "$1" | cut -c1-400
}

# aside FUNCTION...: one after the other, in the background and with less priority, while the caller goes on with
# what waits more than it works. What they say is shown by rejoin. Several may be called before that: with nice=5 for what
# waits, which then goes before what works. Not for what measures, nor beside it.
aside()
{
	local out=$results.aside${#asides[@]}
	: >"$out"
	: >"$out.names"
	printf -- '--- aside, shown later: %s\n' "$*"
	set -m
	quietly "$out" "$@" >"$out.out" 2>&1 </dev/null &
	asides+=("$!")
	set +m
}

quietly()
{
	local part results=$1
	shift
	trap 'stop_parts; exit 143' TERM
	renice -n "${nice-10}" -p "$BASHPID" >/dev/null
	for part; do "$part"; done
	exit 0
}

# Waits for all that runs aside, and shows it.
rejoin()
{
	local rc n out began=$SECONDS
	for n in "${!asides[@]}"; do
		wait "${asides[n]}"
		rc=$?
		out=$results.aside$n
		cat "$out.out"
		cat "$out" >>"$results"
		cat "$out.names" >>"$results.names"
		[ "$rc" -eq 0 ] || note 'what runs aside' "$rc"
	done
	asides=()
	printf '    waited for it: %d s\n' $((SECONDS - began))
}

# For a trap: ends whatever this shell has in the background. timeout, make and our own scripts hand the signal on.
stop_parts()
{
	local parts part
	parts=$(jobs -pr)
	for part in $parts; do
		kill -TERM "$part" 2>/dev/null
	done
	for part in $parts; do
		wait "$part"
		end_group "$part"
	done
}

# What is left of a process group whose leader has ended: a shell that the signal meets while it forks dies, and leaves
# its child, which nobody has told.
end_group()
{
	local n
	for ((n = 0; n < 100; n++)); do
		kill -TERM -- "-$1" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -KILL -- "-$1" 2>/dev/null
}

# tally STATUS NAME KIND FILE...: adds a suite's logs up (tally.sh). A suite that failed without a failed test counts as
# one failed test.
tally()
{
	local rc=$1 line name=$2 kind=$3
	shift
	names "$name" "$kind" "${@:3}"
	line=$(sh "$top/tests/tools/tally.sh" "$@")
	if [ "$rc" -ne 0 ] && [[ $line == *', 0 failed'* ]]; then
		line=${line/, 0 failed/, 1 failed}
	fi
	printf '%s\n' "$line" | tee -a "$results"
}

# names NAME KIND FILE...: keeps the names of what was skipped, of what passed only at its second try, and of what was
# repeated because its own devices had been too late (hw_void.py)
names()
{
	local name=$1 kind=$2 f
	shift 2
	for f; do
		[ -f "$f" ] || continue
		if [ "$kind" != check ]; then
			grep -hE '^(skipped|flaky|void): ' "$f" | sed "s|^\([a-z]*\): |\1: $name: |"
		elif grep -qs '^:test-result: SKIP' "${f%.log}.trs"; then
			printf 'skipped: %s: %s\n' "$name" "${f##*/}"
		fi
	done >>"$results.names"
}

# note NAME STATUS: a suite that is one thing, done or not
note()
{
	printf '%s: %d passed, %d failed, 0 skipped\n' "$1" $(($2 == 0)) $(($2 != 0)) | tee -a "$results"
}

# All suites, and last the one line that counts. Fails if anything failed, or nothing passed.
closing()
{
	printf '\n--- all suites, after %d min %d s\n' $((SECONDS / 60)) $((SECONDS % 60))
	sed 's/^/    /' "$results"
	[ ! -s "$results.names" ] || sort -u "$results.names"
	awk 'FILENAME ~ /names$/ { if (sub(/^flaky: /, "")) { which = which (flaky++ ? ", " : "") $0 } next }
		{ sub(/^.*: /, ""); passed += $1; failed += $3; skipped += $5 }
		END { if (skipped) printf "%d skipped\n", skipped
			if (flaky) printf "%d passed only when run again: %s\n", flaky, which
			printf "%d passed, %d failed\n", passed, failed
			exit failed > 0 || passed == 0 }' "$results.names" "$results"
}

# chosen DIR TESTS: which of these test programs, named by variables of Makefile.am, are run. With HW_HALF=0 or 1: of all
# programs each other one, from the second or the first on. If none is found, a name that make does not know.
chosen()
{
	if [ -z "${HW_HALF-}" ]; then
		printf '%s' "$2"
		return
	fi
	make -s --no-print-directory -C "$1" hw-chosen \
		--eval "hw-chosen: ; @printf '%s\\n' \$(check_PROGRAMS); echo; printf '%s\\n' $2" |
		awk -v half="$HW_HALF" '!NF { asked = 1 } !asked && NR % 2 == half { have[$1] } asked && $1 in have { print; n++ }
		END { if (!n) print "no-test-program-is-chosen" }' | tr '\n' ' '
}

# The test programs of one build, so that nothing has to be built while they run: all, also with HW_HALF, because the
# compiler warns of more with other flags. $1: its directory; $2: put before the suites' names.
test_programs()
{
	run "${2}test programs" 900 "$1/programs.out" make -C "$1" -k -s -j2 check TESTS=
	note "${2}test programs" $?
}

# checks NAME PREFIX DIR JOBS TESTS KIND...: the test programs of these variables of Makefile.am; their results are of these
# kinds.
checks()
{
	local name=$1 prefix=$2 dir=$3 jobs=$4 tests out rc kind logs programs=()
	out=$dir/check-${name##* }.out
	tests=$(chosen "$dir" "$5")
	[ -z "${HW_HALF-}" ] || programs=("check_PROGRAMS=$tests")
	shift 5
	for kind; do
		rm -f "$dir/tests/$kind"/*.log "$dir/tests/$kind"/*.trs
	done
	run "$prefix$name" 1800 "$out" make -C "$dir" -k "-j$jobs" check "TESTS=$tests" "${programs[@]}" \
		"TEST_SUITE_LOG=$out.log" VERBOSE=1
	rc=$?
	for kind; do
		[ "$rc" -eq 0 ] || [ "$kind" != system ] || late_again "$prefix" "$dir"
		mapfile -t logs < <(compgen -G "$dir/tests/$kind/*.log")
		# There need not be a C program of each kind.
		case $kind in
		system | fuzz) [ "${#logs[@]}" -gt 0 ] || continue ;;
		esac
		tally 0 "$prefix$kind" check "${logs[@]}"
	done
	# What make check says beyond the programs' own results: a program that does not build has no log.
	[ "$rc" -eq 0 ] && grep -q '^# TOTAL:' "$out" || grep -qE '^(FAIL|ERROR): ' "$out" || note "$prefix$name" 1
}

# late_again PREFIX DIR: where nothing has failed but bounds on time (tests/system/bound.h), in at most four programs, these
# are run again, alone. Each has to pass three times; then it is named as flaky.
late_again()
{
	local prefix=$1 dir=$2 failed log try
	mapfile -t failed < <(cd "$dir" && grep -lE '^:test-result: (X?FAIL|ERROR)' tests/system/*.trs)
	[ "${#failed[@]}" -gt 0 ] && [ "${#failed[@]}" -le 4 ] || return
	failed=("${failed[@]%.trs}")
	for log in "${failed[@]}"; do
		grep -qE ':F:.*: not within [0-9]+ ' "$dir/$log.log" || return
		! grep -E ':[FE]:' "$dir/$log.log" | grep -qvE ':F:.*: not within [0-9]+ ' || return
	done
	for try in 1 2 3; do
		run "${prefix}bounds on time had passed: again, alone, $try of 3" 1800 "$dir/check-again.out" make -C "$dir" check \
			"check_PROGRAMS=${failed[*]}" "TESTS=${failed[*]}" TEST_SUITE_LOG=check-again.log VERBOSE=1 || return
	done
	printf "flaky: ${prefix}system: %s\n" "${failed[@]}" | tee -a "$results.names"
}

# The test programs with real servers. $1 and $2 as above. They mostly wait, so that more run at once than there are
# processors; but they have bounds on time, so that what calculates has to stand back meanwhile.
test_served() { checks 'make check, served' "$2" "$1" 8 "\$(SYSTEM_TESTS)" system; }

# The other test programs, which calculate: aside, beside all that waits.
test_pure()
{
	checks 'make check, pure' "$2" "$1" 2 "\$(SIMULATION_TESTS) \$(VALGRIND_TESTS) \$(FUZZ_TESTS)" \
		unit property simulation fuzz
}

# The system tests that measure nothing. $1 and $2 as above; $3: seconds that they may take; $4: how many at once. They mostly
# wait, so that these are more than processors. $5 and so on: which, if not all. With HW_EACH_ONCE=N each test is run with
# one of its sets of parameters, and N says which.
test_system()
{
	local dir=$1 prefix=$2 limit=$3 jobs=$4
	shift 4
	[ $# -gt 0 ] || set -- "$top/tests/system"
	[ -z "${HW_EACH_ONCE-}" ] || printf '%ssystem tests: one set of parameters each, HW_EACH_ONCE=%s\n' "$prefix" "$HW_EACH_ONCE"
	run "${prefix}system tests" "$limit" "$dir/pytest.out" sh "$top/tests/tools/system-tests.sh" "$dir" -n "$jobs" \
		--ignore "$top/tests/system/test_detection.py" "$@"
	tally $? "${prefix}system tests" pytest "$dir/pytest.out"
}

# How many hundredths of the processors' time the host gave to others since BEFORE, a first line of /proc/stat.
stolen()
{
	awk -v before="$1" 'NR == 1 { n = split(before, b); for (i = 2; i <= n; i++) all += $i - b[i]
		print (all > 0 ? int(100 * ($9 - b[9]) / all) : 0) }' /proc/stat
}

# Those that measure. Nothing may run beside them.
test_detection()
{
	local before rc share n
	for n in 1 2 3; do
		before=$(head -n 1 /proc/stat)
		run "${2}detection delay" 300 "$1/detection.out" sh "$top/tests/tools/system-tests.sh" "$1" \
			"$top/tests/system/test_detection.py"
		rc=$?
		share=$(stolen "$before")
		# Milliseconds are not measured while somebody else has the processor; what is wrong and not late is never repeated.
		if [ "$rc" -eq 0 ] || [ "$n" -eq 3 ] || [ "$share" -lt 2 ] || grep -qE '^E +[A-Za-z.]*Error' "$1/detection.out"; then
			break
		fi
		printf 'void: %sdetection delay: the host took %s %% of the processors meanwhile; once more\n' "$2" "$share" |
			tee -a "$results.names"
	done
	tally $rc "${2}detection delay" pytest "$1/detection.out"
	grep -E ' deaths: ' "$1/detection.out"
}
