/* SPDX-License-Identifier: MIT */
/* The queue of outputs that inputs cause. Outputs keep their order until hw_monitor_next() returns them. Private to the
 * core. */
#ifndef HW_OUT_H
#define HW_OUT_H

#include <stdint.h>

#include "monitor_priv.h"

/* Copies `out` into the queue. The queue always has room, because the driver drains it after each input. */
void hw_monitor_emit(struct hw_monitor *m, const struct hw_out *out);
/* Emits an output that only names a device. If another node owns the device, HW_OUT_REFRESH, HW_OUT_REFRESH_LIGHT
 * and HW_OUT_STATUS are not emitted; for HW_OUT_STATUS, the flag HW_FLAG_TOUCHED marks the status as pending. */
void hw_monitor_emit_device(struct hw_monitor *m, enum hw_out_kind kind, uint32_t i);

#endif
