/* SPDX-License-Identifier: MIT */
/* How long the cause of an offline child is open, and when its parent is heard. Private to the core. */
#ifndef HW_PARENT_WAIT_H
#define HW_PARENT_WAIT_H

#include "monitor_priv.h"

/*
 * A device is about to go offline: for how long its cause is open (struct hw_transition.wait_ms), or -1. With
 * hw_parent_wait() its parents are checked at until one is heard.
 */
int64_t hw_parent_wait_ms(struct hw_monitor *m, struct hw_now now, uint32_t i);
void hw_parent_wait(struct hw_monitor *m, struct hw_now now, uint32_t i);

/* One step of the check of parents and waits, once a second. False: nothing is to be done now. */
bool hw_parent_check_next(struct hw_monitor *m, struct hw_now now, unsigned *budget);
/* When hw_parent_check_next() has work again; INT64_MAX: never. */
struct hw_mono hw_parent_check_at(const struct hw_monitor *m, struct hw_now now);

#endif
