-- SPDX-License-Identifier: MIT
--
-- Calls expected devices unseen that never sent anything. Redis Cluster is not supported.
--
--   KEYS  expected, unseen, inventory, events; then for each item state:ID
--   ARGV  events_max, node, now, source (not read); then for each item 'U', id, group, name,
--         labels; '' is none
--
-- A node of a cluster puts a fence before its items: see fence.lua. An id is called unseen only if it is expected and
-- has no state hash. It is then added to device:unseen, with one entry in device:events. This happens once, over
-- restarts, take-overs and repeated calls. The ids that were added are named to the followers of device:inventory.
--
-- The answer has one element per item. A status: added, and this is the id of its entry in device:events. 0: it is unseen
-- already. 2: it has a state hash. 3: it is not expected. 'EPOCH ...': the fencing token is too old, and nothing was
-- done.

include tokens
include fence

local KEYS, ARGV = KEYS, ARGV
local NOW, STREAM_MAX = ARGV[INVENTORY.now], 100000
local answer, added = {}, {}

local function item(i, a, state)
	local id, more = ARGV[a + NEVER.id], {}
	if LETTERS then
		local wrong = refused[token_of(i)]
		if wrong then
			return wrong
		end
		more = { 'epoch', epochs[token_of(i)] }
	end
	if redis.call('EXISTS', state) == 1 then
		redis.call('ZREM', KEYS[INVENTORIED.unseen], id)
		return 2
	elseif not redis.call('HGET', KEYS[INVENTORIED.expected], id) then
		return 3
	elseif redis.call('ZADD', KEYS[INVENTORIED.unseen], 'NX', NOW, id) == 0 then
		return 0
	end
	for name, value in pairs({ name = ARGV[a + NEVER.name], labels = ARGV[a + NEVER.labels] }) do
		if value ~= '' then
			more[#more + 1] = name
			more[#more + 1] = value
		end
	end
	local at = redis.pcall('XADD', KEYS[INVENTORIED.events], 'MAXLEN', '~', ARGV[INVENTORY.events_max], '*', 'id', id, 'state', 'unseen', 'reason', 'never_seen',
		'time_ms', NOW, 'last_seen_ms', '0', 'group', ARGV[a + NEVER.group], 'node', ARGV[INVENTORY.node], 'seq', NOW, unpack(more))
	if at.err then -- the id must not be in device:unseen without its entry; the call is repeated
		redis.call('ZREM', KEYS[INVENTORIED.unseen], id)
		error(at.err, 0)
	end
	added[#added + 1] = id
	return redis.status_reply(at)
end

local wrong, a, k = raise_fence(INVENTORY.next, INVENTORIED.next, true)
if wrong then
	return wrong
end
while a <= STOP do
	answer[#answer + 1] = item(#answer + 1, a, KEYS[k])
	a, k = a + NEVER.next, k + 1
end
if #added > 0 then
	redis.call('XADD', KEYS[INVENTORIED.inventory], 'MAXLEN', '~', STREAM_MAX, '*', 'ids', table.concat(added, '\n'), 'unseen_ms', NOW)
end
return answer
