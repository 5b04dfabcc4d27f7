/* SPDX-License-Identifier: MIT */
/*
 * The ring of what the store has not confirmed: edges, and the broker's acknowledgements, which must not overtake them.
 * Places count up: head <= sent <= tail. It holds up to HW_EDGES_MARK, in chunks that come and go with what it holds.
 * What was confirmed and is sent again (kept.h) comes back in front, beside that mark.
 */
#ifndef HW_REDIS_EDGES_H
#define HW_REDIS_EDGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/transition.h"

#define HW_EDGES_MARK   262144
#define HW_EDGES_CHUNK  1024
#define HW_EDGES_CHUNKS (2 * HW_EDGES_MARK / HW_EDGES_CHUNK)

struct hw_edge {
	struct hw_transition t; /* of an acknowledgement: only seq */
	int64_t queued_ns;      /* monotonic */
	uint64_t epoch;         /* of several nodes: of the token that it was decided with; else 0 */
	uint8_t *id;            /* of an acknowledgement, and of what outlives its device: length byte, then the id. The
	                           latter's has its group's name behind that. Else NULL */
	bool acknowledges;      /* it is no edge */
	bool cleared;
	bool given_up; /* to be passed over */
	bool again;    /* it was confirmed before */
};

struct hw_edges {
	struct hw_edge *chunk[HW_EDGES_CHUNKS]; /* NULL where nothing is held */
	uint64_t head, sent, tail;
	uint32_t edges; /* how many are not acknowledgements */
	uint32_t again; /* how many were confirmed before: they stand in front */
	uint32_t ends;  /* how many of the others say that a device is not online: no heartbeat brought these about */
};

void hw_edges_fini(struct hw_edges *q);

/* Appends; owns e->id then. 0, or -ENOBUFS at the mark, or -ENOMEM; e->id stays the caller's. */
int hw_edges_push(struct hw_edges *q, const struct hw_edge *e);

/* Puts it before all others, of which none may be in flight. The rest as above. */
int hw_edges_put_before(struct hw_edges *q, const struct hw_edge *e);

/* The entry at a place from head to tail; stays where it is until it is confirmed. */
struct hw_edge *hw_edges_at(const struct hw_edges *q, uint64_t place);

/* Drops all before `place`, which is at most `sent`. */
void hw_edges_confirm(struct hw_edges *q, uint64_t place);

#endif
