/* SPDX-License-Identifier: MIT */
/*
 * Which of several monitors goes on where each is by itself ([cluster] mode = off) and all have the same key_prefix.
 * Each run has an entry in Redis: when it was entered, as a number that grows with each one (BORN), and a count that
 * grows each second. A run goes on while no older entry's count grows. So of two that run exactly one goes on, and
 * always the same one: BORN does not change, also where Redis was emptied, and of two runs one has the lesser.
 *
 * Invariant: a run begins its work only once no older entry is left. An entry whose count stood still for
 * HW_EXCLUSIVE_LEASE_NS is removed from Redis, which compares it; a run that finds its own entry removed, because it
 * was suspended, is entered again, as the youngest. No clock is compared with another machine's.
 *
 * Two growths are the proof of a run: a run that has ended may have left one renewal in a connection.
 */
#ifndef HW_NODES_EXCLUSIVE_H
#define HW_NODES_EXCLUSIVE_H

#include "nodes/members.h"

#define HW_EXCLUSIVE_LEASE_NS (5 * HW_NS_PER_S) /* renewed each second, as members.h has it */

struct hw_exclusive {
	uint64_t run;           /* 0: it has no entry, and each one is older */
	struct hw_members seen; /* by the text of their run */
};

/* An entry as Redis has it. */
struct hw_exclusive_entry {
	uint64_t run, born, count;
};

enum hw_exclusive_verdict {
	HW_EXCLUSIVE_WAIT,  /* an older one is entered, and it is not known whether it runs */
	HW_EXCLUSIVE_FIRST, /* no older one is entered */
	HW_EXCLUSIVE_LATER  /* an older one runs */
};

void hw_exclusive_init(struct hw_exclusive *x, uint64_t run);
/* An answer of Redis came, with all entries: at most HW_MEMBERS_MAX. Unless this run is the first, *older is the place
 * of the entry that it is not. */
enum hw_exclusive_verdict hw_exclusive_look(struct hw_exclusive *x, struct hw_mono now,
                                            const struct hw_exclusive_entry *entries, size_t n, size_t *older);
/* Whether this entry is to be removed, as of that answer. */
bool hw_exclusive_is_dead(const struct hw_exclusive *x, const struct hw_exclusive_entry *e);
/* The connection to Redis is lost: what stands still from now on says nothing. */
void hw_exclusive_forget(struct hw_exclusive *x);

#endif
