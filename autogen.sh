#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes ./configure out of configure.ac. Only needed in a checkout: a release tarball has it already.
set -eu
cd "$(dirname "$0")"
for tool in autoreconf automake pkg-config; do
	command -v "$tool" >/dev/null || {
		echo "autogen.sh: $tool is missing: apt-get install autoconf automake pkg-config" >&2
		exit 1
	}
done
exec autoreconf --force --install --warnings=all
