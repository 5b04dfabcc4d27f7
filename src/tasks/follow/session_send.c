/* SPDX-License-Identifier: MIT */
/* See session.h. */
#include "tasks/follow/session.h"

static void on_glance(void *arg, const redisReply *reply);

void hw_session_set_current(struct session *s, bool current)
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

void hw_session_rewind(struct session *s)
{
	hw_session_set_current(s, false);
	s->read = s->acked;
	s->behind_ms = 0;
	s->sent.n = 0;
	s->again = true;
}

void hw_session_sleep(struct session *s)
{
	hw_session_set_current(s, false);
	s->asleep_ms = now_ms();
}

void hw_session_wake(struct session *s)
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
	hw_session_rewind(s);
}

/* --- the window --------------------------------------------------------------------------------------------------- */

static void window_put(struct window *w, struct hw_stream_id id)
{
	w->last = id;
	if (++w->n % SAMPLE_EVERY == 0)
		w->samples[w->n / SAMPLE_EVERY - 1] = id;
}

void hw_session_window_ack(struct window *w, struct hw_stream_id offset)
{
	unsigned n = 0, samples = w->n / SAMPLE_EVERY;
	if (hw_stream_id_compare(w->last, offset) <= 0) {
		w->n = 0;
		return;
	}
	while (n < samples && hw_stream_id_compare(w->samples[n], offset) <= 0)
		n++;
	memmove(w->samples, w->samples + n, (samples - n) * sizeof(*w->samples));
	w->n -= n * SAMPLE_EVERY;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

/* Called before the first message to a session whose client has not acknowledged anything yet. Sets the time at
 * which the session ends, unless the client acknowledges a message before. */
static void end_later(struct session *s)
{
	struct hw_tasks_sessions *f = s->all;
	char key[HW_TASKS_KEY_MAX], score[24];
	s->ends_ms = hw_tasks_store_now_ms(f->app->store) + f->app->conf->follow_expire_ms;
	snprintf(score, sizeof(score), "%" PRId64, s->ends_ms);
	(void)ask(f, NULL, NULL, (const char *[]){"ZADD", new_key(f, key), "XX", score, s->client, NULL});
}

/* Publishes `payload` with this id. Returns false if it must be sent later. */
static bool send_to(struct session *s, struct hw_stream_id id, const char *action, const char *payload)
{
	struct hw_tasks_app *a = s->all->app;
	char text[2 * PAYLOAD_MAX], topic[HW_ID_MAX + 1100], offset[HW_STREAM_ID_TEXT];
	int64_t now_s = hw_tasks_store_now_ms(a->store) / 1000;
	struct hw_json j;
	hw_json_begin_text(&j, text, sizeof(text));
	hw_json_open(&j, '{');
	hw_json_text(&j, "sender", a->conf->name);
	hw_json_text(&j, "receiver", s->client);
	hw_json_text(&j, "msg_id", hw_stream_id_print(id, offset));
	hw_json_text(&j, "action", action);
	hw_json_int(&j, "time", now_s);
	hw_json_int(&j, "exp", now_s + 86400);
	hw_json_raw(&j, "payload", payload, strlen(payload));
	hw_json_close(&j, '}');
	int len = hw_json_end_text(&j);
	snprintf(topic, sizeof(topic), "%s/%s/pending", a->conf->root, s->client);
	if (len < 0)
		return true;
	if (hw_tasks_broker_publish(
		    a->broker,
		    &(struct hw_tasks_put){.topic = {topic, strlen(topic)},
	                                   .payload = {text, (size_t)len},
	                                   .qos = 1,
	                                   .subject = hw_tasks_subject((struct hw_text){topic, strlen(topic)},
	                                                               (struct hw_text){offset, strlen(offset)})},
		    NULL, NULL) != 0) {
		s->again = true; /* the tick continues */
		return false;
	}
	if (s->sent.n == 0)
		s->sent_ms = now_ms();
	window_put(&s->sent, id);
	if (s->unproven && !s->ends_ms)
		end_later(s);
	return true;
}

/* Writes a text of an entry. Another program may have written the entry, so a text that is too long becomes empty. */
static void write_text(struct hw_json *j, const char *key, struct hw_text t)
{
	bool fits = t.len < QUOTED_MAX && hw_json_quote(t.at, t.len, NULL, 0) < QUOTED_MAX;
	hw_json_bytes(j, key, t.at, fits ? t.len : 0);
}

static bool send_event(struct session *s, struct hw_stream_id id, const struct hw_device_transition *d)
{
	char payload[PAYLOAD_MAX];
	struct hw_json j;
	hw_json_begin_text(&j, payload, sizeof(payload));
	hw_json_open(&j, '{');
	write_text(&j, "id", d->device);
	write_text(&j, "state", d->state);
	write_text(&j, "reason", d->reason);
	hw_json_int(&j, "time_ms", d->time_ms);
	hw_json_int(&j, "last_seen_ms", d->last_seen_ms);
	write_text(&j, "group", d->group);
	write_text(&j, "node", d->node);
	hw_json_raw(&j, "seq", d->seq.len ? d->seq.at : "0", d->seq.len ? d->seq.len : 1);
	hw_json_close(&j, '}');
	if (hw_json_end_text(&j) < 0)
		return true;
	return send_to(s, id, "transition", payload);
}

/* --- trimmed entries ---------------------------------------------------------------------------------------------- */

/* Called when the client was sent all entries up to `offset` that match its filter. */
static void passed(struct session *s, struct hw_stream_id offset)
{
	s->behind_ms = 0;
	s->read = offset;
	s->again = true;
}

/* Returns false if the gap must be sent later. */
static bool send_gap(struct session *s, struct hw_stream_id after, struct hw_stream_id before, int64_t lost)
{
	char payload[200], id[HW_STREAM_ID_TEXT];
	struct hw_json j;
	hw_json_begin_text(&j, payload, sizeof(payload));
	hw_json_open(&j, '{');
	hw_json_text(&j, "after", hw_stream_id_print(after, id));
	hw_json_text(&j, "before", hw_stream_id_print(before, id));
	if (lost >= 0)
		hw_json_int(&j, "lost", lost);
	else
		hw_json_null(&j, "lost");
	hw_json_close(&j, '}');
	hw_json_end_text(&j);
	if (!send_to(s, hw_stream_id_previous(before), "gap", payload))
		return false;
	passed(s, hw_stream_id_previous(before));
	return true;
}

/* Sends the transitions and gaps of a page of history, up to the first entry of the stream. Returns whether all were
 * sent. */
static bool send_past(struct session *s, struct hw_past_page *page)
{
	struct hw_past_item item;
	while (s->sent.n < UNACKED && hw_past_next(page, &item)) {
		if (hw_stream_id_compare(item.id, s->oldest) >= 0 && item.hole &&
		    hw_stream_id_compare(hw_stream_id_next(item.after), s->oldest) < 0)
			return send_gap(s, item.after, s->oldest, -1);
		if (hw_stream_id_compare(item.id, s->oldest) >= 0) {
			passed(s, hw_stream_id_previous(s->oldest));
			return true;
		}
		if (item.hole && !send_gap(s, item.after, hw_stream_id_next(item.id), item.lost))
			return false;
		if (!item.hole && hw_filter_matches(s->base.filter, &item.device) &&
		    !send_event(s, item.id, &item.device))
			return false;
		passed(s, item.id);
	}
	return s->sent.n < UNACKED;
}

/* Handles the case that history cannot be used now: it may be starting, or may not have read the trimmed entries
 * yet. After BEHIND_MS, reports the entries after `after` as a gap. Returns false if the session must wait. */
static bool wait_for_past(struct session *s, struct hw_stream_id after)
{
	int64_t now = now_ms();
	if (s->behind_ms == 0) /* history answered just before */
		s->behind_ms = now;
	if (now - s->behind_ms >= BEHIND_MS)
		return send_gap(s, after, s->oldest, -1);
	s->later = true;
	return false;
}

/* Called when history has no more entries before the first one of the stream. If history has read up to this first
 * entry, no entry is missing. Returns false if the session must wait. */
static bool end_of_past(struct session *s, struct hw_stream_id read)
{
	if (hw_stream_id_compare(read, s->oldest) < 0)
		return wait_for_past(s, hw_stream_id_compare(read, s->read) > 0 ? read : s->read);
	passed(s, hw_stream_id_previous(s->oldest));
	return true;
}

static void on_past(void *arg, struct hw_past_page *page)
{
	struct session *s = arg;
	if (!done_asking(s) || s->asleep_ms)
		return;
	if (hw_stream_id_compare(s->asked, s->read) != 0) { /* the session's offset has changed since the request */
		s->later = true;
		return;
	}
	bool sent = page ? send_past(s, page) : wait_for_past(s, s->read);
	if (sent && page && !page->more && hw_stream_id_compare(hw_stream_id_next(s->read), s->oldest) < 0)
		sent = end_of_past(s, page->read);
	else if (sent && page && hw_stream_id_compare(s->asked, s->read) == 0)
		sent = wait_for_past(s, s->read); /* there is more, but none of it can be read */
	if (sent)
		hw_session_go_on(s);
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
		hw_session_go_on(s);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Reads the reply to the transaction of glance(). It contains whether the client is known to be offline, the first
 * entry of the stream, and a page after the session's offset. NULL: the reply cannot be used. */
static const redisReply *read_glance(struct session *s, const redisReply *reply)
{
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
		return NULL;
	const redisReply *offline = reply->element[0], *oldest = reply->element[1], *page = reply->element[2];
	/* If the reply is 0, asleep_ms is not changed, because a transition may have set it meanwhile. */
	if (offline->type == REDIS_REPLY_INTEGER && offline->integer)
		s->asleep_ms = now_ms();
	s->begins = oldest->type == REDIS_REPLY_ARRAY && oldest->elements == 1 &&
	            hw_stream_entry_id(oldest->element[0], &s->oldest);
	return page->type == REDIS_REPLY_ARRAY ? page : NULL;
}

static void take_glance(struct session *s, const redisReply *reply)
{
	struct hw_device_transition d;
	struct hw_stream_id id;
	int64_t clock_ms = hw_tasks_store_now_ms(s->all->app->store);
	const redisReply *page = read_glance(s, reply);
	s->all->n_glances--;
	s->later |= reply && !page; /* Redis refuses commands now, and does not report when it accepts them again */
	if (!done_asking(s) || !s->known || s->asleep_ms || !page)
		return;
	if (s->begins && hw_stream_is_trimmed(s->read, s->oldest)) {
		bridge(s);
		return;
	}
	s->behind_ms = 0;
	for (size_t i = 0; i < page->elements; i++) {
		if (!hw_stream_entry_id(page->element[i], &id) || hw_stream_id_compare(id, s->read) <= 0)
			continue;
		if (s->sent.n == UNACKED)
			return;
		/* An entry that is no transition is skipped, because another program wrote it. */
		if (hw_device_transition_read(page->element[i], clock_ms, &d) &&
		    hw_filter_matches(s->base.filter, &d) && !send_event(s, id, &d))
			return;
		passed(s, id);
	}
	if (page->elements < PAGE)
		hw_session_set_current(s, true);
	if (s->all->tail_due)
		hw_sessions_read_tail(s->all);
	hw_session_go_on(s);
}

static void on_glance(void *arg, const redisReply *reply)
{
	struct session *s = arg;
	struct hw_tasks_sessions *f = s->all;
	take_glance(s, reply);
	hw_sessions_pump(f);
}

/* Reads the first entry of the stream and a page after `read`, in one transaction. With two commands, XADD MAXLEN
 * could trim entries in between, and the loss would be missed. `offline`: a key whose existence is also checked;
 * NULL: none. */
static int ask_page(struct hw_tasks_sessions *f, struct hw_stream_id read, const char *count, const char *offline,
                    hw_tasks_answer_fn *fn, void *arg)
{
	char from[HW_STREAM_ID_TEXT];
	hw_stream_id_print(hw_stream_id_next(read), from);
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
	if (rc) /* the transaction would include commands of other parts */
		hw_tasks_store_fail(f->app->store, "out of memory");
	return rc;
}

static int glance(struct session *s)
{
	char key[OFFLINE_MAX];
	return ask_page(s->all, s->read, PAGE_TEXT, offline_key(s, key), on_glance, s);
}

static bool can_send(const struct hw_tasks_sessions *f)
{
	const struct hw_tasks_app *a = f->app;
	return !a->life.stopping && hw_tasks_store_is_up(a->store) && hw_tasks_broker_publishes(a->broker);
}

static bool wants_page(const struct session *s)
{
	return s->again && !s->current && !s->asking && !s->gone && s->known && !s->later && !s->asleep_ms &&
	       s->sent.n < UNACKED && is_ours(s);
}

/* Whether other sessions are served before this session, because its client has acknowledged nothing for a while. */
static bool is_slow(const struct session *s)
{
	return s->timeouts || (s->sent.n && now_ms() - s->sent_ms >= SLOW_MS);
}

static bool has_room(const struct hw_tasks_sessions *f)
{
	return hw_tasks_broker_waiting(f->app->broker) < ROOM && hw_tasks_broker_has_room(f->app->broker);
}

/* Sessions whose clients acknowledge are served first. */
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

void hw_sessions_pump(struct hw_tasks_sessions *f)
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

void hw_session_go_on(struct session *s)
{
	struct hw_tasks_sessions *f = s->all;
	if (s->is_queued || !wants_page(s) || !can_send(f))
		return;
	if (is_slow(s))
		STAILQ_INSERT_TAIL(&f->resends, s, queue);
	else
		STAILQ_INSERT_TAIL(&f->glances, s, queue);
	s->is_queued = true;
	hw_sessions_pump(f);
}

/* --- the tail ----------------------------------------------------------------------------------------------------- */

void hw_sessions_note_client(struct hw_tasks_sessions *f, const struct hw_device_transition *d)
{
	size_t len = strlen(f->app->conf->id_prefix);
	if (d->device.len <= len || memcmp(d->device.at, f->app->conf->id_prefix, len) != 0)
		return;
	struct session *s = find(f, (struct hw_text){d->device.at + len, d->device.len - len});
	if (s && is(d->state, "offline")) {
		hw_session_sleep(s);
	} else if (s && s->asleep_ms) {
		hw_session_wake(s);
		hw_session_go_on(s);
	}
}

struct news {
	struct hw_stream_id id;
	const struct hw_device_transition *device;
};

static void send_news(void *arg, struct hw_follower *base)
{
	struct session *s = (struct session *)base;
	const struct news *n = arg;
	if (!s->current || s->gone || hw_stream_id_compare(n->id, s->read) <= 0)
		return;
	if (s->sent.n == UNACKED || !is_ours(s) || (is_slow(s) && !has_room(s->all)) ||
	    !send_event(s, n->id, n->device)) {
		hw_session_set_current(s, false);
		s->again = true;
		hw_session_go_on(s);
	} else {
		s->read = n->id;
	}
}

/* Reads the reply of EXEC: the first entry of the stream, and a page after `tail_asked`. Returns whether there may be
 * more entries. */
static bool take_tail(struct hw_tasks_sessions *f, const redisReply *reply)
{
	struct hw_stream_id oldest, id;
	struct hw_device_transition d;
	int64_t clock_ms = hw_tasks_store_now_ms(f->app->store);
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || f->n_current == 0 ||
	    reply->element[0]->type != REDIS_REPLY_ARRAY || reply->element[1]->type != REDIS_REPLY_ARRAY)
		return false;
	if (hw_stream_id_compare(f->tail_asked, f->tail) != 0)
		return true;
	const redisReply *page = reply->element[1];
	bool begins = reply->element[0]->elements == 1 && hw_stream_entry_id(reply->element[0]->element[0], &oldest);
	if (begins && hw_stream_is_trimmed(f->tail, oldest)) {
		/* Entries may have been trimmed. Each session requests a page of its own, which shows whether it has
		 * missed entries. */
		for (struct session *s = first_of(f); s; s = next_of(s)) {
			s->again |= s->current;
			hw_session_set_current(s, false);
			hw_session_go_on(s);
		}
		return false;
	}
	for (size_t i = 0; i < page->elements; i++) {
		if (!hw_stream_entry_id(page->element[i], &id) || hw_stream_id_compare(id, f->tail) <= 0)
			continue;
		if (hw_device_transition_read(page->element[i], clock_ms, &d)) {
			hw_sessions_note_client(f, &d);
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
	/* Redis does not report when it accepts commands again, so the tick tries again. */
	bool refused = reply && (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2);
	bool more = take_tail(f, reply);
	if (more || (f->tail_due && !refused))
		hw_sessions_read_tail(f);
	f->tail_due |= refused;
}

void hw_sessions_read_tail(struct hw_tasks_sessions *f)
{
	f->tail_due = true;
	if (f->tail_asking || f->n_current == 0 || !can_send(f))
		return;
	f->tail_due = false;
	f->tail_asked = f->tail;
	f->tail_asking = ask_page(f, f->tail, TAIL_TEXT, NULL, on_tail, f) == 0;
}
