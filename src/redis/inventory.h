/* SPDX-License-Identifier: MIT */
/*
 * The inventory in Redis: the hash device:expected, the zset device:unseen, and the stream device:inventory, which
 * names the ids that have changed. The commands use the connection of struct hw_redis, and keep their order with its
 * other commands.
 *
 * At the start, after a gap in the stream and after a failover, everything is read (HSCAN, ZSCAN), a page at a time.
 * Otherwise the stream is read each second, and after each change by this node. The node then reads the entries of the
 * ids that the stream names, except its own changes, which the answer of the script has shown.
 */
#ifndef HW_REDIS_INVENTORY_H
#define HW_REDIS_INVENTORY_H

#include "inventory/apply.h"
#include "redis/redis.h"

#define HW_UNSEEN_ITEMS 64 /* of one call of hw_redis_unseen() */

/* Applies at most HW_INVENTORY_ITEMS items with one script. `groups[i]`: the group of item i, which the script
 * writes to device:events if the item removes its id. Returns 0; or -ENOTCONN, -EAGAIN or -ENOMEM, and then `fn` is
 * not called. */
int hw_redis_inventory_apply(struct hw_redis *r, struct hw_now now, const char *source,
                             const struct hw_inventory_item *items, const char *const *groups, unsigned n,
                             hw_inventory_applied *fn, void *arg);

enum hw_unseen_result {
	HW_UNSEEN_KNOWN, /* it is unseen already */
	HW_UNSEEN_ADDED,
	HW_UNSEEN_HAS_STATE,
	HW_UNSEEN_UNEXPECTED,
	HW_UNSEEN_FENCED /* another node owns it */
};

struct hw_unseen_item {
	struct hw_id id;
	const char *group;
};

struct hw_unseen_answer {
	enum hw_unseen_result result;
	struct hw_stream_id at; /* HW_UNSEEN_ADDED: of its entry in device:events */
};

/* As hw_inventory_applied. */
typedef void hw_unseen_written(void *arg, int rc, const struct hw_unseen_answer *answers, unsigned n);

/* Records at most HW_UNSEEN_ITEMS ids of this node's partitions as unseen. Returns the same as
 * hw_redis_inventory_apply(). */
int hw_redis_unseen(struct hw_redis *r, struct hw_now now, const struct hw_unseen_item *items, unsigned n,
                    hw_unseen_written *fn, void *arg);
/* Removes an id from device:unseen, because its device has sent a heartbeat. If the id cannot be removed now,
 * everything is read again, and on_unseen() reports the id again. */
void hw_redis_unseen_heard(struct hw_redis *r, struct hw_id id);

struct hw_inventory_ops {
	/* A reading of everything begins. */
	void (*on_reading)(void *arg);
	/* Called with an entry as it is stored. entry.text NULL: the id is not expected (any more). `own`: this is an
	 * item of hw_redis_inventory_apply(), and not an entry that another program may have written. */
	void (*on_entry)(void *arg, struct hw_id id, struct hw_id entry, bool own);
	/* The id is unseen since then. */
	void (*on_unseen)(void *arg, struct hw_id id, int64_t since_ms);
	/* Called when a reading has ended. */
	void (*on_read)(void *arg);
	/* Called when a page of the stream has ended. `at_end`: the stream had no further entries. */
	void (*on_followed)(void *arg, bool at_end);
	/* Called when a call of this node has removed an id that was unseen. The entry `forgotten` in device:events
	 * has the offset `at` and the time `time_ms`. */
	void (*on_forgotten)(void *arg, struct hw_id id, struct hw_stream_id at, int64_t time_ms);
};

/* Begins to read and to follow the inventory. Reads everything when the connection is up. Returns 0 or -ENOMEM. */
int hw_redis_inventory_start(struct hw_redis *r, const struct hw_inventory_ops *ops, void *arg);
/* Reads everything again. */
void hw_redis_inventory_read(struct hw_redis *r);

#endif
