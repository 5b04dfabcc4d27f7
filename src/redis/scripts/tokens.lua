-- SPDX-License-Identifier: MIT
--
-- Included in other scripts: parses a record of device:owners, "EPOCH NODE", followed by " -" if it was released, or
-- " ~" if its owner had pending writes then. A malformed record counts as none, here and in ../cluster.c. A record with
-- an impossible epoch counts as none too. An epoch is rarely greater than the clock in seconds, so an epoch more than a
-- day ahead was made up. If such a record counted, the next epoch might be out of range.

-- Compares bytes, like strcmp(). Lua's own comparison depends on the server's locale.
local function less(a, b)
	for i = 1, math.min(#a, #b) do
		local x, y = string.byte(a, i), string.byte(b, i)
		if x ~= y then
			return x < y
		end
	end
	return #a < #b
end

local DAY_S = 86400
local now_s

-- This server's clock in seconds, as text. Read at most once, and only if needed.
local function clock()
	now_s = now_s or redis.call('TIME')[1]
	return now_s
end

-- Whether an epoch is too far ahead of the clock.
local function impossible(epoch)
	return tonumber(epoch) > tonumber(clock()) + DAY_S
end

-- Epoch, node and suffix, each '' for a malformed record. The epoch stays text, because it may have 63 bits.
local function parse(record)
	local epoch, node, mark = string.match(record or '', '^([1-9]%d*) ([^ %z]+)(.*)$')
	if not epoch or #epoch > 19 or #node > 64 or not (mark == '' or mark == ' -' or mark == ' ~') then
		return '', '', ''
	end
	if impossible(epoch) then
		return '', '', ''
	end
	return epoch, node, mark
end

-- Whether the first token is less than the second.
local function older(epoch, node, than_epoch, than_node)
	if epoch == than_epoch then
		return less(node, than_node)
	end
	return #epoch < #than_epoch or #epoch == #than_epoch and less(epoch, than_epoch)
end
