-- SPDX-License-Identifier: MIT
--
-- Writes P of partitions, for a node of a cluster: the broker has acknowledged or refused each status of a transition with
-- a seq less than P. The fence keeps an owner that was replaced from raising the P of its successor.
--
--   KEYS  published, and those of the fence
--   ARGV  the fence; then for each partition its number and P; then the tokens
--
-- The answer has one element per partition: 0, or 'EPOCH ...' as in transition.lua.

include tokens
include fence

local wrong, a = raise_fence(1, PUBLISH.next, false)
if wrong then
	return wrong
end
local write, answer, n, i = {}, {}, 0, 0
while a <= STOP do
	i = i + 1
	answer[i] = refused[token_of(i)] or 0
	if answer[i] == 0 then
		write[n + 1], write[n + 2], n = ARGV[a + PUBLISHED.partition], ARGV[a + PUBLISHED.value], n + 2
	end
	a = a + PUBLISHED.next
end
if n > 0 then
	redis.call('HSET', KEYS[PUBLISH.published], unpack(write, 1, n))
end
return answer
