/* SPDX-License-Identifier: MIT */
/* Transitions that are kept once they are confirmed, against a list that is never moved: which are there, and in what
 * order they come back. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../simulation/sim_random.h"
#include "../suite.h"
#include "heartwheel/time.h"
#include "redis/kept.h"

#define STEPS 60000

static struct hw_pending_write write(uint64_t seq)
{
	struct hw_pending_write e = {.t = {.seq = seq}, .queued_ns = -1};
	if (seq % 5 == 0)
		e.id = calloc(1, 3);
	return e;
}

static uint64_t seed_of_run(void)
{
	const char *text = getenv("HW_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
	printf("HW_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

static uint32_t held(const struct hw_kept *k)
{
	return (uint32_t)(k->tail - k->head);
}

/* What came back is all from `first` to the last one, then what was owed. */
static void expect_order(const struct hw_pending_writes *q, uint64_t first, uint64_t n, int64_t now_ns)
{
	ck_assert_uint_eq(q->again, n);
	ck_assert_uint_eq(q->sent, q->head);
	for (uint64_t k = 0; k < n; k++) {
		const struct hw_pending_write *e = hw_pending_writes_at(q, q->head + k);
		ck_assert_uint_eq(e->t.seq, first + k);
		ck_assert(e->again);
		ck_assert_int_eq(e->queued_ns, now_ns);
		ck_assert_int_eq(e->id != NULL, e->t.seq % 5 == 0);
	}
}

START_TEST(as_the_twin)
{
	struct sim_random random = {seed_of_run()};
	static int64_t confirmed[STEPS + 1];
	struct hw_kept k = {0};
	int64_t now = 0;
	uint64_t in = 0, out = 0;
	for (unsigned step = 0; step < STEPS; step++) {
		struct hw_pending_write e = write(in);
		now += (int64_t)sim_below(&random, step / 10000 % 2 ? 300 : 4) * HW_NS_PER_MS;
		confirmed[in++] = now;
		hw_kept_add(&k, &e, now);
		if (sim_below(&random, 50) == 0) {
			hw_kept_expire(&k, now);
			while (now - confirmed[out] > HW_KEPT_MS * HW_NS_PER_MS)
				out++;
			ck_assert_uint_eq(held(&k), in - out);
		}
	}
	for (unsigned seconds = 0; seconds < 12; seconds++)
		hw_kept_expire(&k, now);
	while (now - confirmed[out] > HW_KEPT_MS * HW_NS_PER_MS)
		out++;
	ck_assert_uint_le(k.cap, held(&k) > 64 ? 4 * held(&k) : 256); /* what a storm has taken is given back */
	struct hw_pending_writes q = {0};
	struct hw_pending_write pending = write(in);
	ck_assert_int_eq(hw_pending_writes_push(&q, &pending), 0);
	uint32_t n = held(&k);
	ck_assert_uint_eq(hw_kept_put_back(&k, &q, 77), n);
	expect_order(&q, out, in - out, 77);
	ck_assert_uint_eq(hw_pending_writes_at(&q, q.tail - 1)->t.seq, in);
	ck_assert(!hw_pending_writes_at(&q, q.tail - 1)->again);
	ck_assert_uint_eq(held(&k), 0);
	ck_assert_ptr_null(k.at);
	hw_pending_writes_fini(&q);
}
END_TEST

START_TEST(a_minute_and_no_longer)
{
	struct hw_kept k = {0};
	for (int64_t s = 0; s < 100; s++) {
		struct hw_pending_write e = write((uint64_t)s);
		hw_kept_add(&k, &e, s * HW_NS_PER_S);
	}
	hw_kept_expire(&k, 100 * HW_NS_PER_S);
	ck_assert_uint_eq(held(&k), 60); /* of seconds 40 to 99 */
	ck_assert_uint_eq(k.at[k.head & (k.cap - 1)].t.seq, 40);
	hw_kept_expire(&k, 160 * HW_NS_PER_S);
	ck_assert_uint_eq(held(&k), 0);
	ck_assert_ptr_null(k.at); /* and its memory is given back */
	hw_kept_fini(&k);
}
END_TEST

/* The oldest go. What comes back leaves as much room for what is owed as there was. */
START_TEST(the_mark)
{
	struct hw_kept k = {0};
	struct hw_pending_writes q = {0};
	const struct hw_pending_write pending = {.t = {.seq = 1}};
	for (uint64_t seq = 0; seq < HW_KEPT_MAX + 1000; seq++) {
		struct hw_pending_write e = write(seq);
		hw_kept_add(&k, &e, 1);
	}
	ck_assert_uint_eq(held(&k), HW_KEPT_MAX);
	ck_assert_uint_eq(k.cap, HW_KEPT_MAX);
	for (uint32_t i = 0; i < HW_PENDING_WRITES_MAX - 1; i++)
		ck_assert_int_eq(hw_pending_writes_push(&q, &pending), 0);
	ck_assert_uint_eq(hw_kept_put_back(&k, &q, 2), HW_KEPT_MAX);
	expect_order(&q, 1000, HW_KEPT_MAX, 2);
	ck_assert_int_eq(hw_pending_writes_push(&q, &pending), 0);
	ck_assert_int_lt(hw_pending_writes_push(&q, &pending), 0);
	ck_assert_uint_eq(q.transitions, HW_KEPT_MAX + HW_PENDING_WRITES_MAX);
	q.sent = q.head + HW_KEPT_MAX;
	hw_pending_writes_confirm(&q, q.sent);
	ck_assert_uint_eq(q.again, 0);
	ck_assert_uint_eq(q.transitions, HW_PENDING_WRITES_MAX);
	ck_assert_int_lt(hw_pending_writes_push(&q, &pending), 0);
	hw_pending_writes_fini(&q);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kept");
	TCase *c = tcase_create("kept");
	tcase_set_timeout(c, 20); /* half a million entries, also under valgrind beside all else */
	tcase_add_test(c, as_the_twin);
	tcase_add_test(c, a_minute_and_no_longer);
	tcase_add_test(c, the_mark);
	suite_add_tcase(s, c);
	return suite_run(s);
}
