-- SPDX-License-Identifier: MIT
--
-- Ends the watched tasks whose time is over, and removes those that ended KEEP ago, at most PIECE of each. See
-- common.lua and watched.lua.
--
-- Answers one item, SWEPT of `places`: how many tasks were ended or removed, whichever is more (PIECE: there may be
-- more); the number of watched tasks.

include common
include watched

local PIECE = 200
local due = BELIEVED and call('ZRANGEBYSCORE', WATCHED, '-inf', whole(now), 'LIMIT', 0, PIECE) or {}
local old = call('ZRANGEBYSCORE', WATCHED, whole(BEHIND), whole(BEHIND + now - KEEP), 'LIMIT', 0, PIECE)
for _, task in ipairs(due) do
	local r = read_watched(task)
	if r then
		end_overdue(task, r, finish_watched)
	end
	if not r or not ENDED[r.state] then
		call('ZREM', WATCHED, task)
	end
end
if #old > 0 then
	call('ZREM', WATCHED, unpack(old))
end
call('PEXPIRE', WATCHED, whole(2 * 2592000000 + KEEP))
return { now, { { math.max(#due, #old), call('ZCARD', WATCHED) } }, wakes, {}, n_unusable }
