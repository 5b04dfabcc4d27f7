/* SPDX-License-Identifier: MIT */
/*
 * Calls: up to HW_CALL_ITEMS items in one EVALSHA. Two edges of one device are never in two calls in flight, since a
 * call may fail for a reason that the one behind it does not meet (no memory, a replica made master), and an edge that
 * was overtaken can no longer get its entry in the stream.
 */
#include <string.h>

#include "redis/inner.h"
#include "redis/places.h"

static void begin_transition(struct hw_redis *r)
{
	struct hw_eval *e = &r->sink.eval;
	hw_eval_begin(e);
	hw_eval_key(e, r->keys.offline, strlen(r->keys.offline));
	hw_eval_key(e, r->keys.outbox, strlen(r->keys.outbox));
	hw_eval_key(e, r->keys.events, strlen(r->keys.events));
	hw_eval_put_int(e, HW_AT_TRANSITION_EVENTS_MAX, r->conf.events_max);
	hw_eval_put_text(e, HW_AT_TRANSITION_NODE, r->conf.node_id);
	hw_eval_put_text(e, HW_AT_TRANSITION_SELF, r->self);
	hw_tokens_begin(r);
}

static bool is_full(const struct hw_redis *r, const struct hw_call *c)
{
	return c->n == HW_CALL_ITEMS || hw_eval_size(&r->sink.eval) >= HW_CALL_BYTES;
}

/* Whether the call's next item may be about this device. */
static bool is_ours(struct hw_redis *r, const struct hw_call *c, const struct hw_device *d, uint64_t epoch)
{
	struct hw_id id = hw_device_id(d);
	return hw_tokens_add(r, c->n, id.text, id.len, epoch);
}

/* The item that was put into the call is this entry's. `stateless`: no device's state, so that nothing is confirmed. */
static void note_item(struct hw_call *c, const struct hw_edge *e, uint64_t place, bool stateless)
{
	c->items[c->n].ref = e->t.device;
	c->items[c->n].seq = e->t.seq;
	c->items[c->n].stateless = stateless;
	c->items[c->n++].at = place;
}

/* What is told of a device that need not be there. */
static void add_by_id(struct hw_redis *r, struct hw_call *c, uint64_t place)
{
	const struct hw_edge *e = hw_edges_at(&r->sink.edges, place);
	if (!hw_tokens_add(r, c->n, (const char *)e->id + 1, e->id[0], e->epoch))
		return;
	if (e->acknowledges)
		hw_item_acknowledge(r, e);
	else
		hw_item_forgotten(r, e);
	note_item(c, e, place, true);
}

/* What a device did before it was forgotten: the store may know all of that, and could not tell, for it is gone there.
 */
static bool is_over(const struct hw_edge *e, const struct hw_device *d)
{
	return e->again && hw_device_state(d) == HW_STATE_FORGOTTEN && e->t.state != HW_STATE_FORGOTTEN;
}

/* Appends the entry at `place`; false if it must wait for an answer. */
static bool add_edge(struct hw_redis *r, struct hw_call *c, uint64_t place)
{
	struct hw_sink *s = &r->sink;
	const struct hw_edge *e = hw_edges_at(&s->edges, place);
	const struct hw_device *d = e->acknowledges ? NULL : hw_registry_get(hw_monitor_registry(r->m), e->t.device);
	if (e->given_up)
		return true;
	if (!d) {
		if (e->acknowledges || (e->again && e->id))
			add_by_id(r, c, place);
		return true;
	}
	if (is_over(e, d))
		return true;
	if (!is_ours(r, c, d, e->epoch)) {
		hw_tokens_drop(r, e->t.device, e->t.seq);
		return true;
	}
	if (s->marks[e->t.device.index] & HW_MARK_IN_FLIGHT)
		return false;
	/* The broker may have acknowledged long ago what is sent again. */
	bool payload = e->t.seq == d->seq && (!e->again || hw_device_noted(d, HW_PENDING_STATUS));
	hw_item_write(r, "E", d, &e->t, payload);
	s->marks[e->t.device.index] &= (uint8_t)~HW_MARK_FULL;
	note_item(c, e, place, false);
	return true;
}

bool hw_call_edges(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	uint64_t place = s->edges.sent;
	if (place == s->edges.tail)
		return false;
	struct hw_call *c = hw_call_new(r, HW_CALL_EDGES);
	begin_transition(r);
	while (place != s->edges.tail && place - s->edges.sent < HW_EDGE_LOOKS && !is_full(r, c) &&
	       add_edge(r, c, place))
		place++;
	bool moved = place != s->edges.sent;
	if (c->n == 0) { /* so many passed over, or the first must wait */
		c->kind = HW_CALL_FREE;
		s->edges.sent = place;
		if (s->in_flight[HW_CALL_EDGES] == 0)
			hw_sink_confirm(r, place);
		return moved;
	}
	c->end = place;
	if (!hw_call_send(r, c, HW_SCRIPT_TRANSITION, hw_call_on_edges))
		return false;
	s->edges.sent = place;
	return true;
}

static bool call_dues(struct hw_redis *r, enum hw_call_kind kind)
{
	struct hw_sink *s = &r->sink;
	bool rewrite = kind == HW_CALL_REWRITE;
	struct hw_dues *q = rewrite ? &s->rewrite : &s->refresh;
	struct hw_now now = hw_clock_now();
	struct hw_call *c = hw_call_new(r, kind);
	const struct hw_device *d;
	if (rewrite) {
		begin_transition(r);
	} else {
		hw_eval_begin(&s->eval);
		hw_eval_key(&s->eval, r->keys.offline, strlen(r->keys.offline));
		hw_eval_put_text(&s->eval, HW_AT_REFRESH_SELF, r->self);
		hw_tokens_begin(r);
		s->light.n = s->plain.n = 0;
	}
	while (!is_full(r, c) && (d = hw_dues_take(r, q, rewrite, &c->items[c->n].ref))) {
		uint32_t index = c->items[c->n].ref.index;
		if (!is_ours(r, c, d, 0)) {
			s->marks[index] &= (uint8_t) ~(HW_MARK_FULL | (rewrite ? HW_MARK_UNTOLD : 0));
			hw_tokens_drop(r, c->items[c->n].ref, d->seq);
			continue;
		}
		c->items[c->n].seq = d->seq;
		if (rewrite) {
			bool untold = s->marks[index] & HW_MARK_UNTOLD;
			hw_item_rewrite(r, d, c->items[c->n].ref, now, untold, &c->items[c->n].edge);
			c->items[c->n].untold = untold;
			s->marks[index] &= (uint8_t) ~(HW_MARK_FULL | HW_MARK_UNTOLD);
		} else {
			hw_item_refresh(r, d, index, now);
		}
		c->n++;
	}
	if (c->n == 0) {
		c->kind = HW_CALL_FREE;
		return false;
	}
	return rewrite ? hw_call_send(r, c, HW_SCRIPT_TRANSITION, hw_call_on_rewrites)
	               : hw_call_send(r, c, HW_SCRIPT_REFRESH, hw_call_on_refreshes);
}

bool hw_call_refreshes(struct hw_redis *r)
{
	return call_dues(r, HW_CALL_REFRESH);
}

bool hw_call_rewrites(struct hw_redis *r)
{
	return call_dues(r, HW_CALL_REWRITE);
}
