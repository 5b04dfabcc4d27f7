#!/bin/sh
# SPDX-License-Identifier: MIT
#
# embed.sh OUT HEADER PREFIX PLACES REPORT LUA...: writes the C source OUT, which has each script as a string
# PREFIX_NAME_text. HEADER (such as redis/script.h) declares these strings. In each script, embed.sh replaces:
# - the names of positions (WRITE.seq, see PLACES) by numbers;
# - REPORT_FIELDS by the names in hw_report_fields of REPORT (src/core/report.c; - if no script needs them);
# - `include NAME` by the text of NAME.lua in the same folder, on one line. So an included script must not have comments
#   after its statements.
# Comment lines and indentation are removed. Line ends are kept, so that Redis reports the line numbers of the .lua files.
# OUT is written completely or not at all.
set -eu
[ $# -ge 6 ] || { echo "usage: $0 OUT HEADER PREFIX PLACES REPORT LUA..." >&2; exit 2; }
out=$1 header=$2 prefix=$3 places=$4 report=$5
shift 5
tmp=$out.tmp
trap 'rm -f "$tmp" "$tmp.sed"' EXIT
# plain LUA: the script without comment lines and indentation
plain()
{
	sed -e 's/^[[:space:]]*--.*$//' -e 's/^[[:space:]]*//' "$1"
}
# whole LUA: the script together with its included scripts
whole()
{
	plain "$1" | while IFS= read -r line; do
		case $line in
		'include '*)
			part=$(dirname "$1")/${line#include }.lua
			if [ -r "$part" ]; then
				plain "$part" | grep . | paste -sd ' '
				continue
			fi
			;;
		esac
		printf '%s\n' "$line"
	done
}
sh "$(dirname "$0")/places.sh" sed "$places" >"$tmp.sed"
if [ "$report" != - ]; then
	fields=$(sed -n "s/^[[:space:]]*{\"\([a-z_]*\)\", HW_REPORT_.*/'\1'/p" "$report" | paste -sd , | sed 's/,/, /g')
	[ "$fields" ] || { echo "$0: no fields in $report" >&2; exit 1; }
	echo "s/\\<REPORT_FIELDS\\>/$fields/" >>"$tmp.sed"
fi
{
	printf '/* SPDX-License-Identifier: MIT */\n/* Made by embed.sh; changes here are lost. */\n'
	printf '#include "%s"\n' "$header"
	for lua in "$@"; do
		[ -r "$lua" ] || { echo "$0: cannot read $lua" >&2; exit 1; }
		name=$(basename "$lua" .lua)
		printf '\nconst char %s_%s_text[] =\n' "$prefix" "$name"
		whole "$lua" | sed -f "$tmp.sed" |
			sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/\t"/' -e 's/$/\\n"/'
		printf '\t"";\n'
	done
} >"$tmp"
if wrong=$(grep -noE '\<[A-Z]{2,}\.[a-z_]+' "$tmp"); then
	echo "$0: not in $places: $wrong" >&2
	exit 1
fi
if wrong=$(grep -noE '\<include [a-z_]+' "$tmp"); then
	echo "$0: no such script, or one that an included script includes: $wrong" >&2
	exit 1
fi
mv "$tmp" "$out"
