-- SPDX-License-Identifier: MIT
--
-- Removes a member, if it still is who was meant: the one that fell silent at this count; or, where no count is given,
-- itself, which leaves. See view.lua for what they have in common.
--
--   ARGV  node and run of the member; digest; count, or ''

include view

local run, count = member(ARGV[REMOVE.node])
if run == ARGV[REMOVE.run] and (ARGV[REMOVE.count] == '' or ARGV[REMOVE.count] == count) then
	redis.call('HDEL', NODES, ARGV[REMOVE.node])
end
return tell('DONE')
