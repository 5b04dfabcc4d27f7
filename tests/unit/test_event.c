/* SPDX-License-Identifier: MIT */
/* Places in the event stream: their texts and their order. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/event.h"

static int parse(const char *text, struct hw_event_id *at)
{
	return hw_event_id_parse(text, strlen(text), at);
}

START_TEST(texts_go_there_and_back)
{
	static const char *const texts[] = {"0-0",
	                                    "0-1",
	                                    "1-0",
	                                    "1700000000000-0",
	                                    "1700000000000-42",
	                                    "18446744073709551615-18446744073709551615"};
	char buf[HW_EVENT_ID_TEXT];
	struct hw_event_id at;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_assert_int_eq(parse(texts[i], &at), 0);
		ck_assert_int_eq(hw_event_id_text(at, buf), (int)strlen(texts[i]));
		ck_assert_str_eq(buf, texts[i]);
	}
	ck_assert_int_eq(parse("1700000000000-42", &at), 0);
	ck_assert_uint_eq(at.ms, UINT64_C(1700000000000));
	ck_assert_uint_eq(at.n, 42);
}
END_TEST

START_TEST(others_are_refused)
{
	static const char *const texts[] = {"",
	                                    "-",
	                                    "1",
	                                    "1-",
	                                    "-1",
	                                    "1-1-1",
	                                    "a-1",
	                                    "1-a",
	                                    "1 -1",
	                                    " 1-1",
	                                    "1-1 ",
	                                    "01-1",
	                                    "1-01",
	                                    "+1-1",
	                                    "1--1",
	                                    "1.5-1",
	                                    "0x1-1",
	                                    "$",
	                                    "+",
	                                    "18446744073709551616-0",
	                                    "0-18446744073709551616",
	                                    "99999999999999999999999999-0"};
	struct hw_event_id at = {7, 7};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(parse(texts[i], &at) == -EINVAL, "%s", texts[i]);
	ck_assert_uint_eq(at.ms, 7);
	ck_assert_uint_eq(at.n, 7);
	ck_assert_int_eq(hw_event_id_parse("1-1x", 3, &at), 0); /* the length counts */
}
END_TEST

START_TEST(they_have_an_order)
{
	const struct hw_event_id order[] = {{0, 0}, {0, 1}, {1, 0}, {1, UINT64_MAX}, {2, 0}, {UINT64_MAX, 0}};
	const int n = sizeof(order) / sizeof(order[0]);

	for (int a = 0; a < n; a++)
		for (int b = 0; b < n; b++) {
			int c = hw_event_id_compare(order[a], order[b]);
			ck_assert(a < b ? c < 0 : a > b ? c > 0 : c == 0);
		}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("event");
	TCase *t = tcase_create("all");
	tcase_add_test(t, texts_go_there_and_back);
	tcase_add_test(t, others_are_refused);
	tcase_add_test(t, they_have_an_order);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
