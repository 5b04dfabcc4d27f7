/* SPDX-License-Identifier: MIT */
/*
 * The sink: what the store is owed, and when it is sent.
 *
 * Edges (with the acknowledgements among them) go first and in their order, up to HW_EDGE_CALLS calls in flight; then
 * refreshes, of which one call may be in flight even while edges wait, so that a storm does not let device:connected
 * keys die; rewrites only once every edge is sent: they write a newer seq, and the edges before it would be skipped.
 *
 * When a call fails, its edges and all after them are sent again once all answers are in. The scripts make that
 * harmless. Only calls of its kind wait before that: a Redis without memory refuses edges, but no refresh.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "redis/inner.h"

/* --- devices that are due ---------------------------------------------------------------------------------------- */

bool hw_sink_has_marks(struct hw_redis *r, uint32_t index)
{
	struct hw_sink *s = &r->sink;
	if (index < s->n_marks)
		return true;
	uint32_t n = s->n_marks ? s->n_marks : 1024;
	while (n <= index)
		n = n > UINT32_MAX / 2 ? UINT32_MAX : n * 2;
	uint8_t *marks = realloc(s->marks, n);
	if (!marks)
		return false;
	memset(marks + s->n_marks, 0, n - s->n_marks);
	s->marks = marks;
	s->n_marks = n;
	return true;
}

static bool grow(struct hw_dues *q)
{
	uint32_t cap = q->cap ? q->cap * 2 : 256;
	uint32_t *at = malloc(cap * sizeof(*at));
	if (!at)
		return false;
	for (uint32_t i = 0; i < q->len; i++)
		at[i] = q->at[(q->head + i) & (q->cap - 1)];
	free(q->at);
	*q = (struct hw_dues){at, cap, 0, q->len, q->bit};
	return true;
}

/* Without memory the next sweep is what it is left to. */
bool hw_sink_due(struct hw_redis *r, struct hw_dues *q, uint32_t index)
{
	struct hw_sink *s = &r->sink;
	if (!hw_sink_has_marks(r, index) || (!(s->marks[index] & q->bit) && q->len == q->cap && !grow(q))) {
		hw_sink_sweep(r);
		return false;
	}
	if (s->marks[index] & q->bit)
		return true;
	s->marks[index] |= q->bit;
	q->at[(q->head + q->len++) & (q->cap - 1)] = index;
	return true;
}

/* --- sending ----------------------------------------------------------------------------------------------------- */

void hw_sink_wake(struct hw_redis *r)
{
	struct timeval now = {0, 0};
	if (r->up && !event_pending(r->sink.pump, EV_TIMEOUT, NULL))
		event_add(r->sink.pump, &now);
}

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
	if (!r->up || r->scripts_awaited)
		return;
	if (s->rewind && s->in_flight[HW_CALL_EDGES] == 0) {
		s->edges.sent = s->edges.head;
		s->rewind = false;
	}
	while (!s->rewind && may_send(s, HW_CALL_EDGES, HW_EDGE_CALLS) && hw_call_edges(r))
		;
	unsigned refreshes = all_sent(s) ? HW_REFRESH_CALLS : 1;
	while (may_send(s, HW_CALL_REFRESH, refreshes) && hw_call_refreshes(r))
		;
	while (all_sent(s) && may_send(s, HW_CALL_REWRITE, HW_REWRITE_CALLS) && hw_call_rewrites(r))
		;
}

void hw_sink_hold(struct hw_redis *r, unsigned kinds)
{
	struct hw_sink *s = &r->sink;
	if (s->held) {
		s->held |= kinds; /* `retry` is on its way */
		return;
	}
	s->retry_ms = s->retry_ms ? s->retry_ms * 2 : HW_RETRY_MIN_MS;
	if (s->retry_ms > HW_RETRY_MAX_MS)
		s->retry_ms = HW_RETRY_MAX_MS;
	struct timeval tv = {s->retry_ms / 1000, (suseconds_t)(s->retry_ms % 1000 * 1000)};
	s->held = event_add(s->retry, &tv) == 0 ? kinds : 0;
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

/* --- the sweep --------------------------------------------------------------------------------------------------- */

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
	for (unsigned n = 0; n < HW_SWEEP_BITE && s->sweep_at < bound; n++, s->sweep_at++) {
		const struct hw_device *d = hw_registry_at(devices, s->sweep_at);
		if (d && (hw_device_state(d) == HW_STATE_ONLINE || hw_device_state(d) == HW_STATE_OFFLINE) &&
		    !hw_sink_due(r, &s->refresh, s->sweep_at))
			return; /* no memory: over again */
	}
	if (s->sweep_at >= bound) {
		s->sweep = false;
		event_del(s->sweep_timer);
	}
	hw_sink_wake(r);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	sweep(arg);
}

void hw_sink_sweep(struct hw_redis *r)
{
	struct timeval every = {0, HW_SWEEP_EVERY_MS * 1000};
	r->sink.sweep = true;
	r->sink.sweep_at = 0;
	for (uint32_t i = 0; i < r->sink.n_marks; i++)
		r->sink.marks[i] &= (uint8_t)~HW_MARK_FULL; /* nobody knows what is in the store */
	if (!event_pending(r->sink.sweep_timer, EV_TIMEOUT, NULL))
		event_add(r->sink.sweep_timer, &every);
}

/* --- the link ---------------------------------------------------------------------------------------------------- */

void hw_sink_up(struct hw_redis *r, bool again)
{
	if (again || r->sink.sweep)
		hw_sink_sweep(r);
	hw_sink_wake(r);
}

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

void hw_sink_scripts_loaded(struct hw_redis *r)
{
	hw_sink_wake(r);
}

bool hw_sink_idle(const struct hw_redis *r)
{
	const struct hw_sink *s = &r->sink;
	return s->edges.head == s->edges.tail && !s->refresh.len && !s->rewrite.len && !s->sweep &&
	       !s->in_flight[HW_CALL_EDGES] && !s->in_flight[HW_CALL_REFRESH] && !s->in_flight[HW_CALL_REWRITE];
}

int hw_sink_init(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	s->refresh.bit = HW_MARK_REFRESH;
	s->rewrite.bit = HW_MARK_REWRITE;
	s->poison_at = UINT64_MAX;
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
	hw_eval_fini(&s->eval);
	free(s->refresh.at);
	free(s->rewrite.at);
	free(s->marks);
	free(s->key);
}
