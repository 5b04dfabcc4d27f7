/* SPDX-License-Identifier: MIT */
/*
 * The gate: handles a verdict on a device for which another node is authoritative. The device's state is that in the
 * event stream. This node only stores its own verdict in the record (HW_FLAG_SILENT, HW_FLAG_HEARD), without any
 * output. The stored verdict is applied when this node takes the device over (follow.h).
 *
 * Cost: one comparison for each change of state and for each refresh if this node decides for all partitions, as a
 * single node does. Otherwise also the calculation of the device's partition. A heartbeat of an online device costs
 * nothing. Private to the core.
 */
#ifndef HW_GATE_H
#define HW_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"
#include "verdict.h"

/* Stores this node's verdict on a device whose state another node decides. The verdict online is not stored if its
 * heartbeat may be older than the device's offline state (may_be_old() in gate.c). */
void hw_gate_note(struct hw_monitor *m, struct hw_now now, uint32_t i, enum hw_act act);
/* Removes the stored verdict that a device was heard after another node had made it offline. */
void hw_gate_clear_heard(struct hw_device *d, struct hw_now now);

#endif
