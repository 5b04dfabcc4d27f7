/* SPDX-License-Identifier: MIT */
/* The seeing clock, case by case. Instants are small numbers of nanoseconds, and below 0 as well. */
#include <check.h>
#include <stdlib.h>

#include "../suite.h"
#include "heartwheel/blind.h"

static struct hw_blind b;

static void setup(void)
{
	hw_blind_init(&b);
}

static bool begin(enum hw_cause cause, int64_t at)
{
	return hw_blind_begin(&b, cause, (struct hw_mono){at}, false);
}

static bool begin_lossy(enum hw_cause cause, int64_t at)
{
	return hw_blind_begin(&b, cause, (struct hw_mono){at}, true);
}

static bool end(enum hw_cause cause, int64_t at)
{
	return hw_blind_end(&b, cause, (struct hw_mono){at});
}

static int64_t seen(int64_t now)
{
	return hw_blind_seen(&b, (struct hw_mono){now}).ns;
}

START_TEST(fresh)
{
	ck_assert(!hw_blind_now(&b));
	ck_assert_int_eq(seen(12345), 12345);
	ck_assert_int_eq(seen(-5), -5);
	ck_assert_int_eq(b.lossy_end.ns, INT64_MIN / 4);
	ck_assert_int_eq(b.begun.ns, INT64_MIN / 4);
	ck_assert_uint_eq(b.periods, 0);
	ck_assert(!end(HW_CAUSE_LINK, 50));
	ck_assert_int_eq(seen(60), 60);
}
END_TEST

START_TEST(one_period)
{
	ck_assert(begin(HW_CAUSE_STALL, 100));
	ck_assert(hw_blind_now(&b));
	ck_assert_int_eq(seen(100), 100);
	ck_assert_int_eq(seen(150), 100);
	ck_assert_int_eq(seen(99), 99);
	ck_assert_int_eq(b.begun.ns, 100);
	ck_assert_uint_eq(b.periods, 1);
	ck_assert_int_eq(b.first, HW_CAUSE_STALL);
	ck_assert(!end(HW_CAUSE_LINK, 160)); /* does not last */
	ck_assert(end(HW_CAUSE_STALL, 170));
	ck_assert(!hw_blind_now(&b));
	ck_assert(!end(HW_CAUSE_STALL, 180));
	ck_assert_int_eq(seen(170), 100);
	ck_assert_int_eq(seen(175), 105);
	ck_assert_int_eq(b.blind_ns, 70);
	ck_assert_int_eq(b.until.ns, 170);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_STALL], 70);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_LINK], 0);
	ck_assert_int_eq(b.lossy_end.ns, INT64_MIN / 4);
	/* The past can still be asked for. */
	ck_assert_int_eq(seen(169), 100);
	ck_assert_int_eq(seen(100), 100);
	ck_assert_int_eq(seen(90), 90);
}
END_TEST

START_TEST(causes_overlap)
{
	ck_assert(begin(HW_CAUSE_LINK, 100));
	ck_assert(!begin(HW_CAUSE_STALL, 110));
	ck_assert(!end(HW_CAUSE_LINK, 120));
	ck_assert(hw_blind_now(&b));
	ck_assert_int_eq(seen(125), 100);
	ck_assert(end(HW_CAUSE_STALL, 130));
	ck_assert_int_eq(b.blind_ns, 30);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_LINK], 20);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_STALL], 20);
	ck_assert_uint_eq(b.periods, 1);
	ck_assert_int_eq(b.first, HW_CAUSE_LINK);
	ck_assert(begin(HW_CAUSE_LOSS, 200));
	ck_assert_int_eq(b.begun.ns, 170);
	ck_assert_int_eq(b.first, HW_CAUSE_LOSS);
	ck_assert_uint_eq(b.periods, 2);
	ck_assert(end(HW_CAUSE_LOSS, 210));
	ck_assert_int_eq(seen(220), 180);
}
END_TEST

START_TEST(denied_barriers_give_a_period_its_name)
{
	ck_assert(begin(HW_CAUSE_STANDSTILL, 100));
	ck_assert(!begin(HW_CAUSE_BARRIER, 110));
	ck_assert_int_eq(b.first, HW_CAUSE_BARRIER);
	ck_assert(!begin(HW_CAUSE_LINK, 120));
	ck_assert_int_eq(b.first, HW_CAUSE_BARRIER);
	ck_assert_uint_eq(b.periods, 1);
	ck_assert_int_eq(b.since.ns, 100);
}
END_TEST

START_TEST(begins_in_the_past)
{
	ck_assert(begin(HW_CAUSE_STANDSTILL, 90)); /* reported at 100, for example */
	ck_assert_int_eq(seen(100), 90);
	ck_assert(!begin(HW_CAUSE_LINK, 50));
	ck_assert_int_eq(b.since.ns, 50);
	ck_assert_int_eq(b.begun.ns, 50);
	ck_assert_int_eq(b.first, HW_CAUSE_STANDSTILL);
	ck_assert_int_eq(seen(110), 50);
	ck_assert(!end(HW_CAUSE_LINK, 120));
	ck_assert(end(HW_CAUSE_STANDSTILL, 130));
	ck_assert_int_eq(b.blind_ns, 80);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_LINK], 70);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_STANDSTILL], 40);
	ck_assert_int_eq(seen(140), 60);
}
END_TEST

START_TEST(nothing_is_taken_twice)
{
	begin(HW_CAUSE_LINK, 100);
	end(HW_CAUSE_LINK, 200);
	ck_assert(begin(HW_CAUSE_LOSS, 150));
	ck_assert_int_eq(b.since.ns, 200);
	ck_assert_int_eq(b.begun.ns, 100);
	ck_assert_int_eq(seen(250), 100);
	ck_assert(!begin(HW_CAUSE_STALL, 10));
	ck_assert_int_eq(b.since.ns, 200);
	end(HW_CAUSE_STALL, 260);
	ck_assert(end(HW_CAUSE_LOSS, 260));
	ck_assert_int_eq(b.blind_ns, 160);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_LOSS], 60);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_STALL], 60);
	ck_assert_int_eq(seen(300), 140);
}
END_TEST

START_TEST(a_cause_comes_again)
{
	begin(HW_CAUSE_LINK, 100);
	begin(HW_CAUSE_STALL, 110);
	end(HW_CAUSE_STALL, 120);
	/* Within the same period, from before it ended: each cause is counted once, too. */
	ck_assert(!begin(HW_CAUSE_STALL, 115));
	end(HW_CAUSE_STALL, 130);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_STALL], 20);
	end(HW_CAUSE_LINK, 140);
	ck_assert_int_eq(b.blind_ns, 40);
}
END_TEST

START_TEST(again_what_lasts)
{
	ck_assert(begin(HW_CAUSE_STANDSTILL, 100));
	ck_assert(!begin(HW_CAUSE_STANDSTILL, 50));
	ck_assert_int_eq(b.since.ns, 100);
	ck_assert(!b.lossy);
	ck_assert(!begin_lossy(HW_CAUSE_STANDSTILL, 150));
	ck_assert(b.lossy);
	ck_assert_int_eq(b.since.ns, 100);
	ck_assert_int_eq(b.cause_since[HW_CAUSE_STANDSTILL].ns, 100);
	ck_assert(!begin(HW_CAUSE_STANDSTILL, 160));
	ck_assert(b.lossy); /* for good */
	ck_assert(end(HW_CAUSE_STANDSTILL, 200));
	ck_assert_int_eq(b.lossy_end.ns, 100);
	ck_assert_uint_eq(b.periods, 1);
}
END_TEST

START_TEST(lossy)
{
	/* One lossy cause makes its period so, whenever it joins and leaves. */
	begin(HW_CAUSE_STALL, 100);
	begin_lossy(HW_CAUSE_LINK, 110);
	end(HW_CAUSE_LINK, 120);
	ck_assert_int_eq(b.lossy_end.ns, INT64_MIN / 4); /* not over yet */
	end(HW_CAUSE_STALL, 130);
	ck_assert_int_eq(b.lossy_end.ns, 100);
	/* The next is not, and leaves the mark where it is. */
	begin(HW_CAUSE_STALL, 200);
	ck_assert(!b.lossy);
	end(HW_CAUSE_STALL, 210);
	ck_assert_int_eq(b.lossy_end.ns, 100);
	begin_lossy(HW_CAUSE_LOSS, 300);
	end(HW_CAUSE_LOSS, 400);
	ck_assert_int_eq(b.lossy_end.ns, 260);
	ck_assert_int_eq(seen(400), 260);
}
END_TEST

START_TEST(ends_in_the_past)
{
	begin(HW_CAUSE_LINK, 100);
	ck_assert(end(HW_CAUSE_LINK, 60)); /* before its begin: it took no time */
	ck_assert_int_eq(b.blind_ns, 0);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_LINK], 0);
	ck_assert_int_eq(b.until.ns, 100);
	/* The period lasts until the latest end of a cause, not until the end that is reported last. */
	begin(HW_CAUSE_LINK, 200);
	begin(HW_CAUSE_STALL, 200);
	ck_assert(!end(HW_CAUSE_LINK, 250));
	ck_assert(end(HW_CAUSE_STALL, 220));
	ck_assert_int_eq(b.blind_ns, 50);
	ck_assert_int_eq(b.until.ns, 250);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_STALL], 20);
	ck_assert_int_eq(b.cause_ns[HW_CAUSE_LINK], 50);
	ck_assert_int_eq(seen(240), 200);
	ck_assert_int_eq(seen(300), 250);
}
END_TEST

START_TEST(names)
{
	static const char *const expected[HW_CAUSES] = {"link", "stall",   "standstill", "suspend",
	                                                "loss", "barrier", "deaf",       "upstream"};
	for (int c = 0; c < HW_CAUSES; c++)
		ck_assert_str_eq(hw_cause_name((enum hw_cause)c), expected[c]);
	ck_assert_str_eq(hw_cause_name(HW_CAUSES), "unknown");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("blind");
	TCase *tc = tcase_create("clock");
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, fresh);
	tcase_add_test(tc, one_period);
	tcase_add_test(tc, causes_overlap);
	tcase_add_test(tc, denied_barriers_give_a_period_its_name);
	tcase_add_test(tc, begins_in_the_past);
	tcase_add_test(tc, nothing_is_taken_twice);
	tcase_add_test(tc, a_cause_comes_again);
	tcase_add_test(tc, again_what_lasts);
	tcase_add_test(tc, lossy);
	tcase_add_test(tc, ends_in_the_past);
	tcase_add_test(tc, names);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
