/* SPDX-License-Identifier: MIT */
/* The hash: published vectors, and a plain second writing of it for every length. */
#include <check.h>
#include <string.h>

#include "../suite.h"
#include "heartwheel/fnv.h"
#include "heartwheel/siphash.h"

static const uint8_t key[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* Key and input count up from 0. The 15-byte one is the example of the paper's appendix A. */
START_TEST(siphash_2_4_vectors)
{
	static const struct {
		size_t len;
		uint64_t hash;
	} rows[] = {
		{0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
		{7, UINT64_C(0xab0200f58b01d137)},  {8, UINT64_C(0x93f5f5799a932462)},
		{15, UINT64_C(0xa129ca6149be45e5)}, {63, UINT64_C(0x958a324ceb064572)},
	};
	uint8_t bytes[64];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* At each alignment, with different bytes around it: nothing else is hashed. */
		for (size_t shift = 0; shift < 8 && rows[i].len + shift <= sizeof(bytes); shift++) {
			memset(bytes, (int)(0xf0 + shift), sizeof(bytes));
			for (size_t n = 0; n < rows[i].len; n++)
				bytes[shift + n] = (uint8_t)n;
			ck_assert_uint_eq(hw_siphash(2, 4, key, bytes + shift, rows[i].len), rows[i].hash);
		}
	}
	ck_assert_uint_eq(hw_siphash(2, 4, key, NULL, 0), rows[0].hash);
}
END_TEST

START_TEST(siphash_1_3_vector)
{
	ck_assert_uint_eq(hw_siphash(1, 3, key, NULL, 0), UINT64_C(0xabac0158050fc4dc));
}
END_TEST

/* The last block, byte by byte as the paper has it, for inputs of up to a word; of longer ones word by word. */
static uint64_t plain_siphash_1_3(const uint8_t *in, size_t len)
{
	struct hw_sip v = {
		hw_sip_word(key) ^ UINT64_C(0x736f6d6570736575), hw_sip_word(key + 8) ^ UINT64_C(0x646f72616e646f6d),
		hw_sip_word(key) ^ UINT64_C(0x6c7967656e657261), hw_sip_word(key + 8) ^ UINT64_C(0x7465646279746573)};
	for (size_t at = 0; at <= len; at += 8) {
		uint64_t m = 0;
		for (size_t i = at; i < at + 8 && i < len; i++)
			m |= (uint64_t)in[i] << 8 * (i - at);
		if (at + 8 > len)
			m |= (uint64_t)len << 56;
		v.v3 ^= m;
		hw_sip_rounds(&v, 1);
		v.v0 ^= m;
	}
	v.v2 ^= 0xff;
	hw_sip_rounds(&v, 3);
	return v.v0 ^ v.v1 ^ v.v2 ^ v.v3;
}

START_TEST(siphash_of_each_length)
{
	uint8_t bytes[80];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37 + 200);
	for (size_t len = 0; len <= 64; len++)
		for (size_t shift = 0; shift < 8; shift++)
			ck_assert_uint_eq(hw_siphash(1, 3, key, bytes + shift, len),
			                  plain_siphash_1_3(bytes + shift, len));
}
END_TEST

/* The vectors of the draft, appendix C. Numbers in Redis and in Home Assistant's topics rest on them. */
START_TEST(fnv_vectors)
{
	ck_assert_uint_eq(hw_fnv32("", 0), 0x811c9dc5);
	ck_assert_uint_eq(hw_fnv32("a", 1), 0xe40c292c);
	ck_assert_uint_eq(hw_fnv32("foobar", 6), 0xbf9cf968);
	ck_assert_uint_eq(hw_fnv64(HW_FNV64_BEGIN, "a", 1), UINT64_C(0xaf63dc4c8601ec8c));
	ck_assert_uint_eq(hw_fnv64(hw_fnv64(HW_FNV64_BEGIN, "foo", 3), "bar", 3), UINT64_C(0x85944171f73967e8));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("siphash");
	TCase *tc = tcase_create("hash");
	tcase_add_test(tc, siphash_2_4_vectors);
	tcase_add_test(tc, siphash_1_3_vector);
	tcase_add_test(tc, siphash_of_each_length);
	tcase_add_test(tc, fnv_vectors);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
