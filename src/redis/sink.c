/* SPDX-License-Identifier: MIT */
/*
 * The sink: the writes that are pending at the store, and the order in which they are sent.
 *
 * Transitions and acknowledgements are sent first, in their order, with up to HW_TRANSITION_CALLS calls in flight.
 * Refreshes follow. While transitions wait, one call of refreshes may be in flight, so that device:connected keys do
 * not expire during a storm. Refreshes that are not urgent gather first. Snapshots are sent only when every transition
 * was sent: a snapshot writes a newer seq, and the script would skip transitions that come after it.
 *
 * If Sentinels name the master, confirmed transitions are kept for a while (kept.h). When the connection is back, they
 * are sent before all others.
 *
 * If a call fails, its transitions and all later ones are sent again when all answers are in; the scripts make this
 * harmless. After a refusal, only calls of the same kind wait until they are tried again: a Redis without free memory
 * refuses transitions, but accepts refreshes.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "redis/inner.h"

/* --- sending ----------------------------------------------------------------------------------------------------- */

static bool all_sent(const struct hw_sink *s)
{
	return s->pending_writes.sent == s->pending_writes.tail && !s->rewind;
}

static bool may_send(const struct hw_sink *s, enum hw_call_kind kind, unsigned max)
{
	return s->in_flight[kind] < max && !(s->held & HW_HOLD(kind));
}

static void pump_refreshes(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	unsigned max = all_sent(s) ? HW_REFRESH_CALLS : 1;
	while (s->gathered && may_send(s, HW_CALL_REFRESH, max) && hw_call_refreshes(r))
		;
	if (s->refresh.len == 0) {
		s->gathered = false;
		event_del(s->gather);
	} else if (!s->gathered) {
		hw_plan_refreshes(r);
	}
}

static void pump(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	if (!r->up || s->withheld || hw_scripts_loading(&r->scripts))
		return;
	if (s->rewind && s->in_flight[HW_CALL_TRANSITIONS] == 0) {
		s->pending_writes.sent = s->pending_writes.head;
		s->rewind = false;
	}
	hw_published_send(r);
	/* A limit, because all entries of the ring may belong to other nodes by now, and skipping each of them takes a
	 * try. */
	unsigned tries = 0;
	while (!s->rewind && may_send(s, HW_CALL_TRANSITIONS, HW_TRANSITION_CALLS) && tries < HW_TRANSITION_TRIES &&
	       hw_call_transitions(r))
		tries++;
	if (tries == HW_TRANSITION_TRIES)
		hw_plan_pump(r);
	pump_refreshes(r);
	while (all_sent(s) && may_send(s, HW_CALL_SNAPSHOT, HW_SNAPSHOT_CALLS) && hw_call_snapshots(r))
		;
	s->comparing &= s->sweep || s->refresh.len + s->snapshot.len > 0;
}

static void on_pump(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	pump(arg);
}

static void on_gather(evutil_socket_t fd, short what, void *arg)
{
	struct hw_redis *r = arg;
	(void)fd, (void)what;
	r->sink.gathered = true;
	pump(r);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct hw_redis *r = arg;
	(void)fd, (void)what;
	r->sink.held = 0;
	pump(r);
}

/* --- confirmed transitions --------------------------------------------------------------------------------------- */

void hw_sink_confirm(struct hw_redis *r, uint64_t place)
{
	struct hw_sink *s = &r->sink;
	int64_t now_ns = s->keeps ? hw_clock_now().mono.ns : 0;
	for (uint64_t i = s->pending_writes.head; s->keeps && i != place; i++) {
		struct hw_pending_write *e = hw_pending_writes_at(&s->pending_writes, i);
		if (e->acknowledges || e->given_up)
			continue;
		hw_kept_add(&s->kept, e, now_ns);
		e->id = NULL; /* the kept copy owns it */
	}
	hw_pending_writes_confirm(&s->pending_writes, place);
	if (s->sent_again && s->pending_writes.again == 0) {
		if (r->ops->on_sent_again)
			r->ops->on_sent_again(r->arg, s->sent_again, s->lacking);
		s->sent_again = 0;
	}
}

void hw_sink_keep(struct hw_redis *r, const struct hw_pending_write *e)
{
	struct hw_pending_write kept = *e;
	if (!r->sink.keeps)
		return;
	kept.id = hw_redis_outlive(r, &e->t);
	hw_kept_add(&r->sink.kept, &kept, hw_clock_now().mono.ns);
}

/* Sends the kept transitions again after each reconnect, whatever the reason of the lost connection was: the same
 * server may have been a replica in between. */
void hw_sink_send_again(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	hw_kept_expire(&s->kept, hw_clock_now().mono.ns);
	hw_kept_put_back(&s->kept, &s->pending_writes, hw_clock_now().mono.ns);
	s->sent_again = s->pending_writes.again;
	s->lacking = 0;
}

/* --- the sweep --------------------------------------------------------------------------------------------------- */

/* Returns how many devices one step of the sweep visits. The sweep must end before keys expire, whose time to live
 * also ran while the monitor or Redis was down. */
static uint32_t sweep_step(const struct hw_redis *r, uint32_t bound)
{
	uint64_t n = (uint64_t)bound * HW_SWEEP_EVERY_MS / (uint64_t)hw_monitor_refresh_within_ms(r->m) + 1;
	return n < HW_SWEEP_STEP_MIN      ? HW_SWEEP_STEP_MIN
	       : n < HW_SWEEP_WAITING_MAX ? (uint32_t)n
	                                  : HW_SWEEP_WAITING_MAX;
}

/* Makes one step of the sweep: queues refreshes. If the store's data of a device differ, the answer to its refresh
 * requests a snapshot. */
static void sweep(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	const struct hw_registry *devices = hw_monitor_registry(r->m);
	if (!s->sweep) {
		event_del(s->sweep_timer);
		return;
	}
	if (!r->up || hw_load_pending(r) || s->refresh.len > HW_SWEEP_WAITING_MAX)
		return;
	uint32_t bound = hw_registry_bound(devices);
	for (uint32_t n = sweep_step(r, bound); n > 0 && s->sweep_at < bound; n--, s->sweep_at++) {
		const struct hw_device *d = hw_registry_at(devices, s->sweep_at);
		if (d && (hw_device_state(d) == HW_STATE_ONLINE || hw_device_state(d) == HW_STATE_OFFLINE) &&
		    !hw_dues_add(r, &s->refresh, s->sweep_at))
			return; /* no memory: hw_dues_add() has restarted the sweep */
	}
	if (s->sweep_at >= bound) {
		s->sweep = false;
		event_del(s->sweep_timer);
	}
	s->gathered = true;
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
	for (unsigned i = 0; i < HW_REFRESH_CALLS; i++)
		if (s->plain[i].n > 0)
			hw_plain_call_undo(&s->plain[i]);
	s->pending_writes.sent = s->pending_writes.head;
	s->rewind = false;
	s->held = 0;
	s->retry_ms = 0;
	event_del(s->retry);
	event_del(s->gather);
	event_del(s->sweep_timer);
}

int hw_sink_init(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	s->refresh.bit = HW_NOTED_REFRESH;
	s->snapshot.bit = HW_NOTED_SNAPSHOT;
	s->poison_at = UINT64_MAX;
	s->keeps = hw_redis_address_is_asked_for(&r->conf.at);
	s->key = malloc(hw_keys_device_max(&r->keys));
	s->pump = event_new(r->base, -1, 0, on_pump, r);
	s->retry = event_new(r->base, -1, 0, on_retry, r);
	s->sweep_timer = event_new(r->base, -1, EV_PERSIST, on_sweep, r);
	s->gather = event_new(r->base, -1, 0, on_gather, r);
	return s->key && s->pump && s->retry && s->sweep_timer && s->gather ? 0 : -ENOMEM;
}

void hw_sink_fini(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	struct event *events[] = {s->pump, s->retry, s->sweep_timer, s->gather};
	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i])
			event_free(events[i]);
	hw_pending_writes_fini(&s->pending_writes);
	hw_kept_fini(&s->kept);
	hw_eval_fini(&s->eval);
	free(s->refresh.at);
	free(s->snapshot.at);
	free(s->noted);
	free(s->key);
}
