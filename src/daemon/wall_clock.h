/* SPDX-License-Identifier: MIT */
/*
 * The wall clock: no device is judged or forgotten by it. What is wrong with it is logged: a step, found by the clock
 * that counts from the boot; and a difference to Redis' clock.
 *
 * The age of a heartbeat (max_age) needs a right time. The core gets the earlier one of two: that of Redis' clock, as
 * it was told last; and that of the wall clock before steps that Redis' clock has not confirmed.
 */
#ifndef HW_WALL_CLOCK_H
#define HW_WALL_CLOCK_H

#include "context.h"

/* At the start, and each second. */
void hw_app_wall_clock_tick(struct hw_app *a);

#endif
