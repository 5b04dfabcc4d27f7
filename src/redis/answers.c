/* SPDX-License-Identifier: MIT */
/*
 * Handles the answers of the scripts. Answers arrive in the order of the calls, so the answers to transitions follow
 * the order of the ring. Each answer moves the ring's head, up to the first transition that failed. That transition and
 * all later ones are sent again.
 *
 * A callback of the owner may add entries to the ring, so no pointer into the ring is held across a callback.
 */
#include <stdio.h>
#include <string.h>

#include "redis/inner.h"

#define REFRESH_IN_FULL 2 /* see refresh.lua */

static const char nonsense[] = "ERR malformed answer of a script";

/* The error of the whole call; NULL: none. */
static const char *call_error(const redisReply *reply, const struct hw_call *c)
{
	if (reply->type == REDIS_REPLY_ERROR)
		return reply->str;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != c->n)
		return nonsense;
	return NULL;
}

/* Whether the item was written with an entry, whose id is the answer. No error begins with a digit. */
static bool is_entry(const redisReply *item)
{
	return item->type == REDIS_REPLY_STRING && item->len > 0 && item->str[0] >= '0' && item->str[0] <= '9';
}

static const char *item_error(const redisReply *item)
{
	if (item->type == REDIS_REPLY_INTEGER || is_entry(item))
		return NULL;
	return item->str ? item->str : "ERR no answer";
}

/* Called when a call failed. The call is sent again after the retry delay. `whole`: the error is about Redis as a
 * whole, so Redis refuses every write. */
static void call_failed(struct hw_redis *r, enum hw_call_kind kind, const char *error, bool whole)
{
	enum hw_trouble trouble = whole ? hw_refusal_begin(r, HW_HOLD(kind), error) : hw_refusal_trouble(r, error);
	hw_plan_retry(r, HW_HOLD(kind));
	if (trouble == HW_TROUBLE_NOSCRIPT)
		hw_scripts_load(&r->scripts);
	else if (trouble == HW_TROUBLE_NOAUTH ||
	         ((trouble == HW_TROUBLE_READONLY || error == nonsense) && r->sink.retry_ms >= HW_REPLICA_MS))
		/* Closes the connection, because a new connection may reach the new master. A new connection also
		 * authenticates again, and cannot assign an answer to the wrong call. */
		hw_redis_link_fail(&r->link, error);
}

/* Handles an item that Redis refused because the store has seq `stored`, which is greater than the `seq` that was
 * sent. If the device's seq is now `stored`, this node wrote the stored state. If the device's seq is still `seq`,
 * another node wrote it. */
static void newer(struct hw_redis *r, struct hw_ref ref, uint64_t seq, uint64_t stored)
{
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(r->m), ref);
	if (!d || stored < d->seq)
		return;
	if (stored == d->seq && stored != seq)
		r->ops->on_confirmed(r->arg, ref, stored);
	else
		r->ops->on_newer(r->arg, ref, stored);
}

static void time_call(struct hw_redis *r, const struct hw_call *c)
{
	int64_t ns = hw_clock_now().mono.ns - c->sent_ns;
	struct hw_redis_stats *st = r->stats;
	st->script_ns = st->script_ns ? st->script_ns + (ns - st->script_ns) / 8 : ns;
}

/* --- transitions ------------------------------------------------------------------------------------------------- */

/* Counts the failures of a transition that fails repeatedly although the transitions before and after it succeed.
 * After HW_POISON_TRIES failures the transition is given up, so that it does not block the ring. */
static void count_poison(struct hw_redis *r, uint64_t at, const char *error)
{
	struct hw_sink *s = &r->sink;
	char text[HW_TROUBLE_TEXT];
	s->poison_tries = s->poison_at == at ? s->poison_tries + 1 : 1;
	s->poison_at = at;
	if (s->poison_tries < HW_POISON_TRIES)
		return;
	hw_pending_writes_at(&s->pending_writes, at)->given_up = true;
	r->stats->transitions_dropped++;
	snprintf(text, sizeof(text), "a transition could not be written and was dropped (%.300s)", error);
	hw_refusal_log(r, &s->poison_reported_ms, text);
}

/* Reports the stream id that a transition was given. */
static void report_event(struct hw_redis *r, const struct hw_transition *pending, const redisReply *item)
{
	const struct hw_transition t = *pending;
	struct hw_stream_id at;
	if (r->ops->on_event && hw_stream_id_parse(item->str, item->len, &at) == 0)
		r->ops->on_event(r->arg, at, &t);
}

/* Reports the result of each item. Returns the index of the first item that failed, or the number of items. */
static unsigned judge_transitions(struct hw_redis *r, const struct hw_call *c, const redisReply *reply)
{
	unsigned first = c->n;
	for (unsigned i = 0; i < c->n; i++) {
		const redisReply *item = reply->element[i];
		if (hw_call_owner_refused(r, item)) {
			if (!c->items[i].stateless)
				hw_call_owner_drop(r, c->items[i].ref, c->items[i].seq);
			continue;
		}
		if (item_error(item)) {
			first = i < first ? i : first;
			continue;
		}
		bool written = is_entry(item);
		if (written && hw_pending_writes_at(&r->sink.pending_writes, c->items[i].at)->again)
			r->sink.lacking++;
		if (c->items[i].stateless)
			continue;
		if (i < first && !r->sink.rewind)
			r->stats->transitions_written++;
		if (written)
			report_event(r, &hw_pending_writes_at(&r->sink.pending_writes, c->items[i].at)->t, item);
		if (written || item->integer == 0)
			r->ops->on_confirmed(r->arg, c->items[i].ref, c->items[i].seq);
		else
			newer(r, c->items[i].ref, c->items[i].seq, (uint64_t)item->integer);
	}
	return first;
}

/* Called when all items of a call are written. If an earlier transition has failed, these items are sent again
 * nevertheless, and the script then skips them. */
static void transitions_done(struct hw_redis *r, const struct hw_call *c)
{
	struct hw_sink *s = &r->sink;
	hw_refusal_end(r, HW_HOLD(HW_CALL_TRANSITIONS));
	if (!s->rewind) {
		s->retry_ms = 0;
		hw_sink_confirm(r, s->in_flight[HW_CALL_TRANSITIONS] ? c->end : s->pending_writes.sent);
	}
	hw_plan_pump(r);
}

/* Called when an item has failed. The item and all entries after it are sent again. */
static void write_failed(struct hw_redis *r, uint64_t place, const char *error)
{
	struct hw_sink *s = &r->sink;
	bool global = hw_trouble_is_global(hw_trouble_of(error));
	if (!global)
		hw_refusal_end(r, HW_HOLD(HW_CALL_TRANSITIONS));
	if (!s->rewind) {
		hw_sink_confirm(r, place);
		if (!global)
			count_poison(r, place, error);
	}
	s->rewind = true;
	call_failed(r, HW_CALL_TRANSITIONS, error, global);
}

void hw_call_on_transitions(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_call *c = arg;
	struct hw_redis *r = c->r;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	const char *error = call_error(reply, c);
	/* Frees the slot of `c`. Its contents stay valid until the next call is built. */
	hw_call_undo(r, c);
	if (error) {
		r->sink.rewind = true;
		call_failed(r, HW_CALL_TRANSITIONS, error, true);
		return;
	}
	time_call(r, c);
	unsigned first = judge_transitions(r, c, reply);
	if (first == c->n)
		transitions_done(r, c);
	else
		write_failed(r, c->items[first].at, item_error(reply->element[first]));
}

/* --- refreshes and snapshots -------------------------------------------------------------------------------------- */

/* Reports an error that concerns one item only. The device's next refresh corrects its data in the store. If the
 * item was a snapshot that was to be written as a transition, a plain snapshot is sent next, and the transition
 * counts as dropped. */
static void item_failed(struct hw_redis *r, const struct hw_call *c, unsigned i, const char *error)
{
	hw_refusal_trouble(r, error);
	if (c->kind != HW_CALL_SNAPSHOT || !c->items[i].as_transition)
		return;
	r->stats->transitions_dropped++;
	hw_dues_add(r, &r->sink.snapshot, c->items[i].ref.index);
}

/* Handles the failed items of a call that itself succeeded. Items that failed because of Redis as a whole are queued
 * again; the first such error is returned. */
static const char *settle_items(struct hw_redis *r, const struct hw_call *c, const redisReply *reply)
{
	const char *global = NULL;
	for (unsigned i = 0; i < c->n; i++) {
		const char *error = item_error(reply->element[i]);
		if (!error)
			continue;
		r->sink.noted[c->items[i].ref.index] &= (uint8_t)~HW_NOTED_FULL;
		if (hw_call_owner_refused(r, reply->element[i])) {
			hw_call_owner_drop(r, c->items[i].ref, c->items[i].seq);
			continue;
		}
		if (!hw_trouble_is_global(hw_trouble_of(error))) {
			item_failed(r, c, i, error);
			continue;
		}
		hw_call_put_back(r, c, i);
		global = global ? global : error;
	}
	return global;
}

/* Called when an item is written, now or by an earlier attempt. Reports its stream id, if it has one. */
static void item_written(struct hw_redis *r, enum hw_call_kind kind, const struct hw_call *c, unsigned i,
                         const redisReply *item)
{
	struct hw_redis_stats *st = r->stats;
	const struct hw_pending_write *pending =
		kind == HW_CALL_SNAPSHOT && c->items[i].as_transition ? &c->items[i].pending : NULL;
	if (pending)
		hw_sink_keep(r, pending);
	if (pending && is_entry(item))
		report_event(r, &pending->t, item);
	*(pending ? &st->transitions_written : kind == HW_CALL_SNAPSHOT ? &st->snapshots : &st->refreshes) += 1;
	r->ops->on_confirmed(r->arg, c->items[i].ref, c->items[i].seq);
}

/* Called when Redis has carried out a call, and has refused none of its items as a whole. */
static void dues_done(struct hw_redis *r, enum hw_call_kind kind)
{
	struct hw_sink *s = &r->sink;
	hw_refusal_end(r, HW_HOLD(kind));
	if (s->pending_writes.head == s->pending_writes.tail)
		s->retry_ms = 0;
	hw_plan_pump(r);
}

static void dues_answered(struct hw_redis *r, struct hw_call *c, const redisReply *reply)
{
	struct hw_sink *s = &r->sink;
	enum hw_call_kind kind = c->kind;
	bool snapshot = kind == HW_CALL_SNAPSHOT;
	const char *error = call_error(reply, c);
	if (error) {
		hw_call_undo(r, c);
		call_failed(r, kind, error, true);
		return;
	}
	error = settle_items(r, c, reply);
	s->in_flight[kind]--;
	c->kind = HW_CALL_FREE;
	for (unsigned i = 0; i < c->n; i++) {
		const redisReply *item = reply->element[i];
		bool entered = is_entry(item);
		if (item->type != REDIS_REPLY_INTEGER && !entered)
			continue;
		if (entered || item->integer == 0) {
			item_written(r, kind, c, i, item);
		} else if (snapshot) {
			newer(r, c->items[i].ref, c->items[i].seq, (uint64_t)item->integer);
		} else if (hw_registry_get(hw_monitor_registry(r->m), c->items[i].ref)) {
			if (item->integer == REFRESH_IN_FULL)
				hw_call_in_full(r, c->items[i].ref.index);
			else
				hw_dues_add(r, &s->snapshot, c->items[i].ref.index);
		}
	}
	if (error) {
		call_failed(r, kind, error, true);
		return;
	}
	dues_done(r, kind);
}

void hw_call_on_refreshes(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_call *c = arg;
	(void)ac;
	if (!answer)
		return;
	hw_redis_link_got(&c->r->link);
	dues_answered(c->r, c, answer);
}

void hw_call_on_snapshots(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_call *c = arg;
	(void)ac;
	if (!answer)
		return;
	hw_redis_link_got(&c->r->link);
	time_call(c->r, c);
	dues_answered(c->r, c, answer);
}

/* --- plain refreshes ---------------------------------------------------------------------------------------------- */

static const char *plain_error(const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_INTEGER)
		return NULL;
	return reply->type == REDIS_REPLY_ERROR ? item_error(reply) : nonsense;
}

/*
 * Handles the answer to one PEXPIRE. Without a key (0), or after an error, a full refresh by the script follows. The
 * answer confirms no state, because PEXPIRE compares no seq.
 *
 * With several nodes, PEXPIRE needs no fencing token. It creates no key and removes none. If the new owner has marked
 * the device offline, there is no key, and the full refresh that follows is fenced. Else the key lives as long as the
 * new owner would let it.
 */
void hw_call_on_plain(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_plain_call *p = arg;
	struct hw_redis *r = p->r;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	const char *error = plain_error(reply);
	bool whole = error && (error == nonsense || hw_trouble_is_global(hw_trouble_of(error)));
	uint32_t index = p->index[p->answered++];
	bool refused = p->refused |= whole, last = p->answered == p->n;
	if (last) {
		p->n = 0;
		r->sink.in_flight[HW_CALL_REFRESH]--;
	}
	if (!error && reply->integer == 1)
		r->stats->refreshes++;
	else
		hw_call_in_full(r, index);
	if (whole)
		call_failed(r, HW_CALL_REFRESH, error, true); /* may close the connection, which frees the slot */
	else if (error)
		hw_refusal_trouble(r, error);
	if (last && !refused)
		dues_done(r, HW_CALL_REFRESH);
}
