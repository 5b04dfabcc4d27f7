/* SPDX-License-Identifier: MIT */
/*
 * What the publisher learns from a broker that does not take what it sends: against naive brokers of every kind, in few
 * connects, and never of one that was only away.
 */
#include <check.h>
#include <stdlib.h>

#include "../suite.h"
#include "heartwheel/time.h"
#include "mqtt/limits.h"

#define NO_RETAIN 0x9a
#define NO_QOS    0x9b

/* A broker that takes this in a will. */
struct taste {
	bool retain, qos, will, v5;
};

/* Connects once, as the publisher does. True if the connection is to be kept. */
static bool connect_to(struct hw_limits *l, struct taste b, bool *again)
{
	bool retain;
	int qos;
	*again = true;
	if (!hw_limits_will(l, &retain, &qos) || (b.will && (b.retain || !retain) && (b.qos || !qos)))
		return hw_limits_answered(l, b.retain || !b.v5, b.qos || !b.v5, 0);
	int refusal = !b.v5 || !b.will ? 0 : retain && !b.retain ? NO_RETAIN : NO_QOS;
	*again = hw_limits_failed(l, refusal);
	return false;
}

static unsigned connects(struct hw_limits *l, struct taste b)
{
	unsigned n = 1;
	bool again;
	while (!connect_to(l, b, &again) && n < 20) {
		ck_assert(again);
		n++;
	}
	return n;
}

START_TEST(test_every_broker)
{
	for (int k = 0; k < 16; k++) {
		struct taste b = {k & 1, k & 2, k & 4, k & 8};
		struct hw_limits l = {0};
		unsigned first = connects(&l, b);
		ck_assert_uint_le(first, 7);
		ck_assert(!(b.retain && b.qos && b.will) || first == 1);
		ck_assert_uint_eq(connects(&l, b), 1); /* known by now */
		if (b.will || b.v5) {
			ck_assert_int_eq(!(l.known & HW_MISSING_RETAIN), b.retain);
			ck_assert_int_eq(!(l.known & HW_MISSING_QOS), b.qos);
		}
		ck_assert_int_eq(!(l.known & HW_MISSING_WILL), b.will);
		unsigned news = 0;
		for (enum hw_missing_feature one; (one = hw_limits_news(&l)) != 0; news |= one)
			ck_assert(!(news & one));
		ck_assert_uint_eq(news, l.known);
		hw_limits_forget(&l);
		connects(&l, b);
		ck_assert_int_eq(hw_limits_news(&l), 0); /* the same again is no news */
		hw_limits_forget(&l);
		ck_assert_uint_eq(connects(&l, (struct taste){true, true, true, b.v5}), 1);
		ck_assert_uint_eq(l.known, 0);
	}
}
END_TEST

/* Connections are closed unanswered, by a proxy say, and then the broker is there: nothing is learned of that. */
START_TEST(test_a_broker_that_is_away)
{
	struct hw_limits l = {0};
	for (int i = 0; i < 50; i++)
		ck_assert_int_eq(hw_limits_failed(&l, 0), i % 2 == 0);
	connects(&l, (struct taste){true, true, true, _i});
	ck_assert_uint_eq(l.known, 0);
	ck_assert(hw_limits_failed(&l, 0)); /* and right between a question and its answer */
	connects(&l, (struct taste){true, true, true, _i});
	ck_assert_uint_eq(l.known, 0);
}
END_TEST

START_TEST(test_other_refusals_are_no_question)
{
	struct hw_limits l = {0};
	ck_assert(!hw_limits_failed(&l, 5));
	ck_assert(!hw_limits_failed(&l, 0x87));
	ck_assert_int_eq(l.form, HW_FORM_WHOLE);
}
END_TEST

START_TEST(test_a_size_that_is_not_taken)
{
	struct hw_limits l = {0};
	hw_limits_taken(&l, 99, 300);
	hw_limits_closed(&l, 20, 1, 250, 0);
	ck_assert(!hw_limits_careful(&l)); /* a restart looks the same */
	hw_limits_closed(&l, 20, 1, 250, 0);
	ck_assert(hw_limits_careful(&l));
	hw_limits_closed(&l, 1, 7, 400, 0);
	ck_assert(hw_limits_takes(&l, 400, 0));
	hw_limits_closed(&l, 1, 7, 400, 0);
	ck_assert(!hw_limits_takes(&l, 400, 0) && hw_limits_too_long(&l, 400));
	ck_assert(hw_limits_takes(&l, 399, 0) && !hw_limits_too_long(&l, 399));
	ck_assert_int_eq(hw_limits_news(&l), HW_MISSING_PACKET);
	for (int i = 0; i < 100; i++)
		hw_limits_taken(&l, 99, 10);
	ck_assert(!hw_limits_careful(&l));
}
END_TEST

START_TEST(test_statuses_that_are_not_taken)
{
	struct hw_limits l = {0};
	int64_t now = 0, wait_ns = 60 * HW_NS_PER_S;
	hw_limits_closed(&l, 5, 1, 200, now);
	hw_limits_closed(&l, 5, 1, 200, now);
	for (int i = 0; i < 20; i++) {
		ck_assert(hw_limits_takes(&l, 200, now));
		ck_assert(hw_limits_careful(&l));
		hw_limits_closed(&l, 1, 1, 200, now);
		ck_assert(hw_limits_takes(&l, 200, now));
		hw_limits_closed(&l, 1, 1, 200, now);
		ck_assert(!hw_limits_takes(&l, 10, now + wait_ns - 1) && !hw_limits_too_long(&l, 10));
		now += wait_ns;
		wait_ns = 2 * wait_ns < 3840 * HW_NS_PER_S ? 2 * wait_ns : 3840 * HW_NS_PER_S;
	}
	ck_assert_int_eq(hw_limits_news(&l), HW_MISSING_STATUS);
	ck_assert_int_eq(hw_limits_news(&l), 0);
	for (int i = 0; i < 100; i++)
		hw_limits_taken(&l, 99, 200);
	ck_assert(!hw_limits_careful(&l));
}
END_TEST

/* A monitor says that it is blind whenever the broker restarts: its presence is in flight alone each time. */
START_TEST(test_what_was_taken_in_between_is_not_suspected)
{
	struct hw_limits l = {0};
	for (int i = 0; i < 10; i++) {
		hw_limits_closed(&l, 1, 7, 400, 0);
		hw_limits_taken(&l, 8, 100);
		hw_limits_taken(&l, 7, 300);
		ck_assert(hw_limits_takes(&l, 400, 0));
	}
	ck_assert_int_eq(hw_limits_news(&l), 0);
	hw_limits_closed(&l, 1, 7, 400, 0);
	hw_limits_taken(&l, 8, 100);
	hw_limits_closed(&l, 1, 7, 400, 0);
	ck_assert(!hw_limits_takes(&l, 400, 0)); /* that others were taken says nothing of it */
}
END_TEST

/* Who does not say what a message is about is not suspected: two that have nothing in common would be taken for one. */
START_TEST(test_what_nobody_knows_is_not_suspected)
{
	struct hw_limits l = {0};
	for (int i = 0; i < 10; i++)
		hw_limits_closed(&l, 1, 0, 200, 0);
	ck_assert(hw_limits_takes(&l, 200, 0));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("limits");
	TCase *t = tcase_create("limits");
	tcase_add_test(t, test_every_broker);
	tcase_add_loop_test(t, test_a_broker_that_is_away, 0, 2);
	tcase_add_test(t, test_other_refusals_are_no_question);
	tcase_add_test(t, test_a_size_that_is_not_taken);
	tcase_add_test(t, test_statuses_that_are_not_taken);
	tcase_add_test(t, test_what_was_taken_in_between_is_not_suspected);
	tcase_add_test(t, test_what_nobody_knows_is_not_suspected);
	suite_add_tcase(s, t);
	return suite_run(s);
}
