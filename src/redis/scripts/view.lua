-- SPDX-License-Identifier: MIT
--
-- Put into the scripts of several nodes: all answer who is a member and who owns what, the latter only if it is not what
-- the asker knows. That is told by a digest of the whole, which says the same on any server, however it came to what it
-- has; a count of changes would not, after a failover.
--
--   KEYS  nodes, owners, left: the members that have left or were removed in the last hour; and of the claim events
--   ARGV  node, run, digest; then what the script says
--
-- The answer: result, digest, members (a name, then its "RUN COUNT {json}"), owners (a partition, then its record; nothing
-- if they have the digest that was given), this server's clock in seconds, those that have left (a name, then when), and of the
-- claim what was won, and the last place in the stream. Needs tokens.lua.

local NODES, OWNERS, LEFT = KEYS[CLUSTER.nodes], KEYS[CLUSTER.owners], KEYS[CLUSTER.left]
local KEPT_S = 3600

local function is_hash(key)
	local t = redis.call('TYPE', key).ok
	return t == 'none' or t == 'hash'
end

-- Run and count of a member; nothing for who is none.
local function member(node)
	local run, count = string.match(redis.call('HGET', NODES, node) or '', '^([0-9a-f]+) (%d+) {')
	if run and #run == 16 and #count <= 18 and (count == '0' or string.sub(count, 1, 1) ~= '0') then
		return run, count
	end
end

local function tell(result, won, last)
	local owners, answer = redis.call('HGETALL', OWNERS), {}
	local digest = redis.sha1hex(table.concat(owners, '\n'))
	answer[ANSWER.result], answer[ANSWER.digest] = result, digest
	answer[ANSWER.members] = redis.call('HGETALL', NODES)
	answer[ANSWER.owners] = digest ~= ARGV[ASK.digest] and owners
	answer[ANSWER.now], answer[ANSWER.left] = clock(), redis.call('HGETALL', LEFT)
	answer[ANSWER.won], answer[ANSWER.last] = won or false, last or false
	return answer
end

local misused = not is_hash(NODES) and NODES or not is_hash(OWNERS) and OWNERS or not is_hash(LEFT) and LEFT
if misused then
	return redis.error_reply('WRONGTYPE ' .. misused .. ' is not a hash')
end
