/* SPDX-License-Identifier: MIT */
/*
 * See fleet.h. Cost: a request each second, and a few allocations for each transition.
 *
 * Invariant: while heartwheeld's devices are being listed (`listing`), events wait in `first`, and are carried out
 * after the list. The list may be older or newer than these events. But the last event of a device has the device's
 * present state, so the result is right in both cases.
 */
#include "alert/memory/fleet.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/app.h"
#include "alert/follow/follow.h"
#include "alert/follow/watch.h"
#include "alert/memory/keys.h"
#include "heartwheel/json_tree.h"
#include "heartwheel/print.h"
#include "heartwheel/topic.h"
#include "http/fetch.h"
#include "http/multi.h"
#include "link/clock.h"

#define TIMEOUT_MS  5000
#define ANSWER_MAX  (4 << 20)
#define LINE_MAX_   (1 << 20)
#define WAITING_MAX 200000 /* events */
#define EVENTS_MAX  "200000"
#define HEARD_MAX   "1000"
#define LIST_PATH   "/v1/devices?state=offline&limit=1000"

/* An event of the stream. */
struct event_text {
	struct event_text *next;
	char name[32], id[HW_STREAM_ID_TEXT], *data;
};

struct hw_alert_fleet {
	struct hw_alert_app *app;
	struct hw_keys *keys; /* borrowed */
	struct hw_multi multi;
	CURL *easy; /* of /v1/events */
	struct hw_fetch *fetch;
	struct evbuffer *lines;
	struct event_text now; /* the event whose lines are being read */
	struct event_text *first, **last;
	size_t n_waiting;
	bool sees;    /* the last request found that heartwheeld can judge devices */
	bool running; /* the transfer of /v1/events is under way */
	bool open;    /* ... and heartwheeld has accepted it */
	bool must_list;
	bool listing;    /* a request for a page is under way */
	bool stale;      /* ... whose answer cannot be used */
	bool asking;     /* a request for the status or the groups is under way */
	bool asked_open; /* ... that began while `open` */
	bool may_list;   /* since the connection opened, heartwheeld has seen the fleet, so it knows the retained
	                    statuses */
	unsigned second;
	char new_offline[HW_ALERT_KEY_MAX], offline[HW_ALERT_KEY_MAX], new_groups[HW_ALERT_KEY_MAX],
		groups[HW_ALERT_KEY_MAX], events[HW_ALERT_KEY_MAX], heard[HW_ALERT_KEY_MAX], known[HW_ALERT_KEY_MAX];
};

#define DO(f, ...) hw_keys_do((f)->keys, (const char *const[]){__VA_ARGS__, NULL})

static const char *key(const struct hw_alert_app *a, const char *rest, const char *name, char buf[HW_ALERT_KEY_MAX])
{
	snprintf(buf, HW_ALERT_KEY_MAX, "%s%s%.300s", a->conf->redis.key_prefix, rest, name);
	return buf;
}

static const char *text_of(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* Writes a number as text; "": the object has none. */
static const char *number_of(const cJSON *object, const char *name, char buf[24])
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
	bool is = cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble < 9e15;
	snprintf(buf, 24, "%.0f", is ? v->valuedouble : 0);
	return is ? buf : "";
}

/* --- devices ------------------------------------------------------------------------------------------------------ */

/* Joins the ids in an array, one per line. Returns false if there is none. */
static bool parents_of(const cJSON *device, char *buf, size_t cap)
{
	const cJSON *one;
	size_t n = 0;
	buf[0] = '\0';
	cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(device, "parents"))
	{
		const char *id = cJSON_GetStringValue(one);
		if (id)
			n += hw_print(buf + n, cap - n, "%s%s", n ? "\n" : "", id);
	}
	return n > 0;
}

/* Returns the labels of a device, as a JSON object on the heap; NULL: it has none, or there is no memory. */
static char *labels_of(const cJSON *device)
{
	const cJSON *labels = cJSON_GetObjectItemCaseSensitive(device, "labels");
	return cJSON_IsObject(labels) && labels->child ? cJSON_PrintUnformatted(labels) : NULL;
}

static void forget_state(struct hw_alert_fleet *f, const char *id)
{
	char state[HW_ALERT_KEY_MAX];
	DO(f, "DEL", key(f->app, "state:", id, state));
}

/* Stores that a device is offline. After a restart, heartwheeld may not know the parents of a device. The parents that
 * are stored for the device then stay. */
static void put_offline(struct hw_alert_fleet *f, const cJSON *device, const char *list)
{
	char state[HW_ALERT_KEY_MAX], parents[HW_INCIDENT_PARENTS * 256], since[24], seq[24], timeout[24];
	const char *id = text_of(device, "id"), *group = text_of(device, "group");
	key(f->app, "state:", id, state);
	bool has_parents = parents_of(device, parents, sizeof(parents));
	const char *old = has_parents ? NULL : hw_keys_field(f->keys, state, "parent");
	if (old)
		has_parents = hw_print(parents, sizeof(parents), "%s", old) > 0;
	number_of(device, "since_ms", since);
	DO(f, "DEL", state);
	DO(f, "HSET", state, "state", "offline", "since", since, "timeout", number_of(device, "timeout_ms", timeout),
	   "group", group ? group : "", "node", f->app->conf->node_id, "seq", number_of(device, "seq", seq));
	if (has_parents)
		DO(f, "HSET", state, "parent", parents);
	const char *name = text_of(device, "name");
	if (name)
		DO(f, "HSET", state, "name", name);
	char *labels = labels_of(device);
	if (labels)
		DO(f, "HSET", state, "labels", labels);
	cJSON_free(labels);
	DO(f, "ZADD", list, since, id);
}

static void add_entry(struct hw_alert_fleet *f, const cJSON *e, const char *id)
{
	char parents[HW_INCIDENT_PARENTS * 256], since[24], seen[24], seq[24], timeout[24], wait[24];
	const char *reason = text_of(e, "reason"), *group = text_of(e, "group"), *state = text_of(e, "state");
	const char *words[32] = {"XADD",         f->events,
	                         "MAXLEN",       "~",
	                         EVENTS_MAX,     id,
	                         "id",           text_of(e, "id"),
	                         "state",        state,
	                         "reason",       reason ? reason : "",
	                         "time_ms",      number_of(e, "since_ms", since),
	                         "last_seen_ms", number_of(e, "last_seen_ms", seen),
	                         "group",        group ? group : "",
	                         "node",         f->app->conf->node_id,
	                         "seq",          number_of(e, "seq", seq)};
	size_t n = 22;
	if (parents_of(e, parents, sizeof(parents))) {
		words[n++] = "parent";
		words[n++] = parents;
		if (strcmp(state, "offline") == 0) {
			words[n++] = "timeout_ms";
			words[n++] = number_of(e, "timeout_ms", timeout);
			words[n++] = "wait_ms"; /* without a value it is not a number, and counts as none */
			words[n++] = number_of(e, "wait_ms", wait);
		}
	}
	const char *name = text_of(e, "name");
	if (name) {
		words[n++] = "name";
		words[n++] = name;
	}
	char *labels = labels_of(e);
	if (labels) {
		words[n++] = "labels";
		words[n++] = labels;
	}
	hw_keys_run(f->keys, n, words, NULL);
	cJSON_free(labels);
}

/* Carries out a transition, unless it was carried out before. */
static void put_transition(struct hw_alert_fleet *f, const char *at, const cJSON *e)
{
	const char *id = text_of(e, "id"), *state = text_of(e, "state");
	struct hw_stream_id is;
	if (!id || !hw_id_valid(id, strlen(id)) || !state || hw_stream_id_parse(at, strlen(at), &is) != 0 ||
	    hw_stream_id_compare(is, hw_keys_newest(f->keys, f->events)) <= 0)
		return;
	add_entry(f, e, at);
	if (strcmp(state, "offline") == 0) {
		put_offline(f, e, f->offline);
		return;
	}
	DO(f, "ZREM", f->offline, id);
	forget_state(f, id);
}

static void put_heard(struct hw_alert_fleet *f, const cJSON *e)
{
	char seq[24], settle[24];
	const char *id = text_of(e, "id"), *parent = text_of(e, "parent");
	if (id && parent)
		DO(f, "XADD", f->heard, "MAXLEN", "~", HEARD_MAX, "*", "id", id, "seq", number_of(e, "seq", seq),
		   "parent", parent, "settle_ms", number_of(e, "settle_ms", settle));
}

/* --- the list of offline devices -----------------------------------------------------------------------------------
 */

static void take_event(struct hw_alert_fleet *f, const struct event_text *e);

static void drop_waiting(struct hw_alert_fleet *f, bool take)
{
	while (f->first) {
		struct event_text *e = f->first;
		f->first = e->next;
		if (take)
			take_event(f, e);
		free(e->data);
		free(e);
	}
	f->last = &f->first;
	f->n_waiting = 0;
}

static void end_list(struct hw_alert_fleet *f)
{
	const char *id;
	for (size_t at = 0; (id = hw_keys_item(f->keys, f->offline, at)); at++)
		if (!hw_keys_field(f->keys, f->new_offline, id))
			forget_state(f, id);
	DO(f, "RENAME", f->new_offline, f->offline);
	DO(f, "DEL", f->events);
	DO(f, "SET", f->known, "1");
	f->must_list = false;
	drop_waiting(f, true);
	if (f->app->engine)
		hw_alert_on_gap(f->app);
	hw_log(f->app->log, HW_LOG_INFO,
	       "the list of heartwheeld's offline devices was read; incidents are updated from it");
}

static void on_list(void *arg, long status, const char *body, size_t len);

static void ask_list(struct hw_alert_fleet *f, const char *after)
{
	char path[sizeof(LIST_PATH) + 3 * HW_ID_MAX + 16] = LIST_PATH;
	size_t n = strlen(path);
	if (*after) {
		char *escaped = curl_easy_escape(f->easy, after, 0);
		snprintf(path + n, sizeof(path) - n, "&after=%s", escaped ? escaped : "");
		curl_free(escaped);
	}
	f->listing = hw_fetch_get(f->fetch, path, on_list, f) == 0;
}

/* Begins to list the offline devices, if a list is needed and heartwheeld knows the retained statuses. The connection
 * for events is open by then, so no later event is missed. */
static void continue_list(struct hw_alert_fleet *f)
{
	if (!f->may_list || !f->must_list || f->listing)
		return;
	DO(f, "DEL", f->new_offline);
	ask_list(f, "");
}

static void on_list(void *arg, long status, const char *body, size_t len)
{
	struct hw_alert_fleet *f = arg;
	cJSON *page = status == 200 ? hw_json_tree(body, len) : NULL;
	const cJSON *devices = cJSON_GetObjectItemCaseSensitive(page, "devices"), *device;
	const char *next = text_of(page, "next");
	f->listing = false;
	if (f->stale || !f->running || !cJSON_IsArray(devices)) {
		f->stale = false;
		cJSON_Delete(page); /* the tick begins again */
		return;
	}
	cJSON_ArrayForEach(device, devices)
	{
		const char *id = text_of(device, "id");
		if (id && hw_id_valid(id, strlen(id)))
			put_offline(f, device, f->new_offline);
	}
	if (next)
		ask_list(f, next);
	else
		end_list(f);
	cJSON_Delete(page);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void take_event(struct hw_alert_fleet *f, const struct event_text *e)
{
	cJSON *data = cJSON_Parse(e->data ? e->data : "");
	if (strcmp(e->name, "transition") == 0)
		put_transition(f, e->id, data);
	else if (strcmp(e->name, "parent_heard") == 0)
		put_heard(f, data);
	cJSON_Delete(data);
	hw_alert_follow_entry(f->app->follow);
	if (hw_keys_failed(f->keys))
		hw_alert_on_no_memory(f->app);
}

/* Keeps an event until the devices are listed. Returns false if there are too many. */
static bool keep_event(struct hw_alert_fleet *f, const struct event_text *e)
{
	struct event_text *copy = f->n_waiting < WAITING_MAX ? malloc(sizeof(*copy)) : NULL;
	if (!copy)
		return false;
	*copy = *e;
	copy->next = NULL;
	copy->data = e->data ? strdup(e->data) : NULL;
	*f->last = copy;
	f->last = &copy->next;
	f->n_waiting++;
	return true;
}

static bool on_event(struct hw_alert_fleet *f, const struct event_text *e)
{
	if (strcmp(e->name, "reset") == 0) {
		f->must_list = true;
		f->stale = f->listing;
		drop_waiting(f, false);
		continue_list(f);
		return true;
	}
	if (f->must_list)
		return keep_event(f, e);
	take_event(f, e);
	return true;
}

static void drop_event(struct event_text *e)
{
	free(e->data);
	*e = (struct event_text){0};
}

/* Handles a line of the stream. Returns false if the connection must end. */
static bool on_line(struct hw_alert_fleet *f, const char *line)
{
	bool right = true;
	if (!*line) {
		right = !*f->now.name || on_event(f, &f->now);
		drop_event(&f->now);
	} else if (strncmp(line, "event: ", 7) == 0) {
		snprintf(f->now.name, sizeof(f->now.name), "%s", line + 7);
	} else if (strncmp(line, "id: ", 4) == 0) {
		snprintf(f->now.id, sizeof(f->now.id), "%s", line + 4);
	} else if (strncmp(line, "data: ", 6) == 0) {
		free(f->now.data);
		f->now.data = strdup(line + 6);
		right = f->now.data != NULL;
	}
	return right;
}

/* Called by libcurl. An answer of less than all bytes ends the transfer. */
static size_t on_bytes(char *bytes, size_t size, size_t n, void *arg)
{
	struct hw_alert_fleet *f = arg;
	char *line;
	(void)size;
	if (evbuffer_add(f->lines, bytes, n) != 0)
		return 0;
	while ((line = evbuffer_readln(f->lines, NULL, EVBUFFER_EOL_LF))) {
		bool right = on_line(f, line);
		free(line);
		if (!right)
			return 0;
	}
	return evbuffer_get_length(f->lines) < LINE_MAX_ ? n : 0;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
	struct hw_alert_fleet *f = arg;
	long status = 0;
	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	f->open |= size * n == 2 && bytes[0] == '\r' && status == 200;
	return size * n;
}

static void on_closed(void *arg, CURL *easy, CURLcode code)
{
	struct hw_alert_fleet *f = arg;
	(void)easy;
	f->running = f->open = f->sees = f->asked_open = f->may_list = false;
	f->stale = f->listing;
	drop_waiting(f, false);
	hw_log_limited(f->app->log, HW_ALERT_LIMIT_EVENTS, HW_LOG_WARNING,
	               "the connection to heartwheeld at %s has ended: %s; heartwheel-alert connects again",
	               f->app->conf->monitor_socket, curl_easy_strerror(code));
}

/* Requests the events after the last one, or, if the devices must be listed, from now on. */
static void connect_events(struct hw_alert_fleet *f)
{
	char id[HW_STREAM_ID_TEXT], query[HW_STREAM_ID_TEXT + 8];
	struct hw_stream_id last = hw_keys_newest(f->keys, f->events);
	if (f->running || !f->sees)
		return;
	f->must_list |= last.ms == 0;
	snprintf(query, sizeof(query), "after=%s", hw_stream_id_print(last, id));
	evbuffer_drain(f->lines, evbuffer_get_length(f->lines));
	drop_event(&f->now);
	if (hw_multi_set_path(f->easy, "/v1/events", f->must_list ? NULL : query) == 0)
		f->running = hw_multi_add(&f->multi, f->easy) == 0;
}

/* --- the monitor and its groups ----------------------------------------------------------------------------------- */

static void on_status(void *arg, long status, const char *body, size_t len)
{
	struct hw_alert_fleet *f = arg;
	cJSON *j = status == 200 ? hw_json_tree(body, len) : NULL;
	char record[HW_ALERT_KEY_MAX], value[64], ms[24];
	const char *node = f->app->conf->node_id;
	f->asking = false;
	f->sees = cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(j, "blind")) &&
	          cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(j, "loading"));
	if (f->sees) {
		snprintf(value, sizeof(value), "heartwheeld %s", number_of(j, "now_ms", ms));
		DO(f, "SET", key(f->app, "monitor:", node, record), value);
		hw_alert_watch_node(f->app->watch, node);
	}
	f->may_list |= f->sees && f->asked_open;
	connect_events(f);
	continue_list(f);
	cJSON_Delete(j);
}

/* Stores a group: "ONLINE OFFLINE DEAF_SINCE_MS". A deaf group keeps the time at which it was first found deaf. */
static void put_group(struct hw_alert_fleet *f, const cJSON *group)
{
	const char *name = text_of(group, "name"), *old = name ? hw_keys_field(f->keys, f->groups, name) : NULL;
	const char *since = old ? strrchr(old, ' ') : NULL;
	bool deaf = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(group, "deaf"));
	char online[24], offline[24], value[96];
	int64_t deaf_ms = deaf && since ? strtoll(since + 1, NULL, 10) : 0;
	if (deaf && deaf_ms == 0)
		deaf_ms = hw_clock_now().wall_ms;
	snprintf(value, sizeof(value), "%s %s %" PRId64, number_of(group, "online", online),
	         number_of(group, "offline", offline), deaf_ms);
	if (name)
		DO(f, "HSET", f->new_groups, name, value);
}

static void on_groups(void *arg, long status, const char *body, size_t len)
{
	struct hw_alert_fleet *f = arg;
	cJSON *j = status == 200 ? hw_json_tree(body, len) : NULL;
	const cJSON *groups = cJSON_GetObjectItemCaseSensitive(j, "groups"), *group;
	f->asking = false;
	cJSON_ArrayForEach(group, groups) put_group(f, group);
	if (cJSON_IsArray(groups))
		DO(f, "RENAME", f->new_groups, f->groups);
	cJSON_Delete(j);
}

void hw_alert_fleet_tick(struct hw_alert_fleet *f)
{
	bool groups = f->second++ % 2 && f->may_list;
	if (!f->asking) {
		f->asked_open = f->open;
		f->asking = hw_fetch_get(f->fetch, groups ? "/v1/groups" : "/v1/status", groups ? on_groups : on_status,
		                         f) == 0;
	}
	connect_events(f);
	continue_list(f);
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

bool hw_alert_fleet_is_known(const struct hw_keys *keys, const struct hw_alert_app *app)
{
	char known[HW_ALERT_KEY_MAX];
	return hw_keys_text(keys, key(app, "fleet", "", known)) != NULL;
}

static bool set_up(struct hw_alert_fleet *f)
{
	const char *socket = f->app->conf->monitor_socket;
	bool ready = hw_multi_init(&f->multi, f->app->loop.base, on_closed, f) == 0;
	f->lines = evbuffer_new();
	f->fetch = hw_fetch_new(f->app->loop.base, socket, TIMEOUT_MS, ANSWER_MAX);
	f->easy = hw_multi_inward(socket);
	if (!ready || !f->lines || !f->fetch || !f->easy)
		return false;
	curl_easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(f->easy, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(f->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(f->easy, CURLOPT_HEADERDATA, f);
	return true;
}

struct hw_alert_fleet *hw_alert_fleet_new(struct hw_alert_app *app, struct hw_keys *keys)
{
	struct hw_alert_fleet *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->app = app;
	f->keys = keys;
	f->last = &f->first;
	key(app, "offline", "", f->offline);
	key(app, "offline", ":new", f->new_offline);
	key(app, "groups", "", f->groups);
	key(app, "groups", ":new", f->new_groups);
	key(app, "events", "", f->events);
	key(app, "parent_heard", "", f->heard);
	key(app, "fleet", "", f->known);
	if (set_up(f))
		return f;
	hw_alert_fleet_free(f);
	return NULL;
}

void hw_alert_fleet_free(struct hw_alert_fleet *f)
{
	if (!f)
		return;
	if (f->running)
		hw_multi_remove(&f->multi, f->easy);
	if (f->easy)
		curl_easy_cleanup(f->easy);
	hw_multi_fini(&f->multi);
	hw_fetch_free(f->fetch);
	if (f->lines)
		evbuffer_free(f->lines);
	drop_waiting(f, false);
	drop_event(&f->now);
	free(f);
}
