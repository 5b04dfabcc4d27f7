/* SPDX-License-Identifier: MIT */
/* Functions by which tests look into the parts of the Redis code. No program needs them. */
#ifndef SINK_STATE_H
#define SINK_STATE_H

#include "redis/inner.h"

/* Whether nothing is owed or in flight. */
static inline bool sink_is_idle(const struct hw_redis *r)
{
	const struct hw_sink *s = &r->sink;
	return s->pending_writes.head == s->pending_writes.tail && !s->refresh.len && !s->snapshot.len && !s->sweep &&
	       !s->in_flight[HW_CALL_TRANSITIONS] && !s->in_flight[HW_CALL_REFRESH] &&
	       !s->in_flight[HW_CALL_SNAPSHOT] && !r->sight_record.in_flight && (!r->up || r->link.in_flight == 0);
}

/* The ring has no room left until the sink has skipped what is in it. */
static inline void sink_fill(struct hw_redis *r)
{
	const struct hw_pending_write e = {.given_up = true};
	while (hw_pending_writes_push(&r->sink.pending_writes, &e) == 0)
		;
	hw_plan_pump(r);
}

/* Owes the store a full rewrite of a device's current state, without a transition. */
static inline void sink_rewrite(struct hw_redis *r, struct hw_ref device)
{
	hw_dues_add(r, &r->sink.snapshot, device.index);
	hw_plan_pump(r);
}

#endif
