/* SPDX-License-Identifier: MIT */
/*
 * The wheel against a naive twin: an array of due ticks, searched from end to end. Random operations in virtual time
 * must give the twin's results: no entry early, none missed, in order, whatever the budget is and however far the time
 * jumps.
 *
 * The seed is printed; HW_SEED sets it.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../random.h"
#include "../suite.h"
#include "heartwheel/time.h"
#include "heartwheel/wheel.h"

/* ck_assert() writes to a pipe each time that it holds: too slow for millions. */
#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("not true: %s", #truth);                                                          \
	} while (0)

#define ENTRIES      200
#define ROUNDS       400
#define STEPS        400
#define TEN_YEARS    (UINT64_C(10) * 366 * 86400 * HW_TICKS_PER_S)
#define LEVEL3_TURN  UINT64_C(923521)
#define LEVEL3_SPAN  UINT64_C(29791)
#define HUGE_BUDGET  1000000000U
#define HUGE_HORIZON (UINT64_C(1) << 40)

static const uint64_t spans[] = {1, 31, 961, 29791, 923521};

/* Of an odd size, so that the stride matters. */
struct element {
	struct hw_node node;
	uint64_t guard[3];
};

struct twin {
	bool armed[ENTRIES];
	uint64_t due[ENTRIES];
	uint64_t out[ENTRIES]; /* the earliest tick at which the entry may come out: its due tick, or the cursor when
	                        * it was added */
	uint32_t length;
};

struct run {
	struct hw_wheel wheel;
	struct element *elements;
	struct twin twin;
	uint64_t now, latest; /* latest: the highest `now` that was passed to the wheel */
	uint64_t taken;
};

static uint64_t below(uint64_t n)
{
	return random64() % n;
}

static struct hw_tick tick(uint64_t n)
{
	return (struct hw_tick){n};
}

static uint64_t twin_first(const struct twin *t)
{
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < ENTRIES; i++)
		if (t->armed[i] && t->out[i] < first)
			first = t->out[i];
	return first;
}

/* A distance of any magnitude; the limits of levels and slots are more likely than by chance. */
static uint64_t some_distance(void)
{
	static const uint64_t reach[] = {4, 31, 62, 961, 1000, 29791, 60000, 923521, 2000000, TEN_YEARS};
	uint64_t d = below(reach[below(sizeof(reach) / sizeof(reach[0]))]);
	switch (below(4)) {
	case 0:
		return d / 31 * 31;
	case 1:
		return spans[below(5)] * below(33) + below(3);
	default:
		return d;
	}
}

static uint64_t some_due(const struct run *r)
{
	uint64_t d = some_distance(), due = r->now + d;
	switch (below(6)) {
	case 0: /* the past */
		return r->now > d ? r->now - d : 0;
	case 1: { /* right on a boundary of some level, or next to it */
		uint64_t span = spans[below(5)];
		return due / span * span + below(3) - (due >= span ? 1 : 0);
	}
	default:
		return due;
	}
}

static void arm(struct run *r, uint32_t i, uint64_t due)
{
	struct twin *t = &r->twin;
	hw_wheel_add(&r->wheel, i, tick(due));
	MUST(!t->armed[i]);
	t->armed[i] = true;
	t->due[i] = due;
	t->out[i] = due > r->wheel.cursor ? due : r->wheel.cursor;
	t->length++;
}

static void disarm(struct run *r, uint32_t i)
{
	MUST(r->twin.armed[i]);
	r->twin.armed[i] = false;
	r->twin.length--;
}

static void add_some(struct run *r)
{
	uint64_t n = below(8) == 0 ? below(ENTRIES) : below(4);
	while (n-- > 0) {
		uint32_t i = (uint32_t)below(ENTRIES);
		if (!r->twin.armed[i])
			arm(r, i, some_due(r));
	}
}

static void del_some(struct run *r)
{
	uint64_t n = below(8) == 0 ? below(ENTRIES) : below(4);
	/* While a cascade is half done, mostly the entry that is next in it, or just after it. */
	if (r->wheel.cascade != HW_NIL && below(2) == 0) {
		uint32_t i = r->wheel.cascade;
		if (below(2) == 0 && hw_wheel_node(&r->wheel, i)->next != HW_NIL)
			i = hw_wheel_node(&r->wheel, i)->next;
		hw_wheel_del(&r->wheel, i);
		disarm(r, i);
	}
	while (n-- > 0) {
		uint32_t i = (uint32_t)below(ENTRIES);
		if (r->twin.armed[i]) {
			hw_wheel_del(&r->wheel, i);
			disarm(r, i);
		}
	}
}

/* The place at which an entry must be, and for how many rounds, by counting. */
static void check_spot(const struct run *r, uint32_t i)
{
	struct hw_wheel_spot spot = hw_wheel_where(&r->wheel, i);
	const struct hw_node *n = hw_wheel_node(&r->wheel, i);
	uint64_t due = r->twin.due[i], cursor = r->wheel.cursor, rounds = 0;
	MUST(spot.level == n->place);
	MUST(spot.slot == n->slot);
	MUST((unsigned)spot.slot == r->twin.out[i] / spans[spot.level] % HW_WHEEL_SLOTS);
	if (spot.level < 3) {
		MUST(spot.rounds == 0);
		MUST(r->twin.out[i] - cursor < spans[spot.level + 1]);
		return;
	}
	/* The stops at the entry's slot that are still to come and at which it is still a slot of level 3 or more
	 * away. */
	uint64_t stop = cursor / LEVEL3_SPAN;
	if (cursor % LEVEL3_SPAN != 0 || r->wheel.entering < 3)
		stop++;
	while (stop % HW_WHEEL_SLOTS != (uint64_t)spot.slot)
		stop++;
	for (; stop * LEVEL3_SPAN + LEVEL3_SPAN <= due / LEVEL3_SPAN * LEVEL3_SPAN; stop += HW_WHEEL_SLOTS)
		rounds++;
	MUST(spot.rounds == rounds);
}

static uint32_t walk_list(const struct run *r, uint32_t head, bool cascading, unsigned level, unsigned slot)
{
	uint32_t n = 0, prev = HW_NIL;
	for (uint32_t i = head; i != HW_NIL; i = hw_wheel_node(&r->wheel, i)->next) {
		const struct hw_node *node = hw_wheel_node(&r->wheel, i);
		MUST(i < ENTRIES);
		MUST(r->twin.armed[i]);
		MUST(node->prev == prev);
		MUST(node->due == r->twin.due[i]);
		if (!cascading) {
			MUST(node->place == level);
			MUST(node->slot == slot);
		}
		prev = i;
		MUST(++n <= ENTRIES);
	}
	return n;
}

/* How many of those being cascaded come from a slot. */
static uint32_t cascading(const struct run *r, unsigned level, unsigned slot)
{
	uint32_t n = 0;
	for (uint32_t i = r->wheel.cascade; i != HW_NIL; i = r->elements[i].node.next)
		n += r->elements[i].node.place == level && r->elements[i].node.slot == slot;
	return n;
}

/* The wheel's counters and bitmaps agree with the linked entries, and these with the twin. */
static void check_whole(const struct run *r)
{
	const struct hw_wheel *w = &r->wheel;
	uint32_t linked = 0, load_sum = 0, slot_sum = 0;
	for (unsigned level = 0; level < HW_WHEEL_LEVELS; level++) {
		uint32_t here = 0;
		for (unsigned slot = 0; slot < HW_WHEEL_SLOTS; slot++) {
			uint32_t n = walk_list(r, w->slots[level][slot], false, level, slot);
			MUST((w->occupied[level] >> slot & 1) == (n > 0));
			uint32_t load = hw_wheel_slot_load(w, (int)level, (int)slot);
			MUST(load == n + cascading(r, level, slot));
			here += load;
			linked += n;
		}
		MUST((w->occupied[level] >> HW_WHEEL_SLOTS) == 0);
		MUST(here == w->load[level]);
		slot_sum += here;
		load_sum += w->load[level];
	}
	linked += walk_list(r, w->cascade, true, 0, 0);
	MUST(linked == r->twin.length);
	MUST(load_sum == r->twin.length);
	MUST(slot_sum == r->twin.length);
	MUST(w->length == r->twin.length);
	MUST(w->cursor <= twin_first(&r->twin));
	MUST(w->cursor <= r->latest);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		const struct element *e = &r->elements[i];
		MUST(e->node.user == (i & 255));
		MUST(e->guard[0] == i && e->guard[1] == ~(uint64_t)i && e->guard[2] == 7);
		if (!r->twin.armed[i])
			MUST(e->node.place == HW_PLACE_NONE);
		else if (below(8) == 0 && r->twin.due[i] < w->cursor + 40 * LEVEL3_TURN)
			check_spot(r, i);
	}
}

static void check_next(const struct run *r)
{
	struct hw_tick at;
	MUST(hw_wheel_next(&r->wheel, &at) == (r->twin.length > 0));
	if (r->twin.length > 0) {
		MUST(at.n <= twin_first(&r->twin));
		MUST(at.n >= r->wheel.cursor);
	}
}

/* One call. Returns whether the wheel reports that it has finished `now`. */
static bool take_one(struct run *r, uint64_t now, unsigned budget, uint32_t *got)
{
	unsigned left = budget;
	uint64_t first = twin_first(&r->twin);
	if (now > r->latest)
		r->latest = now;
	uint32_t i = hw_wheel_take(&r->wheel, tick(now), &left);
	*got = i;
	MUST(left <= budget);
	if (i != HW_NIL) {
		MUST(left < budget);
		MUST(r->twin.armed[i]);
		MUST(r->twin.due[i] <= now);   /* never early */
		MUST(r->twin.out[i] == first); /* in order */
		disarm(r, i);
		r->taken++;
		return false;
	}
	if (left == 0 && budget > 0)
		return false;
	if (budget > 0)
		MUST(first > now); /* never missed */
	return budget > 0;
}

/* Drains the due entries, in calls with some budget; operations in between meet a wheel that is half drained. */
static void take_some(struct run *r)
{
	uint64_t advance = r->now - r->wheel.cursor;
	uint64_t spend = ((uint64_t)r->twin.length + 1) * (6 + advance / LEVEL3_TURN);
	unsigned budget = below(3) == 0 ? HUGE_BUDGET : 1 + (unsigned)below(8);
	bool leave_early = below(3) == 0, meddle = below(3) == 0;
	for (;;) {
		uint32_t got;
		if (take_one(r, r->now, budget, &got))
			break;
		MUST(spend-- > 0); /* it comes to an end */
		if (leave_early && below(10) == 0)
			return;
		if (!meddle)
			continue;
		if (got != HW_NIL && below(2) == 0) { /* lazy re-arm: the very entry, further on */
			arm(r, got, r->now + 1 + some_distance());
			spend += 6;
		}
		if (below(6) == 0) {
			uint32_t i = (uint32_t)below(ENTRIES);
			if (!r->twin.armed[i])
				arm(r, i, r->now + below(3) * some_distance());
			spend += 6;
		}
		if (below(6) == 0)
			del_some(r);
	}
	if (r->now == r->latest)
		for (uint32_t i = 0; i < ENTRIES; i++)
			MUST(!r->twin.armed[i] || r->twin.due[i] > r->now);
}

/* hw_wheel_next() is exact: there is work at its tick, and none before. */
static void follow_next(struct run *r)
{
	struct hw_tick at;
	uint32_t got;
	unsigned budget = 1;
	if (!hw_wheel_next(&r->wheel, &at))
		return;
	if (at.n > r->wheel.cursor) {
		budget = HUGE_BUDGET;
		if (at.n - 1 > r->latest)
			r->latest = at.n - 1;
		MUST(hw_wheel_take(&r->wheel, tick(at.n - 1), &budget) == HW_NIL);
		MUST(budget == HUGE_BUDGET);
		struct hw_tick again;
		MUST(hw_wheel_next(&r->wheel, &again));
		MUST(again.n == at.n);
	}
	MUST(!take_one(r, at.n, 1, &got));
	if (r->now < at.n)
		r->now = at.n;
}

static void advance(struct run *r)
{
	switch (below(8)) {
	case 0: /* it stands still */
		break;
	case 1: /* it goes back */
		r->now -= below(r->now < 100 ? r->now + 1 : 100);
		break;
	case 2: /* right on a boundary */
		r->now += spans[below(5)];
		r->now -= r->now % spans[below(5)];
		break;
	case 3:
		r->now += some_distance();
		break;
	default:
		r->now += below(40);
	}
}

static void move_array(struct run *r)
{
	struct element *moved = malloc(ENTRIES * sizeof(*moved));
	ck_assert_ptr_nonnull(moved);
	memcpy(moved, r->elements, ENTRIES * sizeof(*moved));
	memset(r->elements, 0xa5, ENTRIES * sizeof(*moved));
	free(r->elements);
	r->elements = moved;
	hw_wheel_rebase(&r->wheel, moved);
}

static void start(struct run *r)
{
	memset(r, 0, sizeof(*r));
	r->elements = malloc(ENTRIES * sizeof(*r->elements));
	ck_assert_ptr_nonnull(r->elements);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		hw_node_init(&r->elements[i].node);
		r->elements[i].node.user = i & 255;
		r->elements[i].guard[0] = i;
		r->elements[i].guard[1] = ~(uint64_t)i;
		r->elements[i].guard[2] = 7;
	}
	r->now = below(4) == 0 ? 0 : below(below(2) == 0 ? 100000 : HUGE_HORIZON);
	if (below(3) == 0)
		r->now -= r->now % spans[below(5)];
	r->latest = r->now;
	hw_wheel_init(&r->wheel, r->elements, sizeof(*r->elements), tick(r->now));
}

static void drain(struct run *r)
{
	uint64_t last = r->latest; /* not `now`, which may have gone back behind the cursor */
	for (uint32_t i = 0; i < ENTRIES; i++)
		if (r->twin.armed[i] && r->twin.due[i] > last)
			last = r->twin.due[i];
	uint32_t got;
	while (!take_one(r, last, HUGE_BUDGET, &got))
		;
	MUST(r->twin.length == 0);
	MUST(r->wheel.length == 0);
}

START_TEST(wheel_is_its_twin)
{
	const unsigned rounds = getenv("HW_FEW_ROUNDS") ? ROUNDS / 4 : ROUNDS;
	uint64_t taken = 0;
	for (unsigned round = 0; round < rounds; round++) {
		struct run r;
		start(&r);
		for (int step = 0; step < STEPS; step++) {
			switch (below(8)) {
			case 0:
			case 1:
				add_some(&r);
				break;
			case 2:
				del_some(&r);
				break;
			case 3:
				follow_next(&r);
				break;
			case 4:
				if (below(10) == 0)
					move_array(&r);
				break;
			default:
				advance(&r);
				take_some(&r);
			}
			check_next(&r);
			check_whole(&r);
		}
		drain(&r);
		taken += r.taken;
		free(r.elements);
	}
	MUST(taken > rounds * STEPS / 10);
}
END_TEST

/* Each tick of a turn of level 2, one by one: every entry comes out at the very tick that it is armed for. */
START_TEST(every_tick_is_hit)
{
	struct run r;
	start(&r);
	for (uint32_t i = 0; i < ENTRIES; i++)
		arm(&r, i, r.now + below(2000));
	for (uint64_t end = r.now + 2000; r.now < end; r.now++) {
		uint32_t got;
		while (!take_one(&r, r.now, 1 + (unsigned)below(3), &got))
			if (got != HW_NIL)
				MUST(r.twin.due[got] == r.now);
	}
	MUST(r.twin.length == 0);
	free(r.elements);
}
END_TEST

START_TEST(ticks_of_random_instants)
{
	for (int i = 0; i < 200000; i++) {
		/* Up to 100 years, so well past 9.4, where ns * 31 leaves 63 bits. */
		int64_t ns = (int64_t)(random64() % (UINT64_C(100) * 366 * 86400 * HW_NS_PER_S >> below(60)));
		struct hw_seen t = {ns};
		struct hw_tick up = hw_tick_ceil(t), down = hw_tick_floor(t);
		MUST(up.n == down.n || up.n == down.n + 1);
		MUST(hw_tick_start(up).ns >= ns);
		MUST(hw_tick_start(down).ns <= ns);
		MUST(hw_tick_floor(hw_tick_start(up)).n == up.n);
		MUST(hw_tick_floor(hw_tick_start(down)).n == down.n);
		unsigned __int128 exact = (unsigned __int128)(uint64_t)ns * HW_TICKS_PER_S;
		MUST(down.n == (uint64_t)(exact / HW_NS_PER_S));
		MUST(up.n == (uint64_t)((exact + HW_NS_PER_S - 1) / HW_NS_PER_S));
	}
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());

	Suite *suite = suite_create("wheel (random)");
	TCase *tc = tcase_create("twin");
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, wheel_is_its_twin);
	tcase_add_test(tc, every_tick_is_hit);
	tcase_add_test(tc, ticks_of_random_instants);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
