/* SPDX-License-Identifier: MIT */
/*
 * See commit.h. The arguments are kept until Redis has confirmed them. Cost: a round trip for each turn that has
 * changed something; of Redis' time, about 1.3 us for a member and 13 us for an incident.
 */
#include "alert/state/commit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/app.h"
#include "alert/follow/fields.h"
#include "alert/follow/follow.h"
#include "alert/state/message.h"
#include "alert/state/outbox.h"
#include "alert/state/places.h"

#define CLOSED_MAX 100000 /* closed incidents that are kept */
#define EVENTS_MAX 100000 /* entries of device:incident_events */
#define TRIM_LIMIT 100    /* incidents that a call removes */
#define TRIM_S     10

#define CLOSING_CHECKED 2000 /* closed incidents that a commit looks up in the engine */

/* An incident in device:incidents that is closed. */
struct closing {
	char id[HW_INCIDENT_ID + 1];
};

struct hw_alert_commit {
	struct hw_alert_app *app;
	struct hw_eval eval, trim;
	uint64_t number; /* of the last confirmed commit */
	bool built, in_flight, rewrite, trimming;
	bool begun, cut; /* cut: it does not have all items */
	size_t items;
	struct closing *closing;
	size_t n_closing, cap_closing, next_closing;      /* an incident may be there several times */
	struct hw_alert_offset offsets[HW_ALERT_STREAMS]; /* that Redis has */
	unsigned trim_s;
};

/* --- items -------------------------------------------------------------------------------------------------------- */

static void item(struct hw_alert_commit *c, const char *kind)
{
	hw_eval_item(&c->eval);
	hw_eval_put(&c->eval, HW_AT_ITEM_KIND, kind, 1);
	c->items++;
}

static void put(struct hw_alert_commit *c, unsigned place, const char *text)
{
	hw_eval_put_text(&c->eval, place, text ? text : "");
}

static void pair(struct hw_alert_commit *c, const char *name, const char *value)
{
	hw_eval_arg_text(&c->eval, name);
	hw_eval_arg_text(&c->eval, value ? value : "");
}

static void pair_int(struct hw_alert_commit *c, const char *name, int64_t value)
{
	hw_eval_arg_text(&c->eval, name);
	hw_eval_arg_int(&c->eval, value);
}

#define INCIDENT_FIELDS 19 /* pairs of put_incident() */
#define SILENCE_FIELDS  8

int hw_alert_commit_closing(struct hw_alert_commit *c, const char *id)
{
	if (c->n_closing == c->cap_closing) {
		size_t cap = c->cap_closing ? 2 * c->cap_closing : 64;
		struct closing *grown = reallocarray(c->closing, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		c->closing = grown;
		c->cap_closing = cap;
	}
	struct closing *one = &c->closing[c->n_closing++];
	snprintf(one->id, sizeof(one->id), "%s", id);
	return 0;
}

static int put_incident(struct hw_alert_commit *c, const struct hw_incident_view *v)
{
	bool open = v->state == HW_INCIDENT_OPEN;
	item(c, "I");
	put(c, HW_AT_INCIDENT_ID, v->id);
	hw_eval_put_int(&c->eval, HW_AT_INCIDENT_OPENED, v->opened_ms);
	hw_eval_put_int(&c->eval, HW_AT_INCIDENT_CLOSED, open ? 0 : v->closed_ms);
	hw_eval_put_int(&c->eval, HW_AT_INCIDENT_N, 2 * INCIDENT_FIELDS);
	pair(c, "kind", hw_incident_kind_name(v->kind));
	pair(c, "state", hw_incident_state_name(v->state));
	pair(c, "into", v->into);
	pair(c, "flapping", v->flapping ? "1" : "0");
	pair(c, "listed", v->listed ? "1" : "0");
	pair(c, "group", v->group);
	pair(c, "device", v->device);
	pair(c, "name", v->name);
	pair(c, "cause", v->cause);
	pair(c, "labels", v->labels);
	pair_int(c, "since_ms", v->since_ms);
	pair_int(c, "opened_ms", v->opened_ms);
	pair_int(c, "closed_ms", v->closed_ms);
	pair_int(c, "down", v->down);
	pair_int(c, "unreachable", v->unreachable);
	pair_int(c, "most", v->most);
	pair(c, "ack_by", v->ack_by);
	pair_int(c, "ack_ms", v->acknowledged ? v->ack_ms : 0);
	pair(c, "note", v->note);
	return open ? 0 : hw_alert_commit_closing(c, v->id);
}

static void put_sent(struct hw_alert_commit *c, const struct hw_change *h)
{
	char value[96];
	snprintf(value, sizeof(value), "%s %u %lld%s%s%s", hw_news_name(h->last), h->count, (long long)h->at_ms,
	         h->acknowledged || h->flapping ? " " : "", h->acknowledged ? "a" : "", h->flapping ? "f" : "");
	item(c, "T");
	put(c, HW_AT_SENT_ID, h->id);
	put(c, HW_AT_SENT_RECEIVER, h->receiver);
	put(c, HW_AT_SENT_VALUE, value);
}

static void put_joined(struct hw_alert_commit *c, const struct hw_change *h)
{
	char value[96];
	snprintf(value, sizeof(value), "%s %lld %llu", h->unseen ? "unseen" : hw_incident_class_name(h->class),
	         (long long)h->since_ms, (unsigned long long)h->seq);
	item(c, "J");
	put(c, HW_AT_JOINED_ID, h->id);
	put(c, HW_AT_JOINED_DEVICE, h->device);
	put(c, HW_AT_JOINED_VALUE, value);
}

static void put_silence(struct hw_alert_commit *c, const struct hw_silence_view *v)
{
	item(c, "S");
	put(c, HW_AT_SILENCE_ID, v->id);
	hw_eval_put_int(&c->eval, HW_AT_SILENCE_N, 2 * SILENCE_FIELDS);
	pair(c, "match", v->match);
	pair_int(c, "until_ms", v->until_ms);
	pair(c, "until_online", v->until_online ? "1" : "0");
	pair(c, "planned", v->planned ? "1" : "0");
	pair(c, "was_offline", v->was_offline ? "1" : "0");
	pair(c, "reason", v->reason);
	pair(c, "by", v->by);
	pair_int(c, "at_ms", v->at_ms);
}

static int put_receiver(struct hw_alert_commit *c, const struct hw_change *h)
{
	const char *sending = hw_alert_outbox_sending(c->app->outbox, h->receiver);
	item(c, "R");
	put(c, HW_AT_RECEIVER_NAME, h->receiver);
	hw_eval_put_int(&c->eval, HW_AT_RECEIVER_NUMBER, (int64_t)h->number);
	hw_eval_put_int(&c->eval, HW_AT_RECEIVER_FROM, h->from_ms);
	put(c, HW_AT_RECEIVER_SENDING, sending);
	return sending ? 0 : -ENOMEM;
}

/* Returns the present sentence of an incident that has changed; "" for an event of a receiver or a silence. */
static const char *sentence_of(const struct hw_alert_commit *c, const struct hw_change *h, char *buf, size_t cap)
{
	struct hw_incident_view v;
	bool sent = h->receiver && *h->receiver;
	return !sent && h->id && hw_incidents_find(c->app->engine, h->id, &v) ? hw_incident_sentence(&v, NULL, buf, cap)
	                                                                      : "";
}

static void put_record(struct hw_alert_commit *c, const struct hw_change *h)
{
	char sentence[HW_INCIDENT_TEXT];
	if (h->kind == HW_CHANGE_PLANNED) {
		item(c, "P");
		put(c, HW_AT_PLANNED_DEVICE, h->device);
		hw_eval_put_int(&c->eval, HW_AT_PLANNED_FROM, h->from_ms);
		hw_eval_put_int(&c->eval, HW_AT_PLANNED_TO, h->to_ms);
		put(c, HW_AT_PLANNED_SILENCE, h->id);
		return;
	}
	item(c, "E");
	put(c, HW_AT_EVENT_ID, h->id);
	put(c, HW_AT_EVENT_WHAT, h->what);
	hw_eval_put_int(&c->eval, HW_AT_EVENT_AT, h->at_ms);
	put(c, HW_AT_EVENT_BY, h->by);
	put(c, HW_AT_EVENT_RECEIVER, h->receiver);
	put(c, HW_AT_EVENT_KIND, h->incident_kind);
	put(c, HW_AT_EVENT_GROUP, h->group);
	put(c, HW_AT_EVENT_DEVICE, h->device);
	put(c, HW_AT_EVENT_SENTENCE, sentence_of(c, h, sentence, sizeof(sentence)));
}

/* Returns 0 or -ENOMEM. */
static int put_change(struct hw_alert_commit *c, const struct hw_change *h)
{
	switch (h->kind) {
	case HW_CHANGE_INCIDENT:
		return put_incident(c, &h->incident);
	case HW_CHANGE_DROPPED:
		item(c, "D");
		put(c, HW_AT_DROPPED_ID, h->id);
		break;
	case HW_CHANGE_SENT:
		put_sent(c, h);
		break;
	case HW_CHANGE_JOINED:
		put_joined(c, h);
		break;
	case HW_CHANGE_LEFT:
		item(c, "L");
		put(c, HW_AT_LEFT_ID, h->id);
		put(c, HW_AT_LEFT_DEVICE, h->device);
		break;
	case HW_CHANGE_RECEIVER:
		return put_receiver(c, h);
	case HW_CHANGE_SILENCE:
		put_silence(c, &h->silence);
		break;
	case HW_CHANGE_UNSILENCE:
		item(c, "U");
		put(c, HW_AT_UNSILENCE_ID, h->id);
		break;
	case HW_CHANGE_EVENT:
	case HW_CHANGE_PLANNED:
		put_record(c, h);
		break;
	}
	return 0;
}

/* Removes closed incidents from device:incidents that the engine no longer has. Each commit checks at most
 * CLOSING_CHECKED incidents, in turn. */
static void put_ended(struct hw_alert_commit *c)
{
	struct hw_incident_view v;
	size_t n = c->n_closing < CLOSING_CHECKED ? c->n_closing : CLOSING_CHECKED;
	for (; n > 0; n--) {
		size_t k = c->next_closing < c->n_closing ? c->next_closing : 0;
		c->next_closing = k;
		if (hw_incidents_find(c->app->engine, c->closing[k].id, &v)) {
			c->next_closing++;
			continue;
		}
		item(c, "Z");
		put(c, HW_AT_ENDED_ID, c->closing[k].id);
		c->closing[k] = c->closing[--c->n_closing];
	}
}

static void put_offsets(struct hw_alert_commit *c)
{
	struct hw_alert_offset now[HW_ALERT_STREAMS];
	char text[HW_STREAM_ID_TEXT];
	hw_alert_follow_offsets(c->app->follow, now);
	for (int k = 0; k < HW_ALERT_STREAMS; k++) {
		bool same =
			now[k].known == c->offsets[k].known && hw_stream_id_compare(now[k].id, c->offsets[k].id) == 0;
		if (!now[k].known || (same && !c->rewrite))
			continue;
		item(c, "A");
		put(c, HW_AT_OFFSET_STREAM, hw_alert_stream_name((enum hw_alert_stream)k));
		put(c, HW_AT_OFFSET_AT, hw_stream_id_print(now[k].id, text));
		c->offsets[k] = now[k];
	}
}

/* --- the call ----------------------------------------------------------------------------------------------------- */

static void put_keys(struct hw_alert_commit *c, struct hw_eval *e)
{
	static const char *const names[] = {"alert", "incidents", "incidents:closed", "silences", "incident_events"};
	char key[HW_ALERT_KEY_MAX];
	hw_eval_begin(e);
	for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
		hw_alert_store_key(c->app->store, names[k], key);
		hw_eval_key(e, key, strlen(key));
	}
}

static void put_head(struct hw_alert_commit *c)
{
	struct hw_eval *e = &c->eval;
	put_keys(c, e);
	hw_eval_put_text(e, HW_AT_COMMIT_HOLDER, hw_alert_holder_name(c->app->holder));
	hw_eval_put_text(e, HW_AT_COMMIT_EPOCH, hw_alert_holder_epoch(c->app->holder));
	hw_eval_put_int(e, HW_AT_COMMIT_NUMBER, (int64_t)c->number + 1);
	hw_eval_put_text(e, HW_AT_COMMIT_REWRITE, c->rewrite ? "1" : "0");
	hw_eval_put_text(e, HW_AT_COMMIT_PREFIX, c->app->conf->redis.key_prefix);
	hw_eval_put_int(e, HW_AT_COMMIT_EVENTS_MAX, EVENTS_MAX);
	c->items = 0;
	put_offsets(c);
}

/* Adds changes until there are `most` items. Returns 0 or -ENOMEM. */
static int put_changes(struct hw_alert_commit *c, size_t most)
{
	struct hw_change h;
	int rc = 0;
	while (rc == 0 && c->items < most && hw_incidents_change(c->app->engine, &h))
		rc = put_change(c, &h);
	return rc;
}

static void on_answer(void *arg, const redisReply *r)
{
	struct hw_alert_commit *c = arg;
	const char *text[2] = {"", ""};
	c->in_flight = false;
	if (!r || !c->built)
		return;
	for (size_t k = 0; r->type == REDIS_REPLY_ARRAY && k < 2 && k < r->elements; k++)
		if (r->element[k]->type == REDIS_REPLY_STRING)
			text[k] = r->element[k]->str;
	enum hw_alert_verdict v = hw_alert_verdict_of(text[0]);
	if (v == HW_ALERT_UNKNOWN)
		return; /* Redis has answered with an error, which the store has logged; the tick repeats the commit */
	if (v != HW_ALERT_OK) {
		hw_alert_holder_refused(c->app->holder, v, text[1]);
		return;
	}
	c->built = c->rewrite = false;
	c->number++;
	c->app->counts.commits++;
	hw_alert_on_committed(c->app);
}

static void call(struct hw_alert_commit *c)
{
	if (c->in_flight || !hw_alert_holder_is(c->app->holder))
		return;
	c->in_flight = hw_alert_store_call(c->app->store, HW_ALERT_COMMIT, &c->eval, on_answer, c) == 0;
}

int hw_alert_commit_begin(struct hw_alert_commit *c)
{
	c->begun =
		!c->built && !c->in_flight && hw_alert_holder_is(c->app->holder) && hw_alert_store_is_up(c->app->store);
	if (!c->begun)
		return 0;
	put_head(c);
	int rc = put_changes(c, HW_ALERT_ITEMS_MAX);
	c->cut = c->items >= HW_ALERT_ITEMS_MAX;
	return rc ? rc : !c->cut;
}

int hw_alert_commit_send(struct hw_alert_commit *c)
{
	if (!c->begun)
		return 0;
	int rc = c->cut ? 0 : put_changes(c, SIZE_MAX);
	put_ended(c);
	hw_alert_outbox_built(c->app->outbox);
	c->begun = false;
	if (rc || c->eval.failed)
		return -ENOMEM;
	c->built = c->items > 0 || c->rewrite;
	if (c->built)
		call(c);
	return 0;
}

void hw_alert_commit_store(struct hw_alert_commit *c, bool up)
{
	if (!up)
		c->in_flight = c->trimming = false;
}

/* --- closed incidents that are kept for long enough ----------------------------------------------------------------
 */

static void on_trimmed(void *arg, const redisReply *r)
{
	struct hw_alert_commit *c = arg;
	c->trimming = false;
	if (r && r->type == REDIS_REPLY_INTEGER && r->integer >= TRIM_LIMIT)
		c->trim_s = 0; /* more of them */
}

static void trim(struct hw_alert_commit *c)
{
	struct hw_eval *e = &c->trim;
	int64_t now_ms = hw_alert_holder_redis_ms(c->app->holder);
	c->trim_s = TRIM_S;
	if (!now_ms)
		return;
	put_keys(c, e);
	hw_eval_put_text(e, HW_AT_TRIM_HOLDER, hw_alert_holder_name(c->app->holder));
	hw_eval_put_text(e, HW_AT_TRIM_EPOCH, hw_alert_holder_epoch(c->app->holder));
	hw_eval_put_text(e, HW_AT_TRIM_PREFIX, c->app->conf->redis.key_prefix);
	hw_eval_put_int(e, HW_AT_TRIM_BEFORE, now_ms - c->app->conf->keep_ms);
	hw_eval_put_int(e, HW_AT_TRIM_MOST, CLOSED_MAX);
	hw_eval_put_int(e, HW_AT_TRIM_LIMIT, TRIM_LIMIT);
	c->trimming = hw_alert_store_call(c->app->store, HW_ALERT_TRIM, e, on_trimmed, c) == 0;
}

void hw_alert_commit_tick(struct hw_alert_commit *c)
{
	if (!c->app->engine || !hw_alert_store_is_up(c->app->store))
		return;
	if (c->built)
		call(c);
	if (c->trim_s > 0)
		c->trim_s--;
	if (c->trim_s == 0 && !c->trimming && hw_alert_holder_is(c->app->holder))
		trim(c);
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

void hw_alert_commit_reset(struct hw_alert_commit *c, uint64_t number)
{
	c->number = number;
	c->built = c->rewrite = c->begun = false;
	c->n_closing = 0;
	memset(c->offsets, 0, sizeof(c->offsets)); /* the first commit writes all */
}

/* Drops the unconfirmed commit. Its messages are still in the outbox, and the next commit contains all receivers. */
void hw_alert_commit_rewrite(struct hw_alert_commit *c)
{
	c->built = false;
	c->rewrite = true;
}

bool hw_alert_commit_is_busy(const struct hw_alert_commit *c)
{
	return c->built || c->in_flight;
}

uint64_t hw_alert_commit_number(const struct hw_alert_commit *c)
{
	return c->number;
}

struct hw_alert_commit *hw_alert_commit_new(struct hw_alert_app *app)
{
	struct hw_alert_commit *c = calloc(1, sizeof(*c));
	if (c)
		c->app = app;
	return c;
}

void hw_alert_commit_free(struct hw_alert_commit *c)
{
	if (!c)
		return;
	hw_eval_fini(&c->eval);
	hw_eval_fini(&c->trim);
	free(c->closing);
	free(c);
}
