#!/bin/sh
# SPDX-License-Identifier: MIT
# system-tests.sh BUILD [-n N] ARGUMENT...: pytest with the programs in BUILD. -n N: so many at once, where
# python3-pytest-xdist is there; they mostly wait.
set -u
HW_BUILD=$1
export HW_BUILD PYTHONDONTWRITEBYTECODE=1
shift
# Debian's own: its modules are Debian's packages.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
if [ "${1-}" = -n ] && ! "$python" -c 'import xdist' 2>/dev/null; then
	shift 2
fi
exec "$python" -m pytest -p no:cacheprovider -q -rfEs "$@"
