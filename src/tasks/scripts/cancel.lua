-- SPDX-License-Identifier: MIT
--
-- Cancels tasks. One that was sent may have been done all the same: so the answer says the state it was in, and how often
-- it was sent. See common.lua.
--
--   ARGV  of each: its name; the sender, '' for an operator, who may cancel anybody's; force '1': also one that the device
--         has acknowledged
--
-- Of each what OUTCOME in places says: DONE; OVER, it had ended; RUNNING, it is acknowledged; FOREIGN, another's; GONE.

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
