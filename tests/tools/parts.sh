# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2317 # top, build and results are the including script's; aside calls some of these
# For .ci/run and tests/full: the parts of both that ./quickstart check does not have.

# built NAME GOAL OPTION...: configures and builds in build/NAME, warnings being errors
built()
{
	local name=$1 goal=$2 rc
	shift 2
	mkdir -p "$build/$name"
	# shellcheck disable=SC2016 # for the inner shell
	run "$name: build" 600 "$build/$name/build.out" \
		sh -c 'cd "$1" && top=$2 goal=$3 && shift 3 && "$top/configure" -q "$@" && make -s -j2 "$goal"' sh \
		"$build/$name" "$top" "$goal" --enable-werror "$@"
	rc=$?
	note "$name: build" $rc
	return $rc
}

sanitizing()
{
	built sanitize all --enable-sanitizers CFLAGS='-g -O1' && test_programs "$build/sanitize" 'sanitize: '
}

sanitized_pure() { test_pure "$build/sanitize" 'sanitize: '; }

# sanitized SECONDS TEST...: the test programs, of which the pure ones go on aside, and these system tests, each with one set of
# parameters. Slow, and it looks for what reads and writes where it must not.
sanitized()
{
	[ -x "$build/sanitize/heartwheeld" ] || return
	aside sanitized_pure
	test_served "$build/sanitize" 'sanitize: '
	HW_EACH_ONCE=$((1 + RANDOM)) test_system "$build/sanitize" 'sanitize: ' "$1" 8 "${@:2}"
}

# With the tests, which are only built here: they have run. What it warns of it says without optimizing, too.
clanged()
{
	built clang all CC=clang CFLAGS=-O0 && test_programs "$build/clang" 'clang: '
}

# The thread sanitizer cannot live with much address space randomization: setarch takes it away where that is allowed.
# Nothing is built but what runs.
threads()
{
	local dir=$build/threads list=tests/unit/test_ring fixed=()
	built threads "$list" --enable-sanitizers=thread CFLAGS='-g -O1' || return
	rm -f "$dir"/tests/*/*.log "$dir"/tests/*/*.trs
	setarch "$(uname -m)" -R true 2>/dev/null && fixed=(setarch "$(uname -m)" -R)
	run 'threads: the ring' 600 "$dir/check.out" "${fixed[@]}" make -C "$dir" check-TESTS \
		"check_PROGRAMS=$list" "TESTS=$list"
	tally $? 'threads: the ring' check "$dir"/tests/*/*.log
}

# Each target for 20 s, one line each.
fuzzed()
{
	run 'make fuzz' 900 "$build/fuzz.out" make -C "$build" -s fuzz
	note 'make fuzz' $?
	grep '^fuzz_' "$build/fuzz.out"
}

# The benches, with small sizes: do they run, and give figures. On a machine like this nothing is judged.
smoked()
{
	run 'make bench' 300 "$build/bench.out" make -C "$build" -s -j2 bench &&
		run 'bench/run --smoke' 400 "$build/bench.out" bench/run --build "$build" --smoke --runs 1
	note 'bench smoke' $?
}

# faulty N: so many of each fault, with real processes that mostly wait.
faulty()
{
	run 'make faults' 600 "$build/faults.out" make -C "$build" -s faults FAULTS="--jobs 4 --count $1"
	tally $? 'make faults' lines "$build/faults.out"
}

# One of each of several nodes, of which three minutes are mostly waiting for Sentinels.
noded()
{
	run 'make faults-nodes' 600 "$build/faults-nodes.out" make -C "$build" -s faults-nodes NODES_ROUNDS=1
	tally $? 'make faults-nodes' lines "$build/faults-nodes.out"
}

# The same of nodes that stand by, those kinds in which another one takes the fleet.
stood_by()
{
	run 'make faults-nodes, standby' 600 "$build/faults-standby.out" make -C "$build" -s faults-nodes NODES_ROUNDS=1 \
		NODES_MODE=standby FAULTS='--kind kill --kind stop --kind roll'
	tally $? 'make faults-nodes, standby' lines "$build/faults-standby.out"
}

# heartwheel-tasks, killed at each named point once, and three of them.
tasked()
{
	run 'make faults-tasks' 600 "$build/faults-tasks.out" make -C "$build" -s faults-tasks
	tally $? 'make faults-tasks' lines "$build/faults-tasks.out"
}

# heartwheel-alert and the servers of its receivers, killed 100 times each. They mostly wait.
alerted()
{
	run 'make faults-alert' 1200 "$build/faults-alert.out" make -C "$build" -s faults-alert
	tally $? 'make faults-alert' pytest "$build/faults-alert.out"
}

# Brokers that others wrote, in short; one that cannot be had is skipped under its name. They wait more than they work.
brokered()
{
	run 'make brokers' 900 "$build/brokers.out" make -C "$build" -s brokers BROKERS='mosquitto rabbitmq aedes' \
		BROKERS_OPTIONS=--short
	tally $? 'make brokers' lines "$build/brokers.out"
	grep -E '^(mosquitto|RabbitMQ|aedes): |^SKIPPED' "$build/brokers.out"
}

# What counts here is that the tarball has every file: of the tests, which have just run, one is enough; and nothing has
# to be optimized.
tarball()
{
	run 'make distcheck' 900 "$build/distcheck.out" make -C "$build" -j2 distcheck TESTS=tests/unit/test_wheel \
		DISTCHECK_CONFIGURE_FLAGS=CFLAGS=-O0
	note 'make distcheck' $?
}

# The Debian package, where its tools are to be had; it is the one suite that may be missing. They are installed before
# anything runs aside.
package_tools()
{
	local tools='build-essential debhelper debootstrap lintian dpkg-dev fakeroot'
	no_package=''
	# shellcheck disable=SC2086 # a list of words
	if [ "$(id -u)" -ne 0 ]; then
		no_package='it has to be run as root'
	elif ! apt-get -qq -s install --no-install-recommends $tools >/dev/null 2>&1; then
		no_package="apt-get cannot install $tools"
	else
		install_packages $tools
	fi
}

packaged()
{
	if [ -z "$no_package" ]; then
		run 'package' 900 "$build/package.out" make -C "$build" check-package
		tally $? package lines "$build/package.out"
		run 'containers' 1800 "$build/containers.out" make -C "$build" check-containers
		tally $? containers lines "$build/containers.out"
		return
	fi
	say "package: skipped, $no_package"
	printf 'package: 0 passed, 0 failed, 1 skipped\n' >>"$results"
	printf 'skipped: package: %s\n' "$no_package" >>"$results.names"
}

# Twenty small changes to the code, at random by a seed that is printed, each of which a test must notice. One that none has
# noticed is tried twice. Built is only what a change touches, beside a copy of what is built.
mutated()
{
	run 'mutations' 1200 "$build/mutations.out" python3 tests/mutation/mutate.py --build "$build" --built "$build" --sample 20
	tally $? mutations lines "$build/mutations.out"
	grep -E '^[0-9]+ of [0-9]+ mutations' "$build/mutations.out"
}

valgrinded()
{
	run 'valgrind' 1800 "$build/valgrind.out" make -C "$build" -j2 check-valgrind
	tally $? valgrind lines "$build/valgrind.out"
}

die()
{
	printf '%s\n0 passed, 1 failed\n' "$*"
	exit 1
}

# What ./quickstart check would skip without it: the page's tests, a Prometheus with its Alertmanager, other shells, other
# brokers, a mail server. Only where there is no mail server: apt-get would remove it.
install_extras()
{
	EXTRA_PACKAGES='clang libclang-rt-dev valgrind xz-utils chromium-headless-shell fish prometheus prometheus-alertmanager rabbitmq-server zsh libev-dev libuv1-dev uthash-dev'
	command -v npm >/dev/null || EXTRA_PACKAGES="$EXTRA_PACKAGES nodejs npm"
	[ -e /usr/sbin/sendmail ] || EXTRA_PACKAGES="$EXTRA_PACKAGES exim4-daemon-light"
	# shellcheck disable=SC2086 # a list of words
	install_packages $EXTRA_PACKAGES
	command -v npm >/dev/null || return 0
	mkdir -p "$build/node"
	cp tests/node/package.json tests/node/package-lock.json "$build/node"
	attend npm ci --prefix "$build/node" --no-audit --no-fund --silent &&
		export HW_NODE=$build/node
}

# quickstart check, whose suites are then in $results
checked()
{
	local rc
	rm -f "$build/check.results"
	[ "$(id -u)" -eq 0 ] || sudo -v # what is attended cannot ask for a password
	attend ./quickstart check
	rc=$?
	[ -e "$build/check.results" ] || die 'quickstart check did not get as far as its tests'
	cp "$build/check.results" "$results"
	cp "$build/check.results.names" "$results.names"
	# It may end for what no suite has counted.
	[ "$rc" -eq 0 ] || grep -q ', [1-9][0-9]* failed' "$results" || note 'quickstart check' "$rc"
}
