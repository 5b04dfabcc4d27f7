-- SPDX-License-Identifier: MIT
--
-- Enters a node among the members, or renews its entry, and stores its tokens again where they are missing or less: a
-- Redis that was flushed, or failed over, may have lost them. See view.lua for what they have in common.
--
--   ARGV  node, run, digest, 'J' (join) or 'R' (renew), count, json, claims: "0-84:EPOCH,90:EPOCH"
--
-- 'TAKEN': another run has the name, nothing was written. 'GONE': the entry is gone, or another run's; likewise.

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

local there = member(node)
if ARGV[RENEW.kind] == 'J' then
	if there and there ~= run then
		return tell('TAKEN')
	end
elseif there ~= run then
	return tell('GONE')
end
redis.call('HSET', NODES, node, run .. ' ' .. ARGV[RENEW.count] .. ' ' .. ARGV[RENEW.json])
redis.call('PEXPIRE', NODES, KEPT_S * 1000)
redis.call('HDEL', LEFT, node)
if claims ~= '' then
	store_tokens()
end
return tell('DONE')
