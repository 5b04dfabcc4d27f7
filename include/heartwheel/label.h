/* SPDX-License-Identifier: MIT */
/* Labels: names with values that a device has from its group, or from the inventory. */
#ifndef HEARTWHEEL_LABEL_H
#define HEARTWHEEL_LABEL_H

#include "heartwheel/group.h"
#include "heartwheel/registry.h"

/* In bytes. */
#define HW_LABEL_NAME_MAX  32
#define HW_LABEL_VALUE_MAX 128

/* Whether the name can be that of a label: [a-z_][a-z0-9_]*, at most HW_LABEL_NAME_MAX bytes. */
bool hw_label_name_valid(const char *name, size_t len);

/*
 * Writes the value of the group's label `k` for a device, with a NUL. `captured`: see hw_monitor_captured(). Returns
 * its length; 0: the device does not have the label, because a capture is unknown, or the value does not fit.
 */
size_t hw_group_label_value(const struct hw_group *g, unsigned k, struct hw_id id, struct hw_id captured,
                            char value[HW_LABEL_VALUE_MAX + 1]);

#endif
