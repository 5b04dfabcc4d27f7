/* SPDX-License-Identifier: MIT */
/* Arming: deadlines, and the place of each device: in the wheel of heartbeats, in the wheel of keys, or among the
 * suspects. Private to the core. */
#ifndef HW_ARM_H
#define HW_ARM_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"

/* When a silent device is overdue, on the monitor's seeing clock. The deadline is calculated on the group's own clock,
 * which may be behind that one. */
struct hw_seen hw_monitor_deadline(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Where an online device's entry belongs: at its deadline, or at an earlier probe, and at most HW_ARM_MAX_NS ahead. */
struct hw_seen hw_monitor_arm_point(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Arms a device for its state: for its deadline, for its forgetting, or not at all. Removes it from any other place. */
void hw_monitor_arm(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Re-links an online device only if its deadline is now before its armed tick. */
void hw_monitor_arm_earlier(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Arms for an instant of the seeing clock. */
void hw_monitor_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at);
/* Arms a device of a deaf group for a check after one timeout. No deadline can be nearer, unless the deafness ends, and
 * then all devices are armed again. */
void hw_monitor_arm_deaf(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Arms an offline device for the instant at which it is forgotten. `gone_ms`: the part of forget_after that has passed;
 * a negative value counts as 0. */
void hw_monitor_arm_offline(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t gone_ms);
/* Arms a device for the new settings after a reload. */
void hw_monitor_relink(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Takes a record's node off the wheel or the suspects. */
void hw_monitor_unlink(struct hw_monitor *m, uint32_t i);
/* Appends a device to the suspects. It is judged when a pair of barriers sent from now on is back, by what its group's
 * filters have delivered since `need`. */
void hw_monitor_suspect(struct hw_monitor *m, uint32_t i, struct hw_mono need);

/* Arms a device in the keys' wheel for an instant of the keys' clock. */
void hw_monitor_key_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at);
/* Arms a device in the keys' wheel for `at_ns` on the keys' clock. If the device's heartbeats have a nearer deadline,
 * or the key is missing and overdue, it is armed in the heartbeats' wheel. */
void hw_monitor_arm_nearest(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t at_ns);
/* Re-links only if the key's deadline is now before the armed tick. */
void hw_monitor_key_arm_earlier(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* The end of a key's time to live, or of its excuse if that is later; on the keys' clock. */
int64_t hw_monitor_key_deadline_ns(const struct hw_monitor *m, const struct hw_key *k);
/* Until when a missing key is no evidence against its device. Recurring blindness postpones this by at most two more
 * times to live. */
int64_t hw_monitor_key_excused_ns(const struct hw_monitor *m, const struct hw_key *k);
/* Time until the deadline of a device's key, on the keys' clock. */
int64_t hw_monitor_key_left_ns(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Whether the key, not heartbeats, kept a device online last. */
bool hw_monitor_key_was_last(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Whether heartbeats keep a device online, as far as the monitor has judged. */
bool hw_monitor_beats(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);

#endif
