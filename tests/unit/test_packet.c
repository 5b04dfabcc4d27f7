/* SPDX-License-Identifier: MIT */
/*
 * Where packets end, what messages and acknowledgements say, and how messages are written: cases by hand, then random
 * packets that are taken apart again, cut anywhere.
 * All bytes lie in blocks of exactly their size, so that a checker sees a read beyond them.
 */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../random.h"
#include "../suite.h"
#include "mqtt/packet.h"
#include "mqtt/properties.h"

#define RANDOM_PACKETS 3000

static enum hw_packet_kind look(const void *bytes, size_t n, bool v5, struct hw_packet *p)
{
	static char *block;
	free(block); /* what `p` points to is good until the next look */
	block = malloc(n ? n : 1);
	memcpy(block, bytes, n);
	return hw_packet_peek(block, n, v5, p);
}

/* --- by hand */

START_TEST(test_cases)
{
	static const struct {
		const char *bytes;
		size_t n;
		bool v5;
		enum hw_packet_kind kind;
		size_t size;
		const char *topic, *payload;
	} cases[] = {
		{"", 0, true, HW_PACKET_PART, 1, NULL, NULL},
		{"\x30", 1, true, HW_PACKET_PART, 2, NULL, NULL},
		{"\x30\x80", 2, true, HW_PACKET_PART, 3, NULL, NULL},
		{"\x30\x80\x80\x80", 4, true, HW_PACKET_PART, 5, NULL, NULL},
		{"\x30\x80\x80\x80\x80", 5, true, HW_PACKET_OTHER, 0, NULL, NULL}, /* a length of five bytes */
		{"\x30\x05\0\1a\0x", 7, true, HW_PACKET_MESSAGE, 7, "a", "x"},
		{"\x30\x05\0\1a\0x", 7, false, HW_PACKET_MESSAGE, 7, "a", "\0x"},
		{"\x30\x04\0\1a\0more", 10, true, HW_PACKET_MESSAGE, 6, "a", ""},
		{"\x30\x03\0\1a", 5, false, HW_PACKET_MESSAGE, 5, "a", ""},
		{"\x30\x03\0\1a", 5, true, HW_PACKET_OTHER, 0, NULL, NULL}, /* no length of properties */
		{"\x30\x07\0\1a\2\1\1x", 9, true, HW_PACKET_MESSAGE, 9, "a", "x"},
		{"\x30\x07\0\1a\4\1\1x", 9, true, HW_PACKET_OTHER, 0, NULL, NULL}, /* properties beyond the end */
		{"\x30\x04\0\1a\x80", 6, true, HW_PACKET_OTHER, 0, NULL, NULL},
		{"\x30\x04\0\0\0x", 6, true, HW_PACKET_OTHER, 0, NULL, NULL}, /* an empty topic: an alias */
		{"\x30\x04\0\3ab", 6, true, HW_PACKET_OTHER, 0, NULL, NULL},  /* a topic beyond the end */
		{"\x30\x01\0", 3, true, HW_PACKET_OTHER, 0, NULL, NULL},
		{"\x30\x00", 2, true, HW_PACKET_OTHER, 0, NULL, NULL},
		{"\x30\x05\0\1a\0", 6, true, HW_PACKET_PART, 7, NULL, NULL},
		{"\x32\x06\0\1a\0\1\0", 8, true, HW_PACKET_OTHER, 0, NULL, NULL}, /* QoS 1 */
		{"\x34\x06\0\1a\0\1\0", 8, true, HW_PACKET_OTHER, 0, NULL, NULL},
		{"\x38\x05\0\1a\0x", 7, true, HW_PACKET_OTHER, 0, NULL, NULL}, /* sent again, with QoS 0 */
		{"\xd0\x00", 2, true, HW_PACKET_OTHER, 0, NULL, NULL},
		{"\x90\x04\0\1\0\0", 6, true, HW_PACKET_OTHER, 0, NULL, NULL},
		{"\x90\x04\0\1\0", 5, true, HW_PACKET_PART, 6, NULL, NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hw_packet p;
		enum hw_packet_kind kind = look(cases[i].bytes, cases[i].n, cases[i].v5, &p);
		ck_assert_msg(kind == cases[i].kind, "case %zu: %d", i, (int)kind);
		if (kind != HW_PACKET_OTHER)
			ck_assert_msg(p.size == cases[i].size, "case %zu: size %zu", i, p.size);
		if (kind != HW_PACKET_MESSAGE)
			continue;
		size_t topic_len = strlen(cases[i].topic), head = cases[i].payload[0] || p.payload_len == 0 ? 0 : 1;
		ck_assert_uint_eq(p.topic_len, topic_len);
		ck_assert_int_eq(memcmp(p.topic, cases[i].topic, topic_len), 0);
		ck_assert_uint_eq(p.payload_len, head + strlen(cases[i].payload + head));
		ck_assert_int_eq(memcmp(p.payload, cases[i].payload, p.payload_len), 0);
		ck_assert(!p.retained);
	}
}
END_TEST

START_TEST(test_retained)
{
	struct hw_packet p;
	ck_assert_int_eq(look("\x31\x05\0\1a\0x", 7, true, &p), HW_PACKET_MESSAGE);
	ck_assert(p.retained);
}
END_TEST

/* --- what the library may read */

START_TEST(test_check)
{
	static const struct {
		const char *bytes;
		size_t n;
		enum hw_packet_soundness soundness;
		size_t size, need; /* need: of a cut one */
		int property;      /* of an unsound one */
	} cases[] = {
		{"", 0, HW_PACKET_CUT, 0, 1, 0},
		{"\x20", 1, HW_PACKET_CUT, 0, 2, 0},
		{"\x20\x80", 2, HW_PACKET_CUT, 0, 3, 0},
		{"\x20\x80\x80\x80\x80", 5, HW_PACKET_UNSOUND, 0, 0, -1},
		{"\x20\2\0\1", 4, HW_PACKET_SOUND, 4, 0, 0}, /* of a broker without MQTT 5 */
		{"\x20\3\0\0\0", 5, HW_PACKET_SOUND, 5, 0, 0},
		{"\x20\3\0\0", 4, HW_PACKET_CUT, 5, 5, 0},
		{"\x20\6\0\0\3\x21\0\x14", 8, HW_PACKET_SOUND, 8, 0, 0},
		{"\x20\6\0\0\3\x21\0\x14more", 12, HW_PACKET_SOUND, 8, 0, 0},
		{"\x20\6\0\0\4\x21\0\x14", 8, HW_PACKET_UNSOUND, 8, 0, -1}, /* properties beyond the end */
		{"\x20\6\0\0\2\x21\0\x14", 8, HW_PACKET_UNSOUND, 8, 0, -1}, /* a value beyond the properties */
		{"\x20\6\0\0\3\x20\0\x14", 8, HW_PACKET_UNSOUND, 8, 0, 32},
		{"\x20\7\0\0\4\x80\1\0\x14", 9, HW_PACKET_UNSOUND, 9, 0, 128},
		{"\x30\x08\0\1a\2\1\1xy", 10, HW_PACKET_SOUND, 10, 0, 0},
		{"\x30\x08\0\1a\2\1\1", 8, HW_PACKET_SOUND, 10, 0, 0}, /* the payload is to come */
		{"\x30\x08\0\1a\2\1", 7, HW_PACKET_CUT, 10, 8, 0},
		{"\x30\x08\0\1a\2\0\1xy", 10, HW_PACKET_UNSOUND, 10, 0, 0},
		{"\x32\x0a\0\1a\0\1\2\1\1xy", 12, HW_PACKET_SOUND, 12, 0, 0},
		{"\x34\x0a\0\1a\0\1\2\1\1xy", 12, HW_PACKET_UNSOUND, 12, 0, -1},
		{"\x40\2\0\1", 4, HW_PACKET_SOUND, 4, 0, 0},
		{"\x40\3\0\1\x10", 5, HW_PACKET_SOUND, 5, 0, 0},
		{"\x40\x0b\0\1\0\7\x1f\0\4text", 13, HW_PACKET_SOUND, 13, 0, 0},
		{"\x40\x0b\0\1\0\7\x1e\0\4text", 13, HW_PACKET_UNSOUND, 13, 0, 30},
		{"\x90\x0c\0\1\7\x26\0\1a\0\1bxy", 14, HW_PACKET_SOUND, 14, 0, 0},
		{"\xb0\2\0\1", 4, HW_PACKET_UNSOUND, 4, 0, -1},
		{"\xd0\0", 2, HW_PACKET_SOUND, 2, 0, 0},
		{"\xe0\0", 2, HW_PACKET_SOUND, 2, 0, 0},
		{"\xe0\4\0\2\x7f\0", 6, HW_PACKET_UNSOUND, 6, 0, 127},
		{"\x82\0", 2, HW_PACKET_UNSOUND, 2, 0, -1}, /* a client's */
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hw_packet_check c;
		char *block = malloc(cases[i].n ? cases[i].n : 1);
		memcpy(block, cases[i].bytes, cases[i].n);
		enum hw_packet_soundness s = hw_packet_check(block, cases[i].n, &c);
		free(block);
		ck_assert_msg(s == cases[i].soundness, "case %zu: %d", i, (int)s);
		ck_assert_msg(c.size == cases[i].size, "case %zu: size %zu", i, c.size);
		if (s == HW_PACKET_CUT)
			ck_assert_msg(c.need == cases[i].need, "case %zu: need %zu", i, c.need);
		if (s == HW_PACKET_UNSOUND)
			ck_assert_msg(c.property == cases[i].property, "case %zu: property %d", i, c.property);
	}
}
END_TEST

/* The topic, the id and the end of the properties are known as soon as their bytes are here. */
START_TEST(test_offsets)
{
	static const struct {
		const char *bytes;
		size_t n, topic_at, topic_len, id, properties_end;
	} cases[] = {
		{"\x30\x08\0", 3, 0, 0, 0, 0},
		{"\x30\x08\0\1", 4, 4, 1, 0, 0},
		{"\x30\x08\0\1a\2", 6, 4, 1, 0, 8},
		{"\x30\xff\xff\x7f\0\2ab\xc0\x84\x3d\x26", 12, 6, 2, 0, 1000011},
		{"\x32\xff\xff\x7f\0\2ab\1\2\xc0\x84\x3d\x26", 14, 6, 2, 258, 1000013},
		{"\x32\xff\xff\x7f\0\2ab\1", 9, 6, 2, 0, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hw_packet_check c;
		ck_assert_int_eq(hw_packet_check(cases[i].bytes, cases[i].n, &c), HW_PACKET_CUT);
		ck_assert_msg(c.topic_at == cases[i].topic_at && c.topic_len == cases[i].topic_len &&
		                      c.id == cases[i].id && c.properties_end == cases[i].properties_end,
		              "case %zu: topic %zu, %zu; id %zu; properties to %zu", i, c.topic_at, c.topic_len, c.id,
		              c.properties_end);
	}
}
END_TEST

/* --- at random */

static size_t put_length(uint8_t *to, size_t value)
{
	size_t n = 0;
	do {
		to[n] = (uint8_t)(value & 127);
		value >>= 7;
		to[n++] |= value ? 128 : 0;
	} while (value);
	return n;
}

struct made {
	uint8_t bytes[80000];
	size_t n, topic_at, topic_len, payload_at, payload_len;
};

static void make(struct made *m, bool v5)
{
	static const uint32_t sizes[] = {1, 4, 130, 300, 17000};
	size_t properties = v5 ? random_below(sizes[random_below(4)]) : 0;
	m->topic_len = 1 + random_below(sizes[random_below(5)]);
	m->payload_len = random_below(sizes[random_below(5)]);
	uint8_t property_bytes[4];
	size_t property_head = v5 ? put_length(property_bytes, properties) : 0;
	m->bytes[0] = (uint8_t)(0x30 | random_below(2));
	m->n = 1;
	m->n += put_length(m->bytes + 1, 2 + m->topic_len + property_head + properties + m->payload_len);
	m->bytes[m->n++] = (uint8_t)(m->topic_len >> 8);
	m->bytes[m->n++] = (uint8_t)m->topic_len;
	m->topic_at = m->n;
	m->n += m->topic_len;
	memcpy(m->bytes + m->n, property_bytes, property_head);
	m->n += property_head + properties;
	m->payload_at = m->n;
	m->n += m->payload_len;
}

START_TEST(test_random)
{
	static struct made m;
	uint64_t began = random_state.state;
	for (int i = 0; i < RANDOM_PACKETS; i++) {
		struct hw_packet p;
		bool v5 = random_below(2);
		make(&m, v5);
		size_t behind = random_below(3), cut = random_below((uint32_t)m.n);
		ck_assert_msg(look(m.bytes, m.n + behind, v5, &p) == HW_PACKET_MESSAGE, "seed %llu, packet %d",
		              (unsigned long long)began, i);
		ck_assert_uint_eq(p.size, m.n);
		ck_assert_uint_eq(p.topic_len, m.topic_len);
		ck_assert_int_eq(memcmp(p.topic, m.bytes + m.topic_at, m.topic_len), 0);
		ck_assert_uint_eq(p.payload_len, m.payload_len);
		ck_assert_int_eq(memcmp(p.payload, m.bytes + m.payload_at, m.payload_len), 0);
		ck_assert_int_eq(p.retained, m.bytes[0] & 1);
		ck_assert_int_eq(look(m.bytes, cut, v5, &p), HW_PACKET_PART);
		ck_assert_msg(p.size > cut && p.size <= m.n, "seed %llu, packet %d: %zu of %zu, cut at %zu",
		              (unsigned long long)began, i, p.size, m.n, cut);
		if (cut >= 5)
			ck_assert_uint_eq(p.size, m.n);
	}
}
END_TEST

/* Whatever the bytes are: nothing is read beyond them, and a message lies within them. */
START_TEST(test_garbage)
{
	for (int i = 0; i < RANDOM_PACKETS; i++) {
		uint8_t bytes[64];
		size_t n = random_below(sizeof(bytes));
		struct hw_packet p;
		for (size_t k = 0; k < n; k++)
			bytes[k] = (uint8_t)random_below(k < 4 ? 16 : 256);
		bytes[0] = random_below(4) ? 0x30 : bytes[0];
		if (look(bytes, n, random_below(2), &p) != HW_PACKET_MESSAGE)
			continue;
		ck_assert_uint_le(p.size, n);
		ck_assert_uint_le(p.topic_len + p.payload_len + 4, p.size);
	}
}
END_TEST

/* --- acknowledgements */

START_TEST(test_acks)
{
	static const struct {
		const char *bytes;
		size_t n;
		bool v5;
		enum hw_packet_ack_kind kind;
		size_t size;
		unsigned id, reason;
	} cases[] = {
		{"", 0, true, HW_PACKET_ACK_PART, 1, 0, 0},
		{"\x40", 1, true, HW_PACKET_ACK_PART, 2, 0, 0},
		{"\x40\2", 2, true, HW_PACKET_ACK_PART, 4, 0, 0},
		{"\x40\2\1", 3, true, HW_PACKET_ACK_PART, 4, 0, 0},
		{"\x40\2\1\2", 4, true, HW_PACKET_ACK, 4, 258, 0},
		{"\x40\2\1\2\x40", 5, true, HW_PACKET_ACK, 4, 258, 0},
		{"\x40\3\1\2", 4, true, HW_PACKET_ACK_PART, 5, 0, 0},
		{"\x40\3\1\2\x87", 5, true, HW_PACKET_ACK, 5, 258, 0x87},
		{"\x40\3\1\2\x87", 5, false, HW_PACKET_ACK, 5, 258, 0},
		{"\x40\4\1\2\x10", 5, true, HW_PACKET_ACK, 6, 258, 0x10}, /* its rest does not matter */
		{"\x40\x80", 2, true, HW_PACKET_ACK_PART, 3, 0, 0},
		{"\x40\x84\1\xff\xfe\0", 6, true, HW_PACKET_ACK, 135, 65534, 0},
		{"\x40\x80\x80\x80\x80", 5, true, HW_PACKET_NO_ACK, 0, 0, 0}, /* a length of five bytes */
		{"\x40\1\1", 3, true, HW_PACKET_NO_ACK, 3, 0, 0},             /* half an id */
		{"\x40\0", 2, true, HW_PACKET_NO_ACK, 2, 0, 0},
		{"\x40\xff\xff\xff\x7f\0\1", 7, true, HW_PACKET_NO_ACK, 268435460, 0, 0},
		{"\x40\xff\xff\xff\x7f", 5, false, HW_PACKET_NO_ACK, 268435460, 0, 0},
		{"\x40\xfc\xff\x07\1\2\0", 7, true, HW_PACKET_ACK, 1 << 17, 258, 0}, /* the longest */
		{"\x40\xfd\xff\x07\1\2\0", 7, true, HW_PACKET_NO_ACK, (1 << 17) + 1, 0, 0},
		{"\xd0\0", 2, true, HW_PACKET_NO_ACK, 2, 0, 0},
		{"\xe0\5\x8e", 3, true, HW_PACKET_NO_ACK, 7, 0, 0}, /* not whole, but known not to be one */
		{"\x50\2\1\2", 4, true, HW_PACKET_NO_ACK, 4, 0, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hw_packet_ack a;
		uint8_t *block = malloc(cases[i].n ? cases[i].n : 1);
		memcpy(block, cases[i].bytes, cases[i].n);
		enum hw_packet_ack_kind kind = hw_packet_peek_ack(block, cases[i].n, cases[i].v5, &a);
		free(block);
		ck_assert_msg(kind == cases[i].kind, "case %zu: %d", i, (int)kind);
		ck_assert_msg(a.size == cases[i].size, "case %zu: size %zu", i, a.size);
		ck_assert_msg(a.id == cases[i].id && a.reason == cases[i].reason, "case %zu: %u, %u", i, a.id,
		              a.reason);
	}
}
END_TEST

/* --- out */

START_TEST(test_publish)
{
	static const struct {
		struct hw_message m;
		bool v5;
		const char *bytes;
		size_t n;
	} cases[] = {
		{{"a", 1, "x", 1, 0, 0, false}, false, "\x30\4\0\1ax", 6},
		{{"a", 1, "x", 1, 0, 1, true}, false, "\x33\6\0\1a\1\2x", 8},
		{{"a", 1, "x", 1, 9, 1, true}, false, "\x33\6\0\1a\1\2x", 8}, /* 3.1.1 knows no expiry */
		{{"a", 1, NULL, 0, 0, 1, true}, true, "\x33\6\0\1a\1\2\0", 8},
		{{"a", 1, "x", 1, 0x01020304, 1, false}, true, "\x32\x0c\0\1a\1\2\5\2\1\2\3\4x", 14},
		{{"a", 1, "x", 1, 0x01020304, 0, false}, true, "\x30\x0a\0\1a\5\2\1\2\3\4x", 12},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t bytes[32];
		ck_assert_msg(hw_packet_publish_size(&cases[i].m, cases[i].v5) == cases[i].n, "case %zu", i);
		hw_packet_publish(bytes, &cases[i].m, cases[i].v5, 258);
		ck_assert_msg(memcmp(bytes, cases[i].bytes, cases[i].n) == 0, "case %zu", i);
	}
}
END_TEST

/* What is written with QoS 0 is read again, whatever its length. */
START_TEST(test_publish_any_length)
{
	static char payload[70000];
	static const uint32_t most[] = {130, 20000, sizeof(payload)};
	for (int i = 0; i < RANDOM_PACKETS; i++) {
		struct hw_message m = {.topic = "some/topic",
		                       .topic_len = 1 + random_below(10),
		                       .payload = payload,
		                       .payload_len = random_below(most[i % 3]),
		                       .expiry_s = random_below(2),
		                       .retain = random_below(2)};
		bool v5 = random_below(2);
		size_t size = hw_packet_publish_size(&m, v5);
		uint8_t *bytes = malloc(size);
		struct hw_packet p;
		memset(payload, i, m.payload_len);
		hw_packet_publish(bytes, &m, v5, 0);
		ck_assert_int_eq(hw_packet_peek(bytes, size, v5, &p), HW_PACKET_MESSAGE);
		ck_assert_uint_eq(p.size, size);
		ck_assert(p.retained == m.retain && p.topic_len == m.topic_len && p.payload_len == m.payload_len);
		ck_assert_int_eq(memcmp(p.topic, m.topic, m.topic_len), 0);
		ck_assert_int_eq(memcmp(p.payload, payload, m.payload_len), 0);
		free(bytes);
	}
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());
	Suite *s = suite_create("packet");
	TCase *t = tcase_create("packet");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_cases);
	tcase_add_test(t, test_retained);
	tcase_add_test(t, test_check);
	tcase_add_test(t, test_offsets);
	tcase_add_test(t, test_random);
	tcase_add_test(t, test_garbage);
	tcase_add_test(t, test_acks);
	tcase_add_test(t, test_publish);
	tcase_add_test(t, test_publish_any_length);
	suite_add_tcase(s, t);
	return suite_run(s);
}
