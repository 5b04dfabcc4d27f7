-- SPDX-License-Identifier: MIT
--
-- Claims due tasks. The instance that gets SEND must send the task, because the task is due again only after its wait.
-- There is no lease: if that instance crashes, the task is due for every instance after the wait. See common.lua.
--
--   ARGV  per item: the task's name
--
-- Answers CLAIMED of `places` per item; the fields after `due` are set only for SEND. If the clock is not trusted,
-- every waiting task is EARLY.

include common

local function wait_of(tries)
	return math.min(ACK_WAIT * 2 ^ math.min(tries - 1, 30), math.max(RETRY_MAX, ACK_WAIT))
end

local function later(task, r, verdict, state, due)
	due = math.min(due, r.exp)
	look_at(task, due)
	return { verdict, state, due }
end

local function hold(task, r)
	if not r.hold then
		finish(task, r, 'failed', 'offline')
		return { 'OVER', r.state, 0 }
	end
	if r.state ~= 'held' then
		tell(task, r, 'held', '')
		call('HSET', PREFIX .. task, 'state', 'held')
	end
	return later(task, r, 'HOLD', 'held', now + LOOK)
end

local function is_in_window(task, r)
	local rank = call('ZRANK', set_of(r.receiver), task)
	if not rank then
		call('ZADD', set_of(r.receiver), whole(r.at), task)
		rank = call('ZRANK', set_of(r.receiver), task)
	end
	if rank >= WINDOW then
		clean_window(r.receiver)
		rank = call('ZRANK', set_of(r.receiver), task)
	end
	return rank and rank < WINDOW
end

local function message(task, r, tries, body, state, due)
	call('HSET', PREFIX .. task, 'state', state, 'sent', NOW, 'tries', tries)
	look_at_last(task, due)
	local said = { 'SEND', state, due }
	said[CLAIMED.tries], said[CLAIMED.sender], said[CLAIMED.msg_id] = tries, r.sender, r.msg_id
	said[CLAIMED.receiver], said[CLAIMED.action] = r.receiver, r.action or ''
	said[CLAIMED.topic], said[CLAIMED.qos], said[CLAIMED.retain] = r.topic or '', number(r.qos, 2), number(r.retain, 1)
	said[CLAIMED.body], said[CLAIMED.created] = body, number(r.created, TIME_MAX)
	said[CLAIMED.at], said[CLAIMED.exp] = r.at, r.exp
	return said
end

local function send(task, r)
	local body = call('GET', PREFIX .. 'body:' .. task)
	if not body then
		finish(task, r, 'failed', 'lost')
		return { 'OVER', r.state, 0 }
	end
	local tries = r.tries + 1
	if r.state ~= 'sent' then
		tell(task, r, 'sent', '')
	end
	return message(task, r, tries, body, 'sent', math.min(now + wait_of(tries), r.exp))
end

-- Sends an acknowledged task once more, because its answer may be lost. After exp the task is not sent: its receiver
-- may have forgotten it by then.
local function ask(task, r)
	local due = r.acked + r.run
	local body = call('GET', PREFIX .. 'body:' .. task)
	if not body or now >= r.exp or is_offline(r.receiver) then
		look_at(task, due)
		return { 'WAIT', 'acked', due }
	end
	return message(task, r, r.tries + 1, body, 'acked', due)
end

return each(CALL.next, CLAIM.next, function(a)
	local task = ARGV[a + CLAIM.task]
	local r, h = read(task, 'action', 'topic', 'qos', 'retain', 'created')
	if not r or ENDED[r.state] then
		call('ZREM', DUE, task)
		return r and { 'OVER', r.state, 0 } or { 'GONE', '', 0 }
	end
	local due = math.max(due_of(task) or 0, r.state == 'scheduled' and r.at or 0)
	r.action, r.topic, r.qos, r.retain, r.created = unpack(h, MORE + 1, MORE + 5)
	if r.state == 'acked' then
		due = math.max(due, due_of_acked(r))
	end
	if not BELIEVED then
		return { 'EARLY', r.state, math.max(due, 1) }
	elseif due > now then
		look_at(task, due)
		return { 'EARLY', r.state, due }
	end
	end_overdue(task, r)
	if ENDED[r.state] then
		return { 'OVER', r.state, 0 }
	elseif r.state == 'acked' then
		return ask(task, r)
	elseif is_offline(r.receiver) then
		return hold(task, r)
	elseif r.receiver ~= '' and r.tries == 0 and not is_in_window(task, r) then
		return later(task, r, 'WAIT', r.state, now + LOOK)
	end
	return send(task, r)
end)
