/* SPDX-License-Identifier: MIT */
/* What inventory.c, table.c, changes.c and inventory_file.c share. */
#ifndef HW_DAEMON_INVENTORY_PRIV_H
#define HW_DAEMON_INVENTORY_PRIV_H

#include <stdio.h>
#include <sys/types.h>

#include "heartwheel/unseen.h"
#include "inventory.h"

struct event;
struct hw_inventory_answer;
struct hw_inventory_restart;
struct hw_inventory_unwritten;

/* The file of store = memory: one JSON object per line. The last line of an id counts. */
struct hw_inventory_file {
	FILE *f;          /* NULL: there is none */
	const char *path; /* borrowed */
	off_t end;        /* the end of the written lines; after a failed write, the file is cut there */
	/* The ids whose entries the next flush writes; owned. After a failed write they stay here. */
	struct hw_inventory_unwritten *unwritten;
	unsigned n_unwritten;
};

struct hw_app_inventory {
	struct event *work; /* runs one step of the sweeps below in each turn of the loop, and calls back with the
	                     * answers */
	bool is_read;       /* the inventory was read once */
	bool at_end;        /* ... and its stream is read to the end */
	/* Sweeps over the table, each with its next entry. */
	bool sweeps_missing; /* a reading has ended: the ids that it did not return are being removed */
	bool regroups;       /* the groups have changed */
	bool rewrites;       /* entries are being written again; `rewriting`: a call is in flight */
	bool rewriting;
	/* Redis was emptied. HW_EMPTIED: this node writes the entries of its own partitions again. HW_EMPTIED_OTHERS:
	 * it writes the entries of all partitions that are still missing. */
	enum { HW_NOT_EMPTIED, HW_EMPTIED, HW_EMPTIED_OTHERS } emptied;
	int64_t others_at_ns; /* monotonic: when everything is read again for HW_EMPTIED_OTHERS; 0: not known yet */
	uint32_t missing_at, group_at, rewrite_at, rewrite_next;
	unsigned unseen_calls;                                   /* in flight */
	struct hw_inventory_answer *first_answer, **last_answer; /* owned (changes.c) */
	struct hw_inventory_restart *restarts;                   /* owned (changes.c) */
	unsigned n_restarts;
	int64_t clock_ms; /* the trusted clock minus the monotonic clock, a second ago; 0: unknown */
	struct hw_inventory_file file;
};

/* table.c */
/* Returns the index of the entry's group, or -errno. */
int hw_inventory_group(struct hw_app *a, struct hw_id id, const struct hw_expected_entry *entry);
/* Puts a stored entry into the table. If `json` has no text, the id is no longer expected. */
void hw_inventory_take(struct hw_app *a, struct hw_id id, struct hw_id json, bool replaces_since);
/* Like hw_inventory_take(), but faster, because an import has up to a million entries: `json` must be a text from
 * hw_entry_print(). */
void hw_inventory_take_own(struct hw_app *a, struct hw_id id, struct hw_id json, bool replaces_since);
/* Sets since when an id is unseen; 0: it is not. */
void hw_inventory_take_unseen(struct hw_app *a, struct hw_id id, int64_t since_ms);
/* Writes the whole entry as JSON. Returns its length; 0: the entry is malformed. */
size_t hw_inventory_json(const struct hw_app *a, uint32_t i, char json[HW_ENTRY_JSON_MAX]);

/* inventory.c */
/* Passes a transition of an expected id to the clients of the event stream. `at`: the offset of its entry in
 * device:events. With several nodes, each node reads the transition in device:events. */
void hw_inventory_publish(struct hw_app *a, struct hw_id id, enum hw_state state, enum hw_reason reason,
                          int64_t time_ms, struct hw_stream_id at);
/* Asks for a step of the work in the next turn. */
void hw_inventory_work(struct hw_app *a);

/* changes.c */
/* Returns the group of an expected id; "": the id is not expected. */
const char *hw_inventory_group_name(const struct hw_app *a, struct hw_id id);
void hw_inventory_give_answers(struct hw_app *a);
void hw_inventory_drop_answers(struct hw_app *a);
/* Called when a device was forgotten: from `since_ms` on, its id is expected as a new device. Redis gets this as
 * soon as it can be reached. */
void hw_inventory_restart(struct hw_app *a, struct hw_id id, int64_t since_ms);
/* Writes a new since_ms to the stored entry, if there is one, as soon as Redis can be reached. */
void hw_inventory_write_since(struct hw_app *a, struct hw_id id, int64_t since_ms);
void hw_inventory_retry_restarts(struct hw_app *a);

/* inventory_file.c. Each returns 0 or -errno, after logging. */
int hw_inventory_file_open(struct hw_app *a, const char *path);
/* Marks the entry of this id: the next flush writes the entry as it is then. */
int hw_inventory_file_write(struct hw_app *a, struct hw_id id);
/* Writes the marked entries, and entries whose earlier write failed. After success, nothing is lost if this process
 * ends. */
int hw_inventory_file_flush(struct hw_app *a);
void hw_inventory_file_close(struct hw_app *a);

#endif
