/* SPDX-License-Identifier: MIT */
/*
 * The seeing clock against a naive twin. The twin notes every spell of every cause, and calculates the clock from this
 * list alone: seen(t) = t - the length of the union of all spells before t. Spells begin and end at random and overlap.
 * Some begins are reported late.
 *
 * If ends are reported late too, a period may have a hole in which no cause is active. It still lasts from the first
 * begin to the last end, and the twin counts this whole time.
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
#include "heartwheel/blind.h"

/* ck_assert() writes to a pipe each time that it holds: too slow for so many. */
#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("not true: %s", #truth);                                                          \
	} while (0)

#define ROUNDS 300
#define STEPS  150

struct spell {
	enum hw_cause cause;
	int64_t from, to; /* to: INT64_MAX while it lasts */
	unsigned period;
	bool lossy;
};

struct twin {
	struct spell spells[STEPS + 1];
	int n;
	unsigned periods;
	bool hulls; /* ends are reported late */
};

static int64_t below(int64_t n)
{
	return (int64_t)(random64() % (uint64_t)n);
}

static struct spell *lasting(struct twin *t, int cause) /* -1: any */
{
	for (int i = 0; i < t->n; i++)
		if (t->spells[i].to == INT64_MAX && (cause < 0 || (int)t->spells[i].cause == cause))
			return &t->spells[i];
	return NULL;
}

/* When the period before `period` was over. */
static int64_t floor_of(const struct twin *t, unsigned period)
{
	int64_t at = INT64_MIN;
	for (int i = 0; i < t->n; i++)
		if (t->spells[i].period < period && t->spells[i].to > at)
			at = t->spells[i].to;
	return at;
}

static bool twin_begin(struct twin *t, enum hw_cause cause, int64_t at, bool lossy)
{
	struct spell *s = lasting(t, (int)cause);
	bool begins = !lasting(t, -1);
	if (s) {
		s->lossy |= lossy;
		return false;
	}
	t->periods += begins;
	int64_t least = floor_of(t, t->periods);
	t->spells[t->n++] = (struct spell){cause, at > least ? at : least, INT64_MAX, t->periods, lossy};
	return begins;
}

static bool twin_end(struct twin *t, enum hw_cause cause, int64_t at)
{
	struct spell *s = lasting(t, (int)cause);
	if (!s)
		return false;
	s->to = at > s->from ? at : s->from;
	return !lasting(t, -1);
}

static int by_from(const void *a, const void *b)
{
	const struct spell *x = a, *y = b;
	return (x->from > y->from) - (x->from < y->from);
}

/* Each period's first begin to its last end. */
static int hulls(const struct twin *t, struct spell *out)
{
	int n = 0;
	for (unsigned period = 1; period <= t->periods; period++) {
		struct spell hull = {.from = INT64_MAX, .to = INT64_MIN};
		for (int i = 0; i < t->n; i++) {
			const struct spell *s = &t->spells[i];
			if (s->period != period)
				continue;
			hull.from = s->from < hull.from ? s->from : hull.from;
			hull.to = s->to > hull.to ? s->to : hull.to;
		}
		out[n++] = hull;
	}
	return n;
}

/* The length of the union of spells, clipped to what is before `now`. */
static int64_t union_length(struct spell *spells, int n, int64_t now)
{
	int64_t length = 0, reached = INT64_MIN;
	qsort(spells, (size_t)n, sizeof(*spells), by_from);
	for (int i = 0; i < n; i++) {
		int64_t from = spells[i].from > reached ? spells[i].from : reached;
		int64_t to = spells[i].to < now ? spells[i].to : now;
		if (to > from) {
			length += to - from;
			reached = to;
		}
	}
	return length;
}

static int64_t twin_seen(const struct twin *t, int64_t now)
{
	struct spell spells[STEPS + 1];
	int n = t->n;
	if (t->hulls)
		n = hulls(t, spells);
	else
		memcpy(spells, t->spells, sizeof(spells));
	return now - union_length(spells, n, now);
}

/* A spell of a cause counts from the end of the one before; if a late begin lies before that, the period is longer,
 * not the spell. */
static int64_t twin_cause(const struct twin *t, enum hw_cause cause)
{
	int64_t length = 0, reached = INT64_MIN;
	for (int i = 0; i < t->n; i++) {
		const struct spell *s = &t->spells[i];
		if (s->cause != cause || s->to == INT64_MAX)
			continue;
		int64_t from = s->from > reached ? s->from : reached;
		reached = s->to > from ? s->to : from;
		length += reached - from;
	}
	return length;
}

static bool twin_lossy(const struct twin *t, unsigned period)
{
	for (int i = 0; i < t->n; i++)
		if (t->spells[i].period == period && t->spells[i].lossy)
			return true;
	return false;
}

/* The seeing clock at the end of the last lossy period. */
static int64_t twin_lossy_end(const struct twin *t, bool blind)
{
	for (unsigned period = blind ? t->periods - 1 : t->periods; period > 0; period--)
		if (twin_lossy(t, period))
			return twin_seen(t, floor_of(t, period + 1));
	return INT64_MIN / 4;
}

static void compare(const struct hw_blind *b, struct twin *t, int64_t now)
{
	bool blind = lasting(t, -1) != NULL;
	int64_t seen = hw_blind_seen(b, (struct hw_mono){now}).ns;
	MUST(hw_blind_now(b) == blind);
	MUST(seen == twin_seen(t, now));
	MUST(seen <= now - b->blind_ns);
	MUST(b->periods == t->periods);
	MUST(b->lossy_end.ns == twin_lossy_end(t, blind));
	for (int c = 0; c < HW_CAUSES; c++)
		MUST(b->cause_ns[c] == twin_cause(t, (enum hw_cause)c));
	if (t->periods == 0)
		return;
	MUST(b->lossy == twin_lossy(t, t->periods));
	MUST(b->begun.ns == twin_seen(t, b->since.ns));
	/* At most back to the end of the period before the last one. */
	int64_t least = floor_of(t, t->periods);
	int64_t past = now - below(200);
	if (past >= least)
		MUST(hw_blind_seen(b, (struct hw_mono){past}).ns == twin_seen(t, past));
}

static void run(bool ends_late)
{
	struct hw_blind b;
	struct twin t = {.hulls = ends_late};
	int64_t now = below(2) ? -below(10000) : below(INT64_C(1) << 60), before = INT64_MIN;
	hw_blind_init(&b);
	for (int step = 0; step < STEPS; step++) {
		enum hw_cause cause = (enum hw_cause)below(HW_CAUSES);
		now += below(4) == 0 ? 0 : below(100);
		compare(&b, &t, now);
		int64_t seen = hw_blind_seen(&b, (struct hw_mono){now}).ns;
		MUST(seen >= before); /* it goes back only when a cause begins in the past */
		if (below(5) < 2) {
			int64_t at = below(2) ? now : now - below(300);
			bool lossy = below(3) == 0;
			MUST(hw_blind_begin(&b, cause, (struct hw_mono){at}, lossy) ==
			     twin_begin(&t, cause, at, lossy));
			MUST(hw_blind_seen(&b, (struct hw_mono){now}).ns <= seen);
		} else {
			int64_t at = ends_late && below(2) ? now - below(200) : now;
			MUST(hw_blind_end(&b, cause, (struct hw_mono){at}) == twin_end(&t, cause, at));
		}
		compare(&b, &t, now);
		before = hw_blind_seen(&b, (struct hw_mono){now}).ns;
	}
}

START_TEST(clock_is_its_twin)
{
	for (int round = 0; round < ROUNDS; round++)
		run(false);
}
END_TEST

START_TEST(ends_told_late)
{
	for (int round = 0; round < ROUNDS; round++)
		run(true);
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());

	Suite *suite = suite_create("blind (random)");
	TCase *tc = tcase_create("twin");
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, clock_is_its_twin);
	tcase_add_test(tc, ends_told_late);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
