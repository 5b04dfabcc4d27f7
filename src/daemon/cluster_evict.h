/* SPDX-License-Identifier: MIT */
/* Whom this node cuts off from the broker (design 10.5, rule 4), and what has become of it. */
#ifndef HW_CLUSTER_EVICT_H
#define HW_CLUSTER_EVICT_H

#include <stdbool.h>

#include "heartwheel/time.h"
#include "nodes/token.h"

struct event;
struct hw_app;
struct hw_evict;

#define HW_CLUSTER_EVICTIONS 64 /* as many as the fence has peers */

struct hw_cluster_eviction {
	char node[HW_NODE_ID_MAX + 1]; /* "": the place is free */
	struct hw_app *app;
	struct hw_evict *evict; /* owned; NULL: none is under way */
	struct event *over;     /* owned */
	bool taken;             /* the last one was */
	bool heard;             /* its presence was read since the last one began */
	bool told;              /* that the broker refuses it */
};

struct hw_cluster_evictions {
	struct hw_cluster_eviction at[HW_CLUSTER_EVICTIONS];
};

void hw_app_cluster_evict(struct hw_app *a, struct hw_now now, const char *node);
/* A presence of this node was read. */
void hw_app_cluster_evict_heard(struct hw_app *a, const char *node);
void hw_app_cluster_evict_free(struct hw_app *a);

#endif
