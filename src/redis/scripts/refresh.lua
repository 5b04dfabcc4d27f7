-- SPDX-License-Identifier: MIT
--
-- Refreshes the keys of devices whose stored seq and state are still ours. Redis Cluster is not supported.
--
--   KEYS  offline; then for each full item connected:ID, disconnected:ID, state:ID; for each light one state:ID,
--         connected:ID
--   ARGV  self; then either
--           'F', id, seq, state, since, ttl, mine, n, and n arguments: fields of the state hash, each with its value
--         or, for light items with these common values,
--           'L', count, ttl, timeout, group, source, n; and for each item seq, last_seen and n arguments as above
--
-- A light item is online, its connected key is ours, and only light or plain refreshes have followed its last full one.
-- So it writes only values that expire or that have changed. If its connected key is missing nevertheless, the answer
-- asks for a full refresh. A plain refresh only extends the TTL of the connected key, so it needs no script.
--
-- If Redis is out of memory, it still accepts DEL and PEXPIRE, and then all further writes of the same script. So the
-- first write of each online item is one of these, and a device that sends heartbeats keeps its connected key. This
-- takes little memory, because the refreshed keys existed before.
--
-- `self` is the channel on which the script announces its own writes to the keyspace listener; '' for none. `mine` is
-- the owner of the connected key. '1': it is ours. 'n': another program's while it exists. '0': another program's,
-- never to be touched.
--
-- A node of a cluster puts a fence before its items: see fence.lua. The fence proves that the node owns the device, so
-- the epoch in the hash stays as it is.
--
-- The answer has one element per item. 0: refreshed. 1: the stored seq or state differs, nothing was written, and a
-- snapshot is needed. 2: nothing was written, and a full refresh is needed. 'EPOCH ...': its fencing token is too old,
-- and nothing was or will be written. Another text: the error of this item.

include tokens
include fence

local OFFLINE = KEYS[REFRESHED.offline]
local SELF = ARGV[REFRESH.self]

local answer, answers = {}, 0

local function failed(reply)
	return type(reply) == 'table' and reply.err
end

-- Whether a device's hash, read with HMGET, has another seq or state. A value that is not a hash differs too.
local function differs(have, seq, state)
	if have[1] == seq and have[2] == state then
		return false
	end
	if failed(have) and not string.find(have.err, 'WRONGTYPE', 1, true) then
		error(have, 0)
	end
	return true
end

-- The refusal of the item of this number; nil if it is not refused.
local function barred(i)
	return refused[token_of(i)]
end

local function full(it)
	local wrong = LETTERS and barred(answers + 1)
	if wrong then
		return wrong
	end
	local have = redis.pcall('HMGET', it.k_state, 'seq', 'state', 'once', 'own_timeout', 'parent', 'gaps', 'captures', 'labels', 'name')
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
	if have[3] or have[4] or have[5] or have[6] or have[7] or have[8] or have[9] then
		redis.call('HDEL', it.k_state, 'once', 'own_timeout', 'parent', 'learned', 'gaps', 'captures', 'labels', 'name')
	end
	redis.call('HSET', it.k_state, unpack(ARGV, it.first, it.last))
	return 0
end

-- Writes items from s.a on until all are done or one fails. A table and a closure for each item would cost as much as a
-- command.
local function light(s)
	local call, try, argv, keys, n = redis.call, redis.pcall, ARGV, KEYS, s.n
	local ttl, timeout, group, source = s.ttl, s.timeout, s.group, s.source
	while s.a < s.stop do
		local a, state, connected = s.a, keys[s.k + BEATKEY.state], keys[s.k + BEATKEY.connected]
		s.a, s.k = a + BEAT.next + n, s.k + BEATKEY.next
		local wrong, r = LETTERS and barred(answers + 1), 0
		local have = not wrong and try('HMGET', state, 'seq', 'state')
		if wrong then
			r = wrong
		elseif differs(have, argv[a + BEAT.seq], 'online') then
			r = 1
		elseif call('PEXPIRE', connected, ttl) == 0 then
			r = 2
		else
			call('HSET', state, 'last_seen', argv[a + BEAT.last_seen], 'timeout', timeout, 'group', group, 'source', source,
				unpack(argv, a + BEAT.next, a + BEAT.last_seen + n))
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

local wrong, a, k = raise_fence(REFRESH.next, REFRESHED.next, true)
if wrong then
	return wrong
end
own('+')
while a <= STOP do
	if ARGV[a + LIGHT.kind] == 'L' then
		local s = { a = a + LIGHT.next, k = k, ttl = ARGV[a + LIGHT.ttl], timeout = ARGV[a + LIGHT.timeout] }
		s.group, s.source, s.n = ARGV[a + LIGHT.group], ARGV[a + LIGHT.source], tonumber(ARGV[a + LIGHT.n])
		s.stop = s.a + tonumber(ARGV[a + LIGHT.count]) * (BEAT.next + s.n)
		a = s.stop
		while s.a < s.stop do
			local ok, e = pcall(light, s)
			if not ok then
				put_error(e)
			end
		end
		k = s.k
	else
		local it = { id = ARGV[a + FULL.id], seq = ARGV[a + FULL.seq], state = ARGV[a + FULL.state] }
		it.since, it.ttl, it.mine = ARGV[a + FULL.since], ARGV[a + FULL.ttl], ARGV[a + FULL.mine]
		it.k_connected, it.k_disconnected = KEYS[k + KEY.connected], KEYS[k + KEY.disconnected]
		it.k_state = KEYS[k + KEY.state]
		it.first = a + FULL.next
		it.last = a + FULL.n + tonumber(ARGV[a + FULL.n])
		a = it.last + 1
		k = k + KEY.next
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
