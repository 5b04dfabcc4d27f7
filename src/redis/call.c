/* SPDX-License-Identifier: MIT */
/* A call: its life from when it is begun until it is answered, or undone since it was not. */
#include "redis/inner.h"

struct hw_call *hw_call_new(struct hw_redis *r, enum hw_call_kind kind)
{
	struct hw_call *c = r->sink.calls;
	while (c->kind != HW_CALL_FREE)
		c++; /* the numbers in flight of each kind are bounded: there is one */
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
			s->marks[index] |= HW_MARK_IN_FLIGHT;
		else
			s->marks[index] &= (uint8_t)~HW_MARK_IN_FLIGHT;
	}
}

/* The device has had another edge since, or goes: this one is told nowhere. */
static bool is_past(const struct hw_redis *r, const struct hw_call *c, unsigned i)
{
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(r->m), c->items[i].ref);
	return !d || d->seq != c->items[i].seq;
}

void hw_call_put_back(struct hw_redis *r, const struct hw_call *c, unsigned i)
{
	struct hw_sink *s = &r->sink;
	bool rewrite = c->kind == HW_CALL_REWRITE;
	uint32_t index = c->items[i].ref.index;
	s->marks[index] &= (uint8_t)~HW_MARK_FULL;
	bool waits = hw_dues_add(r, rewrite ? &s->rewrite : &s->refresh, index);
	if (!rewrite || !c->items[i].untold)
		return;
	if (waits && !is_past(r, c, i))
		s->marks[index] |= HW_MARK_UNTOLD;
	else
		r->stats->edges_dropped++;
}

void hw_call_undo(struct hw_redis *r, struct hw_call *c)
{
	struct hw_sink *s = &r->sink;
	s->in_flight[c->kind]--;
	if (c->kind == HW_CALL_EDGES)
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
	hw_tokens_end(r);
	s->in_flight[kind]++;
	if (kind == HW_CALL_EDGES)
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
