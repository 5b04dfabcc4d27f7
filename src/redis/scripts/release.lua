-- SPDX-License-Identifier: MIT
--
-- Marks partitions as released, whose record is still the token that is given. The name stays in it: a token of the same
-- epoch, but of another node, must not pass for the one that was released. See view.lua for what they have in common.
--
--   ARGV  node, run, digest; then of each partition its number, the token, and '-' (its owner owes nothing) or '~'

include tokens
include view

for a = RELEASE.next, #ARGV, RELEASED.next do
	local p, token = ARGV[a + RELEASED.partition], ARGV[a + RELEASED.token]
	if redis.call('HGET', OWNERS, p) == token then
		redis.call('HSET', OWNERS, p, token .. ' ' .. ARGV[a + RELEASED.mark])
	end
end
return tell('DONE')
