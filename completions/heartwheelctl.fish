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

set -l commands status top list show watch wheel groups nodes check forget notify reload version discover devices history outages uptime incidents incident ack unack silence silences unsilence task user
complete -c heartwheelctl -f
complete -c heartwheelctl -s s -l socket -r -F -d 'the control socket'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -s c -l config -r -F -d 'where the socket of the history is looked up'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -s V -l version -d 'the version of heartwheelctl'
complete -c heartwheelctl -s h -l help -d 'help'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a status -d 'state of the daemon and the fleet'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a top -d 'the fleet, live, on the whole terminal'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a list -d 'all devices, or some'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a show -d 'everything about one device'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a watch -d 'transitions as they happen'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a wheel -d 'the timing wheel, drawn'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a groups -d 'the groups of devices'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a history -d 'transitions of a device, of years'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a outages -d 'when devices were offline'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a uptime -d 'share of time online'
complete -c heartwheelctl -n '__fish_seen_subcommand_from history outages uptime' -a '(__heartwheelctl_ids)'
complete -c heartwheelctl -n '__fish_seen_subcommand_from history' -a status -d 'how the history is'
complete -c heartwheelctl -n '__fish_seen_subcommand_from history outages uptime' -l since -x -d 'from this time on'
complete -c heartwheelctl -n '__fish_seen_subcommand_from history outages uptime' -l until -x -d 'up to this time'
complete -c heartwheelctl -n '__fish_seen_subcommand_from history outages uptime' -l limit -x -d 'at most so many'
complete -c heartwheelctl -n '__fish_seen_subcommand_from history outages uptime' -l json -d 'as JSON'
complete -c heartwheelctl -n '__fish_seen_subcommand_from history outages uptime' -l csv -d 'as CSV'
complete -c heartwheelctl -n '__fish_seen_subcommand_from outages' -l min -x -d 'only those that were so long'
complete -c heartwheelctl -n '__fish_seen_subcommand_from uptime' -l month -x -d 'of a month, 2026-11'
complete -c heartwheelctl -n '__fish_seen_subcommand_from outages uptime' -l group -x -a '(__heartwheelctl_ask groups --names)'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a incidents -d 'what is wrong now'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a incident -d 'everything about one incident'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a ack -d 'somebody takes care of an incident'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a unack -d 'takes an acknowledgement back'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a silence -d 'no messages about some devices for a while'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a silences -d 'the silences'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a unsilence -d 'ends a silence'
complete -c heartwheelctl -n '__fish_seen_subcommand_from incidents' -l all -d 'closed incidents too'
complete -c heartwheelctl -n '__fish_seen_subcommand_from incidents' -l group -x -a '(__heartwheelctl_ask groups --names)'
complete -c heartwheelctl -n '__fish_seen_subcommand_from incidents incident silence silences' -l json -d 'as JSON'
complete -c heartwheelctl -n '__fish_seen_subcommand_from ack silence' -s m -l message -x -d 'a note, or the reason'
complete -c heartwheelctl -n '__fish_seen_subcommand_from silence' -l for -x -d 'for so long'
complete -c heartwheelctl -n '__fish_seen_subcommand_from silence' -l until-online -d 'until a device is online again'
complete -c heartwheelctl -n '__fish_seen_subcommand_from silence' -l planned -d 'the outages are planned'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a devices -d 'the inventory: expected devices'
complete -c heartwheelctl -n '__fish_seen_subcommand_from devices; and not __fish_seen_subcommand_from import export set remove unseen' -a 'import export set remove unseen'
complete -c heartwheelctl -n '__fish_seen_subcommand_from devices; and __fish_seen_subcommand_from import' -F
complete -c heartwheelctl -n '__fish_seen_subcommand_from devices' -l dry-run -d 'only show what would change'
complete -c heartwheelctl -n '__fish_seen_subcommand_from devices' -l skip-bad -d 'leave out wrong rows'
complete -c heartwheelctl -n '__fish_seen_subcommand_from devices' -l prune -d 'remove ids that the file does not name'
complete -c heartwheelctl -n '__fish_seen_subcommand_from devices' -l force -d 'also if these are many'
complete -c heartwheelctl -n '__fish_seen_subcommand_from devices' -l source -x -d 'the name of the import'
complete -c heartwheelctl -n '__fish_seen_subcommand_from devices' -l group -x -a '(__heartwheelctl_ask groups --names)' -d 'only devices of that group'
complete -c heartwheelctl -n '__fish_seen_subcommand_from devices' -l json -d 'one JSON object a line'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a user -d 'users of [http] listen'
complete -c heartwheelctl -n '__fish_seen_subcommand_from user' -a 'add list remove'
complete -c heartwheelctl -n '__fish_seen_subcommand_from user' -l role -x -a 'read operate' -d 'what the user may do'
complete -c heartwheelctl -n '__fish_seen_subcommand_from user' -l expires -x -d 'how long the token is valid'
complete -c heartwheelctl -n '__fish_seen_subcommand_from user' -l file -r -d 'the file of users'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a nodes -d 'the nodes that watch this fleet together'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a check -d 'a line and an exit status for Nagios'
complete -c heartwheelctl -n '__fish_seen_subcommand_from check' -s w -l warning -x -d 'more offline devices are a warning'
complete -c heartwheelctl -n '__fish_seen_subcommand_from check' -s c -l critical -x -d 'more offline devices are critical'
complete -c heartwheelctl -n '__fish_seen_subcommand_from check' -l blind -x -a 'unknown warning critical' -d 'the result while the monitor is blind'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a forget -d 'forget devices'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a notify -d 'the last notifications; sends a test'
complete -c heartwheelctl -n '__fish_seen_subcommand_from notify' -l test -d 'send a test now'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a reload -d 'read the configuration again'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a version -d 'the versions'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a discover -d 'finds the devices at a broker'
complete -c heartwheelctl -n '__fish_seen_subcommand_from discover' -l broker -x -d 'the broker: HOST or HOST:PORT'
complete -c heartwheelctl -n '__fish_seen_subcommand_from discover' -l tls-ca -r -F -d 'use TLS; the authorities'
complete -c heartwheelctl -n '__fish_seen_subcommand_from discover' -l user -x -d 'the user at the broker'
complete -c heartwheelctl -n '__fish_seen_subcommand_from discover' -l password-file -r -F -d 'a file with the password'
complete -c heartwheelctl -n '__fish_seen_subcommand_from discover' -l filter -x -d 'only topics of this filter'
complete -c heartwheelctl -n '__fish_seen_subcommand_from discover' -l for -x -d 'how long to listen'
complete -c heartwheelctl -n '__fish_seen_subcommand_from discover' -l write -r -F -d 'write the sections to a new file'
complete -c heartwheelctl -n '__fish_seen_subcommand_from discover' -l force -d 'replace the file if it exists'
complete -c heartwheelctl -n '__fish_seen_subcommand_from show forget' -a '(__heartwheelctl_ids)'
complete -c heartwheelctl -n '__fish_seen_subcommand_from status list show watch wheel groups nodes notify' -l json -d 'as JSON'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list watch' -l state -x -a 'online offline'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list watch check' -l group -x -a '(__heartwheelctl_ask groups --names)'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list watch' -l prefix -x -d 'only ids that begin so'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list' -l search -x -d 'only devices that contain that'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list' -l label -x -d 'only devices with that label'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list' -l sort -x -a 'id newest oldest known'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list' -l columns -x -a 'learned'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list' -l limit -x -d 'at most so many'
complete -c heartwheelctl -n '__fish_seen_subcommand_from list groups' -l names -d 'nothing but names'
complete -c heartwheelctl -n "not __fish_seen_subcommand_from $commands" -a task -d 'commands to devices'
set -l verbs send list show cancel watch status
set -l task '__fish_seen_subcommand_from task'
complete -c heartwheelctl -n "$task; and not __fish_seen_subcommand_from $verbs" -a "$verbs"
complete -c heartwheelctl -n "$task; and __fish_seen_subcommand_from send" -a '(__heartwheelctl_ids)'
complete -c heartwheelctl -n "$task; and __fish_seen_subcommand_from send" -l at -x -d 'not before'
complete -c heartwheelctl -n "$task; and __fish_seen_subcommand_from send" -l after -x -d 'in so long'
complete -c heartwheelctl -n "$task; and __fish_seen_subcommand_from send" -l exp -x -d 'expires so long behind that'
complete -c heartwheelctl -n "$task; and __fish_seen_subcommand_from send" -l no-hold -d 'fails where the device is offline'
complete -c heartwheelctl -n "$task; and __fish_seen_subcommand_from send" -l id -x -d 'the msg_id'
complete -c heartwheelctl -n "$task; and __fish_seen_subcommand_from send" -l wait -x -d 'waits so long for the end'
complete -c heartwheelctl -n "$task; and __fish_seen_subcommand_from list watch" -l receiver -x -a '(__heartwheelctl_ids)'
complete -c heartwheelctl -n "$task; and __fish_seen_subcommand_from list" -l watched -d 'those that others sent one another'
complete -c heartwheelctl -n "$task; and __fish_seen_subcommand_from cancel" -l force -d 'also one that is acknowledged'
complete -c heartwheelctl -n "$task; and __fish_seen_subcommand_from show cancel" -a '(__heartwheelctl_ask task list --names --limit 200)'
complete -c heartwheelctl -n "$task" -l json -d 'as JSON'
