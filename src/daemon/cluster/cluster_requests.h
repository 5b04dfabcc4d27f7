/* SPDX-License-Identifier: MIT */
/*
 * Requests from one node to another on the channel device:node:NODE_ID, and the answers. Both are JSON objects:
 *
 * - {"ask":"forget","from":NODE_ID,"run":RUN,"ticket":N,"id":ID}
 * - {"answer":"forget","from":NODE_ID,"run":RUN,"ticket":N,"what":"forgotten" or "unknown" or "unowned"}
 *
 * The answer is published on the channel of the node that sent the request. `run` is that node's run id: a later run
 * ignores the answer. `from` names the sender, which must be a member, so that another client of Redis cannot forget a
 * device.
 */
#ifndef HW_CLUSTER_REQUESTS_H
#define HW_CLUSTER_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

#include "control/control.h"

struct hw_app;

/* Handles a message on this node's channel that cluster_redis.c does not handle. `text` is borrowed. */
void hw_app_cluster_asked(struct hw_app *a, const char *text, size_t len);

#endif
