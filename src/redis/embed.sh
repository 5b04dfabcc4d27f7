#!/bin/sh
# SPDX-License-Identifier: MIT
#
# embed.sh OUT LUA...: writes the C source OUT, in which each script is a string hw_script_NAME_text (redis/script.h
# declares them). Comment lines and indentation are left out, line ends are kept, so that Redis reports the lines of the
# .lua files. OUT appears whole or not at all.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 OUT LUA..." >&2; exit 2; }
out=$1
shift
tmp=$out.tmp
trap 'rm -f "$tmp"' EXIT
{
	printf '/* SPDX-License-Identifier: MIT */\n/* Made by embed.sh; changes here are lost. */\n'
	printf '#include "redis/script.h"\n'
	for lua in "$@"; do
		[ -r "$lua" ] || { echo "$0: cannot read $lua" >&2; exit 1; }
		name=$(basename "$lua" .lua)
		printf '\nconst char hw_script_%s_text[] =\n' "$name"
		sed -e 's/^[[:space:]]*--.*$//' -e 's/^[[:space:]]*//' -e 's/\\/\\\\/g' -e 's/"/\\"/g' \
			-e 's/^/\t"/' -e 's/$/\\n"/' "$lua"
		printf '\t"";\n'
	done
} >"$tmp"
mv "$tmp" "$out"
