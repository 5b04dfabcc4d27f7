/* SPDX-License-Identifier: MIT */
/* Follows another node's decisions, and takes its devices over. Private to the core. */
#ifndef HW_FOLLOW_H
#define HW_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"

/* Applies another node's decision to a device. Ignores `t`'s device and delay_ns. */
void hw_follow(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_transition *t);

/*
 * Applies the state that the store has for a device. If the known state is newer, the stored state is applied only with
 * `first`: the known state was then written to another store, and may be lost with that store. The device's owner had
 * published the known state. So if the states differ, the device's status is marked as pending. Returns whether the
 * state was applied.
 */
bool hw_follow_stored(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_transition *t, bool first);
/* Raises the seq of this node's state, so that the state is newer than that in the store. Called if the store has a
 * newer state of a device for which this node is authoritative. */
void hw_follow_surpass(struct hw_monitor *m, uint32_t i, uint64_t stored_seq);
/* Returns the seq that replaces an invalid one: the device's known seq. If there is none (`i` is HW_NIL, or the seq
 * is 0), returns the wall clock. */
uint64_t hw_follow_known_seq(const struct hw_monitor *m, struct hw_now now, uint32_t i);

/* Returns the next record to take over; HW_NIL: none is left, or the budget is used up. */
uint32_t hw_follow_next(struct hw_monitor *m, unsigned *budget);
/* Called when this node begins to decide for the device. Applies this node's own verdict on the device, which the
 * record has (gate.h). */
void hw_follow_take_over(struct hw_monitor *m, struct hw_now now, uint32_t i);

#endif
