-- SPDX-License-Identifier: MIT
--
-- Receivers came online: the oldest of their tasks, as many as the window has, are due as soon as their last message is
-- ACK_WAIT ago; those behind them follow as these leave the window. So a receiver that flaps gets a window's messages
-- each ACK_WAIT at most. See common.lua.
--
--   ARGV  the place in device:events behind these receivers' events, which is kept in task:at, '' for none; of each its name
--
-- Of each receiver how many of its tasks were made due, or are; these are among the wakes.

include common

local function make_due(task, receiver)
	local h = record('HMGET', task, 'state', 'tries', 'sent', 'at')
	if not h[1] or ENDED[h[1]] then
		call('ZREM', set_of(receiver), task)
		return false
	elseif h[1] == 'acked' then
		return false
	end
	local at, old = number(h[4], TIME_MAX), due_of(task)
	local due = math.max(now, at, number(h[2], TRIES_MAX) > 0 and number(h[3], TIME_MAX) + ACK_WAIT or 0)
	if old and old <= due then
		if at > now then
			return false
		end
		due = old
	else
		look_at(task, due)
	end
	wake(task, receiver, due)
	return true
end

local place = ARGV[CALL.next + ONLINE.place]
local said = each(CALL.next + ONLINE.next, RECEIVER.next, function(a)
	local receiver, n = ARGV[a + RECEIVER.receiver], 0
	if is_offline(receiver) then
		return 0
	end
	for _, task in ipairs(call('ZRANGE', set_of(receiver), 0, WINDOW - 1)) do
		n = make_due(task, receiver) and n + 1 or n
	end
	return n
end)
if place ~= '' then
	call('SET', KEYS[KEYED.place], place)
end
return said
