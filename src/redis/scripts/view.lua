-- SPDX-License-Identifier: MIT
--
-- Included in the scripts of a cluster. Each answers with the members, and with the owners if they differ from those
-- that the caller has. A digest of all owners decides that. Unlike a count of changes, it is comparable between
-- servers, also after a failover.
--
--   KEYS  nodes, owners, nodes_left (the members that left or were removed in the last hour); for a claim also events
--   ARGV  node, run, digest; then the script's own
--
-- The answer: result; digest; members (a name, then its "RUN COUNT {json}"); owners (a partition, then its record;
-- nothing if the given digest matches); this server's clock in seconds; left (a name, then the time); for a claim the
-- partitions won and the last id of the stream; for a renewal the error that denies a write. Needs tokens.lua.

local NODES, OWNERS, LEFT = KEYS[CLUSTER.nodes], KEYS[CLUSTER.owners], KEYS[CLUSTER.left]
local KEPT_S = 3600

local function is_hash(key)
	local t = redis.call('TYPE', key).ok
	return t == 'none' or t == 'hash'
end

-- Run and count of a member; nil if the node is no member.
local function member(node)
	local run, count = string.match(redis.call('HGET', NODES, node) or '', '^([0-9a-f]+) (%d+) {')
	if run and #run == 16 and #count <= 18 and (count == '0' or string.sub(count, 1, 1) ~= '0') then
		return run, count
	end
end

local function tell(result, won, last, denied)
	local owners, answer = redis.call('HGETALL', OWNERS), {}
	local digest = redis.sha1hex(table.concat(owners, '\n'))
	answer[ANSWER.result], answer[ANSWER.digest] = result, digest
	answer[ANSWER.members] = redis.call('HGETALL', NODES)
	answer[ANSWER.owners] = digest ~= ARGV[ASK.digest] and owners
	answer[ANSWER.now], answer[ANSWER.left] = clock(), redis.call('HGETALL', LEFT)
	answer[ANSWER.won], answer[ANSWER.last], answer[ANSWER.denied] = won or false, last or false, denied or false
	return answer
end

-- If another program's key is in place of the list of nodes that left, it is deleted: nodes can work without the list.
if not is_hash(LEFT) then
	redis.call('DEL', LEFT)
end
local misused = not is_hash(NODES) and NODES or not is_hash(OWNERS) and OWNERS
if misused then
	return redis.error_reply('WRONGTYPE ' .. misused .. ' is not a hash')
end
