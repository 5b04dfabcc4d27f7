-- SPDX-License-Identifier: MIT
--
-- Enters a run among the monitors that are by themselves and have this prefix, or renews its entry; src/nodes/exclusive.h says
-- what for. The answer is the hash. An entry of it, under the run, is "BORN COUNT NODE_ID PLACE PID HOST"; BORN is one more than
-- the greatest when the run was entered. A run whose entry is missing is entered again, as the youngest.
--
-- Entries of this run's PLACE are removed: it holds the lock of the same pid file, so the runs of these have ended. Other
-- entries are removed if they are still what this run has seen.
--
--   KEYS  monitors
--   ARGV  run; count; 'NODE_ID PLACE PID HOST'; PLACE, '' for none; then pairs: a run, and its entry, that is to be removed

local BORN_MAX = 9007199254740991
local run, place = ARGV[1], ARGV[4]

for i = 5, #ARGV, 2 do
	if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
		redis.call('HDEL', KEYS[1], ARGV[i])
	end
end
local flat, born, greatest = redis.call('HGETALL', KEYS[1]), nil, 0
for i = 1, #flat, 2 do
	local b, at = string.match(flat[i + 1], '^(%d+) %d+ [^ ]+ ([^ ]+) ')
	b = tonumber(b)
	if flat[i] == run then
		born = b
	elseif b and at == place then
		redis.call('HDEL', KEYS[1], flat[i])
	elseif b and b < BORN_MAX then
		greatest = math.max(greatest, b)
	end
end
redis.call('HSET', KEYS[1], run, string.format('%.0f %s %s', born or greatest + 1, ARGV[2], ARGV[3]))
return redis.call('HGETALL', KEYS[1])
