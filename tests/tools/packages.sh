# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For quickstart, .ci/run and tests/full: Debian's packages. install_packages NAME... installs those that are missing, and says so
# first. Whoever includes this calls policy_remove when it ends, however it ends.
policy=''

# shellcheck disable=SC2034 # the including scripts use them
{
	BUILD_PACKAGES='gcc libc6-dev make autoconf automake pkg-config libevent-dev libhiredis-dev libmosquitto-dev
		libcjson-dev libcurl4-openssl-dev libncurses-dev libsqlite3-dev libmariadb-dev libssl-dev
		libsystemd-dev libjs-chart.js check mosquitto mosquitto-clients redis-server'
	STYLE_PACKAGES='clang-format mandoc mkdocs universal-ctags shellcheck'
	TEST_PACKAGES='openssl curl python3 python3-pytest python3-pytest-xdist python3-pyte python3-redis python3-paho-mqtt
		python3-jinja2 mariadb-server'
}

say() { printf '%s\n' "$*"; }
die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# Debian starts a service as soon as its package is installed, unless this file forbids it.
policy_install()
{
	[ ! -e /usr/sbin/policy-rc.d ] || return 0
	policy=/usr/sbin/policy-rc.d
	printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null && as_root chmod 755 "$policy"
}

policy_remove()
{
	[ -z "$policy" ] || as_root rm -f "$policy"
	policy=''
}

missing_packages()
{
	local p
	for p in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || printf '%s ' "$p"
	done
}

install_packages()
{
	local list
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		say 'This is not Debian: nothing will be installed; configure will name what is missing.'
		return
	fi
	list=$(missing_packages "$@")
	[ -n "$list" ] || return 0
	say "These Debian packages are missing and will be installed: $list"
	[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
		die "neither root nor sudo: as root, run: apt-get install --no-install-recommends $list"
	policy_install || die 'could not write /usr/sbin/policy-rc.d'
	as_root apt-get -q -o DPkg::Lock::Timeout=300 update || say 'apt-get update failed; trying with the lists that are there'
	# shellcheck disable=SC2086 # a list of words
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
		install --no-install-recommends $list </dev/null || die "apt-get could not install: $list"
	policy_remove
	case " $list" in
	*' mosquitto '* | *' redis-server '* | *' rabbitmq-server '*)
		say 'The system services of brokers and Redis were not started. If this machine should not start them at the'
		say 'next boot either: systemctl disable mosquitto redis-server, and rabbitmq-server if it is in that list'
		;;
	esac
}
