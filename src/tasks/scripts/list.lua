-- SPDX-License-Identifier: MIT
--
-- Lists waiting tasks, a page: all, in the order in which they are looked at next, or a receiver's, by their time. It
-- changes nothing. See common.lua.
--
--   ARGV  what LIST in places says
--
-- Of each what LISTED says; `behind`: where the next page begins, empty behind the last one. A page may be short, or
-- empty, and not the last: so many are looked at in one call.

include common
include place

local FIELDS = { 'state', 'sender', 'msg_id', 'receiver', 'action', 'topic', 'at', 'exp', 'run', 'hold', 'created', 'tries',
	'sent', 'acked', 'ended', 'why', 'late', 'late_at' }
local LOOKED_AT = 2000
local a = CALL.next
local receiver, state = ARGV[a + LIST.receiver], ARGV[a + LIST.state]
local score, task = ARGV[a + LIST.score], ARGV[a + LIST.task]
local limit = tonumber(ARGV[a + LIST.limit])
local set = receiver ~= '' and set_of(receiver) or DUE

local function item(t, s)
	local ok, h = pcall(call, 'HMGET', PREFIX .. t, unpack(FIELDS))
	if not ok or not h[1] or (state ~= '' and h[1] ~= state) then
		return nil
	end
	local out = { t, receiver == '' and s or call('ZSCORE', DUE, t) or '' }
	for f = 1, #FIELDS do
		out[2 + f] = h[f] or ''
	end
	return out
end

local items, n, last, last_score = {}, 0, nil, nil
local rank = first_behind(set, score, task)
local found = call('ZRANGE', set, rank, rank + (state == '' and limit or LOOKED_AT) - 1, 'WITHSCORES')
for k = 1, #found, 2 do
	if n == limit then
		break
	end
	last, last_score = found[k], found[k + 1]
	local one = is_behind(last, last_score, score, task) and item(last, last_score)
	if one then
		n = n + 1
		items[n] = one
	end
end
return { now, items, wakes, place_of(set, last, last_score) }
