-- SPDX-License-Identifier: MIT
--
-- Changes entries of the inventory. Redis Cluster is not supported.
--
--   KEYS  expected, unseen, inventory, events
--   ARGV  events_max, node, now, source; then for each item: kind, id, entry, group, unseen
--
-- The kinds of items:
--   'S'  sets the entry (JSON that ends with its since_ms). If the id is expected, its stored since_ms stays, unless it
--        is more than a day ahead of Redis' clock. A new since_ms is corrected by the difference of `now` from that clock.
--   'A'  sets the since_ms of `entry` in the stored entry: the id is expected again, and is not unseen.
--   'N'  sets the entry if there is none; `unseen`: since when the id is unseen, or '0'.
--   'R'  removes the entry; `entry`: only if the entry has this source, or ''.
--
-- An entry that is equal to the stored one is not written. If any is written, one entry with the ids, and with
-- `source`, is added to device:inventory. If a removed id is unseen, an entry with state `forgotten` is added to
-- device:events; `group` is the group that it names.
--
-- The answer has one element per item. 0: nothing changed. 1: added. 2: changed. 3: removed. 4: nothing to remove.
-- A text: removed, and it was unseen; the id of its entry in device:events, a space, and the id of the device.

local KEYS, ARGV = KEYS, ARGV
local EXPECTED, UNSEEN = KEYS[INVENTORIED.expected], KEYS[INVENTORIED.unseen]
local NOW, STREAM_MAX = ARGV[INVENTORY.now], 100000
local SINCE = '"since_ms":(%d+)}$'
local AHEAD_MS, AGREES_MS = 86400000, 1000

local ids, at, n = {}, {}, 0
for a = INVENTORY.next, #ARGV, EXPECT.next do
	n = n + 1
	ids[n], at[n] = ARGV[a + EXPECT.id], a
end

local stored = n > 0 and redis.call('HMGET', EXPECTED, unpack(ids)) or {}
local have, set, removed, shown, answer = {}, {}, {}, {}, {}
for i = 1, n do
	have[ids[i]] = stored[i]
end

local function write(id, entry)
	have[id] = entry
	set[id] = entry
	removed[id] = nil
end

local function remove(i, id, source)
	local old = have[id]
	if not old or (source ~= '' and not string.find(old, source, 1, true)) then
		return 4
	end
	have[id], set[id], removed[id] = false, nil, i
	return 3
end

local function since_of(entry)
	return string.match(entry, SINCE)
end

local function with_since(entry, since)
	return (string.gsub(entry, SINCE, '"since_ms":' .. since .. '}'))
end

-- Redis' clock. Without the right to read it, this is the node's clock.
local clock_ms
local function clock()
	if not clock_ms then
		local t = redis.pcall('TIME')
		clock_ms = t.err and tonumber(NOW) or t[1] * 1000 + math.floor(t[2] / 1000)
	end
	return clock_ms
end

local function with_right_since(entry, old)
	local since, ahead = old and since_of(old), clock() - NOW
	if since and tonumber(since) <= clock() + AHEAD_MS then
		return with_since(entry, since)
	elseif math.abs(ahead) >= AGREES_MS then
		return with_since(entry, string.format('%.0f', since_of(entry) + ahead))
	end
	return entry
end

local function item(i)
	local a, id = at[i], ids[i]
	local kind, entry, old = ARGV[a + EXPECT.kind], ARGV[a + EXPECT.entry], have[id]
	if kind == 'R' then
		return remove(i, id, entry)
	elseif kind == 'A' and not old then
		return 0
	elseif kind == 'A' then
		entry = with_since(old, since_of(entry))
	elseif kind == 'S' then
		entry = with_right_since(entry, old)
	elseif kind == 'N' and old then
		return 0
	end
	if entry == old then
		return 0
	end
	write(id, entry)
	return old and 2 or 1
end

for i = 1, n do
	answer[i] = item(i)
end

local fields, gone, changed = {}, {}, {}
for i = 1, n do
	local id, a = ids[i], at[i]
	if not shown[id] and (set[id] or removed[id]) then
		shown[id] = true
		changed[#changed + 1] = id
		if set[id] then
			fields[#fields + 1] = id
			fields[#fields + 1] = set[id]
		else
			gone[#gone + 1] = id
		end
	end
end
if #fields > 0 then
	redis.call('HSET', EXPECTED, unpack(fields))
end
for i = 1, #gone do
	local id = gone[i]
	redis.call('HDEL', EXPECTED, id)
	if redis.call('ZREM', UNSEEN, id) == 1 then
		local entry = redis.call('XADD', KEYS[INVENTORIED.events], 'MAXLEN', '~', ARGV[INVENTORY.events_max], '*', 'id', id, 'state', 'forgotten', 'reason',
			'operator', 'time_ms', NOW, 'last_seen_ms', '0', 'group', ARGV[at[removed[id]] + EXPECT.group], 'node', ARGV[INVENTORY.node], 'seq', NOW)
		answer[removed[id]] = entry .. ' ' .. id
	end
end
for i = 1, n do
	local kind, unseen = ARGV[at[i] + EXPECT.kind], ARGV[at[i] + EXPECT.unseen]
	if kind == 'A' and answer[i] ~= 0 then
		redis.call('ZREM', UNSEEN, ids[i])
	elseif kind == 'N' and unseen ~= '0' then
		redis.call('ZADD', UNSEEN, 'NX', unseen, ids[i])
	end
end
if #changed > 0 then
	redis.call('XADD', KEYS[INVENTORIED.inventory], 'MAXLEN', '~', STREAM_MAX, '*', 'ids', table.concat(changed, '\n'), 'source', ARGV[INVENTORY.source])
end
return answer
