/* SPDX-License-Identifier: MIT */
/* Several nodes at the broker: presence, barriers, evictions, and which statuses may go out. */
#ifndef HW_CLUSTER_BROKER_H
#define HW_CLUSTER_BROKER_H

#include <stdbool.h>

#include "heartwheel/registry.h"
#include "heartwheel/time.h"
#include "nodes/nodes.h"

struct hw_app;
struct hw_app_reader;

struct hw_cluster_broker {
	bool nothing; /* of its own yet */
};

/* PRESENCE, BARRIER, EVICT. */
void hw_app_cluster_say(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o);
/* A session of the publisher begins, or is lost. */
void hw_app_cluster_session(struct hw_app *a, struct hw_now now, bool up);
/* A reader is subscribed, or lost. */
void hw_app_cluster_reader(struct hw_app_reader *r, struct hw_now now, bool up);
/* Whether statuses of this device may go out now; true where mode = off. */
bool hw_app_may_publish(const struct hw_app *a, const struct hw_device *d);

#endif
