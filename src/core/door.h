/* SPDX-License-Identifier: MIT */
/* The door: the one place where a device's state changes. Private to the core. */
#ifndef HW_DOOR_H
#define HW_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"
#include "verdict.h"

/* Asks for the verdict on a device and carries it out. Returns whether its state has changed. Under max_offline_rate,
 * the change to offline may have to wait for its turn. */
bool hw_monitor_rule(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e);
/* Carries out a verdict that was already asked for: on a suspect (HW_EVENT_PROVEN), or on a device whose key is gone
 * (HW_EVENT_KEY_GONE). Returns as hw_monitor_rule(). */
bool hw_monitor_carry_out(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e,
                          const struct hw_verdict *v);

/* Gives a new record its first state, without a transition. */
void hw_monitor_place(struct hw_monitor *m, uint32_t i, enum hw_state state, enum hw_reason reason);
/* The device is no longer provisional: clears HW_OWN_TIMEOUT_OVER, which kept a stored timeout from being used. */
void hw_monitor_no_longer_provisional(struct hw_device *d);
/* Voids a device's goodbye. The goodbye may have replaced the retained status, which is pending again. */
void hw_monitor_void_goodbye(struct hw_monitor *m, uint32_t i);

#endif
