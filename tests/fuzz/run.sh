#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the fuzz targets with clang in ./fuzz, whatever compiler the rest is built with, and runs each for SECONDS
# (make fuzz FUZZ_SECONDS=N). One line for each target; fails if one has found anything. What was found lies in
# fuzz/found; what the corpus has grown to, in fuzz/corpus, from where the next run goes on.
#   run.sh SRCDIR SECONDS TARGETS COMPILER_FLAGS LIBRARIES SOURCE...
set -u
src=$1 seconds=$2 targets=$3 flags=$4 libraries=$5
shift 5
CLANG=${CLANG:-clang}
sanitize='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1'
failed=0

command -v "$CLANG" >/dev/null || {
	echo "$CLANG is missing: apt-get install clang libclang-rt-dev" >&2
	exit 1
}
mkdir -p fuzz/found fuzz/obj || exit 1

# Everything is compiled anew if anything has changed.
newest=$(find "$src/src" "$src/include" "$src/tests/fuzz" src \( -name '*.[ch]' -o -name '*.lua' -o -name run.sh \) \
	-newer fuzz/stamp 2>/dev/null | head -n 1)
if [ ! -e fuzz/stamp ] || [ -n "$newest" ]; then
	rm -f fuzz/obj/*.o
	for t in $targets; do
		set -- "$@" "tests/fuzz/fuzz_$t.c"
	done
	for c; do
		case $c in
		*.c) ;;
		*) continue ;;
		esac
		[ -e "$src/$c" ] && echo "$src/$c" || echo "$c"
	done >fuzz/sources
	# shellcheck disable=SC2016 # for the inner shell
	xargs -P 2 -n 1 sh -c 'o=$(echo "$4" | sed "s|.*/\([^/]*\)/\([^/]*\)\.c$|\1-\2.o|")
		exec $1 $2 $3 -fsanitize=fuzzer-no-link -c "$4" -o "fuzz/obj/$o"' sh "$CLANG" "$flags" "$sanitize" \
		<fuzz/sources || exit 1
	for t in $targets; do
		# shellcheck disable=SC2046,SC2086 # flags are words
		$CLANG $sanitize -fsanitize=fuzzer -o "fuzz/fuzz_$t" "fuzz/obj/fuzz-fuzz_$t.o" \
			$(find fuzz/obj -name '*.o' ! -name 'fuzz-*') $libraries || exit 1
	done
	touch fuzz/stamp
fi

for t in $targets; do
	mkdir -p "fuzz/corpus/$t"
	old=$src/tests/fuzz/regression/$t
	[ -d "$old" ] || old=
	log=fuzz/$t.log
	began=$(date +%s)
	"fuzz/fuzz_$t" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 \
		-max_len=4096 -artifact_prefix="fuzz/found/$t-" "fuzz/corpus/$t" "$src/tests/fuzz/corpus/$t" \
		${old:+"$old"} >"$log" 2>&1
	rc=$?
	done=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
	spent=$(($(date +%s) - began))
	if [ "$rc" -eq 0 ]; then
		printf 'fuzz_%s: %s executions in %d s, %d inputs in the corpus: nothing found\n' "$t" "${done:-?}" "$spent" \
			"$(find "fuzz/corpus/$t" -type f | wc -l)"
	else
		printf 'fuzz_%s: FOUND SOMETHING after %d s: %s (log: %s)\n' "$t" "$spent" \
			"$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)" "$PWD/$log"
		grep -m 4 -E 'ERROR:|runtime error:|not so:|Assertion|SUMMARY' "$log" | sed 's/^/    /'
		failed=1
	fi
done
exit $failed
