/* SPDX-License-Identifier: MIT */
/* What one node asks of another on its channel, device:node:NODE_ID, and is answered. */
#ifndef HW_CLUSTER_REQUESTS_H
#define HW_CLUSTER_REQUESTS_H

#include <stddef.h>

struct hw_app;

/* Something was published on our own channel that is no sign between nodes (cluster_redis.c). Borrowed. */
void hw_app_cluster_asked(struct hw_app *a, const char *text, size_t len);

#endif
