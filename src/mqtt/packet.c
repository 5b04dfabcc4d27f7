/* SPDX-License-Identifier: MIT */
/*
 * See packet.h. Section numbers refer to "MQTT Version 5.0" (OASIS). Cost: a few loads and compares per parsed packet,
 * whatever the length of its payload. An encoded message is copied once.
 */
#include "mqtt/packet.h"

#include <string.h>

#define LENGTH_BYTES 4 /* of a variable byte integer, at most (1.5.5) */
#define PUBLISH      0x30
#define PUBACK       0x40
#define KIND         0xf0 /* the bits of the first byte that give the packet type */
#define FLAG_RETAIN  1
#define FLAG_QOS_1   2
#define EXPIRY       2 /* the property (3.3.2.3.3), and its size */
#define EXPIRY_BYTES 5

enum length { CUT, READ, BAD };

/* Reads a variable byte integer between `*s` and `end`, and moves `*s` past it. */
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

/* Parses the rest of a PUBLISH (3.3.2): topic, properties in MQTT 5, payload. Returns false if a length is wrong, or
 * if the topic is empty. */
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

enum hw_packet_kind hw_packet_peek(const void *bytes, size_t n, bool v5, struct hw_packet *p)
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

/* Parses an acknowledgement (3.4): the packet id; in MQTT 5, a reason and properties may follow. Ignores the flags,
 * as the library does. */
enum hw_packet_ack_kind hw_packet_peek_ack(const void *bytes, size_t n, bool v5, struct hw_packet_ack *a)
{
	const uint8_t *s = bytes, *end = s + n;
	size_t rest;
	*a = (struct hw_packet_ack){.size = n + 1};
	if (n < 2)
		return HW_PACKET_ACK_PART;
	uint8_t head = *s++;
	enum length l = length(&s, end, &rest);
	if (l == CUT)
		return HW_PACKET_ACK_PART;
	size_t n_bytes = (v5 && rest > 2) ? 3 : 2, at = (size_t)(s - (const uint8_t *)bytes);
	a->size = l == READ ? at + rest : 0;
	if (l == BAD || (head & KIND) != PUBACK || rest < 2 || a->size > HW_PACKET_ACK_MOST)
		return HW_PACKET_NO_ACK;
	if ((size_t)(end - s) < n_bytes) {
		a->size = at + n_bytes;
		return HW_PACKET_ACK_PART;
	}
	a->id = (uint16_t)(s[0] << 8 | s[1]);
	a->reason = n_bytes > 2 ? s[2] : 0;
	return HW_PACKET_ACK;
}

/* --- encoding */

static size_t properties_of(const struct hw_message *m, bool v5)
{
	return v5 && m->expiry_s ? EXPIRY_BYTES : 0;
}

/* The size of all that follows the length. */
static size_t rest_of(const struct hw_message *m, bool v5)
{
	return 2 + m->topic_len + (m->qos > 0 ? 2 : 0) + v5 + properties_of(m, v5) + m->payload_len;
}

size_t hw_packet_publish_size(const struct hw_message *m, bool v5)
{
	size_t size = 1 + rest_of(m, v5);
	for (size_t rest = size - 1; rest > 0; rest >>= 7)
		size++;
	return size;
}

static uint8_t *put_16(uint8_t *to, size_t value)
{
	*to++ = (uint8_t)(value >> 8);
	*to++ = (uint8_t)value;
	return to;
}

static uint8_t *put_bytes(uint8_t *to, const void *from, size_t n)
{
	if (n > 0)
		memcpy(to, from, n);
	return to + n;
}

/* Writes a PUBLISH (3.3). heartwheel's messages have at most one property, so the length of the properties takes one
 * byte. */
void hw_packet_publish(uint8_t *to, const struct hw_message *m, bool v5, uint16_t id)
{
	size_t rest = rest_of(m, v5);
	*to++ = (uint8_t)(PUBLISH | (m->qos > 0 ? FLAG_QOS_1 : 0) | (m->retain ? FLAG_RETAIN : 0));
	for (; rest > 127; rest >>= 7)
		*to++ = (uint8_t)(rest | 128);
	*to++ = (uint8_t)rest;
	to = put_bytes(put_16(to, m->topic_len), m->topic, m->topic_len);
	if (m->qos > 0)
		to = put_16(to, id);
	if (v5)
		*to++ = (uint8_t)properties_of(m, v5);
	if (properties_of(m, v5)) {
		*to++ = EXPIRY;
		to = put_16(put_16(to, m->expiry_s >> 16), m->expiry_s);
	}
	put_bytes(to, m->payload, m->payload_len);
}
