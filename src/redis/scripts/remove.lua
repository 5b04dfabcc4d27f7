-- SPDX-License-Identifier: MIT
--
-- Removes a member: the one that stopped renewing at this count, or, without a count, the caller itself. Nothing is
-- removed if the run or the count differs. The name is kept for an hour among those that have left, because the node's
-- messages at the broker still count that long. See view.lua for keys, arguments and the answer.
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
