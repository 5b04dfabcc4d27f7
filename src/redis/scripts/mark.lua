-- SPDX-License-Identifier: MIT
--
-- Puts this run's mark in its place, and lets the clock of watching run on. The answer is a list: what stood in the mark's
-- place, false for nothing, '' for something that is no string; 1 if that was left there, else 0; the clock of watching; and
-- the time of Redis. (SET with GET would do on Redis 6.2; GETSET never replaces another type.)
--
-- A run that had its mark there puts it in the place of another one alone: by a mark that was on its way while the store
-- was emptied, over a connection that was lost since, nobody would find out that it was.
--
-- Of several nodes only who has the name, or nobody has it: while another run is entered under it, what is there stays.
--
-- The clock of watching, "MS LAST", counts the milliseconds in which a monitor saw the fleet; LAST is the time of Redis at
-- the last step. No step is longer than STEP_MS: so the clock stands still while no monitor sees, and a jump of Redis' time
-- counts for nothing. Where it is lost, or is more than the time since SINCE_MS (../watched.c), it begins at 0: each device
-- that is offline then counts as gone just now.
--
--   KEYS  monitor:NODE_ID; watched; of several nodes: nodes
--   ARGV  the mark, which begins with the run; '1' if it may be put where there is none, else '0'; '1' if this monitor sees,
--         else '0'; of several nodes: NODE_ID

local STEP_MS, MS_MAX = 10000, 35184372088831
local SINCE_MS = 1704067200000 -- 2024-01-01

local function string_at(key)
	local text = redis.pcall('GET', key)
	if type(text) == 'table' and text.err then
		return ''
	end
	return text
end

local function watch(now)
	local text = string_at(KEYS[2]) or ''
	local ms, last = string.match(text, '^(%d+) (%d+)$')
	ms, last = tonumber(ms), tonumber(last)
	local most = now > SINCE_MS and now - SINCE_MS or MS_MAX -- a clock before that date is wrong, and bounds nothing
	if not ms or ms > most or last > MS_MAX then
		ms, last = 0, now
	end
	if ARGV[3] == '1' then
		ms = ms + math.min(math.max(now - last, 0), STEP_MS)
		redis.call('SET', KEYS[2], string.format('%.0f %.0f', ms, now))
	end
	return ms
end

local function is_left()
	local member = KEYS[3] and redis.pcall('HGET', KEYS[3], ARGV[4])
	local run = type(member) == 'string' and string.match(member, '^([0-9a-f]+) ')
	return run and run ~= string.sub(ARGV[1], 1, #run)
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ms, old = watch(now), string_at(KEYS[1])
if is_left() then
	return {old, 1, ms, now}
end
if old or ARGV[2] == '1' then
	redis.call('SET', KEYS[1], ARGV[1])
else
	redis.call('DEL', KEYS[1]) -- a Redis that does not write says so
end
return {old, 0, ms, now}
