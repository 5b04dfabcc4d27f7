/* SPDX-License-Identifier: MIT */
/*
 * See sessions.h. A session is current, or it lags.
 *
 * For all current sessions, one reader reads the stream up to `tail`, and the table (followers.h) finds the sessions
 * that want a transition. A lagging session reads pages of its own: after a start, after a full window has stopped it,
 * and when it sends again. It becomes current when a page contains the last entry of the stream. A session stores how
 * many messages are not acknowledged, and the id of each tenth of them. To send again, it reads again after the last
 * ack.
 *
 * Invariant: replies arrive in the order of the requests, on one connection. So when the last page of a session
 * arrives, the session has read at least up to `tail`.
 *
 * The transaction of a page also reads the first entry of the stream. If this entry is after the session's offset,
 * entries in between were trimmed. The session then requests these from heartwheel-history (past.h), page by page.
 * Entries that history does not have are reported as a gap. If history does not answer, or has not read up to the first
 * entry of the stream, the session waits for at most BEHIND_MS.
 *
 * Cost: one transaction for each reading of new entries, whatever the number of followers; one for each page of a
 * lagging session, at most GLANCES_MAX at a time; one HSET for each ack.
 */
#include "tasks/follow/sessions.h"

#include "stream/commands.h"
#include "tasks/follow/session.h"

/* --- the list ----------------------------------------------------------------------------------------------------- */

size_t hw_tasks_sessions_count(const struct hw_tasks_sessions *f)
{
	return f->table.clients.n;
}

size_t hw_tasks_sessions_count_current(const struct hw_tasks_sessions *f)
{
	return f->n_current;
}

/* Whether max_followers is reached. */
static bool is_full(const struct hw_tasks_sessions *f)
{
	return f->table.clients.n + f->n_new >= (size_t)f->app->conf->max_followers;
}

static struct session *add(struct hw_tasks_sessions *f, struct hw_text client)
{
	struct session *s = (struct session *)hw_followers_find(&f->table, client);
	if (s && s->gone) { /* the client follows again */
		hw_session_set_current(s, false);
		s->gone = s->known = s->unproven = false;
		s->ends_ms = s->asleep_ms = 0;
		s->timeouts = 0;
	}
	if (s)
		return s;
	if (!hw_task_name_is_valid(client) || !(s = calloc(1, sizeof(*s) + client.len + 1)))
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

/* Frees the sessions that have ended, once they await no reply and are in no queue. */
static void reap(struct hw_tasks_sessions *f)
{
	for (struct hw_follower **at = &f->table.first; *at;) {
		struct session *s = (struct session *)*at;
		if (s->gone)
			hw_session_set_current(s, false);
		if (!s->gone || s->asking || s->is_queued || s->is_loading) {
			at = &s->base.next;
			continue;
		}
		hw_followers_remove(&f->table, at);
		free(s);
	}
}

/* --- acks --------------------------------------------------------------------------------------------------------- */

static void pump_loads(struct hw_tasks_sessions *f);

static void save(struct session *s, struct hw_stream_id offset, bool lives)
{
	struct hw_tasks_sessions *f = s->all;
	char text[HW_STREAM_ID_TEXT], key[KEY_MAX];
	(void)ask(f, NULL, NULL,
	          (const char *[]){"HSET", key_of("t", s->client, key), f->events, hw_stream_id_print(offset, text),
	                           NULL});
	for (size_t i = 0; lives && i < 3; i++)
		(void)ask(f, NULL, NULL,
		          (const char *[]){"EXPIRE", key_of((const char *[]){"t", "s", "ol"}[i], s->client, key),
		                           SESSION_TTL, NULL});
}

/* Called when the client has acknowledged all events up to `offset`. */
static void acknowledged(struct session *s, struct hw_stream_id offset)
{
	char key[HW_TASKS_KEY_MAX];
	if (s->unproven || s->asking)
		(void)ask(s->all, NULL, NULL, (const char *[]){"ZREM", new_key(s->all, key), s->client, NULL});
	s->unproven = false;
	s->ends_ms = 0;
	s->acked = offset;
	hw_session_window_ack(&s->sent, offset);
	s->sent_ms = now_ms();
	s->timeouts = 0;
	s->again = true;
}

/* Whether the stream may have reached `offset`. A client may acknowledge an entry that this instance has not read,
 * because a faster instance has sent it. */
static bool is_reached(const struct hw_tasks_sessions *f, struct hw_stream_id offset)
{
	return offset.ms <= (uint64_t)(hw_tasks_store_now_ms(f->app->store) + AHEAD_MS) ||
	       hw_stream_id_compare(offset, hw_device_reader_offset(f->app->device_reader)) <= 0;
}

static void on_ack(void *arg, struct hw_text from, struct hw_text msg_id)
{
	struct hw_tasks_sessions *f = arg;
	struct session *s = find(f, from);
	struct hw_stream_id offset;
	if (!s || !s->known || hw_stream_id_parse(msg_id.at, msg_id.len, &offset) != 0 ||
	    hw_stream_id_compare(offset, s->acked) <= 0 ||
	    (is_ours(s) && hw_stream_id_compare(offset, read_of(s)) > 0) || !is_reached(f, offset)) {
		f->app->counts.refused[HW_REFUSED_UNKNOWN] += !s;
		return;
	}
	acknowledged(s, offset);
	save(s, offset, true);
	hw_session_go_on(s);
}

/* --- stored sessions ---------------------------------------------------------------------------------------------- */

/* The next callbacks load a session from Redis: whether its client has acknowledged anything, whether the client is
 * offline, the filter, the offset. */
static void on_unproven(void *arg, const redisReply *reply)
{
	struct session *s = arg;
	s->asking--;
	if (!reply || reply->type == REDIS_REPLY_ERROR)
		return;
	s->unproven = reply->type == REDIS_REPLY_STRING;
	double ends = s->unproven ? strtod(reply->str, NULL) : 0; /* +inf: nothing was sent to it */
	double latest = (double)(hw_tasks_store_now_ms(s->all->app->store) + s->all->app->conf->follow_expire_ms);
	s->ends_ms = ends > 0 && ends < 1e15 ? (int64_t)(ends < latest ? ends : latest) : 0;
}

static void on_offline(void *arg, const redisReply *reply)
{
	struct session *s = arg;
	s->asking--;
	if (!reply || reply->type != REDIS_REPLY_INTEGER)
		return;
	if (!reply->integer)
		hw_session_wake(s);
	else if (!s->asleep_ms)
		hw_session_sleep(s);
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
		hw_tasks_unusable(s->all->app, HW_UNUSABLE_FOLLOWER, reply->type == REDIS_REPLY_STRING,
		                  "the filter of follower '%s' in s:s: is malformed: its session ends", s->client);
		(void)ask(s->all, NULL, NULL, (const char *[]){"SREM", list_key(s->all, key), s->client, NULL});
		(void)ask(s->all, NULL, NULL, (const char *[]){"ZREM", new_key(s->all, key), s->client, NULL});
		return;
	}
	(void)hw_followers_set_filter(&s->all->table, &s->base, reply->str);
}

/* Reads a stored offset. An offset that cannot be used counts as the beginning of the stream, so that no event is
 * lost. */
static struct hw_stream_id offset_of(struct session *s, const redisReply *reply)
{
	struct hw_stream_id offset, none = {0, 0};
	if (reply->type != REDIS_REPLY_STRING)
		return none;
	if (hw_stream_id_parse_loose(reply->str, reply->len, &offset) == 0 && is_reached(s->all, offset))
		return offset;
	hw_tasks_unusable(
		s->all->app, HW_UNUSABLE_OFFSET, 1,
		"the offset of follower '%s' in s:t: is not an offset in %s: the follower reads from the beginning",
		s->client, s->all->events);
	return none;
}

static void take_offset(struct session *s, const redisReply *reply)
{
	if (!done_asking(s) || !s->base.filter || !reply || reply->type == REDIS_REPLY_ERROR)
		return;
	struct hw_stream_id offset = offset_of(s, reply);
	if (s->known && hw_stream_id_compare(offset, s->acked) > 0 && hw_stream_id_compare(offset, read_of(s)) <= 0) {
		acknowledged(s, offset); /* another instance has received that ack */
	} else if (!s->known || hw_stream_id_compare(offset, s->acked) > 0) {
		s->known = true;
		s->acked = offset;
		hw_session_rewind(s);
	}
	hw_session_go_on(s);
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

/* Logs that Redis has more followers than max_followers. Followers that this instance knows are served first, then
 * as many others as there is room for. */
static void left_out(struct hw_tasks_sessions *f, size_t n)
{
	int64_t now = now_ms();
	if (n == 0 || (f->left_out_ms && now - f->left_out_ms < 600000))
		return;
	f->left_out_ms = now;
	hw_log(f->app->log, HW_LOG_WARNING,
	       "follow: %zu followers get no messages, because there are more than max_followers = %" PRId64
	       "; raise [tasks] max_followers, or end sessions",
	       n, f->app->conf->max_followers);
}

/* Removes a member of task:follow that cannot be a client's name. */
static void remove_name(struct hw_tasks_sessions *f, struct hw_text name)
{
	char key[HW_TASKS_KEY_MAX];
	const char *argv[] = {"SREM", list_key(f, key), name.at};
	const size_t len[] = {4, strlen(key), name.len};
	hw_tasks_unusable(f->app, HW_UNUSABLE_FOLLOWER, 1, "members of %s that are not client names were removed", key);
	(void)hw_tasks_store_command(f->app->store, NULL, NULL, 3, argv, len);
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
		if (r->type == REDIS_REPLY_STRING && !hw_task_name_is_valid(client)) {
			remove_name(f, client);
			continue;
		}
		bool fits = r->type == REDIS_REPLY_STRING && (find(f, client) || !is_full(f));
		struct session *s = fits ? add(f, client) : NULL;
		n_out += !fits;
		if (!s)
			continue;
		s->listed = true;
		if (!s->known)
			load(s);
	}
	/* A session that is not in the list has expired, or was ended by another instance. */
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
	bool fresh;  /* the request has no `from`: an old session continues at its offset, and a new one begins with new
	                events */
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

/* Writes the session; its offset is written last. */
static void keep(struct asking *q, const char *offset)
{
	struct hw_tasks_sessions *f = q->all;
	char key[KEY_MAX], ol[2 * QUOTED_MAX + 600], names[HW_TASKS_KEY_MAX];
	const char *node = f->app->conf->node_id;
	struct hw_json j;
	hw_json_begin_text(&j, ol, sizeof(ol));
	hw_json_open(&j, '{');
	hw_json_text(&j, "clientId", q->client);
	hw_json_text(&j, "userName", q->client);
	hw_json_bool(&j, "clean", false);
	hw_json_bytes(&j, "serverId", node, strnlen(node, 64));
	hw_json_text(&j, "status", "online");
	hw_json_int(&j, "timestamp", hw_tasks_store_now_ms(f->app->store));
	hw_json_close(&j, '}');
	hw_json_end_text(&j);
	(void)ask(f, NULL, NULL, (const char *[]){"SET", key_of("ol", q->client, key), ol, "EX", SESSION_TTL, NULL});
	(void)ask(f, NULL, NULL, (const char *[]){"HSET", key_of("s", q->client, key), f->events, q->filter, NULL});
	(void)ask(f, NULL, NULL, (const char *[]){"EXPIRE", key_of("s", q->client, key), SESSION_TTL, NULL});
	(void)ask(f, NULL, NULL, (const char *[]){"SADD", list_key(f, names), q->client, NULL});
	(void)ask(f, NULL, NULL, (const char *[]){"ZADD", new_key(f, names), "NX", "+inf", q->client, NULL});
	(void)ask(f, NULL, NULL,
	          (const char *[]){q->fresh ? "HSETNX" : "HSET", key_of("t", q->client, key), f->events, offset, NULL});
	if (ask(f, on_kept, q, (const char *[]){"EXPIRE", key_of("t", q->client, key), SESSION_TTL, NULL}) != 0)
		asking_free(q);
}

static void on_newest(void *arg, const redisReply *reply)
{
	struct asking *q = arg;
	char newest[HW_STREAM_ID_TEXT];
	if (!reply || reply->type != REDIS_REPLY_ARRAY) {
		asking_free(q);
		return;
	}
	keep(q, hw_stream_id_print(hw_stream_newest(reply), newest));
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
	char offset[HW_STREAM_ID_TEXT], why[100];
	struct hw_stream_command newest;
	if (!hw_allow_task(c->allow, c->n_allow, sender, action, name)) {
		f->app->counts.refused[HW_REFUSED_ALLOW]++;
		hw_tasks_inbox_refuse(f->app->inbox, sender, q->msg_id, "no [tasks] allow line permits this");
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
		snprintf(offset, sizeof(offset), "%.*s", (int)q->from.len, is(q->from, "start") ? "0-0" : q->from.at);
		keep(k, is(q->from, "start") ? "0-0" : offset);
		return;
	}
	hw_stream_range_newest(&newest, f->events, 1);
	if (hw_tasks_store_command(f->app->store, on_newest, k, newest.argc, newest.argv, newest.len) != 0)
		asking_free(k);
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

/* --- time, start and stop ----------------------------------------------------------------------------------------- */

static void on_device(void *arg, const struct hw_device_transition *d)
{
	hw_sessions_note_client(arg, d);
	hw_sessions_read_tail(arg);
}

static void on_up(void *arg)
{
	struct hw_tasks_sessions *f = arg;
	for (struct session *s = first_of(f); s; s = next_of(s)) {
		hw_session_set_current(s, false);
		s->known = false;
	}
	list(f);
}

/* Ends a session that was sent messages but has acknowledged none. Its client follows by mistake, or does not exist
 * any more. */
static void expire(struct session *s)
{
	struct hw_tasks_sessions *f = s->all;
	char keys[3][KEY_MAX], name[HW_TASKS_KEY_MAX];
	(void)ask(f, NULL, NULL, (const char *[]){"SREM", list_key(f, name), s->client, NULL});
	(void)ask(f, NULL, NULL, (const char *[]){"ZREM", new_key(f, name), s->client, NULL});
	(void)ask(f, NULL, NULL,
	          (const char *[]){"DEL", key_of("ol", s->client, keys[0]), key_of("s", s->client, keys[1]),
	                           key_of("t", s->client, keys[2]), NULL});
	hw_log(f->app->log, HW_LOG_INFO,
	       "follow: the session of '%s' ended, because its client acknowledged no message", s->client);
	f->app->counts.followers_expired++;
	s->gone = true;
}

/* Returns how long to wait for an ack. The time doubles after each wait without an ack, up to retry_max. */
static int64_t wait_ms(const struct session *s)
{
	const struct hw_tasks_settings *c = s->all->app->conf;
	int64_t wait = c->ack_wait_ms;
	for (unsigned i = 0; i < s->timeouts && wait < c->retry_max_ms; i++)
		wait *= 2;
	return wait < c->retry_max_ms ? wait : c->retry_max_ms;
}

/* Stores the offset of a session, if everything that was read for it is acknowledged. Then loads the session from
 * Redis again. */
static void refresh(struct session *s)
{
	struct hw_stream_id read = read_of(s);
	if (s->known && s->sent.n == 0 && !s->asking && is_ours(s) && hw_stream_id_compare(read, s->acked) > 0) {
		s->acked = read;
		save(s, read, false);
	}
	load(s);
}

static void tick_session(struct session *s, int64_t now, int64_t redis_now, unsigned period)
{
	struct hw_tasks_sessions *f = s->all;
	/* The load may have been skipped, because a reply was awaited. */
	if (!s->known)
		load(s);
	if (s->unproven && s->ends_ms && !s->asleep_ms && redis_now >= s->ends_ms && is_ours(s)) {
		expire(s);
		return;
	}
	if (s->sent.n && !s->asking && !s->asleep_ms && now - s->sent_ms >= wait_ms(s)) {
		s->timeouts++;
		hw_session_rewind(s);
	}
	s->again |= s->later;
	s->later = false;
	hw_session_go_on(s);
	/* Other instances may have received acks of this client, so the session is loaded again. The reply arrives
	 * before the next tick. */
	if (s->base.by_client.hash % period == f->ticks % period)
		refresh(s);
	else if (f->app->conf->several && s->sent.n && !s->timeouts)
		load(s);
}

void hw_tasks_sessions_turn(struct hw_tasks_sessions *f)
{
	if (f)
		hw_sessions_pump(f);
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
		hw_sessions_read_tail(f);
	pump_loads(f);
	hw_sessions_pump(f);
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
	f->hook = (struct hw_device_hook){.on_device = on_device, .on_up = on_up, .arg = f};
	hw_device_reader_join(app->device_reader, &f->hook);
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
