-- SPDX-License-Identifier: MIT
--
-- Renews the lease, or gives it back at a clean stop.
--
--   KEYS  LEASED of `places`
--   ARGV  TAKE: node, run, TTL in ms, '0', the epoch of this run; release: '1' to give the lease back
--
-- Answers RENEWED of `places`. The verdict is OK; GONE: Redis was emptied; FENCED: another run is the holder, whose
-- name follows instead.

include lease

local has = fields()
if not has[2] then
	return { 'GONE', '', NOW }
elseif has[2] ~= HOLDER or has[1] ~= ARGV[TAKE.epoch] then
	return { 'FENCED', has[2], NOW }
end
if ARGV[TAKE.release] == '1' then
	redis.call('HSET', ALERT, 'clean', '1')
	redis.call('DEL', LEASE)
else
	write_lease(ARGV[TAKE.epoch])
end
return { 'OK', has[3] or '', NOW }
