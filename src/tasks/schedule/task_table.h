/* SPDX-License-Identifier: MIT */
/*
 * The tasks that a schedule knows: one array of 48-byte entries, and an index by name. The node of an entry is in the
 * wheel or in the queue of due tasks. It is in neither while the claim of its task is unanswered. Private to this
 * folder.
 *
 * Invariant: from hw_task_table_add() to hw_task_table_del() an entry is in the index and its node is initialized.
 * Cost: the array grows by an eighth, so it takes at most 54 bytes for each task. The index has one to two buckets for
 * each entry, which take 4 to 8 bytes. The memory is freed with the last task.
 */
#ifndef HW_TASK_TABLE_H
#define HW_TASK_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "heartwheel/wheel.h"
#include "tasks/task_id.h"

/* The flags in node.user. */
/* This instance tries the task at once, whatever its rank: other instances may not know the task. */
#define HW_ENTRY_OWN   1
#define HW_ENTRY_MOVED 2 /* `due_ms` was set while the task was claimed */
#define HW_ENTRY_KNOWN 4 /* the entry is in use */

struct hw_task_entry {
	struct hw_node node;
	struct hw_task_id task;
	uint32_t receiver;
	uint32_t next; /* in its bucket; or the next free entry */
	int64_t due_ms;
};

struct hw_task_table {
	struct hw_task_entry *entries;
	uint32_t *buckets;
	uint32_t n, used, cap, free; /* entries ever in use; index of the first free entry */
	uint32_t n_buckets;          /* a power of two, or 0 */
	uint64_t seed;
};

void hw_task_table_init(struct hw_task_table *t, uint64_t seed);
void hw_task_table_fini(struct hw_task_table *t);
/* Returns the index of an entry; HW_NIL: the task is unknown. */
uint32_t hw_task_table_find(const struct hw_task_table *t, const struct hw_task_id *task);
/* Adds an unknown task. HW_NIL: no memory. The array may move, so the caller then calls hw_wheel_rebase(). */
uint32_t hw_task_table_add(struct hw_task_table *t, const struct hw_task_id *task);
/* Removes an entry whose node is in no wheel or queue. The array may move. */
void hw_task_table_del(struct hw_task_table *t, uint32_t i);
size_t hw_task_table_bytes(const struct hw_task_table *t);

#endif
