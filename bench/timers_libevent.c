/* SPDX-License-Identifier: MIT */
/*
 * One timer of libevent for each device, which each heartbeat arms again: event_add().
 *
 *     timers_libevent DEVICES HEARTBEATS
 *
 * The timers are in libevent's min-heap (`heap`), or have one common timeout (`common`,
 * event_base_init_common_timeout()). A common timeout is a list in place of the heap, for a fleet whose devices have
 * only a few different timeouts. Each is measured in three ways:
 *
 *   heap: the heartbeat refers to the event itself, so there is no look-up. In batches of 32: the clock is read once
 *   for a batch, and all its events are prefetched before the first one is armed.
 *
 *   heap_one: the event is found by the device's id, one by one; the clock is read each time.
 *
 *   heap_batch: the same in batches of 32. All ids are hashed first. Their buckets, and then the first entries in
 *   these, are prefetched before the first id is compared.
 *
 * The program is as fast as possible: the id is given, so no topic is matched and no payload is read; there are no
 * locks; events and their entries in the table are in one array, in huge pages, in records of three cache lines.
 *
 * The table is uthash, which many programs use. Its entry is next to the event, so when an id is found, its event is
 * already in the cache. GLib's GHashTable would read separate arrays of hashes, keys and values. uthash consists of
 * macros, so it can be prefetched like our table. (uthash has no secret key, so a client that chooses ids can make them
 * collide. Our table has a key, which takes time.)
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <uthash.h>

#include "common.h"

#define BATCH 32
#define CHUNK 1024 /* ids are written so many at a time: as many as ours */

struct device {
	_Alignas(64) struct event event;
	UT_hash_handle hh;
	char id[16];
};

/* One of the two kinds: with the heap, or with a list. */
struct race {
	struct event_base *base;
	struct device *devices;
	struct device *table;
	const struct timeval *timeout;
	uint32_t n; /* devices */
	void (*some)(struct race *r, unsigned n);
	const uint32_t *order; /* whose turn it is */
	uint32_t beats;
	int64_t ns; /* what they took */
	char ids[CHUNK][16];
};

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	abort(); /* none may come due while it is measured */
}

static void arm(struct race *r, struct device *d)
{
	if (!d)
		abort();
	event_add(&d->event, r->timeout);
}

static void named(struct race *r, unsigned n)
{
	for (unsigned k = 0; k < n; k += BATCH) {
		unsigned batch = n - k < BATCH ? n - k : BATCH;
		event_base_update_cache_time(r->base);
		for (unsigned j = 0; j < batch; j++)
			__builtin_prefetch(&r->devices[r->order[k + j]].event, 1);
		for (unsigned j = 0; j < batch; j++)
			arm(r, &r->devices[r->order[k + j]]);
	}
}

static void found_one(struct race *r, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		struct device *d;
		event_base_update_cache_time(r->base);
		HASH_FIND(hh, r->table, r->ids[k], BENCH_ID_LEN, d);
		arm(r, d);
	}
}

static const UT_hash_bucket *bucket_of(const struct race *r, unsigned hash)
{
	const UT_hash_table *t = r->table->hh.tbl;
	return &t->buckets[hash & (t->num_buckets - 1)];
}

static void prefetch_first(const UT_hash_bucket *b)
{
	if (!b->hh_head)
		return;
	const struct device *d = (const struct device *)((const char *)b->hh_head - offsetof(struct device, hh));
	__builtin_prefetch(b->hh_head);
	__builtin_prefetch(d, 1);
	__builtin_prefetch(d->id);
}

static void found_batch(struct race *r, unsigned n)
{
	unsigned hash[BATCH];
	for (unsigned k = 0; k < n; k += BATCH) {
		unsigned batch = n - k < BATCH ? n - k : BATCH;
		event_base_update_cache_time(r->base);
		for (unsigned j = 0; j < batch; j++) {
			HASH_VALUE(r->ids[k + j], BENCH_ID_LEN, hash[j]);
			__builtin_prefetch(bucket_of(r, hash[j]));
		}
		for (unsigned j = 0; j < batch; j++)
			prefetch_first(bucket_of(r, hash[j]));
		for (unsigned j = 0; j < batch; j++) {
			struct device *d;
			HASH_FIND_BYHASHVALUE(hh, r->table, r->ids[k + j], BENCH_ID_LEN, hash[j], d);
			arm(r, d);
		}
	}
}

/* Called within the loop, where the time is cached. Writing the ids is not counted. */
static void on_start(evutil_socket_t fd, short what, void *arg)
{
	struct race *r = arg;
	(void)fd;
	(void)what;
	r->ns = 0;
	for (uint32_t left = r->beats; left > 0;) {
		unsigned n = left < CHUNK ? left : CHUNK;
		for (unsigned k = 0; k < n; k++)
			bench_write_id(r->ids[k], r->order[k]);
		int64_t began = bench_ns();
		r->some(r, n);
		r->ns += bench_ns() - began;
		r->order += n;
		left -= n;
	}
	event_base_loopbreak(r->base);
}

/* What a heartbeat costs, in ns. */
static double run(struct race *r, void (*some)(struct race *r, unsigned n), const uint32_t *order, uint32_t beats)
{
	struct event *start = event_new(r->base, -1, 0, on_start, r);
	if (!start)
		abort();
	r->some = some;
	r->order = order;
	r->beats = beats;
	event_active(start, EV_TIMEOUT, 1);
	event_base_dispatch(r->base);
	event_free(start);
	return (double)r->ns / beats;
}

static void enter(struct race *r, struct device *d)
{
	HASH_ADD(hh, r->table, id, BENCH_ID_LEN, d);
}

/* Arms all timers, and arms them again, in random orders. */
static void make(struct race *r, bool common)
{
	static const struct timeval timeout = {3600, 0};
	r->base = event_base_new();
	if (!r->base)
		abort();
	r->timeout = common ? event_base_init_common_timeout(r->base, &timeout) : &timeout;
	r->devices = bench_memory(r->n * sizeof(*r->devices));
	for (uint32_t i = 0; i < r->n; i++) {
		struct device *d = &r->devices[i];
		event_assign(&d->event, r->base, -1, 0, on_timeout, NULL);
		bench_write_id(d->id, i);
		enter(r, d);
	}
	for (unsigned k = 0; k < 2; k++) {
		uint32_t *order = bench_order(r->n, k);
		run(r, named, order, r->n);
		free(order);
	}
}

int main(int argc, char **argv)
{
	uint32_t n = (uint32_t)bench_number(argc, argv, 1), beats = (uint32_t)bench_number(argc, argv, 2);
	static struct race heap, common;
	heap.n = common.n = n;
	make(&heap, false);
	make(&common, true);
	uint64_t state = 1;
	uint32_t *order = bench_memory(beats * sizeof(*order));
	while (bench_round()) {
		bench_draw(order, beats, n, &state);
		bench_say("heap", run(&heap, named, order, beats));
		bench_say("heap_one", run(&heap, found_one, order, beats));
		bench_say("heap_batch", run(&heap, found_batch, order, beats));
		bench_say("common", run(&common, named, order, beats));
		bench_say("common_one", run(&common, found_one, order, beats));
		bench_say("common_batch", run(&common, found_batch, order, beats));
	}
	return 0; /* all goes with the process */
}
