-- SPDX-License-Identifier: MIT
--
-- Enters a node among the members, or renews its entry. Stores its fencing tokens again where they are missing or
-- older, because a flush or a failover may have lost them. See view.lua for keys, arguments and the answer.
--
--   ARGV  node, run, digest, 'J' (join) or 'R' (renew), count, json, claims: "0-84:EPOCH,90:EPOCH", the names of the
--         keys offline, outbox, events, and of the keys connected, disconnected and state of a device that cannot exist
--
-- 'TAKEN': another run has the name, and nothing was written. 'GONE': the entry is missing or another run's, and
-- nothing was written.
--
-- The script calls each command that it needs before it writes the entry. So the count of a node that lacks one of
-- these rights does not grow, and other nodes take its partitions over.
--
-- The script also tries the commands with which an owner writes devices, in a form that changes nothing. The answer has
-- the error if the node's user lacks one of these rights. Those keys are not in KEYS, or Redis would refuse the whole
-- script.

include tokens
include view

local node, run, claims = ARGV[RENEW.node], ARGV[RENEW.run], ARGV[RENEW.claims]

local function store_tokens()
	local flat, stored, write, n = redis.call('HGETALL', OWNERS), {}, {}, 0
	for i = 1, #flat, 2 do
		stored[flat[i]] = flat[i + 1]
	end
	for from, to, epoch in string.gmatch(claims, '(%d+)%-?(%d*):(%d+)') do
		local ours, may = epoch .. ' ' .. node, not impossible(epoch)
		for p = tonumber(from), tonumber(to) or tonumber(from) do
			local record = stored[tostring(p)]
			if may and record ~= ours then
				local e, owner = parse(record)
				if older(e, owner, epoch, node) then
					write[n + 1], write[n + 2], n = p, ours, n + 2
				end
			end
		end
	end
	if n > 0 then
		redis.call('HSET', OWNERS, unpack(write, 1, n))
	end
end

local function is_denial(text)
	return string.find(text, 'NOPERM', 1, true) or string.find(text, 'ACL failure', 1, true) or
		string.find(text, 'user executing the script', 1, true)
end

-- The first error that denies a write; nil if each is allowed. No device has the id '' or the id of these keys. MSET
-- and XADD get arguments that they always refuse, after Redis has checked the rights.
local function denial()
	local offline, outbox, events = ARGV[RENEW.offline], ARGV[RENEW.outbox], ARGV[RENEW.events]
	local connected, disconnected, state = ARGV[RENEW.connected], ARGV[RENEW.disconnected], ARGV[RENEW.state]
	for _, command in ipairs({ { 'SET', connected, '', 'PX', 1, 'XX' }, { 'PEXPIRE', connected, 1 }, { 'DEL', connected },
		{ 'MSET', disconnected, '', disconnected }, { 'DEL', disconnected }, { 'ZADD', offline, 'XX', 0, '' },
		{ 'ZREM', offline, '' }, { 'HDEL', outbox, '' }, { 'HGET', state, 'seq' }, { 'HMGET', state, 'seq' },
		{ 'HLEN', state }, { 'EXISTS', state }, { 'HDEL', state, '' }, { 'XADD', events, '0-0', 'id', '' } }) do
		local r = redis.pcall(unpack(command))
		if type(r) == 'table' and r.err and is_denial(r.err) then
			return r.err
		end
	end
end

local there = member(node)
if ARGV[RENEW.kind] == 'J' then
	if there and there ~= run then
		return tell('TAKEN')
	end
elseif there ~= run then
	return tell('GONE')
end
clock()
redis.call('HGETALL', LEFT)
redis.call('HDEL', LEFT, node)
redis.call('PEXPIRE', NODES, KEPT_S * 1000)
redis.call('HSET', NODES, node, run .. ' ' .. ARGV[RENEW.count] .. ' ' .. ARGV[RENEW.json])
redis.call('PEXPIRE', NODES, KEPT_S * 1000) -- again: the first member has only just created the key
if claims ~= '' then
	store_tokens()
end
return tell('DONE', nil, nil, denial())
