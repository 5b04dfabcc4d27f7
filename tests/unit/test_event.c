/* SPDX-License-Identifier: MIT */
/* The fields of an entry of the event stream. */
#include <check.h>
#include <string.h>

#include "../suite.h"
#include "heartwheel/entry.h"
#include "heartwheel/event.h"

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
	field(e, "parent", "a\nb");
	field(e, "timeout_ms", "20000");
	field(e, "wait_ms", "1");
	field(e, "form", "0abc0def");
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
	ck_assert_uint_eq(e.event.parents_len, 3);
	ck_assert_int_eq(e.event.timeout_ms, 20000);
	ck_assert_int_eq(e.event.wait_ms, 1);
	ck_assert(e.event.has_form && e.event.form == 0x0abc0def);
}
END_TEST

START_TEST(wrong_parents_are_none)
{
	static const char *const wrong[] = {"", "\n", "a\n", "\na", "a\n\nb", "a+", "a\nb\nc\nd\ne", "\xff"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct hw_entry e;
		hw_entry_begin(&e);
		field(&e, "parent", wrong[i]);
		field(&e, "wait_ms", "-1");
		ck_assert_uint_eq(e.has, 0);
		ck_assert_uint_eq(e.event.parents_len, 0);
		ck_assert_int_eq(e.event.wait_ms, -1);
	}
}
END_TEST

START_TEST(a_wrong_form_is_none)
{
	static const char *const wrong[] = {"", "x", "123456789", "12 ", "g2345678"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct hw_entry e;
		hw_entry_begin(&e);
		field(&e, "form", wrong[i]);
		ck_assert(e.has == 0 && !e.event.has_form);
	}
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
	tcase_add_test(t, an_entry_is_a_transition);
	tcase_add_test(t, wrong_parents_are_none);
	tcase_add_test(t, a_wrong_form_is_none);
	tcase_add_test(t, an_entry_without_what_matters_is_none);
	tcase_add_test(t, values_that_are_none_are_left_out);
	suite_add_tcase(s, t);
	return suite_run(s);
}
