/* SPDX-License-Identifier: MIT */
/*
 * This node's commands for the cluster go to Redis over a separate connection, so that the commands do not wait for the
 * devices' writes. The nodes also send each other requests on the channels device:node:NODE_ID. A message on
 * device:node:* (here the `*` is a part of the name, not a pattern) makes all nodes check Redis at once.
 *
 * An error reply closes the connection, because it is unknown then whether Redis carried out the command. src/nodes
 * then issues the command (struct hw_nodes_order) again, over the next connection.
 */
#ifndef HW_CLUSTER_REDIS_H
#define HW_CLUSTER_REDIS_H

#include "link/scripts.h"
#include "nodes/nodes.h"
#include "redis/cluster.h"
#include "redis/server_run_id.h"

struct hw_app;

#define HW_CLUSTER_ASKS 4 /* kinds of orders; one of each kind may wait for its answer */

struct hw_cluster_asked {
	struct hw_app *app;
	struct hw_nodes_order order;
};

struct hw_cluster_redis {
	struct hw_redis_link link, hear; /* for commands; for the subscription to the channels */
	struct hw_scripts scripts;
	struct hw_keys keys;
	struct hw_cluster cluster;
	struct hw_eval eval;
	struct hw_cluster_answer *answer; /* owned; the reply that is being read */
	struct hw_cluster_asked asked[HW_CLUSTER_ASKS];
	bool linked, hears; /* both links were made; the subscription is active */
	bool up;
	char server[HW_SERVER_RUN_ID + 1]; /* run id of the server of `link`; "": not known */
	char why[HW_TROUBLE_TEXT];         /* the cause while `up` is false */
	char refused[HW_TROUBLE_TEXT];     /* Redis' error reply to the last order; "": none */
	char denied[HW_TROUBLE_TEXT];      /* the error while hw_nodes_is_denied(); else "" */
	struct hw_mono asked_self; /* when the test message that is on its way was published; 0: none is on its way */
	int quiet_s;               /* seconds since the last test message */
};

/* Returns 0 or -ENOMEM. */
int hw_app_cluster_redis_start(struct hw_app *a);
void hw_app_cluster_redis_free(struct hw_app *a);
/* Executes the orders JOIN to LEAVE, and ATTEND. */
void hw_app_cluster_ask(struct hw_app *a, struct hw_now now, struct hw_nodes_order *o);
void hw_app_cluster_redis_tick(struct hw_app *a, struct hw_now now);

/* Publishes a text on device:node:NODE. Returns 0, or -ENOTCONN or -ENOMEM, if it is not published. */
int hw_app_cluster_send(struct hw_app *a, const char *node, const char *text, size_t len);
/* Whether `from` is a member of the cluster. If not, this function logs that, and the caller ignores the message. */
bool hw_app_cluster_is_from_member(struct hw_app *a, const char *from);

#endif
