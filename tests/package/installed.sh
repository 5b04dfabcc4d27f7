#!/bin/bash
# SPDX-License-Identifier: MIT
# installed.sh TREE: the life of the installed package in a Debian tree, from its installation to its purge. Run by
# test_package.sh in namespaces of its own: what is mounted, started and listened to here ends with this script. There
# is no systemd at work in the tree; services are started with what their installed units say.
# shellcheck disable=SC2016 # dpkg-query's own ${...}
set -u
tree=$1
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
failed=0 last='' monitor=''
unset TMPDIR

in_tree() { chroot "$tree" "$@"; }

# expect WHAT COMMAND...: what the command says is shown only if it fails
expect()
{
	local what=$1 out
	shift
	if out=$("$@" 2>&1); then
		printf 'ok: %s\n' "$what"
	else
		printf 'not ok: %s\n' "$what"
		printf '%s\n' "$out" | tail -n 40 | sed 's/^/    /'
		failed=$((failed + 1))
		return 1
	fi
}
# What the rest would make no sense without.
must() { expect "$@" || finish; }

finish()
{
	trap - EXIT
	if [ "$failed" -gt 0 ]; then
		tail -n 20 "$tree"/tmp/*.out "$tree"/var/log/mosquitto/mosquitto.log
	fi
	exit $((failed > 0))
}

# soon COMMAND...: true within 30 s
soon()
{
	local end=$((SECONDS + 30))
	while [ "$SECONDS" -lt "$end" ]; do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	"$@"
}

not() { ! "$@"; }
is()
{
	local said
	said=$("${@:2}")
	[ "$said" = "$1" ] || {
		printf '%s, not %s\n' "$said" "$1"
		return 1
	}
}
says()
{
	local said
	said=$("${@:2}")
	grep -q -- "$1" <<<"$said" || {
		printf '%s\nnothing there of: %s\n' "$said" "$1"
		return 1
	}
}
quiet() { is '' in_tree "$@"; }

# --- services ---------------------------------------------------------------------------------------------------------

unit_says() { sed -n "s/^$2=//p" "$tree/lib/systemd/system/$1.service"; }

# Starts a service as its unit says; its process is $last.
start()
{
	local user directory command run
	user=$(unit_says "$1" User)
	directory=$(unit_says "$1" RuntimeDirectory)
	[ -z "$directory" ] || in_tree install -d -o "$user" -g "$user" "/run/$directory"
	directory=$(unit_says "$1" StateDirectory)
	[ -z "$directory" ] || in_tree install -d -o "$user" -g "$user" "/var/lib/$directory"
	while read -r command; do
		# shellcheck disable=SC2086 # words, here and below
		in_tree $command
	done < <(unit_says "$1" ExecStartPre)
	run=$(unit_says "$1" ExecStart)
	# shellcheck disable=SC2086
	chroot "$tree" setpriv --reuid="${user:-root}" --regid="${user:-root}" --init-groups $run >>"$tree/tmp/$1.out" \
		2>&1 </dev/null &
	last=$!
}

ask() { in_tree redis-cli "$@" 2>/dev/null; }
ctl() { in_tree heartwheelctl "$@"; }
beat() { in_tree mosquitto_pub -t "nodes/$1/heartbeat" -m ''; }
retained() { in_tree mosquitto_sub -C 1 -W 3 -t "$1" 2>/dev/null; }
listed_beating() { beat "$1" && says "$1" ctl list --state online; }
heard_again() { beat "$1" && [ "$(ask get "device:connected:$1")" = "$1" ]; }

page_answers()
{
	exec 3<>/dev/tcp/127.0.0.1/8731 && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && grep -q '<title>heartwheel' <&3
}

start_monitor()
{
	start heartwheeld
	monitor=$last
	must "$1: the control socket answers" soon ctl status
}

# stop PID WHAT
stop()
{
	local rc
	kill -TERM "$1"
	wait "$1"
	rc=$?
	expect "$2" [ "$rc" -eq 0 ]
}
stop_monitor() { stop "$monitor" 'it stops cleanly'; }

# --- what is where ----------------------------------------------------------------------------------------------------

owner() { is "$1" in_tree stat -c '%U:%G %a' "$2"; }

# All names but those that dpkg, the servers and the clock make.
names()
{
	(cd "$tree" && find . -xdev -print) | grep -vE \
		'^\./(debs|proc|run|tmp|var/(cache|tmp|lib/(dpkg|mosquitto|redis|logrotate)|log/(mosquitto|redis|dpkg\.log|apt)))(/|$)' |
		grep -vE '^\./etc/(passwd|group|shadow|gshadow|subuid|subgid)-$|^\./etc/\.pwd\.lock$' | sort
}
accounts() { (cd "$tree/etc" && sort passwd group shadow gshadow); }
same() { diff "$1" <("$2"); }

rotated()
{
	local log=$tree/var/log/heartwheel/heartwheeld.log
	soon test -s "$log" && in_tree logrotate -f /etc/logrotate.d/heartwheel && test -s "$log.1" &&
		owner 'heartwheel:adm 640' /var/log/heartwheel/heartwheeld.log || return 1
	kill -HUP "$monitor" # something to say, into the new file
	soon test -s "$log"
}

nothing_left()
{
	expect "$1: every file is gone, and none too many" same "$tree/tmp/names" names
	expect "$1: so are the user and its group" same "$tree/tmp/accounts" accounts
	expect "$1: /run/heartwheel is gone" not test -e "$tree/run/heartwheel"
	expect "$1: dpkg has forgotten it" not in_tree dpkg-query -s heartwheel
}

# --- the life of it ---------------------------------------------------------------------------------------------------

trap finish EXIT
mount --make-rprivate / && mount -t proc proc "$tree/proc" && mount -t tmpfs -o mode=755 tmpfs "$tree/run" || exit 1
in_tree ip link set lo up || exit 1
# What debootstrap leaves to the installer.
printf '127.0.0.1 localhost\n' >"$tree/etc/hosts"
printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d" && chmod 755 "$tree/usr/sbin/policy-rc.d"
names >"$tree/tmp/names"
accounts >"$tree/tmp/accounts"

start mosquitto
start redis-server
redis=$last
must 'redis-server is there, as Debian installs it' soon is PONG ask ping
must 'mosquitto is there, as Debian installs it' soon in_tree mosquitto_pub -t started -n

must 'it installs, and says where to look' says '^heartwheel: the page is at http://127.0.0.1:8731/' \
	in_tree dpkg -i /debs/first.deb
expect 'the user' says '^heartwheel:x:[0-9]\{1,3\}:[0-9]*:.*:/nonexistent:/usr/sbin/nologin$' in_tree getent passwd heartwheel
expect 'the runtime directory' owner 'heartwheel:heartwheel 755' /run/heartwheel
expect 'the directory for a log file' owner 'heartwheel:adm 2750' /var/log/heartwheel
expect 'the service is enabled' test -L "$tree/etc/systemd/system/multi-user.target.wants/heartwheeld.service"
expect 'systemd finds nothing wrong with the unit' quiet systemd-analyze verify --man=no heartwheeld.service
expect 'the service of the history is there, and not enabled' not test -e \
	"$tree/etc/systemd/system/multi-user.target.wants/heartwheel-history.service"
expect 'systemd finds nothing wrong with it' quiet systemd-analyze verify --man=no heartwheel-history.service
expect 'the service of tasks is there, and not enabled' not test -e \
	"$tree/etc/systemd/system/multi-user.target.wants/heartwheel-tasks.service"
expect 'systemd finds nothing wrong with that either' quiet systemd-analyze verify --man=no heartwheel-tasks.service
expect 'the service of incidents is there, and not enabled' not test -e \
	"$tree/etc/systemd/system/multi-user.target.wants/heartwheel-alert.service"
expect 'systemd finds nothing wrong with its unit' quiet systemd-analyze verify --man=no heartwheel-alert.service
expect 'the broker and Redis come first' says 'mosquitto.service.* redis-server.service' unit_says heartwheeld After
expect 'and are not required' not grep -E '^(Requires|BindsTo|PartOf|Requisite)=' \
	"$tree/lib/systemd/system/heartwheeld.service"
expect 'the configuration is whole' is '/etc/heartwheel/monitor.conf: ok' in_tree heartwheeld -t
expect 'so is the example with every key' is '/usr/share/doc/heartwheel/examples/monitor.conf.example: ok' \
	in_tree heartwheeld -t -c /usr/share/doc/heartwheel/examples/monitor.conf.example
expect 'the configuration is a conffile' says '^ */etc/heartwheel/monitor.conf ' \
	in_tree dpkg-query -W -f '${Conffiles}' heartwheel

start_monitor 'with the default configuration'
expect 'the page is there, on loopback alone' soon page_answers
expect 'and nowhere else' is '127.0.0.1:8731' in_tree sh -c "ss -Hltn 'sport = :8731' | awk '{ print \$4 }'"
expect 'it runs as its user' is heartwheel in_tree stat -c %U "/proc/$monitor"
expect 'a heartbeat: device:connected:pump-1' soon heard_again pump-1
expect 'its retained status' soon says '"online":true' retained nodes/pump-1/status
expect 'heartwheelctl lists it' soon says pump-1 ctl list --state online
start heartwheel-history
history=$last
expect 'the history is kept as the configuration stands' soon test -s "$tree/var/lib/heartwheel/history.db"
expect 'with what has happened' soon says pump-1 in_tree grep -a pump-1 /var/lib/heartwheel/history.db-wal
stop "$history" 'it stops cleanly, too'
stop_monitor

conf=$tree/etc/heartwheel/monitor.conf
printf '\n[monitor]\nnode_id = mine\nlog = /var/log/heartwheel/heartwheeld.log\n[receiver ops]\ntype = exec\nprogram = /bin/true\n' >>"$conf"
alert=$tree/etc/systemd/system/multi-user.target.wants/heartwheel-alert.service
cp "$conf" "$tree/tmp/mine.conf"
must 'an upgrade over a configuration that was changed, without a word of the page' not says 'the page is at' \
	in_tree dpkg --force-confdef -i /debs/next.deb
expect 'it is the next version' says '+next$' in_tree dpkg-query -W -f '${Version}\n' heartwheel
expect 'the configuration is as it was' cmp "$conf" "$tree/tmp/mine.conf"
expect 'the new one lies beside it' grep -q 'next version' "$conf.dpkg-dist"
expect 'heartwheel-alert is enabled, because there is a receiver now' test -L "$alert"
in_tree env DPKG_MAINTSCRIPT_PACKAGE=heartwheel deb-systemd-helper disable heartwheel-alert.service >/dev/null
expect 'an operator disables it' not test -e "$alert"
expect 'it stays disabled when the package is configured again' \
	in_tree env DPKG_MAINTSCRIPT_PACKAGE=heartwheel /var/lib/dpkg/info/heartwheel.postinst configure 1
expect 'there is no new link' not test -e "$alert"
start_monitor 'after the upgrade'
expect 'the changed configuration is in force' soon says '"online":true' retained heartwheel/mine/status
expect 'what it knew, it knows' soon says pump-1 ctl list
expect 'logrotate, and SIGUSR1' rotated
stop_monitor

must 'it is removed' in_tree dpkg -r heartwheel
expect 'its programs are gone' not in_tree sh -c 'command -v heartwheeld || command -v heartwheelctl'
expect 'its unit is gone' not test -e "$tree/lib/systemd/system/heartwheeld.service"
expect 'its runtime directory is gone' not test -e "$tree/run/heartwheel"
expect 'its configuration stays' cmp "$conf" "$tree/tmp/mine.conf"
expect 'its log stays' test -e "$tree/var/log/heartwheel/heartwheeld.log"
rm -r "$tree/var/lib/heartwheel" # a purge leaves the history, and the user with it: see below
must 'it is purged' in_tree dpkg -P heartwheel
nothing_left purged

# A machine without Redis, whose configuration is there before the package.
stop "$redis" 'Redis stops'
mkdir -p "$tree/etc/heartwheel"
printf '[store]\ntype = memory\n[group default]\nheartbeat = nodes/{id}/heartbeat\ntimeout = 1s\n[ notify ]\nexec: /bin/true\nnotify_interval = 100ms\n' >"$conf"
must 'it installs over a configuration without Redis' in_tree dpkg --force-confold -i /debs/first.deb
expect 'heartwheel-alert is enabled at once, because [notify] names a program' test -L "$alert"
start_monitor 'without Redis'
start heartwheel-alert
notifier=$last
expect 'heartwheel-alert works' soon says '^no open incident' ctl incidents
expect 'its state is in a file of its own' owner 'heartwheel:heartwheel 640' /var/lib/heartwheel/alert.json
expect 'a device comes' soon listed_beating pump-2
expect 'and stops: an incident' soon says ' device pump-2 of group default is offline since ' ctl incidents
expect 'a message about it was sent' soon says '^  *sent$' ctl notify
incident=$(ctl incidents | cut -d ' ' -f 1)
kill -KILL "$notifier"
wait "$notifier" 2>/dev/null
start heartwheel-alert
notifier=$last
expect 'after a crash, the incident is the same' soon says "^$incident " ctl incidents
stop "$notifier" 'heartwheel-alert stops cleanly'
stop_monitor
must 'it is purged, and says what stays' says '^heartwheel: the history and incidents stay in /var/lib/heartwheel' \
	in_tree dpkg -P heartwheel
expect 'the incidents stay' grep -q "$incident" "$tree/var/lib/heartwheel/alert.json"
rm -r "$tree/var/lib/heartwheel"
in_tree userdel heartwheel
nothing_left 'purged without Redis'
start redis-server
expect 'Redis is there again' soon is PONG ask ping

must 'it installs again' in_tree dpkg -i /debs/next.deb
install -m 600 /dev/null "$tree/etc/heartwheel/password"
mkdir -p "$tree/var/lib/heartwheel"
printf 'a history\n' >"$tree/var/lib/heartwheel/history.db"
must 'and is purged while it is installed, and says that the history stays' says '^heartwheel: the history and incidents stay' \
	in_tree dpkg -P heartwheel
expect 'the history stays' grep -q 'a history' "$tree/var/lib/heartwheel/history.db"
rm -r "$tree/var/lib/heartwheel"
expect "an operator's own file stays" test -e "$tree/etc/heartwheel/password"
expect 'and with it the user that may own it' in_tree getent passwd heartwheel
rm "$tree/etc/heartwheel/password"
must 'once more' in_tree sh -c 'dpkg -i /debs/first.deb && dpkg -P heartwheel'
nothing_left 'purged again'
expect 'mosquitto and redis-server have stayed' is PONG ask ping
