/* SPDX-License-Identifier: MIT */
/* The hashes of transitions that heartwheelctl has shown, compared with a list of the step in which each was shown
 * last.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../simulation/sim_random.h"
#include "../suite.h"
#include "ctl/recent.h"

#define STEPS  400000
#define HASHES 60000

static uint64_t seed_of_run(void)
{
	const char *text = getenv("HW_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
	printf("HW_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

/* Odd numbers, because 0 is a free slot; many of them have neighbouring slots. */
static uint64_t hash_of(uint64_t i)
{
	return i % 2 ? i << 33 | 1 : (i * 0x9e3779b97f4a7c15u) | 1;
}

START_TEST(as_the_twin)
{
	struct sim_random random = {seed_of_run()};
	static unsigned last[HASHES]; /* the step of the last time; 0: never */
	struct hw_recent t = {0};
	unsigned again = 0, forgotten = 0;
	for (unsigned step = 1; step <= STEPS; step++) {
		/* Mostly hashes that are new or were added shortly before. */
		uint64_t i = sim_below(&random, 4) ? step / 8 % HASHES : (uint64_t)sim_below(&random, HASHES);
		bool was = hw_recent_add(&t, hash_of(i));
		if (was)
			ck_assert_msg(last[i] > 0, "step %u: it was never told", step);
		if (!was && last[i])
			ck_assert_msg(step - last[i] > HW_RECENT, "step %u: forgotten after %u", step, step - last[i]);
		again += was;
		forgotten += !was && last[i];
		last[i] = step;
	}
	ck_assert_uint_gt(again, STEPS / 2);
	ck_assert_uint_gt(forgotten, 0);
	hw_recent_fini(&t);
}
END_TEST

/* As after a reconnect: all transitions that the daemon keeps come again. */
START_TEST(all_of_them_once_more)
{
	struct hw_recent t = {0};
	for (uint64_t i = 0; i < 3 * HW_RECENT; i++)
		ck_assert(!hw_recent_add(&t, hash_of(i)));
	for (uint64_t i = 2 * HW_RECENT; i < 3 * HW_RECENT; i++)
		ck_assert(hw_recent_add(&t, hash_of(i)));
	hw_recent_fini(&t);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recent");
	TCase *tc = tcase_create("told");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, as_the_twin);
	tcase_add_test(tc, all_of_them_once_more);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
