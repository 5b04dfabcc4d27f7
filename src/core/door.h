/* SPDX-License-Identifier: MIT */
/* The door: the one place where a device's state changes. Private to the core. */
#ifndef HW_DOOR_H
#define HW_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"
#include "verdict.h"

/* Gets the verdict for an event of a device and applies it. Returns whether the device's state has changed. Under
 * max_offline_rate a change to offline may wait for its turn. */
bool hw_monitor_rule(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e);
/* Applies a verdict that the caller already has about a suspect (HW_EVENT_PROVEN), or about a device whose key is
 * missing (HW_EVENT_KEY_GONE). Returns the same as hw_monitor_rule(). */
bool hw_monitor_carry_out(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e,
                          const struct hw_verdict *v);

/* Called while a goodbye of this device is applied. Returns whether the goodbye may be the first of many that a bridge
 * repeats: it has the retain flag, and the same goodbye has arrived before (retained_intake.c). */
bool hw_monitor_may_be_repeated(const struct hw_monitor *m, struct hw_now now, uint32_t i);

/* Gives a new record its first state, without a transition. */
void hw_monitor_place(struct hw_monitor *m, uint32_t i, enum hw_state state, enum hw_reason reason);
/* Clears HW_OWN_TIMEOUT_OVER, by which a provisional device ignores the stored timeout. Called when the device is no
 * longer provisional. */
void hw_monitor_no_longer_provisional(struct hw_device *d);
/* Cancels a device's goodbye. The goodbye may have replaced the device's retained status at the broker, so that status
 * is pending again. */
void hw_monitor_void_goodbye(struct hw_monitor *m, uint32_t i);

#endif
