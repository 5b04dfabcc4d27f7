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
-- The answer has one element per item. A text that begins with a digit: the item was written, and this is its id in the
-- stream. 0: the store has this seq. A number above 0: the store has this newer seq, or another node's equal one, and
-- nothing was written. 'EPOCH ...': its fencing token is too old, and nothing was or will be written. Another text: the
-- item failed with this error and is to be sent again.
--
-- Sending an item again changes nothing. A transition is skipped unless its seq is newer than the stored one. A
-- forgotten device has no stored seq, so it gets its entry only if its hash still exists.
--
-- A command costs more than its work. So items are gathered until an id occurs twice. Then each shared key, and each
-- command that takes many keys, is called once for all of them. The arguments of the commands that each item needs are
-- prepared once for its group.
--
-- A failed item is never taken for a written one. Each write begins with a command that Redis refuses if it is out of
-- memory, because Redis checks this only before a script's first write. The old seq is restored if the stream refuses
-- the entry.

include tokens
include fence

local KEYS, ARGV, try, unpack, find = KEYS, ARGV, redis.pcall, unpack, string.find
local OFFLINE, OUTBOX, EVENTS = KEYS[SHARED.offline], KEYS[SHARED.outbox], KEYS[SHARED.events]
local EVENTS_MAX, NODE, SELF = ARGV[TRANSITION.events_max], ARGV[TRANSITION.node], ARGV[TRANSITION.self]
local SEQ_MAX = 281474976710655
local AHEAD_MS, NO_CLOCK_MS = 86400000, 315360000000 -- a day; ten years
local ALWAYS = 7 -- fields that every state hash has
-- Fields that a state hash may have. embed.sh replaces REPORT_FIELDS by the list in core/report.c.
local REPORTED = { 'own_timeout', 'once', 'epoch', 'watched', 'parent', 'learned', 'gaps', 'captures', 'name', 'labels', REPORT_FIELDS }

local i, answer = 0, {} -- the present item, counted from 1; and the answers
-- Of each gathered item: its number, group, positions of its row and keys, its stored seq (-1: none), and whether another
-- type than a hash is in its place. `busy`: the ids of the gathered items.
local items, groups, rows, keys, have, replace, n_gathered = {}, {}, {}, {}, {}, {}, 0
local busy = {}
local stuck, any_stuck = {}, false -- by id: the error of an earlier item of this call; a later item must not overtake it
local quiet = {} -- by item: the state does not change, so there is no entry
local any_connects = false -- whether an item may write a connected key

local function failed(reply)
	return type(reply) == 'table' and reply.err
end

local function fail(item, id, e)
	local text = tostring(type(e) == 'table' and e.err or e)
	answer[item] = text
	stuck[id], any_stuck = text, true
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

-- The stored seq (-1 if it is missing or malformed, which is older than all); whether another type than a hash must be
-- replaced; and the error, if any. A text has no `err`.
local function stored_seq(key)
	local text = try('HGET', key, 'seq')
	if not text then
		return -1
	elseif not text.err then
		local n = #text <= 15 and find(text, '^%d+$') and text + 0
		return n and n <= SEQ_MAX and n or -1
	elseif find(text.err, 'WRONGTYPE', 1, true) then
		return -1, true
	end
	return -1, false, text.err
end

-- --- a group ---------------------------------------------------------------------------------------------------------

-- With a fence: the additional fields of an entry. All items of a group have the same epoch.
local function fenced_fields(s)
	if not LETTERS then
		return
	elseif ARGV[s + WRITE.form] == '' then
		return 'epoch', epochs[token_of(i + 1)]
	end
	return 'epoch', epochs[token_of(i + 1)], 'form', ARGV[s + WRITE.form]
end

-- The additional fields of an entry of a device with known parents.
local function fields_of_child(s)
	local f = { 'parent', ARGV[s + WRITE.next + 1] }
	if ARGV[s + WRITE.state] == 'offline' then
		f[3], f[4] = 'timeout_ms', ARGV[s + WRITE.next + 3]
		if ARGV[s + WRITE.wait] ~= '' then
			f[5], f[6] = 'wait_ms', ARGV[s + WRITE.wait]
		end
	end
	local n = #f
	f[n + 1], f[n + 2], f[n + 3], f[n + 4] = fenced_fields(s)
	return unpack(f)
end

local function undescribed_fields(s)
	if ARGV[s + WRITE.n] ~= '0' and ARGV[s + WRITE.next] == 'parent' then
		return fields_of_child(s)
	end
	return fenced_fields(s)
end

-- The additional fields of an entry. `last`: the position of the group's last field that is not in them yet.
local function more_fields(s, last)
	local field = ARGV[last - 1]
	if field == 'name' or field == 'labels' then
		return field, ARGV[last], more_fields(s, last - 2)
	end
	return undescribed_fields(s)
end

-- The group at a position: what its items have in common, with the arguments of HSET and XADD, in which only those of
-- the single item are missing.
local function group_at(s)
	local state, reason, name, mine = ARGV[s + WRITE.state], ARGV[s + WRITE.reason], ARGV[s + WRITE.group], ARGV[s + WRITE.mine]
	local first, last = s + WRITE.next, s + WRITE.n + ARGV[s + WRITE.n]
	local transition = ARGV[s + WRITE.kind] == 'E'
	local g = {
		first = first, last = last, state = state, mine = mine == '1', transition = transition,
		enters = transition or LETTERS,
		online = state == 'online', forgotten = state == 'forgotten',
		connects = state == 'online' and (mine == '1' or mine == 'n'), ttl = ARGV[s + WRITE.ttl],
		clearing = ARGV[s + WRITE.clearing] == '1',
		hash = { '', 'state', state, 'since', '', 'last_seen', '', 'reason', reason, 'group', name, 'node', NODE, 'seq', '',
			unpack(ARGV, first, last) },
		entry = { EVENTS, 'MAXLEN', '~', EVENTS_MAX, '*', 'id', '', 'state', state, 'reason', reason, 'time_ms', '',
			'last_seen_ms', '', 'group', name, 'node', NODE, 'seq', '', more_fields(s, last) },
	}
	g.n_hash, g.n_entry, g.size = #g.hash, #g.entry, ALWAYS + (last - first + 1) / 2
	any_connects = any_connects or g.connects
	return g
end

local function add_event(g, row)
	local e = g.entry
	e[7], e[13], e[15], e[21] = ARGV[row + ROW.id], ARGV[row + ROW.since], ARGV[row + ROW.last_seen], ARGV[row + ROW.seq]
	return try('XADD', unpack(e, 1, g.n_entry))
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
		local g, id, r = groups[j], ARGV[rows[j] + ROW.id], true
		if g.connects and g.mine then
			r = try('SET', KEYS[keys[j] + KEY.connected], id, 'PX', g.ttl)
		elseif g.connects then
			r = try('SET', KEYS[keys[j] + KEY.connected], id, 'PX', g.ttl, 'NX')
		end
		if failed(r) then
			fail(items[j], id, r)
		else
			n = n + 1
			items[n], groups[n], rows[n], keys[n], have[n], replace[n] = items[j], g, rows[j], keys[j], have[j], replace[j]
		end
	end
	n_gathered = n
end

-- Whether the outbox has any id. Usually it has none, so one HLEN saves the HDELs of this call.
local used
local function outbox_is_used()
	used = used or redis.call('HLEN', OUTBOX)
	return used > 0
end

-- A device that has a status again needs no clearing.
local function drop_clearings()
	if outbox_is_used() then
		local ids = {}
		for j = 1, n_gathered do
			ids[j] = ARGV[rows[j] + ROW.id]
		end
		all_of('HDEL', OUTBOX, ids, n_gathered)
	end
end

-- Writes the disconnected keys and the offline set for all gathered items. Returns the error, if any, and a function
-- that removes the opposite keys once the rest is written.
local function write_shared()
	local set, zadd, del, zrem = {}, {}, {}, {}
	local n_set, n_del, n_zrem = 0, 0, 0
	for j = 1, n_gathered do
		local g, row, k = groups[j], rows[j], keys[j]
		if g.online then
			n_del, n_zrem = n_del + 1, n_zrem + 1
			del[n_del], zrem[n_zrem] = KEYS[k + KEY.disconnected], ARGV[row + ROW.id]
		else
			local id = ARGV[row + ROW.id]
			set[n_set + 1], zadd[n_set + 1] = KEYS[k + KEY.disconnected], ARGV[row + ROW.since]
			n_set = n_set + 2
			set[n_set], zadd[n_set] = id, id
			if g.mine then
				n_del = n_del + 1
				del[n_del] = KEYS[k + KEY.connected]
			end
		end
	end
	local wrong = failed(all_of('MSET', nil, set, n_set)) or failed(all_of('ZADD', OFFLINE, zadd, n_set))
	return wrong, function()
		all_of('DEL', nil, del, n_del)
		all_of('ZREM', OFFLINE, zrem, n_zrem)
		drop_clearings()
	end
end

-- Removes the fields that the device does not report any more. A monitor that does not know `form` leaves it as it is.
local function drop_old(key, first, last, watched)
	local present, old = { watched = watched }, {}
	for at = first, last, 2 do
		present[ARGV[at]] = true
	end
	for _, name in ipairs(REPORTED) do
		if not present[name] then
			old[#old + 1] = name
		end
	end
	all_of('HDEL', key, old, #old)
end

-- Writes the hash and the stream's entry of a gathered item.
local function write_own(j)
	local g, row, key = groups[j], rows[j], KEYS[keys[j] + KEY.state]
	local h, n, size, watched = g.hash, g.n_hash, g.size, ARGV[row + ROW.watched]
	if replace[j] then
		try('DEL', key)
	end
	h[1], h[5], h[7], h[15] = key, ARGV[row + ROW.since], ARGV[row + ROW.last_seen], ARGV[row + ROW.seq]
	if watched ~= '' then
		h[n + 1], h[n + 2] = 'watched', watched
		n, size = n + 2, size + 1
	end
	local r = try('HSET', unpack(h, 1, n))
	if r ~= 0 and failed(r) then
		return fail(items[j], ARGV[row + ROW.id], r)
	end
	if try('HLEN', key) ~= size then
		drop_old(key, g.first, g.last, watched ~= '')
	end
	if not g.enters or quiet[items[j]] then
		return
	end
	local place = add_event(g, row)
	if place.err then
		local stored = have[j]
		try('HSET', key, 'seq', stored >= 0 and string.format('%.0f', stored) or '')
		if LETTERS then
			try('HSET', key, 'epoch', '')
		end
		return fail(items[j], ARGV[row + ROW.id], place.err .. ': ' .. EVENTS)
	end
	answer[items[j]] = place
end

local function flush()
	if n_gathered > 0 then
		if any_connects then
			write_connected()
		end
		local wrong, take_away = write_shared()
		for j = 1, n_gathered do
			if wrong then
				fail(items[j], ARGV[rows[j] + ROW.id], wrong)
			else
				write_own(j)
			end
		end
		if not wrong then
			take_away()
		end
	end
	n_gathered, busy, replace = 0, {}, {}
end

-- --- one by one ------------------------------------------------------------------------------------------------------

local function forget(g, row, k, id)
	flush() -- the stream keeps the order
	local existed = redis.call('EXISTS', KEYS[k + KEY.state]) == 1
	local place
	if g.clearing then
		redis.call('HSET', OUTBOX, id, '')
		used = 1
	end
	redis.call('ZREM', OFFLINE, id)
	redis.call('DEL', KEYS[k + KEY.disconnected])
	if g.mine then
		redis.call('DEL', KEYS[k + KEY.connected])
	end
	if g.transition and existed then
		place = add_event(g, row)
		if failed(place) then
			error(place, 0)
		end
	end
	redis.call('DEL', KEYS[k + KEY.state])
	return place or 0
end

-- For a fenced item: whether its own token wrote the stored state; sets `quiet` if that state is also the new one.
-- After the stream refused an entry, the stored state has no epoch.
local function look(g, key)
	local has, t = try('HMGET', key, 'epoch', 'node', 'state'), token_of(i)
	quiet[i] = has[3] == g.state and has[1] ~= ''
	return has[1] == epochs[t] and has[2] == holders[t]
end

local function gather(g, row, k, id)
	local key, seq = KEYS[k + KEY.state], ARGV[row + ROW.seq] + 0
	local stored, other, wrong = stored_seq(key)
	if wrong then
		return fail(i, id, wrong)
	elseif stored > seq and is_absurd(stored, seq) then
		stored = -1
	end
	local ours = not LETTERS or look(g, key)
	if stored > seq then
		answer[i] = stored
	elseif stored == seq and g.transition then
		answer[i] = ours and 0 or stored
	elseif g.forgotten then
		local ok, r = pcall(forget, g, row, k, id)
		if not ok then
			return fail(i, id, r)
		end
		answer[i] = r
	else
		local n = n_gathered + 1
		items[n], groups[n], rows[n], keys[n], have[n] = i, g, row, k, stored
		n_gathered, busy[id] = n, true
		if other then
			replace[n] = true
		end
	end
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

-- Begins the next item. Returns its id, and whether the item can be handled.
local function begin(at)
	local id = ARGV[at]
	i = i + 1
	answer[i] = 0
	if busy[id] then
		flush()
	end
	if any_stuck and stuck[id] then
		answer[i] = stuck[id]
		return id, false
	elseif LETTERS and refused[token_of(i)] then
		answer[i] = refused[token_of(i)]
		return id, false
	end
	return id, true
end

own('+')
while a <= STOP do
	if ARGV[a + WRITE.kind] == 'A' then
		local id, free = begin(a + ACK.id)
		local r = free and try('HDEL', OUTBOX, id)
		if failed(r) then
			fail(i, id, r)
		end
		a, k = a + ACK.next, k + KEY.next
	else
		local g, n = group_at(a), tonumber(ARGV[a + WRITE.count])
		a = g.last + 1
		for _ = 1, n do
			local id, free = begin(a + ROW.id)
			if free then
				gather(g, a, k, id)
			end
			a, k = a + ROW.next, k + KEY.next
		end
	end
end
flush()
own('-')
return answer
