/* SPDX-License-Identifier: MIT */
/*
 * The ring of writes that Redis has not confirmed: transitions, and acknowledgements of the broker. Both share one
 * ring, because an acknowledgement must not overtake a transition of its device. Positions only grow: head <= sent <=
 * tail.
 *
 * The ring has up to HW_PENDING_WRITES_MAX entries, in chunks that are allocated when needed. Confirmed transitions
 * that are sent again (kept.h) are put before the head, and do not count towards that limit.
 */
#ifndef HW_REDIS_PENDING_WRITES_H
#define HW_REDIS_PENDING_WRITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/transition.h"

#define HW_PENDING_WRITES_MAX    262144
#define HW_PENDING_WRITES_CHUNK  1024
#define HW_PENDING_WRITES_CHUNKS (2 * HW_PENDING_WRITES_MAX / HW_PENDING_WRITES_CHUNK)

struct hw_pending_write {
	struct hw_transition t; /* of an acknowledgement: only seq is used */
	int64_t queued_ns;      /* monotonic */
	uint64_t epoch;         /* in a cluster: epoch of the fencing token when the transition happened; else 0 */
	/* A length byte, then the id. Only for an acknowledgement, and for a transition that may outlive the
	 * device's record; the group's name then follows. NULL: no id is needed */
	uint8_t *id;
	bool acknowledges; /* this entry is an acknowledgement, not a transition */
	bool given_up;     /* to be skipped */
	bool again;        /* it was confirmed before, and is sent again */
};

struct hw_pending_writes {
	struct hw_pending_write *chunk[HW_PENDING_WRITES_CHUNKS]; /* NULL: an unused chunk */
	uint64_t head, sent, tail;
	uint32_t transitions; /* number of transitions */
	uint32_t again;       /* how many entries, the first ones of the ring, are sent again */
	uint32_t ends;        /* how many new transitions lead to another state than online, so that no heartbeat
	                       * caused them */
};

void hw_pending_writes_fini(struct hw_pending_writes *q);

/* Appends a copy of *e and takes over e->id. Returns 0. On -ENOBUFS (the limit is reached) or -ENOMEM, the caller keeps
 * e->id. */
int hw_pending_writes_push(struct hw_pending_writes *q, const struct hw_pending_write *e);

/* Inserts *e before all other entries. No entry may be in flight. Returns the same as hw_pending_writes_push(). */
int hw_pending_writes_put_before(struct hw_pending_writes *q, const struct hw_pending_write *e);

/* Returns the entry at a position from head to tail - 1. Its address is valid until the entry is confirmed. */
struct hw_pending_write *hw_pending_writes_at(const struct hw_pending_writes *q, uint64_t place);

/* Removes all entries before `place`, which is at most `sent`. */
void hw_pending_writes_confirm(struct hw_pending_writes *q, uint64_t place);

#endif
