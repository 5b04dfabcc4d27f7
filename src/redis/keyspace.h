/* SPDX-License-Identifier: MIT */
/*
 * The keyspace listener: sees other programs write, remove and lose devices' connected keys, and says what became of
 * each. On two connections of its own: one is subscribed to Redis' notifications, the other one looks (ttl_queries.h).
 *
 * A notification is only a reason to look. What it does not say, because it was lost or never sent, is found by going
 * through all keys: when listening begins (again), when notifications had to be dropped, and once an hour, paced; each
 * minute while notifications do not come.
 *
 * The scripts of redis.h say on a channel of this run what they do themselves: between '+' and '-' there, what is set,
 * removed or given a time to live is no news. Both come on one connection in the order in which it happened. Of several
 * nodes each listens to all of these channels: what any of them does itself is no stranger's doing.
 *
 * Nothing here changes a device, logs or blocks. Cost: a look for each notification of another program's, less those
 * that are merged; nothing while nobody writes, but for a message to itself each second.
 */
#ifndef HW_REDIS_KEYSPACE_H
#define HW_REDIS_KEYSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/monitor.h"
#include "redis/redis.h"

struct hw_keyspace; /* opaque */

struct hw_keyspace_ops {
	/* It listens, or does not (any more): `why` says what and what to do. */
	void (*on_link)(void *arg, bool up, const char *why);
	/* Keys can be looked at, or cannot. */
	void (*on_sight)(void *arg, bool sees);
	/* A look's answer, for hw_monitor_key(). */
	void (*on_key)(void *arg, unsigned why, const char *id, size_t id_len, int64_t ttl_ms);
	/* For hw_monitor_key_loss(). */
	void (*on_loss)(void *arg);
	/* For hw_monitor_key_back(). */
	void (*on_back)(void *arg, const char *id, size_t id_len);
	/* Something is to be set right, or has been. */
	void (*on_trouble)(void *arg, const char *what);
};

#define HW_KEYSPACE_RESYNC_MS      INT64_C(3600000)
#define HW_KEYSPACE_RESYNC_DEAF_MS INT64_C(60000)
#define HW_KEYSPACE_DEAF_MS        INT64_C(5000)
#define HW_KEYSPACE_EVENTS         17

/* Members that are 0 are as above: only tests have other ones. Intervals are kept to a second. */
struct hw_keyspace_conf {
	const struct hw_redis_conf *redis; /* borrowed, with what its strings point to */
	bool configure;                    /* add what notify-keyspace-events lacks */
	bool several;                      /* this is one of several nodes */
	int64_t resync_ms;                 /* how often all keys are gone through, paced */
	int64_t resync_deaf_ms;            /* ... while notifications do not come */
	int64_t deaf_ms;                   /* how long a message to itself may take before it connects anew */
	uint32_t looks_max;                /* HW_TTL_QUERIES_MAX: how many looks may wait */
};

struct hw_keyspace_stats {
	uint64_t notifications[HW_KEYSPACE_EVENTS]; /* of devices' keys, our own among them */
	uint64_t own;                               /* not looked into: the scripts' own doing */
	uint64_t looks, dropped;                    /* PTTLs sent; looks that could not be had */
	uint64_t resyncs, reconnects;
	uint32_t waiting;
	int64_t lag_ns; /* how long the last message to itself took; 0: none yet */
};

/* Starts connecting. `store` (NULL in tests: then what is missing is believed at once) must be freed before this. It,
 * `m` and `ops` are borrowed; `conf` is copied. NULL without memory. */
struct hw_keyspace *hw_keyspace_new(struct event_base *base, const struct hw_keyspace_conf *conf,
                                    struct hw_redis *store, const struct hw_monitor *m,
                                    const struct hw_keyspace_ops *ops, void *arg);
/* Not from one of the callbacks. */
void hw_keyspace_free(struct hw_keyspace *ks);

/* The store has been loaded: before, nothing is told but on_link and on_sight. */
void hw_keyspace_loaded(struct hw_keyspace *ks);
/* The store was found to be empty: a flush takes keys away without a notification, also such without a time to live. */
void hw_keyspace_emptied(struct hw_keyspace *ks);
/* Of several nodes: this one decides about more devices than before, of whose keys it may not have been told. */
void hw_keyspace_compare(struct hw_keyspace *ks);
/* HW_OUT_KEY_CHECK. */
void hw_keyspace_check(struct hw_keyspace *ks, struct hw_ref device);

bool hw_keyspace_up(const struct hw_keyspace *ks);
const struct hw_keyspace_stats *hw_keyspace_stats(struct hw_keyspace *ks);
/* Of the notification that is counted in that place: "set", "expired", ... */
const char *hw_keyspace_event_name(unsigned place);

#endif
