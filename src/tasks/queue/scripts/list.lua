-- SPDX-License-Identifier: MIT
--
-- Lists a page of waiting tasks: all in the order of their next check, or those of a receiver by their time `at`. Or it
-- lists watched tasks: first the open ones by their end, then the ended ones. It changes nothing. See common.lua.
--
--   ARGV  LIST of `places`
--
-- Answers LISTED of `places` per task. `behind`: where the next page begins; empty after the last page. A call reads at
-- most LOOKED_AT tasks, so a page before the last one may also be short or empty.

include common
include place

local FIELDS = { 'state', 'sender', 'msg_id', 'receiver', 'action', 'topic', 'at', 'exp', 'run', 'hold', 'created', 'tries',
	'sent', 'acked', 'ended', 'why', 'late', 'late_at', 'watched' }
local LOOKED_AT = 2000
local a = CALL.next
local receiver, state = ARGV[a + LIST.receiver], ARGV[a + LIST.state]
local score, task = ARGV[a + LIST.score], ARGV[a + LIST.task]
local limit = tonumber(ARGV[a + LIST.limit])
local watched = ARGV[a + LIST.watched] == '1'
local set = watched and PREFIX .. 'watched' or receiver ~= '' and set_of(receiver) or DUE
local filtered = state ~= '' or (watched and receiver ~= '')

-- When a task is checked next: its score in the set that was read, or in `due`; '' if it is not checked.
local function due_of(t, s)
	if watched then
		return tonumber(s) < BEHIND and s or ''
	end
	return receiver == '' and s or call('ZSCORE', DUE, t) or ''
end

local function item(t, s)
	local ok, h = pcall(call, 'HMGET', PREFIX .. t, unpack(FIELDS))
	if not ok or not h[1] or (state ~= '' and h[1] ~= state) or (watched and receiver ~= '' and h[4] ~= receiver) then
		return nil
	end
	local out = { t, due_of(t, s) }
	for f = 1, #FIELDS do
		out[2 + f] = h[f] or ''
	end
	return out
end

local items, n, last, last_score = {}, 0, nil, nil
local rank = first_behind(set, score, task)
local found = call('ZRANGE', set, rank, rank + (filtered and LOOKED_AT or limit) - 1, 'WITHSCORES')
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
