/* SPDX-License-Identifier: MIT */
/* Several nodes, as the control API is told of them. */
#ifndef HW_CLUSTER_SHOW_H
#define HW_CLUSTER_SHOW_H

#include "context.h"
#include "control/nodes.h"

/* Nothing is known while the cluster is not there: before it is started, and once it has left. */
void hw_app_show_nodes(const struct hw_app *a, struct hw_control_nodes *out);

#endif
