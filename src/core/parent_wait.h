/* SPDX-License-Identifier: MIT */
/* Decides for how long it is unknown whether a device went offline because of its parent, and finds the parent's next
 * heartbeat. Private to the core. */
#ifndef HW_PARENT_WAIT_H
#define HW_PARENT_WAIT_H

#include "monitor_priv.h"

/*
 * Called before a device becomes offline. hw_parent_wait_ms() returns how long the cause is unknown (struct
 * hw_transition.wait_ms), or -1. hw_parent_wait() makes heartwheel check the device's parents until one is heard;
 * heard_ms: the last_heard_ms of the device before it became offline.
 */
int64_t hw_parent_wait_ms(struct hw_monitor *m, struct hw_now now, uint32_t i);
void hw_parent_wait(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t heard_ms);

/* Checks up to 16 parents and waiting devices (hw_parent_wait()), and subtracts 1 from *budget. Each second, a new
 * round over all of them begins. Returns false if nothing is left to check now, or if *budget is 0. */
bool hw_parent_check_next(struct hw_monitor *m, struct hw_now now, unsigned *budget);
/* Returns when hw_parent_check_next() has work again; INT64_MAX: never. */
struct hw_mono hw_parent_check_at(const struct hw_monitor *m, struct hw_now now);

#endif
