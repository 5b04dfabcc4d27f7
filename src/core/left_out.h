/* SPDX-License-Identifier: MIT */
/*
 * Left-out devices: devices of the store or of other nodes that have no record here, because the table or the memory
 * was full. Nobody watches such a device on this node, so the node must not own its partition while another node has
 * room, and the device counts as unjudged. In a cluster, devices whose heartbeats were refused count too: another node
 * may have room for them.
 *
 * A left-out device is known by a hash of its id. At most HW_LEFT_OUT_MAX are remembered; of further ones only the
 * partition is. They are read again when there is room (hw_monitor_left_out_fits()).
 *
 * Cost: a device with a record costs one comparison, when the record is made. Private to the core.
 */
#ifndef HW_LEFT_OUT_H
#define HW_LEFT_OUT_H

#include "monitor_priv.h"

#define HW_LEFT_OUT_MAX 65536 /* 1.5 MiB */

/* Notes a device without a record. `state`: PROVISIONAL if only a heartbeat shows that it exists. `group` < 0: its
 * group is not known; the first group counts. */
void hw_left_out_note(struct hw_monitor *m, int group, const char *id, size_t len, enum hw_state state);
/* Whether the store has the device, which is left out. Its stored record is read before its messages count: otherwise
 * it would be a new device. */
bool hw_left_out_is_stored(const struct hw_monitor *m, const char *id, size_t len);
/* The device has a record, or was forgotten. */
void hw_left_out_remove(struct hw_monitor *m, const char *id, size_t len);
/* Adds the online ones of this node's partitions to the running count of unjudged devices. */
void hw_left_out_count(struct hw_monitor *m);

#endif
