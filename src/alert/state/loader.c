/* SPDX-License-Identifier: MIT */
/*
 * See loader.h; loader_devices.c reads the devices and members. The steps run one after the other. A step sends its
 * commands in batches, and ends when all answers have arrived. Each command reads a bounded page, so no answer is
 * large. Cost: a command for each open incident and its members, and one for each offline device; a million devices
 * take some seconds.
 *
 * A text in Redis that cannot be used is counted and left out. But without device:offline and device:events every
 * device would count as online, so the load fails if one of these keys has another type. If device:unseen has another
 * type, the devices that were unseen at the last commit still count as unseen.
 */
#include "alert/state/loader_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/app.h"
#include "alert/follow/fields.h"
#include "alert/follow/follow.h"
#include "alert/follow/watch.h"
#include "alert/state/commit.h"
#include "alert/state/message.h"
#include "alert/state/outbox.h"
#include "heartwheel/bounds.h"
#include "heartwheel/topic.h"
#include "link/trouble.h"
#include "stream/entries.h"

#define BATCH         200    /* commands that wait for their answers */
#define INCIDENTS_MAX 200000 /* ids in device:incidents that are read */
#define SILENCES_MAX  1000
#define RECALL_PAGES  100
#define RECALL_COUNT  "1000"
#define RESENT_MS     900000  /* incidents that ended within this time are passed to an alertmanager again */
#define UNCLEAN_JUMP  100     /* numbers that messages without Redis may have used */
#define SCANS_MAX     1000000 /* the most ZSCAN and HSCAN of a load; a faulty server might return cursors without end */

/* A command that waits for its answer. */
struct question {
	struct hw_alert_loader *l;
	unsigned run;
	hw_alert_loader_read *read;
	char name[];
};

static void go_on(struct hw_alert_loader *l);

/* --- lists -------------------------------------------------------------------------------------------------------- */

static void list_fini(struct hw_alert_loader_list *t)
{
	for (size_t k = 0; k < t->n; k++)
		free(t->at[k]);
	free(t->at);
	*t = (struct hw_alert_loader_list){0};
}

static void list_add(struct hw_alert_loader *l, struct hw_alert_loader_list *t, const char *text)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 256;
		char **grown = reallocarray(t->at, cap, sizeof(char *));
		l->failed |= !grown;
		if (!grown)
			return;
		t->at = grown;
		t->cap = cap;
	}
	t->at[t->n] = strdup(text);
	l->failed |= !t->at[t->n];
	t->n += t->at[t->n] != NULL;
}

/* Reads the ids in an array. Other texts are counted and left out. */
static void list_read(struct hw_alert_loader *l, struct hw_alert_loader_list *t, const redisReply *r, size_t max)
{
	for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements && t->n < max; i++) {
		const redisReply *id = r->element[i];
		if (id->type == REDIS_REPLY_STRING && hw_incident_id_is_valid(id->str))
			list_add(l, t, id->str);
		else
			hw_alert_unusable(l->app, HW_ALERT_UNUSABLE_INCIDENT,
			                  "an id that heartwheel-alert did not make");
	}
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

static void stop(struct hw_alert_loader *l)
{
	l->run++;
	l->busy = false;
	hw_incidents_free(l->engine);
	l->engine = NULL;
	list_fini(&l->incidents);
	list_fini(&l->recent);
	list_fini(&l->silences);
}

/* Handles an answer of Redis. A reply of type REDIS_REPLY_ERROR is WRONGTYPE, which a `read` handles like any other
 * unusable value. */
static void on_answer(void *arg, const redisReply *r)
{
	struct question *q = arg;
	struct hw_alert_loader *l = q->l;
	if (q->run == l->run && l->busy) {
		bool error = !r || (r->type == REDIS_REPLY_ERROR && hw_trouble_of(r->str) != HW_TROUBLE_WRONGTYPE);
		l->failed |= error;
		if (!error)
			q->read(l, q->name, r);
		l->awaited--;
		if (r && l->awaited == 0)
			go_on(l);
	}
	free(q);
}

void hw_alert_loader_ask(struct hw_alert_loader *l, hw_alert_loader_read *read, const char *name,
                         const char *const *words)
{
	struct question *q = malloc(sizeof(*q) + strlen(name) + 1);
	if (!q) {
		l->failed = true;
		return;
	}
	*q = (struct question){.l = l, .run = l->run, .read = read};
	strcpy(q->name, name);
	if (hw_alert_store_ask(l->app->store, on_answer, q, words) == 0) {
		l->awaited++;
		return;
	}
	l->failed = true;
	free(q);
}

void hw_alert_loader_refused(struct hw_alert_loader *l, const char *key, const redisReply *r)
{
	char text[HW_TROUBLE_TEXT];
	hw_trouble_text(r->type == REDIS_REPLY_ERROR ? r->str : "ERR the answer makes no sense", text);
	snprintf(l->why, sizeof(l->why), "%s: %s", key, text);
	l->has_why = true;
	l->app->counts.unusable[HW_ALERT_UNUSABLE_KEY]++;
}

void hw_alert_loader_fail(struct hw_alert_loader *l, const char *key, const redisReply *r)
{
	hw_alert_loader_refused(l, key, r);
	l->failed = true;
	hw_log_limited(l->app->log, HW_ALERT_LIMIT_UNUSABLE, HW_LOG_ERROR, "the state cannot be loaded: %s", l->why);
}

bool hw_alert_loader_may_scan(struct hw_alert_loader *l)
{
	l->failed |= ++l->scans > SCANS_MAX;
	return !l->failed;
}

void hw_alert_loader_ask_key(struct hw_alert_loader *l, hw_alert_loader_read *read, const char *name,
                             const char *command, const char *head, const char *tail)
{
	char rest[HW_ALERT_KEY_MAX], key[HW_ALERT_KEY_MAX];
	snprintf(rest, sizeof(rest), "%s%.300s%s", head, name, tail);
	hw_alert_store_key(l->app->store, rest, key);
	hw_alert_loader_ask(l, read, name, (const char *[]){command, key, NULL});
}

/* --- the offsets, the groups, the ids ----------------------------------------------------------------------------- */

static void read_alert(struct hw_alert_loader *l, const char *name, const redisReply *r)
{
	(void)name;
	for (int k = 0; k < HW_ALERT_STREAMS && !l->skip; k++) {
		char field[32];
		snprintf(field, sizeof(field), "at:%s", hw_alert_stream_name((enum hw_alert_stream)k));
		const char *text = hw_field_text(r, field);
		struct hw_stream_id id;
		if (text && hw_stream_id_parse(text, strlen(text), &id) == 0 &&
		    id.ms <= (uint64_t)(l->bound_ms + HW_ALERT_OWN_AHEAD_MS))
			l->offsets[k] = (struct hw_alert_offset){id, true};
		else if (text)
			hw_alert_unusable(l->app, HW_ALERT_UNUSABLE_OFFSET, "the offset %s is unusable", field);
	}
}

/* Handles the end of a stream. If no offset of the stream is stored, reading begins there. */
static void read_end(struct hw_alert_loader *l, const char *name, const redisReply *r)
{
	char key[HW_ALERT_KEY_MAX];
	for (int k = 0; k < HW_ALERT_STREAMS; k++) {
		if (strcmp(name, hw_alert_stream_name((enum hw_alert_stream)k)) != 0)
			continue;
		if (k == HW_ALERT_EVENTS && r->type != REDIS_REPLY_ARRAY)
			hw_alert_loader_fail(l, hw_alert_stream_key(l->app, HW_ALERT_EVENTS, key), r);
		else if (!l->offsets[k].known)
			l->offsets[k] = (struct hw_alert_offset){hw_stream_newest(r), true};
	}
}

/* Reads the number of devices of each group. It decides whether the loaded devices are a mass incident. */
static void read_groups(struct hw_alert_loader *l, const char *name, const redisReply *r)
{
	(void)name;
	l->failed |= hw_alert_watch_groups(l->app, l->engine, r) != 0;
}

static void ask_offsets(struct hw_alert_loader *l)
{
	char key[HW_ALERT_KEY_MAX];
	hw_alert_loader_ask_key(l, read_alert, "", "HGETALL", "alert", "");
	for (int k = 0; k < HW_ALERT_STREAMS; k++) {
		hw_alert_stream_key(l->app, (enum hw_alert_stream)k, key);
		hw_alert_loader_ask(l, read_end, hw_alert_stream_name((enum hw_alert_stream)k),
		                    (const char *[]){"XREVRANGE", key, "+", "-", "COUNT", "1", NULL});
	}
	hw_alert_loader_ask_key(l, read_groups, "", "HGETALL", "groups", "");
}

static void read_incidents(struct hw_alert_loader *l, const char *name, const redisReply *r)
{
	(void)name;
	list_read(l, &l->incidents, r, INCIDENTS_MAX);
}

static void read_recent(struct hw_alert_loader *l, const char *name, const redisReply *r)
{
	(void)name;
	list_read(l, &l->recent, r, INCIDENTS_MAX);
}

static void read_silences(struct hw_alert_loader *l, const char *name, const redisReply *r)
{
	(void)name;
	list_read(l, &l->silences, r, SILENCES_MAX);
}

static void ask_ids(struct hw_alert_loader *l)
{
	char key[HW_ALERT_KEY_MAX], from[24];
	hw_alert_store_key(l->app->store, "incidents", key);
	hw_alert_loader_ask(l, read_incidents, "", (const char *[]){"ZRANGE", key, "0", "199999", NULL});
	hw_alert_store_key(l->app->store, "incidents:closed", key);
	snprintf(from, sizeof(from), "%lld", (long long)(l->now_ms - RESENT_MS));
	hw_alert_loader_ask(l, read_recent, "",
	                    (const char *[]){"ZRANGEBYSCORE", key, from, "+inf", "LIMIT", "0", "10000", NULL});
	hw_alert_loader_ask_key(l, read_silences, "", "SMEMBERS", "silences", "");
}

/* --- incidents ---------------------------------------------------------------------------------------------------- */

static const struct hw_receiver_settings *receiver_of(const struct hw_alert_loader *l, const char *name,
                                                      struct hw_receiver_settings list[HW_INCIDENT_RECEIVERS])
{
	size_t n = hw_alert_receivers(l->app->conf, list);
	for (size_t k = 0; k < n; k++)
		if (strcmp(list[k].name, name) == 0)
			return &list[k];
	return NULL;
}

/* Passes the incident to the alertmanager receiver, if the receiver was sent the incident. */
static void make_known(struct hw_alert_loader *l, const char *receiver, const struct hw_incident_view *v)
{
	struct hw_receiver_settings list[HW_INCIDENT_RECEIVERS];
	const struct hw_receiver_settings *r = receiver_of(l, receiver, list);
	if (!r || r->type != HW_RECEIVER_ALERTMANAGER)
		return;
	const struct hw_alert_writer w = {l->engine, l->app->conf->node_id};
	char *text = hw_alert_incident_text(&w, v);
	if (text)
		(void)hw_senders_known(l->app->senders, receiver, text, strlen(text));
	free(text);
}

/* Calls `each` for every field to:RECEIVER. */
static void each_sent(struct hw_alert_loader *l, const redisReply *hash, const struct hw_incident_view *v, bool load)
{
	for (size_t i = 0; i + 1 < hash->elements; i += 2) {
		const redisReply *name = hash->element[i], *value = hash->element[i + 1];
		struct hw_alert_sent s;
		if (name->type != REDIS_REPLY_STRING || strncmp(name->str, "to:", 3) != 0)
			continue;
		if (value->type != REDIS_REPLY_STRING || !hw_alert_sent_read(value->str, l->bound_ms, &s)) {
			hw_alert_unusable(l->app, HW_ALERT_UNUSABLE_INCIDENT,
			                  "incident %s: the field %.80s is unusable", v->id, name->str);
			continue;
		}
		if (load)
			l->failed |= hw_incidents_load_sent(l->engine, v->id, name->str + 3, s.last, s.acknowledged,
			                                    s.flapping, s.count, s.at_ms) != 0;
		if (s.last != HW_NEWS_NONE)
			make_known(l, name->str + 3, v);
	}
}

static void read_incident(struct hw_alert_loader *l, const char *id, const redisReply *r)
{
	struct hw_incident_view v;
	if (!hw_alert_incident_read(id, r, l->bound_ms, &v)) {
		hw_alert_unusable(l->app, HW_ALERT_UNUSABLE_INCIDENT, "incident %s is unusable and was left out", id);
		return;
	}
	l->failed |= hw_incidents_load(l->engine, &v) != 0;
	if (v.state != HW_INCIDENT_OPEN)
		l->failed |= hw_alert_commit_closing(l->app->commit, id) != 0;
	each_sent(l, r, &v, true);
}

/* Handles a closed incident that an alertmanager receiver gets again. */
static void read_ended(struct hw_alert_loader *l, const char *id, const redisReply *r)
{
	struct hw_incident_view v;
	if (hw_alert_incident_read(id, r, l->bound_ms, &v) && v.state != HW_INCIDENT_OPEN)
		each_sent(l, r, &v, false);
}

/* --- silences, receivers, transitions ------------------------------------------------------------------------------
 */

static void read_silence(struct hw_alert_loader *l, const char *id, const redisReply *r)
{
	struct hw_silence_view v;
	int rc = hw_alert_silence_read(id, r, l->bound_ms, &v)
	                 ? hw_incidents_silence(l->engine, hw_alert_now(l->app), &v)
	                 : -EINVAL;
	l->failed |= rc == -ENOMEM;
	if (rc && rc != -ENOMEM)
		hw_alert_unusable(l->app, HW_ALERT_UNUSABLE_SILENCE, "silence %s is unusable or over, and was left out",
		                  id);
}

/* Loads the messages of a receiver whose sending had begun. `sending` has one message in each line. */
static uint64_t load_sending(struct hw_alert_loader *l, const char *name, const char *text, bool each)
{
	uint64_t number, most = 0;
	char id[HW_INCIDENT_ID + 1];
	for (const char *s = text; *s;) {
		size_t len = strcspn(s, "\n");
		char *one = strndup(s, len);
		bool is = one && len <= HW_SEND_MESSAGE_MAX && hw_alert_message_number(one, name, &number, id) == 0;
		s += len + (s[len] == '\n');
		if (!is) {
			l->failed |= !one;
			hw_alert_unusable(l->app, HW_ALERT_UNUSABLE_INCIDENT, "receiver %s: a message is unusable",
			                  name);
			free(one);
			continue;
		}
		most = number > most ? number : most;
		l->failed |= hw_incidents_load_sending(l->engine, name, number, each ? id : NULL) != 0 ||
		             hw_alert_outbox_add(l->app->outbox, name, number, one, true) != 0;
	}
	return most;
}

static void read_receiver(struct hw_alert_loader *l, const char *name, const redisReply *r)
{
	struct hw_receiver_settings list[HW_INCIDENT_RECEIVERS];
	const struct hw_receiver_settings *c = receiver_of(l, name, list);
	if (!c || r->type != REDIS_REPLY_ARRAY || r->elements == 0)
		return;
	int64_t n = hw_field_number(r, "n", 0, INT64_MAX / 4, 0);
	int64_t from_ms = hw_field_number(r, "from_ms", 0, l->bound_ms + HW_BOUNDS_AHEAD_MS, 0);
	const char *sending = hw_field_text(r, "sending");
	uint64_t most = sending ? load_sending(l, name, sending, hw_receiver_type_is_each(c->type)) : 0;
	if ((uint64_t)n < most)
		n = (int64_t)most;
	l->failed |=
		hw_incidents_load_receiver(l->engine, name, (uint64_t)n + (l->clean ? 0 : UNCLEAN_JUMP), from_ms) != 0;
}

static void ask_receivers(struct hw_alert_loader *l)
{
	struct hw_receiver_settings list[HW_INCIDENT_RECEIVERS];
	size_t n = hw_alert_receivers(l->app->conf, list);
	for (size_t k = 0; k < n; k++)
		hw_alert_loader_ask_key(l, read_receiver, list[k].name, "HGETALL", "receiver:", "");
}

/* Reads a page of transitions, the newest first. They show which devices flap. */
static void read_recall(struct hw_alert_loader *l, const char *name, const redisReply *r)
{
	int64_t oldest = l->now_ms - 4 * l->app->conf->flap_half_ms;
	struct hw_incident_entry entry;
	bool more = r->type == REDIS_REPLY_ARRAY && r->elements > 0;
	(void)name;
	for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++) {
		struct hw_stream_id id;
		if (!hw_stream_entry_id(r->element[i], &id))
			continue;
		l->recalled = id;
		more = (int64_t)id.ms >= oldest;
		if (more && hw_alert_entry_read(r->element[i], l->bound_ms, &entry) && entry.fact <= HW_FACT_OFFLINE)
			l->failed |= hw_incidents_recall(l->engine, entry.id, entry.time_ms) != 0;
	}
	l->pages = more ? l->pages + 1 : RECALL_PAGES;
}

static void ask_recall(struct hw_alert_loader *l)
{
	char key[HW_ALERT_KEY_MAX], to[HW_STREAM_ID_TEXT];
	hw_alert_stream_key(l->app, HW_ALERT_EVENTS, key);
	hw_stream_id_print(l->pages ? hw_stream_id_previous(l->recalled) : l->offsets[HW_ALERT_EVENTS].id, to);
	hw_alert_loader_ask(l, read_recall, "",
	                    (const char *[]){"XREVRANGE", key, to, "-", "COUNT", RECALL_COUNT, NULL});
}

/* --- the steps ---------------------------------------------------------------------------------------------------- */

/* Sends the commands for the next elements of a list. Returns false after the last one. */
static bool ask_list(struct hw_alert_loader *l, const struct hw_alert_loader_list *t, hw_alert_loader_read *read,
                     const char *head)
{
	for (size_t k = 0; k < BATCH && l->next < t->n; k++)
		hw_alert_loader_ask_key(l, read, t->at[l->next++], "HGETALL", head, "");
	return l->awaited > 0;
}

static bool ask_members(struct hw_alert_loader *l)
{
	for (size_t k = 0; k < BATCH && l->next < l->incidents.n; k++)
		hw_alert_loader_scan_members(l, l->incidents.at[l->next++], "0");
	return l->awaited > 0;
}

/* Sends the next commands of the present step. Returns false if the step has no more. */
static bool ask_step(struct hw_alert_loader *l)
{
	switch (l->step) {
	case OFFSETS:
		if (l->next++ == 0)
			ask_offsets(l);
		break;
	case IDS:
		if (l->next++ == 0)
			ask_ids(l);
		break;
	case INCIDENTS:
		return ask_list(l, &l->incidents, read_incident, "incident:");
	case RECENT:
		return ask_list(l, &l->recent, read_ended, "incident:");
	case DEVICES:
		if (!l->scanned)
			hw_alert_loader_ask_devices(l);
		break;
	case MEMBERS:
		return ask_members(l);
	case SILENCES:
		return ask_list(l, &l->silences, read_silence, "silence:");
	case RECEIVERS:
		if (l->next++ == 0)
			ask_receivers(l);
		break;
	case RECALL:
		if (l->pages < RECALL_PAGES && l->app->conf->flap_start > 0)
			ask_recall(l);
		break;
	case END:
		break;
	}
	return l->awaited > 0;
}

static void end(struct hw_alert_loader *l)
{
	struct hw_incidents *engine = l->failed ? NULL : l->engine;
	if (engine)
		l->engine = NULL;
	if (!l->has_why)
		l->why[0] = '\0';
	bool first = l->first;
	stop(l);
	if (engine && hw_incidents_loaded(engine, hw_alert_now(l->app), first) != 0) {
		hw_alert_on_no_memory(l->app);
		hw_incidents_free(engine);
		return;
	}
	if (engine)
		hw_alert_follow_begin(l->app->follow, l->offsets);
	hw_alert_on_loaded(l->app, engine);
}

static void go_on(struct hw_alert_loader *l)
{
	while (!l->failed && l->step < END && !ask_step(l)) {
		l->step++;
		l->next = 0;
	}
	if (l->failed || l->step == END)
		end(l);
}

void hw_alert_loader_begin(struct hw_alert_loader *l, const struct hw_alert_taken *taken, bool skip)
{
	struct hw_alert_plan plan;
	stop(l);
	l->busy = true;
	l->failed = l->has_why = l->scanned = l->unseen = false;
	l->first = taken->first;
	l->clean = taken->clean;
	l->skip = skip;
	l->commits = taken->commits;
	l->step = OFFSETS;
	l->awaited = l->next = l->pages = l->scans = 0;
	strcpy(l->cursor, "0");
	memset(l->offsets, 0, sizeof(l->offsets));
	l->now_ms = hw_alert_now(l->app).wall_ms;
	l->bound_ms = hw_alert_bound_ms(l->app);
	int rc = hw_alert_plan(&plan, l->app->conf);
	if (rc == 0) {
		plan.engine.seed = hw_alert_seed();
		plan.engine.news_most = HW_ALERT_NEWS_MOST;
		l->engine = hw_incidents_new(&plan.engine, hw_alert_now(l->app));
	}
	hw_alert_plan_fini(&plan);
	l->failed = l->engine == NULL;
	hw_alert_commit_reset(l->app->commit, l->commits);
	go_on(l);
}

void hw_alert_loader_stop(struct hw_alert_loader *l)
{
	stop(l);
}

bool hw_alert_loader_is_busy(const struct hw_alert_loader *l)
{
	return l->busy;
}

static void on_unseen(void *arg, const redisReply *r)
{
	struct hw_alert_loader *l = arg;
	if (r && r->type == REDIS_REPLY_INTEGER && l->has_why && !l->busy)
		l->app->reload = true;
}

void hw_alert_loader_retry(struct hw_alert_loader *l)
{
	char key[HW_ALERT_KEY_MAX];
	if (l->busy || !l->has_why)
		return;
	hw_alert_store_key(l->app->store, "unseen", key);
	hw_alert_store_ask(l->app->store, on_unseen, l, (const char *[]){"ZCARD", key, NULL});
}

const char *hw_alert_loader_why(const struct hw_alert_loader *l)
{
	return l->why;
}

struct hw_alert_loader *hw_alert_loader_new(struct hw_alert_app *app)
{
	struct hw_alert_loader *l = calloc(1, sizeof(*l));
	if (l)
		l->app = app;
	return l;
}

void hw_alert_loader_free(struct hw_alert_loader *l)
{
	if (!l)
		return;
	stop(l);
	free(l);
}
