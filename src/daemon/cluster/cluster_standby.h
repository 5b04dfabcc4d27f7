/* SPDX-License-Identifier: MIT */
/*
 * [cluster] mode = standby: one node owns all partitions, and only this node receives the fleet's messages. The other
 * nodes stand by: their readers subscribe only to the nodes' presences, and their core has no connections, knows no
 * device, and is blind.
 *
 * When a node has won all partitions, it begins with the fleet as after a start: it subscribes to the fleet's filters
 * and reads Redis. Silence counts from the end of reconnect_grace.
 *
 * A node gives the fleet up if another node owns one of its partitions, if it has handed over all partitions (a
 * release), or if it cannot begin. Its data about the devices is then out of date. So the daemon stops everything
 * except its sockets, and starts over (hw_app_restart()): no heartbeat, pending write or request from before the
 * restart remains.
 *
 * If Redis was flushed, partitions are lost although no other node owns them. They are claimed again, because no other
 * node knows their devices.
 */
#ifndef HW_CLUSTER_STANDBY_H
#define HW_CLUSTER_STANDBY_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "nodes/fencing_token.h"

struct hw_app;

struct hw_cluster_standby {
	bool is;                /* mode = standby */
	bool fleet;             /* this node has begun with the fleet */
	bool lost;              /* ... but does not own all partitions any more */
	bool over;              /* ... and gives the fleet up */
	bool again;             /* partitions were won again since the begin */
	bool saw;               /* a barrier came back since this node began with the fleet: the connections deliver
	                         * messages */
	bool shy;               /* see hw_app_standby_ready() */
	bool was_deaf;          /* see hw_app_standby_was_deaf() */
	bool goes_blind;        /* given up because this node could not watch it */
	struct hw_mono at;      /* the time of the begin */
	struct hw_mono unheard; /* when this node was last blind, apart from a grace */
	struct hw_mono blind_since, shy_until; /* 0: not blind; the end of `shy` */
	struct hw_mono ending;                 /* since when the daemon waits only for threads; 0: not yet */
};

/*
 * Whether this node could take over. A barrier must have come back recently: a connection without traffic may seem open
 * for minutes after it broke. A node may have given up the fleet because it never received a message, for example for
 * lack of a right. Such a node is not ready for an hour, as long as another node is ready.
 */
bool hw_app_standby_ready(struct hw_app *a, struct hw_now now);
/* Whether a group was deaf when this node last gave the fleet up. A reload or a restart clears this. */
bool hw_app_standby_was_deaf(const struct hw_app *a);
/* Whether the owner cannot receive the fleet's messages. Once a barrier is back, the grace after a loss does not
 * count: the next owner would begin with a grace, too. */
bool hw_app_standby_blind(struct hw_app *a, struct hw_now now);

/* Called when partitions were won, were lost, or are about to be released. */
void hw_app_standby_won(struct hw_app *a);
void hw_app_standby_lost(struct hw_app *a);
void hw_app_standby_released(struct hw_app *a);
/* Whether the partitions that become authoritative now were read completely from Redis in this run. If so, the caller
 * compares neither the outbox nor the keys, and publishes no status again (compare_with_store()). */
bool hw_app_standby_loaded(struct hw_app *a);
/* Called once a turn, after the orders. Begins with the fleet, or gives it up. */
void hw_app_standby_turn(struct hw_app *a, struct hw_now now);

#endif
