/* SPDX-License-Identifier: MIT */
/*
 * Measures the machine's limit for a heartbeat of a random device: it only touches the cache lines that the registry
 * touches, equally far apart, in the same batches, and prefetched in the same way. It runs in rounds, like the other
 * contenders:
 *
 *     lines DEVICES HEARTBEATS
 *
 * Each round prints in ns for one heartbeat:
 *
 *   three: a slot of the index (8 bytes of a table that is at most 3/4 full), the record that the slot refers to (64
 *   bytes, written), and the text to which the record points (16 bytes, as far away as an id outside of its record)
 *   two: the slot, and a record that contains the id
 *   one: only the record
 *
 * No topic is read, and nothing is hashed, compared or counted. So no look-up of this kind can be faster.
 */
#include <stdlib.h>

#include "common.h"
#include "heartwheel/monitor.h"

#define RECORD_WORDS 16 /* of 4 bytes: a cache line */
#define CELL_WORDS   4

struct slot {
	uint32_t record, hash;
};

struct record {
	uint32_t cell, last_seen, rest[RECORD_WORDS - 2];
};

struct cell {
	uint32_t id[CELL_WORDS];
};

struct lines {
	uint32_t n, n_slots;
	struct slot *slots;
	struct record *records;
	struct cell *cells;
	uint32_t now;
	volatile uint32_t seen; /* volatile, so that the compiler omits no read */
};

/* Touches a batch in several passes, so that each pass finds in the cache what the pass before has prefetched. */
typedef uint32_t touch(struct lines *l, const uint32_t *at, unsigned n);

static uint32_t touch_one(struct lines *l, const uint32_t *at, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		__builtin_prefetch(&l->records[at[k]], 1);
	for (unsigned k = 0; k < n; k++)
		l->records[at[k]].last_seen = l->now;
	return 0;
}

/* Prefetches the records to which the slots refer. */
static void ask(struct lines *l, const uint32_t *at, unsigned n, uint32_t *found)
{
	for (unsigned k = 0; k < n; k++)
		__builtin_prefetch(&l->slots[at[k]]);
	for (unsigned k = 0; k < n; k++) {
		found[k] = l->slots[at[k]].record;
		__builtin_prefetch(&l->records[found[k]], 1);
	}
}

static uint32_t touch_two(struct lines *l, const uint32_t *at, unsigned n)
{
	uint32_t found[HW_BATCH];
	ask(l, at, n, found);
	for (unsigned k = 0; k < n; k++)
		l->records[found[k]].last_seen = l->now;
	return 0;
}

static uint32_t touch_three(struct lines *l, const uint32_t *at, unsigned n)
{
	uint32_t found[HW_BATCH], seen = 0;
	ask(l, at, n, found);
	for (unsigned k = 0; k < n; k++)
		__builtin_prefetch(&l->cells[l->records[found[k]].cell]);
	for (unsigned k = 0; k < n; k++) {
		seen += l->cells[l->records[found[k]].cell].id[0];
		l->records[found[k]].last_seen = l->now;
	}
	return seen;
}

/* Returns the time of a heartbeat in ns. `most`: all places are less than this. */
static double run(struct lines *l, touch *all, uint32_t most, uint32_t *order, uint32_t beats)
{
	static uint64_t state = 1;
	bench_draw(order, beats, most, &state);
	int64_t began = bench_ns();
	for (uint32_t k = 0; k < beats; k += HW_BATCH)
		l->seen += all(l, order + k, beats - k < HW_BATCH ? beats - k : HW_BATCH);
	l->now++;
	return (double)(bench_ns() - began) / beats;
}

/* The slots refer to records in an order that is as random as a hash makes it. Ids were stored in another order than
 * records. */
static void make(struct lines *l)
{
	uint64_t state = 1;
	uint32_t *cells = bench_order(l->n, 1);
	for (l->n_slots = 128; l->n > l->n_slots / 4 * 3;)
		l->n_slots *= 2;
	l->slots = bench_memory(l->n_slots * sizeof(*l->slots));
	l->records = bench_memory(l->n * sizeof(*l->records));
	l->cells = bench_memory(l->n * sizeof(*l->cells));
	for (uint32_t i = 0; i < l->n_slots; i++)
		bench_draw(&l->slots[i].record, 1, l->n, &state);
	for (uint32_t i = 0; i < l->n; i++)
		l->records[i].cell = cells[i];
	free(cells);
}

int main(int argc, char **argv)
{
	struct lines l = {.n = (uint32_t)bench_number(argc, argv, 1)};
	uint32_t beats = (uint32_t)bench_number(argc, argv, 2);
	make(&l);
	uint32_t *order = bench_memory(beats * sizeof(*order));
	while (bench_round()) {
		bench_say("three", run(&l, touch_three, l.n_slots, order, beats));
		bench_say("two", run(&l, touch_two, l.n_slots, order, beats));
		bench_say("one", run(&l, touch_one, l.n, order, beats));
	}
	return 0; /* the end of the process frees the memory */
}
