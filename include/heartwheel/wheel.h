/* SPDX-License-Identifier: MIT */
/*
 * The hierarchical timing wheel (Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP 1987, scheme 7).
 *
 *   level   slots   a slot spans       a turn spans
 *     0      31     1/31 s             1 s
 *     1      31     1 s                31 s
 *     2      31     31 s               961 s
 *     3      31     961 s              8 h 16 min; beyond a turn an entry stays in its slot for a count of rounds
 *
 * The wheel owns no entry. Entries are nodes that the caller embeds at the start of each element of one array. They are
 * named by index, and the array may move (hw_wheel_rebase). The caller pushes the time in and pulls due entries out.
 * There are no callbacks.
 *
 * Invariant: no entry sits at a tick before `cursor`, and `cursor` never passes the last `now`. An entry armed for a
 * tick t >= cursor sits on the lowest level whose turn reaches t. An entry armed for the past sits in the cursor's own
 * slot. So no entry fires before its tick, and each fires on the first hw_wheel_take() at or after it.
 *
 * Cost: add and del are O(1). An entry moves at most three times on its way down, plus once per round on level 3.
 * take() makes at most as many moves as its budget allows, however many entries share a tick.
 */
#ifndef HEARTWHEEL_WHEEL_H
#define HEARTWHEEL_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"

#define HW_NIL          UINT32_MAX
#define HW_WHEEL_LEVELS 4
#define HW_WHEEL_SLOTS  31

/* The place of a node: a level of the wheel, a hw_queue, or nowhere. While a slot is cascaded, its nodes still count
 * for their old level. */
enum hw_place { HW_PLACE_LEVEL0, HW_PLACE_LEVEL1, HW_PLACE_LEVEL2, HW_PLACE_LEVEL3, HW_PLACE_QUEUE, HW_PLACE_NONE = 7 };

/* 16 bytes, the first member of each element in the wheel. Zeroed memory is no valid node: use hw_node_init(). */
struct hw_node {
	uint32_t next, prev;
	uint64_t due : 48;  /* the tick it is armed for; on a queue: the tag of hw_queue_push() */
	uint64_t place : 3; /* enum hw_place */
	uint64_t slot : 5;
	uint64_t user : 8; /* for the embedding record; the wheel never changes it */
};

/* A first-in-first-out list of nodes: an entry is in the wheel, on one queue, or nowhere. */
struct hw_queue {
	uint32_t head, tail;
	uint32_t length;
};

struct hw_wheel {
	unsigned char *nodes; /* borrowed: the node of element i is at nodes + i * stride */
	size_t stride;
	uint64_t cursor;  /* all earlier ticks are processed */
	uint32_t cascade; /* head of the list that is being cascaded; HW_NIL: none */
	uint8_t entering; /* next level to cascade at the cursor's boundary: HW_WHEEL_LEVELS-1 .. 1; 0: done */
	uint32_t occupied[HW_WHEEL_LEVELS];
	uint32_t slots[HW_WHEEL_LEVELS][HW_WHEEL_SLOTS];
	uint32_t length;
	uint32_t load[HW_WHEEL_LEVELS]; /* entries on each level */
	uint32_t slot_load[HW_WHEEL_LEVELS][HW_WHEEL_SLOTS];
};

/* The position of an entry, for display. `rounds`: how often level 3 passes its slot before the entry leaves it. */
struct hw_wheel_spot {
	int level, slot;
	uint64_t rounds;
};

/* Initialises the caller's storage. `nodes` may be NULL while the wheel is empty. `now` is the first tick that has not
 * passed. */
void hw_wheel_init(struct hw_wheel *w, void *nodes, size_t stride, struct hw_tick now);

/* Must be called when the array of nodes has moved. */
void hw_wheel_rebase(struct hw_wheel *w, void *nodes);

void hw_node_init(struct hw_node *n);

/* Arms entry `i`, which must be nowhere, for tick `due`, at most 48 bits (a later one is clamped). */
void hw_wheel_add(struct hw_wheel *w, uint32_t i, struct hw_tick due);

/* Removes entry `i`, which must be in the wheel. */
void hw_wheel_del(struct hw_wheel *w, uint32_t i);

/*
 * Removes and returns one entry whose tick is at or before `now`, in tick order, or HW_NIL. Each entry that is moved or
 * returned costs one of `*budget`. Empty ticks cost nothing, because the scan jumps between occupied slots. When the
 * budget is used up, the function returns HW_NIL with *budget == 0, and the next call continues there. If `now` stands
 * still, entries armed meanwhile for now or the past are returned. If `now` goes back, nothing is due.
 */
uint32_t hw_wheel_take(struct hw_wheel *w, struct hw_tick now, unsigned *budget);

/* Whether any entry is armed. If so, `*at` is the first tick at which hw_wheel_take() has work, perhaps only a cascade.
 * `*at` is never after the first due entry, and never before the last processed `now`. */
bool hw_wheel_next(const struct hw_wheel *w, struct hw_tick *at);

/* Returns the position of entry `i`, which must be in the wheel. */
struct hw_wheel_spot hw_wheel_where(const struct hw_wheel *w, uint32_t i);

/* Returns the number of entries of a slot, including the entries that a cascade has not moved yet. O(1): counters. */
uint32_t hw_wheel_slot_load(const struct hw_wheel *w, int level, int slot);
/* hw_wheel_cursor_slot(): the slot of a level at the cursor. hw_wheel_slot_ticks(): how many ticks a slot of a level
 * spans. */
int hw_wheel_cursor_slot(const struct hw_wheel *w, int level);
uint64_t hw_wheel_slot_ticks(int level);

void hw_queue_init(struct hw_queue *q);
/* Appends entry `i`, which must be nowhere, with `tag` (48 bits) in its `due`. */
void hw_queue_push(struct hw_wheel *w, struct hw_queue *q, uint32_t i, uint64_t tag);
/* Removes entry `i`, which must be on `q`. */
void hw_queue_del(struct hw_wheel *w, struct hw_queue *q, uint32_t i);

static inline struct hw_node *hw_wheel_node(const struct hw_wheel *w, uint32_t i)
{
	return (struct hw_node *)(void *)(w->nodes + (size_t)i * w->stride);
}

#endif
