/* SPDX-License-Identifier: MIT */
/*
 * A monitor by itself ([cluster] mode = off) does not work on a prefix on which others do: each transition would be
 * written and published twice. There are two kinds of others:
 *
 * - Nodes of a cluster: it would write over what they own. Before it connects to the broker, and before it loads, it
 *   looks whether there are any; if there are, whether they do anything within the time in which the slowest renews its
 *   entry. Then it stops. Nodes that it finds later it logs as an error.
 * - Another monitor by itself (nodes/exclusive.h). Before it connects to the broker, where its client ids could throw
 *   the other one out, and before it loads, it looks for one; and each second from then on. The later one stops.
 *   `[redis] exclusive = no` only logs the other one.
 *
 * A node of a cluster looks for a monitor by itself before it joins and before it connects to the broker, and stops if
 * there is one. It looks once more when it has joined: a monitor enters itself before it looks for nodes, so of the two
 * at least one sees the other. A node that works already logs such a monitor as an error.
 *
 * A monitor without Redis watches all the same, and looks once Redis is there. Without Redis it never stops by itself:
 * connections that the broker closes prove no other monitor. It logs them as an error.
 *
 * Cost: one script and, without [cluster], one command at a start, and each second.
 */
#ifndef HW_PREFIX_GUARD_H
#define HW_PREFIX_GUARD_H

#include "context.h"

/* Connects to the broker, and loads the store, once nothing else is known to work on that prefix. */
void hw_prefix_guard_start(struct hw_app *a);
/* Whether it still waits for the answer. */
bool hw_prefix_guard_is_waiting(const struct hw_app *a);
/* The node was a member before within this process, so it joins again without a look. */
void hw_prefix_guard_rejoin(struct hw_app *a);
/* Whether a node must not connect to the broker yet. */
bool hw_prefix_guard_blocks(const struct hw_app *a);
/* Where it runs, for struct hw_redis_conf. */
uint64_t hw_prefix_guard_host(const struct hw_app *a);
/* The link to Redis is there, or a node has joined; and each second. */
void hw_prefix_guard_check(struct hw_app *a);
/* Each second. */
void hw_prefix_guard_tick(struct hw_app *a);
/* There is no link to Redis. */
void hw_prefix_guard_unlinked(struct hw_app *a);
/* All is done but this: its entry is removed, so that its successor need not wait. Whether that is done. */
bool hw_prefix_guard_has_left(struct hw_app *a);

#endif
