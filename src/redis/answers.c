/* SPDX-License-Identifier: MIT */
/*
 * What the scripts answer. The link keeps the order, so answers to edges come in the order of the ring: its head moves
 * on with each, up to the first edge that failed; from there on everything is sent again.
 *
 * The owner may owe us more from within its callbacks: nothing of the ring is held across them.
 */
#include <stdio.h>
#include <string.h>

#include "redis/inner.h"

#define REFRESH_IN_FULL 2 /* see refresh.lua */

static const char nonsense[] = "ERR the script's answer makes no sense";

/* An error as Redis gave it: of the whole call, or of one of its items. NULL: none. */
static const char *call_error(const redisReply *reply, const struct hw_call *c)
{
	if (reply->type == REDIS_REPLY_ERROR)
		return reply->str;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != c->n)
		return nonsense;
	return NULL;
}

static const char *item_error(const redisReply *item)
{
	if (item->type == REDIS_REPLY_INTEGER || item->type == REDIS_REPLY_STATUS)
		return NULL;
	return item->str ? item->str : "ERR no answer";
}

/* A call is sent again. `whole`: the error is not one item's alone, so nothing can be written. */
static void call_failed(struct hw_redis *r, enum hw_call_kind kind, const char *error, bool whole)
{
	enum hw_trouble trouble = whole ? hw_refusal_begin(r, HW_HOLD(kind), error) : hw_refusal_trouble(r, error);
	hw_plan_retry(r, HW_HOLD(kind));
	if (trouble == HW_TROUBLE_NOSCRIPT)
		hw_scripts_load(&r->scripts);
	else if (trouble == HW_TROUBLE_NOAUTH ||
	         ((trouble == HW_TROUBLE_READONLY || error == nonsense) && r->sink.retry_ms >= HW_REPLICA_MS))
		/* A new connection may find the new master, says who it is, and is in step again. */
		hw_redis_link_fail(&r->link, error);
}

/* The store holds `stored` > `seq`. If that is what the device has had since, it was written by ourselves. If it is
 * what was sent, another node has written it. */
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

/* --- edges ------------------------------------------------------------------------------------------------------- */

/* One edge fails again and again while its neighbours do not: it is given up, so that it blocks nobody. */
static void count_poison(struct hw_redis *r, uint64_t at, const char *error)
{
	struct hw_sink *s = &r->sink;
	char text[HW_TROUBLE_TEXT];
	s->poison_tries = s->poison_at == at ? s->poison_tries + 1 : 1;
	s->poison_at = at;
	if (s->poison_tries < HW_POISON_TRIES)
		return;
	hw_edges_at(&s->edges, at)->given_up = true;
	r->stats->edges_dropped++;
	snprintf(text, sizeof(text), "a transition could not be written and is given up (%.300s)", error);
	hw_refusal_tell(r, &s->poison_told_ms, text);
}

/* Tells the place that an edge was given in the stream. */
static void tell_event(struct hw_redis *r, const struct hw_transition *edge, const redisReply *item)
{
	const struct hw_transition t = *edge;
	struct hw_event_id at;
	if (r->ops->on_event && hw_event_id_parse(item->str, item->len, &at) == 0)
		r->ops->on_event(r->arg, at, &t);
}

/* Hands out what the items say; returns the index of the first that failed, or their number. */
static unsigned judge_edges(struct hw_redis *r, const struct hw_call *c, const redisReply *reply)
{
	unsigned first = c->n;
	for (unsigned i = 0; i < c->n; i++) {
		const redisReply *item = reply->element[i];
		if (hw_tokens_refused(r, item)) {
			if (!c->items[i].stateless)
				hw_tokens_drop(r, c->items[i].ref, c->items[i].seq);
			continue;
		}
		if (item_error(item)) {
			first = i < first ? i : first;
			continue;
		}
		bool written = item->type == REDIS_REPLY_STATUS;
		if (written && hw_edges_at(&r->sink.edges, c->items[i].at)->again)
			r->sink.lacking++;
		if (c->items[i].stateless)
			continue;
		if (i < first && !r->sink.rewind)
			r->stats->edges_written++;
		if (written)
			tell_event(r, &hw_edges_at(&r->sink.edges, c->items[i].at)->t, item);
		if (written || item->integer == 0)
			r->ops->on_confirmed(r->arg, c->items[i].ref, c->items[i].seq);
		else
			newer(r, c->items[i].ref, c->items[i].seq, (uint64_t)item->integer);
	}
	return first;
}

/* All are written. If an edge before them failed, they are sent once more all the same. */
static void edges_done(struct hw_redis *r, const struct hw_call *c)
{
	struct hw_sink *s = &r->sink;
	hw_refusal_end(r, HW_HOLD(HW_CALL_EDGES));
	if (!s->rewind) {
		s->retry_ms = 0;
		hw_sink_confirm(r, s->in_flight[HW_CALL_EDGES] ? c->end : s->edges.sent);
	}
	hw_plan_pump(r);
}

/* The first that failed, and all behind it, are sent again. */
static void edge_failed(struct hw_redis *r, uint64_t place, const char *error)
{
	struct hw_sink *s = &r->sink;
	bool global = hw_trouble_is_global(hw_trouble_of(error));
	if (!global)
		hw_refusal_end(r, HW_HOLD(HW_CALL_EDGES));
	if (!s->rewind) {
		hw_sink_confirm(r, place);
		if (!global)
			count_poison(r, place, error);
	}
	s->rewind = true;
	call_failed(r, HW_CALL_EDGES, error, global);
}

void hw_call_on_edges(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_call *c = arg;
	struct hw_redis *r = c->r;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	const char *error = call_error(reply, c);
	hw_call_undo(r, c); /* c is still as it was, but nobody's: it is used up before anything is sent */
	if (error) {
		r->sink.rewind = true;
		call_failed(r, HW_CALL_EDGES, error, true);
		return;
	}
	time_call(r, c);
	unsigned first = judge_edges(r, c, reply);
	if (first == c->n)
		edges_done(r, c);
	else
		edge_failed(r, c->items[first].at, item_error(reply->element[first]));
}

/* --- refreshes and rewrites -------------------------------------------------------------------------------------- */

/* What fails for its own sake is told, and left to the next refresh. An edge is given up then: what is tried once more
 * is a rewrite without an entry. */
static void item_failed(struct hw_redis *r, const struct hw_call *c, unsigned i, const char *error)
{
	hw_refusal_trouble(r, error);
	if (c->kind != HW_CALL_REWRITE || !c->items[i].untold)
		return;
	r->stats->edges_dropped++;
	hw_dues_add(r, &r->sink.rewrite, c->items[i].ref.index);
}

/* After an answer without an error of the whole: the call is over. Returns the first item's error that is about Redis
 * as a whole, of which it has put all such items back. */
static const char *settle_items(struct hw_redis *r, const struct hw_call *c, const redisReply *reply)
{
	const char *global = NULL;
	for (unsigned i = 0; i < c->n; i++) {
		const char *error = item_error(reply->element[i]);
		if (!error)
			continue;
		r->sink.marks[c->items[i].ref.index] &= (uint8_t)~HW_MARK_FULL;
		if (hw_tokens_refused(r, reply->element[i])) {
			hw_tokens_drop(r, c->items[i].ref, c->items[i].seq);
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

/* An item was written now, with its place in the stream if it has one, or had been before. */
static void item_written(struct hw_redis *r, enum hw_call_kind kind, const struct hw_call *c, unsigned i,
                         const redisReply *item)
{
	struct hw_redis_stats *st = r->stats;
	const struct hw_edge *edge = kind == HW_CALL_REWRITE && c->items[i].untold ? &c->items[i].edge : NULL;
	if (edge)
		hw_sink_keep(r, edge);
	if (edge && item->type == REDIS_REPLY_STATUS)
		tell_event(r, &edge->t, item);
	*(edge ? &st->edges_written : kind == HW_CALL_REWRITE ? &st->rewrites : &st->refreshes) += 1;
	r->ops->on_confirmed(r->arg, c->items[i].ref, c->items[i].seq);
}

static void dues_answered(struct hw_redis *r, struct hw_call *c, const redisReply *reply)
{
	struct hw_sink *s = &r->sink;
	enum hw_call_kind kind = c->kind;
	bool rewrite = kind == HW_CALL_REWRITE;
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
		bool entered = item->type == REDIS_REPLY_STATUS;
		if (item->type != REDIS_REPLY_INTEGER && !entered)
			continue;
		if (entered || item->integer == 0) {
			item_written(r, kind, c, i, item);
		} else if (rewrite) {
			newer(r, c->items[i].ref, c->items[i].seq, (uint64_t)item->integer);
		} else if (hw_registry_get(hw_monitor_registry(r->m), c->items[i].ref)) {
			s->marks[c->items[i].ref.index] &= (uint8_t)~HW_MARK_FULL;
			hw_dues_add(r, item->integer == REFRESH_IN_FULL ? &s->refresh : &s->rewrite,
			            c->items[i].ref.index);
		}
	}
	if (error) {
		call_failed(r, kind, error, true);
		return;
	}
	hw_refusal_end(r, HW_HOLD(kind));
	if (s->edges.head == s->edges.tail)
		s->retry_ms = 0;
	hw_plan_pump(r);
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

void hw_call_on_rewrites(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_call *c = arg;
	(void)ac;
	if (!answer)
		return;
	hw_redis_link_got(&c->r->link);
	time_call(c->r, c);
	dues_answered(c->r, c, answer);
}
