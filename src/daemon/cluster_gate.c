/* SPDX-License-Identifier: MIT */
/* See cluster_gate.h. */
#include "cluster_gate.h"

#include "cluster_priv.h"

void hw_app_cluster_role(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o)
{
	(void)a, (void)now, (void)o;
}

void hw_app_cluster_gate(struct hw_app *a, struct hw_now now)
{
	(void)a, (void)now;
}
