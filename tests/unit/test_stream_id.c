/* SPDX-License-Identifier: MIT */
/* Ids of a stream's entries: their texts, hostile ones too, their order, and the ids around one. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "stream/id.h"

/* Parses a copy that ends where the text ends: a sanitizer sees each byte that is read after it. */
static int parse_copy(int (*parse)(const char *, size_t, struct hw_stream_id *), const char *text,
                      struct hw_stream_id *id)
{
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, len);
	int rc = parse(copy, len, id);
	free(copy);
	return rc;
}

START_TEST(texts_go_there_and_back)
{
	static const char *const texts[] = {"0-0",
	                                    "0-1",
	                                    "1-0",
	                                    "1700000000000-0",
	                                    "1700000000000-42",
	                                    "9223372036854775808-9223372036854775808",
	                                    "0-18446744073709551615",
	                                    "18446744073709551615-18446744073709551615"};
	char buf[HW_STREAM_ID_TEXT];
	struct hw_stream_id id;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_assert_int_eq(parse_copy(hw_stream_id_parse, texts[i], &id), 0);
		ck_assert_str_eq(hw_stream_id_print(id, buf), texts[i]);
		ck_assert_int_eq(parse_copy(hw_stream_id_parse_loose, texts[i], &id), 0);
		ck_assert_str_eq(hw_stream_id_print(id, buf), texts[i]);
	}
	ck_assert_uint_eq(strlen(buf) + 1, HW_STREAM_ID_TEXT);
	ck_assert_int_eq(parse_copy(hw_stream_id_parse, "9223372036854775808-42", &id), 0);
	ck_assert_uint_eq(id.ms, UINT64_C(1) << 63);
	ck_assert_uint_eq(id.seq, 42);
}
END_TEST

START_TEST(others_are_refused)
{
	static const char *const texts[] = {"",
	                                    "-",
	                                    "1-",
	                                    "-1",
	                                    "1-1-1",
	                                    "a-1",
	                                    "1-a",
	                                    "1 -1",
	                                    " 1-1",
	                                    "1-1 ",
	                                    "+1-1",
	                                    "1--1",
	                                    "1.5-1",
	                                    "0x1-1",
	                                    "$",
	                                    "+",
	                                    "18446744073709551616-0",
	                                    "18446744073709551616",
	                                    "0-18446744073709551616",
	                                    "0-36893488147419103232",
	                                    "99999999999999999999999999-0"};
	struct hw_stream_id id = {7, 7};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_assert_msg(parse_copy(hw_stream_id_parse, texts[i], &id) == -EINVAL, "%s", texts[i]);
		ck_assert_msg(parse_copy(hw_stream_id_parse_loose, texts[i], &id) == -EINVAL, "%s", texts[i]);
	}
	ck_assert_int_eq(hw_stream_id_parse("1\0-1", 4, &id), -EINVAL);
	ck_assert_int_eq(hw_stream_id_parse("1-1\0", 4, &id), -EINVAL);
	ck_assert_uint_eq(id.ms, 7);
	ck_assert_uint_eq(id.seq, 7);
	ck_assert_int_eq(hw_stream_id_parse("1-1x", 3, &id), 0); /* the length counts, and no NUL is needed */
}
END_TEST

START_TEST(the_loose_form_takes_more)
{
	static const struct {
		const char *text;
		struct hw_stream_id id;
	} loose[] = {{"0", {0, 0}},
	             {"1", {1, 0}},
	             {"18446744073709551615", {UINT64_MAX, 0}},
	             {"007", {7, 0}},
	             {"01-1", {1, 1}},
	             {"1-01", {1, 1}},
	             {"00-00", {0, 0}},
	             {"000000000000000000000001-2", {1, 2}}};
	struct hw_stream_id id;
	for (size_t i = 0; i < sizeof(loose) / sizeof(loose[0]); i++) {
		ck_assert_msg(parse_copy(hw_stream_id_parse, loose[i].text, &id) == -EINVAL, "%s", loose[i].text);
		ck_assert_int_eq(parse_copy(hw_stream_id_parse_loose, loose[i].text, &id), 0);
		ck_assert_int_eq(hw_stream_id_compare(id, loose[i].id), 0);
	}
}
END_TEST

START_TEST(they_have_an_order)
{
	const struct hw_stream_id order[] = {{0, 0},          {0, 1},
	                                     {1, 0},          {1, UINT64_MAX},
	                                     {2, 0},          {UINT64_C(1) << 63, 0},
	                                     {UINT64_MAX, 0}, HW_STREAM_ID_GREATEST};
	const int n = sizeof(order) / sizeof(order[0]);
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n; b++)
			ck_assert_int_eq(hw_stream_id_compare(order[a], order[b]), (a > b) - (a < b));
}
END_TEST

START_TEST(next_and_previous_are_neighbours)
{
	const struct hw_stream_id ids[][2] = {{{0, 0}, {0, 1}},
	                                      {{5, 6}, {5, 7}},
	                                      {{5, UINT64_MAX}, {6, 0}},
	                                      {{UINT64_MAX, UINT64_MAX - 1}, HW_STREAM_ID_GREATEST}};
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		ck_assert_int_eq(hw_stream_id_compare(hw_stream_id_next(ids[i][0]), ids[i][1]), 0);
		ck_assert_int_eq(hw_stream_id_compare(hw_stream_id_previous(ids[i][1]), ids[i][0]), 0);
	}
	ck_assert_int_eq(hw_stream_id_compare(hw_stream_id_next(HW_STREAM_ID_GREATEST), HW_STREAM_ID_GREATEST), 0);
	ck_assert_uint_eq(hw_stream_id_previous((struct hw_stream_id){0, 0}).seq, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stream_id");
	TCase *t = tcase_create("all");
	tcase_add_test(t, texts_go_there_and_back);
	tcase_add_test(t, others_are_refused);
	tcase_add_test(t, the_loose_form_takes_more);
	tcase_add_test(t, they_have_an_order);
	tcase_add_test(t, next_and_previous_are_neighbours);
	suite_add_tcase(s, t);
	return suite_run(s);
}
