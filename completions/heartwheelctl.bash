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

_heartwheelctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' i
	local commands='status list show watch wheel groups nodes forget reload version user'
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-s | --socket) ((i++)) ;;
		-*) ;;
		*)
			command=${COMP_WORDS[i]}
			break
			;;
		esac
	done
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
	--group)
		_heartwheelctl_lines "$cur" < <(_heartwheelctl_ask groups --names)
		return
		;;
	--role)
		mapfile -t COMPREPLY < <(compgen -W 'read operate' -- "$cur")
		return
		;;
	--file)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--prefix | --search | --limit | --expires) return ;;
	esac
	case $command:$cur in
	:-*) mapfile -t COMPREPLY < <(compgen -W '-s --socket -V --version -h --help' -- "$cur") ;;
	:*) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur") ;;
	list:-*)
		mapfile -t COMPREPLY < <(compgen -W \
			'--state --group --prefix --search --sort --limit --names --json --help' -- "$cur")
		;;
	watch:-*) mapfile -t COMPREPLY < <(compgen -W '--state --group --prefix --json --help' -- "$cur") ;;
	groups:-*) mapfile -t COMPREPLY < <(compgen -W '--names --json --help' -- "$cur") ;;
	user:-*) mapfile -t COMPREPLY < <(compgen -W '--role --expires --file --json --help' -- "$cur") ;;
	user:*) [[ $prev == user ]] && mapfile -t COMPREPLY < <(compgen -W 'add list remove' -- "$cur") ;;
	status:-* | show:-* | wheel:-* | nodes:-*) mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$cur") ;;
	*:-*) mapfile -t COMPREPLY < <(compgen -W '--help' -- "$cur") ;;
	show:* | forget:*)
		# A million ids help nobody to choose.
		_heartwheelctl_lines "$cur" < <(_heartwheelctl_ask list --names --limit 200 --prefix="$cur")
		;;
	esac
}
complete -F _heartwheelctl heartwheelctl
