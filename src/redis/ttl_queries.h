/* SPDX-License-Identifier: MIT */
/*
 * Looks at devices' connected keys: a queue of ids, and PTTL for each, pipelined. An id that waits already is not
 * queued again; what it is looked at for is added up. At most `max` (HW_TTL_QUERIES_MAX) wait and
 * HW_TTL_QUERIES_IN_FLIGHT are in flight.
 *
 * PTTL makes Redis delete a key whose time is over there and then, with its notification, and -2 says so at once.
 *
 * What is missing may be missing because the store was emptied. So answers of -2 are held until a fence has told that
 * it was not (or the owner has been told that it was), which is asked for once for all that are there.
 *
 * A Redis that stood still serves this connection, perhaps, before that of the program which has renewed the key
 * meanwhile. So after an answer that took HW_TTL_QUERIES_SLOW_NS it is left alone for HW_TTL_QUERIES_CALM_NS, and each
 * -2 that comes before that is over is asked for once more.
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
	/* Asks for the fence: hw_ttl_queries_fenced() follows, unless it returns something else than 0. NULL: there is
	 * none.
	 */
	int (*fence)(void *arg);
};

struct hw_ttl_queries {
	struct hw_redis_link *link;
	const struct hw_keys *keys;
	const struct hw_ttl_queries_ops *ops;
	void *arg;
	bool unarmed; /* `pump` could not be armed: hw_ttl_queries_tick() does it */
	struct event *pump;
	struct hw_ttl_query **at; /* places count up for ever: head <= tail */
	uint64_t head, tail;
	uint32_t max, cap;                      /* cap: a power of two, or 0 */
	uint64_t filter[HW_TTL_QUERIES_FILTER]; /* by hash of the id: the place of the last that was queued, + 1 */
	char *key;
	unsigned in_flight;
	int64_t calm_ns;                       /* monotonic: Redis is left alone before */
	struct hw_ttl_query *gone, **gone_end; /* those that wait for a fence, oldest first */
	struct hw_ttl_query **covered;         /* the end of those that the fence under way is for; NULL: none is */
	uint32_t n_gone;
	unsigned stale; /* fences under way that are for none that is left */
	struct event *fence;
	uint64_t sent, dropped;
};

/* Readies zeroed storage; all is borrowed. 0 or -ENOMEM. */
int hw_ttl_queries_init(struct hw_ttl_queries *l, struct event_base *base, struct hw_redis_link *link,
                        const struct hw_keys *keys, uint32_t max, const struct hw_ttl_queries_ops *ops, void *arg);
/* After the link's end. */
void hw_ttl_queries_fini(struct hw_ttl_queries *l);

/* 0; or -ENOBUFS when `max` wait, or -ENOMEM: it is dropped, and counted. */
int hw_ttl_queries_add(struct hw_ttl_queries *l, unsigned why, const char *id, size_t id_len);
/* Each second: what a timer that found no memory has left undone. */
void hw_ttl_queries_tick(struct hw_ttl_queries *l);

/* The fence is there, and what it told is done; or it could not be had (`known` false) and is asked for again. */
void hw_ttl_queries_fenced(struct hw_ttl_queries *l, bool known);
uint32_t hw_ttl_queries_waiting(const struct hw_ttl_queries *l);
/* The link is there: goes on. It is lost: all that wait are dropped. */
void hw_ttl_queries_up(struct hw_ttl_queries *l);
void hw_ttl_queries_lost(struct hw_ttl_queries *l);

#endif
