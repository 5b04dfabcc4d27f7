/* SPDX-License-Identifier: MIT */
/*
 * The hierarchical timing wheel: see wheel.h for its shape, contract and cost.
 *
 * Invariants, in addition to those of wheel.h:
 *
 * - An entry of level 0 is 0 to 30 slots ahead of the cursor's slot; of level 1 or 2, 1 to 31 slots; of level 3, at
 *   least 1. The slot 31 ahead is the cursor's own slot.
 * - The cursor stops at the boundary of each occupied slot, and cascades that slot before it moves on. A slot that is
 *   due for cascade exists only at a boundary that is not entered yet (level <= `entering`). At a boundary of level 1
 *   or 2, no entry of that level is 31 slots ahead. So entries 31 slots ahead are never taken for those of a slot that
 *   is due for cascade.
 * - A slot cascades as a whole: its list moves to `cascade`, and from there its entries are linked elsewhere one by
 *   one. So an entry that returns to the same slot (level 3, another round) is not visited twice, even if take() stops
 *   early. Entries in `cascade` still count in `load` and `slot_load`, and still have the number of their old slot.
 * - Rounds are not stored, because they follow from `due` and `cursor`.
 */
#include "heartwheel/wheel.h"

#include <assert.h>

#define TICK_MAX  ((UINT64_C(1) << 48) - 1)
#define ALL_SLOTS ((UINT32_C(1) << HW_WHEEL_SLOTS) - 1)

/* Ticks in a slot of each level. The fifth number is a whole turn of level 3. */
static const uint64_t span[HW_WHEEL_LEVELS + 1] = {1, 31, 961, 29791, 923521};

static uint64_t clamp_tick(uint64_t tick)
{
	return tick < TICK_MAX ? tick : TICK_MAX;
}

static unsigned slot_of(uint64_t tick, unsigned level)
{
	return (unsigned)(tick / span[level] % HW_WHEEL_SLOTS);
}

/* Returns the highest level that has a slot boundary at this tick; 0: only level 0. */
static uint8_t boundary_of(uint64_t tick)
{
	uint8_t level = 0;
	while (level < HW_WHEEL_LEVELS - 1 && tick % span[level + 1] == 0)
		level++;
	return level;
}

void hw_node_init(struct hw_node *n)
{
	n->next = n->prev = HW_NIL;
	n->due = 0;
	n->place = HW_PLACE_NONE;
	n->slot = 0;
}

void hw_wheel_init(struct hw_wheel *w, void *nodes, size_t stride, struct hw_tick now)
{
	*w = (struct hw_wheel){
		.nodes = nodes, .stride = stride, .cursor = clamp_tick(now.n), .cascade = HW_NIL, .entering = 0};
	for (unsigned level = 0; level < HW_WHEEL_LEVELS; level++)
		for (unsigned slot = 0; slot < HW_WHEEL_SLOTS; slot++)
			w->slots[level][slot] = HW_NIL;
}

void hw_wheel_rebase(struct hw_wheel *w, void *nodes)
{
	w->nodes = nodes;
}

static void link_entry(struct hw_wheel *w, uint32_t i)
{
	struct hw_node *n = hw_wheel_node(w, i);
	uint64_t at = n->due > w->cursor ? n->due : w->cursor;
	unsigned level = 0;
	while (level < HW_WHEEL_LEVELS - 1 && at - w->cursor >= span[level + 1])
		level++;
	unsigned slot = slot_of(at, level);
	uint32_t *head = &w->slots[level][slot];

	n->place = level & 7;
	n->slot = slot & 31;
	n->prev = HW_NIL;
	n->next = *head;
	if (*head != HW_NIL)
		hw_wheel_node(w, *head)->prev = i;
	*head = i;
	w->occupied[level] |= UINT32_C(1) << slot;
	w->load[level]++;
	w->slot_load[level][slot]++;
}

/* Removes an entry from its slot's list, or from the list that is being cascaded. */
static void unlink_entry(struct hw_wheel *w, uint32_t i)
{
	struct hw_node *n = hw_wheel_node(w, i);
	if (n->next != HW_NIL)
		hw_wheel_node(w, n->next)->prev = n->prev;
	if (n->prev != HW_NIL) {
		hw_wheel_node(w, n->prev)->next = n->next;
	} else if (w->cascade == i) {
		w->cascade = n->next;
	} else {
		w->slots[n->place][n->slot] = n->next;
		if (n->next == HW_NIL)
			w->occupied[n->place] &= ~(UINT32_C(1) << n->slot);
	}
	w->load[n->place]--;
	w->slot_load[n->place][n->slot]--;
}

void hw_wheel_add(struct hw_wheel *w, uint32_t i, struct hw_tick due)
{
	struct hw_node *n = hw_wheel_node(w, i);
	assert(n->place == HW_PLACE_NONE);
	n->due = clamp_tick(due.n) & TICK_MAX;
	link_entry(w, i);
	w->length++;
}

void hw_wheel_del(struct hw_wheel *w, uint32_t i)
{
	struct hw_node *n = hw_wheel_node(w, i);
	assert(n->place < HW_WHEEL_LEVELS);
	unlink_entry(w, i);
	n->next = n->prev = HW_NIL;
	n->place = HW_PLACE_NONE;
	w->length--;
}

/* Returns the tick at which the cursor must stop for the entries of a level; UINT64_MAX: there are none. */
static uint64_t next_stop(const struct hw_wheel *w, unsigned level)
{
	uint32_t occupied = w->occupied[level];
	if (occupied == 0)
		return UINT64_MAX;
	unsigned here = slot_of(w->cursor, level);
	uint32_t ahead = (occupied >> here | occupied << (HW_WHEEL_SLOTS - here)) & ALL_SLOTS;
	/* The cursor's own slot was cascaded when the cursor entered it. Entries that are in the slot now are due
	 * one turn of the level later. */
	if (level > w->entering)
		ahead &= ~UINT32_C(1);
	unsigned distance = ahead != 0 ? (unsigned)__builtin_ctz(ahead) : HW_WHEEL_SLOTS;
	return (w->cursor / span[level] + distance) * span[level];
}

static uint64_t next_stop_of_all(const struct hw_wheel *w)
{
	if (w->cascade != HW_NIL)
		return w->cursor;
	uint64_t first = UINT64_MAX;
	for (unsigned level = 0; level < HW_WHEEL_LEVELS; level++) {
		uint64_t stop = next_stop(w, level);
		if (stop < first)
			first = stop;
	}
	return first;
}

/* Moves the list of the next slot that the cursor enters to `cascade`, the highest level first. */
static void detach(struct hw_wheel *w)
{
	unsigned level = w->entering--;
	unsigned slot = slot_of(w->cursor, level);
	w->cascade = w->slots[level][slot];
	w->slots[level][slot] = HW_NIL;
	w->occupied[level] &= ~(UINT32_C(1) << slot);
}

/* Cascades the slots at the cursor's boundary. Returns true when nothing is left to cascade, false when the budget is
 * used up. */
static bool cascade(struct hw_wheel *w, unsigned *budget)
{
	for (;;) {
		if (w->cascade != HW_NIL) {
			if (*budget == 0)
				return false;
			--*budget;
			uint32_t i = w->cascade;
			unlink_entry(w, i);
			link_entry(w, i);
		} else if (w->entering > 0) {
			detach(w);
		} else {
			return true;
		}
	}
}

uint32_t hw_wheel_take(struct hw_wheel *w, struct hw_tick now, unsigned *budget)
{
	uint64_t until = clamp_tick(now.n);
	while (w->cursor <= until && *budget > 0 && cascade(w, budget)) {
		uint32_t i = w->slots[0][slot_of(w->cursor, 0)];
		if (i != HW_NIL) {
			if (*budget == 0)
				break;
			--*budget;
			hw_wheel_del(w, i);
			return i;
		}
		/* The cursor does not pass `until`. So an entry that is armed for that tick later in this turn is
		 * still found there. */
		if (w->cursor == until)
			break;
		uint64_t stop = next_stop_of_all(w);
		w->cursor = stop < until ? stop : until;
		w->entering = boundary_of(w->cursor);
	}
	return HW_NIL;
}

bool hw_wheel_next(const struct hw_wheel *w, struct hw_tick *at)
{
	if (w->length == 0)
		return false;
	at->n = next_stop_of_all(w);
	return true;
}

struct hw_wheel_spot hw_wheel_where(const struct hw_wheel *w, uint32_t i)
{
	const struct hw_node *n = hw_wheel_node(w, i);
	struct hw_wheel_spot spot = {.level = (int)n->place, .slot = (int)n->slot, .rounds = 0};
	if (n->place == HW_PLACE_LEVEL3) {
		uint64_t ahead = n->due / span[3] - w->cursor / span[3];
		/* Once the slot at the cursor is entered, its entries are a whole turn of the level ahead. */
		bool pending = ahead == 0 || w->entering == HW_WHEEL_LEVELS - 1;
		spot.rounds = (pending ? ahead : ahead - 1) / HW_WHEEL_SLOTS;
	}
	return spot;
}

uint32_t hw_wheel_slot_load(const struct hw_wheel *w, int level, int slot)
{
	return w->slot_load[level][slot];
}

int hw_wheel_cursor_slot(const struct hw_wheel *w, int level)
{
	return (int)slot_of(w->cursor, (unsigned)level);
}

uint64_t hw_wheel_slot_ticks(int level)
{
	return span[level];
}

void hw_queue_init(struct hw_queue *q)
{
	q->head = q->tail = HW_NIL;
	q->length = 0;
}

void hw_queue_push(struct hw_wheel *w, struct hw_queue *q, uint32_t i, uint64_t tag)
{
	struct hw_node *n = hw_wheel_node(w, i);
	assert(n->place == HW_PLACE_NONE);
	n->place = HW_PLACE_QUEUE;
	n->due = tag & TICK_MAX;
	n->prev = q->tail; /* `next` is already HW_NIL, as in each unlinked node */
	if (q->tail != HW_NIL)
		hw_wheel_node(w, q->tail)->next = i;
	else
		q->head = i;
	q->tail = i;
	q->length++;
}

void hw_queue_del(struct hw_wheel *w, struct hw_queue *q, uint32_t i)
{
	struct hw_node *n = hw_wheel_node(w, i);
	assert(n->place == HW_PLACE_QUEUE);
	if (n->prev != HW_NIL)
		hw_wheel_node(w, n->prev)->next = n->next;
	else
		q->head = n->next;
	if (n->next != HW_NIL)
		hw_wheel_node(w, n->next)->prev = n->prev;
	else
		q->tail = n->prev;
	n->next = n->prev = HW_NIL;
	n->place = HW_PLACE_NONE;
	q->length--;
}
