#!/bin/sh
# SPDX-License-Identifier: MIT
#
# embed.sh OUT FILE...: writes the C source OUT, in which each file is an array of bytes in the table hw_web_files
# (control/web.h declares it). A file given as NAME=PATH goes by that name; one that is not there is left out. OUT appears
# whole or not at all.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 OUT FILE..." >&2; exit 2; }
out=$1
shift
tmp=$out.tmp
trap 'rm -f "$tmp" "$tmp.table"' EXIT

type_of()
{
	case $1 in
	*.html) echo 'text/html; charset=utf-8' ;;
	*.css) echo 'text/css; charset=utf-8' ;;
	*.js) echo 'text/javascript; charset=utf-8' ;;
	*.svg) echo 'image/svg+xml' ;;
	*) echo "$0: no type for $1" >&2; exit 1 ;;
	esac
}

: >"$tmp.table"
{
	printf '/* SPDX-License-Identifier: MIT */\n/* Made by embed.sh; changes here are lost. */\n'
	printf '#include "control/web.h"\n'
	n=0
	for f in "$@"; do
		path=${f#*=}
		name=$(basename "${f%%=*}")
		if [ -z "$path" ] || [ ! -r "$path" ]; then continue; fi
		type=$(type_of "$name")
		printf '\nstatic const unsigned char bytes_%d[] = {\n' "$n"
		od -An -v -tx1 "$path" | sed -e 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
		printf '};\n'
		printf '\t{"%s", "%s", "\\"%s\\"", bytes_%d, sizeof(bytes_%d)},\n' \
			"$name" "$type" "$(cksum <"$path" | tr ' ' '-')" "$n" "$n" >>"$tmp.table"
		n=$((n + 1))
	done
	printf '\nconst struct hw_web_file hw_web_files[] = {\n'
	cat "$tmp.table"
	printf '};\nconst size_t hw_web_n_files = sizeof(hw_web_files) / sizeof(hw_web_files[0]);\n'
} >"$tmp"
mv "$tmp" "$out"
