/* SPDX-License-Identifier: MIT */
/* Devices that this node cannot judge, because it does not hear them: counted, logged and shown. */
#ifndef HW_UNJUDGED_H
#define HW_UNJUDGED_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "heartwheel/time.h"

struct hw_app;

/* Each second: counts on, and logs what has changed. */
void hw_app_unjudged_tick(struct hw_app *a, struct hw_now now);
/* Whether all devices have been looked at once since the load; looks at some more of them. */
bool hw_app_unjudged_known(struct hw_app *a, struct hw_now now);
/* Adds how many there are, and of which groups, to this node's entry of device:nodes. */
void hw_app_unjudged_add(const struct hw_app *a, cJSON *entry);
void hw_app_unjudged_free(struct hw_app *a);

#endif
