/* SPDX-License-Identifier: MIT */
/* The fan-out: what the core says goes to the sinks. */
#ifndef HW_FANOUT_H
#define HW_FANOUT_H

#include "context.h"

void hw_app_dispatch(struct hw_app *a, struct hw_now now, const struct hw_out *out);
/* Tells the event stream's clients of a transition. The record of a forgotten device is there until the store has
 * confirmed it. */
void hw_app_tell_clients(struct hw_app *a, struct hw_event_id at, const struct hw_transition *t);

#endif
