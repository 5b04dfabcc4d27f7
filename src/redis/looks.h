/* SPDX-License-Identifier: MIT */
/*
 * Looks at devices' connected keys: a queue of ids, and PTTL for each, pipelined. An id that waits already is not
 * queued again; what it is looked at for is added up. At most `max` (HW_LOOKS_MAX) wait and HW_LOOKS_IN_FLIGHT are in
 * flight.
 *
 * PTTL makes Redis delete a key whose time is over there and then, with its notification, and -2 says so at once.
 *
 * What is missing may be missing because the store was emptied. So answers of -2 are held until a fence has told that
 * it was not (or the owner has been told that it was), which is asked for once for all that are there.
 *
 * A Redis that stood still serves this connection, perhaps, before that of the program which has renewed the key
 * meanwhile. So after an answer that took HW_LOOKS_SLOW_NS it is left alone for HW_LOOKS_CALM_NS, and each -2 that
 * comes before that is over is asked for once more.
 */
#ifndef HW_REDIS_LOOKS_H
#define HW_REDIS_LOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/link.h"
#include "redis/keys.h"

#define HW_LOOKS_MAX       262144
#define HW_LOOKS_IN_FLIGHT 1024
#define HW_LOOKS_SLOW_NS   INT64_C(100000000)
#define HW_LOOKS_CALM_NS   INT64_C(100000000)
#define HW_LOOKS_FILTER    4096

struct hw_look;

struct hw_looks_ops {
	/* `why` and `ttl_ms` as for hw_monitor_key(). */
	void (*on_answer)(void *arg, unsigned why, const char *id, size_t id_len, int64_t ttl_ms);
	void (*on_error)(void *arg, const char *reply);
	/* Asks for the fence: hw_looks_fenced() follows, unless it returns something else than 0. NULL: there is none.
	 */
	int (*fence)(void *arg);
};

struct hw_looks {
	struct hw_redis_link *link;
	const struct hw_keys *keys;
	const struct hw_looks_ops *ops;
	void *arg;
	bool unarmed; /* `pump` could not be armed: hw_looks_tick() does it */
	struct event *pump;
	struct hw_look **at; /* places count up for ever: head <= tail */
	uint64_t head, tail;
	uint32_t max, cap;                /* cap: a power of two, or 0 */
	uint64_t filter[HW_LOOKS_FILTER]; /* by hash of the id: the place of the last that was queued, + 1 */
	char *key;
	unsigned in_flight;
	int64_t calm_ns;                  /* monotonic: Redis is left alone before */
	struct hw_look *gone, **gone_end; /* those that wait for a fence, oldest first */
	struct hw_look **covered;         /* the end of those that the fence under way is for; NULL: none is */
	uint32_t n_gone;
	unsigned stale; /* fences under way that are for none that is left */
	struct event *fence;
	uint64_t sent, dropped;
};

/* Readies zeroed storage; all is borrowed. 0 or -ENOMEM. */
int hw_looks_init(struct hw_looks *l, struct event_base *base, struct hw_redis_link *link, const struct hw_keys *keys,
                  uint32_t max, const struct hw_looks_ops *ops, void *arg);
/* After the link's end. */
void hw_looks_fini(struct hw_looks *l);

/* 0; or -ENOBUFS when `max` wait, or -ENOMEM: it is dropped, and counted. */
int hw_looks_add(struct hw_looks *l, unsigned why, const char *id, size_t id_len);
/* Each second: what a timer that found no memory has left undone. */
void hw_looks_tick(struct hw_looks *l);

/* The fence is there, and what it told is done; or it could not be had (`known` false) and is asked for again. */
void hw_looks_fenced(struct hw_looks *l, bool known);
uint32_t hw_looks_waiting(const struct hw_looks *l);
/* The link is there: goes on. It is lost: all that wait are dropped. */
void hw_looks_up(struct hw_looks *l);
void hw_looks_lost(struct hw_looks *l);

#endif
