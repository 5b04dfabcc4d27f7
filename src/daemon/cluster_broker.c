/* SPDX-License-Identifier: MIT */
/* See cluster_broker.h. */
#include "cluster_broker.h"

#include "context.h"

void hw_app_cluster_say(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o)
{
	(void)a, (void)now, (void)o;
}

void hw_app_cluster_session(struct hw_app *a, struct hw_now now, bool up)
{
	(void)a, (void)now, (void)up;
}

void hw_app_cluster_reader(struct hw_app_reader *r, struct hw_now now, bool up)
{
	(void)r, (void)now, (void)up;
}

bool hw_app_may_publish(const struct hw_app *a, const struct hw_device *d)
{
	return !a->cluster || hw_monitor_owns(a->monitor, d);
}
