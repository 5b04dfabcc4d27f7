/* SPDX-License-Identifier: MIT */
/*
 * What several nodes ask of Redis, over a link of its own: what waits there must not wait behind devices. And the
 * channels device:node:NODE_ID, on which nodes ask something of one another; on device:node:* (which is no pattern
 * here) they tell all to look at once.
 *
 * A reply that is an error ends the connection: what was asked is then not known to have happened, and src/nodes asks
 * anew over the next one.
 */
#ifndef HW_CLUSTER_REDIS_H
#define HW_CLUSTER_REDIS_H

#include "link/scripts.h"
#include "nodes/nodes.h"
#include "redis/cluster.h"

struct hw_app;

#define HW_CLUSTER_ASKS 4 /* kinds of orders of which one may wait for its answer */

struct hw_cluster_asked {
	struct hw_app *app;
	struct hw_nodes_order order;
};

struct hw_cluster_redis {
	struct hw_redis_link link, hear; /* commands; and what is published */
	struct hw_scripts scripts;
	struct hw_keys keys;
	struct hw_cluster cluster;
	struct hw_eval eval;
	struct hw_cluster_answer *answer; /* owned; of one reply at a time */
	struct hw_cluster_asked asked[HW_CLUSTER_ASKS];
	bool linked, hears; /* the links were made; what is published is heard */
	bool up;
	char why[HW_TROUBLE_TEXT]; /* it is not */
	struct hw_mono asked_self; /* of the message to itself that is not back; 0: none */
	int quiet_s;               /* since the last such message */
};

/* 0 or -ENOMEM. */
int hw_app_cluster_redis_start(struct hw_app *a);
void hw_app_cluster_redis_free(struct hw_app *a);
/* Lets src/nodes ask, JOIN first, if the link is there and no monitor by itself is known to work here (prefix_guard.h).
 */
void hw_app_cluster_join(struct hw_app *a);
/* JOIN to LEAVE, and ATTEND. */
void hw_app_cluster_ask(struct hw_app *a, struct hw_now now, struct hw_nodes_order *o);
void hw_app_cluster_redis_tick(struct hw_app *a, struct hw_now now);

/* Publishes a text on device:node:NODE. 0; or -ENOTCONN or -ENOMEM, and nobody hears of it. */
int hw_app_cluster_send(struct hw_app *a, const char *node, const char *text, size_t len);
/* Whether a member of the cluster has the name `from`. If none has, this is logged: the message is to have no effect.
 */
bool hw_app_cluster_is_from_member(struct hw_app *a, const char *from);

#endif
