/* SPDX-License-Identifier: MIT */
/* The monitor's presence. */
#ifndef HW_PRESENCE_H
#define HW_PRESENCE_H

#include "daemon/cluster/cluster.h"
#include "daemon/context.h"

/* Writes the payload of the presence, or that of the last will if `online` is false. Returns its length, or -1 if `buf`
 * is too small. */
int hw_app_presence_payload(struct hw_app *a, struct hw_now now, bool online, char *buf, size_t cap);
#define HW_PRESENCE_MAX (1024 + HW_CLUSTER_PRESENCE_MAX)
/* The topic of the presence. */
const char *hw_app_presence_topic(const struct hw_app *a);
/* true: the presence is due, and is published as soon as possible. false: no presence is due, and a stop does not
 * wait for one. */
void hw_app_presence_set_due(struct hw_app *a, bool due);
/* Publishes the presence if it is due. */
void hw_app_presence(struct hw_app *a, struct hw_now now);
/* Publishes the last presence of a node that could not leave in time. Its session and its claims end with that. */
void hw_app_presence_end(struct hw_app *a, struct hw_now now);

#endif
