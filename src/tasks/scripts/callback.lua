-- SPDX-License-Identifier: MIT
--
-- A message came on a topic: tells it to the other instances that have callbacks on the topic. A callback that has expired,
-- or whose key holds something else, leaves the topic's set.
--
--   KEYS  the topic's set
--   ARGV  what CALLBACK in places says: what keys of callbacks and channels of instances begin with, this instance, the message

for _, callback in ipairs(redis.call('SMEMBERS', KEYS[1])) do
	local node = redis.pcall('HGET', ARGV[CALLBACK.keys] .. callback, 'nodeId')
	if type(node) ~= 'string' then
		redis.call('SREM', KEYS[1], callback)
	elseif node ~= ARGV[CALLBACK.node] then
		redis.call('PUBLISH', ARGV[CALLBACK.channels] .. node,
			cjson.encode({ callbackId = callback, messageBody = ARGV[CALLBACK.body] }))
	end
end
return 1
