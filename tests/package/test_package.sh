#!/bin/bash
# SPDX-License-Identifier: MIT
# The Debian package, as an administrator meets it: built from a clean export, looked at by lintian, installed into a
# Debian tree of its own next to mosquitto and redis-server, started, upgraded, removed, purged. Ends with
# "package: N passed, N failed", or with "skipped" where something is missing that cannot be done without.
#
# The tree is made by debootstrap once and kept in HW_BUILDDIR/package; what happens in it (installed.sh) has a network,
# mounts and processes of its own, so that it uses the default ports, and nothing of it can stay.
set -u
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1
here=${HW_BUILDDIR:-$top/build}/package
PACKAGES='build-essential debhelper debootstrap lintian dpkg-dev fakeroot'
# What the tree has beside the package's own dependencies.
BESIDE='mosquitto mosquitto-clients redis-server logrotate iproute2 openssl curl'
passed=0 failed=0 run=''

say() { printf '%s\n' "$*"; }
skip()
{
	say "skipped: package: $*"
	say "package: $passed passed, $failed failed, 1 skipped"
	[ "$failed" -eq 0 ]
	exit
}
trap '[ -z "$run" ] || rm -rf --one-file-system "$run"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# expect WHAT COMMAND...: what the command says is shown only if it fails
expect()
{
	local what=$1 out
	shift
	if out=$("$@" 2>&1); then
		say "ok: $what"
		passed=$((passed + 1))
	else
		say "not ok: $what"
		printf '%s\n' "$out" | tail -n 40 | sed 's/^/    /'
		failed=$((failed + 1))
		return 1
	fi
}

closing()
{
	say "package: $passed passed, $failed failed"
	[ "$failed" -eq 0 ]
	exit
}

needed()
{
	local tool
	[ "$(id -u)" -eq 0 ] || skip 'it has to be run as root'
	for tool in dpkg-buildpackage dh debootstrap lintian fakeroot unshare; do
		command -v "$tool" >/dev/null || skip "$tool is missing: apt-get install $PACKAGES"
	done
	tool=$(cd "$top" && dpkg-checkbuilddeps 2>&1) || skip "$tool"
	unshare --mount --pid --net --fork true 2>/dev/null || skip 'no namespaces can be made here'
}

# The committed tree, or all of a release tarball.
# shellcheck disable=SC2317 # called by expect
export_source()
{
	mkdir -p "$run/source"
	if [ -e "$top/.git" ]; then
		git -c safe.directory='*' -C "$top" archive HEAD | tar -x -C "$run/source"
	else
		tar -C "$top" --exclude='./build*' --exclude=./config.status --exclude=./Makefile -c . | tar -x -C "$run/source"
	fi
}

# shellcheck disable=SC2317 # called by expect
build()
{
	cd "$run/source" && DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" dpkg-buildpackage -b -us -uc
}

# shellcheck disable=SC2317 # called by expect
lint() { lintian --allow-root --fail-on error --display-level error,warning "$run"/*.changes; }

# The files that have to be in it, whatever else is.
# shellcheck disable=SC2317 # called by expect
contents()
{
	local f missing=0
	for f in etc/heartwheel/monitor.conf etc/logrotate.d/heartwheel lib/systemd/system/heartwheeld.service \
		lib/systemd/system/heartwheel-history.service usr/sbin/heartwheel-history \
		lib/systemd/system/heartwheel-tasks.service usr/sbin/heartwheel-tasks \
		lib/systemd/system/heartwheel-alert.service usr/sbin/heartwheel-alert \
		usr/bin/heartwheelctl usr/sbin/heartwheeld usr/lib/sysusers.d/heartwheel.conf usr/lib/tmpfiles.d/heartwheel.conf \
		usr/share/doc/heartwheel/changelog.gz usr/share/doc/heartwheel/copyright usr/share/doc/heartwheel/docs/devices.md usr/share/doc/heartwheel/conf \
		usr/share/doc/heartwheel/examples/{monitor.conf.example,mosquitto-heartwheel.acl,mosquitto-heartwheel.conf,redis-heartwheel.acl} "$@"; do
		dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -qx "./$f" || {
			say "it has no /$f"
			missing=1
		}
	done
	return "$missing"
}

# The manual pages, and the completions by the names that the shells look for.
pages_and_completions()
{
	local page
	for page in "$run"/source/man/*.[0-9]; do
		printf 'usr/share/man/man%s/%s.gz\n' "${page##*.}" "${page##*/}"
	done
	printf '%s\n' usr/share/bash-completion/completions/heartwheelctl \
		usr/share/zsh/vendor-completions/_heartwheelctl usr/share/fish/vendor_completions.d/heartwheelctl.fish
}

# The next version, with another default configuration.
# shellcheck disable=SC2317 # called by expect
next_version()
{
	dpkg-deb -R "$deb" "$run/next" &&
		sed -i "s/^Version: .*/&+next/" "$run/next/DEBIAN/control" &&
		printf '\n# what the next version has added\n' >>"$run/next/etc/heartwheel/monitor.conf" &&
		dpkg-deb --root-owner-group -b "$run/next" "$run/next.deb"
}

# A Debian with the package's dependencies, as $base; made anew when the list of them changes.
base_tree()
{
	local suite mirror depends list
	# shellcheck source=/dev/null
	suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME-}")
	# shellcheck disable=SC2016 # apt's own $(...)
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $suite" 'Component: main' |
		head -n 1)
	depends=$(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/[[:space:]]//g')
	# shellcheck disable=SC2086 # lists of words
	list=$(printf '%s\n' $BESIDE $depends | sort -u | paste -sd ,)
	base=$here/base-$(printf '%s' "$suite $mirror $list" | sha256sum | cut -c 1-12)
	[ ! -e "$base/.complete" ] || return 0
	rm -rf --one-file-system "$here"/base-*
	say "making a tree of Debian $suite from $mirror in $base"
	if debootstrap --variant=minbase --include="$list" "$suite" "$base" "$mirror" >"$here/debootstrap.out" 2>&1; then
		rm -rf "$base"/var/cache/apt/archives/*.deb "$base"/var/lib/apt/lists/*_*
		touch "$base/.complete"
	else
		tail -n 5 "$here/debootstrap.out"
		rm -rf --one-file-system "$base"
		return 1
	fi
}

# shellcheck disable=SC2317 # called by expect
copy_tree()
{
	cp -a "$base" "$run/tree" && mkdir "$run/tree/debs" && cp "$deb" "$run/tree/debs/first.deb" &&
		cp "$run/next.deb" "$run/tree/debs/next.deb"
}

# shellcheck disable=SC2317 # called by expect
start_tree()
{
	cp -a "$base" "$run/start" && mkdir "$run/start/debs" && cp "$deb" "$run/start/debs/first.deb" &&
		chroot "$run/start" dpkg -i /debs/first.deb
}

needed
mkdir -p "$here" || exit 1
run=$(mktemp -d "$here/run.XXXXXX") || exit 1
expect 'a clean export of the source' export_source || closing
expect 'dpkg-buildpackage' build || closing
version=$(sed -n 's/^AC_INIT(\[heartwheel\], \[\(.*\)\])$/\1/p' "$top/configure.ac")
deb=$run/heartwheel_${version}_$(dpkg --print-architecture).deb
expect "it makes ${deb##*/}, by configure.ac's version" test -e "$deb" || closing
expect 'lintian has no error' lint
mapfile -t more < <(pages_and_completions)
expect 'every file is in it' contents "${more[@]}"
expect 'the next version' next_version || closing
base_tree || skip 'debootstrap could not make a tree'
expect 'a tree to install it into' copy_tree || closing

# Killed with its whole namespace, should it hang.
timeout -s KILL 100 unshare --mount --pid --net --fork --kill-child bash "$top/tests/package/installed.sh" "$run/tree" \
	2>&1 </dev/null | tee "$run/out"
rc=${PIPESTATUS[0]}
# What docs/start.md says, in a tree of its own, with the lines as they stand there.
if expect 'a tree for docs/start.md' start_tree; then
	timeout -s KILL 200 unshare --mount --pid --net --fork --kill-child python3 "$top/tests/package/start.py" "$run/start" \
		2>&1 </dev/null | tee -a "$run/out"
	[ "${PIPESTATUS[0]}" -eq 0 ] || rc=1
fi
passed=$((passed + $(grep -c '^ok: ' "$run/out"))) failed=$((failed + $(grep -c '^not ok: ' "$run/out")))
[ "$rc" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
closing
