-- SPDX-License-Identifier: MIT
--
-- Takes the lease for this run: if no run has it, if this run has it, or, when this run starts, if a run of the same
-- node has it. The new epoch is greater than the stored one, and at least Redis' time in seconds, so that it also grows
-- if Redis was emptied.
--
-- A lease of another run that lasts longer than a TTL gets a TTL that begins now. Redis' clock was set back, or another
-- program has removed the TTL; without this, no instance would take over from a run that has died.
--
--   KEYS  LEASED of `places`
--   ARGV  TAKE: node, run, TTL in ms, '1' if this run starts, the last epoch of this run ('0': none)
--
-- Answers HELD and the lease, or TAKEN of `places`: holder: '1' if device:alert had one, clean: '1' if the last holder
-- stopped cleanly.

include lease

local text = lease()
if text then
	local node, run = string.match(text, '^%d+ ([^ ]+) ([^ ]+)$')
	local ours = run == ARGV[TAKE.run] or (ARGV[TAKE.starts] == '1' and node == ARGV[TAKE.node])
	if node and not ours then
		bound_lease(text)
		return { 'HELD', text }
	end
end
local has = fields()
local epoch = string.format('%.0f', math.max(epoch_of(has[1]) + 1, tonumber(ARGV[TAKE.epoch]) + 1, NOW_S))
redis.call('HSET', ALERT, 'epoch', epoch, 'holder', HOLDER)
redis.call('HDEL', ALERT, 'clean')
write_lease(epoch)
return { 'TAKEN', epoch, has[2] and '1' or '0', has[3] or '', has[4] and '1' or '0', NOW }
