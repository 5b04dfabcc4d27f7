/* SPDX-License-Identifier: MIT */
/* The event stream: its places, their texts and their order; and the fields of its entries. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "heartwheel/entry.h"
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

/* --- entries */

static void field(struct hw_entry *e, const char *name, const char *value)
{
	hw_entry_field(e, name, strlen(name), value, strlen(value));
}

static void fill(struct hw_entry *e)
{
	hw_entry_begin(e);
	field(e, "seq", "18446744073709551615");
	field(e, "id", "d-1");
	field(e, "state", "offline");
	field(e, "reason", "timeout");
	field(e, "time_ms", "1700000000001");
	field(e, "last_seen_ms", "0");
	field(e, "group", "");
	field(e, "node", "n-1");
	field(e, "epoch", "7");
}

START_TEST(an_entry_is_a_transition)
{
	struct hw_entry e;
	fill(&e);
	ck_assert(hw_entry_is_whole(&e));
	ck_assert_uint_eq(e.has, (1U << HW_ENTRY_NAMES) - 1);
	ck_assert_mem_eq(e.event.id, "d-1", 3);
	ck_assert_uint_eq(e.event.id_len, 3);
	ck_assert_int_eq(e.event.state, HW_STATE_OFFLINE);
	ck_assert_int_eq(e.event.reason, HW_REASON_TIMEOUT);
	ck_assert_int_eq(e.event.time_ms, INT64_C(1700000000001));
	ck_assert_int_eq(e.event.last_seen_ms, 0);
	ck_assert_uint_eq(e.event.group_len, 0);
	ck_assert_mem_eq(e.event.node, "n-1", 3);
	ck_assert_uint_eq(e.event.node_len, 3);
	ck_assert_uint_eq(e.event.seq, UINT64_MAX);
	ck_assert_uint_eq(e.event.epoch, 7);
}
END_TEST

START_TEST(an_entry_without_what_matters_is_none)
{
	static const char *const missing[] = {"id", "state", "reason"};
	for (int i = 0; i < 3; i++) {
		struct hw_entry e;
		fill(&e);
		e.has = 0;
		for (int k = 0; k < 3; k++)
			if (k != i)
				field(&e, missing[k], k == 0 ? "d" : k == 1 ? "online" : "heartbeat");
		ck_assert(!hw_entry_is_whole(&e));
	}
}
END_TEST

START_TEST(values_that_are_none_are_left_out)
{
	static const char *const wrong[][2] = {{"id", ""},
	                                       {"id", "a+b"},
	                                       {"state", "asleep"},
	                                       {"state", "a state whose name is longer than any"},
	                                       {"reason", ""},
	                                       {"time_ms", "-1"},
	                                       {"time_ms", "9223372036854775808"},
	                                       {"last_seen_ms", "1 "},
	                                       {"seq", "18446744073709551616"},
	                                       {"seq", ""},
	                                       {"sequence", "1"},
	                                       {"i", "x"}};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct hw_entry e;
		hw_entry_begin(&e);
		field(&e, wrong[i][0], wrong[i][1]);
		ck_assert_uint_eq(e.has, 0);
		ck_assert_uint_eq(e.event.id_len, 0);
		ck_assert_uint_eq(e.event.seq, 0);
		ck_assert_int_eq(e.event.time_ms, 0);
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
	tcase_add_test(t, an_entry_is_a_transition);
	tcase_add_test(t, an_entry_without_what_matters_is_none);
	tcase_add_test(t, values_that_are_none_are_left_out);
	suite_add_tcase(s, t);
	return suite_run(s);
}
