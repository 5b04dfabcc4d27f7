/* SPDX-License-Identifier: MIT */
/* Arming a device: putting it where its next deadline will be found. An armed device is in the wheel of heartbeats,
 * in the wheel of keys, or in the queue of suspects. Private to the core. */
#ifndef HW_ARM_H
#define HW_ARM_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"

/* Returns when the silence of a device began, on the clock of its group: at the device's last heartbeat, or later,
 * at a reload or at the end of a blindness. Before these the device may have sent messages that this node could not
 * receive. */
int64_t hw_monitor_silent_from(const struct hw_monitor *m, const struct hw_device *d);
/* Returns the end of the last lossy blindness of the monitor or of the group, whichever is later, on the group's
 * clock. */
int64_t hw_monitor_lossy_end_ns(const struct hw_monitor *m, uint16_t group);
/* Returns the deadline of a device, on the monitor's seeing clock. The deadline is calculated on the clock of the
 * device's group and then converted, because the group's clock also stands still while only the group is blind. */
struct hw_seen hw_monitor_deadline(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Returns when to check an online device next: at its deadline, or at its next probe if that is earlier, but at most
 * HW_ARM_MAX_NS from now. */
struct hw_seen hw_monitor_arm_point(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Arms an online device for its deadline, an offline device for the time at which it is forgotten, and any other
 * device not at all. Removes the device from its previous place. */
void hw_monitor_arm(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Moves an online device to an earlier tick if its deadline is now before the tick for which it is armed. */
void hw_monitor_arm_earlier(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Arms a device in the wheel of heartbeats for an instant of the monitor's seeing clock. */
void hw_monitor_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at);
/* Arms a device of a deaf group for a check after one timeout. The device's deadline cannot pass before that check,
 * because the clock of a deaf group stands still. When the deafness ends, all devices of the group are armed again. */
void hw_monitor_arm_deaf(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Arms an offline device for the instant at which it is forgotten. `gone_ms`: the part of forget_after that has passed;
 * a negative value counts as 0. */
void hw_monitor_arm_offline(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t gone_ms);
/* Arms a device for the new settings after a reload. */
void hw_monitor_relink(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Removes a device from the wheel, or from the queue of suspects. */
void hw_monitor_unlink(struct hw_monitor *m, uint32_t i);
/* Appends a device to the suspects. The device is judged when two barriers are back that are sent from now on. Each
 * filter of its group must also have delivered a message published after `need`. */
void hw_monitor_suspect(struct hw_monitor *m, uint32_t i, struct hw_mono need);

/* Arms a device in the wheel of keys. `at` is an instant on the keys' clock. */
void hw_monitor_key_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at);
/* Arms a device in the keys' wheel for `at_ns` on the keys' clock. But if its heartbeats have a nearer deadline, or
 * if its key is missing and overdue, arms the device in the heartbeats' wheel. */
void hw_monitor_arm_nearest(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t at_ns);
/* Moves a device to an earlier tick of the keys' wheel if its key's deadline is now before the tick for which it is
 * armed. */
void hw_monitor_key_arm_earlier(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Returns a key's deadline on the keys' clock: the end of its time to live, or the end of its excuse
 * (hw_monitor_key_excused_ns()) if that is later. */
int64_t hw_monitor_key_deadline_ns(const struct hw_monitor *m, const struct hw_key *k);
/* Returns the instant on the keys' clock until which a missing key is excused: until then its absence does not show
 * that the device is offline. Repeated blindness extends an excuse by at most two times to live. */
int64_t hw_monitor_key_excused_ns(const struct hw_monitor *m, const struct hw_key *k);
/* Returns the time until the deadline of a device's key, on the keys' clock. */
int64_t hw_monitor_key_left_ns(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Whether the device was last kept online by its key alone: its heartbeats had stopped, and their deadline has
 * passed. */
bool hw_monitor_key_was_last(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* Whether the device's heartbeats keep it online. The heartbeats no longer do this after the monitor has judged the
 * device as silent over MQTT. */
bool hw_monitor_beats(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);

#endif
