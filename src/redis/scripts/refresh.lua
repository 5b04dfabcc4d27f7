-- SPDX-License-Identifier: MIT
--
-- Refreshes the keys of devices whose stored seq and state are still ours. Redis Cluster is not supported.
--
--   KEYS  offline; then for each item that is written in full connected:ID, disconnected:ID, state:ID; and for each light
--         one state:ID, connected:ID
--   ARGV  self; then either
--           'F', id, seq, state, since, ttl, mine, n, and n arguments: fields of the state hash, each with its value
--         or, for light items that have these in common,
--           'L', how many, ttl, timeout, group, source, n; and for each of them seq, last_seen and n arguments as above
--
-- A light item is online, its connected key is ours, and since the last full one nothing else has been written of it: only
-- what dies by itself, or has changed, is written. Should its connected key be gone all the same, it asks for a full one.
--
-- A Redis without memory still takes DEL and PEXPIRE, and then whatever the same script writes behind them: items begin
-- with one of these, so that no device that beats loses its connected key. What is refreshed was there before.
--
-- `self` is a channel on which is said what the keyspace listener is to take for our own doing; '' where there is none.
-- `mine` says whose the connected key is: '1' ours; 'n' another program's as long as it is there; '0' another program's,
-- which is never touched.
--
-- The answer has one element per item: 0, refreshed; 1, what is stored is not this seq and state, nothing was written,
-- and the device is to be written anew; 2, nothing was written, and a full refresh is due; a text, this item failed with
-- it.

local OFFLINE = KEYS[1]
local SELF = ARGV[1]

local answer, answers = {}, 0

local function failed(reply)
	return type(reply) == 'table' and reply.err
end

-- What HMGET has found in the place of a device's hash. The place of an ownership epoch: an equal seq under another epoch
-- is not ours either.
local function differs(have, seq, state)
	if have[1] == seq and have[2] == state then
		return false
	end
	if failed(have) and not string.find(have.err, 'WRONGTYPE', 1, true) then
		error(have, 0)
	end
	return true
end

local function full(it)
	local have = redis.pcall('HMGET', it.k_state, 'seq', 'state', 'once', 'own_timeout')
	if differs(have, it.seq, it.state) then
		return 1
	end
	if it.state == 'online' then
		redis.call('DEL', it.k_disconnected)
		redis.call('ZREM', OFFLINE, it.id)
		if it.mine == '1' then
			redis.call('SET', it.k_connected, it.id, 'PX', it.ttl)
		elseif it.mine == 'n' then
			redis.call('SET', it.k_connected, it.id, 'PX', it.ttl, 'NX')
		end
	else
		if it.mine == '1' then
			redis.call('DEL', it.k_connected)
		end
		redis.call('SET', it.k_disconnected, it.id)
		redis.call('ZADD', OFFLINE, it.since, it.id)
	end
	if have[3] or have[4] then
		redis.call('HDEL', it.k_state, 'once', 'own_timeout')
	end
	redis.call('HSET', it.k_state, unpack(ARGV, it.first, it.last))
	return 0
end

-- From item s.a on, until all are done or one fails. A table and a closure for each item would cost as much as a command.
local function light(s)
	local call, try, argv, keys, n = redis.call, redis.pcall, ARGV, KEYS, s.n
	local ttl, timeout, group, source = s.ttl, s.timeout, s.group, s.source
	while s.a < s.stop do
		local a, state, connected = s.a, keys[s.k], keys[s.k + 1]
		s.a, s.k = a + 2 + n, s.k + 2
		local have, r = try('HMGET', state, 'seq', 'state'), 0
		if differs(have, argv[a], 'online') then
			r = 1
		elseif call('PEXPIRE', connected, ttl) == 0 then
			r = 2
		else
			call('HSET', state, 'last_seen', argv[a + 1], 'timeout', timeout, 'group', group, 'source', source,
				unpack(argv, a + 2, a + 1 + n))
		end
		answers = answers + 1
		answer[answers] = r
	end
end

local function put_error(e)
	answers = answers + 1
	answer[answers] = tostring(type(e) == 'table' and e.err or e)
end

local function own(word)
	if SELF ~= '' then
		redis.pcall('PUBLISH', SELF, word)
	end
end

local a, k = 2, 2
own('+')
while a <= #ARGV do
	if ARGV[a] == 'L' then
		local s = { a = a + 7, k = k, ttl = ARGV[a + 2], timeout = ARGV[a + 3], group = ARGV[a + 4], source = ARGV[a + 5] }
		s.n = tonumber(ARGV[a + 6])
		s.stop = s.a + tonumber(ARGV[a + 1]) * (2 + s.n)
		a = s.stop
		while s.a < s.stop do
			local ok, e = pcall(light, s)
			if not ok then
				put_error(e)
			end
		end
		k = s.k
	else
		local it = { id = ARGV[a + 1], seq = ARGV[a + 2], state = ARGV[a + 3], since = ARGV[a + 4], ttl = ARGV[a + 5] }
		it.mine = ARGV[a + 6]
		it.k_connected, it.k_disconnected, it.k_state = KEYS[k], KEYS[k + 1], KEYS[k + 2]
		it.first = a + 8
		it.last = a + 7 + tonumber(ARGV[a + 7])
		a = it.last + 1
		k = k + 3
		local ok, r = pcall(full, it)
		if ok then
			answers = answers + 1
			answer[answers] = r
		else
			put_error(r)
		end
	end
end
own('-')
return answer
