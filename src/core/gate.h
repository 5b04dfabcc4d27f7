/* SPDX-License-Identifier: MIT */
/*
 * The gate: what becomes of a verdict on a device that another node decides about. Its state is what the event stream
 * says; what this node would have decided is noted in the record (HW_FLAG_SILENT, HW_FLAG_HEARD), and nothing of it
 * comes out. What is noted takes its way once the device is this node's to decide about (follow.h).
 *
 * Cost: where this node decides about all, as a single one does, a comparison at each change of a state and each
 * refresh; else also the partition of the id. A heartbeat of a device that is online costs nothing. Private to the
 * core.
 */
#ifndef HW_GATE_H
#define HW_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor_priv.h"
#include "verdict.h"

/* Notes a verdict that would change a device's state. A heartbeat of one that is gone by another node's word may be
 * from before that, if it waited on its way here for as long as a timeout: it is not noted. */
void hw_gate_note(struct hw_monitor *m, struct hw_now now, uint32_t i, enum hw_act act);
/* A device that was heard although it is offline by another node's word counts as not heard. */
void hw_gate_unhear(struct hw_device *d, struct hw_now now);

#endif
