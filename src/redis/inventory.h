/* SPDX-License-Identifier: MIT */
/*
 * The inventory in Redis: the hash device:expected, the zset device:unseen, and the stream device:inventory, which
 * names the ids that have changed. Over the connection of hw_redis, so in the order of its other commands.
 *
 * At the start, after a gap in the stream and after a failover everything is read (HSCAN, ZSCAN), a page at a time.
 * Otherwise the stream is read each second, and after an order of this node, and the entries of the ids that it names
 * are read.
 */
#ifndef HW_REDIS_INVENTORY_H
#define HW_REDIS_INVENTORY_H

#include "inventory/apply.h"
#include "redis/redis.h"

#define HW_UNSEEN_ITEMS 64 /* of one call of hw_redis_unseen() */

/* Applies at most HW_INVENTORY_ITEMS items with one script. `groups[i]`: of an id that is removed, for device:events.
 * Returns 0; or -ENOTCONN, -EAGAIN or -ENOMEM, and `fn` is not called. */
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

/* Calls at most HW_UNSEEN_ITEMS ids unseen that this node owns. As hw_redis_inventory_apply(). */
int hw_redis_unseen(struct hw_redis *r, struct hw_now now, const struct hw_unseen_item *items, unsigned n,
                    hw_unseen_written *fn, void *arg);
/* Removes an id from device:unseen, because the device was heard. If the id cannot be removed now, everything is
 * read again, and on_unseen() reports the id again. */
void hw_redis_unseen_heard(struct hw_redis *r, struct hw_id id);

struct hw_inventory_ops {
	/* A reading of everything begins. */
	void (*on_reading)(void *arg);
	/* An entry as it is stored. entry.text NULL: the id is not expected (any more). */
	void (*on_entry)(void *arg, struct hw_id id, struct hw_id entry);
	/* The id is unseen since then. */
	void (*on_unseen)(void *arg, struct hw_id id, int64_t since_ms);
	/* A reading has ended. `emptied`: Redis has lost the inventory. */
	void (*on_read)(void *arg, bool emptied);
	/* A page of the stream ended. `at_end`: no more entries followed. */
	void (*on_followed)(void *arg, bool at_end);
	/* A call of this node has removed an id that was unseen. `at`: of the entry `forgotten` in device:events, with
	 * `time_ms`. */
	void (*on_forgotten)(void *arg, struct hw_id id, struct hw_stream_id at, int64_t time_ms);
};

/* Begins to read and follow; reads everything when the connection is up. Returns 0 or -ENOMEM. */
int hw_redis_inventory_start(struct hw_redis *r, const struct hw_inventory_ops *ops, void *arg);
/* Redis was found emptied: the next reading says so. Reads everything. */
void hw_redis_inventory_emptied(struct hw_redis *r);

#endif
