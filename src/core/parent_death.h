/* SPDX-License-Identifier: MIT */
/* What the states of parents mean for their children, and the heartbeats of children for their parents. Private to the
 * core. */
#ifndef HW_PARENT_DEATH_H
#define HW_PARENT_DEATH_H

#include "monitor_priv.h"

/*
 * A device that may be a parent goes offline, by a transition or an entry of the stream: the call comes before its
 * state changes. `delay_ns` as in struct hw_transition. Its children are taken if their group wants it.
 */
void hw_parent_goes_down(struct hw_monitor *m, struct hw_now now, uint32_t i, enum hw_reason reason, int64_t delay_ns);
/* Its state is another than offline now. */
void hw_parent_is_up(struct hw_monitor *m, uint32_t i);
/* It is online again; or its goodbye was read. */
void hw_parent_returns(struct hw_monitor *m, struct hw_now now, uint32_t i);
void hw_parent_says_goodbye(struct hw_monitor *m, struct hw_now now, uint32_t i);

/* Whether an online child is to go offline because no known parent is online. */
bool hw_parent_orphaned(const struct hw_monitor *m, uint32_t i);
/* One step of the sweep over the children of offline parents. False: there is none now. */
bool hw_parent_take_next(struct hw_monitor *m, struct hw_now now, unsigned *budget);

/*
 * For an online device at its deadline: looks for a child whose heartbeat is newer than the device's own, and counts it
 * as the device's. False: not all children were looked at; call again. Spends a unit of the budget for each
 * HW_PARENT_SCAN children.
 */
#define HW_PARENT_SCAN 16
bool hw_parent_prove(struct hw_monitor *m, struct hw_now now, uint32_t i, unsigned *budget);

#endif
