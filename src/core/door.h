/* SPDX-License-Identifier: MIT */
/* The door: the one place where a device's state changes. Private to the core. */
#ifndef HW_DOOR_H
#define HW_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"
#include "verdict.h"

/* Asks for the verdict on a device and carries it out. Whether its state has changed: an offline one under
 * max_offline_rate may have to wait for its turn. */
bool hw_monitor_rule(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e);
/* Carries out a verdict that was asked for already: on a candidate (HW_SAID_PROVEN), or on one whose key is gone
 * (HW_SAID_KEY_GONE). Returns as hw_monitor_rule(). */
bool hw_monitor_carry_out(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e,
                          const struct hw_verdict *v);

/* Gives a record that is being made its first state, without a transition. */
void hw_monitor_place(struct hw_monitor *m, uint32_t i, enum hw_state state, enum hw_reason reason);
/* A device is no longer provisional: its record says what its timeout is, not what was remembered until the load. */
void hw_monitor_no_longer_provisional(struct hw_device *d);
/* A device's goodbye counts for nothing. It may have replaced the retained status, which is owed again. */
void hw_monitor_void_goodbye(struct hw_monitor *m, uint32_t i);

#endif
