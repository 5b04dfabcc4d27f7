#!/bin/sh
# SPDX-License-Identifier: MIT
# What a machine can say about how the code reads. Says everything it finds, then fails if there was anything.
# Run it from the top of the source tree (make check-style does); tools that are missing are named, and count as failed
# unless HW_STYLE_PARTIAL=1.
set -u
CC=${CC:-cc}
CPPFLAGS=${CPPFLAGS-}
work=$(mktemp -d "${TMPDIR:-/tmp}/hw-style.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# verdict WHAT: $work/out holds the complaints
verdict()
{
	if [ -s "$work/out" ]; then
		echo "not ok: $1"
		sed 's/^/    /' "$work/out"
		failed=$((failed + 1))
	else
		echo "ok: $1"
		passed=$((passed + 1))
	fi
	: >"$work/out"
}

# need TOOL PACKAGE: whether it is there; absence is a failure with its package's name
need()
{
	command -v "$1" >/dev/null && return 0
	echo "$1 is missing: apt-get install $2" >"$work/out"
	if [ "${HW_STYLE_PARTIAL:-0}" = 1 ]; then
		echo "skipped: $(cat "$work/out")"
		: >"$work/out"
	else
		verdict "$1 is there"
	fi
	return 1
}

# In a checkout: the tracked files; in a tarball: all.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	git ls-files >"$work/all"
else
	find . -type f ! -path './build*' | sed 's|^\./||' | sort >"$work/all"
fi
while read -r f; do [ -f "$f" ] && echo "$f"; done <"$work/all" >"$work/files"
grep -E '^(include|src|tests|bench)/.*\.[ch]$' "$work/files" >"$work/c"
grep -E '^(include|src)/.*\.[ch]$' "$work/files" >"$work/own"
: >"$work/out"

if need clang-format clang-format; then
	xargs clang-format --dry-run -Werror <"$work/c" >"$work/log" 2>&1 ||
		grep 'error:' "$work/log" | cut -d: -f1 | sort | uniq -c | sed 's/$/: clang-format -i it/' >"$work/out"
	verdict 'clang-format'
fi

if need python3 python3; then
	PYTHONDONTWRITEBYTECODE=1 xargs python3 tests/style/layout.py <"$work/c" >"$work/out" 2>&1
	verdict 'layout: sizeof(x), no blank line after the declarations of a block'
fi

# The glossary's terms: the check itself must find one in a name and one in a comment, and none in a string.
# shellcheck disable=SC2016 # backticks are text
if need python3 python3; then
	PYTHONDONTWRITEBYTECODE=1 xargs python3 tests/style/words.py <"$work/own" >"$work/out" 2>&1
	printf '%s\n' 'int hw_edge_add; /* what is owed */' 'const char *s = "told"; /* `told` */' >"$work/wrong.c"
	[ "$(python3 tests/style/words.py "$work/wrong.c" | sed 's/.*:\([0-9]*\): .\([a-z]*\). .*/\1\2/' | tr '\n' ' ')" = '1edge 1owed ' ] ||
		echo 'tests/style/words.py does not find what it should' >>"$work/out"
	verdict 'words: names and comments have the terms of the glossary'
fi

if need python3 python3; then
	python3 tests/style/runbook.py >"$work/out" 2>&1
	verdict 'runbook: each alert rule, each cause of blindness and each warning of the log is there, and nothing else'
	if need mkdocs mkdocs && need mandoc mandoc; then
		python3 docs/site.py . "$work" >"$work/site.log" 2>&1 || cp "$work/site.log" "$work/out"
		verdict 'site: no link is broken, nothing is loaded from elsewhere, and no list or code block is running text'
	fi
	python3 tests/style/links.py "$work/files" >"$work/out" 2>&1
	verdict 'links: each page and heading that a page links to is there, in the tree and as installed'
fi

if need python3 python3; then
	python3 tests/style/readmes.py src >"$work/out" 2>&1
	mkdir -p "$work/room" && printf 'A room.\n\nREADME gone   files\n' >"$work/room/README"
	[ "$(python3 tests/style/readmes.py "$work/room" | sed 's/.*README//')" = ":3: there is no file 'gone'" ] ||
		echo 'tests/style/readmes.py does not find what it should' >>"$work/out"
	verdict 'readmes: at most 15 lines, and each file that they name is there'
fi

if need python3 python3; then
	PYTHONDONTWRITEBYTECODE=1 python3 tests/style/conf_example.py | diff conf/monitor.conf.example - >"$work/out" ||
		echo 'python3 tests/style/conf_example.py >conf/monitor.conf.example' >>"$work/out"
	[ "$(grep -c '' conf/monitor.conf)" -le 40 ] || echo 'conf/monitor.conf has more than 40 lines' >>"$work/out"
	verdict 'monitor.conf.example has what monitor.conf(5) says; monitor.conf has at most 40 lines'
fi

# 0.1.0 is a first version: what users get, and no fault that was mended on the way.
sed -n '/^heartwheel 0\.1\.0$/,/^heartwheel /p' CHANGES | awk 'NR > 60 { print "CHANGES: more than 60 lines for 0.1.0"; exit }' >"$work/out"
sed -n '/^heartwheel 0\.1\.0$/,/^heartwheel /p' CHANGES | grep -nE 'Before,|no longer|any more|used to' >>"$work/out"
verdict 'CHANGES says what 0.1.0 brings, and nothing of before'

if need mandoc mandoc; then
	grep -E '^man/.*\.[0-9]$' "$work/files" | while read -r m; do
		mandoc -Tlint -Wwarning "$m" 2>&1
	done >"$work/out"
	verdict 'manual pages (mandoc -Tlint -Wwarning)'
fi

# On all processors, because these are hundreds of runs of the compiler. The check itself must find one that does not.
echo 'struct hw_wrong { size_t n; };' >"$work/wrong.h"
export CC CPPFLAGS
# shellcheck disable=SC2016 # for the inner shell; CC and CPPFLAGS are words
{ grep '\.h$' "$work/own"; echo "$work/wrong.h"; } | xargs -P "$(nproc)" -n 1 sh -c '
	found=$($CC -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -Iinclude -Isrc $CPPFLAGS -x c -fsyntax-only "$1" 2>&1) ||
		printf "%s does not compile alone:\n%s\n" "$1" "$(echo "$found" | grep -m 3 error)"' sh >"$work/alone"
grep -q "^$work/wrong.h does" "$work/alone" || echo 'a header that needs another one is not found' >"$work/out"
grep -v "$work/wrong.h" "$work/alone" >>"$work/out"
verdict 'headers compile alone'

grep -E '^(include/|src/core/|src/nodes/|src/incident/|src/inventory/|src/tasks/schedule/|src/stream/(gap|id)\.)' "$work/own" >"$work/pure"
xargs grep -nE \
	'#[[:space:]]*include[[:space:]]*[<"](event|event2/|mosquitto|hiredis|sys/socket|sys/epoll|pthread|threads|syslog|curl/|systemd/|ini)' \
	<"$work/pure" >"$work/out" /dev/null
xargs grep -nE \
	'(^|[^_[:alnum:]])(time|clock_gettime|gettimeofday|clock|localtime|syslog|printf|fprintf|fopen|socket|nanosleep|usleep|sleep|getrandom)[[:space:]]*\(' \
	<"$work/pure" /dev/null | grep -vE ':[0-9]+:[[:space:]]*(\*|/\*|//)' >>"$work/out"
verdict 'core, nodes, incident, inventory and tasks/schedule are pure: no clock, socket, log, thread'

# Arrows only go down: each part, and the parts that it may include. heartwheelctl and bench stand apart.
# heartwheel/json_tree.h, json_writer.h and print.h are for all.
cat >"$work/arrows" <<'END'
conf    conf
nodes   nodes heartwheel
incident incident core heartwheel
inventory inventory conf heartwheel
stream  stream link heartwheel
run     run http conf heartwheel
http    http conf heartwheel
link    link conf heartwheel
mqtt    mqtt conf heartwheel
control control stream http run inventory heartwheel
redis   redis stream link run nodes inventory heartwheel
tasks   tasks stream control mqtt http link run conf heartwheel
history history stream http link run conf heartwheel
alert   alert incident stream http link run conf heartwheel
ctl     ctl http mqtt conf heartwheel
END
# shellcheck disable=SC2046 # file names are words
{
	grep -nE '#include "((run|http|link|mqtt|nodes|incident|inventory|redis|control|daemon|tasks|history|alert|conf|ctl)/|stream/[^i])' \
		$(grep -E '^(include/|src/core/)' "$work/own") /dev/null
	while read -r part may; do
		grep -nE '#include "[a-z]+/' $(grep "^src/$part/" "$work/own") /dev/null |
			grep -vE "#include \"(heartwheel/(json_tree|json_writer|print)\.h|($(echo "$may" | tr ' ' '|'))/)"
	done <"$work/arrows"
} >"$work/out" 2>/dev/null
verdict 'includes only go down'

# The folders of the daemon: what a part keeps to itself, and the cluster, which has one header.
# shellcheck disable=SC2046 # file names are words
grep -nE '#include "daemon/([a-z]+/[a-z_]+_priv|cluster/(cluster_[a-z_]+|peers)|broker/share)\.h"' \
	$(grep '^src/daemon/' "$work/own") >"$work/out" /dev/null
verdict 'the parts of the daemon are reached by their headers'

# The folders of heartwheel-tasks: what a folder keeps to itself, and the folder below that the others stand on.
# shellcheck disable=SC2046 # file names are words
{
	for private in api/api_parts api/feed follow/followers follow/past follow/session watch/ends queue/reads; do
		grep -nE "#include \"tasks/$private\.h\"" $(grep '^src/tasks/' "$work/own" | grep -v "^src/tasks/${private%/*}/") /dev/null
	done | grep -vE '^src/tasks/(app\.c:.*watch/ends|api/.*queue/reads)'
	grep -nE '#include "tasks/(api|watch/(ends|submitters))' $(grep -E '^src/tasks/(queue|mqtt|follow)/' "$work/own") /dev/null
	grep -nE '#include "(tasks/[^st]|tasks/(settings|task\.h)|(core|control|stream|mqtt|http|link|run|conf)/)' \
		$(grep '^src/tasks/schedule/' "$work/own") /dev/null
} >"$work/out"
verdict 'the folders of tasks are reached by their headers; queue, mqtt and follow do not include api'

# Who includes whom, as far as both are ours; of those in a circle tsort says the names.
# shellcheck disable=SC2016 # for awk
xargs awk -v list="$work/c" '
	BEGIN { while ((getline name <list) > 0) ours[name] = 1 }
	match($0, /^[ \t]*#[ \t]*include[ \t]*["<][^">]+/) {
		name = substr($0, RSTART, RLENGTH)
		sub(/^.*["<]/, "", name)
		beside = FILENAME
		sub(/[^\/]*$/, "", beside)
		n = split(beside name " include/" name " src/" name " tests/" name, at, " ")
		for (k = 1; k <= n; k++) {
			while (sub(/[^\/]+\/\.\.\//, "", at[k])) { }
			if (at[k] in ours) {
				print FILENAME, at[k]
				break
			}
		}
	}' <"$work/c" >"$work/includes"
tsort <"$work/includes" 2>&1 >/dev/null | sed 's/^tsort: //; s/^-: input contains a loop:/a circle:/' >"$work/out"
verdict 'no files include each other in a circle'

# The length that snprintf() returns may be longer than the buffer: it is compared within ten lines, or hw_print() is used.
# shellcheck disable=SC2016 # for awk
grep -v '^include/heartwheel/print.h$' "$work/own" | xargs awk '
	/(\(size_t\)|\(int\)|\+=|return|[(,]) *v?snprintf\(/ { print FILENAME ":" FNR ": the result of snprintf as a length: use hw_print()" }
	open && $0 ~ "(^|[^_[:alnum:]])" name " ([<>]=?) " { open = 0 }
	open && (--open == 0 || /^}/) {
		open = 0
		print at ": the result of snprintf is not compared with the size of the buffer: use hw_print()"
	}
	match($0, /[_[:alnum:]]+ = v?snprintf\(/) {
		name = substr($0, RSTART)
		sub(/ .*/, "", name)
		at = FILENAME ":" FNR
		open = 10
	}' >"$work/out"
verdict 'no unchecked result of snprintf is used as a length'

grep -v '^include/heartwheel/json_tree.h$' "$work/own" | xargs grep -n 'cJSON_ParseWithLength' |
	sed 's/:[^:]*$/: use hw_json_tree()/' >"$work/out"
verdict 'texts of a given length are parsed by hw_json_tree() alone'

# Values of a tree that was parsed may be printed; no tree is made to be printed, and no format has a key or a brace of JSON.
grep '^src/' "$work/own" | xargs grep -nE 'cJSON_(Create|Add[A-Z][a-z]+ToObject\()|printf?\(.*"(\{\\"|\\"[a-z_]+\\":)|^[[:space:]]*"[{,]\\"[a-z_]+\\":' |
	grep -vE 'cJSON_AddItemTo(Object|Array)|src/core/json_writer\.c:' >"$work/out"
verdict 'JSON is written by heartwheel/json_writer.h alone'

xargs grep -LE '^/\* SPDX-License-Identifier: MIT \*/' <"$work/c" >"$work/out"
grep -E '(\.sh|\.py|^quickstart|^\.ci/run|^tests/full)$' "$work/files" | xargs grep -L 'SPDX-License-Identifier: MIT' >>"$work/out"
verdict 'every file has its SPDX line'

if need ctags universal-ctags; then
	xargs ctags -x --c-kinds=f --_xformat='%{input} %{line} %{end} %{name}' <"$work/own" >"$work/functions" 2>/dev/null
	awk '{ n = $3 - $2 + 1; if (n > 60) printf "%s:%d: %s() has %d lines\n", $1, $2, $4, n }' "$work/functions" |
		sort >"$work/long"
	sed 's/^/    longer than 60: /' "$work/long"
	awk '{ n = $3 - $2 + 1; if (n > 80) printf "%s:%d: %s() has %d lines, 80 is the most\n", $1, $2, $4, n }' \
		"$work/functions" >"$work/out"
	verdict 'functions of at most 80 lines'
fi

# long_files says of each file over 600 lines why it is one subject.
xargs wc -l <"$work/own" | awk '$2 == "total" { next }
	NR == FNR { sub(/:$/, "", $1); why[$1] = 1; next }
	$1 > 800 { print $2 ": " $1 " lines, 800 is the most"; next }
	$1 > 600 && !($2 in why) { print $2 ": " $1 " lines: split it, or say in tests/style/long_files why it is one subject" }' \
	tests/style/long_files - >"$work/out"
verdict 'files of at most 600 lines, or one subject of at most 800'

# Headers are in no list, and tests/system/faults and tests/tools build their programs themselves.
grep -E '(^|/)local\.mk$' "$work/files" | xargs cat Makefile.am >"$work/make"
grep -E '^(src|tests/(unit|property|system|simulation|fuzz))/.*\.(c|lua)$|^man/.*\.[0-9]$|^conf/.*\.(service|acl)$' "$work/files" |
	grep -v '^tests/system/faults/' | while read -r f; do
	name=${f%.c}
	grep -qE "(^|[[:space:]])($f|$name)([[:space:]]|\$)" "$work/make" || echo "$f is in no list of ${f%/*}/local.mk"
done >"$work/out"
verdict 'local.mk names every source file'

{
	sed -n -e 's|^\(src\|tests\)/\([^/]*\)/.*|\2|p' -e 's|^\([^/]*\)/.*|\1|p' "$work/files" | sort -u | while read -r name; do
		grep -qE "(^|[[:space:]/])$name/" CONTRIBUTING.md || echo "CONTRIBUTING.md: the folder $name/ is missing"
	done
	sed -n 's/^\.PHONY: //p' "$work/make" | tr ' ' '\n' | sort -u | while read -r name; do
		grep -qE "make $name([^a-z-]|\$)" CONTRIBUTING.md || echo "CONTRIBUTING.md: make $name is missing"
	done
} >"$work/out"
verdict 'CONTRIBUTING.md has every folder and every make target'

# What would fail only when Redis runs the script must fail the build: a name that is no place, a part that is not there.
for line in 'local a = ARGV[NOBODY.place]' 'include nobody'; do
	echo "$line" >"$work/wrong.lua"
	sh src/redis/embed.sh "$work/scripts.c" redis/script.h hw_script src/redis/scripts/places src/core/report.c "$work/wrong.lua" 2>/dev/null &&
		echo "src/redis/embed.sh takes '$line'"
done >"$work/out"
verdict 'scripts that name what is not there fail the build'

if need python3 python3; then
	PYTHONDONTWRITEBYTECODE=1 python3 tests/mutation/mutate.py --find 2>&1 | grep '^NOT FOUND' |
		sed 's|$|: change tests/mutation/mutations|' >"$work/out"
	verdict 'every mutation is found'
fi

if need shellcheck shellcheck; then
	while read -r f; do
		case $f in
		*.sh | quickstart | .ci/run | tests/full) echo "$f" ;;
		esac
	done <"$work/files" | xargs shellcheck -x >"$work/out" 2>&1
	verdict 'shellcheck'
fi

echo "style: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
