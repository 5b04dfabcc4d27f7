-- SPDX-License-Identifier: MIT
--
-- Puts this run's mark in its place and answers what was there: false for nothing, '' for something that is no string.
-- (SET with GET would do on Redis 6.2; GETSET never replaces another type.)
--
--   KEYS  monitor:NODE_ID; and one that is not used, so that a cluster refuses this as it would a transition
--   ARGV  the mark

local old = redis.pcall('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
if type(old) == 'table' and old.err then
	return ''
end
return old
