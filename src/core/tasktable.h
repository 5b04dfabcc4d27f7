/* SPDX-License-Identifier: MIT */
/*
 * The tasks that a schedule knows: one array of entries of 48 bytes, whose nodes are in its wheel, on its queue of due
 * ones, or nowhere (claimed, and not answered); and an index by name. Private to the core.
 *
 * Invariant: an entry is in the index from hw_tasktable_add() to hw_tasktable_del(), and its node is initialized.
 * Cost: the array grows by an eighth, so at most 54 bytes a task; the index has at least as many buckets as entries,
 * and less than twice as many: 4 to 8 bytes. Both are given back when the last task goes.
 */
#ifndef HW_TASKTABLE_H
#define HW_TASKTABLE_H

#include "heartwheel/schedule.h"
#include "heartwheel/wheel.h"

/* What stands in node.user. */
#define HW_ENTRY_OWN   1 /* tried at once, whatever the rank: the others may not know it */
#define HW_ENTRY_MOVED 2 /* while it was claimed `due_ms` was set */
#define HW_ENTRY_KNOWN 4 /* it is one: not free */

struct hw_task_entry {
	struct hw_node node;
	struct hw_task_id task;
	uint32_t receiver;
	uint32_t next; /* of its bucket; of a free one, the next free one */
	int64_t due_ms;
};

struct hw_tasktable {
	struct hw_task_entry *entries;
	uint32_t *buckets;
	uint32_t n, used, cap,
		free;       /* `used`: entries that were ever given out; `free`: the first of those that came back */
	uint32_t n_buckets; /* a power of two, or 0 */
	uint64_t seed;
};

void hw_tasktable_init(struct hw_tasktable *t, uint64_t seed);
void hw_tasktable_fini(struct hw_tasktable *t);
/* HW_NIL if it is not there. */
uint32_t hw_tasktable_find(const struct hw_tasktable *t, const struct hw_task_id *task);
/* A task that is not there; HW_NIL without memory. The array may move: tell the wheel. */
uint32_t hw_tasktable_add(struct hw_tasktable *t, const struct hw_task_id *task);
/* Its node must be nowhere. The array may move. */
void hw_tasktable_del(struct hw_tasktable *t, uint32_t i);
size_t hw_tasktable_bytes(const struct hw_tasktable *t);

#endif
