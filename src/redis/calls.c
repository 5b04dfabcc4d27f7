/* SPDX-License-Identifier: MIT */
/*
 * Builds calls: up to HW_CALL_ITEMS items in one EVALSHA, or up to HW_PLAIN_ITEMS plain refreshes, a PEXPIRE each.
 *
 * Invariant: two transitions of one device are never in two calls in flight. Otherwise the first call might fail and
 * the second succeed, for example because Redis has no memory for a moment. The first transition could then get no
 * entry in the stream any more.
 */
#include <string.h>

#include "redis/inner.h"
#include "redis/places.h"

static void begin_transition(struct hw_redis *r)
{
	struct hw_eval *e = &r->sink.eval;
	hw_eval_begin(e);
	r->sink.common.n = 0;
	hw_eval_key(e, r->keys.offline, strlen(r->keys.offline));
	hw_eval_key(e, r->keys.outbox, strlen(r->keys.outbox));
	hw_eval_key(e, r->keys.events, strlen(r->keys.events));
	hw_eval_put_int(e, HW_AT_TRANSITION_EVENTS_MAX, r->conf.events_max);
	hw_eval_put_text(e, HW_AT_TRANSITION_NODE, r->conf.node_id);
	hw_eval_put_text(e, HW_AT_TRANSITION_SELF, r->self);
	hw_call_owner_begin(r);
}

static bool is_full(const struct hw_redis *r, const struct hw_call *c)
{
	return c->n == HW_CALL_ITEMS || hw_eval_size(&r->sink.eval) >= HW_CALL_BYTES;
}

/* Whether this node owns the device, so that it can be the next item of the call. If so, sets the item's token. */
static bool is_ours(struct hw_redis *r, const struct hw_call *c, const struct hw_device *d, uint64_t epoch)
{
	struct hw_id id = hw_device_id(d);
	return hw_call_owner_add(r, c->n, id.text, id.len, epoch);
}

/* Stores the values of a new item that are needed when its answer arrives. `stateless`: the item writes no device's
 * state, so its success confirms no device's state. */
static void note_item(struct hw_call *c, const struct hw_pending_write *e, uint64_t place, bool stateless)
{
	c->items[c->n].ref = e->t.device;
	c->items[c->n].seq = e->t.seq;
	c->items[c->n].stateless = stateless;
	c->items[c->n++].at = place;
}

/* Adds an entry that names its device by id, because the device's record may have been removed. */
static void add_by_id(struct hw_redis *r, struct hw_call *c, uint64_t place)
{
	const struct hw_pending_write *e = hw_pending_writes_at(&r->sink.pending_writes, place);
	if (!hw_call_owner_add(r, c->n, (const char *)e->id + 1, e->id[0], e->epoch))
		return;
	if (e->acknowledges)
		hw_item_acknowledge(r, e);
	else
		hw_item_forgotten(r, e);
	note_item(c, e, place, true);
}

/* Whether a transition that is sent again must be skipped because its device was forgotten since. The store may
 * already have the transition. The script could not find that out, because the device's hash is deleted. */
static bool is_over(const struct hw_pending_write *e, const struct hw_device *d)
{
	return e->again && hw_device_state(d) == HW_STATE_FORGOTTEN && e->t.state != HW_STATE_FORGOTTEN;
}

/* Adds the entry at `place` of the ring. Returns false if an answer must arrive before the entry can be sent. */
static bool add_pending_write(struct hw_redis *r, struct hw_call *c, uint64_t place)
{
	struct hw_sink *s = &r->sink;
	const struct hw_pending_write *e = hw_pending_writes_at(&s->pending_writes, place);
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
		hw_call_owner_drop(r, e->t.device, e->t.seq);
		return true;
	}
	if (s->noted[e->t.device.index] & HW_NOTED_IN_FLIGHT)
		return false;
	hw_item_write(r, "E", d, &e->t);
	s->noted[e->t.device.index] &= (uint8_t)~HW_NOTED_FULL;
	note_item(c, e, place, false);
	return true;
}

bool hw_call_transitions(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	uint64_t place = s->pending_writes.sent;
	if (place == s->pending_writes.tail)
		return false;
	struct hw_call *c = hw_call_new(r, HW_CALL_TRANSITIONS);
	begin_transition(r);
	while (place != s->pending_writes.tail && place - s->pending_writes.sent < HW_PASSED_OVER_MAX &&
	       !is_full(r, c) && add_pending_write(r, c, place))
		place++;
	bool moved = place != s->pending_writes.sent;
	if (c->n == 0) { /* all were skipped, or the first one must wait */
		c->kind = HW_CALL_FREE;
		s->pending_writes.sent = place;
		if (s->in_flight[HW_CALL_TRANSITIONS] == 0)
			hw_sink_confirm(r, place);
		return moved;
	}
	c->end = place;
	if (!hw_call_send(r, c, HW_SCRIPT_TRANSITION, hw_call_on_transitions))
		return false;
	s->pending_writes.sent = place;
	return true;
}

static void begin_refresh(struct hw_redis *r)
{
	struct hw_eval *e = &r->sink.eval;
	hw_eval_begin(e);
	hw_eval_key(e, r->keys.offline, strlen(r->keys.offline));
	hw_eval_put_text(e, HW_AT_REFRESH_SELF, r->self);
	hw_call_owner_begin(r);
	r->sink.light.n = 0;
}

/* Another node owns the device, so this node does not write it. */
static void leave(struct hw_redis *r, const struct hw_device *d, struct hw_ref ref, uint8_t bits)
{
	r->sink.noted[ref.index] &= (uint8_t)~bits;
	hw_call_owner_drop(r, ref, d->seq);
}

/* Sends the plain refresh of a device that this node owns. Returns false if it could not be sent. */
static bool send_plain(struct hw_redis *r, struct hw_plain_call *p, const struct hw_device *d, struct hw_ref ref)
{
	struct hw_id id = hw_device_id(d);
	uint64_t epoch;
	if (hw_call_owner_epoch(r, id.text, id.len, &epoch))
		return hw_plain_call_send(p, d, ref.index);
	leave(r, d, ref, HW_NOTED_FULL);
	return true;
}

/* Sends queued refreshes. A plain refresh becomes a PEXPIRE command at once; all other refreshes are gathered into one
 * call of the refresh script. hiredis writes the commands and the call together at the end of the turn. */
bool hw_call_refreshes(struct hw_redis *r)
{
	struct hw_now now = hw_clock_now();
	struct hw_call *c = hw_call_new(r, HW_CALL_REFRESH);
	struct hw_plain_call *p = hw_plain_call_new(r);
	const struct hw_device *d;
	struct hw_ref ref;
	begin_refresh(r);
	while (!is_full(r, c) && p->n < HW_PLAIN_ITEMS && (d = hw_dues_take(r, &r->sink.refresh, false, &ref))) {
		if (hw_item_is_plain(r, d, ref.index, now)) {
			if (!send_plain(r, p, d, ref))
				break;
		} else if (is_ours(r, c, d, 0)) {
			c->items[c->n].ref = ref;
			c->items[c->n++].seq = d->seq;
			hw_item_refresh(r, d, ref.index, now);
		} else {
			leave(r, d, ref, HW_NOTED_FULL);
		}
	}
	if (c->n > 0)
		return hw_call_send(r, c, HW_SCRIPT_REFRESH, hw_call_on_refreshes);
	c->kind = HW_CALL_FREE;
	return p->n > 0;
}

bool hw_call_snapshots(struct hw_redis *r)
{
	struct hw_sink *s = &r->sink;
	struct hw_now now = hw_clock_now();
	struct hw_call *c = hw_call_new(r, HW_CALL_SNAPSHOT);
	const struct hw_device *d;
	struct hw_ref ref;
	begin_transition(r);
	while (!is_full(r, c) && (d = hw_dues_take(r, &s->snapshot, true, &ref))) {
		if (!is_ours(r, c, d, 0)) {
			leave(r, d, ref, HW_NOTED_FULL | HW_NOTED_AS_TRANSITION);
			continue;
		}
		bool as_transition = s->noted[ref.index] & HW_NOTED_AS_TRANSITION;
		c->items[c->n].ref = ref;
		c->items[c->n].seq = d->seq;
		c->items[c->n].as_transition = as_transition;
		hw_item_snapshot(r, d, ref, now, as_transition, &c->items[c->n].pending);
		s->noted[ref.index] &= (uint8_t) ~(HW_NOTED_FULL | HW_NOTED_AS_TRANSITION);
		c->n++;
	}
	if (c->n > 0)
		return hw_call_send(r, c, HW_SCRIPT_TRANSITION, hw_call_on_snapshots);
	c->kind = HW_CALL_FREE;
	return false;
}
