-- SPDX-License-Identifier: MIT
--
-- Writes transitions, whole devices and acknowledgements of the broker, in the order in which they are given.
-- Redis Cluster is not supported: the keys of one call belong to many devices and to three keys that all share.
--
--   KEYS  offline, outbox, events; then for each item: connected:ID, disconnected:ID, state:ID
--   ARGV  events_max, node, self; then for each item either
--           'A', id, seq, cleared ('1' or '0')
--         or
--           'E' or 'W', id, seq, state, reason, since, last_seen, group, ttl, mine, outbox ('1' or '0'), payload, n, and n
--           arguments: further fields of the state hash, each with its value
--
-- `self` and `mine` as in refresh.lua.
--
-- 'E' is an edge: written once, with an entry in the stream. 'W' writes the current state over whatever is there, without
-- one. 'A': the broker has the retained status as of seq (or its clearing).
--
-- The answer has one element per item: a status, an edge was written and this is the place of its entry in the stream;
-- 0, the store holds this seq; a number above 0, it holds that newer one, and nothing was written; a text, this item
-- failed with it and is to be sent again.
--
-- Sending an item again changes nothing: an edge is skipped unless its seq is newer than the stored one, and a
-- forgotten device, whose seq is gone with its hash, gets its stream entry only while that hash is there.
--
-- What stores something begins with a write that Redis refuses when it has no memory (it asks only before a script's first
-- write), and seq is taken back if the stream refuses the entry: a failed item is never taken for a written one.

local OFFLINE, OUTBOX, EVENTS = KEYS[1], KEYS[2], KEYS[3]
local EVENTS_MAX, NODE, SELF = ARGV[1], ARGV[2], ARGV[3]
local SEQ_MAX = 281474976710655

-- A seq as stored; whatever is not one is older than all.
local function seq_of(text)
	if type(text) ~= 'string' or #text > 15 or not string.find(text, '^%d+$') then
		return -1
	end
	local n = tonumber(text)
	return n <= SEQ_MAX and n or -1
end

local function error_text(e)
	return tostring(type(e) == 'table' and e.err or e)
end

local function failed(reply)
	return type(reply) == 'table' and reply.err
end

local function needs(key, kind)
	local t = redis.call('TYPE', key).ok
	return t == 'none' or t == kind
end

-- The stored seq and whether something else than a hash is in its place, which is then replaced.
local function stored_seq(key)
	local text = redis.pcall('HGET', key, 'seq')
	if failed(text) then
		if string.find(text.err, 'WRONGTYPE', 1, true) then
			return -1, true
		end
		error(text, 0)
	end
	return seq_of(text), false
end

local function add_event(it)
	return redis.pcall('XADD', EVENTS, 'MAXLEN', '~', EVENTS_MAX, '*', 'id', it.id, 'state', it.state, 'reason',
		it.reason, 'time_ms', it.since, 'last_seen_ms', it.last_seen, 'group', it.group, 'node', NODE, 'seq', it.seq)
end

local function forget(it)
	local existed = redis.call('EXISTS', it.k_state) == 1
	local place
	if it.outbox then
		redis.call('HSET', OUTBOX, it.id, '')
	end
	redis.call('ZREM', OFFLINE, it.id)
	redis.call('DEL', it.k_disconnected)
	if it.mine == '1' then
		redis.call('DEL', it.k_connected)
	end
	if it.kind == 'E' and existed then
		place = add_event(it)
		if failed(place) then
			error(place, 0)
		end
	end
	redis.call('DEL', it.k_state)
	return place
end

local function store(it, have, replace)
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
	if it.outbox then
		redis.call('HSET', OUTBOX, it.id, it.payload)
	end
	if replace then
		redis.call('DEL', it.k_state)
	else
		redis.call('HDEL', it.k_state, 'own_timeout', 'once', 'battery', 'rssi', 'ip', 'version', 'uptime', 'data')
	end
	redis.call('HSET', it.k_state, 'state', it.state, 'since', it.since, 'last_seen', it.last_seen, 'reason',
		it.reason, 'group', it.group, 'node', NODE, 'seq', it.seq, unpack(ARGV, it.first, it.last))
	if it.kind == 'E' then
		local place = add_event(it)
		if failed(place) then
			redis.call('HSET', it.k_state, 'seq', have >= 0 and string.format('%.0f', have) or '')
			error(place, 0)
		end
		return place
	end
end

local function write(it)
	local seq = tonumber(it.seq)
	local have, replace = stored_seq(it.k_state)
	-- Here an ownership epoch would be compared first: an older epoch is refused like an older seq, a newer one wins
	-- whatever its seq.
	if have > seq then
		return have
	end
	if have == seq and it.kind == 'E' then
		return 0
	end
	local place
	if it.state == 'forgotten' then
		place = forget(it)
	else
		place = store(it, have, replace)
	end
	return place and { ok = place } or 0
end

local function acknowledge(it)
	if it.cleared then
		if redis.call('HGET', OUTBOX, it.id) == '' then
			redis.call('HDEL', OUTBOX, it.id)
		end
	elseif stored_seq(it.k_state) == tonumber(it.seq) then
		redis.call('HDEL', OUTBOX, it.id)
	end
	return 0
end

local function own(word)
	if SELF ~= '' then
		redis.pcall('PUBLISH', SELF, word)
	end
end

if not needs(OFFLINE, 'zset') then
	return redis.error_reply('WRONGTYPE ' .. OFFLINE .. ' is not a sorted set')
elseif not needs(OUTBOX, 'hash') then
	return redis.error_reply('WRONGTYPE ' .. OUTBOX .. ' is not a hash')
elseif not needs(EVENTS, 'stream') then
	return redis.error_reply('WRONGTYPE ' .. EVENTS .. ' is not a stream')
end

local answer = {}
local stuck = {} -- by id: what an earlier item of this call failed with; a later one must not overtake it
local a, k = 4, 4
own('+')
while a <= #ARGV do
	local it = { kind = ARGV[a], id = ARGV[a + 1], seq = ARGV[a + 2] }
	it.k_connected, it.k_disconnected, it.k_state = KEYS[k], KEYS[k + 1], KEYS[k + 2]
	k = k + 3
	local f = write
	if it.kind == 'A' then
		it.cleared = ARGV[a + 3] == '1'
		a = a + 4
		f = acknowledge
	else
		it.state, it.reason, it.since, it.last_seen = ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6]
		it.group, it.ttl, it.mine = ARGV[a + 7], ARGV[a + 8], ARGV[a + 9]
		it.outbox, it.payload = ARGV[a + 10] == '1', ARGV[a + 11]
		it.first = a + 13
		it.last = a + 12 + tonumber(ARGV[a + 12])
		a = it.last + 1
	end
	if not stuck[it.id] then
		local ok, r = pcall(f, it)
		if not ok then
			stuck[it.id] = error_text(r)
		end
		answer[#answer + 1] = ok and r or stuck[it.id]
	else
		answer[#answer + 1] = stuck[it.id]
	end
end
own('-')
return answer
