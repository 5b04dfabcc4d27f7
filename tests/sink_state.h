/* SPDX-License-Identifier: MIT */
/* What tests ask of the Redis side that no program does: it looks into the parts. */
#ifndef SINK_STATE_H
#define SINK_STATE_H

#include "redis/inner.h"

/* Whether nothing is owed or in flight. */
static inline bool sink_is_idle(const struct hw_redis *r)
{
	const struct hw_sink *s = &r->sink;
	return s->edges.head == s->edges.tail && !s->refresh.len && !s->rewrite.len && !s->sweep &&
	       !s->in_flight[HW_CALL_EDGES] && !s->in_flight[HW_CALL_REFRESH] && !s->in_flight[HW_CALL_REWRITE] &&
	       !r->mark.in_flight && (!r->up || r->link.in_flight == 0);
}

/* The ring has no room left, but for the time that it takes to pass over what is there. */
static inline void sink_fill(struct hw_redis *r)
{
	const struct hw_edge e = {.given_up = true};
	while (hw_edges_push(&r->sink.edges, &e) == 0)
		;
	hw_plan_pump(r);
}

/* Owes the store a full rewrite of a device's current state, without an edge. */
static inline void sink_rewrite(struct hw_redis *r, struct hw_ref device)
{
	hw_dues_add(r, &r->sink.rewrite, device.index);
	hw_plan_pump(r);
}

#endif
