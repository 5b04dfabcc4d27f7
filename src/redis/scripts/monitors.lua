-- SPDX-License-Identifier: MIT
--
-- Enters a run among the standalone monitors of this prefix, or renews its entry; src/nodes/exclusive.h has the reason.
-- The hash maps each run to "BORN COUNT NODE_ID PLACE PID HOST". BORN is the time of the first entry in microseconds,
-- and greater than each BORN in the hash. If the run's entry is missing, the run is entered again: with the given BORN,
-- or as the youngest. With BORN -1 the run becomes the youngest even if it has an entry. The answer is the hash without malformed entries, this run's entry first.
--
-- At most about FIELDS_MAX fields are read. If the hash has more, its number of fields is the last element of the answer.
--
-- A node of a cluster only reads, with an empty run: it gets no entry, and the answer has the other entries.
--
-- Entries with this run's PLACE are removed. This run holds the lock of the same pid file, so the runs of these entries
-- have ended. The entries given in ARGV are removed if they have not changed.
--
--   KEYS  monitors
--   ARGV  run; count; 'NODE_ID PLACE PID HOST'; PLACE, '' for none; BORN, 0 for none, or -1; then for each entry to be
--         removed: its run and its value

local BORN_MAX = 9007199254740991
local FIELDS_MAX = 1024
local run, place = ARGV[1], ARGV[4]

for i = 6, #ARGV, 2 do
	if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
		redis.call('HDEL', KEYS[1], ARGV[i])
	end
end
local time = redis.call('TIME')
local flat, born, youngest = nil, nil, time[1] * 1000000 + time[2]
local fields = redis.call('HLEN', KEYS[1])
if fields <= FIELDS_MAX then
	flat = redis.call('HGETALL', KEYS[1])
else
	flat = redis.call('HSCAN', KEYS[1], '0', 'COUNT', FIELDS_MAX)[2]
	flat[#flat + 1], flat[#flat + 2] = run, redis.call('HGET', KEYS[1], run) or ''
end
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
if fields > FIELDS_MAX then
	answer[#answer + 1] = fields
end
if looks then
	return answer
end
if not born or ARGV[5] == '-1' then
	born = tonumber(ARGV[5]) > 0 and tonumber(ARGV[5]) or youngest
end
answer[2] = string.format('%.0f %s %s', born, ARGV[2], ARGV[3])
redis.call('HSET', KEYS[1], run, answer[2])
return answer
