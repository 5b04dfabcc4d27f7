/* SPDX-License-Identifier: MIT */
/*
 * What the stream device:sight is told: each period in which this monitor saw, or was blind, once it is over; and of
 * one in which it sees also while it lasts, after 1, 2, 4 ... s, then each five minutes, so that what was seen before a
 * kill is known but for the last minutes. At the start: that no monitor of this name ran since its predecessor's mark.
 * At a clean stop: that too.
 *
 * Blindness of a group alone (deaf) is not in it.
 */
#ifndef HW_SIGHTINGS_H
#define HW_SIGHTINGS_H

#include "context.h"

/* The run begins, blind; or it stands by, and nothing is told of it until the fleet is this node's. */
void hw_app_sightings_init(struct hw_app *a, struct hw_now now);
void hw_app_sightings_begin(struct hw_app *a, struct hw_now now);
/* The core has said that a blindness begins or ends: hw_monitor_blind() has when. */
void hw_app_sightings_turn(struct hw_app *a, struct hw_now now);
/* Each second. */
void hw_app_sightings_tick(struct hw_app *a, struct hw_now now);
/* A clean stop begins: nothing is told after it. */
void hw_app_sightings_end(struct hw_app *a, struct hw_now now);

#endif
