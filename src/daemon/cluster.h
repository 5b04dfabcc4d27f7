/* SPDX-License-Identifier: MIT */
/*
 * One of several nodes ([cluster] mode = mirror or standby): src/nodes says what is to be done, and the daemon's files
 * do it. What happens is put into hw_app_nodes(); hw_app_cluster_turn() pulls out what follows and hands it on:
 *
 *     cluster_redis     what is asked of Redis, over a link of its own
 *     cluster_sentinel  whether that Redis is the master, as Sentinels say
 *     cluster_gate      what is owned, and lost; what of it is decided, drained, flushed
 *     cluster_stream    what the other nodes have written; not where mode = standby
 *     cluster_broker    presence, barriers, and who is cut off from the broker
 *     cluster_standby   where mode = standby: when the fleet is this node's to hear
 *
 * mode = off: there is none of it, and each function returns at once.
 */
#ifndef HW_CLUSTER_DAEMON_H
#define HW_CLUSTER_DAEMON_H

#include "context.h"
#include "nodes/nodes.h"

/* After struct hw_redis was made. 0 or -ENOMEM. */
int hw_app_cluster_start(struct hw_app *a);
/* Its links are closed before the control API and struct hw_redis go, which may still call in: then there is none. */
void hw_app_cluster_free(struct hw_app *a);

/* NULL: mode = off. */
struct hw_nodes *hw_app_nodes(const struct hw_app *a);
/* Pulls all orders and carries them out, and sets the timer: in each turn, before the sinks are pumped. */
void hw_app_cluster_turn(struct hw_app *a, struct hw_now now);
/* Each second. */
void hw_app_cluster_tick(struct hw_app *a, struct hw_now now);
/* Whether it is time to connect to the broker: a node joins before, since its client ids would throw a namesake out. */
bool hw_app_cluster_connects(const struct hw_app *a, struct hw_now now);
/* A clean stop begins; and whether all is released and left. */
void hw_app_cluster_stop(struct hw_app *a, struct hw_now now);
bool hw_app_cluster_stopped(const struct hw_app *a);

#endif
