/* SPDX-License-Identifier: MIT */
/*
 * The ring of writes that Redis has not confirmed: transitions and the broker's acknowledgements. An acknowledgement
 * must not overtake a transition of its device. Positions count up: head <= sent <= tail. The ring holds up to
 * HW_PENDING_WRITES_MAX entries, in chunks that are allocated on demand. Confirmed transitions that are sent again
 * (kept.h) are put before the head; they do not count towards that limit.
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
	uint64_t epoch;         /* in a cluster: epoch of the fencing token at the transition; else 0 */
	/* a length byte, then the id: of an acknowledgement, and of a transition that may outlive its device. The
	 * latter has the group's name after the id. NULL: no id is needed */
	uint8_t *id;
	bool acknowledges; /* this entry is an acknowledgement, not a transition */
	bool cleared;
	bool given_up; /* to be skipped */
	bool again;    /* it was confirmed before, and is sent again */
};

struct hw_pending_writes {
	struct hw_pending_write *chunk[HW_PENDING_WRITES_CHUNKS]; /* NULL: an unused chunk */
	uint64_t head, sent, tail;
	uint32_t transitions; /* number of transitions */
	uint32_t again;       /* number of entries that are sent again; they are the first ones */
	uint32_t ends;        /* number of new transitions to another state than online, which no heartbeat caused */
};

void hw_pending_writes_fini(struct hw_pending_writes *q);

/* Appends a copy of *e and takes over e->id. Returns 0; on -ENOBUFS (limit reached) or -ENOMEM the caller keeps
 * e->id. */
int hw_pending_writes_push(struct hw_pending_writes *q, const struct hw_pending_write *e);

/* The same, before all other entries. No entry may be in flight. */
int hw_pending_writes_put_before(struct hw_pending_writes *q, const struct hw_pending_write *e);

/* The entry at a position from head to tail - 1. Its address stays valid until it is confirmed. */
struct hw_pending_write *hw_pending_writes_at(const struct hw_pending_writes *q, uint64_t place);

/* Removes all entries before `place`, which is at most `sent`. */
void hw_pending_writes_confirm(struct hw_pending_writes *q, uint64_t place);

#endif
