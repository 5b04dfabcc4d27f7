/* SPDX-License-Identifier: MIT */
/*
 * The gate: what happens to a verdict on a device that another node decides for. The device's state is that of the
 * event stream. This node's verdict is only noted in the record (HW_FLAG_SILENT, HW_FLAG_HEARD), without any output.
 * The note is applied when this node takes the device over (follow.h).
 *
 * Cost: a comparison per change of state and per refresh if this node decides for all partitions, as a single node
 * does. Otherwise also the partition of the id. A heartbeat of an online device costs nothing. Private to the core.
 */
#ifndef HW_GATE_H
#define HW_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"
#include "verdict.h"

/* Notes a verdict that would change a device's state. If another node made the device offline, a heartbeat that was
 * under way for a timeout may be older than that, and is not noted. */
void hw_gate_note(struct hw_monitor *m, struct hw_now now, uint32_t i, enum hw_act act);
/* Removes the note that a device was heard although another node made it offline. */
void hw_gate_unhear(struct hw_device *d, struct hw_now now);

#endif
