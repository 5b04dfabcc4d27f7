#!/bin/bash
# SPDX-License-Identifier: MIT
# The image of containers/Containerfile: built by buildah from the committed tree, on a Debian that debootstrap makes (so that no
# registry is needed), and its daemons run in it without root, with the monitor.conf that the compose file uses, beside a broker
# and a Redis. Ends with "containers: N passed, N failed", or with "skipped" where a tool is missing.
# shellcheck disable=SC2317 # expect calls them
set -u
export LC_ALL=C.UTF-8
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1
here=${HW_BUILDDIR:-$top/build}/containers
passed=0 failed=0 suite=bookworm

say() { printf '%s\n' "$*"; }
skip()
{
	say "skipped: containers: $*"
	say "containers: $passed passed, $failed failed, 1 skipped"
	exit 0
}
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
	say "containers: $passed passed, $failed failed"
	[ "$failed" -eq 0 ]
	exit
}
b() { buildah --root "$here/store" --runroot "$here/run" --storage-driver vfs "$@"; }
# Within the namespaces: in the container, without root.
in_image() { b run --isolation chroot -v "$here/monitor.conf:/etc/heartwheel/monitor.conf:ro" daemons -- "$@"; }
soon()
{
	local end=$((SECONDS + 40))
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || break
		sleep 0.5
	done
	"$@"
}

base()
{
	b images -q "localhost/debian:$suite" 2>/dev/null | grep -q . && return
	rm -rf --one-file-system "$here/debian"
	debootstrap --variant=minbase "$suite" "$here/debian" && b from --name base scratch && b copy base "$here/debian" / &&
		b commit -q base "localhost/debian:$suite" && b rm base && rm -rf --one-file-system "$here/debian"
}
image()
{
	rm -rf "$here/source" && mkdir -p "$here/source" &&
		git -c safe.directory='*' -C "$top" archive HEAD | tar -x -C "$here/source" &&
		b build --isolation chroot --build-arg "DEBIAN=localhost/debian:$suite" -f "$here/source/containers/Containerfile" \
			-t heartwheel "$here/source"
}
healthy() { in_image curl -sf --unix-socket "/run/heartwheel/$1.sock" http://x/healthz; }
user() { [ "$(in_image id -u)" = 873 ]; }
listed() { in_image heartwheelctl list | grep -q "pump-7 .*$1"; }
stored() { [ "$(redis-cli exists device:connected:pump-7)" = 1 ]; }
beat() { mosquitto_pub -t nodes/pump-7/heartbeat -m ''; }

run()
{
	ip link set lo up
	mkdir -p "$here/data" && chmod 777 "$here/data"
	sed "s|/mosquitto/data/|$here/data/|" "$top/containers/mosquitto.conf" >"$here/mosquitto.conf"
	# The names of the compose file's services are one machine here.
	sed 's/^host = .*/host = 127.0.0.1/' "$top/containers/monitor.conf" >"$here/monitor.conf"
	"$(PATH=$PATH:/usr/sbin command -v mosquitto)" -c "$here/mosquitto.conf" >"$here/mosquitto.out" 2>&1 &
	redis-server --dir "$here/data" --save '' >"$here/redis.out" 2>&1 &
	b rm daemons >/dev/null 2>&1
	expect 'a container' b from --name daemons localhost/heartwheel || closing
	expect 'its user is not root' user
	expect 'heartwheeld takes the configuration' in_image heartwheeld -t
	local daemon
	for daemon in heartwheeld heartwheel-alert heartwheel-tasks heartwheel-history; do
		in_image "/usr/sbin/$daemon" -f >"$here/$daemon.out" 2>&1 &
	done
	expect 'heartwheeld is healthy' soon healthy control
	expect 'heartwheel-alert is healthy' soon healthy alert
	expect 'heartwheel-tasks is healthy' soon healthy tasks
	expect 'heartwheel-history is healthy' soon healthy history
	expect 'a device sends' beat
	expect 'it is online' soon listed online
	expect 'it is in Redis' soon stored
	expect 'the page answers' in_image curl -sf http://127.0.0.1:8731/
	expect 'the device stops, and is offline' soon listed offline
	[ "$failed" -eq 0 ] || tail -n 20 "$here"/*.out
	closing
}

[ "${1-}" != run ] || run
[ "$(id -u)" -eq 0 ] || skip 'it has to be run as root'
for tool in buildah debootstrap redis-server mosquitto_pub unshare git; do
	command -v "$tool" >/dev/null || skip "$tool is missing: apt-get install --no-install-recommends buildah debootstrap redis-server mosquitto mosquitto-clients"
done
mkdir -p "$here" || exit 1
expect 'a Debian to begin with' base || closing
expect 'the image' image || closing
timeout -s KILL 200 unshare --mount --pid --net --fork --kill-child --mount-proc bash "$0" run | tee "$here/out"
passed=$((passed + $(grep -c '^ok: ' "$here/out"))) failed=$((failed + $(grep -c '^not ok: ' "$here/out")))
grep -q '^containers: ' "$here/out" || failed=$((failed + 1))
closing
