/* SPDX-License-Identifier: MIT */
/* The daemon's answers to the control API. */
#ifndef HW_OBSERVE_H
#define HW_OBSERVE_H

#include "context.h"

extern const struct hw_control_ops hw_app_control_ops;
extern const struct hw_control_ops hw_app_control_ops_nodes;   /* one of several nodes */
extern const struct hw_control_ops hw_app_control_ops_standby; /* ... if only one node knows the fleet */
extern const struct hw_control_ops hw_app_control_ops_memory;  /* without a store for the event stream */

#endif
