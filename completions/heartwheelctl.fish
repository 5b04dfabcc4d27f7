# SPDX-License-Identifier: MIT
# Completion of heartwheelctl for fish: commands, options, states, groups, and the ids of devices, which the daemon is
# asked for.

function __heartwheelctl_ask
	set -l words (commandline -opc)
	set -l socket
	if set -l at (contains -i -- -s $words; or contains -i -- --socket $words)
		set socket -s $words[(math $at + 1)]
	end
	$words[1] $socket $argv 2>/dev/null
end

# A million ids help nobody to choose.
function __heartwheelctl_ids
	__heartwheelctl_ask list --names --limit 200 --prefix=(commandline -ct)
end

set -l commands status list show watch wheel groups nodes forget reload version user
complete -c heartwheelctl -f
complete -c heartwheelctl -s s -l socket -r -F -d 'the control socket'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -s V -l version -d 'the version of heartwheelctl'
complete -c heartwheelctl -s h -l help -d 'help'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a status -d 'how the daemon and the fleet are'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a list -d 'all devices, or some'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a show -d 'everything about one device'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a watch -d 'transitions as they happen'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a wheel -d 'the timing wheel, drawn'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a groups -d 'the groups of devices'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a user -d 'who may come in over [http] listen'
complete -c heartwheelctl -n '__fish_seen_subcommand_from user' -a 'add list remove'
complete -c heartwheelctl -n '__fish_seen_subcommand_from user' -l role -x -a 'read operate' -d 'what the user may do'
complete -c heartwheelctl -n '__fish_seen_subcommand_from user' -l expires -x -d 'when the token ends'
complete -c heartwheelctl -n '__fish_seen_subcommand_from user' -l file -r -d 'the file of users'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a nodes -d 'the nodes that watch this fleet together'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a forget -d 'forget a device'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a reload -d 'read the configuration again'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a version -d 'the versions'
complete -c heartwheelctl -n '__fish_seen_subcommand_from show forget' -a '(__heartwheelctl_ids)'
complete -c heartwheelctl -n '__fish_seen_subcommand_from status list show watch wheel groups nodes' -l json -d 'as JSON'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list watch' -l state -x -a 'online offline'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list watch' -l group -x -a '(__heartwheelctl_ask groups --names)'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list watch' -l prefix -x -d 'only ids that begin so'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list' -l search -x -d 'only ids that contain that'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list' -l sort -x -a 'id newest oldest known'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list' -l limit -x -d 'at most so many'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list groups' -l names -d 'nothing but names'
