-- SPDX-License-Identifier: MIT
--
-- Writes transitions, snapshots and the broker's acknowledgements of clearings, in the given order. Redis Cluster is not
-- supported: the keys of one call belong to many devices, and three keys are shared.
--
--   KEYS  offline, outbox, events; then for each item: connected:ID, disconnected:ID, state:ID
--   ARGV  events_max, node, self; then either
--           'A', id
--         for an acknowledgement, or a group of items that have these arguments in common:
--           'E' or 'W', count, state, reason, group, ttl, mine, clearing ('1' or '0'), wait, form, n, and n arguments:
--                 further fields of the state hash, each with its value; then for each item of the group
--                 id, seq, since, last_seen, watched ('': none)
--
-- A device with parents begins its fields with `parent` and `timeout`, which its entry in the stream has too. A device
-- with a name or labels ends them with `name` and `labels`, which its entry has too. `wait` is the entry's wait_ms, or '';
-- `form` is the entry's form, or ''. `clearing`: the device is forgotten, and the broker has messages of it that are to be
-- cleared; the outbox has the id until the broker has acknowledged that.
--
-- 'E' is a transition: it is written once, with an entry in the stream. 'W' is a snapshot: it overwrites the stored
-- state unless that is newer, without an entry. 'A': the broker has cleared what it retained of the device.
-- `self` and `mine` as in refresh.lua.
--
-- A node of a cluster puts a fence before its items: see fence.lua. Then four rules are added. An entry in the stream
-- also has its epoch. A transition to the stored state adds no entry. A transition whose seq is stored counts as
-- written only if its own token wrote it. A snapshot adds an entry if the stored state differs or is missing, because
-- the other nodes only read the stream.
--
-- The answer has one element per item. A status: it was written, and this is its id in the stream. 0: the store has
-- this seq. A number above 0: the store has this newer seq, or another node's equal one, and nothing was written.
-- 'EPOCH ...': its fencing token is too old, and nothing was or will be written. Another text: the item failed with
-- this error and is to be sent again.
--
-- Sending an item again changes nothing. A transition is skipped unless its seq is newer than the stored one. A
-- forgotten device has no stored seq, so it gets its entry only if its hash still exists.
--
-- A command costs more than its work. So items are gathered until an id occurs twice. Then each shared key, and each
-- command that takes many keys, is called once for all of them.
--
-- A failed item is never taken for a written one. Each write begins with a command that Redis refuses if it is out of
-- memory, because Redis checks this only before a script's first write. The old seq is restored if the stream refuses
-- the entry.

include tokens
include fence

local KEYS, ARGV, try = KEYS, ARGV, redis.pcall
local OFFLINE, OUTBOX, EVENTS = KEYS[SHARED.offline], KEYS[SHARED.outbox], KEYS[SHARED.events]
local EVENTS_MAX, NODE, SELF = ARGV[TRANSITION.events_max], ARGV[TRANSITION.node], ARGV[TRANSITION.self]
local SEQ_MAX = 281474976710655
local AHEAD_MS, NO_CLOCK_MS = 86400000, 315360000000 -- a day; ten years
local ALWAYS = 7 -- fields that every state hash has
-- Fields that a state hash may have. embed.sh replaces REPORT_FIELDS by the list in core/report.c.
local REPORTED = { 'own_timeout', 'once', 'epoch', 'watched', 'parent', 'learned', 'gaps', 'captures', 'name', 'labels', REPORT_FIELDS }

-- By item: the positions of its row, its group and its keys, and its answer.
local arg_at, shared_at, key_at, answer = {}, {}, {}, {}
-- The gathered items; the stored seq of each (-1: none); whether another type than a hash is in its place; and their ids.
local gathered, have, replace, n_gathered = {}, {}, {}, 0
local busy = {}
local stuck = {} -- by id: the error of an earlier item of this call; a later item must not overtake it
local quiet = {} -- by item: the state does not change, so there is no entry

local function failed(reply)
	return type(reply) == 'table' and reply.err
end

local function fail(i, e)
	local text = tostring(type(e) == 'table' and e.err or e)
	answer[i] = text
	stuck[ARGV[arg_at[i] + ROW.id]] = text
end

-- Whether a stored seq above ours is impossible: more than a day ahead of both Redis' clock and ours. It counts as
-- none, or the device would keep its state for ever. Without the right to read Redis' clock, a stored seq must be ten
-- years ahead of ours.
local clock
local function is_absurd(stored, ours)
	if not clock then
		local t = try('TIME')
		clock = failed(t) and 0 or t[1] * 1000
	end
	return stored > math.max(clock > 0 and clock + AHEAD_MS or ours + NO_CLOCK_MS, ours + AHEAD_MS)
end

local function needs(key, kind)
	local t = redis.call('TYPE', key).ok
	return t == 'none' or t == kind
end

-- The stored seq (-1 if it is missing or malformed, which is older than all); and whether another type than a hash must
-- be replaced.
local function stored_seq(key)
	local text = try('HGET', key, 'seq')
	if type(text) == 'string' then
		local n = #text <= 15 and string.find(text, '^%d+$') and tonumber(text)
		return n and n <= SEQ_MAX and n or -1, false
	end
	if not failed(text) then
		return -1, false
	end
	if string.find(text.err, 'WRONGTYPE', 1, true) then
		return -1, true
	end
	error(text, 0)
end

-- With a fence: the additional fields of an entry.
local function fenced_fields(i, s)
	if not LETTERS then
		return
	elseif ARGV[s + WRITE.form] == '' then
		return 'epoch', epochs[token_of(i)]
	end
	return 'epoch', epochs[token_of(i)], 'form', ARGV[s + WRITE.form]
end

-- The additional fields of an entry of a device with known parents.
local function fields_of_child(i, s)
	local f = { 'parent', ARGV[s + WRITE.next + 1] }
	if ARGV[s + WRITE.state] == 'offline' then
		f[3], f[4] = 'timeout_ms', ARGV[s + WRITE.next + 3]
		if ARGV[s + WRITE.wait] ~= '' then
			f[5], f[6] = 'wait_ms', ARGV[s + WRITE.wait]
		end
	end
	local n = #f
	f[n + 1], f[n + 2], f[n + 3], f[n + 4] = fenced_fields(i, s)
	return unpack(f)
end

local function undescribed_fields(i, s)
	if ARGV[s + WRITE.n] ~= '0' and ARGV[s + WRITE.next] == 'parent' then
		return fields_of_child(i, s)
	end
	return fenced_fields(i, s)
end

-- The additional fields of an entry. `last`: the position of the group's last field that is not in them yet.
local function more_fields(i, s, last)
	local field = ARGV[last - 1]
	if field == 'name' or field == 'labels' then
		return field, ARGV[last], more_fields(i, s, last - 2)
	end
	return undescribed_fields(i, s)
end

local function add_event(i, a)
	local s = shared_at[i]
	return try('XADD', EVENTS, 'MAXLEN', '~', EVENTS_MAX, '*', 'id', ARGV[a + ROW.id], 'state', ARGV[s + WRITE.state], 'reason',
		ARGV[s + WRITE.reason], 'time_ms', ARGV[a + ROW.since], 'last_seen_ms', ARGV[a + ROW.last_seen], 'group', ARGV[s + WRITE.group], 'node', NODE, 'seq',
		ARGV[a + ROW.seq], more_fields(i, s, s + WRITE.n + ARGV[s + WRITE.n]))
end

-- --- many at once ----------------------------------------------------------------------------------------------------

-- Calls one command with all elements of a list; returns true if the list is empty.
local function all_of(command, key, list, n)
	if n == 0 then
		return true
	elseif key then
		return try(command, key, unpack(list, 1, n))
	end
	return try(command, unpack(list, 1, n))
end

-- Writes the connected keys of the online items, each with its TTL. An item whose write fails is removed from the
-- gathered ones.
local function write_connected()
	local n = 0
	for j = 1, n_gathered do
		local i, r = gathered[j], true
		local a, s, k = arg_at[i], shared_at[i], key_at[i]
		local mine = ARGV[s + WRITE.mine]
		if ARGV[s + WRITE.state] == 'online' and mine == '1' then
			r = try('SET', KEYS[k + KEY.connected], ARGV[a + ROW.id], 'PX', ARGV[s + WRITE.ttl])
		elseif ARGV[s + WRITE.state] == 'online' and mine == 'n' then
			r = try('SET', KEYS[k + KEY.connected], ARGV[a + ROW.id], 'PX', ARGV[s + WRITE.ttl], 'NX')
		end
		if failed(r) then
			fail(i, r)
		else
			n = n + 1
			gathered[n], have[n], replace[n] = i, have[j], replace[j]
		end
	end
	n_gathered = n
end

-- Whether the outbox has an id. It rarely has one, so one question replaces an HDEL for each call.
local used
local function outbox_is_used()
	used = used or redis.call('HLEN', OUTBOX)
	return used > 0
end

-- Writes the disconnected keys and the offline set for all gathered items. Returns the error, if any, and a function
-- that removes the opposite keys once the rest is written. A device that has a status again needs no clearing.
local function write_shared()
	local ids, set, zadd, del, zrem = {}, {}, {}, {}, {}
	local n_set, n_zadd, n_del, n_zrem = 0, 0, 0, 0
	for j = 1, n_gathered do
		local i = gathered[j]
		local a, s, k = arg_at[i], shared_at[i], key_at[i]
		local id = ARGV[a + ROW.id]
		ids[j] = id
		if ARGV[s + WRITE.state] == 'online' then
			n_del, n_zrem = n_del + 1, n_zrem + 1
			del[n_del], zrem[n_zrem] = KEYS[k + KEY.disconnected], id
		else
			set[n_set + 1], set[n_set + 2] = KEYS[k + KEY.disconnected], id
			zadd[n_zadd + 1], zadd[n_zadd + 2] = ARGV[a + ROW.since], id
			n_set, n_zadd = n_set + 2, n_zadd + 2
			if ARGV[s + WRITE.mine] == '1' then
				n_del = n_del + 1
				del[n_del] = KEYS[k + KEY.connected]
			end
		end
	end
	local wrong = failed(all_of('MSET', nil, set, n_set)) or failed(all_of('ZADD', OFFLINE, zadd, n_zadd))
	return wrong, function()
		all_of('DEL', nil, del, n_del)
		all_of('ZREM', OFFLINE, zrem, n_zrem)
		if outbox_is_used() then
			all_of('HDEL', OUTBOX, ids, n_gathered)
		end
	end
end

-- Removes the fields that the device does not report any more. A monitor that does not know `form` leaves it as it is.
local function drop_old(key, first, last, watched)
	local told, old = { watched = watched }, {}
	for at = first, last, 2 do
		told[ARGV[at]] = true
	end
	for _, name in ipairs(REPORTED) do
		if not told[name] then
			old[#old + 1] = name
		end
	end
	all_of('HDEL', key, old, #old)
end

-- Writes the hash and the stream's entry of one item.
local function write_own(i, stored, other)
	local a, s, key = arg_at[i], shared_at[i], KEYS[key_at[i] + KEY.state]
	local n, watched = tonumber(ARGV[s + WRITE.n]), ARGV[a + ROW.watched]
	if other then
		try('DEL', key)
	end
	local r
	if watched == '' then
		r = try('HSET', key, 'state', ARGV[s + WRITE.state], 'since', ARGV[a + ROW.since], 'last_seen', ARGV[a + ROW.last_seen],
			'reason', ARGV[s + WRITE.reason], 'group', ARGV[s + WRITE.group], 'node', NODE, 'seq', ARGV[a + ROW.seq],
			unpack(ARGV, s + WRITE.next, s + WRITE.n + n))
	else
		r = try('HSET', key, 'state', ARGV[s + WRITE.state], 'since', ARGV[a + ROW.since], 'last_seen', ARGV[a + ROW.last_seen],
			'reason', ARGV[s + WRITE.reason], 'group', ARGV[s + WRITE.group], 'node', NODE, 'seq', ARGV[a + ROW.seq],
			'watched', watched, unpack(ARGV, s + WRITE.next, s + WRITE.n + n))
	end
	if failed(r) then
		return fail(i, r)
	end
	if try('HLEN', key) ~= ALWAYS + n / 2 + (watched == '' and 0 or 1) then
		drop_old(key, s + WRITE.next, s + WRITE.n + n, watched ~= '')
	end
	if quiet[i] or (ARGV[s + WRITE.kind] ~= 'E' and not LETTERS) then
		return
	end
	local place = add_event(i, a)
	if failed(place) then
		try('HSET', key, 'seq', stored >= 0 and string.format('%.0f', stored) or '')
		if LETTERS then
			try('HSET', key, 'epoch', '')
		end
		return fail(i, place.err .. ': ' .. EVENTS)
	end
	answer[i] = { ok = place }
end

local function flush()
	if n_gathered > 0 then
		write_connected()
		local wrong, take_away = write_shared()
		for j = 1, n_gathered do
			if wrong then
				fail(gathered[j], wrong)
			else
				write_own(gathered[j], have[j], replace[j])
			end
		end
		if not wrong then
			take_away()
		end
	end
	n_gathered, busy = 0, {}
end

-- --- one by one ------------------------------------------------------------------------------------------------------

local function forget(i, a, k)
	flush() -- the stream keeps the order
	local s, id, existed = shared_at[i], ARGV[a + ROW.id], redis.call('EXISTS', KEYS[k + KEY.state]) == 1
	local place
	if ARGV[s + WRITE.clearing] == '1' then
		redis.call('HSET', OUTBOX, id, '')
		used = 1
	end
	redis.call('ZREM', OFFLINE, id)
	redis.call('DEL', KEYS[k + KEY.disconnected])
	if ARGV[s + WRITE.mine] == '1' then
		redis.call('DEL', KEYS[k + KEY.connected])
	end
	if ARGV[s + WRITE.kind] == 'E' and existed then
		place = add_event(i, a)
		if failed(place) then
			error(place, 0)
		end
	end
	redis.call('DEL', KEYS[k + KEY.state])
	return place and { ok = place } or 0
end

-- For a fenced item: whether its own token wrote the stored state; sets `quiet` if that state is also the new one.
-- After the stream refused an entry, the stored state has no epoch.
local function look(i, a, key)
	local has, t = try('HMGET', key, 'epoch', 'node', 'state'), token_of(i)
	quiet[i] = has[3] == ARGV[shared_at[i] + WRITE.state] and has[1] ~= ''
	return has[1] == epochs[t] and has[2] == holders[t]
end

local function gather(i, a, k)
	local s, seq = shared_at[i], tonumber(ARGV[a + ROW.seq])
	local stored, other = stored_seq(KEYS[k + KEY.state])
	if stored > seq and is_absurd(stored, seq) then
		stored = -1
	end
	local transition = ARGV[s + WRITE.kind] == 'E'
	local ours = not LETTERS or look(i, a, KEYS[k + KEY.state])
	if stored > seq then
		answer[i] = stored
	elseif stored == seq and transition then
		answer[i] = ours and 0 or stored
	elseif ARGV[s + WRITE.state] == 'forgotten' then
		answer[i] = forget(i, a, k)
	else
		n_gathered = n_gathered + 1
		gathered[n_gathered], have[n_gathered], replace[n_gathered] = i, stored, other
		busy[ARGV[a + ROW.id]] = true
	end
end

local function acknowledge(_, a)
	redis.call('HDEL', OUTBOX, ARGV[a + ROW.id])
end

local function own(word)
	if SELF ~= '' then
		try('PUBLISH', SELF, word)
	end
end

if not needs(OFFLINE, 'zset') then
	return redis.error_reply('WRONGTYPE ' .. OFFLINE .. ' is not a sorted set')
elseif not needs(OUTBOX, 'hash') then
	return redis.error_reply('WRONGTYPE ' .. OUTBOX .. ' is not a hash')
elseif not needs(EVENTS, 'stream') then
	return redis.error_reply('WRONGTYPE ' .. EVENTS .. ' is not a stream')
end

local wrong, a, k = raise_fence(TRANSITION.next, SHARED.next, false)
if wrong then
	return wrong
end
local i = 0

-- Handles one item.
local function take(f, s, row)
	i = i + 1
	arg_at[i], shared_at[i], key_at[i], answer[i] = row, s, k, 0
	local id = ARGV[row + ROW.id]
	if busy[id] then
		flush()
	end
	if stuck[id] then
		answer[i] = stuck[id]
	elseif LETTERS and refused[token_of(i)] then
		answer[i] = refused[token_of(i)]
	else
		local ok, e = pcall(f, i, row, k)
		if not ok then
			fail(i, e)
		end
	end
	k = k + KEY.next
end

own('+')
while a <= STOP do
	if ARGV[a + WRITE.kind] == 'A' then
		take(acknowledge, a, a + ACK.id)
		a = a + ACK.next
	else
		local s, n = a, tonumber(ARGV[a + WRITE.count])
		a = a + WRITE.next + tonumber(ARGV[a + WRITE.n])
		for _ = 1, n do
			take(gather, s, a)
			a = a + ROW.next
		end
	end
end
flush()
own('-')
return answer
