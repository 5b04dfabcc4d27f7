/* SPDX-License-Identifier: MIT */
/*
 * The simulation of tasks, as a test: seeds that break no promise, with all kinds of trouble and with each kind alone;
 * a seed whose repetition gives the same run; and an oracle that finds lies.
 *
 * HW_SEED sets the first of the many seeds (default 1), HW_RUNS their number.
 */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>

#include "../suite.h"
#include "tasks_world.h"

#define RUNS     150
#define FEW_RUNS 15 /* with HW_FEW_ROUNDS, which leaves out the lies, too */

static struct tw_world w;

static uint64_t from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static bool few(void)
{
	return getenv("HW_FEW_ROUNDS") != NULL;
}

static unsigned run(uint64_t seed, int trouble, enum tw_lie lie, enum twin_lie twin)
{
	tw_init(&w, seed);
	if (trouble >= 0)
		tw_only(&w, (enum tw_trouble)trouble);
	tw_lie(&w, lie, twin);
	w.tell = lie == TW_HONEST && twin == TWIN_HONEST ? stdout : NULL;
	tw_run(&w);
	tw_fini(&w);
	return w.breaches;
}

START_TEST(test_no_seed_breaks_a_promise)
{
	uint64_t seed = from_env("HW_SEED", 1), runs = from_env("HW_RUNS", few() ? FEW_RUNS : RUNS), sends = 0,
		 retries = 0, ends = 0;
	unsigned breaches = 0;
	printf("HW_SEED=%" PRIu64 " HW_RUNS=%" PRIu64 "\n", seed, runs);
	for (uint64_t k = 0; k < runs; k++) {
		breaches += run(seed + k, -1, TW_HONEST, TWIN_HONEST);
		sends += w.count.sends;
		retries += w.count.retries;
		ends += w.count.complete;
	}
	fflush(stdout);
	ck_assert_uint_eq(breaches, 0);
	ck_assert_uint_gt(sends, 10 * runs); /* checks that much happened in the runs */
	ck_assert_uint_gt(retries, 2 * runs);
	ck_assert_uint_gt(ends, 5 * runs);
}
END_TEST

/* Seeds that broke a promise once: Redis' clock ahead, and a task whose `exp` lay in what it had jumped over. */
static const uint64_t kept[] = {6157, 6501, 7621, 9490};

START_TEST(test_what_was_broken_once_holds)
{
	ck_assert_uint_eq(run(kept[_i], -1, TW_HONEST, TWIN_HONEST), 0);
}
END_TEST

START_TEST(test_no_trouble_alone_breaks_a_promise)
{
	unsigned breaches = 0;
	for (uint64_t seed = 1; seed <= 10; seed++)
		breaches += run(seed, _i, TW_HONEST, TWIN_HONEST);
	ck_assert_msg(breaches == 0, "%s: %u breaches", tw_trouble_name((enum tw_trouble)_i), breaches);
}
END_TEST

START_TEST(test_a_seed_replays_its_run)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		run(seed, -1, TW_HONEST, TWIN_HONEST);
		struct tw_count first = w.count;
		uint64_t drawn = w.random.state;
		run(seed, -1, TW_HONEST, TWIN_HONEST);
		ck_assert_mem_eq(&first, &w.count, sizeof(first));
		ck_assert_uint_eq(drawn, w.random.state);
	}
}
END_TEST

#define ANY (-1)

/* Under which trouble each lie shows. */
static const struct {
	enum tw_lie lie;
	int trouble;
} lies[] = {{TW_LIE_LOOK, TW_CRASH},
            {TW_LIE_HOLD, TW_CLOCK},
            {TW_LIE_SHORT, TW_CLOCK},
            {TW_LIE_EXPIRED, TW_PAUSE},
            {TW_LIE_TWICE, TW_LOSS}};

/* Cases that the oracle, or the plan, allows. None of them may hide the lie that is nearest to it. */
static const struct {
	enum twin_lie lie;
	int trouble;
} near_lies[] = {{TWIN_LIE_BACKOFF, TW_BACK}, {TWIN_LIE_EARLY, TW_BACK}, {TWIN_LIE_LEASE, TW_PAUSE}};

/* It is sufficient that one seed finds the lie; the same seed without it breaks nothing. */
static void find_out(int trouble, enum tw_lie lie, enum twin_lie twin, const char *name)
{
	for (uint64_t seed = 1; seed <= 60; seed++)
		if (run(seed, trouble, lie, twin) > 0) {
			ck_assert_uint_eq(run(seed, trouble, TW_HONEST, TWIN_HONEST), 0);
			return;
		}
	ck_abort_msg("nobody noticed the lie: %s", name);
}

START_TEST(test_the_oracle_finds_lies_of_the_wiring_out)
{
	static const char *const names[TW_LIES] = {[TW_LIE_LOOK] = "look",
	                                           [TW_LIE_HOLD] = "hold",
	                                           [TW_LIE_SHORT] = "short",
	                                           [TW_LIE_EXPIRED] = "expired",
	                                           [TW_LIE_TWICE] = "twice"};
	find_out(lies[_i].trouble, lies[_i].lie, TWIN_HONEST, names[lies[_i].lie]);
}
END_TEST

START_TEST(test_the_oracle_finds_lies_of_the_scripts_out)
{
	find_out(_i == TWIN_LIE_CLOCK ? TW_CLOCK : ANY, TW_HONEST, (enum twin_lie)_i, twin_lie_name((enum twin_lie)_i));
}
END_TEST

START_TEST(test_what_is_let_pass_hides_no_lie)
{
	find_out(near_lies[_i].trouble, TW_HONEST, near_lies[_i].lie, twin_lie_name(near_lies[_i].lie));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("simulation of tasks");
	TCase *tc = tcase_create("runs");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, test_no_seed_breaks_a_promise);
	tcase_add_loop_test(tc, test_what_was_broken_once_holds, 0, (int)(sizeof(kept) / sizeof(*kept)));
	tcase_add_loop_test(tc, test_no_trouble_alone_breaks_a_promise, 0, TW_TROUBLES);
	tcase_add_test(tc, test_a_seed_replays_its_run);
	suite_add_tcase(suite, tc);
	if (few())
		return suite_run(suite);
	tc = tcase_create("lies");
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, test_the_oracle_finds_lies_of_the_wiring_out, 0, (int)(sizeof(lies) / sizeof(*lies)));
	tcase_add_loop_test(tc, test_the_oracle_finds_lies_of_the_scripts_out, TWIN_HONEST + 1, TWIN_LIES);
	tcase_add_loop_test(tc, test_what_is_let_pass_hides_no_lie, 0, (int)(sizeof(near_lies) / sizeof(*near_lies)));
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
