-- SPDX-License-Identifier: MIT
--
-- What a device says of a task that it was sent, or the broker of its message; or that it cannot be sent. See common.lua.
--
--   ARGV  of each: its name; kind (acked, complete, failed: of a device; nobody, refused, published: of the broker; lost: what
--         Redis has of it makes no message); from,
--         the receiver that a bound topic names, '' where it is not bound; value, '' where there is none
--
-- Of each what OUTCOME in places says: DONE; KNOWN, it says nothing new; LATE, it came when the task had ended otherwise,
-- and is noted once (an answer behind an ack too); FOREIGN, from another than the receiver; GONE, there is no such task, or
-- it was never sent.

include common

local OF_BROKER = { nobody = true, refused = true, lost = true, published = true }

local function late(task, r, kind, value)
	local h = call('HMGET', PREFIX .. task, 'why', 'late')
	if OF_BROKER[kind] or is_heard(r.state, h[1], h[2], kind) then
		return { 'KNOWN', r.state, r.tries }
	end
	tell(task, r, kind, 'late')
	call('HSET', PREFIX .. task, 'late', kind, 'late_at', NOW)
	local left = value ~= '' and call('PTTL', PREFIX .. task) or 0
	if left > 0 then
		call('SET', PREFIX .. 'value:' .. task, value, 'PX', math.min(left, SPAN_MAX))
	end
	return { 'LATE', r.state, r.tries }
end

local function acknowledge(task, r)
	if r.state == 'acked' then
		return { 'KNOWN', 'acked', r.tries }
	end
	tell(task, r, 'acked', '')
	call('HSET', PREFIX .. task, 'state', 'acked', 'acked', NOW)
	r.acked = now
	look_at_last(task, due_of_acked(r))
	call('ZADD', set_of(r.receiver), whole(BEHIND + r.at), task)
	fill_window(r.receiver, WINDOW - 1)
	return { 'DONE', 'acked', r.tries }
end

local function of_broker(task, r, kind)
	if r.state ~= 'sent' or (kind == 'published' and r.receiver ~= '') then
		return { 'KNOWN', r.state, r.tries }
	elseif kind == 'nobody' then
		call('HSET', PREFIX .. task, 'why', 'nobody')
	elseif kind == 'refused' or kind == 'lost' then
		finish(task, r, 'failed', kind)
	else
		finish(task, r, 'complete', '')
	end
	return { 'DONE', r.state, r.tries }
end

return each(CALL.next, ANSWERED.next, function(a)
	local task, kind = ARGV[a + ANSWERED.task], ARGV[a + ANSWERED.kind]
	local from, value = ARGV[a + ANSWERED.from], ARGV[a + ANSWERED.value]
	local r = read(task)
	if not r or (r.tries == 0 and not ENDED[r.state]) then
		return { 'GONE', '', 0 }
	elseif not OF_BROKER[kind] and (r.receiver == '' or (from ~= '' and from ~= r.receiver)) then
		return { 'FOREIGN', r.state, r.tries }
	end
	end_overdue(task, r)
	if ENDED[r.state] then
		return late(task, r, kind, value)
	elseif OF_BROKER[kind] then
		return of_broker(task, r, kind)
	elseif kind == 'acked' then
		return acknowledge(task, r)
	end
	finish(task, r, kind, kind == 'failed' and 'device' or '', value)
	return { 'DONE', kind, r.tries }
end)
