/* SPDX-License-Identifier: MIT */
/* See advice.h. */
#include "tasks/queue/advice.h"

#include <stdlib.h>
#include <string.h>

#include "link/clock.h"
#include "tasks/app.h"

#define EVERY_MS (INT64_C(3600) * 1000)

struct hw_tasks_advice {
	struct hw_tasks_app *app;
	bool without_aof;   /* Redis has no append-only file */
	int64_t checked_ms; /* monotonic; 0: never on this connection */
};

/* Whether the reply of INFO has a line, such as "aof_enabled:0". */
static bool has(const char *info, const char *line)
{
	size_t len = strlen(line);
	for (const char *at = info; (at = strstr(at, line)) != NULL; at += len)
		if ((at == info || at[-1] == '\n') && (at[len] == '\r' || at[len] == '\n' || at[len] == '\0'))
			return true;
	return false;
}

static void on_memory(void *arg, const redisReply *r)
{
	struct hw_tasks_advice *v = arg;
	if (!r || r->type != REDIS_REPLY_STRING || has(r->str, "maxmemory:0"))
		return;
	static const char *const policies[] = {"maxmemory_policy:allkeys-lru", "maxmemory_policy:allkeys-lfu",
	                                       "maxmemory_policy:allkeys-random"};
	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++)
		if (has(r->str, policies[i]))
			hw_log(v->app->log, HW_LOG_WARNING,
			       "Redis may evict tasks when its memory is full (%s): set maxmemory-policy noeviction",
			       policies[i]);
}

/* Called with Redis' answer about the append-only file. Snapshots matter only if there is no such file; on_save()
 * checks them. */
static void on_aof(void *arg, const redisReply *r)
{
	struct hw_tasks_advice *v = arg;
	v->without_aof = r && r->type == REDIS_REPLY_STRING && has(r->str, "aof_enabled:0");
}

static void on_save(void *arg, const redisReply *r)
{
	struct hw_tasks_advice *v = arg;
	if (v->without_aof && r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 &&
	    r->element[1]->type == REDIS_REPLY_STRING && r->element[1]->len == 0)
		hw_log(v->app->log, HW_LOG_WARNING,
		       "Redis saves nothing to disk: its restart loses all tasks; set appendonly yes");
}

void hw_tasks_advice_tick(struct hw_tasks_advice *v)
{
	struct hw_tasks_store *store = v->app->store;
	int64_t now_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	if (!hw_tasks_store_is_up(store) || (v->checked_ms && now_ms - v->checked_ms < EVERY_MS))
		return;
	v->checked_ms = now_ms;
	hw_tasks_store_ask_aside(store, on_memory, v, (const char *[]){"INFO", "memory", NULL});
	hw_tasks_store_ask_aside(store, on_aof, v, (const char *[]){"INFO", "persistence", NULL});
	hw_tasks_store_ask_aside(store, on_save, v, (const char *[]){"CONFIG", "GET", "save", NULL});
}

void hw_tasks_advice_down(struct hw_tasks_advice *v)
{
	v->checked_ms = 0;
}

struct hw_tasks_advice *hw_tasks_advice_new(struct hw_tasks_app *app)
{
	struct hw_tasks_advice *v = calloc(1, sizeof(*v));
	if (v)
		v->app = app;
	return v;
}

void hw_tasks_advice_free(struct hw_tasks_advice *v)
{
	free(v);
}
