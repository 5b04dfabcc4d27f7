/* SPDX-License-Identifier: MIT */
/*
 * How long a connection waits for its next attempt: a broker that is away is tried every second or two without end.
 * Only a client that the broker refuses waits longer. A broker that restarts is never mistaken for another client that
 * uses the same id.
 */
#include <check.h>
#include <stdlib.h>

#include "../suite.h"
#include "heartwheel/time.h"
#include "mqtt/backoff.h"

#define TRIES 200

static const uint32_t randoms[] = {0, 1, 12345, UINT32_MAX};

static void expect(struct hw_backoff *b, enum hw_fault fault, int64_t up_ns, int64_t least_ms, int64_t most_ms)
{
	for (unsigned i = 0; i < sizeof(randoms) / sizeof(*randoms); i++) {
		struct hw_backoff same = *b;
		int64_t ms = hw_backoff_ms(&same, fault, up_ns, randoms[i]);
		ck_assert_msg(ms >= least_ms && ms <= most_ms, "%d ms", (int)ms);
	}
	hw_backoff_ms(b, fault, up_ns, 0);
}

START_TEST(test_away_is_never_long)
{
	struct hw_backoff b = {0};
	expect(&b, HW_FAULT_AWAY, 0, 50, 250);
	expect(&b, HW_FAULT_AWAY, 0, 500, 1000);
	for (int i = 0; i < TRIES; i++)
		expect(&b, HW_FAULT_AWAY, 0, 1000, 2000);
	for (int i = 0; i < TRIES; i++)
		expect(&b, HW_FAULT_UNREACHED, 0, 2500, 5000);
	expect(&b, HW_FAULT_UNANSWERED, 0, 2500, 5000);
}
END_TEST

START_TEST(test_a_link_that_was_up_is_tried_at_once)
{
	struct hw_backoff b = {0};
	for (int i = 0; i < TRIES; i++) {
		expect(&b, HW_FAULT_CLOSED, 3 * HW_NS_PER_S, 1, 1);
		expect(&b, HW_FAULT_AWAY, 0, 50, 250);
		ck_assert(!hw_backoff_taken_over(&b, 3 * HW_NS_PER_S));
	}
}
END_TEST

/* Up for a moment each time: not in a tight loop, and not for a minute either. */
START_TEST(test_closed_at_once_again_and_again)
{
	struct hw_backoff b = {0};
	for (int i = 0; i < 3; i++)
		expect(&b, HW_FAULT_CLOSED, 1, 1, 1);
	for (int i = 0; i < TRIES; i++)
		expect(&b, HW_FAULT_CLOSED, 1, 1000, 2000);
}
END_TEST

START_TEST(test_refusals_wait_up_to_a_minute)
{
	static const enum hw_fault faults[] = {HW_FAULT_REFUSED, HW_FAULT_TAKEN};
	struct hw_backoff b = {0};
	for (int64_t ms = 1000; ms < 60000; ms *= 2)
		expect(&b, faults[_i], 0, ms * 3 / 4, ms * 5 / 4);
	for (int i = 0; i < TRIES; i++)
		expect(&b, faults[_i], _i ? 5 * HW_NS_PER_S : 0, 45000, 75000);
	expect(&b, HW_FAULT_AWAY, 0, 50, 250); /* restarted: its mind may have changed */
	expect(&b, faults[_i], 0, 750, 1250);
}
END_TEST

/* Closed after this time, and then tried again. Returns whether it was taken for a rival. */
static bool closed(struct hw_backoff *b, int64_t up_ns)
{
	bool rival = hw_backoff_taken_over(b, up_ns);
	hw_backoff_ms(b, rival ? HW_FAULT_TAKEN : HW_FAULT_CLOSED, up_ns, 0);
	return rival;
}

START_TEST(test_kicked)
{
	struct hw_backoff b = {0};
	int64_t up_ns = _i ? HW_NS_PER_S / 10 : HW_NS_PER_S;
	ck_assert(!closed(&b, up_ns));
	ck_assert(!closed(&b, up_ns));
	for (unsigned times = 1; times < 8;
	     times++) { /* a rival that is known is found again sooner, and waited for longer */
		ck_assert(closed(&b, up_ns));
		ck_assert_uint_eq(b.refusals, times);
		ck_assert(!closed(&b, up_ns));
	}
	closed(&b, 11 * HW_NS_PER_S); /* it stayed up: the other one is gone */
	ck_assert_uint_eq(b.refusals, 0);
	ck_assert(!closed(&b, up_ns));
	ck_assert(!closed(&b, up_ns));
}
END_TEST

/* However soon it closes: it is away in between, or back before anybody has looked after a longer wait. */
START_TEST(test_a_restarting_broker_is_no_rival)
{
	struct hw_backoff b = {0};
	for (int i = 0; i < TRIES; i++) {
		ck_assert(!closed(&b, HW_NS_PER_S / 2));
		if (b.at_once)
			hw_backoff_ms(&b, HW_FAULT_AWAY, 0, 0);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("back-off");
	TCase *t = tcase_create("back-off");
	tcase_add_test(t, test_away_is_never_long);
	tcase_add_test(t, test_a_link_that_was_up_is_tried_at_once);
	tcase_add_test(t, test_closed_at_once_again_and_again);
	tcase_add_loop_test(t, test_refusals_wait_up_to_a_minute, 0, 2);
	tcase_add_loop_test(t, test_kicked, 0, 2);
	tcase_add_test(t, test_a_restarting_broker_is_no_rival);
	suite_add_tcase(s, t);
	return suite_run(s);
}
