/* SPDX-License-Identifier: MIT */
/*
 * See watch.h. The names of the monitors come from device:sight and from the entries of device:events. A monitor whose
 * node_id is the name of its pod has another name after each roll-out. So if the table is full, a new name takes the
 * place of the monitor that has not renewed its record for the longest time. Cost: one MGET a second, a small hash
 * every 2 s, and the newest entries of device:sight every 5 s.
 */
#include "alert/follow/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/app.h"
#include "alert/follow/fields.h"
#include "stream/entries.h"

#define GROUPS_MAX   4096
#define GROUP_NAME   65
#define NODE_NAME    65
#define STILL_MS     5000 /* if a monitor's record does not grow for this long, the monitor is blind */
#define GROUPS_EVERY 2
#define NODES_EVERY  5
#define SIGHT_NEWEST "64"

struct node {
	char name[NODE_NAME];
	int64_t seen_ms;  /* of its record; 0: none */
	int64_t grown_ns; /* BOOTTIME: when it last grew */
	int64_t heard_ns; /* BOOTTIME: when this instance last saw it grow; 0: never */
	uint64_t added;   /* its number among all names that were added */
	bool asked;       /* the MGET that is under way has its key */
};

struct hw_alert_watch {
	struct hw_alert_app *app;
	struct node nodes[HW_INCIDENT_NODES];
	size_t n_nodes, n_asked;
	uint64_t n_added;
	struct hw_stream_id sight; /* the newest entry of device:sight whose name was added */
	bool asking;
	unsigned second;
};

/* Returns a free place. If there is none, returns the place of the monitor whose record has not grown for the longest
 * time. */
static struct node *place_of_new(struct hw_alert_watch *w)
{
	if (w->n_nodes < HW_INCIDENT_NODES)
		return &w->nodes[w->n_nodes++];
	struct node *least = &w->nodes[0];
	for (struct node *n = w->nodes; n < w->nodes + w->n_nodes; n++)
		if (n->heard_ns < least->heard_ns || (n->heard_ns == least->heard_ns && n->added < least->added))
			least = n;
	return least;
}

void hw_alert_watch_node(struct hw_alert_watch *w, const char *name)
{
	if (!name || !*name || strlen(name) >= NODE_NAME)
		return;
	for (size_t k = 0; k < w->n_nodes; k++)
		if (strcmp(w->nodes[k].name, name) == 0)
			return;
	struct node *n = place_of_new(w);
	*n = (struct node){.grown_ns = hw_alert_mono().ns, .added = ++w->n_added};
	strcpy(n->name, name);
}

/* --- sight records ------------------------------------------------------------------------------------------------ */

/* Reads "RUN MS" or "RUN MS CANARIES". Returns MS, a time of the monitor's clock, which may be wrong. 0: there is
 * no such text. */
static int64_t seen_of(const redisReply *r)
{
	char digits[24];
	const char *s = r->type == REDIS_REPLY_STRING ? strchr(r->str, ' ') : NULL;
	size_t n = s ? strcspn(s + 1, " ") : 0;
	if (n == 0 || n >= sizeof(digits))
		return 0;
	memcpy(digits, s + 1, n);
	digits[n] = '\0';
	return hw_number_of(digits, 1, INT64_MAX, 0);
}

static void on_records(void *arg, const redisReply *r)
{
	struct hw_alert_watch *w = arg;
	struct hw_now now = hw_alert_now(w->app);
	w->asking = false;
	if (!w->app->engine || !r || r->type != REDIS_REPLY_ARRAY || r->elements != w->n_asked)
		return;
	for (size_t k = 0; k < w->n_asked; k++) {
		struct node *n = &w->nodes[k];
		int64_t seen = seen_of(r->element[k]);
		if (!n->asked)
			continue; /* the answer is about the name that had this place before */
		if (seen && seen != n->seen_ms) {
			n->grown_ns = n->heard_ns = now.mono.ns;
			hw_incidents_sight_renewed(w->app->engine, now);
		}
		n->seen_ms = seen;
		hw_incidents_sight(w->app->engine, now, n->name, now.mono.ns - n->grown_ns > STILL_MS * HW_NS_PER_MS);
	}
	hw_alert_schedule_turn(w->app);
}

static void ask_records(struct hw_alert_watch *w)
{
	static char keys[HW_INCIDENT_NODES][HW_ALERT_KEY_MAX]; /* of the loop's thread alone */
	const char *words[HW_INCIDENT_NODES + 2] = {"MGET"};
	char rest[NODE_NAME + 8];
	if (w->n_nodes == 0 || w->asking)
		return;
	for (size_t k = 0; k < w->n_nodes; k++) {
		snprintf(rest, sizeof(rest), "monitor:%s", w->nodes[k].name);
		words[k + 1] = hw_alert_store_key(w->app->store, rest, keys[k]);
		w->nodes[k].asked = true;
	}
	words[w->n_nodes + 1] = NULL;
	w->n_asked = w->n_nodes;
	w->asking = hw_alert_store_ask(w->app->store, on_records, w, words) == 0;
}

/* Whether no known monitor renews its record. If so, a new name may be the name of the monitor that runs now. */
static bool is_unseen(const struct hw_alert_watch *w)
{
	int64_t now_ns = hw_alert_mono().ns;
	for (size_t k = 0; k < w->n_nodes; k++)
		if (w->nodes[k].heard_ns && now_ns - w->nodes[k].heard_ns <= STILL_MS * HW_NS_PER_MS)
			return false;
	return true;
}

/* Adds the names of new entries, the oldest first, because the oldest name in the table is replaced first. */
static void on_sight(void *arg, const redisReply *r)
{
	struct hw_alert_watch *w = arg;
	struct hw_stream_id id;
	bool all = is_unseen(w);
	for (size_t i = r && r->type == REDIS_REPLY_ARRAY ? r->elements : 0; i-- > 0;) {
		const redisReply *fields = hw_stream_entry_fields(r->element[i]);
		if (!fields || !hw_stream_entry_id(r->element[i], &id))
			continue;
		if (!all && hw_stream_id_compare(id, w->sight) <= 0)
			continue;
		w->sight = id;
		hw_alert_watch_node(w, hw_field_words(fields, "node", NODE_NAME - 1));
	}
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

/* Reads "ONLINE OFFLINE DEAF_SINCE_MS". If the time is in the future, the engine uses the present time. */
static bool read_group(const char *text, uint64_t n[2], int64_t *deaf_ms)
{
	char part[3][24];
	if (strlen(text) > 64 || sscanf(text, "%23s %23s %23s", part[0], part[1], part[2]) != 3)
		return false;
	int64_t online = hw_number_of(part[0], 0, INT32_MAX, -1), offline = hw_number_of(part[1], 0, INT32_MAX, -1);
	*deaf_ms = hw_number_of(part[2], 0, INT64_MAX, -1);
	n[0] = (uint64_t)online;
	n[1] = (uint64_t)offline;
	return online >= 0 && offline >= 0 && *deaf_ms >= 0;
}

static int note_group(struct hw_alert_app *app, struct hw_incidents *engine, const char *name, const char *text)
{
	uint64_t n[2];
	int64_t deaf_ms;
	if (strlen(name) >= GROUP_NAME || !*name || !read_group(text, n, &deaf_ms)) {
		hw_alert_unusable(app, HW_ALERT_UNUSABLE_GROUP, "%sgroups: an unusable field was skipped",
		                  app->conf->redis.key_prefix);
		return 0;
	}
	return hw_incidents_group(engine, hw_alert_now(app), name, n[0], n[1], deaf_ms);
}

int hw_alert_watch_groups(struct hw_alert_app *app, struct hw_incidents *engine, const redisReply *r)
{
	int rc = 0;
	for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && !rc && i + 1 < r->elements && i < 2 * GROUPS_MAX; i += 2)
		if (r->element[i]->type == REDIS_REPLY_STRING && r->element[i + 1]->type == REDIS_REPLY_STRING)
			rc = note_group(app, engine, r->element[i]->str, r->element[i + 1]->str);
	return rc;
}

static void on_groups(void *arg, const redisReply *r)
{
	struct hw_alert_watch *w = arg;
	if (!w->app->engine || !r)
		return;
	if (hw_alert_watch_groups(w->app, w->app->engine, r) != 0)
		hw_alert_on_no_memory(w->app);
	hw_alert_schedule_turn(w->app);
}

/* --- the interface ------------------------------------------------------------------------------------------------ */

void hw_alert_watch_store(struct hw_alert_watch *w, bool up)
{
	(void)up;
	w->asking = false;
	for (size_t k = 0; k < w->n_nodes; k++)
		w->nodes[k].grown_ns = hw_alert_mono().ns; /* nothing could be read meanwhile */
}

void hw_alert_watch_tick(struct hw_alert_watch *w)
{
	char key[HW_ALERT_KEY_MAX];
	unsigned second = w->second++;
	if (!w->app->engine || !hw_alert_store_is_up(w->app->store))
		return;
	ask_records(w);
	hw_alert_store_key(w->app->store, "groups", key);
	if (second % GROUPS_EVERY == 0)
		(void)hw_alert_store_ask(w->app->store, on_groups, w, (const char *[]){"HGETALL", key, NULL});
	hw_alert_store_key(w->app->store, "sight", key);
	if (second % NODES_EVERY == 0)
		(void)hw_alert_store_ask(w->app->store, on_sight, w,
		                         (const char *[]){"XREVRANGE", key, "+", "-", "COUNT", SIGHT_NEWEST, NULL});
}

struct hw_alert_watch *hw_alert_watch_new(struct hw_alert_app *app)
{
	struct hw_alert_watch *w = calloc(1, sizeof(*w));
	if (w)
		w->app = app;
	return w;
}

void hw_alert_watch_free(struct hw_alert_watch *w)
{
	free(w);
}
