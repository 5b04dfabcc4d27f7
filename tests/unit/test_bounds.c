/* SPDX-License-Identifier: MIT */
/* Bounds of values that are read back from Redis; hostile JSON of a member costs no time. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "control/nodes.h"
#include "heartwheel/bounds.h"

#define NOW INT64_C(1700000000000)

START_TEST(times_and_seqs)
{
	ck_assert(hw_bounds_time(0, NOW) && hw_bounds_time(NOW + HW_BOUNDS_AHEAD_MS, NOW));
	ck_assert(!hw_bounds_time(-1, NOW) && !hw_bounds_time(INT64_MIN, NOW) && !hw_bounds_time(INT64_MAX, NOW));
	ck_assert(!hw_bounds_time(NOW + HW_BOUNDS_AHEAD_MS + 1, NOW));
	ck_assert(hw_bounds_seq(1, NOW) && hw_bounds_seq(NOW + HW_BOUNDS_AHEAD_MS, NOW));
	ck_assert(!hw_bounds_seq(0, NOW) && !hw_bounds_seq((UINT64_C(1) << 48) - 1, NOW));
	ck_assert(!hw_bounds_seq(UINT64_MAX, NOW) && !hw_bounds_seq(UINT64_C(1) << 63, INT64_MAX));
}
END_TEST

static void expect_text(const char *from, size_t len, size_t cap, const char *want)
{
	char to[16];
	bool same = hw_bounds_text(to, cap, from, len);
	ck_assert_str_eq(to, want);
	ck_assert_int_eq(same, strlen(want) == len && memcmp(want, from, len) == 0);
}

START_TEST(texts)
{
	expect_text("abc", 3, 4, "abc");
	expect_text("abc", 3, 3, "ab");
	expect_text("abc", 3, 1, "");
	expect_text("a\xc3\xa4", 3, 4, "a\xc3\xa4");
	expect_text("a\xc3\xa4", 3, 3, "a"); /* no half character */
	expect_text("a\xff\xfe"
	            "b",
	            4, 16, "a??b");
	expect_text("\xed\xa0\x80", 3, 16, "???"); /* a surrogate */
	expect_text("a\0b", 3, 16, "a?b");
	expect_text("a\xc3", 2, 16, "a?");
}
END_TEST

static char *nested(size_t depth, const char *tail)
{
	char *text = malloc(depth * 8 + 64), *at = text;
	at += sprintf(at, "{\"name\":");
	for (size_t i = 0; i < depth; i++)
		at += sprintf(at, "{\"a\":");
	at += sprintf(at, "%s", tail);
	for (size_t i = 0; i <= depth; i++)
		*at++ = '}';
	*at = '\0';
	return text;
}

START_TEST(json)
{
	char *text = nested(HW_BOUNDS_DEPTH_MAX - 1, "\"[[[[[[[[[[[[\\\"{{{{{{{\"");
	ck_assert(hw_bounds_json(text, strlen(text)));
	free(text);
	text = nested(HW_BOUNDS_DEPTH_MAX, "1");
	ck_assert(!hw_bounds_json(text, strlen(text)));
	free(text);
	text = calloc(1, HW_BOUNDS_JSON_MAX + 1);
	ck_assert(hw_bounds_json(text, HW_BOUNDS_JSON_MAX) && !hw_bounds_json(text, HW_BOUNDS_JSON_MAX + 1));
	free(text);
}
END_TEST

/* Comparing nested objects by cJSON_Compare() takes a time that doubles with each level: of 60 it never ends. */
START_TEST(members_are_compared_in_no_time)
{
	char *text = nested(60, "1");
	ck_assert_uint_ne(hw_control_differs(text, text), 0); /* an object is no name */
	ck_assert_uint_eq(hw_control_differs("{\"name\":\"a\",\"protocol\":1}", "{\"name\":\"a\",\"protocol\":1}"), 0);
	ck_assert_uint_eq(hw_control_differs("{\"name\":\"a\",\"protocol\":1}", "{\"protocol\":1}"), 0);
	ck_assert_uint_eq(hw_control_differs("{\"name\":\"a\"}", "{\"name\":\"b\"}"), HW_DIFFERS_NAME);
	ck_assert_uint_ne(hw_control_differs("{\"protocol\":1}", "{\"protocol\":2}"), 0);
	ck_assert_uint_ne(hw_control_differs("{\"protocol\":1}", "{\"protocol\":\"1\"}"), 0);
	free(text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("bounds");
	TCase *t = tcase_create("all");
	tcase_add_test(t, times_and_seqs);
	tcase_add_test(t, texts);
	tcase_add_test(t, json);
	tcase_add_test(t, members_are_compared_in_no_time);
	suite_add_tcase(s, t);
	return suite_run(s);
}
