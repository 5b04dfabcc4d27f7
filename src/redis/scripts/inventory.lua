-- SPDX-License-Identifier: MIT
--
-- Changes entries of the inventory. Redis Cluster is not supported.
--
--   KEYS  expected, unseen, inventory, events
--   ARGV  events_max, node, now, source, kinds; for each item: id, entry; then for each item of kind N or R: more
--
-- `kinds` has a letter for each item:
--   'S'  sets the entry (JSON that ends with its since_ms). If the id is expected, its stored since_ms stays, unless it
--        is more than a day ahead of Redis' clock. A new since_ms is corrected by the difference of `now` from that clock.
--   'A'  sets the since_ms of `entry` in the stored entry: the id is expected again, and is not unseen.
--   'N'  sets the entry if there is none; `more`: since when the id is unseen, or '0'.
--   'R'  removes the entry; `entry`: only if the stored entry has the same members, or ''; `more`: the group of the id.
--
-- An entry that is equal to the stored one is not written. If any is written, one entry with the ids, and with
-- `source`, is added to device:inventory. If a removed id is unseen, an entry with state `forgotten` is added to
-- device:events.
--
-- The answer: the id of the entry in device:inventory, if every changed entry is now stored as its item has it, otherwise
-- ''; a digit for each item; and for each removed id that was unseen the id of its entry in device:events, a space, and
-- the id of the device.
-- 0: nothing changed. 1: added. 2: changed. 3: removed. 4: nothing to remove.
--
-- An import has a million items, so the way of an item that sets an entry is short.

local KEYS, ARGV = KEYS, ARGV
local EXPECTED, UNSEEN = KEYS[INVENTORIED.expected], KEYS[INVENTORIED.unseen]
local NOW, KINDS, STREAM_MAX = ARGV[CHANGES.now], ARGV[CHANGES.kinds], 100000
local AHEAD_MS, AGREES_MS = 86400000, 1000

-- An id may have several items. first: the number of its first item, which is its index in `have` (the entry, or false)
-- and `last` (the last item that changed it). changed: these indices, each once.
local ids, first, more, n = {}, {}, {}, #KINDS
local at = CHANGES.next -- of the next argument
for i = 1, n do
	local id = ARGV[at + EXPECT.id]
	at = at + EXPECT.next
	ids[i] = id
	first[id] = first[id] or i
end
for i in string.gmatch(KINDS, '()[NR]') do
	more[i] = ARGV[at]
	at = at + 1
end
local have = n > 0 and redis.call('HMGET', EXPECTED, unpack(ids)) or {}
local last, changed, answer, is_as_given = {}, {}, {}, true

-- Redis' clock minus that of the node, and the latest since_ms that can be right. Without the right to read Redis' clock,
-- this is the node's clock.
local ahead, latest = 0, 0
if string.find(KINDS, 'S') then
	local t = redis.pcall('TIME')
	local clock = t.err and tonumber(NOW) or t[1] * 1000 + math.floor(t[2] / 1000)
	ahead, latest = clock - NOW, clock + AHEAD_MS
end
if math.abs(ahead) < AGREES_MS then
	ahead = 0
end

-- Nearly every since_ms has 13 digits: only for another one is the whole text searched.
local function since_of(entry)
	return string.match(entry, '^"since_ms":(%d+)}$', -25) or string.match(entry, '"since_ms":(%d+)}$')
end

local function with_since(entry, since)
	local own = since_of(entry)
	return own and own ~= since and string.sub(entry, 1, -2 - #own) .. since .. '}' or entry
end

local right -- the end of an entry whose since_ms was found to be right: the entries of an import have the same
local function ends_right(entry)
	return string.find(entry, right, -#right, true)
end

local function with_right_since(entry, old)
	if right and old and ends_right(old) and ends_right(entry) then
		return entry
	end
	local since = old and since_of(old)
	if since and tonumber(since) <= latest then
		right = '"since_ms":' .. since .. '}'
		return with_since(entry, since)
	elseif ahead ~= 0 then
		return with_since(entry, string.format('%.0f', since_of(entry) + ahead))
	end
	return entry
end

local function equals(a, b)
	if type(a) ~= 'table' or type(b) ~= 'table' then
		return a == b
	end
	for k, v in pairs(a) do
		if not equals(v, b[k]) then
			return false
		end
	end
	for k in pairs(b) do
		if a[k] == nil then
			return false
		end
	end
	return true
end

-- Whether two entries have the same members. Another program may have written the stored entry, in another order.
local function is_same(entry, old)
	if entry == old then
		return true
	end
	local ok, same = pcall(function()
		return equals(cjson.decode(entry), cjson.decode(old))
	end)
	return ok and same
end

-- The entry after the item: `old` if nothing changes, or false if the id is not expected.
local function after(kind, entry, old)
	if kind == 'S' then
		return with_right_since(entry, old)
	elseif kind == 'A' then
		return old and with_since(old, since_of(entry))
	elseif kind == 'N' then
		return old or entry
	end
	return old and entry ~= '' and not is_same(entry, old) and old
end

at = CHANGES.next
for i = 1, n do
	local k, kind, given = first[ids[i]], string.sub(KINDS, i, i), ARGV[at + EXPECT.entry]
	local old = have[k]
	local entry = after(kind, given, old)
	at = at + EXPECT.next
	if entry == old then
		answer[i] = kind == 'R' and '4' or '0'
	else
		answer[i] = not entry and '3' or old and '2' or '1'
		is_as_given = is_as_given and (entry == given or not entry)
		if not last[k] then
			changed[#changed + 1] = k
		end
		have[k], last[k] = entry, i
	end
end

local fields, named, gone, forgotten = {}, {}, {}, {}
for i = 1, #changed do
	local k = changed[i]
	named[i] = ids[k]
	if have[k] then
		fields[#fields + 1] = ids[k]
		fields[#fields + 1] = have[k]
	else
		gone[#gone + 1] = ids[k]
	end
end
if #fields > 0 then
	redis.call('HSET', EXPECTED, unpack(fields))
end
if #gone > 0 then
	redis.call('HDEL', EXPECTED, unpack(gone))
end
for i = 1, #gone do
	local id = gone[i]
	if redis.call('ZREM', UNSEEN, id) == 1 then
		local entry = redis.call('XADD', KEYS[INVENTORIED.events], 'MAXLEN', '~', ARGV[CHANGES.events_max], '*', 'id', id, 'state', 'forgotten', 'reason',
			'operator', 'time_ms', NOW, 'last_seen_ms', '0', 'group', more[last[first[id]]], 'node', ARGV[CHANGES.node], 'seq', NOW)
		forgotten[#forgotten + 1] = entry .. ' ' .. id
	end
end
for i in string.gmatch(KINDS, '()[AN]') do
	if not more[i] and answer[i] ~= '0' then
		redis.call('ZREM', UNSEEN, ids[i])
	elseif more[i] and more[i] ~= '0' then
		redis.call('ZADD', UNSEEN, 'NX', more[i], ids[i])
	end
end
local entry = ''
if #named > 0 then
	entry = redis.call('XADD', KEYS[INVENTORIED.inventory], 'MAXLEN', '~', STREAM_MAX, '*', 'ids', table.concat(named, '\n'), 'source', ARGV[CHANGES.source])
end
return {is_as_given and entry or '', table.concat(answer), unpack(forgotten)}
