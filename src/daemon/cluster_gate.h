/* SPDX-License-Identifier: MIT */
/* What this node owns and decides about: the core's roles, as src/nodes orders them. */
#ifndef HW_CLUSTER_GATE_H
#define HW_CLUSTER_GATE_H

#include "nodes/nodes.h"

struct hw_app;

struct hw_cluster_gate {
	struct hw_partitions waits; /* owned, but the stream is not followed to `last` yet */
	struct hw_partitions drained;
	struct hw_event_id last;
};

/* OWN, LOSE, DRAIN, RESUME. */
void hw_app_cluster_role(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o);
/* Once a turn, before orders are pulled: what is followed, drained or seen by now is said to src/nodes. */
void hw_app_cluster_gate(struct hw_app *a, struct hw_now now);

#endif
