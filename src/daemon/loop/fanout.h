/* SPDX-License-Identifier: MIT */
/* The fan-out: passes the core's output to the sinks. */
#ifndef HW_FANOUT_H
#define HW_FANOUT_H

#include "daemon/context.h"

void hw_app_dispatch(struct hw_app *a, struct hw_now now, const struct hw_out *out);
/* Sends a transition to the clients of the event stream. A forgotten device still has its record then, because the
 * record is kept until the store has confirmed the transition. */
void hw_app_publish_to_clients(struct hw_app *a, struct hw_stream_id at, const struct hw_transition *t);

#endif
