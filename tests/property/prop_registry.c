/* SPDX-License-Identifier: MIT */
/*
 * The registry against a naive twin: an array, indexed by the number of an id in a fixed pool. Random additions,
 * removals and look-ups, through several doublings of the table, must give the same results as in the twin.
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
#include "heartwheel/registry.h"

/* ck_assert() writes to a pipe each time that it holds: too slow for millions. */
#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("not true: %s", #truth);                                                          \
	} while (0)

#define POOL   6000
#define ROUNDS 40
#define STEPS  40000
#define STALE  256

/* One id of the pool, and the state of its device. */
struct known {
	uint8_t len;
	char id[255];
	bool present;
	struct hw_ref ref;
	int64_t mark; /* the value that the test wrote into the record, and into its side block if it has one */
	bool extra;
	struct hw_report report; /* `ip` is one of ips[] */
};

struct run {
	struct hw_registry *registry;
	struct known *pool;
	uint32_t count;
	uint32_t highest; /* the highest index so far: free indices are used again before new ones */
	struct hw_ref stale[STALE];
	size_t n_stale;
};

static uint64_t below(uint64_t n)
{
	return random64() % n;
}

/* All different: the first 256 are a byte long, the others begin with their number. Some differ in one byte only. */
static void make_pool(struct known *pool)
{
	for (unsigned i = 0; i < POOL; i++) {
		struct known *k = &pool[i];
		*k = (struct known){.len = 1};
		if (i >= 256)
			k->len = (uint8_t)(2 + below(below(4) == 0 ? 254 : 30));
		for (unsigned n = 0; n < k->len; n++)
			k->id[n] = (char)(i % 2 == 0 ? below(256) : 'a');
		k->id[0] = (char)(i & 255);
		if (i >= 256)
			k->id[1] = (char)(i >> 8);
	}
}

static void remember_stale(struct run *r, struct hw_ref ref)
{
	r->stale[r->n_stale++ % STALE] = ref;
}

static void check_known(const struct run *r, const struct known *k)
{
	uint32_t found = hw_registry_find(r->registry, k->id, k->len);
	if (!k->present) {
		MUST(found == HW_NIL);
		return;
	}
	MUST(found == k->ref.index);
	struct hw_device *d = hw_registry_get(r->registry, k->ref);
	MUST(d != NULL);
	MUST(d == hw_registry_at(r->registry, found));
	MUST(d == hw_registry_base(r->registry) + found);
	MUST(d->gen == k->ref.gen);
	MUST(d->last_seen_ns == k->mark);
	struct hw_id id = hw_device_id(d);
	MUST(id.len == k->len);
	MUST(memcmp(id.text, k->id, id.len) == 0);
	MUST((hw_device_extra(d) != NULL) == k->extra);
	if (k->extra)
		MUST(hw_device_own_timeout_ms(d) == k->mark);
	struct hw_report is = hw_device_report(d);
	MUST(is.has == k->report.has);
	MUST(!(is.has & HW_HAS_IP) || strcmp(is.ip, k->report.ip) == 0);
	MUST(!(is.has & HW_HAS_RSSI) || is.rssi == k->report.rssi);
}

static void add(struct run *r, struct known *k)
{
	uint32_t index;
	MUST(hw_registry_add(r->registry, k->id, k->len, &index) == 0);
	k->present = true;
	k->extra = false;
	k->report = (struct hw_report){0};
	k->ref = hw_registry_ref(r->registry, index);
	k->mark = (int64_t)random64();
	MUST(k->ref.index == index);
	r->count++;
	if (r->count > r->highest)
		r->highest = r->count;
	struct hw_device *d = hw_registry_at(r->registry, index);
	MUST(d->node.place == HW_PLACE_NONE);
	MUST(hw_device_extra(d) == NULL && d->last_seen_ns == 0 && d->seq == 0 && d->flags == 0);
	d->last_seen_ns = k->mark;
	d->node.due = 123; /* as if it had been somewhere */
}

static void drop(struct run *r, struct known *k)
{
	hw_registry_remove(r->registry, k->ref.index);
	remember_stale(r, k->ref);
	k->present = false;
	r->count--;
}

static char ips[][16] = {"", "192.0.2.1", "192.0.2.2", "2001:db8::1"};

/* Also of one that has one. */
static void give_extra(struct run *r, struct known *k)
{
	if (!k->present)
		return;
	struct hw_extra *e = hw_registry_extra(r->registry, k->ref.index);
	MUST(e != NULL);
	e->own_timeout_ms = k->mark;
	k->extra = true;
	if (below(2) == 0)
		return;
	struct hw_report said = {.has = (unsigned)below(4) * HW_HAS_RSSI};
	said.rssi = k->report.rssi =
		said.has & HW_HAS_RSSI ? (double)random64() / (double)(1 + below(9)) : k->report.rssi;
	if (said.has & HW_HAS_IP)
		said.ip = k->report.ip = ips[below(sizeof(ips) / sizeof(ips[0]))];
	k->report.has |= said.has;
	MUST(hw_registry_report(r->registry, k->ref.index, &said) == 0);
}

/* Known ids, unknown ids, and ids that differ from known ones in one byte, in one batch of any size. */
static void find_many(const struct run *r)
{
	enum { MOST = 100 };
	struct hw_id ids[MOST] = {{NULL, 0}};
	uint32_t asked[MOST] = {0}, out[MOST + 1];
	size_t n = below(MOST + 1);
	for (size_t i = 0; i < n; i++) {
		const struct known *k = &r->pool[below(POOL)];
		ids[i] = (struct hw_id){k->id, k->len};
		if (below(8) == 0)
			ids[i].len = below(k->len);
		asked[i] = hw_registry_prefetch(r->registry, ids[i].text, ids[i].len);
	}
	out[n] = 0xabcdef;
	hw_registry_find_prefetched(r->registry, ids, asked, n, out);
	MUST(out[n] == 0xabcdef);
	for (size_t i = 0; i < n; i++)
		MUST(out[i] == hw_registry_find(r->registry, ids[i].text, ids[i].len));
}

static void check_whole(const struct run *r)
{
	uint32_t used = 0, bound = hw_registry_bound(r->registry);
	for (unsigned i = 0; i < POOL; i++)
		check_known(r, &r->pool[i]);
	for (uint32_t i = 0; i < bound; i++)
		used += hw_registry_at(r->registry, i) != NULL;
	MUST(used == r->count);
	MUST(hw_registry_count(r->registry) == r->count);
	MUST(bound == r->highest);
	for (size_t i = 0; i < r->n_stale && i < STALE; i++)
		MUST(hw_registry_get(r->registry, r->stale[i]) == NULL);
}

static void start(struct run *r, struct known *pool)
{
	uint8_t key[16];
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)below(256);
	*r = (struct run){.registry = hw_registry_new(key), .pool = pool};
	MUST(r->registry != NULL);
	make_pool(pool);
}

START_TEST(registry_is_its_twin)
{
	struct known *pool = malloc(POOL * sizeof(*pool));
	MUST(pool != NULL);
	for (int round = 0; round < ROUNDS; round++) {
		struct run r;
		uint64_t grow = 50;
		start(&r, pool);
		for (int step = 0; step < STEPS; step++) {
			if (step % 4000 == 0)
				grow = 20 + below(80); /* how likely it is to grow, per cent */
			struct known *k = &pool[below(POOL)];
			if (below(8) == 0)
				check_known(&r, k);
			else if (!k->present && below(100) < grow)
				add(&r, k);
			else if (k->present && below(100) >= grow)
				drop(&r, k);
			else if (below(4) == 0)
				give_extra(&r, k);
			else if (below(50) == 0)
				find_many(&r);
			if (step % 2500 == 0)
				check_whole(&r);
		}
		check_whole(&r);
		hw_registry_free(r.registry);
	}
	free(pool);
}
END_TEST

/* At each addition while the table grows, also when a doubling is half done: additions, removals and look-ups. */
START_TEST(every_step_of_a_doubling)
{
	struct known *pool = malloc(POOL * sizeof(*pool));
	MUST(pool != NULL);
	struct run r;
	start(&r, pool);
	for (unsigned i = 0; i < POOL; i++) {
		add(&r, &pool[i]);
		for (int n = 0; n < 40; n++)
			check_known(&r, &pool[below(n % 2 == 0 ? i + 1 : POOL)]);
		struct known *k = &pool[below(i + 1)];
		if (below(3) == 0 && k->present) {
			drop(&r, k);
			check_known(&r, k);
			if (below(2) == 0)
				add(&r, k);
		}
		/* The table is twice as large now, or will be soon: check everything. */
		if (((i + 1) & i) == 0 || i % 1000 == 0 || (i > 3040 && i < 3120))
			check_whole(&r);
		find_many(&r);
	}
	while (r.count > 0) {
		struct known *k = &pool[below(POOL)];
		if (k->present)
			drop(&r, k);
		if (below(100) == 0)
			check_known(&r, &pool[below(POOL)]);
	}
	check_whole(&r);
	hw_registry_free(r.registry);
	free(pool);
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());

	Suite *suite = suite_create("registry (random)");
	TCase *tc = tcase_create("twin");
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, registry_is_its_twin);
	tcase_add_test(tc, every_step_of_a_doubling);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
