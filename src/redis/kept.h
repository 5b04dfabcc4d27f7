/* SPDX-License-Identifier: MIT */
/*
 * Edges that the store has confirmed, for a while: a master that fails may have confirmed what its successor never got.
 * After a change of master they are put before all that is owed, and are sent again in their order; whatever is stored
 * already writes nothing (scripts/transition.lua).
 *
 * Kept are HW_KEPT_MS and HW_KEPT_MARK of them, the newest. Invariant: `confirmed_ns` never falls from the oldest to
 * the newest. Cost: constant per edge; 80 bytes each, which are given back as they leave.
 */
#ifndef HW_REDIS_KEPT_H
#define HW_REDIS_KEPT_H

#include <stdint.h>

#include "redis/edges.h"

#define HW_KEPT_MS   60000
#define HW_KEPT_MARK 262144

struct hw_kept {
	struct hw_edge *at; /* `queued_ns` of each is when it was confirmed */
	uint32_t cap;       /* a power of two, or 0 */
	uint64_t head, tail;
};

void hw_kept_fini(struct hw_kept *k);

/* Keeps a copy, and owns e->id then, whatever becomes of it: the oldest goes where there is no room for it, and itself
 * where there is no memory. `now_ns` is monotonic. */
void hw_kept_add(struct hw_kept *k, const struct hw_edge *e, int64_t now_ns);

/* Lets go what has been kept for long enough. */
void hw_kept_expire(struct hw_kept *k, int64_t now_ns);

/* Moves all of them to the front of `q`, of which nothing is in flight, as if they were queued now. Without memory the
 * oldest are left out. Returns how many. */
uint32_t hw_kept_put_back(struct hw_kept *k, struct hw_edges *q, int64_t now_ns);

#endif
