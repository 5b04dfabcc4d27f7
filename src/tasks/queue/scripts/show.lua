-- SPDX-License-Identifier: MIT
--
-- Shows tasks: record, payload, answer, and time of the next check. It changes nothing. See common.lua.
--
--   ARGV  SHOW of `places` per item
--
-- Answers SHOWN of `places` per item; an empty record means that there is no such task.

include common

return each(CALL.next, SHOW.next, function(a)
	local task = ARGV[a + SHOW.task]
	return { call('HGETALL', PREFIX .. task), call('GET', PREFIX .. 'body:' .. task) or '',
		call('GET', PREFIX .. 'value:' .. task) or '', call('ZSCORE', DUE, task) or '' }
end)
