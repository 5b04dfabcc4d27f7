/* SPDX-License-Identifier: MIT */
/* What the control API asks. */
#ifndef HW_OBSERVE_H
#define HW_OBSERVE_H

#include "context.h"

extern const struct hw_control_ops hw_app_control_ops;
extern const struct hw_control_ops hw_app_control_ops_nodes;   /* one of several nodes */
extern const struct hw_control_ops hw_app_control_ops_standby; /* ... of which one alone knows the fleet */
extern const struct hw_control_ops hw_app_control_ops_memory;  /* no store keeps the event stream */

#endif
