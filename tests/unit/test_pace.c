/* SPDX-License-Identifier: MIT */
/* What a loop finds out when it wakes: late, or after its machine has slept. */
#include "../suite.h"
#include "heartwheel/pace.h"
#include "world.h"

#define STALL (500 * MS)

static struct hw_pace p;

static void setup(void)
{
	p = (struct hw_pace){0};
}

static struct hw_pace_woke wakes(int64_t ns, int64_t ahead_ns)
{
	return hw_pace_woke(&p, (struct hw_mono){ns}, ahead_ns, STALL);
}

START_TEST(test_the_first_time_nothing_is_late)
{
	struct hw_pace_woke w = wakes(1000 * S, 5000 * S);
	ck_assert(!w.suspended && !w.stalled);
}
END_TEST

START_TEST(test_late_by_more_than_was_allowed)
{
	wakes(1000 * S, 0);
	hw_pace_sleeps(&p, (struct hw_mono){1000 * S}, S);
	ck_assert(!wakes(1001 * S + STALL, 0).stalled);
	hw_pace_sleeps(&p, (struct hw_mono){1001 * S}, S);
	struct hw_pace_woke w = wakes(1002 * S + STALL + 1, 0);
	ck_assert(w.stalled && !w.suspended);
	ck_assert_int_eq(w.planned.ns, 1002 * S);
}
END_TEST

/* Several callbacks may be woken before the loop sleeps again: what was planned has been kept by the first. */
START_TEST(test_a_stall_is_told_once)
{
	wakes(1000 * S, 0);
	hw_pace_sleeps(&p, (struct hw_mono){1000 * S}, S);
	ck_assert(wakes(1010 * S, 0).stalled);
	ck_assert(!wakes(1020 * S, 0).stalled);
}
END_TEST

START_TEST(test_a_machine_that_slept)
{
	wakes(1000 * S, 7 * S);
	wakes(1001 * S, 7 * S);
	struct hw_pace_woke w = wakes(1002 * S, 17 * S);
	ck_assert(w.suspended && !w.stalled);
	ck_assert_int_eq(w.since.ns, 1001 * S);
	ck_assert_int_eq(w.slept_ns, 10 * S);
	ck_assert(!wakes(1003 * S, 17 * S).suspended);
	ck_assert(!wakes(1004 * S, 17 * S + 500 * MS).suspended); /* the clocks are not read at one moment */
}
END_TEST

START_TEST(test_how_long_it_may_sleep)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", 10000);
	struct world *w = world_new(&conf, &g, 1);
	ck_assert_int_eq(hw_pace_wait_ns(w->m, w->now), 0); /* it has to tell that it is blind */
	world_connect(w);
	world_pass(w, S);
	world_beat(w, "a", "");
	int64_t wait_ns = hw_pace_wait_ns(w->m, w->now);
	ck_assert_int_gt(wait_ns, 0);
	ck_assert_int_le(wait_ns, 5 * S); /* for the next barrier */
	w->now.mono.ns += wait_ns;
	ck_assert_int_eq(hw_pace_wait_ns(w->m, w->now), 0);
	w->now.mono.ns += S;
	ck_assert_int_eq(hw_pace_wait_ns(w->m, w->now), 0);
	world_free(w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pace");
	TCase *tc = tcase_create("pace");
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, test_the_first_time_nothing_is_late);
	tcase_add_test(tc, test_late_by_more_than_was_allowed);
	tcase_add_test(tc, test_a_stall_is_told_once);
	tcase_add_test(tc, test_a_machine_that_slept);
	tcase_add_test(tc, test_how_long_it_may_sleep);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
