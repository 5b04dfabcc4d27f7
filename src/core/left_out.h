/* SPDX-License-Identifier: MIT */
/*
 * Left-out devices: devices of the store or of other nodes that have no record here, because the table or the memory
 * was full. This node does not watch such a device, which therefore counts as unjudged. So the node must not own the
 * device's partition while another node has room. In a cluster, devices whose heartbeats were refused count too,
 * because another node may have room for them.
 *
 * A left-out device is known by a hash of its id. At most HW_LEFT_OUT_MAX devices are remembered; of all others, only
 * their partitions are. Left-out devices are read again when there is room (hw_monitor_left_out_fits()).
 *
 * Cost: a device with a record costs one comparison, when the record is made. Private to the core.
 */
#ifndef HW_LEFT_OUT_H
#define HW_LEFT_OUT_H

#include "monitor_priv.h"

#define HW_LEFT_OUT_MAX 65536 /* 1.5 MiB */

/* Notes a left-out device, or updates its note. `state`: PROVISIONAL if only a heartbeat shows that the device exists;
 * a state that is already noted then stays. `group` < 0: the group is not known, and the device is counted in the first
 * group. */
void hw_left_out_note(struct hw_monitor *m, int group, const char *id, size_t len, enum hw_state state);
/* Whether the device is a left-out device that the store has. Before its messages count, its stored record is read;
 * otherwise it would count as a new device. */
bool hw_left_out_is_stored(const struct hw_monitor *m, const char *id, size_t len);
/* Called when a device has got a record, or was forgotten. The device is then no longer left out. */
void hw_left_out_remove(struct hw_monitor *m, const char *id, size_t len);
/* Adds the left-out online devices of this node's partitions to the running count of unjudged devices. */
void hw_left_out_count(struct hw_monitor *m);

#endif
