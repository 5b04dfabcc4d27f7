/* SPDX-License-Identifier: MIT */
/* Checks for a standalone monitor whether nodes of a cluster use its prefix. Cost: one command for each check. */
#include <errno.h>
#include <string.h>

#include "heartwheel/fnv.h"
#include "redis/inner.h"

static uint64_t hash_of(const redisReply *reply)
{
	uint64_t h = HW_FNV64_BEGIN;
	for (size_t i = 0; i < reply->elements; i++)
		if (reply->element[i]->type == REDIS_REPLY_STRING)
			h = hw_fnv64(h, reply->element[i]->str, reply->element[i]->len + 1);
	return h;
}

/* Handles the answer of a check. Without the right to read the key, this monitor cannot notice a cluster. */
static void on_nodes(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	bool any = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0;
	r->on_nodes(r->arg, any, any ? hash_of(reply) : 0);
}

int hw_redis_read_nodes(struct hw_redis *r, hw_redis_nodes_seen *fn)
{
	const char *argv[] = {"HGETALL", r->keys.nodes};
	const size_t len[] = {7, strlen(r->keys.nodes)};
	r->on_nodes = fn;
	return r->up ? hw_redis_link_command(&r->link, on_nodes, r, 2, argv, len) : -ENOTCONN;
}
