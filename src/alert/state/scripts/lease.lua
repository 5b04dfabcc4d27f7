-- SPDX-License-Identifier: MIT
--
-- For take.lua and renew.lua: the hash device:alert and the lease.

local LEASE, ALERT = KEYS[LEASED.lease], KEYS[LEASED.alert]
local HOLDER = ARGV[TAKE.node] .. ' ' .. ARGV[TAKE.run]
local time = redis.call('TIME')
local NOW_S, NOW = tonumber(time[1]), string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
-- Ten years: an epoch beyond that is another program's.
local AHEAD_S = 315360000

local function fields()
	local t = redis.call('TYPE', ALERT).ok
	if t ~= 'none' and t ~= 'hash' then
		redis.call('DEL', ALERT)
	end
	return redis.call('HMGET', ALERT, 'epoch', 'holder', 'commits', 'clean')
end

local function epoch_of(text)
	local n = type(text) == 'string' and #text <= 15 and string.find(text, '^%d+$') and tonumber(text)
	return n and n <= NOW_S + AHEAD_S and n or 0
end

local function lease()
	local t = redis.pcall('GET', LEASE)
	return type(t) == 'string' and t or nil
end

local function write_lease(epoch)
	redis.call('SET', LEASE, epoch .. ' ' .. HOLDER, 'PX', ARGV[TAKE.ttl])
end

local function bound_lease(text)
	local left, most = redis.pcall('PTTL', LEASE), tonumber(ARGV[TAKE.ttl])
	if type(left) == 'number' and (left < 0 or left > most) then
		redis.call('SET', LEASE, text, 'PX', most)
	end
end
