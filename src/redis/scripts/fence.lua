-- SPDX-License-Identifier: MIT
--
-- Included in the scripts that write, after tokens.lua: the fencing tokens of a cluster. A fenced call has these
-- arguments before its items: 'T'; a letter per item of the answer, which selects its token ('0' is the first); and the
-- position in ARGV where the tokens begin. The tokens follow all items: for each a partition and "EPOCH NODE". KEYS has
-- device:owners before the items' keys. Cost: one HMGET per call. A standalone monitor sends no fence.
--
-- If a token is older than the stored one, its items are refused with 'EPOCH partition epoch node', which is the newer
-- token. A newer token is stored. If its epoch is impossible, its items are refused too; then the token in the answer
-- may be empty.

-- STOP: position of the last argument of the items. LETTERS: nil without a fence.
local STOP, LETTERS = #ARGV, nil
local refused, epochs, holders = {}, {}, {}

-- `a` and `k`: where a fence begins in ARGV and KEYS, if there is one. `anyway`: store newer tokens even if Redis is out
-- of memory. For that, the script begins with HDEL, because Redis checks its memory only before the first write. Returns
-- the error of the whole call, or nil and where the items begin in ARGV and KEYS.
local function raise_fence(a, k, anyway)
	if ARGV[a + FENCE.kind] ~= 'T' then
		return nil, a, k
	end
	local first, owners, names, write, n = tonumber(ARGV[a + FENCE.tokens]), KEYS[k + FENCED.owners], {}, {}, 0
	STOP, LETTERS = first - 1, ARGV[a + FENCE.letters]
	for at = first, #ARGV, TOKEN.next do
		names[#names + 1] = ARGV[at + TOKEN.partition]
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
	return nil, a + FENCE.next, k + FENCED.next
end

-- The index of the token for the answer of this number.
local function token_of(i)
	return string.byte(LETTERS, i) - 47
end
