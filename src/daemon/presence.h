/* SPDX-License-Identifier: MIT */
/* The monitor's own status. */
#ifndef HW_PRESENCE_H
#define HW_PRESENCE_H

#include "cluster_broker.h"
#include "context.h"

/* Its payload; with `online` false the last will's. Returns its length, or -1 if it does not fit. */
int hw_app_presence_payload(struct hw_app *a, struct hw_now now, bool online, char *buf, size_t cap);
#define HW_PRESENCE_MAX (1024 + HW_CLUSTER_PRESENCE_MAX)
/* Publishes it if it is due. */
void hw_app_presence(struct hw_app *a, struct hw_now now);
/* The last one, of one of several nodes that could not leave in time: its session ends, and what it claims with it. */
void hw_app_presence_end(struct hw_app *a, struct hw_now now);

#endif
