/* SPDX-License-Identifier: MIT */
/* The names of states and reasons, there and back. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "../suite.h"
#include "heartwheel/transition.h"

static const struct {
	enum hw_state state;
	const char *name;
} states[] = {
	{HW_STATE_PROVISIONAL, "provisional"}, {HW_STATE_ONLINE, "online"}, {HW_STATE_OFFLINE, "offline"},
	{HW_STATE_FORGOTTEN, "forgotten"},     {HW_STATE_UNSEEN, "unseen"},
};

static const struct {
	enum hw_reason reason;
	const char *name;
} reasons[] = {
	{HW_REASON_HEARTBEAT, "heartbeat"}, {HW_REASON_TIMEOUT, "timeout"},
	{HW_REASON_WILL, "will"},           {HW_REASON_KEYSPACE, "keyspace"},
	{HW_REASON_OPERATOR, "operator"},   {HW_REASON_FORGET_AFTER, "forget_after"},
	{HW_REASON_PARENT, "parent"},       {HW_REASON_NEVER_SEEN, "never_seen"},
};

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

START_TEST(state_names)
{
	enum hw_state parsed = states[_i].state == HW_STATE_ONLINE ? HW_STATE_OFFLINE : HW_STATE_ONLINE;
	ck_assert_str_eq(hw_state_name(states[_i].state), states[_i].name);
	ck_assert_int_eq(hw_state_parse(states[_i].name, &parsed), 0);
	ck_assert_int_eq(parsed, states[_i].state);
}
END_TEST

START_TEST(reason_names)
{
	enum hw_reason parsed = reasons[_i].reason == HW_REASON_WILL ? HW_REASON_TIMEOUT : HW_REASON_WILL;
	ck_assert_str_eq(hw_reason_name(reasons[_i].reason), reasons[_i].name);
	ck_assert_int_eq(hw_reason_parse(reasons[_i].name, &parsed), 0);
	ck_assert_int_eq(parsed, reasons[_i].reason);
}
END_TEST

START_TEST(strangers)
{
	static const char *const names[] = {"", "Online", "onlin", "online ", "unknown", NULL};
	enum hw_state state = HW_STATE_OFFLINE;
	enum hw_reason reason = HW_REASON_WILL;
	for (size_t i = 0; i == 0 || names[i - 1]; i++) {
		ck_assert_int_eq(hw_state_parse(names[i], &state), -EINVAL);
		ck_assert_int_eq(hw_reason_parse(names[i], &reason), -EINVAL);
	}
	ck_assert_int_eq(state, HW_STATE_OFFLINE);
	ck_assert_int_eq(reason, HW_REASON_WILL);
	ck_assert_str_eq(hw_state_name((enum hw_state)5), "unknown");
	ck_assert_str_eq(hw_reason_name((enum hw_reason)8), "unknown");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("transition");
	TCase *tc = tcase_create("names");
	tcase_add_loop_test(tc, state_names, 0, COUNT(states));
	tcase_add_loop_test(tc, reason_names, 0, COUNT(reasons));
	tcase_add_test(tc, strangers);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
