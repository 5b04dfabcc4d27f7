/* SPDX-License-Identifier: MIT */
/* Evictions: which nodes this node disconnects from the broker because of their older claims, and the results. */
#ifndef HW_CLUSTER_EVICT_H
#define HW_CLUSTER_EVICT_H

#include <stdbool.h>

#include "heartwheel/time.h"
#include "nodes/fencing_token.h"

struct event;
struct hw_app;
struct hw_evict;

#define HW_CLUSTER_EVICTIONS 64 /* the fence's limit of peers */

struct hw_cluster_eviction {
	char node[HW_NODE_ID_MAX + 1]; /* "": the slot is free */
	struct hw_app *app;
	struct hw_evict *evict; /* owned; NULL: none in progress */
	struct event *over;     /* owned */
	bool taken;             /* the broker accepted the last eviction */
	bool heard;             /* the node's presence was read after the last eviction began */
	bool reported;          /* logged: the broker refuses the eviction */
};

struct hw_cluster_evictions {
	struct hw_cluster_eviction at[HW_CLUSTER_EVICTIONS];
};

void hw_app_cluster_evict(struct hw_app *a, struct hw_now now, const char *node);
/* A presence of this node was read. */
void hw_app_cluster_evict_heard(struct hw_app *a, const char *node);
void hw_app_cluster_evict_free(struct hw_app *a);

#endif
