/* SPDX-License-Identifier: MIT */
/*
 * A resync: every device's connected key is looked at, so that what notifications have not told is found. First those
 * that are there (SCAN, a page at a time), then those of devices that were online by a key and of which the scan has
 * seen none. What the looks find goes where all looks' answers go.
 *
 * One at a time; one more that is wanted meanwhile begins from the start. It waits while many looks wait, so it never
 * fills their queue. Cost: a look at each key, in pages; paced, a page each 50 ms.
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
	struct hw_ttl_queries *looks;
	void (*on_error)(void *arg, const char *reply);
	void *arg;
	enum { HW_RESYNC_NONE, HW_RESYNC_SCAN, HW_RESYNC_SWEEP } stage;
	bool ready;
	bool wanted; /* one more, from the start */
	bool paced;
	char cursor[32];
	uint32_t at; /* of the sweep */
	struct hw_mono began, ended;
	bool unarmed; /* `step` could not be armed: hw_resync_tick() steps */
	struct event *step;
	uint64_t completed;
};

/* Readies zeroed storage; all is borrowed, and `looks` need not be ready yet. `on_error` is called with what SCAN was
 * refused with. 0 or -ENOMEM. */
int hw_resync_init(struct hw_resync *r, struct event_base *base, struct hw_redis_link *link, const struct hw_keys *keys,
                   const struct hw_monitor *m, struct hw_ttl_queries *looks,
                   void (*on_error)(void *arg, const char *reply), void *arg);
void hw_resync_fini(struct hw_resync *r);

/* Each second: what a timer that found no memory has left undone. */
void hw_resync_tick(struct hw_resync *r);

/* From the start, whatever is under way; as soon as it is ready. */
void hw_resync_want(struct hw_resync *r, bool paced);
/* The link serves, and what is found may be told: from now on what is wanted begins. */
void hw_resync_ready(struct hw_resync *r);
/* The link is lost. One is wanted when it is back. */
void hw_resync_lost(struct hw_resync *r);
/* Whether none is under way, and none has been for as long. */
bool hw_resync_is_due(const struct hw_resync *r, struct hw_mono now, int64_t every_ns);

/*
 * Whether a key that is there says anything about its device: not if the device is online by its heartbeats alone, for
 * then the key is ours; nor if it was, and Redis has not confirmed yet that it is not.
 */
bool hw_resync_is_of_interest(const struct hw_monitor *m, const char *id, size_t len);

#endif
