/* SPDX-License-Identifier: MIT */
/* The labels of a device: those of its group and those of its inventory entry, which take precedence. Pure. */
#ifndef HW_INVENTORY_LABELS_H
#define HW_INVENTORY_LABELS_H

#include "heartwheel/monitor.h"
#include "inventory/entry.h"

struct hw_labels {
	unsigned n;
	struct hw_label at[HW_LABELS_MAX + HW_GROUP_LABELS_MAX]; /* sorted by name */
};

/*
 * Finds all labels of an id. `entry`: its entry, or NULL. An id that is no device has the labels of the group in which
 * it is expected. Cost: without labels a look-up of the id at most; otherwise also a copy of each label.
 */
void hw_labels_find(const struct hw_monitor *m, struct hw_id id, const struct hw_expected_entry *entry,
                    struct hw_labels *out);

/* Whether the group of an id has labels. */
bool hw_labels_of_group(const struct hw_monitor *m, struct hw_id id);

/* The value of a label; NULL: there is none. */
const char *hw_labels_value(const struct hw_labels *l, const char *name);

/* Writes the labels as a JSON object, with a NUL. Returns its length. `cap` is at least HW_ENTRY_JSON_MAX. */
size_t hw_labels_print(const struct hw_labels *l, char *buf, size_t cap);

#endif
