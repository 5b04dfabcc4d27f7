-- SPDX-License-Identifier: MIT
--
-- Cancels tasks. The device may have executed a task that was sent. So the answer has the state before, and how often
-- the task was sent. See common.lua.
--
--   ARGV  per item: the task's name; the sender, '' for an operator, who may cancel any task; force, '1' to cancel
--         also a task that the device has acknowledged
--
-- Answers OUTCOME of `places` per item. DONE: the task is cancelled. OVER: the task had ended. RUNNING: the device has
-- acknowledged the task. FOREIGN: the task has another sender. GONE: there is no such task.

include common

return each(CALL.next, CANCEL.next, function(a)
	local task, sender = ARGV[a + CANCEL.task], ARGV[a + CANCEL.sender]
	local r = read(task)
	if not r then
		return { 'GONE', '', 0 }
	elseif sender ~= '' and sender ~= r.sender then
		return { 'FOREIGN', '', 0 }
	end
	end_overdue(task, r)
	local was = r.state
	if ENDED[was] then
		return { 'OVER', was, r.tries }
	elseif was == 'acked' and ARGV[a + CANCEL.force] ~= '1' then
		return { 'RUNNING', was, r.tries }
	end
	finish(task, r, 'cancelled', '')
	return { 'DONE', was, r.tries }
end)
