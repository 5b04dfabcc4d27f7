/* SPDX-License-Identifier: MIT */
/* See advice.h. */
#include "tasks/advice.h"

#include <stdlib.h>
#include <string.h>

#include "tasks/app.h"

/* Whether INFO has that line: "aof_enabled:0". */
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
	struct hw_tasks_app *a = arg;
	if (!r || r->type != REDIS_REPLY_STRING || has(r->str, "maxmemory:0"))
		return;
	static const char *const policies[] = {"maxmemory_policy:allkeys-lru", "maxmemory_policy:allkeys-lfu",
	                                       "maxmemory_policy:allkeys-random"};
	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++)
		if (has(r->str, policies[i]))
			hw_log(a->log, HW_LOG_WARNING,
			       "Redis may evict tasks when its memory is full (%s): set maxmemory-policy noeviction",
			       policies[i]);
}

/* With an append-only file it does not matter whether there are snapshots. */
static void on_aof(void *arg, const redisReply *r)
{
	struct hw_tasks_app *a = arg;
	a->without_aof = r && r->type == REDIS_REPLY_STRING && has(r->str, "aof_enabled:0");
}

static void on_save(void *arg, const redisReply *r)
{
	struct hw_tasks_app *a = arg;
	if (a->without_aof && r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 &&
	    r->element[1]->type == REDIS_REPLY_STRING && r->element[1]->len == 0)
		hw_log(a->log, HW_LOG_WARNING,
		       "Redis persists nothing: tasks are lost when it restarts; set appendonly yes");
}

void hw_tasks_advise(struct hw_tasks_app *a)
{
	hw_tasks_store_ask_aside(a->store, on_memory, a, (const char *[]){"INFO", "memory", NULL});
	hw_tasks_store_ask_aside(a->store, on_aof, a, (const char *[]){"INFO", "persistence", NULL});
	hw_tasks_store_ask_aside(a->store, on_save, a, (const char *[]){"CONFIG", "GET", "save", NULL});
}
