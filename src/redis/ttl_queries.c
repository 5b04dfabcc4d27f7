/* SPDX-License-Identifier: MIT */
/* Queries the TTLs of keys. Cost: one allocation and one PTTL for each query that is not merged with another. */
#include "redis/ttl_queries.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/fnv.h"
#include "heartwheel/monitor.h"
#include "link/clock.h"

#define FENCE_AGAIN_MS 100

struct hw_ttl_query {
	struct hw_ttl_queries *l;
	unsigned why;
	bool again; /* this is the second attempt, because Redis was slow at the first attempt */
	int64_t sent_ns;
	struct hw_ttl_query *next; /* in the list of those that wait for a fence */
	size_t len;
	char id[];
};

/* Returns the hash of an id. If two ids have the same hash, a key may be queried twice, but no key is missed. */
static uint32_t hash_of(const char *id, size_t len)
{
	uint32_t h = hw_fnv32(id, len);
	return (h ^ h >> 16) % HW_TTL_QUERIES_FILTER;
}

static void wake(struct hw_ttl_queries *l)
{
	struct timeval now = {0, 0};
	if (!event_pending(l->pump, EV_TIMEOUT, NULL))
		l->unarmed = event_add(l->pump, &now) != 0;
}

static int grow(struct hw_ttl_queries *l)
{
	uint32_t cap = l->cap ? l->cap * 2 : 256;
	struct hw_ttl_query **at = malloc(cap * sizeof(struct hw_ttl_query *));
	if (!at)
		return -ENOMEM;
	for (uint64_t p = l->head; p != l->tail; p++)
		at[p & (cap - 1)] = l->at[p & (l->cap - 1)];
	free(l->at);
	l->at = at;
	l->cap = cap;
	return 0;
}

static struct hw_ttl_query *waiting_for(struct hw_ttl_queries *l, uint32_t hash, const char *id, size_t len)
{
	uint64_t place = l->filter[hash];
	if (place <= l->head || place > l->tail)
		return NULL;
	struct hw_ttl_query *query = l->at[(place - 1) & (l->cap - 1)];
	return query->len == len && memcmp(query->id, id, len) == 0 ? query : NULL;
}

static int push(struct hw_ttl_queries *l, struct hw_ttl_query *query)
{
	if (l->tail - l->head >= l->max)
		return -ENOBUFS;
	if (l->tail - l->head == l->cap && grow(l) != 0)
		return -ENOMEM;
	l->at[l->tail++ & (l->cap - 1)] = query;
	l->filter[hash_of(query->id, query->len)] = l->tail;
	wake(l);
	return 0;
}

int hw_ttl_queries_add(struct hw_ttl_queries *l, unsigned why, const char *id, size_t len)
{
	struct hw_ttl_query *query = waiting_for(l, hash_of(id, len), id, len);
	if (query) {
		query->why |= why;
		return 0;
	}
	if (len == 0 || len > HW_ID_MAX)
		return 0; /* no device has this id */
	query = malloc(sizeof(*query) + len);
	int rc = query ? 0 : -ENOMEM;
	if (query) {
		*query = (struct hw_ttl_query){.l = l, .why = why, .len = len};
		memcpy(query->id, id, len);
		rc = push(l, query);
	}
	if (rc) {
		l->dropped++;
		free(query);
	}
	return rc;
}

/* --- the fence --------------------------------------------------------------------------------------------------- */

static void ask_fence(struct hw_ttl_queries *l, int ms)
{
	struct timeval tv = {0, ms * 1000};
	if (l->gone && !l->covered && !event_pending(l->fence, EV_TIMEOUT, NULL))
		(void)event_add(l->fence, &tv); /* if there was no memory for the timer, hw_ttl_queries_tick()
		                                 * requests the fence again */
}

void hw_ttl_queries_tick(struct hw_ttl_queries *l)
{
	if (l->unarmed)
		wake(l);
	ask_fence(l, FENCE_AGAIN_MS);
}

static void hold(struct hw_ttl_queries *l, struct hw_ttl_query *query)
{
	query->next = NULL;
	*l->gone_end = query;
	l->gone_end = &query->next;
	l->n_gone++;
	ask_fence(l, 0);
}

static void on_ask_fence(evutil_socket_t fd, short what, void *arg)
{
	struct hw_ttl_queries *l = arg;
	(void)fd, (void)what;
	if (!l->gone || l->covered)
		return;
	if (l->ops->fence(l->arg) == 0)
		l->covered = l->gone_end;
	else
		ask_fence(l, FENCE_AGAIN_MS);
}

void hw_ttl_queries_fenced(struct hw_ttl_queries *l, bool known)
{
	struct hw_ttl_query *query = l->gone;
	if (l->stale > 0) {
		l->stale--;
		return;
	}
	if (known) {
		l->gone = *l->covered;
		if (l->covered == l->gone_end)
			l->gone_end = &l->gone;
		*l->covered = NULL;
	}
	l->covered = NULL;
	while (known && query) {
		struct hw_ttl_query *next = query->next;
		l->n_gone--;
		l->ops->on_answer(l->arg, query->why, query->id, query->len, HW_KEY_GONE);
		free(query);
		query = next;
	}
	ask_fence(l, known ? 0 : FENCE_AGAIN_MS);
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

static void answered(struct hw_ttl_queries *l, struct hw_ttl_query *query, const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_INTEGER) {
		l->dropped++;
		l->ops->on_error(l->arg,
		                 reply->type == REDIS_REPLY_ERROR ? reply->str : "ERR malformed answer to PTTL");
		free(query);
		return;
	}
	int64_t now = hw_clock_mono().ns;
	if (now - query->sent_ns > HW_TTL_QUERIES_SLOW_NS)
		l->calm_ns = now + HW_TTL_QUERIES_CALM_NS;
	bool early = reply->integer == HW_KEY_GONE && now < l->calm_ns;
	if (early && !query->again && !(query->why & HW_KEY_REMOVED)) {
		query->again = true;
		if (push(l, query) == 0)
			return;
	}
	if (reply->integer == HW_KEY_GONE && l->ops->fence && !(query->why & HW_KEY_REMOVED)) {
		hold(l, query);
		return;
	}
	l->ops->on_answer(l->arg, query->why, query->id, query->len, reply->integer);
	free(query);
}

static void on_ttl(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_ttl_query *query = arg;
	struct hw_ttl_queries *l = query->l;
	(void)ac;
	if (!answer) { /* the link is lost, and hw_ttl_queries_lost() follows */
		free(query);
		return;
	}
	hw_redis_link_got(l->link);
	l->in_flight--;
	if (l->head != l->tail)
		wake(l);
	answered(l, query, answer);
}

static void pump(struct hw_ttl_queries *l)
{
	int64_t wait_ns = l->calm_ns - hw_clock_mono().ns;
	if (wait_ns > 0) {
		struct timeval calm = {0, wait_ns / 1000 + 1};
		l->unarmed = event_add(l->pump, &calm) != 0;
		return;
	}
	while (l->head != l->tail && l->in_flight < HW_TTL_QUERIES_IN_FLIGHT) {
		struct hw_ttl_query *query = l->at[l->head & (l->cap - 1)];
		const char *argv[] = {"PTTL", l->key};
		const size_t len[] = {4, hw_keys_device(l->keys, HW_KEY_CONNECTED, query->id, query->len, l->key)};
		query->sent_ns = hw_clock_mono().ns;
		if (hw_redis_link_command(l->link, on_ttl, query, 2, argv, len) != 0)
			return; /* the connection is down, or memory ran out; sending continues with the next answer or
			           the next connection */
		l->head++;
		l->in_flight++;
		l->sent++;
	}
}

static void on_pump(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	pump(arg);
}

uint32_t hw_ttl_queries_waiting(const struct hw_ttl_queries *l)
{
	return (uint32_t)(l->tail - l->head) + l->in_flight + l->n_gone;
}

void hw_ttl_queries_up(struct hw_ttl_queries *l)
{
	wake(l);
}

void hw_ttl_queries_lost(struct hw_ttl_queries *l)
{
	l->in_flight = 0;
	for (; l->head != l->tail; l->head++)
		free(l->at[l->head & (l->cap - 1)]);
	for (struct hw_ttl_query *query = l->gone, *next; query; query = next) {
		next = query->next;
		free(query);
	}
	l->stale += l->covered != NULL;
	l->gone = NULL;
	l->gone_end = &l->gone;
	l->covered = NULL;
	l->n_gone = 0;
}

int hw_ttl_queries_init(struct hw_ttl_queries *l, struct event_base *base, struct hw_redis_link *link,
                        const struct hw_keys *keys, uint32_t max, const struct hw_ttl_queries_ops *ops, void *arg)
{
	l->link = link;
	l->keys = keys;
	l->max = max;
	l->ops = ops;
	l->arg = arg;
	l->key = malloc(hw_keys_device_max(keys));
	l->gone_end = &l->gone;
	l->pump = event_new(base, -1, 0, on_pump, l);
	l->fence = event_new(base, -1, 0, on_ask_fence, l);
	return l->key && l->pump && l->fence ? 0 : -ENOMEM;
}

void hw_ttl_queries_fini(struct hw_ttl_queries *l)
{
	hw_ttl_queries_lost(l);
	if (l->pump)
		event_free(l->pump);
	if (l->fence)
		event_free(l->fence);
	free(l->at);
	free(l->key);
}
