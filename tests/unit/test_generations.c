/* SPDX-License-Identifier: MIT */
/* P by two generations, against a twin that knows the seq of each pending status. */
#include <string.h>

#include "../simulation/sim_random.h"
#include "../suite.h"
#include "daemon/retained/generations.h"

#define DEVICES 40
#define WALL_MS UINT64_C(1700000000000)
#define NONE    UINT64_MAX

static struct hw_generations g;
static struct {
	bool pending, refused; /* refused: at least once since it is pending */
	uint64_t seq;
	unsigned generation;
} device[DEVICES];
static uint64_t wall_ms;
static int64_t now_ms;
static uint64_t stored; /* P as Redis has it: raised by a turn, lowered before a transition */

static void begin(void)
{
	hw_generations_init(&g);
	memset(device, 0, sizeof(device));
	wall_ms = WALL_MS;
	now_ms = 0;
	stored = NONE;
}

static uint64_t least(bool with_refused)
{
	uint64_t seq = NONE;
	for (int i = 0; i < DEVICES; i++)
		if (device[i].pending && (with_refused || !device[i].refused) && device[i].seq < seq)
			seq = device[i].seq;
	return seq;
}

static void transit(int i, bool older)
{
	device[i].seq = device[i].seq < wall_ms ? wall_ms : device[i].seq + 1;
	if (device[i].pending)
		hw_generations_again(&g, device[i].generation, device[i].seq);
	else
		device[i].generation = hw_generations_add(&g, device[i].seq, older);
	device[i].pending = true;
	device[i].refused = false;
	if (hw_generations_lower(&g, device[i].seq))
		stored = g.p;
	ck_assert_uint_eq(stored, g.p);
	ck_assert_uint_le(stored, device[i].seq); /* before the transition is in Redis */
}

static void settle(int i)
{
	if (!device[i].pending)
		return;
	hw_generations_settle(&g, device[i].generation);
	device[i].pending = device[i].refused = false;
}

static void refuse(int i)
{
	if (!device[i].pending)
		return;
	device[i].generation = hw_generations_refused(&g, device[i].generation);
	device[i].refused = true;
}

static void turn(void)
{
	if (hw_generations_turn(&g, wall_ms, now_ms))
		stored = g.p;
	ck_assert_uint_eq(stored, g.p);
}

/* Whoever is not acknowledged is found by the next run. */
static void check(void)
{
	ck_assert_uint_le(stored == NONE ? 0 : stored, least(false));
}

static void pass(int64_t ms)
{
	wall_ms += (uint64_t)ms;
	now_ms += ms;
}

START_TEST(p_never_passes_a_status_that_is_pending)
{
	struct sim_random random = {(uint64_t)_i + 1};
	begin();
	for (int n = 0; n < 4000; n++) {
		int i = (int)sim_below(&random, DEVICES);
		if (sim_chance(&random, 0.4))
			transit(i, sim_chance(&random, 0.02));
		else if (sim_chance(&random, 0.8))
			settle(i);
		else
			refuse(i);
		if (sim_chance(&random, 0.3))
			turn();
		if (sim_chance(&random, 0.002)) /* the wall clock steps; a taken-over partition may have another's P */
			wall_ms = WALL_MS + (uint64_t)sim_below(&random, 10000000);
		if (sim_chance(&random, 0.01)) {
			hw_generations_found(&g, wall_ms - (uint64_t)sim_below(&random, 1000));
			stored = g.p;
		}
		pass(sim_below(&random, 60));
		check();
	}
	for (int i = 0; i < DEVICES; i++)
		settle(i);
	pass(HW_GENERATION_MS);
	turn();
	ck_assert_uint_eq(stored, wall_ms + 1);
}
END_TEST

/* A steady stream of transitions, each acknowledged after 30 ms: P follows within three generations. */
START_TEST(p_follows_although_statuses_are_pending_at_all_times)
{
	begin();
	for (int n = 0; n < 4000; n++) {
		transit(n % DEVICES, false);
		settle((n + 30) % DEVICES);
		turn();
		pass(3);
		check();
		if (n > 300)
			ck_assert_uint_ge(stored, wall_ms - 3 * HW_GENERATION_MS - 90);
	}
}
END_TEST

/* Rule 3: the broker refuses one topic for ever. The others' statuses move P on. */
START_TEST(a_refused_status_holds_p_back_only_for_a_while)
{
	begin();
	transit(0, false);
	uint64_t first = device[0].seq;
	for (int n = 0; n < 100; n++) {
		transit(1 + n % 9, false);
		settle(1 + n % 9);
		if (n % 10 == 0)
			refuse(0);
		pass(HW_GENERATION_MS);
		turn();
		check();
	}
	ck_assert_uint_gt(stored, first);
	ck_assert_uint_ge(stored, wall_ms - 25 * HW_GENERATION_MS);
}
END_TEST

/* An idle fleet writes nothing. */
START_TEST(p_is_set_once_when_all_is_settled)
{
	begin();
	transit(0, false);
	settle(0);
	pass(10);
	ck_assert(hw_generations_waits(&g));
	ck_assert(hw_generations_turn(&g, wall_ms, now_ms));
	ck_assert_uint_eq(g.p, wall_ms + 1);
	pass(1000);
	ck_assert(!hw_generations_waits(&g));
	ck_assert(!hw_generations_turn(&g, wall_ms, now_ms));
}
END_TEST

/* A crash: the next run counts those that were pending as the older generation. */
START_TEST(what_an_earlier_run_left_holds_p_until_it_is_acknowledged)
{
	begin();
	hw_generations_found(&g, WALL_MS - 500);
	stored = g.p;
	for (int i = 0; i < 3; i++) {
		device[i].seq = WALL_MS - 500 + (uint64_t)i;
		device[i].pending = true;
		device[i].generation = hw_generations_add(&g, device[i].seq, true);
	}
	for (int n = 0; n < 20; n++) {
		transit(10 + n, false);
		settle(10 + n);
		pass(HW_GENERATION_MS);
		turn();
		ck_assert_uint_eq(stored, WALL_MS - 500);
	}
	for (int i = 0; i < 3; i++)
		settle(i);
	turn();
	ck_assert_uint_eq(stored, wall_ms + 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("generations");
	TCase *tc = tcase_create("P");
	tcase_add_loop_test(tc, p_never_passes_a_status_that_is_pending, 0, 50);
	tcase_add_test(tc, p_follows_although_statuses_are_pending_at_all_times);
	tcase_add_test(tc, a_refused_status_holds_p_back_only_for_a_while);
	tcase_add_test(tc, p_is_set_once_when_all_is_settled);
	tcase_add_test(tc, what_an_earlier_run_left_holds_p_until_it_is_acknowledged);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
