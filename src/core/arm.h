/* SPDX-License-Identifier: MIT */
/*
 * Arming: deadlines, and the place of each device in the wheel of heartbeats, the wheel of keys, or among the
 * candidates. Private to the core.
 */
#ifndef HW_ARM_H
#define HW_ARM_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"

/* When a device that stays silent is overdue, on the monitor's seeing clock. Its group's own clock, which the deadline
 * is reckoned by, may be behind that one. */
struct hw_seen hw_monitor_deadline(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Where an online device's entry belongs: at its deadline, or where it may have to be probed before that, but never
 * more than HW_ARM_MAX_NS ahead. */
struct hw_seen hw_monitor_arm_point(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* (Re-)arms a device for its state: its deadline, its forgetting, or nothing. Takes it off wherever it is. */
void hw_monitor_arm(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Re-links an online device only if its deadline is now before the tick that it is armed for. */
void hw_monitor_arm_earlier(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Arms for a moment of the seeing clock. */
void hw_monitor_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at);
/* A device of a deaf group: looked at again after a timeout. No deadline can be nearer than that, unless deafness ends,
 * and then all are armed anew. */
void hw_monitor_arm_deaf(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Arms an offline device for the moment at which it is forgotten. `gone_ms`: the part of forget_after that has passed;
 * a negative value counts as 0. */
void hw_monitor_arm_offline(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t gone_ms);
/* After a reload: as the new settings say. */
void hw_monitor_relink(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Takes a record's node off the wheel or the candidates. */
void hw_monitor_unlink(struct hw_monitor *m, uint32_t i);
/* Puts a device behind all candidates: it is judged when a pair of barriers is back that is sent from now on, by what
 * its group's filters have brought since `need`. */
void hw_monitor_candidate(struct hw_monitor *m, uint32_t i, struct hw_mono need);

/* Puts a device in the keys' wheel, for a moment of the keys' clock. */
void hw_monitor_key_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at);
/* Puts a device in the keys' wheel for `at_ns` on the keys' clock, or in that of heartbeats if their deadline is
 * nearer. */
void hw_monitor_arm_nearest(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t at_ns);
/* Re-links only if the key's deadline is now before what the device is armed for. */
void hw_monitor_key_arm_earlier(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* The end of a key's time to live, or of what it is spared; on the keys' clock. */
int64_t hw_monitor_key_deadline_ns(const struct hw_monitor *m, const struct hw_key *k);
/* Until when a missing key is not held against its device. Blindness that recurs postpones by two further times to live
 * at most. */
int64_t hw_monitor_key_spared_ns(const struct hw_monitor *m, const struct hw_key *k);
/* How long it is until the deadline of a device's key, on the keys' clock. */
int64_t hw_monitor_key_left_ns(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Whether a device was kept online by its key last, and not by heartbeats. */
bool hw_monitor_key_was_last(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Whether heartbeats keep a device online, as far as was judged. */
bool hw_monitor_beats(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);

#endif
