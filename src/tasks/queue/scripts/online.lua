-- SPDX-License-Identifier: MIT
--
-- Receivers came online: makes the tasks in their windows due. A task that was sent before is due ACK_WAIT after that.
-- Tasks outside the window follow as tasks leave it. So a receiver that flaps gets at most one window of messages per
-- ACK_WAIT. See common.lua.
--
--   ARGV  the offset in device:events after these receivers' events, stored in task:at ('': none); the receivers
--
-- Answers per receiver the number of its tasks among the wakes.

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

local offset = ARGV[CALL.next + ONLINE.offset]
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
if offset ~= '' then
	call('SET', KEYS[KEYED.offset], offset)
end
return said
