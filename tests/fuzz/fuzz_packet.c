/* SPDX-License-Identifier: MIT */
/*
 * MQTT packets, as they are looked at ahead of the library. Input: a byte whose lowest bit says MQTT 5, then a stream.
 * What is taken for a message lies inside of its packet and is not taken for one sooner than it is whole; what needs
 * more bytes asks for more than there are, and never for more than it takes to know how long the packet is. Of an
 * acknowledgement a beginning says what all of it says.
 */
#include <stdbool.h>
#include <string.h>

#include "fuzz.h"
#include "mqtt/packet.h"
#include "mqtt/properties.h"

static bool inside(const void *part, size_t len, const uint8_t *at, size_t n)
{
	const uint8_t *p = part;
	return p >= at && p <= at + n && len <= (size_t)(at + n - p);
}

/* Of the bytes that are there, and of each beginning of them, in memory that ends with them. */
static enum hw_packet_kind look(const uint8_t *bytes, size_t n, bool v5, struct hw_packet *p)
{
	uint8_t *own = malloc(n ? n : 1);
	MUST(own);
	memcpy(own, bytes, n);
	enum hw_packet_kind kind = hw_packet_peek(own, n, v5, p);
	if (kind == HW_PACKET_PART)
		MUST(p->size > n);
	if (kind == HW_PACKET_MESSAGE) {
		MUST(p->size <= n && own[0] >> 4 == 3 && (own[0] & 6) == 0 && p->retained == (own[0] & 1));
		MUST(p->topic_len > 0 && inside(p->topic, p->topic_len, own, p->size));
		MUST(inside(p->payload, p->payload_len, own, p->size));
		MUST((const uint8_t *)p->payload + p->payload_len == own + p->size);
		MUST((const uint8_t *)p->payload >= (const uint8_t *)p->topic + p->topic_len + (v5 ? 1 : 0));
	}
	free(own);
	return kind;
}

/* More bytes change a cut packet's answer alone. A cut packet asks for more bytes than there are. */
static void check_beginning(const uint8_t *bytes, size_t n)
{
	struct hw_packet_check c;
	enum hw_packet_soundness before = HW_PACKET_CUT;
	for (size_t i = 0; i <= n && i < 64; i++) {
		uint8_t *own = malloc(i ? i : 1);
		MUST(own);
		memcpy(own, bytes, i);
		enum hw_packet_soundness s = hw_packet_check(own, i, &c);
		free(own);
		MUST(before == HW_PACKET_CUT || s == before);
		MUST(s != HW_PACKET_CUT || c.need > i);
		MUST(s == HW_PACKET_UNSOUND || (c.topic_at <= i && c.properties_end <= c.size));
		MUST(s == HW_PACKET_UNSOUND || c.topic_at == 0 || c.topic_at + c.topic_len <= c.size);
		before = s;
	}
}

/* An acknowledgement says so as soon as its reason is there, and then whatever follows. */
static void look_ack(const uint8_t *bytes, size_t n, bool v5)
{
	struct hw_packet_ack a, whole;
	enum hw_packet_ack_kind kind = HW_PACKET_ACK_PART, last = hw_packet_peek_ack(bytes, n, v5, &whole);
	for (size_t i = 0; i <= n && i < 16 && kind == HW_PACKET_ACK_PART; i++) {
		uint8_t *own = malloc(i ? i : 1);
		MUST(own);
		memcpy(own, bytes, i);
		kind = hw_packet_peek_ack(own, i, v5, &a);
		free(own);
		if (kind == HW_PACKET_ACK_PART)
			MUST(a.size > i);
		else
			MUST(kind == last && a.size == whole.size && a.id == whole.id && a.reason == whole.reason);
	}
	if (kind == HW_PACKET_ACK)
		MUST(bytes[0] >> 4 == 4 && a.size >= 4);
}

static void check_beginnings(const uint8_t *bytes, size_t size, bool v5)
{
	struct hw_packet p;
	for (size_t n = size < 16 ? 0 : size - 16; n < size; n++)
		MUST(look(bytes, n, v5, &p) == HW_PACKET_PART && p.size <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	bool v5 = data[0] & 1;
	struct hw_packet p;
	look_ack(data + 1, size - 1, v5);
	check_beginning(data + 1, size - 1);
	for (data++, size--; look(data, size, v5, &p) == HW_PACKET_MESSAGE; data += p.size, size -= p.size)
		check_beginnings(data, p.size, v5);
	return 0;
}
