/* SPDX-License-Identifier: MIT */
/*
 * Loads which devices are offline or unseen, and which devices each open incident has. See loader_priv.h and loader.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/app.h"
#include "alert/follow/fields.h"
#include "alert/follow/watch.h"
#include "alert/state/loader_priv.h"
#include "heartwheel/topic.h"

#define SCAN_COUNT "500"

static void read_state(struct hw_alert_loader *l, const char *id, const redisReply *r)
{
	struct hw_incident_entry entry;
	if (!hw_alert_state_read(id, r, l->bound_ms, &entry)) {
		bool is_hash = r->type == REDIS_REPLY_ARRAY;
		if (!is_hash || (r->elements > 0 && !hw_field_text(r, "state")))
			hw_alert_unusable(l->app, HW_ALERT_UNUSABLE_DEVICE,
			                  "the state of an offline device is unusable");
		if (is_hash)
			return;
		/* device:offline names the device, but device:state:ID has another type and says nothing about the
		 * device. So the device is loaded as offline. If it were left out, it would count as online again. */
		entry = (struct hw_incident_entry){.id = id,
		                                   .fact = HW_FACT_OFFLINE,
		                                   .time_ms = hw_alert_now(l->app).wall_ms,
		                                   .timeout_ms = -1,
		                                   .wait_ms = -1};
	}
	hw_alert_watch_node(l->app->watch, entry.node);
	l->failed |= hw_incidents_load_device(l->engine, &entry) != 0;
}

/* Handles the inventory's entry of an unseen device. `name`: since when it is unseen, a blank, and its id. */
static void read_expected(struct hw_alert_loader *l, const char *name, const redisReply *r)
{
	char *end;
	struct hw_alert_expected expected = {.group = ""};
	struct hw_incident_entry entry = {.fact = HW_FACT_UNSEEN, .wait_ms = -1, .timeout_ms = -1};
	entry.time_ms = strtoll(name, &end, 10);
	if (*end != ' ' || entry.time_ms <= 0 || entry.time_ms > l->bound_ms) /* another program's score may be 1e+20 */
		entry.time_ms = l->now_ms;
	entry.seq = (uint64_t)entry.time_ms;
	entry.id = strchr(name, ' ') + 1;
	if (r->type == REDIS_REPLY_STRING)
		hw_alert_expected_read(r->str, r->len, &expected);
	entry.group = *expected.group ? expected.group : NULL;
	entry.name = *expected.name ? expected.name : NULL;
	entry.labels = *expected.labels ? expected.labels : NULL;
	l->failed |= hw_incidents_load_device(l->engine, &entry) != 0;
}

static void ask_expected(struct hw_alert_loader *l, const char *id, const char *since_ms)
{
	char key[HW_ALERT_KEY_MAX], name[HW_ID_MAX + 32];
	hw_alert_store_key(l->app->store, "expected", key);
	snprintf(name, sizeof(name), "%.20s %s", since_ms, id);
	hw_alert_loader_ask(l, read_expected, name, (const char *[]){"HGET", key, id, NULL});
}

static void read_offline(struct hw_alert_loader *l, const char *name, const redisReply *r)
{
	(void)name;
	bool is = r->type == REDIS_REPLY_ARRAY && r->elements == 2 && r->element[0]->type == REDIS_REPLY_STRING &&
	          r->element[1]->type == REDIS_REPLY_ARRAY && r->element[0]->len < sizeof(l->cursor);
	char key[HW_ALERT_KEY_MAX];
	if (!is && l->unseen) {
		hw_alert_loader_refused(l, hw_alert_store_key(l->app->store, "unseen", key), r);
		hw_log_limited(l->app->log, HW_ALERT_LIMIT_UNUSABLE, HW_LOG_ERROR,
		               "cannot read which devices are unseen: %s", l->why);
		l->scanned = true;
		return;
	}
	if (!is) {
		hw_alert_loader_fail(l, hw_alert_store_key(l->app->store, "offline", key), r);
		return;
	}
	bool unseen = l->unseen, ended = strcmp(r->element[0]->str, "0") == 0;
	strcpy(l->cursor, r->element[0]->str);
	l->scanned = unseen && ended;
	l->unseen = unseen || ended;
	const redisReply *list = r->element[1];
	for (size_t i = 0; i + 1 < list->elements; i += 2) {
		const redisReply *id = list->element[i], *score = list->element[i + 1];
		bool is_device = id->type == REDIS_REPLY_STRING && hw_id_valid(id->str, id->len);
		if (is_device && unseen && score->type == REDIS_REPLY_STRING)
			ask_expected(l, id->str, score->str);
		else if (is_device && !unseen)
			hw_alert_loader_ask_key(l, read_state, id->str, "HGETALL", "state:", "");
		else
			hw_alert_unusable(l->app, HW_ALERT_UNUSABLE_DEVICE,
			                  "device:offline or device:unseen has a member that is no device");
	}
}

void hw_alert_loader_ask_devices(struct hw_alert_loader *l)
{
	char key[HW_ALERT_KEY_MAX];
	hw_alert_store_key(l->app->store, l->unseen ? "unseen" : "offline", key);
	if (hw_alert_loader_may_scan(l))
		hw_alert_loader_ask(l, read_offline, "",
		                    (const char *[]){"ZSCAN", key, l->cursor, "COUNT", SCAN_COUNT, NULL});
}

/* Called for a device that was unseen at the last commit, if device:unseen cannot be read. The device stays
 * unseen, unless it is offline. */
static void keep_unseen(struct hw_alert_loader *l, const char *id, int64_t since_ms)
{
	char since[24];
	struct hw_incident_entry entry = {.id = id,
	                                  .fact = HW_FACT_UNSEEN,
	                                  .time_ms = since_ms,
	                                  .timeout_ms = -1,
	                                  .wait_ms = -1,
	                                  .seq = (uint64_t)since_ms};
	if (hw_incidents_is_away(l->engine, id))
		return;
	l->failed |= hw_incidents_load_device(l->engine, &entry) != 0;
	snprintf(since, sizeof(since), "%lld", (long long)since_ms);
	ask_expected(l, id, since); /* for its group */
}

static void read_members(struct hw_alert_loader *l, const char *id, const redisReply *r)
{
	bool is = r->type == REDIS_REPLY_ARRAY && r->elements == 2 && r->element[0]->type == REDIS_REPLY_STRING &&
	          r->element[1]->type == REDIS_REPLY_ARRAY;
	const redisReply *list = is ? r->element[1] : NULL;
	for (size_t i = 0; list && i + 1 < list->elements; i += 2) {
		const redisReply *device = list->element[i], *value = list->element[i + 1];
		enum hw_incident_class class;
		int64_t since_ms;
		uint64_t seq;
		if (device->type == REDIS_REPLY_STRING && hw_id_valid(device->str, device->len) &&
		    value->type == REDIS_REPLY_STRING &&
		    hw_alert_member_read(value->str, l->bound_ms, &class, &since_ms, &seq)) {
			if (l->has_why && strncmp(value->str, "unseen ", 7) == 0)
				keep_unseen(l, device->str, since_ms);
			l->failed |= hw_incidents_load_member(l->engine, id, device->str, class, since_ms, seq) != 0;
		} else {
			hw_alert_unusable(l->app, HW_ALERT_UNUSABLE_INCIDENT, "a member of incident %s is unusable",
			                  id);
		}
	}
	if (is && strcmp(r->element[0]->str, "0") != 0)
		hw_alert_loader_scan_members(l, id, r->element[0]->str);
}

void hw_alert_loader_scan_members(struct hw_alert_loader *l, const char *id, const char *cursor)
{
	char rest[HW_INCIDENT_ID + 32], key[HW_ALERT_KEY_MAX];
	snprintf(rest, sizeof(rest), "incident:%s:members", id);
	hw_alert_store_key(l->app->store, rest, key);
	if (hw_alert_loader_may_scan(l))
		hw_alert_loader_ask(l, read_members, id,
		                    (const char *[]){"HSCAN", key, cursor, "COUNT", SCAN_COUNT, NULL});
}
