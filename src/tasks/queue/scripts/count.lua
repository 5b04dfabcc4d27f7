-- SPDX-License-Identifier: MIT
--
-- Counts the states of a page of waiting tasks. It changes nothing. See common.lua.
--
--   ARGV  COUNT of `places`
--
-- Answers one item, COUNTED of `places`. `behind`: where the next page begins; empty after the last page.

include common
include place

local a = CALL.next
local score, task = ARGV[a + COUNT.score], ARGV[a + COUNT.task]
local rank = first_behind(DUE, score, task)
local found = call('ZRANGE', DUE, rank, rank + ARGV[a + COUNT.limit] - 1, 'WITHSCORES')
local counts = { scheduled = 0, held = 0, sent = 0, acked = 0 }
for k = 1, #found, 2 do
	if is_behind(found[k], found[k + 1], score, task) then
		local ok, state = pcall(call, 'HGET', PREFIX .. found[k], 'state')
		if ok and counts[state] then
			counts[state] = counts[state] + 1
		end
	end
end
local item = { counts.scheduled, counts.held, counts.sent, counts.acked }
return { now, { item }, wakes, place_of(DUE, found[#found - 1], found[#found]) }
