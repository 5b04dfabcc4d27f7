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
 * The wheel owns no entry. Entries are nodes that the caller embeds at the start of each element of one array, named by
 * their index in it; the array may move (hw_wheel_rebase). Time is pushed in, due entries are pulled out; nothing calls
 * back.
 *
 * Invariant: no entry sits at a tick before `cursor`, which never passes the last `now` that was pushed in. An entry
 * armed for a tick t >= cursor sits on the lowest level whose turn reaches t; an entry armed for the past sits in the
 * cursor's own slot. So no entry fires before its tick, and it fires on the first hw_wheel_take() at or after it.
 *
 * Cost: add and del are O(1); an entry is moved at most three times on its way down, plus once per round on level 3;
 * take() works off at most as many moves as its budget says, however many entries share a tick.
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

/* Where a node is: a level of the wheel (while its slot is being cascaded: still the one it comes from), on a hw_queue,
 * or nowhere. */
enum hw_place { HW_PLACE_LEVEL0, HW_PLACE_LEVEL1, HW_PLACE_LEVEL2, HW_PLACE_LEVEL3, HW_PLACE_QUEUE, HW_PLACE_NONE = 7 };

/* 16 bytes, first member of whatever is kept in the wheel. Zeroed memory is not a valid node: use hw_node_init(). */
struct hw_node {
	uint32_t next, prev;
	uint64_t due : 48;  /* the tick it is armed for; on a queue: whatever the queue's owner keeps there */
	uint64_t place : 3; /* enum hw_place */
	uint64_t slot : 5;
	uint64_t user : 8; /* the embedding record's; the wheel never touches it */
};

/* A first-in-first-out list over the same nodes: an entry is in the wheel, on one queue, or nowhere. */
struct hw_queue {
	uint32_t head, tail;
	uint32_t length;
};

struct hw_wheel {
	unsigned char *nodes; /* borrowed: element i's node is at nodes + i * stride */
	size_t stride;
	uint64_t cursor;  /* all ticks before it are worked off */
	uint32_t cascade; /* head of the list that is being cascaded, HW_NIL if none */
	uint8_t entering; /* levels of the cursor's boundary still to be cascaded: HW_WHEEL_LEVELS-1 .. 1, 0: done */
	uint32_t occupied[HW_WHEEL_LEVELS];
	uint32_t slots[HW_WHEEL_LEVELS][HW_WHEEL_SLOTS];
	uint32_t length;
	uint32_t load[HW_WHEEL_LEVELS]; /* entries on each level */
	uint32_t slot_load[HW_WHEEL_LEVELS][HW_WHEEL_SLOTS];
};

/* Where an entry sits, for people: `rounds` is how many times level 3 still passes its slot before it leaves it. */
struct hw_wheel_spot {
	int level, slot;
	uint64_t rounds;
};

/* Readies caller's storage. `nodes` may be NULL while it is empty. `now` is the first tick that has not passed. */
void hw_wheel_init(struct hw_wheel *w, void *nodes, size_t stride, struct hw_tick now);

/* Tells the wheel that the array of nodes has moved. */
void hw_wheel_rebase(struct hw_wheel *w, void *nodes);

void hw_node_init(struct hw_node *n);

/* Arms entry `i`, which must be nowhere, for tick `due` (48 bits; later is clamped). */
void hw_wheel_add(struct hw_wheel *w, uint32_t i, struct hw_tick due);

/* Takes entry `i` out of the wheel; it must be in it. */
void hw_wheel_del(struct hw_wheel *w, uint32_t i);

/*
 * Takes out and returns one entry whose tick is at or before `now`, in tick order, or HW_NIL. Spends one of `*budget`
 * for each entry that it moves or returns; empty ticks cost nothing, because it jumps from one occupied slot to the
 * next. When the budget is used up it returns HW_NIL with *budget == 0, and the next call goes on where this one
 * stopped. `now` may stand still (then what was armed meanwhile for the past, or for now, comes out) or go back (then
 * nothing is due).
 */
uint32_t hw_wheel_take(struct hw_wheel *w, struct hw_tick now, unsigned *budget);

/* Whether anything is armed; if so, `*at` is the first tick at which hw_wheel_take() has work, which may be a cascade
 * only: never after the first due entry, nor before the last `now` that was worked off. */
bool hw_wheel_next(const struct hw_wheel *w, struct hw_tick *at);

/* Where entry `i`, which must be in the wheel, sits. */
struct hw_wheel_spot hw_wheel_where(const struct hw_wheel *w, uint32_t i);

/* The entries of one slot, those included that are just being cascaded out of it. Counted as they come and go: O(1). */
uint32_t hw_wheel_slot_load(const struct hw_wheel *w, int level, int slot);
/* The slot of a level in which the cursor stands, and the ticks that a slot of it spans. */
int hw_wheel_cursor_slot(const struct hw_wheel *w, int level);
uint64_t hw_wheel_slot_ticks(int level);

void hw_queue_init(struct hw_queue *q);
/* Appends entry `i`, which must be nowhere, and keeps `tag` (48 bits) in its `due`. */
void hw_queue_push(struct hw_wheel *w, struct hw_queue *q, uint32_t i, uint64_t tag);
/* Takes entry `i`, which must be on `q`, out of it. */
void hw_queue_del(struct hw_wheel *w, struct hw_queue *q, uint32_t i);

static inline struct hw_node *hw_wheel_node(const struct hw_wheel *w, uint32_t i)
{
	return (struct hw_node *)(void *)(w->nodes + (size_t)i * w->stride);
}

#endif
