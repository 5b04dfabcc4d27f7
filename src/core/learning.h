/* SPDX-License-Identifier: MIT */
/*
 * The learned timeouts of the devices (learn.h): which gaps are learned, and where the gaps are kept.
 *
 * An array next to the records contains the gaps. The array exists only while a group learns.
 *
 * A gap counts only if this node has received the heartbeats at both ends, and could receive heartbeats in between. So
 * HW_FLAG_TIMED marks a device whose last heartbeat may begin a gap. A gap is not learned in these cases:
 * - The monitor or the group was blind in the gap: the seeing clock stood still after the last heartbeat.
 * - The clock was put back: the two clocks do not agree on the length of the gap.
 * - The device had announced the gap, with a goodbye or a timeout of its own.
 * - The device was offline because of its parents.
 * - A probe may have ended the gap.
 *
 * Cost: a heartbeat of a group that does not learn costs one comparison. Private to the core.
 */
#ifndef HW_LEARNING_H
#define HW_LEARNING_H

#include "beat.h"

/* Makes the array if a group of `groups` learns. Returns 0 or -ENOMEM. */
int hw_learning_fit_groups(struct hw_monitor *m, const struct hw_groups *groups);
/* Applies the rules of the groups after a reload. Frees the array if no group learns. */
void hw_learning_configure(struct hw_monitor *m);
/* Makes room for the record `i`, which is new. Returns 0 or -ENOMEM. */
int hw_learning_add(struct hw_monitor *m, uint32_t i);
void hw_learning_fini(struct hw_monitor *m);

/* Forgets what was learned about a device. */
void hw_learning_forget(struct hw_monitor *m, uint32_t i);
/* Called when the device moves to another group: keeps the learned gaps only if the group was renamed. */
void hw_learning_move(struct hw_monitor *m, struct hw_now now, uint32_t i, uint16_t from, uint16_t to);
/* Called for each device after a reload. */
void hw_learning_relink(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Takes the stored gaps, because another node may have heard the device while this node was blind. Does nothing if this
 * node has an estimate and its timeout is at least as long as that of the stored gaps. The text has the form of
 * hw_monitor_gaps(). If the text is from rules with other windows, or does not name their length, a new window begins,
 * as after a reload: the estimate is then too long for some hours rather than too short. */
void hw_learning_load(struct hw_monitor *m, struct hw_now now, uint32_t i, const char *gaps, size_t len);

/* Whether the timeouts of the device's group are learned. */
static inline bool hw_learning_is_on(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->form[d->group].learns;
}

/* Called for a heartbeat of a device whose group learns, before the heartbeat is stored in the record. Returns whether
 * the timeout in force may have become shorter: the caller then calls hw_monitor_arm_earlier(). */
bool hw_learning_gap(struct hw_monitor *m, struct hw_now now, const struct hw_moment *t, uint32_t i);

/* Returns the learned timeout that is in force for a device whose group learns; 0: none. */
int64_t hw_learning_ms(const struct hw_monitor *m, const struct hw_device *d);

#endif
