/* SPDX-License-Identifier: MIT */
/*
 * See sessions.h. A session is current, or it lags. The current ones have read the stream as far as `tail`: one reader
 * serves them all, and the table (followers.h) names those that a transition concerns. A session that lags reads by
 * itself, page by page: after a start, when a full window stopped it, and when it sends again. It is current as soon
 * as a page holds the last entry of the stream.
 * Cost: one transaction for each news of the stream, whatever the number of followers; one for each page of a session
 * that lags, of which GLANCES_MAX are under way at a time; an HSET for each ack. Of what was sent a session keeps a
 * count and every tenth id: to send again is to read again from the last ack on.
 *
 * Invariant: answers come in the order of their questions, on one connection. So when a session's last page arrives,
 * the session has read at least as far as `tail`.
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
#include <sys/queue.h>

#include "heartwheel/bounds.h"
#include "heartwheel/json.h"
#include "heartwheel/report.h"
#include "heartwheel/topic.h"
#include "link/clock.h"
#include "tasks/allow.h"
#include "tasks/app.h"
#include "tasks/filter.h"
#include "tasks/followers.h"
#include "tasks/past.h"
#include "tasks/place.h"

#define UNACKED      100
#define MARK_EVERY   10
#define PAGE         100
#define PAGE_TEXT    "100"
#define TAIL         500
#define TAIL_TEXT    "500"
#define SESSION_TTL  "2592000" /* s: 30 days */
#define LIST_S       10        /* with several instances, and when the list could not be read */
#define LIST_ALONE_S 60        /* an instance that is alone: the list, and each session, are read again so often */
#define GLANCES_MAX  32        /* pages that are asked for at a time */
#define LOADS_MAX    256       /* sessions that are loaded at a time */
#define ROOM         (HW_BROKER_WAITING_MAX / 2) /* the other half is left to transitions as they come, and to tasks */
#define SLOW_MS      1000
#define BEHIND_MS    10000 /* so long history may have nothing new of what was trimmed */
#define AHEAD_MS     60000 /* of Redis' clock: no event has such an id */
#define KEY_MAX      (HW_ID_MAX + 8)
#define QUOTED_MAX   (HW_ID_MAX * 6 + 3)
#define PAYLOAD_MAX  8192

/* What is sent and not acknowledged: how many, and the id of each tenth. */
struct window {
	struct hw_place marks[UNACKED / MARK_EVERY], last;
	unsigned n; /* up to nine more than there are, after an ack of a part */
};

struct session {
	struct hw_follower base;
	struct hw_tasks_sessions *all;
	struct hw_place acked;
	struct hw_place read; /* of one that is current: or the tail, if that is later */
	struct window sent;
	struct hw_place oldest;     /* entry of the stream, as it was asked for last */
	struct hw_place asked;      /* of history: what lies behind it */
	int64_t sent_ms, asleep_ms; /* monotonic: the first of `sent`; since when it is known offline, 0: it is not */
	int64_t behind_ms;          /* monotonic: since when history is asked in vain; 0: it is not */
	int64_t ends_ms;            /* Redis' clock: when an unproven one ends; 0: nothing was sent to it */
	unsigned asking;            /* answers that are awaited */
	unsigned timeouts;          /* how often in a row nothing was acknowledged */
	bool known;                 /* its place was read */
	bool unproven;              /* it has acknowledged nothing since it followed */
	bool current;
	bool begins; /* `oldest` was */
	bool later;  /* the next tick goes on */
	bool again, gone, listed;
	bool is_queued, is_loading; /* it waits for its turn in `glances`, in `loads` */
	STAILQ_ENTRY(session) queue, load_queue;
	char client[];
};
STAILQ_HEAD(queue, session);

struct hw_tasks_sessions {
	struct hw_tasks_app *app;
	struct hw_told_hook hook;
	struct hw_past *past;
	char events[160];
	struct hw_followers table;
	struct queue glances, resends; /* that want a page; the second ones are slow */
	struct queue loads;
	size_t n_glances, n_loads; /* under way */
	size_t n_current;
	size_t n_new;                     /* that have asked to follow and stand in the table soon */
	struct hw_place tail, tail_asked; /* of the current ones */
	bool tail_due, tail_asking;
	int64_t listed_ms, left_out_ms;
	unsigned ticks;
	bool unlisted; /* the list could not be read */
};

static void go_on(struct session *s);
static void pump(struct hw_tasks_sessions *f);
static void read_tail(struct hw_tasks_sessions *f);
static void on_glance(void *arg, const redisReply *reply);

static int64_t now_ms(void)
{
	return hw_clock_mono().ns / HW_NS_PER_MS;
}

static bool is(struct hw_text t, const char *word)
{
	return t.len == strlen(word) && memcmp(t.at, word, t.len) == 0;
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

static const char *new_key(const struct hw_tasks_sessions *f, char key[HW_TASKS_KEY_MAX])
{
	return hw_tasks_store_key(f->app->store, "follow:new", key);
}

static struct session *first_of(const struct hw_tasks_sessions *f)
{
	return (struct session *)f->table.first;
}

static struct session *next_of(const struct session *s)
{
	return (struct session *)s->base.next;
}

static struct session *find(const struct hw_tasks_sessions *f, struct hw_text client)
{
	struct session *s = (struct session *)hw_followers_find(&f->table, client);
	return s && !s->gone ? s : NULL;
}

size_t hw_tasks_sessions_count(const struct hw_tasks_sessions *f)
{
	return f->table.clients.n;
}

size_t hw_tasks_sessions_count_current(const struct hw_tasks_sessions *f)
{
	return f->n_current;
}

/* Whether one more is too many. */
static bool is_full(const struct hw_tasks_sessions *f)
{
	return f->table.clients.n + f->n_new >= (size_t)f->app->conf->max_followers;
}

/* How far it has read. */
static struct hw_place read_of(const struct session *s)
{
	return s->current && hw_place_cmp(s->all->tail, s->read) > 0 ? s->all->tail : s->read;
}

static void set_current(struct session *s, bool current)
{
	struct hw_tasks_sessions *f = s->all;
	s->read = read_of(s);
	if (s->current == current)
		return;
	if (current && f->n_current == 0)
		f->tail = s->read;
	s->current = current;
	f->n_current = current ? f->n_current + 1 : f->n_current - 1;
}

static struct session *add(struct hw_tasks_sessions *f, struct hw_text client)
{
	struct session *s = (struct session *)hw_followers_find(&f->table, client);
	if (s && s->gone) { /* it begins again */
		set_current(s, false);
		s->gone = s->known = s->unproven = false;
		s->ends_ms = s->asleep_ms = 0;
		s->timeouts = 0;
	}
	if (s)
		return s;
	if (client.len > HW_ID_MAX || memchr(client.at, '\0', client.len) ||
	    !(s = calloc(1, sizeof(*s) + client.len + 1)))
		return NULL;
	s->all = f;
	memcpy(s->client, client.at, client.len);
	s->base.client = s->client;
	if (hw_followers_add(&f->table, &s->base) != 0) {
		free(s);
		return NULL;
	}
	return s;
}

/* Those that are over, and of which no answer is awaited. */
static void reap(struct hw_tasks_sessions *f)
{
	for (struct hw_follower **at = &f->table.first; *at;) {
		struct session *s = (struct session *)*at;
		if (s->gone)
			set_current(s, false);
		if (!s->gone || s->asking || s->is_queued || s->is_loading) {
			at = &s->base.next;
			continue;
		}
		hw_followers_remove(&f->table, at);
		free(s);
	}
}

static void rewind_to_ack(struct session *s)
{
	set_current(s, false);
	s->read = s->acked;
	s->behind_ms = 0;
	s->sent.n = 0;
	s->again = true;
}

static void sleep_now(struct session *s)
{
	set_current(s, false);
	s->asleep_ms = now_ms();
}

/* Its client is not known offline any more. */
static void wake(struct session *s)
{
	char key[HW_TASKS_KEY_MAX];
	if (!s->asleep_ms)
		return;
	s->asleep_ms = 0;
	s->timeouts = 0;
	s->ends_ms = 0;
	if (s->unproven)
		(void)ask(s->all, NULL, NULL,
		          (const char *[]){"ZADD", new_key(s->all, key), "XX", "+inf", s->client, NULL});
	rewind_to_ack(s);
}

/* --- the window --------------------------------------------------------------------------------------------------- */

static void window_put(struct window *w, struct hw_place id)
{
	w->last = id;
	if (++w->n % MARK_EVERY == 0)
		w->marks[w->n / MARK_EVERY - 1] = id;
}

/* All up to this place is acknowledged. */
static void window_ack(struct window *w, struct hw_place place)
{
	unsigned n = 0, marks = w->n / MARK_EVERY;
	if (hw_place_cmp(w->last, place) <= 0) {
		w->n = 0;
		return;
	}
	while (n < marks && hw_place_cmp(w->marks[n], place) <= 0)
		n++;
	memmove(w->marks, w->marks + n, (marks - n) * sizeof(*w->marks));
	w->n -= n * MARK_EVERY;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

static void quote(struct hw_text t, char out[QUOTED_MAX])
{
	if (hw_json_quote(t.len ? t.at : "", t.len, out, QUOTED_MAX) >= QUOTED_MAX)
		snprintf(out, QUOTED_MAX, "\"\"");
}

/* An unproven session was sent something: its time begins. */
static void end_later(struct session *s)
{
	struct hw_tasks_sessions *f = s->all;
	char key[HW_TASKS_KEY_MAX], score[24];
	s->ends_ms = hw_tasks_store_now_ms(f->app->store) + f->app->conf->follow_expire_ms;
	snprintf(score, sizeof(score), "%" PRId64, s->ends_ms);
	(void)ask(f, NULL, NULL, (const char *[]){"ZADD", new_key(f, key), "XX", score, s->client, NULL});
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
	if (s->sent.n == 0)
		s->sent_ms = now_ms();
	window_put(&s->sent, id);
	if (s->unproven && !s->ends_ms)
		end_later(s);
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
	while (s->sent.n < UNACKED && hw_past_next(page, &item)) {
		if (hw_place_cmp(item.id, s->oldest) >= 0 && item.hole &&
		    hw_place_cmp(hw_place_next(item.after), s->oldest) < 0)
			return send_gap(s, item.after, s->oldest, -1);
		if (hw_place_cmp(item.id, s->oldest) >= 0) {
			passed(s, hw_place_before(s->oldest));
			return true;
		}
		if (item.hole && !send_gap(s, item.after, hw_place_next(item.id), item.lost))
			return false;
		if (!item.hole && hw_filter_matches(s->base.filter, &item.device) &&
		    !send_event(s, item.id, &item.device))
			return false;
		passed(s, item.id);
	}
	return s->sent.n < UNACKED;
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

/* Whether entries behind a place were trimmed; who reads from the start gets what there is. */
static bool is_trimmed_after(struct hw_place read, struct hw_place oldest)
{
	bool from_start = read.ms == 0 && read.seq == 0;
	return !from_start && hw_place_cmp(hw_place_next(read), oldest) < 0;
}

/* What EXEC answers to glance(): whether the client is known offline; the oldest entry that there is; a page from the
 * session's place on. NULL: it is of no use. */
static const redisReply *read_glance(struct session *s, const redisReply *reply)
{
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
		return NULL;
	const redisReply *offline = reply->element[0], *oldest = reply->element[1], *page = reply->element[2];
	if (offline->type == REDIS_REPLY_INTEGER && offline->integer) /* if not: a transition may say so already */
		s->asleep_ms = now_ms();
	s->begins = oldest->type == REDIS_REPLY_ARRAY && oldest->elements == 1 && place_at(oldest, 0, &s->oldest);
	return page->type == REDIS_REPLY_ARRAY ? page : NULL;
}

static void take_glance(struct session *s, const redisReply *reply)
{
	struct hw_told_device d;
	struct hw_place id;
	const redisReply *page = read_glance(s, reply);
	s->all->n_glances--;
	s->later |= reply && !page; /* Redis refuses something now: no event says when it does not */
	if (!done_asking(s) || !s->known || s->asleep_ms || !page)
		return;
	if (s->begins && is_trimmed_after(s->read, s->oldest)) {
		bridge(s);
		return;
	}
	s->behind_ms = 0;
	for (size_t i = 0; i < page->elements; i++) {
		if (!place_at(page, i, &id) || hw_place_cmp(id, s->read) <= 0)
			continue;
		if (s->sent.n == UNACKED)
			return;
		/* What is no transition was written by somebody else. */
		if (hw_told_read_device(page->element[i], &d) && hw_filter_matches(s->base.filter, &d) &&
		    !send_event(s, id, &d))
			return;
		passed(s, id);
	}
	if (page->elements < PAGE)
		set_current(s, true);
	if (s->all->tail_due)
		read_tail(s->all);
	go_on(s);
}

static void on_glance(void *arg, const redisReply *reply)
{
	struct session *s = arg;
	struct hw_tasks_sessions *f = s->all;
	take_glance(s, reply);
	pump(f);
}

/* Where the stream begins, and a page of it after `read`, at one moment: of what XADD MAXLEN trims in between nobody
 * would hear. `offline`, if it is not NULL, is a key of which it is asked first whether there is one. */
static int ask_page(struct hw_tasks_sessions *f, struct hw_place read, const char *count, const char *offline,
                    hw_tasks_answer_fn *fn, void *arg)
{
	char from[HW_PLACE_TEXT];
	hw_place_text(hw_place_next(read), from);
	int rc = ask(f, NULL, NULL, (const char *[]){"MULTI", NULL});
	if (rc)
		return rc;
	if (offline)
		rc = ask(f, NULL, NULL, (const char *[]){"EXISTS", offline, NULL});
	if (!rc)
		rc = ask(f, NULL, NULL, (const char *[]){"XRANGE", f->events, "-", "+", "COUNT", "1", NULL});
	if (!rc)
		rc = ask(f, NULL, NULL, (const char *[]){"XRANGE", f->events, from, "+", "COUNT", count, NULL});
	if (!rc)
		rc = ask(f, fn, arg, (const char *[]){"EXEC", NULL});
	if (rc) /* the transaction would take in what others ask */
		hw_tasks_store_fail(f->app->store, "out of memory");
	return rc;
}

#define OFFLINE_MAX (HW_ID_MAX + 300)
static const char *offline_key(const struct session *s, char key[OFFLINE_MAX])
{
	snprintf(key, OFFLINE_MAX, "%s%s", s->all->app->device_prefix, s->client);
	return key;
}

static int glance(struct session *s)
{
	char key[OFFLINE_MAX];
	return ask_page(s->all, s->read, PAGE_TEXT, offline_key(s, key), on_glance, s);
}

static bool is_ours(const struct session *s)
{
	return hw_schedule_rank(s->all->app->schedule, hw_schedule_receiver(s->client, strlen(s->client))) == 0;
}

static bool can_send(const struct hw_tasks_sessions *f)
{
	const struct hw_tasks_app *a = f->app;
	return !a->stopping && hw_tasks_store_is_up(a->store) && hw_tasks_broker_publishes(a->broker);
}

static bool wants_page(const struct session *s)
{
	return s->again && !s->current && !s->asking && !s->gone && s->known && !s->later && !s->asleep_ms &&
	       s->sent.n < UNACKED && is_ours(s);
}

/* Whether others come first: its client has acknowledged nothing for a while. */
static bool is_slow(const struct session *s)
{
	return s->timeouts || (s->sent.n && now_ms() - s->sent_ms >= SLOW_MS);
}

static bool has_room(const struct hw_tasks_sessions *f)
{
	return hw_tasks_broker_waiting(f->app->broker) < ROOM && hw_tasks_broker_has_room(f->app->broker);
}

/* Those whose clients acknowledge come first. */
static struct session *next_queued(struct hw_tasks_sessions *f)
{
	struct queue *q = STAILQ_EMPTY(&f->glances) ? &f->resends : &f->glances;
	struct session *s = STAILQ_FIRST(q);
	if (!s)
		return NULL;
	STAILQ_REMOVE_HEAD(q, queue);
	s->is_queued = false;
	return s;
}

static void pump(struct hw_tasks_sessions *f)
{
	struct session *s;
	while (can_send(f) && f->n_glances < GLANCES_MAX && has_room(f) && (s = next_queued(f))) {
		if (!wants_page(s) || glance(s) != 0)
			continue;
		s->again = false;
		s->asking++;
		f->n_glances++;
	}
}

static void go_on(struct session *s)
{
	struct hw_tasks_sessions *f = s->all;
	if (s->is_queued || !wants_page(s) || !can_send(f))
		return;
	if (is_slow(s))
		STAILQ_INSERT_TAIL(&f->resends, s, queue);
	else
		STAILQ_INSERT_TAIL(&f->glances, s, queue);
	s->is_queued = true;
	pump(f);
}

/* --- the tail ----------------------------------------------------------------------------------------------------- */

/* A transition of a client that is a device itself. */
static void note_client(struct hw_tasks_sessions *f, const struct hw_told_device *d)
{
	size_t len = strlen(f->app->conf->id_prefix);
	if (d->device.len <= len || memcmp(d->device.at, f->app->conf->id_prefix, len) != 0)
		return;
	struct session *s = find(f, (struct hw_text){d->device.at + len, d->device.len - len});
	if (s && is(d->state, "offline")) {
		sleep_now(s);
	} else if (s && s->asleep_ms) {
		wake(s);
		go_on(s);
	}
}

struct news {
	struct hw_place id;
	const struct hw_told_device *device;
};

static void send_news(void *arg, struct hw_follower *base)
{
	struct session *s = (struct session *)base;
	const struct news *n = arg;
	if (!s->current || s->gone || hw_place_cmp(n->id, s->read) <= 0)
		return;
	if (s->sent.n == UNACKED || !is_ours(s) || (is_slow(s) && !has_room(s->all)) ||
	    !send_event(s, n->id, n->device)) {
		set_current(s, false);
		s->again = true;
		go_on(s);
	} else {
		s->read = n->id;
	}
}

/* EXEC: the oldest entry that there is; a page after `tail_asked`. Whether there may be more. */
static bool take_tail(struct hw_tasks_sessions *f, const redisReply *reply)
{
	struct hw_place oldest, id;
	struct hw_told_device d;
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || f->n_current == 0 ||
	    reply->element[0]->type != REDIS_REPLY_ARRAY || reply->element[1]->type != REDIS_REPLY_ARRAY)
		return false;
	if (hw_place_cmp(f->tail_asked, f->tail) != 0)
		return true;
	const redisReply *page = reply->element[1];
	bool begins = reply->element[0]->elements == 1 && place_at(reply->element[0], 0, &oldest);
	if (begins && is_trimmed_after(f->tail, oldest)) {
		/* Something may have been trimmed: each finds out by itself. */
		for (struct session *s = first_of(f); s; s = next_of(s)) {
			s->again |= s->current;
			set_current(s, false);
			go_on(s);
		}
		return false;
	}
	for (size_t i = 0; i < page->elements; i++) {
		if (!place_at(page, i, &id) || hw_place_cmp(id, f->tail) <= 0)
			continue;
		if (hw_told_read_device(page->element[i], &d)) {
			note_client(f, &d);
			hw_followers_match(&f->table, &d, send_news, &(struct news){id, &d});
		}
		f->tail = id;
	}
	return page->elements >= TAIL;
}

static void on_tail(void *arg, const redisReply *reply)
{
	struct hw_tasks_sessions *f = arg;
	f->tail_asking = false;
	/* Where Redis refuses, nothing tells when it does not: the tick asks again. */
	bool refused = reply && (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2);
	bool more = take_tail(f, reply);
	if (more || (f->tail_due && !refused))
		read_tail(f);
	f->tail_due |= refused;
}

static void read_tail(struct hw_tasks_sessions *f)
{
	f->tail_due = true;
	if (f->tail_asking || f->n_current == 0 || !can_send(f))
		return;
	f->tail_due = false;
	f->tail_asked = f->tail;
	f->tail_asking = ask_page(f, f->tail, TAIL_TEXT, NULL, on_tail, f) == 0;
}

/* --- acks --------------------------------------------------------------------------------------------------------- */

static void pump_loads(struct hw_tasks_sessions *f);

static void save(struct session *s, struct hw_place place, bool lives)
{
	struct hw_tasks_sessions *f = s->all;
	char text[HW_PLACE_TEXT], key[KEY_MAX];
	(void)ask(f, NULL, NULL,
	          (const char *[]){"HSET", key_of("t", s->client, key), f->events, hw_place_text(place, text), NULL});
	for (size_t i = 0; lives && i < 3; i++)
		(void)ask(f, NULL, NULL,
		          (const char *[]){"EXPIRE", key_of((const char *[]){"t", "s", "ol"}[i], s->client, key),
		                           SESSION_TTL, NULL});
}

/* All up to this place. */
static void acknowledged(struct session *s, struct hw_place place)
{
	char key[HW_TASKS_KEY_MAX];
	if (s->unproven || s->asking)
		(void)ask(s->all, NULL, NULL, (const char *[]){"ZREM", new_key(s->all, key), s->client, NULL});
	s->unproven = false;
	s->ends_ms = 0;
	s->acked = place;
	window_ack(&s->sent, place);
	s->sent_ms = now_ms();
	s->timeouts = 0;
	s->again = true;
}

static void on_ack(void *arg, struct hw_text from, struct hw_text msg_id)
{
	struct hw_tasks_sessions *f = arg;
	struct session *s = find(f, from);
	struct hw_place place;
	uint64_t most_ms = (uint64_t)(hw_tasks_store_now_ms(f->app->store) + AHEAD_MS);
	if (!s || !s->known || !hw_place_read(&place, msg_id.at, msg_id.len) || hw_place_cmp(place, s->acked) <= 0 ||
	    (is_ours(s) && hw_place_cmp(place, read_of(s)) > 0) || place.ms > most_ms) {
		f->app->counts.refused[HW_REFUSED_UNKNOWN] += !s;
		return;
	}
	acknowledged(s, place);
	save(s, place, true);
	go_on(s);
}

/* --- what is kept ------------------------------------------------------------------------------------------------- */

/* The session as Redis has it: whether it has acknowledged anything, whether its client is offline, filter, place. */
static void on_unproven(void *arg, const redisReply *reply)
{
	struct session *s = arg;
	s->asking--;
	if (!reply || reply->type == REDIS_REPLY_ERROR)
		return;
	s->unproven = reply->type == REDIS_REPLY_STRING;
	double ends = s->unproven ? strtod(reply->str, NULL) : 0; /* +inf: nothing was sent to it */
	s->ends_ms = ends > 0 && ends < 1e15 ? (int64_t)ends : 0;
}

static void on_offline(void *arg, const redisReply *reply)
{
	struct session *s = arg;
	s->asking--;
	if (!reply || reply->type != REDIS_REPLY_INTEGER)
		return;
	if (!reply->integer)
		wake(s);
	else if (!s->asleep_ms)
		sleep_now(s);
}

static void on_filter(void *arg, const redisReply *reply)
{
	struct session *s = arg;
	s->asking--;
	if (!reply || reply->type == REDIS_REPLY_ERROR)
		return;
	if (reply->type != REDIS_REPLY_STRING || !hw_bounds_json(reply->str, reply->len) ||
	    !hw_json_object_valid(reply->str, reply->len)) {
		char key[HW_TASKS_KEY_MAX];
		s->gone = true;
		(void)ask(s->all, NULL, NULL, (const char *[]){"SREM", list_key(s->all, key), s->client, NULL});
		(void)ask(s->all, NULL, NULL, (const char *[]){"ZREM", new_key(s->all, key), s->client, NULL});
		return;
	}
	(void)hw_followers_set_filter(&s->all->table, &s->base, reply->str);
}

static void take_offset(struct session *s, const redisReply *reply)
{
	struct hw_place place = {0, 0};
	if (!done_asking(s) || !s->base.filter || !reply || reply->type == REDIS_REPLY_ERROR)
		return;
	if (reply->type == REDIS_REPLY_STRING)
		(void)hw_place_read(&place, reply->str, reply->len);
	if (s->known && hw_place_cmp(place, s->acked) > 0 && hw_place_cmp(place, read_of(s)) <= 0) {
		acknowledged(s, place); /* another instance has heard that */
	} else if (!s->known || hw_place_cmp(place, s->acked) > 0) {
		s->known = true;
		s->acked = place;
		rewind_to_ack(s);
	}
	go_on(s);
}

static void on_offset(void *arg, const redisReply *reply)
{
	struct session *s = arg;
	struct hw_tasks_sessions *f = s->all;
	f->n_loads--;
	take_offset(s, reply);
	pump_loads(f);
}

static void ask_session(struct session *s)
{
	struct hw_tasks_sessions *f = s->all;
	char key[KEY_MAX], name[HW_TASKS_KEY_MAX], offline[OFFLINE_MAX];
	s->asking += ask(f, on_unproven, s, (const char *[]){"ZSCORE", new_key(f, name), s->client, NULL}) == 0;
	s->asking += ask(f, on_offline, s, (const char *[]){"EXISTS", offline_key(s, offline), NULL}) == 0;
	s->asking += ask(f, on_filter, s, (const char *[]){"HGET", key_of("s", s->client, key), f->events, NULL}) == 0;
	if (ask(f, on_offset, s, (const char *[]){"HGET", key_of("t", s->client, key), f->events, NULL}) != 0)
		return;
	s->asking++;
	f->n_loads++;
}

static void pump_loads(struct hw_tasks_sessions *f)
{
	struct session *s;
	while (f->n_loads < LOADS_MAX && hw_tasks_store_is_up(f->app->store) && (s = STAILQ_FIRST(&f->loads))) {
		STAILQ_REMOVE_HEAD(&f->loads, load_queue);
		s->is_loading = false;
		if (!s->asking && !s->gone)
			ask_session(s);
	}
}

static void load(struct session *s)
{
	struct hw_tasks_sessions *f = s->all;
	if (s->is_loading || s->asking || s->gone)
		return;
	s->is_loading = true;
	STAILQ_INSERT_TAIL(&f->loads, s, load_queue);
	pump_loads(f);
}

/* Redis has more of them than there may be: those that are known are served, and as many others as fit. */
static void left_out(struct hw_tasks_sessions *f, size_t n)
{
	int64_t now = now_ms();
	if (n == 0 || (f->left_out_ms && now - f->left_out_ms < 600000))
		return;
	f->left_out_ms = now;
	hw_log(f->app->log, HW_LOG_WARNING,
	       "follow: %zu followers are not served: there are more than max_followers = %" PRId64 " in [tasks]", n,
	       f->app->conf->max_followers);
}

static void on_list(void *arg, const redisReply *reply)
{
	struct hw_tasks_sessions *f = arg;
	size_t n_out = 0;
	f->unlisted = !reply || reply->type != REDIS_REPLY_ARRAY;
	if (f->unlisted)
		return;
	for (struct session *s = first_of(f); s; s = next_of(s))
		s->listed = false;
	for (size_t i = 0; i < reply->elements; i++) {
		const redisReply *r = reply->element[i];
		struct hw_text client = {r->type == REDIS_REPLY_STRING ? r->str : "", r->len};
		bool fits = r->type == REDIS_REPLY_STRING && (find(f, client) || !is_full(f));
		struct session *s = fits ? add(f, client) : NULL;
		n_out += !fits;
		if (!s)
			continue;
		s->listed = true;
		if (!s->known)
			load(s);
	}
	/* Another instance has heard that it is over, or its time is. */
	for (struct session *s = first_of(f); s; s = next_of(s))
		s->gone |= !s->listed;
	left_out(f, n_out);
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
	bool fresh;  /* where it begins is not said: where it was, or with what comes now */
	bool is_new; /* counted in n_new */
};

static void asking_free(struct asking *q)
{
	q->all->n_new -= q->is_new;
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
			s->timeouts = 0;
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
	(void)ask(f, NULL, NULL, (const char *[]){"ZADD", new_key(f, names), "NX", "+inf", q->client, NULL});
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
	char place[HW_PLACE_TEXT], why[100];
	if (!hw_allow_task(c->allow, c->n_allow, sender, action, name)) {
		f->app->counts.refused[HW_REFUSED_ALLOW]++;
		hw_tasks_inbox_refuse(f->app->inbox, sender, q->msg_id, "no [tasks] allow allows this");
		return;
	}
	bool is_new = !find(f, sender);
	if (is_new && is_full(f)) {
		snprintf(why, sizeof(why), "too many clients follow devices: [tasks] max_followers = %" PRId64,
		         c->max_followers);
		f->app->counts.refused[HW_REFUSED_FULL]++;
		hw_tasks_inbox_refuse(f->app->inbox, sender, q->msg_id, why);
		return;
	}
	struct asking *k = asking_new(f, sender, q);
	if (!k || !(k->filter = hw_filter_of(q))) {
		free(k);
		return;
	}
	k->is_new = is_new;
	f->n_new += is_new;
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
	(void)ask(f, NULL, NULL, (const char *[]){"ZREM", new_key(f, names), k->client, NULL});
	if (ask(f, on_kept, k,
	        (const char *[]){"DEL", key_of("ol", k->client, keys[0]), key_of("s", k->client, keys[1]),
	                         key_of("t", k->client, keys[2]), NULL}) != 0)
		asking_free(k);
}

/* --- time, life --------------------------------------------------------------------------------------------------- */

static void on_device(void *arg, const struct hw_told_device *d)
{
	note_client(arg, d);
	read_tail(arg);
}

static void on_up(void *arg)
{
	struct hw_tasks_sessions *f = arg;
	for (struct session *s = first_of(f); s; s = next_of(s)) {
		set_current(s, false);
		s->known = false;
	}
	list(f);
}

/* It was sent something and has acknowledged nothing: its client did not mean it, or is no more. */
static void expire(struct session *s)
{
	struct hw_tasks_sessions *f = s->all;
	char keys[3][KEY_MAX], name[HW_TASKS_KEY_MAX];
	(void)ask(f, NULL, NULL, (const char *[]){"SREM", list_key(f, name), s->client, NULL});
	(void)ask(f, NULL, NULL, (const char *[]){"ZREM", new_key(f, name), s->client, NULL});
	(void)ask(f, NULL, NULL,
	          (const char *[]){"DEL", key_of("ol", s->client, keys[0]), key_of("s", s->client, keys[1]),
	                           key_of("t", s->client, keys[2]), NULL});
	hw_log(f->app->log, HW_LOG_INFO, "follow: the session of '%s' ended: its client acknowledged nothing",
	       s->client);
	f->app->counts.followers_expired++;
	s->gone = true;
}

/* How long it waits for an ack: twice as long after each time in vain. */
static int64_t wait_ms(const struct session *s)
{
	const struct hw_tasks_settings *c = s->all->app->conf;
	int64_t wait = c->ack_wait_ms;
	for (unsigned i = 0; i < s->timeouts && wait < c->retry_max_ms; i++)
		wait *= 2;
	return wait < c->retry_max_ms ? wait : c->retry_max_ms;
}

/* Once in a while: its place, if nothing of what it has read was for it, and what Redis has of it. */
static void refresh(struct session *s)
{
	struct hw_place read = read_of(s);
	if (s->known && s->sent.n == 0 && !s->asking && is_ours(s) && hw_place_cmp(read, s->acked) > 0) {
		s->acked = read;
		save(s, read, false);
	}
	load(s);
}

static void tick_session(struct session *s, int64_t now, int64_t redis_now, unsigned period)
{
	struct hw_tasks_sessions *f = s->all;
	/* An answer was still awaited when it was to be read anew. */
	if (!s->known)
		load(s);
	if (s->unproven && s->ends_ms && !s->asleep_ms && redis_now >= s->ends_ms && is_ours(s)) {
		expire(s);
		return;
	}
	if (s->sent.n && !s->asking && !s->asleep_ms && now - s->sent_ms >= wait_ms(s)) {
		s->timeouts++;
		rewind_to_ack(s);
	}
	s->again |= s->later;
	s->later = false;
	go_on(s);
	/* Others' instances hear acks as well; by the next tick it is answered. */
	if (s->base.by_client.hash % period == f->ticks % period)
		refresh(s);
	else if (f->app->conf->several && s->sent.n && !s->timeouts)
		load(s);
}

void hw_tasks_sessions_turn(struct hw_tasks_sessions *f)
{
	if (f)
		pump(f);
}

void hw_tasks_sessions_tick(struct hw_tasks_sessions *f)
{
	int64_t now = now_ms(), redis_now = hw_tasks_store_now_ms(f->app->store);
	unsigned period = f->app->conf->several ? LIST_S : LIST_ALONE_S;
	reap(f);
	f->ticks++;
	if (!hw_tasks_store_is_up(f->app->store))
		return;
	if (now - f->listed_ms >= (f->unlisted ? LIST_S : period) * INT64_C(1000))
		list(f);
	for (struct session *s = first_of(f); s; s = next_of(s))
		if (!s->gone)
			tick_session(s, now, redis_now, period);
	if (f->tail_due)
		read_tail(f);
	pump_loads(f);
	pump(f);
}

struct hw_tasks_sessions *hw_tasks_sessions_new(struct hw_tasks_app *app)
{
	struct hw_tasks_sessions *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->app = app;
	STAILQ_INIT(&f->glances);
	STAILQ_INIT(&f->resends);
	STAILQ_INIT(&f->loads);
	if (hw_followers_init(&f->table) != 0 || !(f->past = hw_past_new(app->loop.base, app->conf->history_socket))) {
		hw_followers_fini(&f->table);
		free(f);
		return NULL;
	}
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
	for (struct session *s = first_of(f); s; s = next_of(s)) {
		s->gone = true;
		s->asking = 0;
		s->is_queued = s->is_loading = false;
	}
	reap(f);
	hw_followers_fini(&f->table);
	free(f);
}
