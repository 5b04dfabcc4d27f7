/* SPDX-License-Identifier: MIT */
/* Which statuses of transitions the broker has acknowledged: P of each partition (generations.h), which Redis keeps. */
#ifndef HW_DAEMON_PUBLISHED_H
#define HW_DAEMON_PUBLISHED_H

#include "daemon/context.h"

/* Sets a->retained->published. Returns 0 or -ENOMEM. */
int hw_app_published_new(struct hw_app *a);
void hw_app_published_free(struct hw_app *a);

/* Called after a transition, when its status is pending, and before the transition is written: counts the device. */
void hw_app_published_pending(struct hw_app *a, const struct hw_device *d);
/* Like hw_app_published_pending(), for a device whose status was pending before this run. */
void hw_app_published_left(struct hw_app *a, const struct hw_device *d);
/* Called when a device's status is not pending any more, and when the broker has refused its present status. */
void hw_app_published_settled(struct hw_app *a, const struct hw_device *d);
void hw_app_published_refused(struct hw_app *a, const struct hw_device *d);

/* Called when this node owns these partitions, or has lost them. `unclean`: an earlier owner may have left statuses
 * pending, so P is read. */
void hw_app_published_won(struct hw_app *a, struct hw_now now, const struct hw_partitions *set,
                          const struct hw_partitions *unclean);
void hw_app_published_lost(struct hw_app *a, const struct hw_partitions *set);
/* Whether P of an owned partition is not read yet. Until P is read, this node makes no transitions in the partition. */
bool hw_app_published_is_unread(const struct hw_app *a);
/* hw_app_published_found(): called with the answer of Redis (struct hw_redis_ops). hw_app_published_unlinked():
 * called when the connection is lost. */
void hw_app_published_found(struct hw_app *a, const uint64_t *p);
void hw_app_published_unlinked(struct hw_app *a);
/* Called when the states of the devices in these partitions are loaded, and P is read. Publishes first what the broker
 * may not have acknowledged. */
void hw_app_published_loaded(struct hw_app *a, const struct hw_partitions *set);

/* Called in each turn. Returns whether more can be done at once. */
bool hw_app_published_turn(struct hw_app *a, struct hw_now now);
/* Returns the time in ms until a turn has something to write; -1: it waits for an event. */
int64_t hw_app_published_wait_ms(const struct hw_app *a, struct hw_now now);
/* Whether Redis has each P, as far as it is reachable. */
bool hw_app_published_idle(const struct hw_app *a);

#endif
