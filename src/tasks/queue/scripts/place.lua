-- SPDX-License-Identifier: MIT
--
-- Included in the scripts that read a set page by page. A place is the last task that was read, and its score.

-- The rank of the first task after a place. If the task of the place was removed, the rank is that of the first task
-- with its score. is_behind() then skips the tasks of that score by their names.
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

-- The place for the next page; empty if no task follows.
local function place_of(set, t, s)
	if not t or call('ZRANK', set, t) + 1 >= call('ZCARD', set) then
		return {}
	end
	return { s, t }
end
