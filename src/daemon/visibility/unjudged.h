/* SPDX-License-Identifier: MIT */
/* Devices that this node cannot judge, because it does not receive their messages. They are counted, logged and shown.
 */
#ifndef HW_UNJUDGED_H
#define HW_UNJUDGED_H

#include <stdbool.h>

#include "heartwheel/time.h"

struct hw_app;
struct hw_json;

/* Called each second: continues the count, and logs changes. */
void hw_app_unjudged_tick(struct hw_app *a, struct hw_now now);
/* Whether all devices have been checked once since the load. If not, continues the check. */
bool hw_app_unjudged_known(struct hw_app *a, struct hw_now now);
/* The same, without continuing. */
bool hw_app_unjudged_counted(const struct hw_app *a);
/* Writes the number of these devices, and their groups, as members of this node's entry of device:nodes. */
void hw_app_unjudged_write(const struct hw_app *a, struct hw_json *j);

#endif
