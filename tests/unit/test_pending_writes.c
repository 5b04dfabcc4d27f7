/* SPDX-License-Identifier: MIT */
/* The ring of pending writes against a list that says the same: what is pushed, put before and confirmed, up to its
 * mark and over its end, and that it gives its memory back. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "redis/pending_writes.h"

#define COUNT (4 * HW_PENDING_WRITES_MAX)
/* Cheap, since it is asked a million times: an assertion of check writes to a file each time. */
#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("not so: %s", #truth);                                                            \
	} while (0)

static struct hw_pending_writes q;

static int push(uint64_t seq)
{
	enum hw_state state = seq % 5 < 2 ? HW_STATE_ONLINE : seq % 5 == 2 ? HW_STATE_FORGOTTEN : HW_STATE_OFFLINE;
	struct hw_pending_write e = {.t = {.seq = seq, .state = state}, .acknowledges = seq % 3 == 0};
	return hw_pending_writes_push(&q, &e);
}

static unsigned chunks(void)
{
	unsigned n = 0;
	for (unsigned k = 0; k < HW_PENDING_WRITES_CHUNKS; k++)
		n += q.chunk[k] != NULL;
	return n;
}

/* The twin: the numbers that the ring must hold, between two places of a long array. */
static uint64_t *held;
static size_t first, end;

static void same(void)
{
	uint32_t transitions = 0, ends = 0;
	ck_assert_uint_eq(q.tail - q.head, end - first);
	for (size_t i = first; i < end; i++) {
		const struct hw_pending_write *e = hw_pending_writes_at(&q, q.head + (i - first));
		MUST(e->t.seq == held[i]);
		transitions += !e->acknowledges;
		ends += !e->acknowledges && !e->again && e->t.state != HW_STATE_ONLINE;
	}
	ck_assert_uint_eq(q.transitions, transitions);
	ck_assert_uint_eq(q.ends, ends);
	ck_assert_uint_le(chunks(), (end - first) / HW_PENDING_WRITES_CHUNK + 2);
}

static void step(uint64_t *seq)
{
	uint64_t some = random64() % (random64() % 8 ? 300 : 30000);
	switch (random64() % 3) {
	case 0:
		for (; some > 0 && end < COUNT && end - first < HW_PENDING_WRITES_MAX; some--) {
			MUST(push(++*seq) == 0);
			held[end++] = *seq;
		}
		return;
	case 1:
		for (some %= 2000; some > 0 && first > 0 && end - first < HW_PENDING_WRITES_MAX; some--) {
			struct hw_pending_write e = {.t = {.seq = ++*seq, .state = HW_STATE_OFFLINE}};
			MUST(hw_pending_writes_put_before(&q, &e) == 0);
			held[--first] = *seq;
		}
		return;
	default:
		some = some < end - first ? some : end - first;
		q.sent = q.tail;
		hw_pending_writes_confirm(&q, q.head + some);
		first += some;
	}
}

START_TEST(twin)
{
	uint64_t seq = 0;
	held = malloc(COUNT * sizeof(*held));
	ck_assert_ptr_nonnull(held);
	first = end = COUNT / 4;
	const int rounds = getenv("HW_FEW_ROUNDS") ? 60 : 400;
	for (int round = 0; round < rounds && end < COUNT; round++) {
		step(&seq);
		if (round % 8 == 0)
			same();
	}
	same();
	hw_pending_writes_confirm(&q, q.tail);
	ck_assert_uint_le(chunks(), 1);
	ck_assert_uint_eq(q.transitions, 0);
	ck_assert_uint_eq(q.ends, 0);
	ck_assert_uint_eq(q.again, 0);
	hw_pending_writes_fini(&q);
	ck_assert_uint_eq(chunks(), 0);
	free(held);
}
END_TEST

/* What came before goes in front beside the mark, to the last place that there is; then all of it comes out in order.
 */
START_TEST(full)
{
	struct hw_pending_write e = {.t = {.seq = 0}};
	for (uint64_t seq = 1; seq <= HW_PENDING_WRITES_MAX + 700; seq++)
		MUST(push(seq) == (seq <= HW_PENDING_WRITES_MAX ? 0 : -ENOBUFS));
	hw_pending_writes_confirm(&q, 700); /* so that a full ring's ends share a chunk */
	for (uint64_t seq = 1; seq <= 700; seq++)
		ck_assert_int_eq(push(HW_PENDING_WRITES_MAX + seq), 0);
	for (uint64_t n = 0; n < HW_PENDING_WRITES_MAX; n++)
		MUST(hw_pending_writes_put_before(&q, &e) == 0);
	ck_assert_int_eq(hw_pending_writes_put_before(&q, &e), -ENOBUFS);
	ck_assert_int_eq(push(1), -ENOBUFS);
	ck_assert_uint_eq(q.again, HW_PENDING_WRITES_MAX);
	hw_pending_writes_confirm(&q, q.head + HW_PENDING_WRITES_MAX);
	ck_assert_uint_eq(q.again, 0);
	for (uint64_t seq = 701; q.head != q.tail; seq++) {
		MUST(hw_pending_writes_at(&q, q.head)->t.seq == seq);
		hw_pending_writes_confirm(&q, q.head + 1);
	}
	ck_assert_uint_le(chunks(), 2);
	hw_pending_writes_fini(&q);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pending_writes");
	TCase *tc = tcase_create("ring");
	random_begin(random_seed_of_now());
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, twin);
	tcase_add_test(tc, full);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
