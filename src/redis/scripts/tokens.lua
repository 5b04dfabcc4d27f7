-- SPDX-License-Identifier: MIT
--
-- Put into other scripts: what a record of device:owners says, "EPOCH NODE", and behind it " -" once it was released, or
-- " ~" if its owner owed something then. What is none counts as none, here and in ../cluster.c alike.

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

-- Epoch, node and mark, each '' where there is none. An epoch is not a number here: it may have 63 bits.
local function parse(record)
	local epoch, node, mark = string.match(record or '', '^([1-9]%d*) ([^ %z]+)(.*)$')
	if not epoch or #epoch > 19 or #node > 64 or not (mark == '' or mark == ' -' or mark == ' ~') then
		return '', '', ''
	end
	if #epoch == 19 and less('9223372036854775807', epoch) then
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
