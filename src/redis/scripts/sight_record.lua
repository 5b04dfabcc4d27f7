-- SPDX-License-Identifier: MIT
--
-- Writes this run's sight record and advances the clock of watching. The answer is a list: the previous value of the sight record's key
-- (false for none, '' if it is no string); 1 if that value was kept, else 0; the clock of watching; Redis' time in ms.
-- (SET with GET would need Redis 6.2, and GETSET never replaces another type.)
--
-- A run whose sight record was there before only replaces an existing sight record. Otherwise a delayed sight record of a lost connection could
-- be written after the store was emptied, and the loss would go unnoticed.
--
-- In a cluster, the sight record is kept while another run is the member under this NODE_ID.
--
-- The clock of watching, "MS LAST", counts the milliseconds during which a monitor saw the fleet. LAST is Redis' time
-- at the last step. No step is longer than STEP_MS. So the clock stands still while no monitor sees, and a jump of
-- Redis' time has no effect. If the clock is missing, or is greater than the time since SINCE_MS (../watched.c), it
-- begins at 0. Then each offline device counts as offline since now.
--
--   KEYS  monitor:NODE_ID; watched; in a cluster also nodes
--   ARGV  the sight record, which begins with the run; '1' to write it even if no sight record exists, else '0'; '1' if this monitor
--         sees, else '0'; in a cluster also NODE_ID

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
	local most = now > SINCE_MS and now - SINCE_MS or MS_MAX -- a clock before that date is wrong and sets no bound
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
	redis.call('DEL', KEYS[1]) -- a DEL makes a Redis that refuses writes answer with its error
end
return {old, 0, ms, now}
