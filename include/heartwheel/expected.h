/* SPDX-License-Identifier: MIT */
/*
 * The expected devices: from an id to what the inventory says about it, and the ids by the time at which they become
 * unseen. An expected device that has never sent a heartbeat has no record in the registry, so this table is separate.
 *
 * An expected id is in one state: WAITS (it will be checked at a time), UNSEEN (since a time), RESTS (a device of this
 * id is known), or REFUSED (a message of the device was received, but there was no room for a record; it will be
 * checked at a time too). The ids that wait or are refused are in a binary heap by wall-clock time, because a wall
 * clock may go back. The table grows by linear hashing (Litwin, "Linear hashing: a new tool for file and table
 * addressing", VLDB 1980), one bucket for each id, so no insertion pays for a whole table.
 *
 * Cost: a look-up reads about three cache lines; waiting costs O(log n). An id of 12 bytes with a text of 56 bytes
 * takes about 130 bytes. Nothing walks over all ids.
 */
#ifndef HEARTWHEEL_EXPECTED_H
#define HEARTWHEEL_EXPECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/registry.h"

#define HW_EXPECTED_SOURCES  65535
#define HW_EXPECTED_GROUPS   4096
#define HW_EXPECTED_NO_GROUP (HW_EXPECTED_GROUPS - 1)
#define HW_EXPECTED_TEXT_MAX 65535

enum hw_expected_state { HW_EXPECTED_WAITS, HW_EXPECTED_UNSEEN, HW_EXPECTED_RESTS, HW_EXPECTED_REFUSED };

/* The data of an id in the inventory. All pointers are borrowed. */
struct hw_expected_view {
	struct hw_id id;
	struct hw_id text;    /* the rest of the entry, as the caller has stored it */
	struct hw_id parents; /* the ids that the entry names as parents, separated by newlines; of no length: none */
	const char *source;   /* the last import that named the id */
	int64_t since_ms;     /* wall clock: since when the id is expected */
	int64_t timeout_ms;   /* 0: none */
	uint16_t group;       /* HW_EXPECTED_NO_GROUP: none */
	bool is_described;    /* the entry has a name or labels */
	enum hw_expected_state state;
	int64_t at_ms;  /* WAITS, REFUSED: when it is checked; UNSEEN: since when */
	uint32_t place; /* UNSEEN: its number for hw_expected_unseen_at() */
};

struct hw_expected; /* opaque */

/* Creates an empty table. `key`: 16 random bytes for the hash. Returns NULL if there is no memory. */
struct hw_expected *hw_expected_new(const uint8_t key[16]);
void hw_expected_free(struct hw_expected *e);

/* Returns the index of an id, or HW_NIL. An index is valid until the id is removed. */
uint32_t hw_expected_find(const struct hw_expected *e, const char *id, size_t len);
/* Returns the entry at `i`, which must be in use. Valid until the next change. */
struct hw_expected_view hw_expected_at(const struct hw_expected *e, uint32_t i);
/* Whether the index `i` is in use. For walks over the indices from 0 to hw_expected_bound() - 1. */
bool hw_expected_is_used(const struct hw_expected *e, uint32_t i);
uint32_t hw_expected_bound(const struct hw_expected *e);
uint32_t hw_expected_count(const struct hw_expected *e);

/* Adds an id, or replaces its data; `v->state` and `v->at_ms` are not read. A new id rests; the state of a known id
 * stays. Returns 0 and *i, or -EINVAL (id or text too long), -ENOSPC (too many sources) or -ENOMEM, with nothing
 * changed. */
int hw_expected_put(struct hw_expected *e, const struct hw_expected_view *v, uint32_t *i);
void hw_expected_remove(struct hw_expected *e, uint32_t i);
void hw_expected_set_group(struct hw_expected *e, uint32_t i, uint16_t group);

/* These functions change the state of an id. hw_expected_wait(), hw_expected_refuse(): the id will be checked at
 * `at_ms`. They return 0 or -ENOMEM. After -ENOMEM the id rests. */
int hw_expected_wait(struct hw_expected *e, uint32_t i, int64_t at_ms);
int hw_expected_refuse(struct hw_expected *e, uint32_t i, int64_t at_ms);
int hw_expected_set_unseen(struct hw_expected *e, uint32_t i, int64_t since_ms);
void hw_expected_rest(struct hw_expected *e, uint32_t i);

/* Returns the id that will be checked first, and the time in *at_ms; HW_NIL: no id waits or is refused. */
uint32_t hw_expected_first(const struct hw_expected *e, int64_t *at_ms);
/* hw_expected_unseen(): returns how many ids are unseen. hw_expected_unseen_at(): returns the unseen id with number
 * `k`, from 0 on. The numbers change with each removal. */
uint32_t hw_expected_unseen(const struct hw_expected *e);
/* The number of unseen ids of a group. */
uint32_t hw_expected_unseen_of(const struct hw_expected *e, uint16_t group);
uint32_t hw_expected_unseen_at(const struct hw_expected *e, uint32_t k);

/* These functions find the ids that are no longer in the inventory. hw_expected_reading(): a reading of the whole
 * inventory begins. hw_expected_put() and hw_expected_found(): the reading has returned this id.
 * hw_expected_is_missing(): whether no reading has returned the id of this index since the begin. */
void hw_expected_reading(struct hw_expected *e);
void hw_expected_found(struct hw_expected *e, uint32_t i);
bool hw_expected_is_missing(const struct hw_expected *e, uint32_t i);

#endif
