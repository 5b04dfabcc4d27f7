#!/bin/bash
# SPDX-License-Identifier: MIT
# release.sh RELEASE: builds heartwheel in a chroot of another Debian release, trixie for example, and runs its unit,
# property, simulation and system tests there. tests/full --release RELEASE calls this script. It needs root.
#
# debootstrap makes the chroot in a temporary directory, from the mirror that apt uses. The build and the tests then run in
# namespaces of their own: they have no network but a loopback, they see no other process, and their mounts and servers end
# with them. The logs are kept in build/release-RELEASE; the chroot is removed.
set -u
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1
# shellcheck source=tests/tools/packages.sh
. "$top/tests/tools/packages.sh"
# shellcheck source=tests/tools/suites.sh
. "$top/tests/tools/suites.sh"
# What a Debian machine has beside the packages that build and test heartwheel.
MACHINE_PACKAGES='iproute2 procps libcap2-bin mount'
tree=''

# --- outside the chroot -----------------------------------------------------------------------------------------------

# shellcheck disable=SC2317 # called by the trap
remove_tree()
{
	stop_parts
	[ -z "$tree" ] || rm -rf --one-file-system "$tree"
	policy_remove
}

mirror()
{
	local codename
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME-}")
	# shellcheck disable=SC2016 # apt's own $(...)
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $codename" 'Component: main' | head -n 1
}

make_tree()
{
	local list
	# shellcheck disable=SC2086 # lists of words
	list=$(printf '%s\n' $BUILD_PACKAGES $TEST_PACKAGES $MACHINE_PACKAGES | sort -u | paste -sd ,)
	run "release $release: debootstrap" 3000 "$results.debootstrap.out" \
		debootstrap --variant=minbase --include="$list" "$release" "$tree" "$(mirror)" || return
	printf '127.0.0.1 localhost\n' >"$tree/etc/hosts"
	mkdir "$tree/heartwheel"
}

# The files that git knows, as they are now, or all of a release tarball.
copy_source()
{
	if [ -e "$top/.git" ]; then
		git -c safe.directory='*' -C "$top" ls-files -z | tar -C "$top" --null -T - -c
	else
		tar -C "$top" --exclude=./build --exclude=./config.status --exclude=./Makefile -c .
	fi | tar -x -C "$tree/heartwheel"
}

outside()
{
	local rc
	[ "$(id -u)" -eq 0 ] || die 'it has to be run as root'
	[[ $release =~ ^[a-z]+$ ]] || die "usage: ${0##*/} RELEASE, trixie for example"
	trap remove_tree EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	install_packages debootstrap
	results=$top/build/release-$release/results
	rm -rf "${results%/*}" && mkdir -p "${results%/*}" || exit 1
	tree=$(mktemp -d "${TMPDIR:-/tmp}/heartwheel-$release.XXXXXX") && chmod 755 "$tree" || exit 1
	if ! make_tree || ! copy_source; then
		note "release $release: the chroot" 1
		closing
		exit 1
	fi
	attend unshare --mount --pid --net --ipc --uts --fork --kill-child \
		bash "$top/tests/tools/release.sh" --enter "$release" "$tree"
	rc=$?
	cp "$tree"/heartwheel/build/{*.out,*.log,results*} "${results%/*}" 2>/dev/null
	printf 'the logs are in %s\n' "${results%/*}"
	exit "$rc"
}

# --- in the namespaces ------------------------------------------------------------------------------------------------

enter()
{
	# shellcheck disable=SC2015 # one of them has failed
	mount --make-rprivate / && mount -t proc proc "$tree/proc" && mount -t tmpfs -o mode=755 tmpfs "$tree/run" &&
		mount -t tmpfs tmpfs "$tree/dev/shm" &&
		mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$tree/dev/pts" &&
		mount --bind "$tree/dev/pts/ptmx" "$tree/dev/ptmx" && chroot "$tree" ip link set lo up ||
		die 'cannot mount what a chroot needs'
	exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		chroot "$tree" bash /heartwheel/tests/tools/release.sh --inside "$release"
}

# --- in the chroot ----------------------------------------------------------------------------------------------------

versions()
{
	dpkg-query -W -f '    ${Package} ${Version}\n' gcc libmosquitto1 mosquitto 'libhiredis*' 'libevent-2*' libcjson1 \
		redis-server python3-paho-mqtt
}

inside()
{
	trap stop_parts EXIT
	build=$top/build results=$top/build/results
	mkdir -p "$build" && : >"$results" && : >"$results.names" || exit 1
	versions
	# shellcheck disable=SC2016 # for the inner shell
	run "$release: build" 1200 "$build/build.out" \
		sh -c 'cd "$1" && ./autogen.sh && cd build && ../configure -q --enable-werror && make -k -s -j2 all' sh "$top"
	note "$release: build" $?
	test_programs "$build" "$release: " && test_served "$build" "$release: " && test_pure "$build" "$release: "
	test_system "$build" "$release: " 3000 6
	closing
}

case ${1-} in
--enter) release=$2 tree=$3 && enter ;;
--inside) release=$2 && inside ;;
*) release=${1-} && outside ;;
esac
