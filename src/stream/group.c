/* SPDX-License-Identifier: MIT */
/* See group.h. */
#include "stream/group.h"

#include <stdio.h>
#include <string.h>

#include "link/clock.h"
#include "stream/commands.h"
#include "stream/entries.h"

#define WORDS_MAX 12

static void request(struct hw_stream_group *g, redisCallbackFn *fn, const char *const *words)
{
	const char *argv[WORDS_MAX];
	size_t len[WORDS_MAX];
	int n = 0;
	for (; n < WORDS_MAX && words[n]; n++) {
		argv[n] = words[n];
		len[n] = strlen(words[n]);
	}
	g->asking = hw_redis_link_command(g->conf.link, fn, g, n, argv, len) == 0;
	if (!g->asking)
		hw_redis_link_fail(g->conf.link, "out of memory");
}

static bool is_error(const redisReply *r, const char *kind)
{
	return r->type == REDIS_REPLY_ERROR && strncmp(r->str, kind, strlen(kind)) == 0;
}

/* Whether the reply is usable. */
static bool is_answer(struct hw_stream_group *g, const redisReply *r)
{
	g->asking = false;
	if (!r)
		return false;
	hw_redis_link_got(g->conf.link);
	if (r->type != REDIS_REPLY_ERROR)
		return true;
	g->made = false;
	if (!is_error(r, "NOGROUP") && !is_error(r, "UNBLOCKED")) /* Redis came back empty */
		g->ops->on_refused(g->arg, r->str);
	return false;
}

static void on_read(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_stream_group *g = arg;
	bool own = g->asked_own;
	(void)ac;
	if (!is_answer(g, answer))
		return;
	const redisReply *entries = hw_stream_entries(answer, g->conf.key);
	size_t n = entries ? entries->elements : 0;
	if (own && n > 0)
		(void)hw_stream_entry_id(entries->element[n - 1], &g->own_at);
	else if (own)
		g->own = false;
	if (n > 0)
		g->ops->on_entries(g->arg, entries->element, n, own ? HW_STREAM_OWN : HW_STREAM_FRESH);
	g->ops->on_idle(g->arg);
}

/* The reply is [next, entries, ...]. */
static void on_taken_over(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_stream_group *g = arg;
	const redisReply *r = answer;
	(void)ac;
	if (!is_answer(g, r))
		return;
	if (r->type == REDIS_REPLY_ARRAY && r->elements >= 2 && r->element[1]->type == REDIS_REPLY_ARRAY &&
	    r->element[1]->elements > 0)
		g->ops->on_entries(g->arg, r->element[1]->element, r->element[1]->elements, HW_STREAM_TAKEN_OVER);
	g->ops->on_idle(g->arg);
}

static void on_made(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_stream_group *g = arg;
	(void)ac;
	bool exists = answer && is_error(answer, "BUSYGROUP");
	if (exists) {
		hw_redis_link_got(g->conf.link);
		g->asking = false;
	} else if (!is_answer(g, answer)) {
		return;
	}
	g->made = true;
	g->ops->on_idle(g->arg);
}

void hw_stream_group_read(struct hw_stream_group *g)
{
	const struct hw_stream_group_conf *c = &g->conf;
	char count[16], idle[16], wait[16], own_at[HW_STREAM_ID_TEXT];
	int64_t now = hw_clock_mono().ns / HW_NS_PER_MS;
	if (g->asking || !g->up)
		return;
	snprintf(count, sizeof(count), "%u", c->count);
	snprintf(idle, sizeof(idle), "%u", c->idle_ms);
	snprintf(wait, sizeof(wait), "%d", HW_STREAM_WAIT_MS);
	if (!g->made) {
		request(g, on_made, (const char *[]){"XGROUP", "CREATE", c->key, c->group, "0", "MKSTREAM", NULL});
	} else if (!g->own && now - g->took_over_ms >= HW_STREAM_TAKE_OVER_MS) {
		g->took_over_ms = now;
		request(g, on_taken_over,
		        (const char *[]){"XAUTOCLAIM", c->key, c->group, c->member, idle, "0-0", "COUNT", count, NULL});
	} else if ((g->asked_own = g->own)) {
		request(g, on_read,
		        (const char *[]){"XREADGROUP", "GROUP", c->group, c->member, "COUNT", count, "STREAMS", c->key,
		                         hw_stream_id_print(g->own_at, own_at), NULL});
	} else {
		request(g, on_read,
		        (const char *[]){"XREADGROUP", "GROUP", c->group, c->member, "COUNT", count, "BLOCK", wait,
		                         "STREAMS", c->key, ">", NULL});
	}
}

void hw_stream_group_up(struct hw_stream_group *g)
{
	g->up = g->own = true;
	g->made = false;
	g->own_at = (struct hw_stream_id){0, 0};
}

void hw_stream_group_down(struct hw_stream_group *g)
{
	g->up = g->asking = false;
}

void hw_stream_group_init(struct hw_stream_group *g, const struct hw_stream_group_conf *conf,
                          const struct hw_stream_group_ops *ops, void *arg)
{
	*g = (struct hw_stream_group){.conf = *conf, .ops = ops, .arg = arg};
}

static void put(struct hw_stream_acks *a, const char *word)
{
	a->argv[a->argc] = word;
	a->len[a->argc++] = strlen(word);
}

bool hw_stream_acks_add(struct hw_stream_acks *a, const struct hw_stream_group *g, struct hw_stream_id id)
{
	if (a->argc == 0) {
		put(a, "XACK");
		put(a, g->conf.key);
		put(a, g->conf.group);
	}
	put(a, hw_stream_id_print(id, a->ids[a->argc - 3]));
	return a->argc == 3 + HW_STREAM_ACKS;
}
