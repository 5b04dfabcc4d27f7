/* SPDX-License-Identifier: MIT */
/*
 * The keyspace listener. It notices when other programs write or remove connected keys of devices and when such keys
 * expire, and it reports the state of each key. It has two connections: one receives Redis' notifications, the other
 * sends TTL queries (ttl_queries.h).
 *
 * A notification only causes a TTL query. A resync queries all keys, and so finds changes whose notifications were lost
 * or never sent. A resync runs when listening begins, and when TTL queries had to be dropped. It also runs every hour
 * at a slow pace, and every minute while notifications do not arrive.
 *
 * The scripts of redis.h publish '+' and '-' on this run's own channel, before and after their writes. Notifications
 * between the two are ignored. Notifications and these messages arrive on one connection, in the order in which they
 * happened. In a cluster, each node subscribes to the channels of all nodes, and so ignores the writes of every node.
 *
 * This code changes no device, logs nothing and never blocks. Cost: one TTL query for each notification about another
 * program's write, except those that are merged; and each second one message that the monitor sends to itself.
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
	/* Called when notifications begin to arrive, or arrive no longer. `why` names the reason and the remedy. */
	void (*on_link)(void *arg, bool up, const char *why);
	/* TTL queries can be sent, or cannot. */
	void (*on_sight)(void *arg, bool sees);
	/* The answer to a TTL query, for hw_monitor_key(). */
	void (*on_key)(void *arg, unsigned why, const char *id, size_t id_len, int64_t ttl_ms);
	/* For hw_monitor_key_loss(). */
	void (*on_loss)(void *arg);
	/* For hw_monitor_key_back(). */
	void (*on_back)(void *arg, const char *id, size_t id_len);
	/* A trouble with its remedy, or the end of a trouble. */
	void (*on_trouble)(void *arg, const char *what);
};

#define HW_KEYSPACE_RESYNC_MS      INT64_C(3600000)
#define HW_KEYSPACE_RESYNC_DEAF_MS INT64_C(60000)
#define HW_KEYSPACE_DEAF_MS        INT64_C(5000)
#define HW_KEYSPACE_EVENTS         17

/* If a member is 0, the default above counts; only tests set other values. Intervals are accurate to a second. */
struct hw_keyspace_conf {
	const struct hw_redis_conf *redis; /* borrowed, together with its strings */
	bool configure;                    /* add the missing flags to notify-keyspace-events */
	bool several;                      /* this is a node of a cluster */
	int64_t resync_ms;                 /* how often a paced resync runs */
	int64_t resync_deaf_ms;            /* ... while notifications do not arrive */
	int64_t deaf_ms;                   /* if a message to itself takes longer than this, the listener reconnects */
	uint32_t queries_max;              /* how many TTL queries may wait; default HW_TTL_QUERIES_MAX */
};

struct hw_keyspace_stats {
	uint64_t notifications[HW_KEYSPACE_EVENTS]; /* about devices' keys, our own writes included */
	uint64_t own;                               /* ignored, because our own scripts caused them */
	uint64_t queries, dropped;                  /* PTTL commands sent; queries dropped */
	uint64_t resyncs, reconnects;
	uint32_t waiting;
	int64_t lag_ns; /* round trip of the last message to itself; 0: none yet */
};

/* Starts to connect. `store`, `m` and `ops` are borrowed, and `conf` is copied. `store` must be freed before the
 * listener, because it may still report the result of a fence. In tests `store` may be NULL: then a missing key counts
 * without a fence. Returns NULL if there is no memory. */
struct hw_keyspace *hw_keyspace_new(struct event_base *base, const struct hw_keyspace_conf *conf,
                                    struct hw_redis *store, const struct hw_monitor *m,
                                    const struct hw_keyspace_ops *ops, void *arg);
/* Must not be called from a callback. */
void hw_keyspace_free(struct hw_keyspace *ks);

/* Called when the devices of the store are loaded. Before that, only on_link and on_sight are called. */
void hw_keyspace_loaded(struct hw_keyspace *ks);
/* Called when the store was found empty. Redis removes keys without notifications if it is flushed. */
void hw_keyspace_emptied(struct hw_keyspace *ks);
/* Called in a cluster when this node decides for more devices. This node may have missed notifications about their
 * keys. */
void hw_keyspace_compare(struct hw_keyspace *ks);
/* Queries the key of a device, for HW_OUT_KEY_CHECK. */
void hw_keyspace_check(struct hw_keyspace *ks, struct hw_ref device);

bool hw_keyspace_up(const struct hw_keyspace *ks);
const struct hw_keyspace_stats *hw_keyspace_stats(struct hw_keyspace *ks);
/* Returns the name of the notification that notifications[place] counts, such as "set" or "expired". */
const char *hw_keyspace_event_name(unsigned place);

#endif
