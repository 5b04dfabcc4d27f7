/* SPDX-License-Identifier: MIT */
/* Following another node's decisions, and taking its devices over. Private to the core. */
#ifndef HW_FOLLOW_H
#define HW_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"

/* What is so from now on of a device that another node decides about. Of `t`, device and delay_ns are not read. */
void hw_follow(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_transition *t);

/* What the store says of one, where that is not older than what is known; `first`: in any case, for what is known may
 * be what that store has lost. Whose word that was has told the broker: whoever takes the device over owes what it is
 * now. Whether it is so. */
bool hw_follow_stored(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_transition *t, bool first);
/* The store has a newer word of a device that this node decides about: its own is to be newer still. */
void hw_follow_surpass(struct hw_monitor *m, uint32_t i, uint64_t stored_seq);
/* The seq of a device, HW_NIL if there is none, in the place of one that is out of bounds. */
uint64_t hw_follow_known_seq(const struct hw_monitor *m, struct hw_now now, uint32_t i);

/* The next record that is to be taken over; HW_NIL when there is none, or the budget is used up. */
uint32_t hw_follow_next(struct hw_monitor *m, unsigned *budget);
/* The device is this node's to decide about from now on: what was noted of it takes its way. */
void hw_follow_take_over(struct hw_monitor *m, struct hw_now now, uint32_t i);

#endif
