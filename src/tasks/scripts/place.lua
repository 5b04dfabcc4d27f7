-- SPDX-License-Identifier: MIT
--
-- Put into the scripts that read a set page by page: a place is the task that was looked at last and its score.

-- The rank of the first one behind the given place. Where the task that stood there has gone, those that stood there
-- with it are told by their names: is_behind().
local function first_behind(set, score, task)
	if task == '' then
		return 0
	end
	local has = call('ZSCORE', set, task)
	if has and tonumber(has) == tonumber(score) then
		return call('ZRANK', set, task) + 1
	end
	return call('ZCOUNT', set, '-inf', '(' .. score)
end

local function is_behind(t, s, score, task)
	return task == '' or tonumber(s) > tonumber(score) or t > task
end

-- The place, or an empty one where nothing stands behind it.
local function place_of(set, t, s)
	if not t or call('ZRANK', set, t) + 1 >= call('ZCARD', set) then
		return {}
	end
	return { s, t }
end
