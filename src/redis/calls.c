/* SPDX-License-Identifier: MIT */
/*
 * Calls: up to HW_CALL_ITEMS items in one EVALSHA. Two edges of one device are never in two calls in flight, since a
 * call may fail for a reason that the one behind it does not meet (no memory, a replica made master), and an edge that
 * was overtaken can no longer get its entry in the stream.
 */
#include <string.h>

#include "redis/inner.h"

static struct hw_call *new_call(struct hw_redis *r, enum hw_call_kind kind)
{
	struct hw_call *c = r->sink.calls;
	while (c->kind != HW_CALL_FREE)
		c++; /* the numbers in flight of each kind are bounded: there is one */
	c->r = r;
	c->kind = kind;
	c->n = 0;
	return c;
}

static void begin_transition(struct hw_redis *r)
{
	struct hw_eval *e = &r->sink.eval;
	hw_eval_begin(e);
	hw_eval_key(e, r->keys.offline, strlen(r->keys.offline));
	hw_eval_key(e, r->keys.outbox, strlen(r->keys.outbox));
	hw_eval_key(e, r->keys.events, strlen(r->keys.events));
	hw_eval_arg_int(e, r->conf.events_max);
	hw_eval_arg_text(e, r->conf.node_id);
	hw_eval_arg_text(e, r->self);
}

/* A call that could not be sent has not happened. */
static bool send_call(struct hw_redis *r, struct hw_call *c, enum hw_script script, redisCallbackFn *fn)
{
	struct hw_sink *s = &r->sink;
	enum hw_call_kind kind = c->kind;
	size_t len = 0;
	const char *command = hw_eval_end(&s->eval, r->sha[script], &len);
	s->in_flight[kind]++;
	c->sent_ns = hw_redis_now().mono.ns;
	if (command && hw_redis_link_send(&r->link, fn, c, command, len) == 0) {
		r->stats->scripts++;
		return true;
	}
	hw_call_undo(r, c);
	hw_sink_hold(r, HW_HOLD(kind));
	return false;
}

static bool is_full(const struct hw_redis *r, const struct hw_call *c)
{
	return c->n == HW_CALL_ITEMS || hw_eval_size(&r->sink.eval) >= HW_CALL_BYTES;
}

/* Appends the entry at `place`; false if it must wait for an answer. */
static bool add_edge(struct hw_redis *r, struct hw_call *c, uint64_t place)
{
	struct hw_sink *s = &r->sink;
	const struct hw_edge *e = hw_edges_at(&s->edges, place);
	if (e->given_up)
		return true;
	if (e->id) {
		hw_item_acknowledge(r, e);
	} else {
		const struct hw_device *d = hw_registry_get(hw_monitor_registry(r->m), e->t.device);
		if (!d)
			return true;
		if (s->marks[e->t.device.index] & HW_MARK_IN_FLIGHT)
			return false;
		hw_item_edge(r, d, &e->t);
		s->marks[e->t.device.index] &= (uint8_t)~HW_MARK_FULL;
	}
	c->items[c->n].ref = e->t.device;
	c->items[c->n].seq = e->t.seq;
	c->items[c->n].acknowledge = e->id != NULL;
	c->items[c->n++].at = place;
	return true;
}

static void set_in_flight(struct hw_redis *r, const struct hw_call *c, bool on)
{
	struct hw_sink *s = &r->sink;
	for (unsigned i = 0; i < c->n; i++) {
		uint32_t index = c->items[i].ref.index;
		if (c->items[i].acknowledge)
			continue;
		if (on)
			s->marks[index] |= HW_MARK_IN_FLIGHT;
		else
			s->marks[index] &= (uint8_t)~HW_MARK_IN_FLIGHT;
	}
}

bool hw_call_edges(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	uint64_t place = s->edges.sent;
	if (place == s->edges.tail)
		return false;
	struct hw_call *c = new_call(r, HW_CALL_EDGES);
	begin_transition(r);
	while (place != s->edges.tail && !is_full(r, c) && add_edge(r, c, place))
		place++;
	bool moved = place != s->edges.sent;
	if (c->n == 0) { /* all passed over, or the first must wait */
		c->kind = HW_CALL_FREE;
		s->edges.sent = place;
		if (s->in_flight[HW_CALL_EDGES] == 0)
			hw_edges_confirm(&s->edges, place);
		return moved;
	}
	c->end = place;
	set_in_flight(r, c, true);
	if (!send_call(r, c, HW_SCRIPT_TRANSITION, hw_call_on_edges))
		return false;
	s->edges.sent = place;
	return true;
}

/*
 * The next device on a queue that is there and whose state the store is to know; NULL if there is none. A rewrite waits
 * for the answer to its device's edges: should they fail and it not, they would find their seq written without them.
 */
static const struct hw_device *take_due(struct hw_redis *r, struct hw_dues *q, bool rewrite, struct hw_ref *ref)
{
	const struct hw_registry *devices = hw_monitor_registry(r->m);
	for (uint32_t left = q->len; left > 0; left--) {
		uint32_t index = q->at[q->head];
		q->head = (q->head + 1) & (q->cap - 1);
		q->len--;
		r->sink.marks[index] &= (uint8_t)~q->bit;
		if (rewrite && (r->sink.marks[index] & HW_MARK_IN_FLIGHT)) {
			hw_sink_due(r, q, index);
			continue;
		}
		const struct hw_device *d = index < hw_registry_bound(devices) ? hw_registry_at(devices, index) : NULL;
		if (!d || hw_device_state(d) == HW_STATE_PROVISIONAL ||
		    (hw_device_state(d) == HW_STATE_FORGOTTEN && !rewrite))
			continue;
		*ref = hw_registry_ref(devices, index);
		return d;
	}
	return NULL;
}

static bool call_dues(struct hw_redis *r, enum hw_call_kind kind)
{
	struct hw_sink *s = &r->sink;
	bool rewrite = kind == HW_CALL_REWRITE;
	struct hw_dues *q = rewrite ? &s->rewrite : &s->refresh;
	struct hw_now now = hw_redis_now();
	struct hw_call *c = new_call(r, kind);
	const struct hw_device *d;
	if (rewrite) {
		begin_transition(r);
	} else {
		hw_eval_begin(&s->eval);
		hw_eval_key(&s->eval, r->keys.offline, strlen(r->keys.offline));
		hw_eval_arg_text(&s->eval, r->self);
		s->light.n = 0;
	}
	while (!is_full(r, c) && (d = take_due(r, q, rewrite, &c->items[c->n].ref))) {
		uint32_t index = c->items[c->n].ref.index;
		c->items[c->n++].seq = d->seq;
		if (rewrite) {
			hw_item_rewrite(r, d, now);
			s->marks[index] &= (uint8_t)~HW_MARK_FULL;
		} else {
			hw_item_refresh(r, d, index, now);
		}
	}
	if (c->n == 0) {
		c->kind = HW_CALL_FREE;
		return false;
	}
	return rewrite ? send_call(r, c, HW_SCRIPT_TRANSITION, hw_call_on_rewrites)
	               : send_call(r, c, HW_SCRIPT_REFRESH, hw_call_on_refreshes);
}

bool hw_call_refreshes(struct hw_redis *r)
{
	return call_dues(r, HW_CALL_REFRESH);
}

bool hw_call_rewrites(struct hw_redis *r)
{
	return call_dues(r, HW_CALL_REWRITE);
}

void hw_call_undo(struct hw_redis *r, struct hw_call *c)
{
	struct hw_sink *s = &r->sink;
	s->in_flight[c->kind]--;
	if (c->kind == HW_CALL_EDGES)
		set_in_flight(r, c, false);
	else
		for (unsigned i = 0; i < c->n; i++) {
			s->marks[c->items[i].ref.index] &= (uint8_t)~HW_MARK_FULL;
			hw_sink_due(r, c->kind == HW_CALL_REFRESH ? &s->refresh : &s->rewrite, c->items[i].ref.index);
		}
	c->kind = HW_CALL_FREE;
}
