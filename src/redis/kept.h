/* SPDX-License-Identifier: MIT */
/*
 * Transitions that the store has confirmed and that are kept for a while. A master that fails may have confirmed
 * transitions that its successor never received. So after a reconnect, the kept transitions are sent again in their
 * order, before all pending ones. The script skips those that are stored (scripts/transition.lua).
 *
 * A transition is kept for HW_KEPT_MS, and at most the newest HW_KEPT_MAX are kept. Invariant: from the oldest to the
 * newest, the time of confirmation never decreases. Cost: constant for each transition, and 80 bytes, which are freed
 * when it expires.
 */
#ifndef HW_REDIS_KEPT_H
#define HW_REDIS_KEPT_H

#include <stdint.h>

#include "redis/pending_writes.h"

#define HW_KEPT_MS  60000
#define HW_KEPT_MAX 262144

struct hw_kept {
	struct hw_pending_write *at; /* `queued_ns` of each is the time of its confirmation */
	uint32_t cap;                /* a power of two, or 0 */
	uint64_t head, tail;
};

void hw_kept_fini(struct hw_kept *k);

/* Keeps a copy of *e and takes over e->id. If the ring is full, drops the oldest entry; if there is no memory, drops
 * *e. `now_ns` is monotonic. */
void hw_kept_add(struct hw_kept *k, const struct hw_pending_write *e, int64_t now_ns);

/* Drops what is older than HW_KEPT_MS. */
void hw_kept_expire(struct hw_kept *k, int64_t now_ns);

/* Moves all entries to the front of `q`. No entry of `q` may be in flight. `now_ns` becomes the time of each entry
 * in `q`. If there is no memory, drops the oldest entries. Returns how many were moved. */
uint32_t hw_kept_put_back(struct hw_kept *k, struct hw_pending_writes *q, int64_t now_ns);

#endif
