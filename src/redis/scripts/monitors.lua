-- SPDX-License-Identifier: MIT
--
-- Enters a run among the monitors that are by themselves and have this prefix, or renews its entry; src/nodes/exclusive.h says
-- what for. An entry in the hash, under the run, is "BORN COUNT NODE_ID PLACE PID HOST". BORN is the time at which the run was entered,
-- in microseconds, and more than the greatest there. If its entry is missing, the run is entered again: with the BORN that it
-- gives, or as the youngest if it gives none. The answer is the hash without what is no entry, this run's entry first.
--
-- A node of a cluster only looks, with an empty run: it gets no entry, and the answer is that of the others.
--
-- Entries of this run's PLACE are removed: it holds the lock of the same pid file, so the runs of these have ended. Other
-- entries are removed if they are still what this run has seen.
--
--   KEYS  monitors
--   ARGV  run; count; 'NODE_ID PLACE PID HOST'; PLACE, '' for none; BORN, 0 for none; then pairs: a run, and its entry, that is
--         to be removed

local BORN_MAX = 9007199254740991
local run, place = ARGV[1], ARGV[4]

for i = 6, #ARGV, 2 do
	if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
		redis.call('HDEL', KEYS[1], ARGV[i])
	end
end
local time = redis.call('TIME')
local flat, born, youngest = redis.call('HGETALL', KEYS[1]), nil, time[1] * 1000000 + time[2]
local looks = run == ''
local answer = looks and {} or {run, ''}
for i = 1, #flat, 2 do
	local b, at = string.match(flat[i + 1], '^(%d+) %d+ [^ ]+ ([^ ]+) %-?%d+ [^ ]+$')
	b = #flat[i] == 16 and not string.find(flat[i], '[^0-9a-f]') and tonumber(b)
	if not b or b >= BORN_MAX then
		b = nil
	elseif flat[i] == run then
		born = b
	elseif at == place then
		redis.call('HDEL', KEYS[1], flat[i])
	else
		youngest = math.max(youngest, b + 1)
		answer[#answer + 1], answer[#answer + 2] = flat[i], flat[i + 1]
	end
end
if looks then
	return answer
end
if not born then
	born = ARGV[5] ~= '0' and tonumber(ARGV[5]) or youngest
end
answer[2] = string.format('%.0f %s %s', born, ARGV[2], ARGV[3])
redis.call('HSET', KEYS[1], run, answer[2])
return answer
