/* SPDX-License-Identifier: MIT */
/* Queries all keys. See resync.h. */
#include "redis/resync.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "link/clock.h"
#include "redis/redis.h"

#define PAGE_TEXT     "500"
#define PAGE_PACED_MS 50
#define SWEEP_BITE    1000
#define WAIT_MS       5  /* the delay while many queries wait */
#define ENOUGH        64 /* many: more than one 64th of their queue */

static void step_in(struct hw_resync *r, int ms)
{
	struct timeval tv = {0, ms * 1000};
	r->unarmed = event_add(r->step, &tv) != 0;
}

void hw_resync_tick(struct hw_resync *r)
{
	if (r->unarmed)
		event_active(r->step, EV_TIMEOUT, 0);
	r->unarmed = false;
}

static void step_on(struct hw_resync *r)
{
	step_in(r, r->paced ? PAGE_PACED_MS : 0);
}

static void begin(struct hw_resync *r)
{
	if (!r->wanted || !r->ready || r->stage != HW_RESYNC_NONE)
		return;
	r->wanted = false;
	r->stage = HW_RESYNC_SCAN;
	r->began = hw_clock_mono();
	r->at = 0;
	snprintf(r->cursor, sizeof(r->cursor), "0");
	step_in(r, 0);
}

static void end(struct hw_resync *r, bool complete)
{
	r->stage = HW_RESYNC_NONE;
	r->ended = hw_clock_mono();
	r->completed += complete;
	begin(r);
}

bool hw_resync_is_of_interest(const struct hw_monitor *m, const char *id, size_t len)
{
	const struct hw_registry *devices = hw_monitor_registry(m);
	uint32_t i = hw_registry_find(devices, id, len);
	if (i == HW_NIL)
		return true;
	const struct hw_device *d = hw_registry_at(devices, i);
	return (hw_device_source(d) & HW_SOURCE_KEY) ||
	       (hw_device_state(d) != HW_STATE_ONLINE && !hw_device_noted(d, HW_PENDING_STORE));
}

/* --- the existing keys -------------------------------------------------------------------------------------------- */

static void take_page(struct hw_resync *r, const redisReply *page)
{
	enum hw_device_key which;
	const char *id;
	size_t len;
	for (size_t i = 0; i < page->elements; i++) {
		const redisReply *key = page->element[i];
		if (key->type == REDIS_REPLY_STRING &&
		    hw_keys_device_id(r->keys, key->str, key->len, &which, &id, &len) && which == HW_KEY_CONNECTED &&
		    hw_resync_is_of_interest(r->m, id, len))
			hw_ttl_queries_add(r->queries, 0, id, len);
	}
}

static bool is_page(const struct hw_resync *r, const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	       reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1]->type == REDIS_REPLY_ARRAY &&
	       reply->element[0]->len < sizeof(r->cursor);
}

static void on_page(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_resync *r = arg;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(r->link);
	if (!is_page(r, reply)) {
		r->on_error(r->arg, reply->type == REDIS_REPLY_ERROR ? reply->str : "ERR malformed answer to SCAN");
		end(r, false);
		return;
	}
	take_page(r, reply->element[1]);
	snprintf(r->cursor, sizeof(r->cursor), "%s", reply->element[0]->str);
	if (strcmp(r->cursor, "0") == 0)
		r->stage = HW_RESYNC_SWEEP;
	step_on(r);
}

static void scan(struct hw_resync *r)
{
	const char *argv[] = {"SCAN", r->cursor, "MATCH", r->keys->connected_match, "COUNT", PAGE_TEXT};
	size_t len[6];
	for (int i = 0; i < 6; i++)
		len[i] = strlen(argv[i]);
	if (hw_redis_link_command(r->link, on_page, r, 6, argv, len) != 0)
		end(r, false);
}

/* --- the missing keys --------------------------------------------------------------------------------------------- */

static void sweep(struct hw_resync *r)
{
	const struct hw_registry *devices = hw_monitor_registry(r->m);
	uint32_t bound = hw_registry_bound(devices);
	for (unsigned n = 0; n < SWEEP_BITE && r->at < bound; n++, r->at++) {
		const struct hw_device *d = hw_registry_at(devices, r->at);
		if (!d || hw_device_state(d) != HW_STATE_ONLINE || !(hw_device_source(d) & HW_SOURCE_KEY))
			continue;
		const struct hw_key *k = hw_device_key(d);
		struct hw_id id = hw_device_id(d);
		if (!k || k->checked.ns < r->began.ns)
			hw_ttl_queries_add(r->queries, 0, id.text, id.len);
	}
	if (r->at >= bound)
		end(r, true);
	else
		step_on(r);
}

static void step(struct hw_resync *r)
{
	uint32_t waiting = hw_ttl_queries_waiting(r->queries);
	if (r->stage == HW_RESYNC_NONE)
		return;
	if (r->wanted)
		end(r, false);
	else if (waiting > r->queries->max / ENOUGH || (r->stage == HW_RESYNC_SWEEP && waiting))
		step_in(r, WAIT_MS);
	else if (r->stage == HW_RESYNC_SCAN)
		scan(r);
	else
		sweep(r);
}

static void on_step(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	step(arg);
}

/* --- its owner ---------------------------------------------------------------------------------------------------- */

void hw_resync_want(struct hw_resync *r, bool paced)
{
	r->wanted = true;
	r->paced = paced;
	begin(r);
}

void hw_resync_ready(struct hw_resync *r)
{
	r->ready = true;
}

void hw_resync_lost(struct hw_resync *r)
{
	r->ready = false;
	r->stage = HW_RESYNC_NONE;
	r->wanted = true;
	event_del(r->step);
}

bool hw_resync_is_due(const struct hw_resync *r, struct hw_mono now, int64_t every_ns)
{
	return r->stage == HW_RESYNC_NONE && now.ns - r->ended.ns > every_ns;
}

int hw_resync_init(struct hw_resync *r, struct event_base *base, struct hw_redis_link *link, const struct hw_keys *keys,
                   const struct hw_monitor *m, struct hw_ttl_queries *queries,
                   void (*on_error)(void *arg, const char *reply), void *arg)
{
	r->link = link;
	r->keys = keys;
	r->m = m;
	r->queries = queries;
	r->on_error = on_error;
	r->arg = arg;
	r->ended = hw_clock_mono();
	r->step = event_new(base, -1, 0, on_step, r);
	return r->step ? 0 : -ENOMEM;
}

void hw_resync_fini(struct hw_resync *r)
{
	if (r->step)
		event_free(r->step);
}
