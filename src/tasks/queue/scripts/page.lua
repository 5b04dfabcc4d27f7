-- SPDX-License-Identifier: MIT
--
-- Reads a page of due tasks for the schedule. See common.lua.
--
--   ARGV  from and until in ms, until '' for now; how many tasks to skip; how many to read at most
--
-- Answers WAKE of `places` per task.

include common

local a = CALL.next
local from_ms, until_ms = ARGV[a + PAGE.from], ARGV[a + PAGE.until]
local found = call('ZRANGEBYSCORE', DUE, from_ms ~= '0' and from_ms or '-inf', until_ms ~= '' and until_ms or whole(now), 'WITHSCORES',
	'LIMIT', ARGV[a + PAGE.skip], ARGV[a + PAGE.count])
local items, n = {}, 0
for k = 1, #found, 2 do
	local ok, receiver = pcall(call, 'HGET', PREFIX .. found[k], 'receiver')
	n = n + 1
	items[n] = { found[k], ok and receiver or '', math.max(tonumber(found[k + 1]), 0) }
end
return { now, items, wakes }
