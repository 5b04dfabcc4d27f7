/* SPDX-License-Identifier: MIT */
/*
 * A single monitor ([cluster] mode = off) must not work on a key prefix that others use, because each transition would
 * be written and published twice. There are two cases:
 *
 * - Nodes of a cluster: the monitor would overwrite their devices. Before it connects to the broker and before it
 *   loads, it looks for nodes in Redis. If there are any, it waits as long as the slowest node takes to renew its
 *   entry. If an entry was renewed meanwhile, the monitor stops. If it finds nodes later, it logs an error.
 * - Another single monitor (nodes/exclusive.h): the monitor checks before it connects to the broker, where its client
 *   ids could disconnect the other one. It also checks before it loads, and then each second. The monitor that came
 *   later stops. With `[redis] exclusive = no` it only logs the other one.
 *
 * A node of a cluster checks for a single monitor before it joins or connects to the broker, and stops if there is one.
 * It checks again after it has joined. A monitor writes its entry before it checks for nodes, so at least one of the
 * two finds the other. A node that already works logs such a monitor as an error.
 *
 * A monitor that cannot reach Redis works nevertheless, and checks when Redis can be reached. Until then no other
 * monitor makes this one stop. If the broker closes this monitor's connections, this may have other causes than another
 * monitor, and is logged as an error.
 *
 * Cost: one script and, without [cluster], one command, at the start and each second.
 */
#ifndef HW_PREFIX_GUARD_H
#define HW_PREFIX_GUARD_H

#include "daemon/context.h"

/* Sets a->guard, which the caller frees. Returns 0 or -ENOMEM. */
int hw_prefix_guard_new(struct hw_app *a);
/*
 * Begins the checks. When no other user of the prefix is known, the daemon connects to the broker and loads the store.
 */
void hw_prefix_guard_start(struct hw_app *a);
/* Whether a check is not finished yet. */
bool hw_prefix_guard_is_waiting(const struct hw_app *a);
/* Joins again without a check, because the node was a member earlier in this process. */
void hw_prefix_guard_rejoin(struct hw_app *a);
/* Whether a node may join. */
bool hw_prefix_guard_lets_join(const struct hw_app *a);
/* Whether a node must not connect to the broker yet. */
bool hw_prefix_guard_blocks(const struct hw_app *a);
/* Returns a number for this run's machine and pid file, for struct hw_redis_conf. */
uint64_t hw_prefix_guard_host(const struct hw_app *a);
/* Called when the link to Redis is up. Starts a check. A monitor that could not renew its entry for a whole lease
 * writes no transition before the check shows that no other monitor has taken its place. */
void hw_prefix_guard_linked(struct hw_app *a);
/* Starts a check. Called when a node has joined, and each second. */
void hw_prefix_guard_check(struct hw_app *a);
/* Called each second. */
void hw_prefix_guard_tick(struct hw_app *a);
/* The link to Redis is lost. */
void hw_prefix_guard_unlinked(struct hw_app *a);
/*
 * Removes this run's entry, so that its successor need not wait: the last step of a stop. Returns whether this is done.
 */
bool hw_prefix_guard_has_left(struct hw_app *a);

#endif
