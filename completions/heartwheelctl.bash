# SPDX-License-Identifier: MIT
# Completion of heartwheelctl for bash: commands, options, states, groups, and the ids of devices, which the daemon is
# asked for.
# shellcheck shell=bash

# _heartwheelctl_ask COMMAND...: what the daemon on the socket of this command line says; nothing if it is not there
_heartwheelctl_ask()
{
	local i socket=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-s | --socket) socket=(-s "${COMP_WORDS[i + 1]}") ;;
		esac
	done
	"${COMP_WORDS[0]}" "${socket[@]}" "$@" 2>/dev/null
}

# _heartwheelctl_lines PREFIX: offers the lines of stdin that begin with it, quoted for the shell
_heartwheelctl_lines()
{
	local line
	while IFS= read -r line; do
		[[ $line == "$1"* ]] && COMPREPLY+=("$(printf '%q' "$line")")
	done
}

# _heartwheelctl_task VERB CUR PREV: what stands behind `task VERB`
_heartwheelctl_task()
{
	local verb=$1 cur=$2 prev=$3 words=''
	case $prev in
	--state) words='scheduled held sent acked complete failed expired cancelled' ;;
	--receiver)
		_heartwheelctl_lines "$cur" < <(_heartwheelctl_ask list --names --limit 200 --prefix="$cur")
		return
		;;
	--at | --after | --exp | --id | --wait | --limit) return ;;
	*)
		case $verb:$cur in
		send:-*) words='--at --after --exp --no-hold --id --wait --json --help' ;;
		list:-*) words='--receiver --state --watched --limit --names --json --help' ;;
		watch:-*) words='--receiver --state --json --help' ;;
		cancel:-*) words='--force --json --help' ;;
		*:-*) words='--json --help' ;;
		:*) words='send list show cancel watch status' ;;
		show:* | cancel:*)
			_heartwheelctl_lines "$cur" < <(_heartwheelctl_ask task list --names --limit 200)
			return
			;;
		send:*)
			[[ $prev == send ]] &&
				_heartwheelctl_lines "$cur" < <(_heartwheelctl_ask list --names --limit 200 --prefix="$cur")
			return
			;;
		esac
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

_heartwheelctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' verb='' i
	local commands='status top list show watch wheel groups nodes check forget notify reload version discover devices history outages uptime incidents incident ack unack silence silences unsilence task user'
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-s | --socket | -c | --config) ((i++)) ;;
		-*) ;;
		*)
			command=${COMP_WORDS[i]}
			break
			;;
		esac
	done
	if [[ $command == task ]]; then
		((i + 1 < COMP_CWORD)) && verb=${COMP_WORDS[i + 1]}
		_heartwheelctl_task "$verb" "$cur" "$prev"
		return
	fi
	case $command:$prev in
	:-c | :--config)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	esac
	case $prev in
	-s | --socket)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--state)
		mapfile -t COMPREPLY < <(compgen -W 'online offline' -- "$cur")
		return
		;;
	--sort)
		mapfile -t COMPREPLY < <(compgen -W 'id newest oldest known' -- "$cur")
		return
		;;
	--columns)
		mapfile -t COMPREPLY < <(compgen -W 'learned' -- "$cur")
		return
		;;
	--group)
		_heartwheelctl_lines "$cur" < <(_heartwheelctl_ask groups --names)
		return
		;;
	--role)
		mapfile -t COMPREPLY < <(compgen -W 'read operate' -- "$cur")
		return
		;;
	--file | --tls-ca | --password-file | --write | --source)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--blind)
		mapfile -t COMPREPLY < <(compgen -W 'unknown warning critical' -- "$cur")
		return
		;;
	-m | --message | --for | --prefix | --search | --label | --limit | --expires | --warning | --critical | --since | --until | --month | --min | --broker | --user | --filter) return ;;
	esac
	case $command:$cur in
	:-*) mapfile -t COMPREPLY < <(compgen -W '-s --socket -c --config -V --version -h --help' -- "$cur") ;;
	:*) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur") ;;
	list:-*)
		mapfile -t COMPREPLY < <(compgen -W \
			'--state --group --prefix --search --label --sort --columns --limit --names --json --help' -- "$cur")
		;;
	watch:-*) mapfile -t COMPREPLY < <(compgen -W '--state --group --prefix --json --help' -- "$cur") ;;
	check:-*) mapfile -t COMPREPLY < <(compgen -W '--warning --critical --group --blind --help' -- "$cur") ;;
	notify:-*) mapfile -t COMPREPLY < <(compgen -W '--test --json --help' -- "$cur") ;;
	groups:-*) mapfile -t COMPREPLY < <(compgen -W '--names --json --help' -- "$cur") ;;
	history:-*) mapfile -t COMPREPLY < <(compgen -W '--since --until --limit --json --csv --help' -- "$cur") ;;
	outages:-*)
		mapfile -t COMPREPLY < <(compgen -W '--group --since --until --min --limit --json --csv --help' -- "$cur")
		;;
	uptime:-*)
		mapfile -t COMPREPLY < <(compgen -W '--group --month --since --until --limit --json --csv --help' -- "$cur")
		;;
	incidents:-*) mapfile -t COMPREPLY < <(compgen -W '--all --group --json --help' -- "$cur") ;;
	incident:-* | silences:-*) mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$cur") ;;
	ack:-*) mapfile -t COMPREPLY < <(compgen -W '--message --help' -- "$cur") ;;
	silence:-*)
		mapfile -t COMPREPLY < <(compgen -W '--for --until-online --planned --message --json --help' -- "$cur")
		;;
	discover:-*)
		mapfile -t COMPREPLY < <(compgen -W \
			'--broker --tls-ca --user --password-file --filter --for --write --force --help' -- "$cur")
		;;
	devices:-*)
		mapfile -t COMPREPLY < <(compgen -W \
			'--dry-run --skip-bad --prune --force --source --group --json --help' -- "$cur")
		;;
	devices:*)
		case $prev in
		devices) mapfile -t COMPREPLY < <(compgen -W 'import export set remove unseen' -- "$cur") ;;
		import) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		set | remove) _heartwheelctl_lines "$cur" < <(_heartwheelctl_ask list --names --limit 200 --prefix="$cur") ;;
		esac
		;;
	user:-*) mapfile -t COMPREPLY < <(compgen -W '--role --expires --file --json --help' -- "$cur") ;;
	user:*) [[ $prev == user ]] && mapfile -t COMPREPLY < <(compgen -W 'add list remove' -- "$cur") ;;
	status:-* | show:-* | wheel:-* | nodes:-*) mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$cur") ;;
	*:-*) mapfile -t COMPREPLY < <(compgen -W '--help' -- "$cur") ;;
	show:* | forget:* | history:* | outages:* | uptime:*)
		# A million ids help nobody to choose.
		_heartwheelctl_lines "$cur" < <(_heartwheelctl_ask list --names --limit 200 --prefix="$cur")
		[[ $command == history && status == "$cur"* ]] && COMPREPLY+=(status)
		;;
	esac
}
complete -F _heartwheelctl heartwheelctl
