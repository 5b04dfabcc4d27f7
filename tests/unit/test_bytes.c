/* SPDX-License-Identifier: MIT */
/* Short runs of bytes: compared and searched as memcmp() and memchr() would, at each length, place and alignment. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "core/bytes.h"

#define LONGEST 40

START_TEST(equal)
{
	uint8_t a[LONGEST + 16], b[LONGEST + 16];
	for (size_t len = 0; len <= LONGEST; len++) {
		for (size_t shift = 0; shift < 8; shift++) {
			memset(a, 'x', sizeof(a));
			memset(b, 'y', sizeof(b)); /* what is around does not count */
			for (size_t i = 0; i < len; i++)
				a[shift + i] = b[7 - shift + i] = (uint8_t)i;
			ck_assert(hw_bytes_equal(a + shift, b + 7 - shift, len));
			for (size_t i = 0; i < len; i++) {
				b[7 - shift + i] ^= 0x80;
				ck_assert_msg(!hw_bytes_equal(a + shift, b + 7 - shift, len), "byte %zu of %zu", i,
				              len);
				b[7 - shift + i] ^= 0x80;
			}
		}
	}
}
END_TEST

START_TEST(contain)
{
	/* Neighbours of the byte, in value, before and behind it: a borrow must not make one of them look like it. */
	static const uint8_t others[] = {'/' - 1, '/' + 1, '/' ^ 0x80, 0, 0xff};
	uint8_t a[LONGEST + 16];
	for (size_t len = 0; len <= LONGEST; len++) {
		for (size_t o = 0; o < sizeof(others); o++) {
			memset(a, '/', sizeof(a));
			memset(a + 8, others[o], len);
			ck_assert_msg(!hw_bytes_contain(a + 8, '/', len), "%zu times %d", len, others[o]);
			for (size_t i = 0; i < len; i++) {
				a[8 + i] = '/';
				ck_assert_msg(hw_bytes_contain(a + 8, '/', len), "byte %zu of %zu", i, len);
				a[8 + i] = others[o];
			}
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bytes");
	TCase *tc = tcase_create("bytes");
	tcase_add_test(tc, equal);
	tcase_add_test(tc, contain);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
