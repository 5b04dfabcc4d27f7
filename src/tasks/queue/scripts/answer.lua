-- SPDX-License-Identifier: MIT
--
-- Records what a device answers about a task that it was sent, or what the broker answers about the task's message. It
-- also records that no message can be made of the task. See common.lua.
--
--   ARGV  per item: the task's name; kind (from a device: acked, complete, failed; from the broker: nobody, refused,
--         published; lost: the record makes no message); from, the receiver that a bound topic names, '' if not bound;
--         value, '' if there is none
--
-- Answers OUTCOME of `places` per item. DONE: the answer is recorded. KNOWN: the answer was received before. LATE: the
-- task had already ended with another result; the answer is recorded once (an answer also after a late ack). FOREIGN:
-- the answer is from another device than the receiver. GONE: the task does not exist, or was never sent.

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
