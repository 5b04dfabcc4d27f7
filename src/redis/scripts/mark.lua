-- SPDX-License-Identifier: MIT
--
-- Puts this run's mark in its place and answers what was there: false for nothing, '' for something that is no string.
-- (SET with GET would do on Redis 6.2; GETSET never replaces another type.)
--
-- A run that had its mark there puts it in the place of another one alone: by a mark that was on its way while the store
-- was emptied, over a connection that was lost since, nobody would find out that it was.
--
-- Of several nodes only who has the name, or nobody has it: while another run is entered under it, what is there stays,
-- and is answered as a list of one.
--
--   KEYS  monitor:NODE_ID; one that is not used, so that a cluster refuses this as it would a transition; of several
--         nodes: nodes
--   ARGV  the mark, which begins with the run; '1' if it may be put where there is none, else '0'; of several nodes:
--         NODE_ID

local old = redis.pcall('GET', KEYS[1])
if type(old) == 'table' and old.err then
	old = ''
end
if KEYS[3] then
	local member = redis.pcall('HGET', KEYS[3], ARGV[3])
	local run = type(member) == 'string' and string.match(member, '^([0-9a-f]+) ')
	if run and run ~= string.sub(ARGV[1], 1, #run) then
		return {old}
	end
end
if old or ARGV[2] == '1' then
	redis.call('SET', KEYS[1], ARGV[1])
else
	redis.call('DEL', KEYS[1]) -- a Redis that does not write says so
end
return old
