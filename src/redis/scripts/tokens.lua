-- SPDX-License-Identifier: MIT
--
-- Put into other scripts: what a record of device:owners says, "EPOCH NODE", and behind it " -" once it was released, or
-- " ~" if its owner owed something then. What is none counts as none, here and in ../cluster.c alike; so does a record whose
-- epoch is impossible: an epoch is hardly ever more than the seconds of the clock, and one that is further ahead than a day
-- was made up. If it counted, the next epoch might be one that does not exist.

-- By their bytes, as strcmp() does it: Lua's own comparison is that of the server's locale.
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

-- The clock of this server, in seconds, as text. Read once, and only if it is needed.
local function clock()
	now_s = now_s or redis.call('TIME')[1]
	return now_s
end

-- Whether an epoch is further ahead than any can be.
local function impossible(epoch)
	return tonumber(epoch) > tonumber(clock()) + DAY_S
end

-- Epoch, node and mark, each '' where there is none. An epoch is not a number here: it may have 63 bits.
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
