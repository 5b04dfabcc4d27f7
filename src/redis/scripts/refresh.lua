-- SPDX-License-Identifier: MIT
--
-- Refreshes the keys of devices whose stored seq and state are still ours. Redis Cluster is not supported.
--
--   KEYS  offline; then for each item: connected:ID, disconnected:ID, state:ID
--   ARGV  self; then for each item: id, seq, state, since, ttl, mine, n, and n arguments: fields of the state hash, each
--         with its value
--
-- `self` is a channel on which is said what the keyspace listener is to take for our own doing; '' where there is none.
-- `mine` says whose the connected key is: '1' ours; 'n' another program's as long as it is there; '0' another program's,
-- which is never touched.
--
-- The answer has one element per item: 0, refreshed; 1, what is stored is not this seq and state, nothing was written,
-- and the device is to be written anew; a text, this item failed with it.

local OFFLINE = KEYS[1]
local SELF = ARGV[1]

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
		if it.mine == '1' then
			redis.call('SET', it.k_connected, it.id, 'PX', it.ttl)
		elseif it.mine == 'n' then
			redis.call('SET', it.k_connected, it.id, 'PX', it.ttl, 'NX')
		end
		redis.call('DEL', it.k_disconnected)
		redis.call('ZREM', OFFLINE, it.id)
	else
		redis.call('SET', it.k_disconnected, it.id)
		if it.mine == '1' then
			redis.call('DEL', it.k_connected)
		end
		redis.call('ZADD', OFFLINE, it.since, it.id)
	end
	if have[3] or have[4] then
		redis.call('HDEL', it.k_state, 'once', 'own_timeout')
	end
	redis.call('HSET', it.k_state, unpack(ARGV, it.first, it.last))
	return 0
end

local function own(word)
	if SELF ~= '' then
		redis.pcall('PUBLISH', SELF, word)
	end
end

local answer = {}
local a, k = 2, 2
own('+')
while a <= #ARGV do
	local it = { id = ARGV[a], seq = ARGV[a + 1], state = ARGV[a + 2], since = ARGV[a + 3], ttl = ARGV[a + 4], mine = ARGV[a + 5] }
	it.k_connected, it.k_disconnected, it.k_state = KEYS[k], KEYS[k + 1], KEYS[k + 2]
	it.first = a + 7
	it.last = a + 6 + tonumber(ARGV[a + 6])
	a = it.last + 1
	k = k + 3
	local ok, r = pcall(refresh, it)
	answer[#answer + 1] = ok and r or tostring(type(r) == 'table' and r.err or r)
end
own('-')
return answer
