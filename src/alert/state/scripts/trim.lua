-- SPDX-License-Identifier: MIT
--
-- Removes closed incidents: those that closed before a time, and the oldest ones beyond a number.
--
--   KEYS  KEYED of `places`
--   ARGV  TRIM: holder, epoch, the prefix of all keys, the time in ms, the number that is kept, how many are removed at
--         most
--
-- Answers how many were removed; -1: another run is the holder.

local ALERT, INCIDENTS, CLOSED = KEYS[KEYED.alert], KEYS[KEYED.incidents], KEYS[KEYED.closed]
local PREFIX, LIMIT = ARGV[TRIM.prefix], tonumber(ARGV[TRIM.limit])

local has = redis.pcall('HMGET', ALERT, 'epoch', 'holder')
if has.err or has[2] ~= ARGV[TRIM.holder] or has[1] ~= ARGV[TRIM.epoch] then
	return -1
end
local old = redis.pcall('ZRANGEBYSCORE', CLOSED, '-inf', ARGV[TRIM.before], 'LIMIT', 0, LIMIT)
if old.err then
	redis.call('DEL', CLOSED)
	return 0
end
if #old == 0 then
	local more = redis.call('ZCARD', CLOSED) - tonumber(ARGV[TRIM.most])
	if more > 0 then
		old = redis.call('ZRANGE', CLOSED, 0, math.min(more, LIMIT) - 1)
	end
end
for _, id in ipairs(old) do
	redis.call('ZREM', CLOSED, id)
	redis.call('ZREM', INCIDENTS, id)
	redis.call('DEL', PREFIX .. 'incident:' .. id, PREFIX .. 'incident:' .. id .. ':members')
end
return #old
