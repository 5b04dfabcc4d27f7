-- SPDX-License-Identifier: MIT
--
-- Put into all scripts of tasks. Times are Redis' own, in ms: there is one clock.
--
--   KEYS  due, events, at
--   ARGV  what CALL in places says: prefix of the keys; of those that say that a receiver is offline; this instance;
--         latest, the time that Redis cannot have yet as far as the caller knows ('0': nothing is believed); the rules; items
--
-- The answer: now; one element for each item; the wakes: tasks that are to be looked at because of this call, each with
-- its receiver and when; where a page ends; and how many values were unusable. An item that failed with an error is that
-- error's text.
--
-- Other programs may write into these keys. A number of a record that is out of bounds counts as missing, and a key that
-- holds something else than a record is no task: see number() and record(). So an item never fails for good, and one item
-- never fails the others of its call.
--
-- A receiver's window are the first WINDOW of its tasks that are not acknowledged: those that are stand behind all others
-- in its set (BEHIND). So to be in the window is to have a rank below it, whoever asks, and nobody counts.
--
-- Half of what a call costs Redis is going from Lua to a command and back. So what all items write into `due` is written at
-- once, behind them (look_at_last, forget): only by an item that has written before, so that what Redis refuses is refused
-- to the item. What it says meanwhile is asked by due_of().
--
-- Of one item the event is written first: a Redis that takes no writes refuses that, and nothing was changed. Where a
-- script ends tasks of a Redis without memory, it begins with a ZREM, which is always taken.

local PREFIX, DEVICE, NODE = ARGV[CALL.prefix], ARGV[CALL.device], ARGV[CALL.node]
local WINDOW = tonumber(ARGV[CALL.window])
local ACK_WAIT, RETRY_MAX = tonumber(ARGV[CALL.ack_wait]), tonumber(ARGV[CALL.retry_max])
local EXP, RUN, KEEP = tonumber(ARGV[CALL.exp]), tonumber(ARGV[CALL.run]), tonumber(ARGV[CALL.keep])
local MAX, MAX_PER_RECEIVER = tonumber(ARGV[CALL.max]), tonumber(ARGV[CALL.max_per_receiver])
local EVENTS_MAX = ARGV[CALL.events_max]
local DUE, EVENTS = KEYS[KEYED.due], KEYS[KEYED.events]
local LOOK, BEHIND, AHEAD = 600000, 10000000000000, math.min(KEEP, 3600000)
local ENDED = { complete = true, failed = true, expired = true, cancelled = true }
local call = redis.call
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local BELIEVED = now < tonumber(ARGV[CALL.latest])
local wakes, n_wakes = {}, 0
local NO_MARKS = {}
local texts = {}
local dues, touched = {}, {}
local PIECE_OF_DUE = 1000

-- The same few times come again and again.
local function whole(n)
	local text = texts[n]
	if not text then
		text = string.format('%.0f', n)
		texts[n] = text
	end
	return text
end

local NOW = whole(now)

-- The greatest time and length of time that a record may have: `at` is at most 366 days ahead, `exp` 30 days after it. It is
-- twice that, as Redis' clock may have gone back since.
local SPAN_MAX = 2 * (31622400000 + 2592000000)
local TIME_MAX, TRIES_MAX = now + SPAN_MAX, 1000000000
local n_unusable = 0

-- The number that a text of Redis stands for, 0 where there is none. tonumber() takes 'nan', 'inf' and '1e308' as well: they
-- are unusable, and count as 0.
local function number(text, most)
	local n = text and tonumber(text)
	if n and n >= 0 and n <= most then
		return n
	elseif text then
		n_unusable = n_unusable + 1
	end
	return 0
end

-- What Redis answers to a command that reads one field or several of a record; nothing where the key holds something else.
local function record(command, task, ...)
	local h = redis.pcall(command, PREFIX .. task, ...)
	if type(h) ~= 'table' or not h.err then
		return h
	elseif not string.find(h.err, 'WRONGTYPE', 1, true) then
		error(h, 0)
	end
	n_unusable = n_unusable + 1
	return command == 'HMGET' and {} or false
end

local function set_of(receiver)
	return PREFIX .. 'device:' .. receiver
end

local function is_offline(receiver)
	return receiver ~= '' and call('EXISTS', DEVICE .. receiver) == 1
end

-- The record of a task; nothing if there is none, or if it is one that others sent one another (watched.lua). Of one that
-- has ended only what it ended with is used. What else of it is asked for, as Redis answers it, stands behind MORE.
local MORE = 12
local function read(task, ...)
	local h = record('HMGET', task, 'state', 'sender', 'msg_id', 'receiver', 'at', 'exp', 'run', 'tries', 'sent', 'acked', 'hold',
		'watched', ...)
	if not h[1] or h[12] then
		return nil
	end
	local r = { state = h[1], sender = h[2] or '', msg_id = h[3] or '', receiver = h[4] or '' }
	r.at, r.exp, r.run = number(h[5], TIME_MAX), number(h[6], TIME_MAX), number(h[7], SPAN_MAX)
	r.tries, r.sent, r.acked = number(h[8], TRIES_MAX), number(h[9], TIME_MAX), number(h[10], TIME_MAX)
	r.hold = h[11] ~= '0'
	return r, h
end

-- When one that is acknowledged is looked at next: ACK_WAIT before its time is over, if it was not sent again since, its
-- receiver is asked once more, who repeats its last answer. For an answer can be lost behind its PUBACK: with the instance
-- that had just read it, or with the broker.
local function due_of_acked(r)
	local asked = r.sent > r.acked
	return r.acked + r.run - (asked and 0 or math.min(ACK_WAIT, math.floor(r.run / 2)))
end

local function tell(task, r, state, why)
	call('XADD', EVENTS, 'MAXLEN', '~', EVENTS_MAX, '*', 'task', task, 'receiver', r.receiver, 'sender', r.sender,
		'msg_id', r.msg_id, 'state', state, 'why', why, 'time_ms', NOW, 'node', NODE, unpack(r.marks or NO_MARKS))
end

-- What comes when a task has ended: whether it says nothing that is not known. `why`, `noted`: of the record, why it ended
-- and what came late before.
local function is_heard(state, why, noted, kind)
	return state == 'complete' or why == 'device' or (noted and (kind == 'acked' or noted ~= 'acked'))
end

local function look_at(task, due)
	call('ZADD', DUE, whole(due), task)
	if dues[task] ~= nil then
		dues[task] = due
	end
end

local function look_at_last(task, due)
	if dues[task] == nil then
		touched[#touched + 1] = task
	end
	dues[task] = due
end

local function forget(task)
	look_at_last(task, false)
end

local function due_of(task)
	local due = dues[task]
	if due == nil then
		due = call('ZSCORE', DUE, task)
		due = due and number(due, TIME_MAX) or nil
	end
	return due
end

local function write_dues()
	local adds, rems = {}, {}
	for k, task in ipairs(touched) do
		local due = dues[task]
		if due then
			adds[#adds + 1], adds[#adds + 2] = whole(due), task
		else
			rems[#rems + 1] = task
		end
		if #adds > 0 and (#adds >= PIECE_OF_DUE or k == #touched) then
			call('ZADD', DUE, unpack(adds))
			adds = {}
		end
		if #rems > 0 and (#rems >= PIECE_OF_DUE or k == #touched) then
			call('ZREM', DUE, unpack(rems))
			rems = {}
		end
	end
end

local function wake(task, receiver, due)
	n_wakes = n_wakes + 1
	wakes[n_wakes] = { task, receiver, due }
end

-- Tasks left the window: those that came into it, from this rank on, are due if they waited for that.
local function fill_window(receiver, first)
	if receiver == '' or is_offline(receiver) then
		return
	end
	local found = call('ZRANGE', set_of(receiver), first, WINDOW - 1, 'WITHSCORES')
	for k = 1, #found, 2 do
		local task, due = found[k], math.max(tonumber(found[k + 1]), now)
		local waits = due < BEHIND and (due_of(task) or due) > due
		local state = waits and record('HGET', task, 'state')
		if state == 'scheduled' or state == 'held' then
			look_at_last(task, due)
			wake(task, receiver, due)
		end
	end
end

-- What was lost with its record, or has ended, must not fill a window for ever.
local function clean_window(receiver)
	local cleaned = false
	for _, task in ipairs(call('ZRANGE', set_of(receiver), 0, WINDOW - 1)) do
		local state = record('HGET', task, 'state')
		if not state or ENDED[state] then
			call('ZREM', set_of(receiver), task)
			cleaned = true
		end
	end
	if cleaned then
		fill_window(receiver, 0)
	end
end

local function finish(task, r, state, why, value)
	tell(task, r, state, why)
	call('HSET', PREFIX .. task, 'state', state, 'ended', NOW, 'why', why)
	forget(task)
	if r.receiver ~= '' then
		call('ZREM', set_of(r.receiver), task)
	end
	call('PEXPIRE', PREFIX .. task, KEEP + AHEAD)
	call('PEXPIRE', PREFIX .. 'body:' .. task, KEEP + AHEAD)
	if value and value ~= '' then
		call('SET', PREFIX .. 'value:' .. task, value, 'PX', KEEP + AHEAD)
	end
	r.state = state
	fill_window(r.receiver, WINDOW - 1)
end

-- Ends a task that time has ended, if the time is believed; by `how`, or as a task of ours.
local function end_overdue(task, r, how)
	how = how or finish
	if not BELIEVED or ENDED[r.state] then
		return
	end
	if r.state == 'acked' then
		if now >= r.acked + r.run then
			how(task, r, 'failed', 'run')
		end
	elseif now >= r.exp then
		how(task, r, 'expired', 'exp')
	end
end

-- Calls `f` with the place of each item, and puts together what is answered.
local function each(first, size, f)
	local items, n = {}, 0
	for a = first, #ARGV, size do
		local ok, item = pcall(f, a)
		n = n + 1
		if ok then
			items[n] = item
		else
			items[n] = tostring(type(item) == 'table' and item.err or item)
		end
	end
	write_dues()
	return { now, items, wakes, {}, n_unusable }
end
