-- SPDX-License-Identifier: MIT
--
-- Submits tasks. If a task exists with the same content, the answer is taken from its record. So a submission may be
-- repeated as long as the record is kept. While the clock is not trusted no new task is accepted, because its times are
-- counted from the clock. See common.lua.
--
--   ARGV  SUBMISSION of `places` per item; time is '0', and at, after, exp, run are '' if not given; hold is '0' or '1'
--
-- Answers per item: NEW or KNOWN, state, `at` and `exp`; or the reason of a refusal.

include common

local function given(a)
	local text = ARGV[a]
	return text ~= '' and tonumber(text) or nil
end

local bodies, taken = {}, {} -- in this call
local any_known -- nil: not read yet
local n_due

-- Replaces a missing time, or a time in the past, by `than`.
local function not_before(t, than)
	return t and math.max(t, than) or than
end

-- Whether a record matches this submission: every value that is given equals the recorded one. `after` is not compared,
-- because it counts from the arrival of each submission.
local function is_same(h, a, at, exp, run)
	local function same(text, k)
		return (text or '') == ARGV[a + k]
	end
	return same(h.receiver, SUBMISSION.receiver) and same(h.action, SUBMISSION.action) and same(h.topic, SUBMISSION.topic)
		and (h.qos or '0') == ARGV[a + SUBMISSION.qos] and (h.retain or '0') == ARGV[a + SUBMISSION.retain]
		and (h.hold or '1') == ARGV[a + SUBMISSION.hold]
		and (not at or not_before(at, h.created) == h.at) and (not exp or exp == h.exp) and (not run or run == h.run)
		and (h.body == nil or h.body == ARGV[a + SUBMISSION.body])
end

-- Whether any task of the call existed before. In most calls none did, and a read per task is saved.
local function is_any_known()
	local keys = {}
	for a = CALL.next, #ARGV, SUBMISSION.next do
		keys[#keys + 1] = PREFIX .. ARGV[a + SUBMISSION.task]
	end
	return call('EXISTS', unpack(keys)) > 0
end

local function stored(task)
	if any_known == nil then
		any_known = is_any_known()
	end
	if not any_known and not taken[task] then
		return nil
	end
	local v = record('HMGET', task, 'state', 'receiver', 'action', 'topic', 'qos', 'retain', 'hold', 'at', 'exp', 'run', 'created')
	if not v[1] then
		return nil
	end
	return { state = v[1], receiver = v[2], action = v[3], topic = v[4], qos = v[5], retain = v[6], hold = v[7],
		at = number(v[8], TIME_MAX), exp = number(v[9], TIME_MAX), run = number(v[10], SPAN_MAX), created = number(v[11], TIME_MAX),
		body = bodies[task] or call('GET', PREFIX .. 'body:' .. task) or nil }
end

local function is_full(receiver)
	n_due = n_due or call('ZCARD', DUE)
	return n_due >= MAX or (receiver ~= '' and call('ZCARD', set_of(receiver)) >= MAX_PER_RECEIVER)
end

local function refused_with(a, time_given, at, exp)
	if time_given > 0 and time_given < now - KEEP then
		return 'OLD'
	elseif time_given > now + AHEAD then
		return 'AHEAD'
	elseif at > now + 31622400000 then
		return 'AT'
	elseif exp <= at or exp > at + 2592000000 then
		return 'EXP'
	elseif is_full(ARGV[a + SUBMISSION.receiver]) then
		return 'FULL'
	end
end

local function write(task, a, at, exp, run)
	local r = { receiver = ARGV[a + SUBMISSION.receiver], sender = ARGV[a + SUBMISSION.sender], msg_id = ARGV[a + SUBMISSION.msg_id] }
	tell(task, r, 'scheduled', '')
	taken[task] = true
	local function put(...)
		call('HSET', PREFIX .. task, 'state', 'scheduled', 'sender', r.sender, 'msg_id', r.msg_id, 'receiver', r.receiver,
			'action', ARGV[a + SUBMISSION.action], 'at', whole(at), 'exp', whole(exp), 'hold', ARGV[a + SUBMISSION.hold],
			'run', whole(run), 'created', NOW, 'tries', '0', ...)
	end
	if r.receiver == '' then
		put('topic', ARGV[a + SUBMISSION.topic], 'qos', ARGV[a + SUBMISSION.qos], 'retain', ARGV[a + SUBMISSION.retain])
	else
		put()
		call('ZADD', set_of(r.receiver), whole(at), task)
	end
	bodies[task] = ARGV[a + SUBMISSION.body]
	look_at_last(task, at)
	n_due = n_due + 1
end

-- Writes all payloads together after the items, like `due`.
local function write_bodies()
	local sets = {}
	for task, body in pairs(bodies) do
		sets[#sets + 1], sets[#sets + 2] = PREFIX .. 'body:' .. task, body
	end
	if #sets > 0 then
		call('MSET', unpack(sets))
	end
end

local said = each(CALL.next, SUBMISSION.next, function(a)
	local task, after = ARGV[a + SUBMISSION.task], given(a + SUBMISSION.after)
	local at, exp, run = given(a + SUBMISSION.at), given(a + SUBMISSION.exp), given(a + SUBMISSION.run)
	local h = stored(task)
	if h then
		return is_same(h, a, at, exp, run) and { 'KNOWN', h.state, h.at, h.exp } or { 'CONTENT' }
	end
	if not BELIEVED then
		error('CLOCK Redis\' clock has jumped ahead: submit again', 0)
	end
	at = not_before(after and now + after or at, now)
	exp, run = exp or at + EXP, run or RUN
	local wrong = refused_with(a, tonumber(ARGV[a + SUBMISSION.time]), at, exp)
	if wrong then
		return { wrong }
	end
	write(task, a, at, exp, run)
	return { 'NEW', 'scheduled', at, exp }
end)
write_bodies()
return said
