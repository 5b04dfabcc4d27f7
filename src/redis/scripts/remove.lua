-- SPDX-License-Identifier: MIT
--
-- Removes a member, if it still is who was meant: the one that fell silent at this count; or, where no count is given,
-- itself, which leaves. Its name is kept for an hour among those that have left: what such a node says at the broker still
-- counts. See view.lua for what they have in common.
--
--   ARGV  node and run of the member; digest; count, or ''

include tokens
include view

local function keep_name(node)
	local flat = redis.call('HGETALL', LEFT)
	for i = 1, #flat, 2 do
		if (tonumber(flat[i + 1]) or 0) + KEPT_S < tonumber(clock()) then
			redis.call('HDEL', LEFT, flat[i])
		end
	end
	redis.call('HSET', LEFT, node, clock())
	redis.call('PEXPIRE', LEFT, KEPT_S * 1000)
end

local run, count = member(ARGV[REMOVE.node])
if run == ARGV[REMOVE.run] and (ARGV[REMOVE.count] == '' or ARGV[REMOVE.count] == count) then
	redis.call('HDEL', NODES, ARGV[REMOVE.node])
	keep_name(ARGV[REMOVE.node])
end
return tell('DONE')
