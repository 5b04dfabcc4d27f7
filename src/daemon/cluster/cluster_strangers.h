/* SPDX-License-Identifier: MIT */
/*
 * Members that differ from this node. A member with another [cluster] name, mode or protocol cannot watch one fleet
 * together with this node. Two such nodes hand no partitions over to each other, and each keeps its own partitions
 * until it leaves. A member with another configuration or version can watch the fleet together with this node, so that
 * nodes can be changed one after another. All differences are logged.
 */
#ifndef HW_CLUSTER_STRANGERS_H
#define HW_CLUSTER_STRANGERS_H

#include <stdint.h>

#include "redis/cluster.h"

struct hw_app;

struct hw_cluster_strangers {
	uint64_t reported; /* hash of the last logged text */
};

/* Treats members that cannot watch one fleet with this node as not ready. Called before src/nodes gets the members. */
void hw_app_hold_strangers(const struct hw_app *a, struct hw_cluster_answer *answer);
/* Called each second. Logs which members differ from this node, and how, when this changes. */
void hw_app_log_strangers(struct hw_app *a);

#endif
