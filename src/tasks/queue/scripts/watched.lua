-- SPDX-License-Identifier: MIT
--
-- Included in the scripts that follow tasks that other clients send to one another. Such a watched task has a record like our
-- tasks, with a field `watched`, and transitions from `sent` on. No other script changes it, and nothing is sent for
-- it. All watched tasks are in one set: an open task has its end as score; an ended task has BEHIND plus the time when
-- it ended.

local WATCHED = PREFIX .. 'watched'

local function read_watched(task)
	local h = record('HMGET', task, 'state', 'sender', 'msg_id', 'receiver', 'exp', 'run', 'acked', 'why', 'late', 'watched',
		'action', 'sent')
	if not h[1] or not h[10] then
		return nil
	end
	return { state = h[1], sender = h[2] or '', msg_id = h[3] or '', receiver = h[4] or '', exp = number(h[5], TIME_MAX),
		run = number(h[6], SPAN_MAX), acked = number(h[7], TIME_MAX), why = h[8] or '', late = h[9], action = h[11] or '',
		sent = h[12] and number(h[12], TIME_MAX) or now,
		marks = { 'watched', '1' } }
end

-- Sets the end of a watched task. The record expires KEEP later, in case no sweep runs.
local function lasts_until(task, t)
	call('ZADD', WATCHED, whole(t), task)
	call('PEXPIRE', PREFIX .. task, whole(t - now + KEEP))
end

-- Ends a watched task. The transition contains what people are notified of: the command, and how long the task had
-- waited.
local function finish_watched(task, r, state, why)
	local waited = why == 'run' and r.run or why == 'exp' and r.exp - r.sent or now - r.sent
	r.marks = { 'watched', '1', 'action', r.action, 'waited_ms', whole(waited) }
	tell(task, r, state, why)
	call('HSET', PREFIX .. task, 'state', state, 'ended', whole(now), 'why', why)
	call('ZADD', WATCHED, whole(BEHIND + now), task)
	call('PEXPIRE', PREFIX .. task, KEEP)
	r.state, r.why, r.marks = state, why, { 'watched', '1' }
end
