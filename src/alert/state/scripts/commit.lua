-- SPDX-License-Identifier: MIT
--
-- Writes what has changed, with the offsets up to which the streams were read and the messages that are about to be
-- sent: all or nothing. Commits are numbered. The number is written last, so a commit whose answer was lost is repeated
-- without harm: it is skipped if its number is stored.
--
--   KEYS  KEYED of `places`
--   ARGV  COMMIT: holder ("NODE RUN"), epoch, number, '1' to write all again after Redis was emptied or failed over,
--         the prefix of all keys, the length of the stream of events; then items, each with its kind:
--           'I' INCIDENT and n arguments: fields and values    'J' JOINED     'S' SILENCE and n arguments
--           'D' DROPPED                                        'L' LEFT       'U' UNSILENCE
--           'T' SENT                                           'R' RECEIVER   'A' OFFSET
--           'E' EVENT      'P' PLANNED     'Z' ENDED: closed, and no receiver waits for its end
--
-- Answers COMMITTED of `places`. The verdict is OK; FENCED: another run is the holder; GONE: Redis was emptied; BEHIND:
-- Redis has failed over to an older state. Then nothing was written.
--
-- A key of a wrong type was written by another program. It is deleted, so that its write succeeds.

local KEYS, ARGV, try = KEYS, ARGV, redis.pcall
local ALERT, INCIDENTS, CLOSED, SILENCES = KEYS[KEYED.alert], KEYS[KEYED.incidents], KEYS[KEYED.closed], KEYS[KEYED.silences]
local EVENTS, PREFIX, NUMBER = KEYS[KEYED.events], ARGV[COMMIT.prefix], ARGV[COMMIT.number]
local STOP = #ARGV
local CHUNK = 1000 -- arguments of one command

local has = try('HMGET', ALERT, 'epoch', 'holder', 'commits')
if has.err or not has[2] then
	return { 'GONE', '' }
elseif has[2] ~= ARGV[COMMIT.holder] or has[1] ~= ARGV[COMMIT.epoch] then
	return { 'FENCED', has[2] }
elseif has[3] == NUMBER then
	return { 'OK', NUMBER }
elseif ARGV[COMMIT.rewrite] ~= '1' and (tonumber(has[3] or '0') or 0) ~= tonumber(NUMBER) - 1 then
	return { 'BEHIND', has[3] or '' }
end

local function put(command, key, ...)
	local r = try(command, key, ...)
	if type(r) == 'table' and r.err and string.find(r.err, 'WRONGTYPE', 1, true) then
		redis.call('DEL', key)
		r = try(command, key, ...)
	end
	if type(r) == 'table' and r.err then
		error(r.err .. ': ' .. key, 0)
	end
	return r
end

local function put_all(command, key, list)
	for from = 1, #list, CHUNK do
		put(command, key, unpack(list, from, math.min(from + CHUNK - 1, #list)))
	end
end

local function incident(id)
	return PREFIX .. 'incident:' .. id
end

local function members(id)
	return PREFIX .. 'incident:' .. id .. ':members'
end

-- Redis refuses the first write of a script if it is out of memory, so a script that gets past it writes all.
put('HSET', ALERT, 'epoch', ARGV[COMMIT.epoch])
if ARGV[COMMIT.rewrite] == '1' then
	for _, id in ipairs(put('ZRANGE', INCIDENTS, 0, -1)) do
		redis.call('DEL', incident(id), members(id))
	end
	for _, id in ipairs(put('SMEMBERS', SILENCES)) do
		redis.call('DEL', PREFIX .. 'silence:' .. id)
	end
	redis.call('DEL', INCIDENTS, SILENCES)
end

local joined, left, ids = {}, {}, {} -- of the incident in `open`, whose members follow one another
local open

local function flush()
	if open then
		put_all('HDEL', members(open), left)
		put_all('HSET', members(open), joined)
	end
	joined, left, open = {}, {}, nil
end

local function member(id)
	if open ~= id then
		flush()
		open = id
	end
end

local kinds = {
	I = function(a)
		local id, n = ARGV[a + INCIDENT.id], tonumber(ARGV[a + INCIDENT.n])
		put('HSET', incident(id), unpack(ARGV, a + INCIDENT.next, a + INCIDENT.n + n))
		put('ZADD', INCIDENTS, ARGV[a + INCIDENT.opened], id)
		if ARGV[a + INCIDENT.closed] ~= '0' then
			put('ZADD', CLOSED, ARGV[a + INCIDENT.closed], id)
		end
		return INCIDENT.next + n
	end,
	Z = function(a)
		put('ZREM', INCIDENTS, ARGV[a + ENDED.id])
		return ENDED.next
	end,
	D = function(a)
		local id = ARGV[a + DROPPED.id]
		redis.call('DEL', incident(id), members(id))
		put('ZREM', INCIDENTS, id)
		put('ZREM', CLOSED, id)
		return DROPPED.next
	end,
	T = function(a)
		put('HSET', incident(ARGV[a + SENT.id]), 'to:' .. ARGV[a + SENT.receiver], ARGV[a + SENT.value])
		return SENT.next
	end,
	J = function(a)
		member(ARGV[a + JOINED.id])
		joined[#joined + 1], joined[#joined + 2] = ARGV[a + JOINED.device], ARGV[a + JOINED.value]
		return JOINED.next
	end,
	L = function(a)
		member(ARGV[a + LEFT.id])
		left[#left + 1] = ARGV[a + LEFT.device]
		return LEFT.next
	end,
	R = function(a)
		put('HSET', PREFIX .. 'receiver:' .. ARGV[a + RECEIVER.name], 'n', ARGV[a + RECEIVER.number], 'from_ms', ARGV[a + RECEIVER.from],
			'sending', ARGV[a + RECEIVER.sending])
		return RECEIVER.next
	end,
	S = function(a)
		local id, n = ARGV[a + SILENCE.id], tonumber(ARGV[a + SILENCE.n])
		put('HSET', PREFIX .. 'silence:' .. id, unpack(ARGV, a + SILENCE.next, a + SILENCE.n + n))
		put('SADD', SILENCES, id)
		return SILENCE.next + n
	end,
	U = function(a)
		redis.call('DEL', PREFIX .. 'silence:' .. ARGV[a + UNSILENCE.id])
		put('SREM', SILENCES, ARGV[a + UNSILENCE.id])
		return UNSILENCE.next
	end,
	E = function(a)
		local entry = { 'id', ARGV[a + EVENT.id], 'what', ARGV[a + EVENT.what], 'at_ms', ARGV[a + EVENT.at], 'by', ARGV[a + EVENT.by], 'receiver',
			ARGV[a + EVENT.receiver] }
		-- The sentence is as of now. The others are of an opening.
		local about = { kind = ARGV[a + EVENT.kind], group = ARGV[a + EVENT.group], device = ARGV[a + EVENT.device],
			sentence = ARGV[a + EVENT.sentence] }
		for name, value in pairs(about) do
			if value ~= '' then
				entry[#entry + 1], entry[#entry + 2] = name, value
			end
		end
		put('XADD', EVENTS, 'MAXLEN', '~', ARGV[COMMIT.events_max], '*', unpack(entry))
		return EVENT.next
	end,
	P = function(a)
		put('XADD', EVENTS, 'MAXLEN', '~', ARGV[COMMIT.events_max], '*', 'what', 'planned', 'device', ARGV[a + PLANNED.device], 'from_ms',
			ARGV[a + PLANNED.from], 'to_ms', ARGV[a + PLANNED.to], 'silence', ARGV[a + PLANNED.silence])
		return PLANNED.next
	end,
	A = function(a)
		put('HSET', ALERT, 'at:' .. ARGV[a + OFFSET.stream], ARGV[a + OFFSET.at])
		return OFFSET.next
	end
}

local a = COMMIT.next
while a <= STOP do
	a = a + kinds[ARGV[a + ITEM.kind]](a)
end
flush()
put('HSET', ALERT, 'commits', NUMBER)
return { 'OK', NUMBER }
