#!/bin/sh
# SPDX-License-Identifier: MIT
#
# places.sh header|sed PLACES: reads a list such as scripts/places, and prints a C header with its numbers, or a sed script
# that replaces the names in a .lua file by the numbers.
set -eu
[ $# -eq 2 ] || { echo "usage: $0 header|sed PLACES" >&2; exit 2; }
part=$(basename "$(cd "$(dirname "$2")/.." && pwd)" | tr '[:lower:]' '[:upper:]')
awk -v mode="$1" -v guard="HW_${part}_PLACES_H" '
function place(name, n)
{
	if (mode == "header")
		printf "\tHW_AT_%s_%s = %d,\n", $1, toupper(name), n
	else
		printf "s/\\<%s\\.%s\\>/%d/g\n", $1, name, n
}
BEGIN {
	if (mode == "header") {
		print "/* SPDX-License-Identifier: MIT */"
		print "/* Made by places.sh from scripts/places; changes here are lost. */"
		print "#ifndef " guard "\n#define " guard "\n\nenum {"
	}
}
/^[A-Z]/ {
	for (k = 3; k <= NF; k++)
		place($k, $2 + k - 3)
	place("next", $2 + NF - 2)
}
END {
	print mode == "header" ? "};\n\n#endif" : "s/ + 0\\]/]/g"
}' "$2"
