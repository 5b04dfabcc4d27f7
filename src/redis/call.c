/* SPDX-License-Identifier: MIT */
/* A call of a script, from its creation until it is answered or its answer is lost. The items of a call whose answer
 * is lost are sent again. */
#include "redis/inner.h"

struct hw_call *hw_call_new(struct hw_redis *r, enum hw_call_kind kind)
{
	struct hw_call *c = r->sink.calls;
	while (c->kind != HW_CALL_FREE)
		c++; /* a slot is free, because there are more slots than calls that may be in flight */
	c->r = r;
	c->kind = kind;
	c->n = 0;
	return c;
}

static void set_in_flight(struct hw_redis *r, const struct hw_call *c, bool on)
{
	struct hw_sink *s = &r->sink;
	for (unsigned i = 0; i < c->n; i++) {
		uint32_t index = c->items[i].ref.index;
		if (c->items[i].stateless)
			continue;
		if (on)
			s->noted[index] |= HW_NOTED_IN_FLIGHT;
		else
			s->noted[index] &= (uint8_t)~HW_NOTED_IN_FLIGHT;
	}
}

/* Whether the device has made a newer transition since the call was built, or was removed. The item's transition
 * then gets no entry in the stream. */
static bool is_past(const struct hw_redis *r, const struct hw_call *c, unsigned i)
{
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(r->m), c->items[i].ref);
	return !d || d->seq != c->items[i].seq;
}

void hw_call_put_back(struct hw_redis *r, const struct hw_call *c, unsigned i)
{
	struct hw_sink *s = &r->sink;
	bool snapshot = c->kind == HW_CALL_SNAPSHOT;
	uint32_t index = c->items[i].ref.index;
	s->noted[index] &= (uint8_t)~HW_NOTED_FULL;
	bool waits = hw_dues_add(r, snapshot ? &s->snapshot : &s->refresh, index);
	if (!snapshot || !c->items[i].as_transition)
		return;
	if (waits && !is_past(r, c, i))
		s->noted[index] |= HW_NOTED_AS_TRANSITION;
	else
		r->stats->transitions_dropped++;
}

void hw_call_undo(struct hw_redis *r, struct hw_call *c)
{
	struct hw_sink *s = &r->sink;
	s->in_flight[c->kind]--;
	if (c->kind == HW_CALL_TRANSITIONS)
		set_in_flight(r, c, false);
	else
		for (unsigned i = 0; i < c->n; i++)
			hw_call_put_back(r, c, i);
	c->kind = HW_CALL_FREE;
}

bool hw_call_send(struct hw_redis *r, struct hw_call *c, enum hw_script script, redisCallbackFn *fn)
{
	struct hw_sink *s = &r->sink;
	enum hw_call_kind kind = c->kind;
	hw_call_owner_end(r);
	s->in_flight[kind]++;
	if (kind == HW_CALL_TRANSITIONS)
		set_in_flight(r, c, true);
	c->sent_ns = hw_clock_now().mono.ns;
	if (hw_scripts_call(&r->scripts, script, &s->eval, fn, c) == 0) {
		r->stats->scripts++;
		return true;
	}
	hw_call_undo(r, c);
	hw_plan_retry(r, HW_HOLD(kind));
	return false;
}
