/* SPDX-License-Identifier: MIT */
/*
 * Writes the stream device:sight: the periods in which this monitor saw the fleet or was blind. A period is written
 * when it ends. A seeing period is also written while it lasts: after 1, 2, 4 s and so on, then every five minutes. So
 * after a kill, only the last minutes are unknown.
 *
 * At the start, the period in which no monitor of this name ran is written; it begins at the time in the predecessor's
 * sight record. At a clean stop, the stop is written. The blindness of a single group (deaf) is not written.
 */
#ifndef HW_SIGHTINGS_H
#define HW_SIGHTINGS_H

#include "daemon/context.h"

/* Called when the run begins, which is blind at first. On a node that stands by, nothing is written until
 * hw_app_sightings_begin() is called, when the node owns the fleet. */
void hw_app_sightings_init(struct hw_app *a, struct hw_now now);
void hw_app_sightings_begin(struct hw_app *a, struct hw_now now);
/* Called when the core has reported that a blindness begins or ends. hw_monitor_blind() has the times. */
void hw_app_sightings_turn(struct hw_app *a, struct hw_now now);
/* Called each second. */
void hw_app_sightings_tick(struct hw_app *a, struct hw_now now);
/* A clean stop begins. Nothing is written after it. */
void hw_app_sightings_end(struct hw_app *a, struct hw_now now);

#endif
