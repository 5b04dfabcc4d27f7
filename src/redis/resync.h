/* SPDX-License-Identifier: MIT */
/*
 * A resync: TTL queries for all connected keys, which find changes that no notification has reported. The first queries
 * are for the keys that exist (SCAN, a page at a time). More queries follow for keys that SCAN did not return although
 * the devices are online by these keys. Results are handled like those of other TTL queries.
 *
 * Only one resync runs at a time; a new request starts it over. The resync pauses while many queries wait, so it never
 * fills their queue. Cost: one query for each key, in pages. At a slow pace, one page in 50 ms.
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

/* Initialises storage that is all zero. All pointers are borrowed, and `queries` need not be initialised yet.
 * `on_error` is called with the error reply of a SCAN. Returns 0 or -ENOMEM. */
int hw_resync_init(struct hw_resync *r, struct event_base *base, struct hw_redis_link *link, const struct hw_keys *keys,
                   const struct hw_monitor *m, struct hw_ttl_queries *queries,
                   void (*on_error)(void *arg, const char *reply), void *arg);
void hw_resync_fini(struct hw_resync *r);

/* Called each second: runs a timer for which there was no memory before. */
void hw_resync_tick(struct hw_resync *r);

/* Requests a resync from the start, even if one is running. The resync begins when the connection is ready. */
void hw_resync_want(struct hw_resync *r, bool paced);
/* Called when the connection works and results may be reported. A requested resync may begin. */
void hw_resync_ready(struct hw_resync *r);
/* Called when the connection is lost. When it is up again, a resync runs. */
void hw_resync_lost(struct hw_resync *r);
/* Whether no resync has run for `every_ns`. */
bool hw_resync_is_due(const struct hw_resync *r, struct hw_mono now, int64_t every_ns);

/*
 * Whether a connected key that exists is evidence about its device. The key is no evidence if only heartbeats keep the
 * device online, because this monitor then wrote the key itself. The key is also no evidence if the device has just
 * become offline and Redis has not confirmed that yet.
 */
bool hw_resync_is_of_interest(const struct hw_monitor *m, const char *id, size_t len);

#endif
