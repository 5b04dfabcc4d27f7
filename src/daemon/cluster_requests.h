/* SPDX-License-Identifier: MIT */
/*
 * What one node asks of another on its channel, device:node:NODE_ID, and is answered: JSON objects,
 *
 *     {"ask":"forget","from":NODE_ID,"run":RUN,"ticket":N,"id":ID}
 *     {"answer":"forget","from":NODE_ID,"run":RUN,"ticket":N,"what":"forgotten" or "unknown" or "unowned"}
 *
 * the latter on the channel of the node that asked. `run` is the id of that node's run: a later run ignores the answer.
 * `from` names the sender, which must be a member: whoever else may publish there cannot forget a device.
 */
#ifndef HW_CLUSTER_REQUESTS_H
#define HW_CLUSTER_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

#include "control/control.h"

struct hw_app;

/* Something was published on our own channel that is no sign between nodes (cluster_redis.c). Borrowed. */
void hw_app_cluster_asked(struct hw_app *a, const char *text, size_t len);

/* Forgets a device, or asks the node that owns it to. */
enum hw_forgotten hw_app_forget(struct hw_app *a, uint64_t ticket, const char *id, size_t len);

#endif
