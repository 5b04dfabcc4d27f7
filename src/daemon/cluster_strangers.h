/* SPDX-License-Identifier: MIT */
/*
 * Members that are not as this node is. Those of another [cluster] name or mode, or of another protocol, cannot watch
 * one fleet with it: nothing is handed over to them, as they hand nothing over to us; what they own is theirs until
 * they are gone. Those of another configuration or version can: a rolling change looks like that. All of them are told
 * of.
 */
#ifndef HW_CLUSTER_STRANGERS_H
#define HW_CLUSTER_STRANGERS_H

#include <stdint.h>

#include "redis/cluster.h"

struct hw_app;

struct hw_cluster_strangers {
	uint64_t told; /* a hash of what was told */
};

/* Before src/nodes sees who the members are: those that cannot be in one fleet with us count as not ready. */
void hw_app_hold_strangers(const struct hw_app *a, struct hw_cluster_answer *answer);
/* Each second: who differs from this node, and in what, whenever that changes. */
void hw_app_tell_strangers(struct hw_app *a);

#endif
