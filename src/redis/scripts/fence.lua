-- SPDX-License-Identifier: MIT
--
-- Put into the scripts that write, behind tokens.lua: the fence of several nodes. A call that is fenced has, before its
-- items, 'T', a letter for each answer that it will have, which says whose token counts ('0' the first), and the place in
-- ARGV where the tokens begin, which stand behind all items: of each a partition and "EPOCH NODE". KEYS has device:owners
-- before the items' keys. One HMGET a call; a monitor that is by itself calls without.
--
-- A token that is older than the stored one: its items are refused, 'EPOCH partition epoch node', which says who is newer.
-- A newer one is stored, unless its epoch is impossible: then its items are refused as well, and nobody may be newer.

-- The last argument of the items; and no letters where there is no fence.
local STOP, LETTERS = #ARGV, nil
local refused, epochs, holders = {}, {}, {}

-- `at`: where the 'T' stands. `anyway`: what is stored is stored even by a Redis that has no memory, which looks only
-- before the first write. Returns the error of the whole call, if there is one.
local function raise_fence(at, owners, anyway)
	local first, names, write, n = tonumber(ARGV[at + FENCE.tokens]), {}, {}, 0
	STOP, LETTERS = first - 1, ARGV[at + FENCE.letters]
	for a = first, #ARGV, TOKEN.next do
		names[#names + 1] = ARGV[a + TOKEN.partition]
	end
	local stored = redis.pcall('HMGET', owners, unpack(names))
	if stored.err then
		return redis.error_reply('WRONGTYPE ' .. owners .. ' is not a hash')
	end
	for i = 1, #names do
		local ours = ARGV[first + (i - 1) * TOKEN.next + TOKEN.token]
		epochs[i], holders[i] = string.match(ours, '^(%d+) (.*)$')
		if stored[i] ~= ours then
			local epoch, node = parse(stored[i])
			if impossible(epochs[i]) or older(epochs[i], holders[i], epoch, node) then
				refused[i] = 'EPOCH ' .. names[i] .. ' ' .. epoch .. ' ' .. node
			elseif older(epoch, node, epochs[i], holders[i]) then
				write[n + 1], write[n + 2], n = names[i], ours, n + 2
			end
		end
	end
	if n > 0 and anyway then
		redis.call('HDEL', owners, '')
	end
	if n > 0 then
		redis.call('HSET', owners, unpack(write))
	end
end

-- Whose token counts for the answer of this number.
local function token_of(i)
	return string.byte(LETTERS, i) - 47
end
