/* SPDX-License-Identifier: MIT */
/*
 * P, in the hash device:published: see hw_redis_write_published(). A standalone monitor has the field `all`. A node of
 * a cluster has a field for each partition that it owns, and writes it behind the fence (scripts/published.lua).
 *
 * A P that must be lowered is due before the transition that lowers it. So each P that is due is sent before the next
 * transitions, on the same connection. If Redis refuses P, it is sent again in the next second. The transitions do not
 * wait for it: without a right P, the next run only publishes statuses later than it could.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/print.h"
#include "nodes/claims.h"
#include "redis/inner.h"
#include "redis/places.h"

#define ALL         "all"
#define NUMBER_TEXT 24

static void add_all(struct hw_partitions *to, const struct hw_partitions *set)
{
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++)
		to->bits[k] |= set->bits[k];
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

/* Whether an error concerns Redis as a whole, and not P alone. An ACL of an earlier version denies only the key of
 * P. */
static bool is_global(enum hw_trouble k)
{
	return hw_trouble_is_global(k) && k != HW_TROUBLE_NOPERM;
}

static void refused(struct hw_redis *r, const char *error)
{
	struct hw_published *p = &r->published;
	char why[HW_TROUBLE_TEXT], text[HW_TROUBLE_TEXT + 400];
	add_all(&p->refused, &p->written);
	if (is_global(hw_trouble_of(error)))
		return; /* the transitions get the same error */
	hw_trouble_text(error, why);
	snprintf(text, sizeof(text),
	         "%.250s cannot be written, so after the next start, states that the broker has not acknowledged are "
	         "not published before all others, and with republish_rate = 0 not at all: %.380s",
	         r->keys.published, why);
	hw_refusal_log(r, &p->reported_ms, text);
}

/* Removes the outbox's entries of an earlier version, because P covers their devices now. */
static void remove_old(struct hw_redis *r)
{
	if (!r->published.has_old || r->load.stage != HW_LOAD_DONE || hw_partitions_any(&r->published.due))
		return;
	r->published.has_old = false;
	r->published.removes_old = true;
	hw_load_up(r);
}

static void on_written(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	r->published.in_flight -= r->published.in_flight > 0;
	if (reply->type == REDIS_REPLY_ERROR) {
		refused(r, reply->str);
		return;
	}
	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
		(void)hw_call_owner_refused(r, reply->element[i]); /* the partition will be lost, and its P with it */
	remove_old(r);
}

/* Removes the P of the partitions, which a cluster has left. */
static void remove_strangers(struct hw_redis *r)
{
	char name[HW_PARTITIONS][4];
	const char *argv[2 + HW_PARTITIONS] = {"HDEL", r->keys.published};
	size_t len[2 + HW_PARTITIONS] = {4, strlen(r->keys.published)};
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		len[2 + p] = hw_print(name[p], sizeof(name[p]), "%u", p);
		argv[2 + p] = name[p];
	}
	r->published.has_strangers = false;
	if (hw_redis_link_command(&r->link, on_written, r, 2 + HW_PARTITIONS, argv, len) == 0)
		r->published.in_flight++;
}

static void send_all(struct hw_redis *r)
{
	char text[NUMBER_TEXT];
	size_t n = hw_print(text, sizeof(text), "%" PRIu64, r->published.value[0]);
	const char *argv[] = {"HSET", r->keys.published, ALL, text};
	const size_t len[] = {4, strlen(r->keys.published), strlen(ALL), n};
	if (hw_redis_link_command(&r->link, on_written, r, 4, argv, len) != 0)
		return;
	r->published.in_flight++;
	hw_partitions_del(&r->published.due, 0);
	if (r->published.has_strangers)
		remove_strangers(r);
}

/* Sends one call with each P that is due, from partition *p on. The P of a partition that another node owns is
 * dropped. */
static bool send_some(struct hw_redis *r, unsigned *p)
{
	struct hw_published *own = &r->published;
	struct hw_eval *e = &r->sink.eval;
	struct hw_partitions sent = {{0}};
	unsigned n = 0;
	hw_eval_begin(e);
	hw_eval_key(e, r->keys.published, strlen(r->keys.published));
	hw_call_owner_begin(r);
	for (; *p < HW_PARTITIONS && n < HW_CALL_ITEMS; ++*p) {
		if (!hw_partitions_has(&own->due, *p))
			continue;
		hw_partitions_add(&sent, *p);
		if (!hw_call_owner_add_partition(r, n, *p)) {
			hw_partitions_del(&own->written, *p);
			continue;
		}
		hw_eval_item(e);
		hw_eval_put_int(e, HW_AT_PUBLISHED_PARTITION, *p);
		hw_eval_put_int(e, HW_AT_PUBLISHED_VALUE, (int64_t)own->value[*p]);
		n++;
	}
	hw_call_owner_end(r);
	if (n > 0 && hw_scripts_call(&r->scripts, HW_SCRIPT_PUBLISHED, e, on_written, r) != 0)
		return false;
	own->in_flight += n > 0;
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++)
		own->due.bits[k] &= ~sent.bits[k];
	return true;
}

void hw_published_send(struct hw_redis *r)
{
	unsigned p = 0;
	if (!hw_partitions_any(&r->published.due))
		return;
	if (!r->ops->owner)
		send_all(r);
	else
		while (p < HW_PARTITIONS && send_some(r, &p))
			;
}

void hw_redis_write_published(struct hw_redis *r, unsigned partition, uint64_t p)
{
	r->published.value[partition] = p;
	hw_partitions_add(&r->published.written, partition);
	hw_partitions_add(&r->published.due, partition);
	hw_plan_pump(r);
}

bool hw_redis_published_idle(const struct hw_redis *r)
{
	return !r->up || (!hw_partitions_any(&r->published.due) && r->published.in_flight == 0);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* Returns P. A P ahead of the clock is valid: the clock may be wrong, and the next transition lowers such a P. If the
 * value is not a P, returns 0: the broker may lack each status. */
static uint64_t value_of(struct hw_redis *r, const redisReply *name, const redisReply *e)
{
	const char *at = e->str;
	char text[HW_TROUBLE_TEXT];
	uint64_t p;
	if (e->type == REDIS_REPLY_STRING && hw_claims_number(&at, e->str + e->len, HW_SINCE_MAX, &p) == 0 &&
	    at == e->str + e->len)
		return p;
	snprintf(text, sizeof(text),
	         "the value of field '%.3s' of %.250s cannot be used, so each state is published again; find the "
	         "program that wrote it",
	         name->str, r->keys.published);
	hw_refusal_log(r, &r->published.unusable_ms, text);
	return 0;
}

static bool is_partition(const redisReply *e, unsigned *p)
{
	uint64_t n;
	const char *at = e->str;
	if (e->type != REDIS_REPLY_STRING || hw_claims_number(&at, e->str + e->len, HW_PARTITIONS - 1, &n) < 0 ||
	    at != e->str + e->len)
		return false;
	*p = (unsigned)n;
	return true;
}

static void take(struct hw_redis *r, const redisReply *list)
{
	uint64_t p[HW_PARTITIONS], all = HW_PUBLISHED_UNKNOWN, least = HW_PUBLISHED_UNKNOWN;
	unsigned at;
	for (unsigned k = 0; k < HW_PARTITIONS; k++)
		p[k] = HW_PUBLISHED_UNKNOWN;
	for (size_t i = 0; i + 1 < list->elements; i += 2) {
		const redisReply *name = list->element[i];
		bool of_partition = is_partition(name, &at);
		if (!of_partition && (name->type != REDIS_REPLY_STRING || strcmp(name->str, ALL) != 0))
			continue;
		uint64_t value = value_of(r, name, list->element[i + 1]);
		least = value < least ? value : least;
		*(of_partition ? &p[at] : &all) = value;
		r->published.has_strangers |= !r->ops->owner && of_partition;
	}
	/* If a standalone monitor follows a cluster, or the reverse, the statuses that were not acknowledged by
	 * then are published first. */
	for (unsigned k = 0; k < HW_PARTITIONS; k++)
		p[k] = !r->ops->owner ? least : p[k] == HW_PUBLISHED_UNKNOWN ? all : p[k];
	r->ops->on_published(r->arg, p);
}

static void on_read(redisAsyncContext *ac, void *answer, void *arg)
{
	static const redisReply none = {.type = REDIS_REPLY_ARRAY};
	struct hw_redis *r = arg;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	if (reply->type == REDIS_REPLY_ERROR && is_global(hw_refusal_trouble(r, reply->str)))
		r->ops->on_published(r->arg, NULL);
	else
		take(r, reply->type == REDIS_REPLY_ARRAY ? reply : &none);
}

int hw_redis_read_published(struct hw_redis *r)
{
	const char *argv[] = {"HGETALL", r->keys.published};
	const size_t len[] = {7, strlen(r->keys.published)};
	return r->up ? hw_redis_link_command(&r->link, on_read, r, 2, argv, len) : -ENOTCONN;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

void hw_published_again(struct hw_redis *r)
{
	add_all(&r->published.due, &r->published.written);
}

void hw_published_lost(struct hw_redis *r)
{
	r->published.in_flight = 0;
	hw_published_again(r);
}

void hw_published_tick(struct hw_redis *r)
{
	struct hw_published *p = &r->published;
	if (!hw_partitions_any(&p->refused))
		return;
	add_all(&p->due, &p->refused);
	p->refused = (struct hw_partitions){{0}};
	hw_plan_pump(r);
}
