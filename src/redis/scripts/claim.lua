-- SPDX-License-Identifier: MIT
--
-- Makes a member the owner of each given partition whose record is still the expected one. The record must be missing,
-- released, or the member's own, or its owner must be no member. It must also be older than the claim. See view.lua for
-- keys, arguments and the answer.
--
--   ARGV  node, run, digest, epoch; then for each partition its number and the expected record, '' for none
--
-- 'GONE': the node is no member with this run, and nothing was written. The answer lists the partitions that were won.

include tokens
include view

local node, epoch = ARGV[CLAIM.node], ARGV[CLAIM.epoch]
local lives = {} -- by owner: whether it is a member

local function is_member(name)
	if lives[name] == nil then
		lives[name] = member(name) ~= nil
	end
	return lives[name]
end

local may = not impossible(epoch)

local function wins(record, expected)
	local e, owner, mark = parse(record)
	if not may or (e ~= '' and record or '') ~= expected or not older(e, owner, epoch, node) then
		return false
	end
	return e == '' or mark ~= '' or owner == node or not is_member(owner)
end

local function last_place()
	local entries = redis.pcall('XREVRANGE', KEYS[CLUSTER.events], '+', '-', 'COUNT', 1)
	return entries[1] and entries[1][1] or '0-0'
end

if member(node) ~= ARGV[CLAIM.run] then
	return tell('GONE')
end
local won, write, n = {}, {}, 0
for a = CLAIM.next, #ARGV, CLAIMED.next do
	local p = ARGV[a + CLAIMED.partition]
	if wins(redis.call('HGET', OWNERS, p), ARGV[a + CLAIMED.expected]) then
		n = n + 1
		won[n], write[2 * n - 1], write[2 * n] = p, p, epoch .. ' ' .. node
	end
end
if n > 0 then
	redis.call('HSET', OWNERS, unpack(write, 1, 2 * n))
end
return tell('DONE', won, last_place())
