/* SPDX-License-Identifier: MIT */
/* What inputs cause, kept in its order until it is pulled out with hw_monitor_next(). Private to the core. */
#ifndef HW_OUT_H
#define HW_OUT_H

#include <stdint.h>

#include "monitor_priv.h"

/* Copies `out`. There is room: whoever drives the monitor drains it after each input. */
void hw_monitor_emit(struct hw_monitor *m, const struct hw_out *out);
/* ... of a kind that says no more than which device it is about. Of another node's device no refresh comes out, and a
 * status that is owed is noted. */
void hw_monitor_emit_device(struct hw_monitor *m, enum hw_out_kind kind, uint32_t i);

#endif
