/* SPDX-License-Identifier: MIT */
/*
 * See packet.h. Section numbers are those of "MQTT Version 5.0" (OASIS). Cost: a few loads and compares a packet; the
 * payload is not looked at.
 */
#include "mqtt/packet.h"

#include <stdint.h>

#define LENGTH_BYTES 4 /* of a variable byte integer, at most (1.5.5) */
#define PUBLISH      0x30
#define FLAG_RETAIN  1

enum length { CUT, READ, BAD };

/* A variable byte integer of which the bytes from `s` to `end` are here; takes `*s` behind it. */
static enum length length(const uint8_t **s, const uint8_t *end, size_t *value)
{
	*value = 0;
	for (unsigned i = 0; i < LENGTH_BYTES; i++) {
		if (*s == end)
			return CUT;
		uint8_t b = *(*s)++;
		*value |= (size_t)(b & 127) << (7 * i);
		if (!(b & 128))
			return READ;
	}
	return BAD;
}

/* 3.3.2: topic, properties in version 5, payload. False if they do not add up, or the topic is empty. */
static bool message(const uint8_t *s, const uint8_t *end, bool v5, struct hw_packet *p)
{
	if (end - s < 2)
		return false;
	p->topic_len = (size_t)s[0] << 8 | s[1];
	s += 2;
	if (p->topic_len == 0 || p->topic_len > (size_t)(end - s))
		return false;
	p->topic = (const char *)s;
	s += p->topic_len;
	size_t properties = 0;
	if (v5 && (length(&s, end, &properties) != READ || properties > (size_t)(end - s)))
		return false;
	p->payload = s + properties;
	p->payload_len = (size_t)(end - s) - properties;
	return true;
}

enum hw_packet_kind hw_packet_look(const void *bytes, size_t n, bool v5, struct hw_packet *p)
{
	const uint8_t *s = bytes, *end = s + n;
	size_t rest;
	p->size = n + 1;
	if (n < 2)
		return HW_PACKET_PART;
	uint8_t head = *s++;
	enum length l = length(&s, end, &rest);
	if (l == BAD)
		return HW_PACKET_OTHER;
	if (l == CUT)
		return HW_PACKET_PART;
	p->size = (size_t)(s - (const uint8_t *)bytes) + rest;
	if (p->size > n)
		return HW_PACKET_PART;
	if ((head & ~FLAG_RETAIN) != PUBLISH || !message(s, s + rest, v5, p))
		return HW_PACKET_OTHER;
	p->retained = head & FLAG_RETAIN;
	return HW_PACKET_MESSAGE;
}
