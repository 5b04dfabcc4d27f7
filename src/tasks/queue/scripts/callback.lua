-- SPDX-License-Identifier: MIT
--
-- Passes a message on a topic to the other instances that have callbacks on that topic. A callback that has expired, or
-- whose key holds something else, is removed from the topic's set.
--
--   KEYS  the topic's set
--   ARGV  CALLBACK of `places`: prefix of the callbacks' keys, prefix of the instances' channels, this
--         instance, the message

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
