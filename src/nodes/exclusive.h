/* SPDX-License-Identifier: MIT */
/*
 * Selects the one monitor that continues if several single monitors ([cluster] mode = off) have the same key_prefix.
 *
 * Each run has an entry in Redis: BORN, a number that grows with each new entry, and a count that the run increases
 * each second. A run continues while no older entry's count grows. So of two running monitors exactly one continues,
 * and always the same one. A run's BORN never changes, even if Redis is emptied, so of two runs the same one always
 * counts as older.
 *
 * Invariant: a run begins its work only when there is no older entry. If an entry's count stands still for
 * HW_EXCLUSIVE_LEASE_NS, the entry is removed from Redis, unless it has changed meanwhile. A run that was suspended so
 * long that its entry was removed writes a new entry, as the youngest. No clock is compared with another machine's.
 *
 * A run counts as running only after its count grew twice: a run that has ended may have left one renewal in its
 * connection.
 */
#ifndef HW_NODES_EXCLUSIVE_H
#define HW_NODES_EXCLUSIVE_H

#include "nodes/members.h"

#define HW_EXCLUSIVE_LEASE_NS (5 * HW_NS_PER_S) /* renewed each second (members.h) */

struct hw_exclusive {
	uint64_t run;           /* 0: this run has no entry, so each entry is older */
	struct hw_members seen; /* by the text of the run id */
};

/* An entry in Redis. */
struct hw_exclusive_entry {
	uint64_t run, born, count;
};

enum hw_exclusive_verdict {
	HW_EXCLUSIVE_WAIT,  /* there is an older entry, and whether its run still runs is not known yet */
	HW_EXCLUSIVE_FIRST, /* there is no older entry */
	HW_EXCLUSIVE_LATER  /* an older run is active */
};

void hw_exclusive_init(struct hw_exclusive *x, uint64_t run);
/* Applies an answer of Redis that contains all entries, at most HW_MEMBERS_MAX. Unless the verdict is
 * HW_EXCLUSIVE_FIRST, *older is the index of the older entry. */
enum hw_exclusive_verdict hw_exclusive_check(struct hw_exclusive *x, struct hw_mono now,
                                             const struct hw_exclusive_entry *entries, size_t n, size_t *older);
/* Whether to remove this entry, as of the last answer. */
bool hw_exclusive_is_dead(const struct hw_exclusive *x, const struct hw_exclusive_entry *e);
/* Called when the connection to Redis is lost. A count that stands still proves nothing until the next answer. */
void hw_exclusive_forget(struct hw_exclusive *x);

#endif
