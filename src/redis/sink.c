/* SPDX-License-Identifier: MIT */
/*
 * The sink: what the store is owed, and when it is sent.
 *
 * Edges (with the acknowledgements among them) go first and in their order, up to HW_EDGE_CALLS calls in flight; then
 * refreshes, of which one call may be in flight even while edges wait, so that a storm does not let device:connected
 * keys die; rewrites only once every edge is sent: they write a newer seq, and the edges before it would be skipped.
 *
 * Where Sentinels name the master, edges that were confirmed are kept for a while (kept.h), and go before all others
 * when the link is back.
 *
 * When a call fails, its edges and all after them are sent again once all answers are in. The scripts make that
 * harmless. Only calls of its kind wait before that: a Redis without memory refuses edges, but no refresh.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "redis/inner.h"

/* --- sending ----------------------------------------------------------------------------------------------------- */

static bool all_sent(const struct hw_sink *s)
{
	return s->edges.sent == s->edges.tail && !s->rewind;
}

static bool may_send(const struct hw_sink *s, enum hw_call_kind kind, unsigned max)
{
	return s->in_flight[kind] < max && !(s->held & HW_HOLD(kind));
}

static void pump(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	if (!r->up || hw_scripts_loading(&r->scripts))
		return;
	if (s->rewind && s->in_flight[HW_CALL_EDGES] == 0) {
		s->edges.sent = s->edges.head;
		s->rewind = false;
	}
	unsigned tries = 0; /* what another node owns by now is passed over: it may be all of the ring */
	while (!s->rewind && may_send(s, HW_CALL_EDGES, HW_EDGE_CALLS) && tries < HW_EDGE_TRIES && hw_call_edges(r))
		tries++;
	if (tries == HW_EDGE_TRIES)
		hw_plan_pump(r);
	unsigned refreshes = all_sent(s) ? HW_REFRESH_CALLS : 1;
	while (may_send(s, HW_CALL_REFRESH, refreshes) && hw_call_refreshes(r))
		;
	while (all_sent(s) && may_send(s, HW_CALL_REWRITE, HW_REWRITE_CALLS) && hw_call_rewrites(r))
		;
	s->comparing &= s->sweep || s->refresh.len + s->rewrite.len > 0;
}

static void on_pump(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	pump(arg);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct hw_redis *r = arg;
	(void)fd, (void)what;
	r->sink.held = 0;
	pump(r);
}

/* --- what was confirmed ------------------------------------------------------------------------------------------ */

void hw_sink_confirm(struct hw_redis *r, uint64_t place)
{
	struct hw_sink *s = &r->sink;
	int64_t now_ns = s->keeps ? hw_clock_now().mono.ns : 0;
	for (uint64_t i = s->edges.head; s->keeps && i != place; i++) {
		struct hw_edge *e = hw_edges_at(&s->edges, i);
		if (e->acknowledges || e->given_up)
			continue;
		hw_kept_add(&s->kept, e, now_ns);
		e->id = NULL; /* it is the kept one's */
	}
	hw_edges_confirm(&s->edges, place);
	if (s->sent_again && s->edges.again == 0) {
		if (r->ops->on_sent_again)
			r->ops->on_sent_again(r->arg, s->sent_again, s->lacking);
		s->sent_again = 0;
	}
}

void hw_sink_keep(struct hw_redis *r, const struct hw_edge *e)
{
	struct hw_edge kept = *e;
	if (!r->sink.keeps)
		return;
	kept.id = hw_redis_outlive(r, &e->t);
	hw_kept_add(&r->sink.kept, &kept, hw_clock_now().mono.ns);
}

/* Whatever the reason that the link was lost for: a master may have been another's replica meanwhile. */
void hw_sink_send_again(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	hw_kept_expire(&s->kept, hw_clock_now().mono.ns);
	hw_kept_put_back(&s->kept, &s->edges, hw_clock_now().mono.ns);
	s->sent_again = s->edges.again;
	s->lacking = 0;
}

/* --- the sweep --------------------------------------------------------------------------------------------------- */

/* How many devices are looked at in one go: keys have run on since before the restart, or while Redis was away. */
static uint32_t bite(const struct hw_redis *r, uint32_t bound)
{
	uint64_t n = (uint64_t)bound * HW_SWEEP_EVERY_MS / (uint64_t)hw_monitor_refresh_within_ms(r->m) + 1;
	return n < HW_SWEEP_BITE ? HW_SWEEP_BITE : n < HW_SWEEP_MARK ? (uint32_t)n : HW_SWEEP_MARK;
}

/* A bite of the sweep: refreshes, which the store answers with a demand for a rewrite where it differs. */
static void sweep(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	const struct hw_registry *devices = hw_monitor_registry(r->m);
	if (!s->sweep) {
		event_del(s->sweep_timer);
		return;
	}
	if (!r->up || hw_load_pending(r) || s->refresh.len > HW_SWEEP_MARK)
		return;
	uint32_t bound = hw_registry_bound(devices);
	for (uint32_t n = bite(r, bound); n > 0 && s->sweep_at < bound; n--, s->sweep_at++) {
		const struct hw_device *d = hw_registry_at(devices, s->sweep_at);
		if (d && (hw_device_state(d) == HW_STATE_ONLINE || hw_device_state(d) == HW_STATE_OFFLINE) &&
		    !hw_dues_add(r, &s->refresh, s->sweep_at))
			return; /* no memory: over again */
	}
	if (s->sweep_at >= bound) {
		s->sweep = false;
		event_del(s->sweep_timer);
	}
	hw_plan_pump(r);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	sweep(arg);
}

/* --- life ---------------------------------------------------------------------------------------------------- */

void hw_sink_lost(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	for (unsigned i = 0; i < HW_CALLS; i++)
		if (s->calls[i].kind != HW_CALL_FREE)
			hw_call_undo(r, &s->calls[i]);
	s->edges.sent = s->edges.head;
	s->rewind = false;
	s->held = 0;
	s->retry_ms = 0;
	event_del(s->retry);
	event_del(s->sweep_timer);
}

int hw_sink_init(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	s->refresh.bit = HW_MARK_REFRESH;
	s->rewrite.bit = HW_MARK_REWRITE;
	s->poison_at = UINT64_MAX;
	s->keeps = hw_redis_address_is_asked_for(&r->conf.at);
	s->key = malloc(hw_keys_device_max(&r->keys));
	s->pump = event_new(r->base, -1, 0, on_pump, r);
	s->retry = event_new(r->base, -1, 0, on_retry, r);
	s->sweep_timer = event_new(r->base, -1, EV_PERSIST, on_sweep, r);
	return s->key && s->pump && s->retry && s->sweep_timer ? 0 : -ENOMEM;
}

void hw_sink_fini(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	struct event *events[] = {s->pump, s->retry, s->sweep_timer};
	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i])
			event_free(events[i]);
	hw_edges_fini(&s->edges);
	hw_kept_fini(&s->kept);
	hw_eval_fini(&s->eval);
	free(s->refresh.at);
	free(s->rewrite.at);
	free(s->marks);
	free(s->key);
}
