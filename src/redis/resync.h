/* SPDX-License-Identifier: MIT */
/*
 * A resync: a TTL query for every connected key, to find the changes that no notification reported. First it queries
 * the existing keys (SCAN, a page at a time). Then it queries the devices that are online by their key but were not
 * found by the SCAN. The answers take the usual way of TTL queries.
 *
 * Only one resync runs at a time. A request during a resync starts it over. It pauses while many queries wait, so it
 * never fills their queue. Cost: one query per key, in pages; if paced, one page every 50 ms.
 */
#ifndef HW_REDIS_RESYNC_H
#define HW_REDIS_RESYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/monitor.h"
#include "link/link.h"
#include "redis/keys.h"
#include "redis/ttl_queries.h"

struct event;
struct event_base;

struct hw_resync {
	struct hw_redis_link *link;
	const struct hw_keys *keys;
	const struct hw_monitor *m;
	struct hw_ttl_queries *queries;
	void (*on_error)(void *arg, const char *reply);
	void *arg;
	enum { HW_RESYNC_NONE, HW_RESYNC_SCAN, HW_RESYNC_SWEEP } stage;
	bool ready;
	bool wanted; /* a resync was requested: start from the beginning */
	bool paced;
	char cursor[32];
	uint32_t at; /* device index of the sweep */
	struct hw_mono began, ended;
	bool unarmed; /* `step` could not be armed: hw_resync_tick() runs it */
	struct event *step;
	uint64_t completed;
};

/* Initialises zeroed storage. All pointers are borrowed, and `looks` need not be initialised yet. `on_error` is
 * called with the error reply of a SCAN. 0 or -ENOMEM. */
int hw_resync_init(struct hw_resync *r, struct event_base *base, struct hw_redis_link *link, const struct hw_keys *keys,
                   const struct hw_monitor *m, struct hw_ttl_queries *queries,
                   void (*on_error)(void *arg, const char *reply), void *arg);
void hw_resync_fini(struct hw_resync *r);

/* Each second: runs a timer that could not be armed for lack of memory. */
void hw_resync_tick(struct hw_resync *r);

/* Requests a resync from the start, even if one is under way. It begins once the link is ready. */
void hw_resync_want(struct hw_resync *r, bool paced);
/* The link works, and results may be reported: a requested resync may begin. */
void hw_resync_ready(struct hw_resync *r);
/* The link is lost. A resync is requested for its return. */
void hw_resync_lost(struct hw_resync *r);
/* Whether no resync has run for `every_ns`. */
bool hw_resync_is_due(const struct hw_resync *r, struct hw_mono now, int64_t every_ns);

/*
 * Whether an existing connected key is evidence about its device. It is none if the device is online by heartbeats
 * alone, because then the key is ours. It is none either if the device has just gone offline and Redis has not
 * confirmed that yet.
 */
bool hw_resync_is_of_interest(const struct hw_monitor *m, const char *id, size_t len);

#endif
