/* SPDX-License-Identifier: MIT */
/* Canaries, and groups that do not hear. */
#ifndef HW_DEAF_H
#define HW_DEAF_H

#include "context.h"

void hw_app_canary(struct hw_app *a, const struct hw_out *out);
/* HW_PUBLISHER_CANARY. */
void hw_app_canary_answered(struct hw_app *a, const struct hw_publisher_event *ev);
void hw_app_canary_missing(struct hw_app *a, const struct hw_out *out);
void hw_app_deaf(struct hw_app *a, struct hw_now now, const struct hw_out *out);
void hw_app_upstream(struct hw_app *a, struct hw_now now, const struct hw_out *out);
/* Each second: says once which `while` has brought no value. */
void hw_app_upstream_tick(struct hw_app *a, struct hw_now now);
/* Presence, after the fleet or a group became blind or sees again. */
void hw_app_tell_blind(struct hw_app *a, struct hw_now now);

#endif
