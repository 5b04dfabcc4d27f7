-- SPDX-License-Identifier: MIT
--
-- Included in all scripts of tasks. Every time is Redis' own, in ms, so that there is one clock.
--
--   KEYS  due, events, at
--   ARGV  CALL of `places`: prefix of the keys; prefix of offline receivers' keys; this instance; latest, a time that
--         Redis' clock cannot have reached yet ('0': the clock is not trusted); the rules; then the items
--
-- Answers now; one element per item; the wakes (tasks to be checked because of this call, each with its receiver and
-- its due time); where a page ends; the number of unusable values. The element of an item that failed is the text of
-- its error.
--
-- Other programs may write to these keys. A number out of bounds in a record counts as missing, and a key that holds no
-- record is no task: see number() and record(). So an item does not fail forever, and an item does not fail the other
-- items of its call.
--
-- A receiver's window is the first WINDOW tasks of the receiver's set that are not acknowledged. Acknowledged tasks
-- stand after all others in the set (BEHIND). So a task is in the window if its rank is below WINDOW, and no counter is
-- needed.
--
-- Half the cost of a call is the switch from Lua to a command and back. So the writes of all items to `due` are
-- collected and sent together after the items (look_at_last, forget). Only an item that has already written something
-- may do so: if Redis refuses writes, that first write fails, and the item with it. Until then due_of() returns the
-- collected value.
--
-- Each item writes its event first. If Redis accepts no writes, the event fails before anything has changed. A script
-- that ends tasks while Redis is out of memory begins with a ZREM, which Redis always accepts.

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

-- Caches the text: a call uses the same few times repeatedly.
local function whole(n)
	local text = texts[n]
	if not text then
		text = string.format('%.0f', n)
		texts[n] = text
	end
	return text
end

local NOW = whole(now)

-- The maximum time and duration in a record. `at` is at most 366 days ahead, and `exp` 30 days after it. The maximum is
-- twice their sum, because Redis' clock may have gone back since.
local SPAN_MAX = 2 * (31622400000 + 2592000000)
local TIME_MAX, TRIES_MAX = now + SPAN_MAX, 1000000000
local n_unusable = 0

-- Converts a text from Redis to a number from 0 to `most`; a missing text is 0. tonumber() accepts 'nan', 'inf' and
-- '1e308' too: a number out of bounds is counted as unusable and is 0.
local function number(text, most)
	local n = text and tonumber(text)
	if n and n >= 0 and n <= most then
		return n
	elseif text then
		n_unusable = n_unusable + 1
	end
	return 0
end

-- Reads fields of a record. A key that holds something else counts as unusable, and gives nothing.
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

-- Reads a task's record. Returns nil if there is no record, or if the task is a watched one (watched.lua). Extra fields
-- that the caller names are in the second result, after index MORE, as Redis has them.
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

-- When an acknowledged task is checked next. Its answer can be lost after the PUBACK, with the instance that read it or
-- with the broker. So ACK_WAIT before its time is over the task is sent once more, unless it was already; the receiver
-- then repeats its last answer.
local function due_of_acked(r)
	local asked = r.sent > r.acked
	return r.acked + r.run - (asked and 0 or math.min(ACK_WAIT, math.floor(r.run / 2)))
end

local function tell(task, r, state, why)
	call('XADD', EVENTS, 'MAXLEN', '~', EVENTS_MAX, '*', 'task', task, 'receiver', r.receiver, 'sender', r.sender,
		'msg_id', r.msg_id, 'state', state, 'why', why, 'time_ms', NOW, 'node', NODE, unpack(r.marks or NO_MARKS))
end

-- Whether an answer to an ended task is already known. `why`: why the task ended; `noted`: the late answer that was
-- recorded before.
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

-- Makes tasks due that have moved into the window, from rank `first` on, if they waited for that.
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

-- Removes tasks that have ended, or lost their records, from the window: they would fill it forever.
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

-- Ends a task whose time is over, if the clock is trusted. `how`: the function that ends it; default: finish.
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

-- Calls `f` with the index of each item's first argument, and builds the answer.
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
