/* SPDX-License-Identifier: MIT */
/* What several nodes ask of Redis, over a link of its own; and the channel on which they tell one another to look. */
#ifndef HW_CLUSTER_REDIS_H
#define HW_CLUSTER_REDIS_H

#include "nodes/nodes.h"

struct hw_app;

struct hw_cluster_redis {
	bool up;
};

int hw_app_cluster_redis_start(struct hw_app *a);
void hw_app_cluster_redis_free(struct hw_app *a);
/* JOIN to LEAVE, and ATTEND. */
void hw_app_cluster_ask(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o);
void hw_app_cluster_redis_tick(struct hw_app *a);

#endif
