-- SPDX-License-Identifier: MIT
--
-- Follows tasks that other clients send to one another, by their messages. Several instances may report the same
-- message: a repeated message changes nothing. See common.lua and watched.lua.
--
--   ARGV  SEEN of `places` per item; says: sent, or the receiver's answer (acked, complete, failed); receiver:
--         of an answer '' if the topic is not bound; exp '' if none was given
--
-- Answers OUTCOME of `places` per item. NEW: the task is followed. DONE: the answer is recorded. KNOWN: the message was
-- seen before. LATE: the task had ended; the answer is recorded once. FOREIGN: the answer is from another node than the
-- receiver. FULL: there are MAX watched tasks, and none has ended. GONE: no such task was seen.

include common
include watched

-- The time left to a task whose exp is over when it is first seen. The receiver may have executed it, and the answer is
-- still to be read.
local LEFT = 5000

local function has_room()
	if call('ZCARD', WATCHED) < MAX then
		return true
	end
	local oldest = call('ZRANGEBYSCORE', WATCHED, whole(BEHIND), '+inf', 'LIMIT', 0, 1)[1]
	if oldest then
		call('ZREM', WATCHED, oldest)
		if read_watched(oldest) then
			call('DEL', PREFIX .. oldest)
		end
	end
	return oldest
end

local function begin(task, a)
	local exp = tonumber(ARGV[a + SEEN.exp]) or now + EXP
	local r = { sender = ARGV[a + SEEN.sender], msg_id = ARGV[a + SEEN.msg_id], receiver = ARGV[a + SEEN.receiver],
		marks = { 'watched', '1' } }
	exp = exp > now and math.min(exp, now + 2592000000) or now + LEFT
	if not has_room() then
		return { 'FULL', '', 0 }
	end
	tell(task, r, 'sent', '')
	call('HSET', PREFIX .. task, 'state', 'sent', 'sender', r.sender, 'msg_id', r.msg_id, 'receiver', r.receiver, 'action',
		ARGV[a + SEEN.action], 'exp', whole(exp), 'run', whole(RUN), 'created', whole(now), 'sent', whole(now), 'watched', '1')
	lasts_until(task, exp)
	return { 'NEW', 'sent', 0 }
end

local function answer(task, r, says)
	if ENDED[r.state] then
		if is_heard(r.state, r.why, r.late, says) then
			return { 'KNOWN', r.state, 0 }
		end
		tell(task, r, says, 'late')
		call('HSET', PREFIX .. task, 'late', says, 'late_at', whole(now))
		return { 'LATE', r.state, 0 }
	elseif says ~= 'acked' then
		finish_watched(task, r, says, says == 'failed' and 'device' or '')
	elseif r.state == 'acked' then
		return { 'KNOWN', 'acked', 0 }
	else
		tell(task, r, 'acked', '')
		call('HSET', PREFIX .. task, 'state', 'acked', 'acked', whole(now))
		lasts_until(task, now + r.run)
	end
	return { 'DONE', says, 0 }
end

return each(CALL.next, SEEN.next, function(a)
	local task, says, receiver = ARGV[a + SEEN.task], ARGV[a + SEEN.says], ARGV[a + SEEN.receiver]
	local r = read_watched(task)
	if r then
		end_overdue(task, r, finish_watched)
	end
	if says == 'sent' then
		return r and { 'KNOWN', r.state, 0 } or begin(task, a)
	elseif not r then
		return { 'GONE', '', 0 }
	elseif receiver ~= '' and receiver ~= r.receiver then
		return { 'FOREIGN', r.state, 0 }
	end
	return answer(task, r, says)
end)
