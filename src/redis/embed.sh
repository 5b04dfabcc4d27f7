#!/bin/sh
# SPDX-License-Identifier: MIT
#
# embed.sh OUT HEADER PREFIX PLACES REPORT LUA...: writes the C source OUT, in which each script is a string PREFIX_NAME_text
# (HEADER, say redis/script.h, declares them). The places of arguments and keys (WRITE.seq, see PLACES) become numbers, REPORT_FIELDS the
# names in hw_report_fields of REPORT (src/core/report.c; - where no script needs them); `include NAME` becomes what NAME.lua beside the script says, on
# one line (so it must have no comments behind its statements); comment lines and indentation are left out, line ends are
# kept, so that Redis reports the lines of the .lua files. OUT appears whole or not at all.
set -eu
[ $# -ge 6 ] || { echo "usage: $0 OUT HEADER PREFIX PLACES REPORT LUA..." >&2; exit 2; }
out=$1 header=$2 prefix=$3 places=$4 report=$5
shift 5
tmp=$out.tmp
trap 'rm -f "$tmp" "$tmp.sed"' EXIT
# plain LUA: without comment lines and indentation
plain()
{
	sed -e 's/^[[:space:]]*--.*$//' -e 's/^[[:space:]]*//' "$1"
}
# whole LUA: with what it includes
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
