/* SPDX-License-Identifier: MIT */
/*
 * Finds the newest time until which any node of a cluster has seen the fleet. This is done once, before the load.
 *
 * The sight records of the members and of the last owners of partitions are read. No other record is needed: a node
 * that saw the fleet later than all of these would have owned some partitions. If a sight record cannot be read, the
 * time without a monitor counts as longer than it was.
 *
 * Cost: two rounds of commands: first 2, then one for each name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodes/claims.h"
#include "redis/inner.h"

#define NAMES 64

struct search {
	struct hw_redis *r;
	unsigned waiting; /* answers that are awaited */
	bool lost, asked; /* lost: the connection was lost; asked: the sight records were requested */
	unsigned n;
	char name[NAMES][HW_NODE_ID_MAX + 1];
};

static void ask_records(struct search *s);

/* Counts an answer; the last one starts the next step. */
static void answered(struct search *s)
{
	struct hw_redis *r = s->r;
	if (--s->waiting > 0)
		return;
	if (!s->lost && !s->asked) {
		ask_records(s);
		return;
	}
	bool lost = s->lost;
	free(s);
	if (lost)
		return;
	r->sight_record.searched = true;
	r->sight_record.then(r);
}

static void ask(struct search *s, redisCallbackFn *fn, const char *command, const char *key)
{
	const char *argv[] = {command, key};
	const size_t len[] = {strlen(command), strlen(key)};
	if (hw_redis_link_command(&s->r->link, fn, s, 2, argv, len) == 0)
		s->waiting++;
}

/* Handles a reply, or a lost link (`reply` NULL). */
static const redisReply *got(struct search *s, const redisReply *reply)
{
	s->lost |= !reply;
	if (reply)
		hw_redis_link_got(&s->r->link);
	return reply;
}

/* --- the names ---------------------------------------------------------------------------------------------------- */

static void add_name(struct search *s, const char *name)
{
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->name[i], name) == 0)
			return;
	if (s->n < NAMES)
		snprintf(s->name[s->n++], sizeof(s->name[0]), "%s", name);
}

static void on_members(redisAsyncContext *ac, void *answer, void *arg)
{
	struct search *s = arg;
	const redisReply *reply = got(s, answer);
	(void)ac;
	for (size_t i = 0; reply && reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
		const redisReply *name = reply->element[i];
		if (name->type == REDIS_REPLY_STRING && hw_claims_is_node(name->str, name->len))
			add_name(s, name->str);
	}
	answered(s);
}

static void on_owners(redisAsyncContext *ac, void *answer, void *arg)
{
	struct search *s = arg;
	const redisReply *reply = got(s, answer);
	struct hw_record owner;
	(void)ac;
	for (size_t i = 1; reply && reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i += 2) {
		const redisReply *text = reply->element[i];
		if (text->type == REDIS_REPLY_STRING && hw_record_parse(text->str, text->len, &owner) == 0)
			add_name(s, owner.token.node);
	}
	answered(s);
}

/* --- the times ---------------------------------------------------------------------------------------------------- */

static void on_record(redisAsyncContext *ac, void *answer, void *arg)
{
	struct search *s = arg;
	const redisReply *reply = got(s, answer);
	struct hw_sight_record *k = &s->r->sight_record;
	int64_t ms = reply ? hw_sight_record_ms(s->r, reply) : 0;
	(void)ac;
	if (ms > k->newest_ms)
		k->newest_ms = ms;
	answered(s);
}

static void ask_records(struct search *s)
{
	char key[512];
	s->asked = true;
	s->waiting = 1;
	for (unsigned i = 0; i < s->n; i++) {
		snprintf(key, sizeof(key), "%smonitor:%s", s->r->keys.prefix, s->name[i]);
		ask(s, on_record, "GET", key);
	}
	answered(s);
}

void hw_sight_records_read(struct hw_redis *r)
{
	struct search *s = calloc(1, sizeof(*s));
	if (!s) {
		r->sight_record.then(r);
		return;
	}
	s->r = r;
	s->waiting = 1;
	ask(s, on_members, "HGETALL", r->keys.nodes);
	ask(s, on_owners, "HGETALL", r->keys.owners);
	answered(s);
}
