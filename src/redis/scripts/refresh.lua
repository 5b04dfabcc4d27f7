-- SPDX-License-Identifier: MIT
--
-- Refreshes the keys of devices whose stored seq and state are still ours. Redis Cluster is not supported.
--
--   KEYS  offline; then for each item: connected:ID, disconnected:ID, state:ID
--   ARGV  for each item: id, seq, state, since, ttl, n, and n arguments: fields of the state hash, each with its value
--
-- The answer has one element per item: 0, refreshed; 1, what is stored is not this seq and state, nothing was written,
-- and the device is to be written anew; a text, this item failed with it.

local OFFLINE = KEYS[1]

local function failed(reply)
	return type(reply) == 'table' and reply.err
end

local function refresh(it)
	local have = redis.pcall('HMGET', it.k_state, 'seq', 'state', 'once', 'own_timeout')
	if failed(have) then
		if string.find(have.err, 'WRONGTYPE', 1, true) then
			return 1
		end
		error(have, 0)
	end
	-- The place of an ownership epoch: an equal seq under another epoch is not ours either.
	if have[1] ~= it.seq or have[2] ~= it.state then
		return 1
	end
	if it.state == 'online' then
		redis.call('SET', it.k_connected, it.id, 'PX', it.ttl)
		redis.call('DEL', it.k_disconnected)
		redis.call('ZREM', OFFLINE, it.id)
	else
		redis.call('SET', it.k_disconnected, it.id)
		redis.call('DEL', it.k_connected)
		redis.call('ZADD', OFFLINE, it.since, it.id)
	end
	if have[3] or have[4] then
		redis.call('HDEL', it.k_state, 'once', 'own_timeout')
	end
	redis.call('HSET', it.k_state, unpack(ARGV, it.first, it.last))
	return 0
end

local answer = {}
local a, k = 1, 2
while a <= #ARGV do
	local it = { id = ARGV[a], seq = ARGV[a + 1], state = ARGV[a + 2], since = ARGV[a + 3], ttl = ARGV[a + 4] }
	it.k_connected, it.k_disconnected, it.k_state = KEYS[k], KEYS[k + 1], KEYS[k + 2]
	it.first = a + 6
	it.last = a + 5 + tonumber(ARGV[a + 5])
	a = it.last + 1
	k = k + 3
	local ok, r = pcall(refresh, it)
	answer[#answer + 1] = ok and r or tostring(type(r) == 'table' and r.err or r)
end
return answer
