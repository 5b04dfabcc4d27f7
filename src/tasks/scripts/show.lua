-- SPDX-License-Identifier: MIT
--
-- Everything about some tasks: each one's record, payload, answer, and when it is looked at next. It changes nothing. See
-- common.lua.
--
--   ARGV  of each what SHOW in places says
--
-- Of each what SHOWN says; an empty record: there is no such task.

include common

return each(CALL.next, SHOW.next, function(a)
	local task = ARGV[a + SHOW.task]
	return { call('HGETALL', PREFIX .. task), call('GET', PREFIX .. 'body:' .. task) or '',
		call('GET', PREFIX .. 'value:' .. task) or '', call('ZSCORE', DUE, task) or '' }
end)
