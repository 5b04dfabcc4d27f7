/* SPDX-License-Identifier: MIT */
/* The wheel, its queues and the ticks, case by case. prop_wheel.c does the same at random. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "heartwheel/time.h"
#include "heartwheel/wheel.h"

#define SPAN1       UINT64_C(31)
#define SPAN2       UINT64_C(961)
#define SPAN3       UINT64_C(29791)
#define TURN3       UINT64_C(923521)
#define TEN_YEARS_S (INT64_C(3650) * 86400)
#define TICK_MAX    ((UINT64_C(1) << 48) - 1)

static struct hw_wheel w;
static struct hw_node nodes[64];

static void setup_at(uint64_t now)
{
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		hw_node_init(&nodes[i]);
	hw_wheel_init(&w, nodes, sizeof(nodes[0]), (struct hw_tick){now});
}

static void setup(void)
{
	setup_at(0);
}

static void add(uint32_t i, uint64_t due)
{
	hw_wheel_add(&w, i, (struct hw_tick){due});
}

/* With all the budget it may want. */
static uint32_t take(uint64_t now)
{
	unsigned budget = 1000000;
	return hw_wheel_take(&w, (struct hw_tick){now}, &budget);
}

static uint64_t next(void)
{
	struct hw_tick at = {0};
	ck_assert(hw_wheel_next(&w, &at));
	return at.n;
}

START_TEST(new_node_is_nowhere)
{
	struct hw_node n = {.next = 1, .prev = 2, .due = 3, .place = HW_PLACE_LEVEL2, .slot = 4, .user = 5};
	struct hw_node nowhere = {.next = HW_NIL, .prev = HW_NIL, .place = HW_PLACE_NONE, .user = 5};
	hw_node_init(&n);
	ck_assert_mem_eq(&n, &nowhere, sizeof(n));
}
END_TEST

START_TEST(empty_wheel_has_nothing)
{
	struct hw_tick at;
	unsigned budget = 3;
	ck_assert(!hw_wheel_next(&w, &at));
	ck_assert_uint_eq(hw_wheel_take(&w, (struct hw_tick){UINT64_MAX}, &budget), HW_NIL);
	ck_assert_uint_eq(budget, 3);
	ck_assert_uint_eq(w.length, 0);
}
END_TEST

START_TEST(comes_out_at_its_tick)
{
	static const uint64_t dues[] = {0,         1,       30,    31,    32,    960,       961,       962,
	                                29790,     29791,   29792, 60000, TURN3, TURN3 + 1, TURN3 * 3, TURN3 + SPAN3,
	                                TURN3 - 1, 10000000};
	static const uint64_t starts[] = {0, 1, 30, 31, 960, 961, 29791, TURN3, 123456789};
	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		for (size_t d = 0; d < sizeof(dues) / sizeof(dues[0]); d++) {
			uint64_t due = starts[s] + dues[d];
			setup_at(starts[s]);
			add(5, due);
			if (dues[d] > 0)
				ck_assert_uint_eq(take(due - 1), HW_NIL);
			ck_assert_uint_eq(take(due), 5);
			ck_assert_uint_eq(w.length, 0);
		}
	}
}
END_TEST

START_TEST(level_follows_from_distance)
{
	static const struct {
		uint64_t due;
		int level, slot;
		uint64_t rounds;
	} rows[] = {
		{0, 0, 0, 0},
		{30, 0, 30, 0},
		{31, 1, 1, 0},
		{960, 1, 30, 0},
		{961, 2, 1, 0},
		{29790, 2, 30, 0},
		{29791, 3, 1, 0},
		{TURN3 - 1, 3, 30, 0},
		{TURN3, 3, 0, 0},
		{TURN3 + SPAN3 - 1, 3, 0, 0},
		{TURN3 + SPAN3, 3, 1, 1},
		{2 * TURN3, 3, 0, 1},
		{2 * TURN3 + SPAN3 * 7 + 5, 3, 7, 2},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup();
		add(1, rows[i].due);
		struct hw_wheel_spot spot = hw_wheel_where(&w, 1);
		ck_assert_int_eq(spot.level, rows[i].level);
		ck_assert_int_eq(spot.slot, rows[i].slot);
		ck_assert_uint_eq(spot.rounds, rows[i].rounds);
		ck_assert_uint_eq(hw_wheel_slot_load(&w, rows[i].level, rows[i].slot), 1);
		ck_assert_uint_eq(w.load[rows[i].level], 1);
	}
}
END_TEST

/* One that is just short of a turn ahead of a cursor off the boundary shares the slot that the cursor stands in. */
START_TEST(turn_ahead_is_not_now)
{
	static const uint64_t span[] = {1, SPAN1, SPAN2, SPAN3};
	for (int level = 1; level <= 3; level++) {
		uint64_t cursor = span[level] * 31 * 5 + span[level] - 1, due = cursor + span[level] * 31 - 1;
		setup_at(cursor);
		add(1, due);
		struct hw_wheel_spot spot = hw_wheel_where(&w, 1);
		ck_assert_int_eq(spot.level, level);
		ck_assert_int_eq(spot.slot, 0);
		ck_assert_uint_eq(spot.rounds, 0);
		ck_assert_uint_eq(next(), span[level] * 31 * 6);
		ck_assert_uint_eq(take(due - 1), HW_NIL);
		ck_assert_uint_eq(take(due), 1);
	}
}
END_TEST

START_TEST(order_is_by_tick)
{
	static const uint64_t dues[] = {70000, 3, 1000, 29, 31, 2000000, 30, 500, 40000, 961};
	static const uint32_t order[] = {1, 3, 6, 4, 7, 9, 2, 8, 0, 5};
	for (uint32_t i = 0; i < 10; i++)
		add(i, dues[i]);
	for (uint32_t i = 0; i < 10; i++)
		ck_assert_uint_eq(take(3000000), order[i]);
	ck_assert_uint_eq(take(3000000), HW_NIL);
}
END_TEST

START_TEST(the_past_comes_out_at_once)
{
	setup_at(5000);
	ck_assert_uint_eq(take(6000), HW_NIL);
	add(1, 10);
	add(2, 6000);
	ck_assert_uint_eq(next(), 6000);
	ck_assert_int_eq(hw_wheel_where(&w, 1).level, 0);
	ck_assert_uint_ne(take(6000), HW_NIL);
	ck_assert_uint_ne(take(6000), HW_NIL);
	ck_assert_uint_eq(w.length, 0);
}
END_TEST

START_TEST(time_may_go_back)
{
	setup_at(100);
	add(1, 150);
	ck_assert_uint_eq(take(120), HW_NIL);
	ck_assert_uint_eq(take(90), HW_NIL);
	ck_assert_uint_eq(take(0), HW_NIL);
	add(2, 50);
	ck_assert_uint_eq(take(119), HW_NIL);
	ck_assert_uint_eq(take(120), 2);
	ck_assert_uint_eq(take(150), 1);
}
END_TEST

START_TEST(deleted_ones_stay_away)
{
	add(0, 5);
	add(1, 5);
	add(2, 5);
	add(3, 500);
	hw_wheel_del(&w, 1);
	hw_wheel_del(&w, 2);
	hw_wheel_del(&w, 3);
	ck_assert_uint_eq(w.length, 1);
	ck_assert_uint_eq(w.occupied[1], 0);
	struct hw_node nowhere = {
		.due = 500, .slot = nodes[3].slot, .place = HW_PLACE_NONE, .next = HW_NIL, .prev = HW_NIL};
	ck_assert_mem_eq(&nodes[3], &nowhere, sizeof(nowhere));
	ck_assert_uint_eq(take(1000), 0);
	ck_assert_uint_eq(take(1000), HW_NIL);
	add(1, 1001);
	ck_assert_uint_eq(take(1001), 1);
}
END_TEST

START_TEST(budget_bounds_a_cascade)
{
	for (uint32_t i = 0; i < 20; i++)
		add(i, SPAN2 + 40);
	unsigned budget = 5;
	ck_assert_uint_eq(hw_wheel_take(&w, (struct hw_tick){SPAN2}, &budget), HW_NIL);
	ck_assert_uint_eq(budget, 0);
	ck_assert_uint_eq(w.load[2], 15);
	ck_assert_uint_eq(w.load[1], 5);
	ck_assert_uint_eq(hw_wheel_slot_load(&w, 2, 1), 15);
	ck_assert_uint_eq(next(), SPAN2);

	/* Out of the half: the next in the cascade, one behind it, one that is down already. */
	uint32_t head = w.cascade, behind = nodes[head].next, down = w.slots[1][(SPAN2 + 40) / 31 % 31];
	hw_wheel_del(&w, head);
	hw_wheel_del(&w, behind);
	hw_wheel_del(&w, down);
	ck_assert_uint_eq(w.load[2], 13);
	ck_assert_uint_eq(w.load[1], 4);
	ck_assert_uint_eq(w.length, 17);

	uint32_t got = 0;
	for (int calls = 0; got < 17; calls++) {
		budget = 3;
		uint32_t i = hw_wheel_take(&w, (struct hw_tick){SPAN2 + 40}, &budget);
		if (i != HW_NIL) {
			ck_assert(i != head && i != behind && i != down);
			got++;
		}
		ck_assert_int_lt(calls, 100);
	}
	ck_assert_uint_eq(w.length, 0);
}
END_TEST

/* All that shares a slot of level 3 with what is being cascaded goes back into the slot without being met again. */
START_TEST(rounds_do_not_loop)
{
	for (uint32_t i = 0; i < 10; i++)
		add(i, SPAN3 + TURN3 * (1 + i % 3));
	unsigned budget = 4;
	ck_assert_uint_eq(hw_wheel_take(&w, (struct hw_tick){SPAN3}, &budget), HW_NIL);
	ck_assert_uint_eq(budget, 0);
	add(20, SPAN3 + TURN3); /* into the slot whose rest is being cascaded */
	ck_assert_uint_eq(hw_wheel_slot_load(&w, 3, 1), 11);
	budget = 100;
	ck_assert_uint_eq(hw_wheel_take(&w, (struct hw_tick){SPAN3}, &budget), HW_NIL);
	ck_assert_uint_eq(budget, 100 - 6);
	ck_assert_uint_eq(hw_wheel_slot_load(&w, 3, 1), 11);
	ck_assert_uint_eq(next(), SPAN3 + TURN3);
}
END_TEST

/* At an unentered boundary of level 3 the slot of the cursor is still to be passed by what is a turn away. */
START_TEST(rounds_at_an_unentered_boundary)
{
	for (uint32_t i = 0; i < 3; i++)
		add(i, 2 * SPAN3);
	for (uint32_t i = 3; i < 6; i++)
		add(i, SPAN3 + 5);
	ck_assert_uint_eq(take(SPAN3 - 1), HW_NIL);
	unsigned budget = 0;
	w.cursor = SPAN3; /* as an interrupted take() leaves it */
	w.entering = 3;
	add(6, SPAN3 + TURN3);
	ck_assert_uint_eq(hw_wheel_where(&w, 6).rounds, 1);
	ck_assert_uint_eq(hw_wheel_where(&w, 3).rounds, 0);
	ck_assert_uint_eq(next(), SPAN3);
	budget = 10;
	ck_assert_uint_eq(hw_wheel_take(&w, (struct hw_tick){SPAN3}, &budget), HW_NIL);
	ck_assert_uint_eq(budget, 10 - 4);
	ck_assert_uint_eq(hw_wheel_where(&w, 6).rounds, 0);
	ck_assert_uint_ne(take(SPAN3 + 5), HW_NIL);
}
END_TEST

/* Ten years: ten thousand rounds, each of them one move, and the count says beforehand how many are left. */
START_TEST(ten_years)
{
	struct hw_tick due = hw_tick_ceil((struct hw_seen){TEN_YEARS_S * HW_NS_PER_S + 1});
	ck_assert_uint_eq(due.n, (uint64_t)TEN_YEARS_S * 31 + 1);
	add(9, due.n);
	uint64_t rounds = hw_wheel_where(&w, 9).rounds, stops = 0;
	ck_assert_uint_eq(rounds, due.n / SPAN3 / 31 - (due.n / SPAN3 % 31 == 0 ? 1 : 0));
	while (hw_wheel_where(&w, 9).level == 3) {
		unsigned budget = 1;
		ck_assert_uint_eq(hw_wheel_take(&w, (struct hw_tick){next()}, &budget), HW_NIL);
		ck_assert_uint_eq(budget, 0);
		stops++;
	}
	ck_assert_uint_eq(stops, rounds + 1);
	ck_assert_uint_eq(take(due.n - 1), HW_NIL);
	ck_assert_uint_eq(take(due.n), 9);
}
END_TEST

START_TEST(ticks_are_clamped)
{
	setup_at(TICK_MAX - 10);
	add(1, UINT64_MAX);
	ck_assert_uint_eq(nodes[1].due, TICK_MAX);
	ck_assert_uint_eq(take(TICK_MAX - 1), HW_NIL);
	ck_assert_uint_eq(take(UINT64_MAX), 1);
	ck_assert_uint_eq(take(UINT64_MAX), HW_NIL);
	add(2, TICK_MAX + 5);
	ck_assert_uint_eq(nodes[2].due, TICK_MAX);
	ck_assert_uint_eq(take(TICK_MAX), 2);
	setup_at(UINT64_MAX);
	add(1, 7);
	ck_assert_uint_eq(take(TICK_MAX), 1);
}
END_TEST

START_TEST(user_bits_are_the_callers)
{
	nodes[3].user = 0xa5;
	add(3, 100000);
	ck_assert_uint_eq(take(100000), 3);
	ck_assert_uint_eq(nodes[3].user, 0xa5);
	struct hw_queue q;
	hw_queue_init(&q);
	hw_queue_push(&w, &q, 3, 1);
	hw_queue_del(&w, &q, 3);
	ck_assert_uint_eq(nodes[3].user, 0xa5);
}
END_TEST

START_TEST(array_may_move)
{
	static struct hw_node moved[64];
	add(1, 100);
	add(2, 100);
	memcpy(moved, nodes, sizeof(nodes));
	memset(nodes, 0xff, sizeof(nodes));
	hw_wheel_rebase(&w, moved);
	ck_assert_uint_ne(take(100), HW_NIL);
	ck_assert_uint_ne(take(100), HW_NIL);
	ck_assert_uint_eq(w.length, 0);
}
END_TEST

START_TEST(queue_is_first_in_first_out)
{
	struct hw_queue q;
	hw_queue_init(&q);
	ck_assert_uint_eq(q.head, HW_NIL);
	for (uint32_t i = 0; i < 5; i++)
		hw_queue_push(&w, &q, i, UINT64_C(0xabcdef000000) + i);
	ck_assert_uint_eq(q.length, 5);
	hw_queue_del(&w, &q, 2); /* from the middle, the end, the begin */
	hw_queue_del(&w, &q, 4);
	hw_queue_del(&w, &q, 0);
	ck_assert_int_eq(nodes[0].place, HW_PLACE_NONE);
	hw_queue_push(&w, &q, 4, 7);
	static const uint32_t order[] = {1, 3, 4};
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(q.head, order[i]);
		ck_assert_int_eq(nodes[q.head].place, HW_PLACE_QUEUE);
		ck_assert_uint_eq(nodes[q.head].due, order[i] == 4 ? 7 : UINT64_C(0xabcdef000000) + order[i]);
		hw_queue_del(&w, &q, q.head);
	}
	ck_assert_uint_eq(q.head, HW_NIL);
	ck_assert_uint_eq(q.tail, HW_NIL);
	ck_assert_uint_eq(q.length, 0);
	add(4, 1); /* off a queue it may go into the wheel */
	ck_assert_uint_eq(take(1), 4);
}
END_TEST

START_TEST(ticks_at_their_edges)
{
	static const struct {
		int64_t ns;
		uint64_t up, down;
	} rows[] = {
		{INT64_MIN, 0, 0},
		{-1, 0, 0},
		{0, 0, 0},
		{1, 1, 0},
		{32258064, 1, 0}, /* a tick is 32258064.516... ns */
		{32258065, 2, 1},
		{HW_NS_PER_S - 1, 31, 30},
		{HW_NS_PER_S, 31, 31},
		{HW_NS_PER_S + 1, 32, 31},
		{30 * HW_NS_PER_S, 930, 930},
		{TEN_YEARS_S * HW_NS_PER_S, (uint64_t)TEN_YEARS_S * 31, (uint64_t)TEN_YEARS_S * 31},
		{TEN_YEARS_S * HW_NS_PER_S + 1, (uint64_t)TEN_YEARS_S * 31 + 1, (uint64_t)TEN_YEARS_S * 31},
		{INT64_MAX, UINT64_C(285924533143), UINT64_C(285924533142)},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_uint_eq(hw_tick_ceil((struct hw_seen){rows[i].ns}).n, rows[i].up);
		ck_assert_uint_eq(hw_tick_floor((struct hw_seen){rows[i].ns}).n, rows[i].down);
	}
	ck_assert_int_eq(hw_tick_start((struct hw_tick){1}).ns, 32258065);
	ck_assert_int_eq(hw_tick_start((struct hw_tick){31}).ns, HW_NS_PER_S);
	ck_assert_int_eq(hw_tick_start((struct hw_tick){TICK_MAX}).ns, INT64_MAX);
	/* The last tick that 63 bits of nanoseconds can name, and the first that they cannot. */
	uint64_t last = UINT64_C(285924533142);
	ck_assert_uint_eq(hw_tick_floor(hw_tick_start((struct hw_tick){last})).n, last);
	ck_assert_int_eq(hw_tick_start((struct hw_tick){last + 1}).ns, INT64_MAX);
}
END_TEST

static Suite *wheel_suite(void)
{
	Suite *suite = suite_create("wheel");
	TCase *tc = tcase_create("wheel");
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, new_node_is_nowhere);
	tcase_add_test(tc, empty_wheel_has_nothing);
	tcase_add_test(tc, comes_out_at_its_tick);
	tcase_add_test(tc, level_follows_from_distance);
	tcase_add_test(tc, turn_ahead_is_not_now);
	tcase_add_test(tc, order_is_by_tick);
	tcase_add_test(tc, the_past_comes_out_at_once);
	tcase_add_test(tc, time_may_go_back);
	tcase_add_test(tc, deleted_ones_stay_away);
	tcase_add_test(tc, budget_bounds_a_cascade);
	tcase_add_test(tc, rounds_do_not_loop);
	tcase_add_test(tc, rounds_at_an_unentered_boundary);
	tcase_add_test(tc, ten_years);
	tcase_add_test(tc, ticks_are_clamped);
	tcase_add_test(tc, user_bits_are_the_callers);
	tcase_add_test(tc, array_may_move);
	tcase_add_test(tc, queue_is_first_in_first_out);
	suite_add_tcase(suite, tc);
	tc = tcase_create("ticks");
	tcase_add_test(tc, ticks_at_their_edges);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return suite_run(wheel_suite());
}
