/* SPDX-License-Identifier: MIT */
/*
 * Queries the TTLs of connected keys: a queue of ids, and a pipelined PTTL for each. An id that already waits is not
 * queued twice; the reasons of its queries are combined. At most `max` (HW_TTL_QUERIES_MAX) ids wait, and
 * HW_TTL_QUERIES_IN_FLIGHT queries are in flight.
 *
 * If the key has expired, PTTL makes Redis delete it at once and send its notification. The answer is -2.
 *
 * A key may also be missing because the store was emptied. So each answer of -2 is held until a fence ends. The fence
 * shows whether the store was emptied; if it was emptied, the owner learns this first. One fence serves all answers
 * that are held when it is sent.
 *
 * A Redis that hung may serve this connection before that of the program that renews the key. So after an answer that
 * took HW_TTL_QUERIES_SLOW_NS, no query is sent for HW_TTL_QUERIES_CALM_NS. Each key that was missing in that time is
 * queried once more.
 */
#ifndef HW_REDIS_TTL_QUERIES_H
#define HW_REDIS_TTL_QUERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/link.h"
#include "redis/keys.h"

#define HW_TTL_QUERIES_MAX       262144
#define HW_TTL_QUERIES_IN_FLIGHT 1024
#define HW_TTL_QUERIES_SLOW_NS   INT64_C(100000000)
#define HW_TTL_QUERIES_CALM_NS   INT64_C(100000000)
#define HW_TTL_QUERIES_FILTER    4096

struct hw_ttl_query;

struct hw_ttl_queries_ops {
	/* `why` and `ttl_ms` as for hw_monitor_key(). */
	void (*on_answer)(void *arg, unsigned why, const char *id, size_t id_len, int64_t ttl_ms);
	void (*on_error)(void *arg, const char *reply);
	/* Requests the fence. After 0, the owner must call hw_ttl_queries_fenced(). NULL: there is no fence. */
	int (*fence)(void *arg);
};

struct hw_ttl_queries {
	struct hw_redis_link *link;
	const struct hw_keys *keys;
	const struct hw_ttl_queries_ops *ops;
	void *arg;
	bool unarmed; /* `pump` could not be armed: hw_ttl_queries_tick() does */
	struct event *pump;
	struct hw_ttl_query **at; /* a ring; positions count up: head <= tail */
	uint64_t head, tail;
	uint32_t max, cap;                      /* cap: a power of two, or 0 */
	uint64_t filter[HW_TTL_QUERIES_FILTER]; /* by hash of the id: position + 1 of the last one queued */
	char *key;
	unsigned in_flight;
	int64_t calm_ns;                       /* monotonic: no query is sent before */
	struct hw_ttl_query *gone, **gone_end; /* queries that wait for a fence, oldest first */
	/* the fence in flight covers the held answers up to here; NULL: no fence is in flight */
	struct hw_ttl_query **covered;
	uint32_t n_gone;
	unsigned stale; /* fences in flight whose queries were all dropped */
	struct event *fence;
	uint64_t sent, dropped;
};

/* Initialises zeroed storage; all pointers are borrowed. 0 or -ENOMEM. */
int hw_ttl_queries_init(struct hw_ttl_queries *l, struct event_base *base, struct hw_redis_link *link,
                        const struct hw_keys *keys, uint32_t max, const struct hw_ttl_queries_ops *ops, void *arg);
/* Must be called after the link is freed. */
void hw_ttl_queries_fini(struct hw_ttl_queries *l);

/* Queues a query. On -ENOBUFS (`max` queries wait) or -ENOMEM, the query is dropped and counted. */
int hw_ttl_queries_add(struct hw_ttl_queries *l, unsigned why, const char *id, size_t id_len);
/* Called each second: starts a timer for which there was no memory before. */
void hw_ttl_queries_tick(struct hw_ttl_queries *l);

/* Called with the result of a fence. `known`: the owner has handled it, so the held answers are reported. Otherwise
 * the fence is requested again. */
void hw_ttl_queries_fenced(struct hw_ttl_queries *l, bool known);
uint32_t hw_ttl_queries_waiting(const struct hw_ttl_queries *l);
/* hw_ttl_queries_up(): the connection is up, and sending continues. hw_ttl_queries_lost(): it is lost, and all queries
 * are dropped. */
void hw_ttl_queries_up(struct hw_ttl_queries *l);
void hw_ttl_queries_lost(struct hw_ttl_queries *l);

#endif
