-- SPDX-License-Identifier: MIT
--
-- Marks partitions as released if their record is still the given token. The node's name stays in the record, so that
-- another node's token of the same epoch is not taken for the released one. See view.lua for keys, arguments and the
-- answer.
--
--   ARGV  node, run, digest; then for each partition its number, the token, and '-' (no writes were pending) or '~'

include tokens
include view

for a = RELEASE.next, #ARGV, RELEASED.next do
	local p, token = ARGV[a + RELEASED.partition], ARGV[a + RELEASED.token]
	if redis.call('HGET', OWNERS, p) == token then
		redis.call('HSET', OWNERS, p, token .. ' ' .. ARGV[a + RELEASED.suffix])
	end
end
return tell('DONE')
