/* SPDX-License-Identifier: MIT */
/* Whether this monitor sees the fleet: blindness of the fleet and of groups, canaries, `while` conditions. */
#ifndef HW_DAEMON_VISIBILITY_H
#define HW_DAEMON_VISIBILITY_H

#include "daemon/context.h"

/* Sets a->visibility: the fleet is blind until the core reports otherwise. Returns 0 or -ENOMEM. */
int hw_app_visibility_new(struct hw_app *a);
void hw_app_visibility_free(struct hw_app *a);

/* Whether the fleet as a whole is blind, by the core's last report. */
bool hw_app_fleet_is_blind(const struct hw_app *a);
/* Returns the cause of the present blindness, as the presence shows it: the cause of the fleet's blindness, or else
 * the cause of the groups' blindness. NULL: there is no blindness. */
const char *hw_app_blind_text(const struct hw_app *a);

/* Handles HW_OUT_BLIND. */
void hw_app_on_blind(struct hw_app *a, struct hw_now now, const struct hw_out *out);
void hw_app_canary_missing(struct hw_app *a, const struct hw_out *out);
void hw_app_deaf(struct hw_app *a, struct hw_now now, const struct hw_out *out);
void hw_app_upstream(struct hw_app *a, struct hw_now now, const struct hw_out *out);
/* Called when the conditions have changed. The next lines of hw_app_upstream_tick() are about the new conditions. */
void hw_app_upstream_ask(struct hw_app *a);
/* Handles HW_OUT_WHILE_UNKNOWN. */
void hw_app_while_unknown(struct hw_app *a, const struct hw_out *out);
/* Called each second: requests the values of the `while` topics from time to time, and logs once for which condition no
 * value has arrived. */
void hw_app_upstream_tick(struct hw_app *a, struct hw_now now);
/* Publishes the presence after the fleet or a group became blind, or sees again. */
void hw_app_log_blind(struct hw_app *a, struct hw_now now);

#endif
