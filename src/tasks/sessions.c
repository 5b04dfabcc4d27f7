/* SPDX-License-Identifier: MIT */
/*
 * See sessions.h. Cost: of each session an EXISTS and two XRANGEs, in a transaction, whenever something has happened,
 * and an HSET for each ack; nothing of an event is kept here but its id: to send again is to read again from the last
 * ack on.
 *
 * With each page, at the same moment, it is asked where the stream begins. Where that is behind the session's place,
 * what lay between was trimmed: heartwheel-history is asked for it (past.h), page by page, and what it does not have
 * either is told as a gap. History that does not answer, or has not read as far as the stream begins, is waited for,
 * but not for ever.
 */
#include "tasks/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json.h"
#include "heartwheel/report.h"
#include "heartwheel/topic.h"
#include "link/clock.h"
#include "tasks/allow.h"
#include "tasks/app.h"
#include "tasks/filter.h"
#include "tasks/past.h"
#include "tasks/place.h"

#define UNACKED     100
#define PAGE_TEXT   "100"
#define SESSION_TTL "2592000" /* s: 30 days */
#define LOOK_MS     10000     /* the list of sessions; one whose client is known offline */
#define BEHIND_MS   10000     /* so long history may have nothing new of what was trimmed */
#define AHEAD_MS    60000     /* of Redis' clock: no event has such an id */
#define KEY_MAX     (HW_ID_MAX + 8)
#define QUOTED_MAX  (HW_ID_MAX * 6 + 3)
#define PAYLOAD_MAX 8192

struct session {
	struct hw_tasks_sessions *all;
	char client[HW_ID_MAX + 1];
	char *filter; /* JSON {"ids","group","prefix"} */
	struct hw_place acked, read, sent[UNACKED];
	struct hw_place oldest; /* entry of the stream, as it was asked for last */
	struct hw_place asked;  /* of history: what lies behind it */
	size_t n_sent;
	int64_t sent_ms, asleep_ms; /* monotonic: the first of `sent`; since when it is known offline, 0: it is not */
	unsigned asking;            /* answers that are awaited */
	int64_t behind_ms;          /* monotonic: since when history is asked in vain; 0: it is not */
	bool known;                 /* its place was read */
	bool begins;                /* `oldest` was */
	bool later;                 /* the next tick goes on */
	bool again, gone, saved, listed;
	struct session *next;
};

struct hw_tasks_sessions {
	struct hw_tasks_app *app;
	struct hw_told_hook hook;
	struct hw_past *past;
	char events[160];
	struct session *sessions;
	int64_t listed_ms;
	bool unlisted; /* the list could not be read */
};

static void go_on(struct session *s);

static int64_t now_ms(void)
{
	return hw_clock_mono().ns / HW_NS_PER_MS;
}

static const char *key_of(const char *kind, const char *client, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "s:%s:%s", kind, client);
	return key;
}

static const char *list_key(const struct hw_tasks_sessions *f, char key[HW_TASKS_KEY_MAX])
{
	return hw_tasks_store_key(f->app->store, "follow", key);
}

static int ask(struct hw_tasks_sessions *f, hw_tasks_answer_fn *fn, void *arg, const char *const *words)
{
	return hw_tasks_store_ask(f->app->store, fn, arg, words);
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

static struct session *find(const struct hw_tasks_sessions *f, struct hw_text client)
{
	for (struct session *s = f->sessions; s; s = s->next)
		if (strlen(s->client) == client.len && memcmp(s->client, client.at, client.len) == 0 && !s->gone)
			return s;
	return NULL;
}

static struct session *add(struct hw_tasks_sessions *f, struct hw_text client)
{
	struct session *s = find(f, client);
	if (s || client.len > HW_ID_MAX || !(s = calloc(1, sizeof(*s))))
		return s;
	s->all = f;
	memcpy(s->client, client.at, client.len);
	s->next = f->sessions;
	f->sessions = s;
	return s;
}

/* Those that are over, and of which no answer is awaited. */
static void reap(struct hw_tasks_sessions *f)
{
	for (struct session **at = &f->sessions; *at;) {
		struct session *s = *at;
		if (!s->gone || s->asking) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		free(s->filter);
		free(s);
	}
}

static void rewind_to_ack(struct session *s)
{
	s->read = s->acked;
	s->behind_ms = 0;
	s->n_sent = 0;
	s->again = true;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

static void quote(struct hw_text t, char out[QUOTED_MAX])
{
	if (hw_json_quote(t.len ? t.at : "", t.len, out, QUOTED_MAX) >= QUOTED_MAX)
		snprintf(out, QUOTED_MAX, "\"\"");
}

/* Sends `payload` under this id. False: later. */
static bool send_to(struct session *s, struct hw_place id, const char *action, const char *payload)
{
	struct hw_tasks_app *a = s->all->app;
	char text[2 * PAYLOAD_MAX], topic[HW_ID_MAX + 1100], place[HW_PLACE_TEXT], name[QUOTED_MAX], client[QUOTED_MAX];
	int64_t now_s = hw_tasks_store_now_ms(a->store) / 1000;
	quote((struct hw_text){a->conf->name, strlen(a->conf->name)}, name);
	quote((struct hw_text){s->client, strlen(s->client)}, client);
	int len = snprintf(text, sizeof(text),
	                   "{\"sender\":%s,\"receiver\":%s,\"msg_id\":\"%s\",\"action\":\"%s\",\"time\":%" PRId64
	                   ",\"exp\":%" PRId64 ",\"payload\":%s}",
	                   name, client, hw_place_text(id, place), action, now_s, now_s + 86400, payload);
	snprintf(topic, sizeof(topic), "%s/%s/pending", a->conf->root, s->client);
	if (len < 0 || (size_t)len >= sizeof(text))
		return true;
	if (hw_tasks_broker_publish(
		    a->broker,
		    &(struct hw_tasks_put){.topic = {topic, strlen(topic)},
	                                   .payload = {text, (size_t)len},
	                                   .qos = 1,
	                                   .subject = hw_tasks_subject((struct hw_text){topic, strlen(topic)},
	                                                               (struct hw_text){place, strlen(place)})},
		    NULL, NULL) != 0) {
		s->again = true; /* the tick goes on */
		return false;
	}
	if (s->n_sent == 0)
		s->sent_ms = now_ms();
	s->sent[s->n_sent++] = id;
	return true;
}

static bool send_event(struct session *s, struct hw_place id, const struct hw_told_device *d)
{
	char payload[PAYLOAD_MAX], device[QUOTED_MAX], group[QUOTED_MAX], node[QUOTED_MAX], reason[QUOTED_MAX];
	quote(d->device, device);
	quote(d->group, group);
	quote(d->node, node);
	quote(d->reason, reason);
	snprintf(payload, sizeof(payload),
	         "{\"id\":%s,\"state\":\"%.*s\",\"reason\":%s,\"time_ms\":%" PRId64 ",\"last_seen_ms\":%" PRId64
	         ",\"group\":%s,\"node\":%s,\"seq\":%.*s}",
	         device, (int)d->state.len, d->state.at, reason, d->time_ms, d->last_seen_ms, group, node,
	         d->seq.len ? (int)d->seq.len : 1, d->seq.len ? d->seq.at : "0");
	return send_to(s, id, "transition", payload);
}

static bool done_asking(struct session *s)
{
	s->asking--;
	return !s->gone && s->asking == 0;
}

/* --- what was trimmed --------------------------------------------------------------------------------------------- */

/* What lies up to this place was sent, or is not for this client. */
static void passed(struct session *s, struct hw_place place)
{
	s->behind_ms = 0;
	s->read = place;
	s->saved = false;
	s->again = true;
}

/* False: later. */
static bool send_gap(struct session *s, struct hw_place after, struct hw_place before, int64_t lost)
{
	char payload[200], from[HW_PLACE_TEXT], to[HW_PLACE_TEXT], number[24] = "null";
	if (lost >= 0)
		snprintf(number, sizeof(number), "%" PRId64, lost);
	snprintf(payload, sizeof(payload), "{\"after\":\"%s\",\"before\":\"%s\",\"lost\":%s}",
	         hw_place_text(after, from), hw_place_text(before, to), number);
	if (!send_to(s, hw_place_before(before), "gap", payload))
		return false;
	passed(s, hw_place_before(before));
	return true;
}

/* What history has, or says that nobody has, up to where the stream begins. Whether all of it went out. */
static bool send_past(struct session *s, struct hw_past_page *page)
{
	struct hw_past_item item;
	while (s->n_sent < UNACKED && hw_past_next(page, &item)) {
		if (hw_place_cmp(item.id, s->oldest) >= 0 && item.hole &&
		    hw_place_cmp(hw_place_next(item.after), s->oldest) < 0)
			return send_gap(s, item.after, s->oldest, -1);
		if (hw_place_cmp(item.id, s->oldest) >= 0) {
			passed(s, hw_place_before(s->oldest));
			return true;
		}
		if (item.hole && !send_gap(s, item.after, hw_place_next(item.id), item.lost))
			return false;
		if (!item.hole && hw_filter_matches(s->filter, &item.device) && !send_event(s, item.id, &item.device))
			return false;
		passed(s, item.id);
	}
	return s->n_sent < UNACKED;
}

/* History is of no use now: it may be starting, or about to read what was trimmed. What lies behind `after` is a gap
 * once it has been waited for. False: later. */
static bool wait_for_past(struct session *s, struct hw_place after)
{
	int64_t now = now_ms();
	if (s->behind_ms == 0) /* it has just given something */
		s->behind_ms = now;
	if (now - s->behind_ms >= BEHIND_MS)
		return send_gap(s, after, s->oldest, -1);
	s->later = true;
	return false;
}

/* It has nothing more before the stream's begin. If it has read that far, nothing more was there. False: later. */
static bool end_of_past(struct session *s, struct hw_place read)
{
	if (hw_place_cmp(read, s->oldest) < 0)
		return wait_for_past(s, hw_place_cmp(read, s->read) > 0 ? read : s->read);
	passed(s, hw_place_before(s->oldest));
	return true;
}

static void on_past(void *arg, struct hw_past_page *page)
{
	struct session *s = arg;
	if (!done_asking(s) || s->asleep_ms)
		return;
	if (hw_place_cmp(s->asked, s->read) != 0) { /* it begins elsewhere by now */
		s->later = true;
		return;
	}
	bool sent = page ? send_past(s, page) : wait_for_past(s, s->read);
	if (sent && page && !page->more && hw_place_cmp(hw_place_next(s->read), s->oldest) < 0)
		sent = end_of_past(s, page->read);
	else if (sent && page && hw_place_cmp(s->asked, s->read) == 0)
		sent = wait_for_past(s, s->read); /* there is more, but nothing of it can be read */
	if (sent)
		go_on(s);
}

static void bridge(struct session *s)
{
	int rc = hw_past_ask(s->all->past, s->read, on_past, s);
	s->asked = s->read;
	if (rc == 0 && s->behind_ms == 0)
		s->behind_ms = now_ms();
	if (rc == 0)
		s->asking++;
	else if (rc == -EBUSY)
		s->later = true;
	else if (send_gap(s, s->read, s->oldest, -1))
		go_on(s);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* The place of an element of a page of the stream; false: it has none. */
static bool place_at(const redisReply *page, size_t i, struct hw_place *out)
{
	const redisReply *e = page->element[i];
	return e->type == REDIS_REPLY_ARRAY && e->elements == 2 && e->element[0]->type == REDIS_REPLY_STRING &&
	       hw_place_read(out, e->element[0]->str, e->element[0]->len);
}

/* Whether entries behind the session's place were trimmed; one that follows from the start gets what there is. */
static bool is_trimmed(const struct session *s)
{
	bool from_start = s->read.ms == 0 && s->read.seq == 0;
	return !from_start && s->begins && hw_place_cmp(hw_place_next(s->read), s->oldest) < 0;
}

/* What EXEC answers to glance(): whether the client is known offline; the oldest entry that there is; a page from the
 * session's place on. NULL: it is of no use. */
static const redisReply *read_glance(struct session *s, const redisReply *reply)
{
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
		return NULL;
	const redisReply *offline = reply->element[0], *oldest = reply->element[1], *page = reply->element[2];
	if (offline->type == REDIS_REPLY_INTEGER)
		s->asleep_ms = offline->integer ? now_ms() : 0;
	s->begins = oldest->type == REDIS_REPLY_ARRAY && oldest->elements == 1 && place_at(oldest, 0, &s->oldest);
	return page->type == REDIS_REPLY_ARRAY ? page : NULL;
}

static void on_glance(void *arg, const redisReply *reply)
{
	struct session *s = arg;
	struct hw_told_device d;
	struct hw_place id;
	const redisReply *page = read_glance(s, reply);
	s->later |=
		reply && !page; /* Redis refuses something now: nothing of what has happened tells when it does not */
	if (!done_asking(s) || s->asleep_ms || !page)
		return;
	if (is_trimmed(s)) {
		bridge(s);
		return;
	}
	s->behind_ms = 0;
	for (size_t i = 0; i < page->elements && s->n_sent < UNACKED; i++) {
		if (!place_at(page, i, &id) || hw_place_cmp(id, s->read) <= 0)
			continue;
		/* What is no transition was written by somebody else. */
		if (hw_told_read_device(page->element[i], &d) && hw_filter_matches(s->filter, &d) &&
		    !send_event(s, id, &d))
			return;
		passed(s, id);
	}
	go_on(s);
}

/* Where the stream begins, and a page of it, at one moment: of what XADD MAXLEN trims in between nobody would hear. */
static int glance(struct session *s)
{
	struct hw_tasks_sessions *f = s->all;
	char offline[HW_ID_MAX + 300], from[HW_PLACE_TEXT];
	snprintf(offline, sizeof(offline), "%s%s", f->app->device_prefix, s->client);
	hw_place_text(hw_place_next(s->read), from);
	int rc = ask(f, NULL, NULL, (const char *[]){"MULTI", NULL});
	if (rc)
		return rc;
	rc = ask(f, NULL, NULL, (const char *[]){"EXISTS", offline, NULL});
	if (!rc)
		rc = ask(f, NULL, NULL, (const char *[]){"XRANGE", f->events, "-", "+", "COUNT", "1", NULL});
	if (!rc)
		rc = ask(f, NULL, NULL, (const char *[]){"XRANGE", f->events, from, "+", "COUNT", PAGE_TEXT, NULL});
	if (!rc)
		rc = ask(f, on_glance, s, (const char *[]){"EXEC", NULL});
	if (rc) /* the transaction would take in what others ask */
		hw_tasks_store_fail(f->app->store, "out of memory");
	return rc;
}

static bool is_ours(const struct session *s)
{
	return hw_schedule_rank(s->all->app->schedule, hw_schedule_receiver(s->client, strlen(s->client))) == 0;
}

static void go_on(struct session *s)
{
	struct hw_tasks_sessions *f = s->all;
	struct hw_tasks_app *a = f->app;
	if (s->asking || s->gone || !s->known || !s->again || s->later || s->asleep_ms || s->n_sent == UNACKED ||
	    !is_ours(s) || a->stopping || !hw_tasks_store_is_up(a->store) || !hw_tasks_broker_publishes(a->broker))
		return;
	s->again = false;
	s->asking += glance(s) == 0;
}

/* --- acks --------------------------------------------------------------------------------------------------------- */

static void save(struct session *s, struct hw_place place, bool lives)
{
	struct hw_tasks_sessions *f = s->all;
	char text[HW_PLACE_TEXT], key[KEY_MAX];
	(void)ask(f, NULL, NULL,
	          (const char *[]){"HSET", key_of("t", s->client, key), f->events, hw_place_text(place, text), NULL});
	s->saved = true;
	for (size_t i = 0; lives && i < 3; i++)
		(void)ask(f, NULL, NULL,
		          (const char *[]){"EXPIRE", key_of((const char *[]){"t", "s", "ol"}[i], s->client, key),
		                           SESSION_TTL, NULL});
}

/* All up to this place. */
static void acknowledged(struct session *s, struct hw_place place)
{
	size_t n = 0;
	s->acked = place;
	while (n < s->n_sent && hw_place_cmp(s->sent[n], place) <= 0)
		n++;
	memmove(s->sent, s->sent + n, (s->n_sent - n) * sizeof(*s->sent));
	s->n_sent -= n;
	s->sent_ms = now_ms();
	s->again = true;
}

static void on_ack(void *arg, struct hw_text from, struct hw_text msg_id)
{
	struct hw_tasks_sessions *f = arg;
	struct session *s = find(f, from);
	struct hw_place place;
	int64_t most_ms = hw_tasks_store_now_ms(f->app->store) + AHEAD_MS;
	if (!s || !s->known || !hw_place_read(&place, msg_id.at, msg_id.len) || hw_place_cmp(place, s->acked) <= 0 ||
	    (is_ours(s) && hw_place_cmp(place, s->read) > 0) || place.ms > (uint64_t)most_ms) {
		f->app->counts.refused[HW_REFUSED_UNKNOWN] += !s;
		return;
	}
	acknowledged(s, place);
	save(s, place, true);
	go_on(s);
}

/* --- what is kept ------------------------------------------------------------------------------------------------- */

/* The session as Redis has it: filter, then place. */
static void on_filter(void *arg, const redisReply *reply)
{
	struct session *s = arg;
	s->asking--;
	if (!reply || reply->type == REDIS_REPLY_ERROR)
		return;
	if (reply->type != REDIS_REPLY_STRING || !hw_json_object_valid(reply->str, reply->len)) {
		char key[HW_TASKS_KEY_MAX];
		s->gone = true;
		(void)ask(s->all, NULL, NULL, (const char *[]){"SREM", list_key(s->all, key), s->client, NULL});
		return;
	}
	free(s->filter);
	s->filter = strdup(reply->str);
}

static void on_offset(void *arg, const redisReply *reply)
{
	struct session *s = arg;
	struct hw_place place = {0, 0};
	if (!done_asking(s) || !s->filter || !reply || reply->type == REDIS_REPLY_ERROR)
		return;
	if (reply->type == REDIS_REPLY_STRING)
		(void)hw_place_read(&place, reply->str, reply->len);
	if (s->known && hw_place_cmp(place, s->acked) <= 0)
		return;
	if (s->known && hw_place_cmp(place, s->read) <= 0) {
		acknowledged(s, place); /* another instance has heard that */
	} else {
		s->known = true;
		s->acked = place;
		rewind_to_ack(s);
	}
	go_on(s);
}

static void load(struct session *s)
{
	struct hw_tasks_sessions *f = s->all;
	char key[KEY_MAX];
	if (s->asking || s->gone)
		return;
	s->asking += ask(f, on_filter, s, (const char *[]){"HGET", key_of("s", s->client, key), f->events, NULL}) == 0;
	s->asking += ask(f, on_offset, s, (const char *[]){"HGET", key_of("t", s->client, key), f->events, NULL}) == 0;
}

static void on_list(void *arg, const redisReply *reply)
{
	struct hw_tasks_sessions *f = arg;
	f->unlisted = !reply || reply->type != REDIS_REPLY_ARRAY;
	if (f->unlisted)
		return;
	for (struct session *s = f->sessions; s; s = s->next)
		s->listed = false;
	for (size_t i = 0; i < reply->elements; i++) {
		const redisReply *r = reply->element[i];
		struct session *s = r->type == REDIS_REPLY_STRING ? add(f, (struct hw_text){r->str, r->len}) : NULL;
		if (!s)
			continue;
		s->listed = true;
		load(s);
	}
	/* Another instance has heard that it is over, or its time is. */
	for (struct session *s = f->sessions; s; s = s->next)
		s->gone |= !s->listed;
}

static void list(struct hw_tasks_sessions *f)
{
	char key[HW_TASKS_KEY_MAX];
	f->listed_ms = now_ms();
	(void)ask(f, on_list, f, (const char *[]){"SMEMBERS", list_key(f, key), NULL});
}

/* --- follow, unfollow --------------------------------------------------------------------------------------------- */

struct asking {
	struct hw_tasks_sessions *all;
	char client[HW_ID_MAX + 1], msg_id[HW_TASK_MSG_ID_MAX + 1];
	char *filter;
	bool fresh; /* where it begins is not said: where it was, or with what comes now */
};

static void asking_free(struct asking *q)
{
	free(q->filter);
	free(q);
}

static void on_kept(void *arg, const redisReply *reply)
{
	struct asking *q = arg;
	struct hw_text client = {q->client, strlen(q->client)};
	if (reply && reply->type != REDIS_REPLY_ERROR) {
		struct session *s = q->filter ? add(q->all, client) : find(q->all, client);
		if (s && q->filter) {
			s->known = false;
			s->asleep_ms = 0;
			load(s);
		} else if (s) {
			s->gone = true;
		}
		hw_tasks_inbox_done(q->all->app->inbox, client, (struct hw_text){q->msg_id, strlen(q->msg_id)},
		                    (struct hw_text){"", 0});
	}
	asking_free(q);
}

/* Writes the session, its place last of all. */
static void keep(struct asking *q, const char *place)
{
	struct hw_tasks_sessions *f = q->all;
	char key[KEY_MAX], ol[2 * QUOTED_MAX + 200], quoted[QUOTED_MAX], names[HW_TASKS_KEY_MAX];
	quote((struct hw_text){q->client, strlen(q->client)}, quoted);
	snprintf(ol, sizeof(ol),
	         "{\"clientId\":%s,\"userName\":%s,\"clean\":false,\"serverId\":\"%.64s\",\"status\":\"online\","
	         "\"timestamp\":%" PRId64 "}",
	         quoted, quoted, f->app->conf->node_id, hw_tasks_store_now_ms(f->app->store));
	(void)ask(f, NULL, NULL, (const char *[]){"SET", key_of("ol", q->client, key), ol, "EX", SESSION_TTL, NULL});
	(void)ask(f, NULL, NULL, (const char *[]){"HSET", key_of("s", q->client, key), f->events, q->filter, NULL});
	(void)ask(f, NULL, NULL, (const char *[]){"EXPIRE", key_of("s", q->client, key), SESSION_TTL, NULL});
	(void)ask(f, NULL, NULL, (const char *[]){"SADD", list_key(f, names), q->client, NULL});
	(void)ask(f, NULL, NULL,
	          (const char *[]){q->fresh ? "HSETNX" : "HSET", key_of("t", q->client, key), f->events, place, NULL});
	if (ask(f, on_kept, q, (const char *[]){"EXPIRE", key_of("t", q->client, key), SESSION_TTL, NULL}) != 0)
		asking_free(q);
}

static void on_newest(void *arg, const redisReply *reply)
{
	struct asking *q = arg;
	const char *newest = "0-0";
	if (!reply || reply->type != REDIS_REPLY_ARRAY) {
		asking_free(q);
		return;
	}
	if (reply->elements == 1 && reply->element[0]->type == REDIS_REPLY_ARRAY && reply->element[0]->elements == 2)
		newest = reply->element[0]->element[0]->str;
	keep(q, newest);
}

static bool is(struct hw_text t, const char *word)
{
	return t.len == strlen(word) && memcmp(t.at, word, t.len) == 0;
}

static struct asking *asking_new(struct hw_tasks_sessions *f, struct hw_text sender, const struct hw_request *q)
{
	struct asking *k = sender.len <= HW_ID_MAX ? calloc(1, sizeof(*k)) : NULL;
	if (!k)
		return NULL;
	k->all = f;
	memcpy(k->client, sender.at, sender.len);
	memcpy(k->msg_id, q->msg_id.at, q->msg_id.len);
	return k;
}

static void on_follow(void *arg, struct hw_text sender, const struct hw_request *q)
{
	struct hw_tasks_sessions *f = arg;
	const struct hw_tasks_settings *c = f->app->conf;
	struct hw_text name = {c->name, strlen(c->name)}, action = {"follow", 6};
	char place[HW_PLACE_TEXT];
	if (!hw_allow_task(c->allow, c->n_allow, sender, action, name)) {
		f->app->counts.refused[HW_REFUSED_ALLOW]++;
		hw_tasks_inbox_refuse(f->app->inbox, sender, q->msg_id, "no [tasks] allow allows this");
		return;
	}
	struct asking *k = asking_new(f, sender, q);
	if (!k || !(k->filter = hw_filter_of(q))) {
		free(k);
		return;
	}
	k->fresh = q->from.len == 0;
	if (q->from.len && !is(q->from, "new")) {
		snprintf(place, sizeof(place), "%.*s", (int)q->from.len, is(q->from, "start") ? "0-0" : q->from.at);
		keep(k, is(q->from, "start") ? "0-0" : place);
	} else if (ask(f, on_newest, k, (const char *[]){"XREVRANGE", f->events, "+", "-", "COUNT", "1", NULL}) != 0) {
		asking_free(k);
	}
}

static void on_unfollow(void *arg, struct hw_text sender, const struct hw_request *q)
{
	struct hw_tasks_sessions *f = arg;
	char keys[3][KEY_MAX], names[HW_TASKS_KEY_MAX];
	struct asking *k = asking_new(f, sender, q);
	if (!k)
		return;
	(void)ask(f, NULL, NULL, (const char *[]){"SREM", list_key(f, names), k->client, NULL});
	if (ask(f, on_kept, k,
	        (const char *[]){"DEL", key_of("ol", k->client, keys[0]), key_of("s", k->client, keys[1]),
	                         key_of("t", k->client, keys[2]), NULL}) != 0)
		asking_free(k);
}

/* --- time, life --------------------------------------------------------------------------------------------------- */

static void on_device(void *arg, const struct hw_told_device *d)
{
	struct hw_tasks_sessions *f = arg;
	const char *prefix = f->app->conf->id_prefix;
	size_t len = strlen(prefix);
	for (struct session *s = f->sessions; s; s = s->next) {
		if (d->device.len == len + strlen(s->client) && memcmp(d->device.at, prefix, len) == 0 &&
		    memcmp(d->device.at + len, s->client, strlen(s->client)) == 0 && s->asleep_ms &&
		    is(d->state, "online")) {
			s->asleep_ms = 0;
			rewind_to_ack(s);
		}
		s->again = true;
		go_on(s);
	}
}

static void on_up(void *arg)
{
	struct hw_tasks_sessions *f = arg;
	for (struct session *s = f->sessions; s; s = s->next)
		s->known = false;
	list(f);
}

void hw_tasks_sessions_tick(struct hw_tasks_sessions *f)
{
	int64_t now = now_ms();
	reap(f);
	if (!hw_tasks_store_is_up(f->app->store))
		return;
	if (f->unlisted || now - f->listed_ms >= LOOK_MS)
		list(f);
	for (struct session *s = f->sessions; s; s = s->next) {
		/* An answer was still awaited when it was to be read anew. */
		if (!s->known)
			load(s);
		if (s->asleep_ms && now - s->asleep_ms >= LOOK_MS) {
			s->asleep_ms = 0;
			rewind_to_ack(s);
		} else if (s->n_sent && !s->asking && now - s->sent_ms >= f->app->conf->ack_wait_ms) {
			rewind_to_ack(s);
		} else if (s->known && !s->n_sent && !s->saved && !s->asking && hw_place_cmp(s->read, s->acked) > 0) {
			s->acked = s->read; /* nothing of it was for this client */
			save(s, s->read, false);
		}
		s->again |= s->later;
		s->later = false;
		go_on(s);
		/* Others' instances hear acks as well; by the next tick it is answered. */
		if (f->app->conf->several && s->n_sent)
			load(s);
	}
}

struct hw_tasks_sessions *hw_tasks_sessions_new(struct hw_tasks_app *app)
{
	struct hw_tasks_sessions *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->past = hw_past_new(app->loop.base, app->conf->history_socket);
	if (!f->past) {
		free(f);
		return NULL;
	}
	f->app = app;
	snprintf(f->events, sizeof(f->events), "%sevents", app->conf->redis.key_prefix);
	f->hook = (struct hw_told_hook){.on_device = on_device, .on_up = on_up, .arg = f};
	hw_told_join(app->told, &f->hook);
	hw_tasks_inbox_take(app->inbox, HW_REQUEST_FOLLOW, on_follow, f);
	hw_tasks_inbox_take(app->inbox, HW_REQUEST_UNFOLLOW, on_unfollow, f);
	hw_tasks_inbox_take_strays(app->inbox, on_ack, f);
	return f;
}

void hw_tasks_sessions_free(struct hw_tasks_sessions *f)
{
	if (!f)
		return;
	hw_past_free(f->past);
	for (struct session *s = f->sessions; s; s = s->next) {
		s->gone = true;
		s->asking = 0;
	}
	reap(f);
	free(f);
}
