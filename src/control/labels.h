/* SPDX-License-Identifier: MIT */
/* What the inventory says about a device, in answers and in the filters of lists. Internal to src/control. */
#ifndef HW_CONTROL_LABELS_H
#define HW_CONTROL_LABELS_H

#include <stdbool.h>
#include <stddef.h>

#include "heartwheel/registry.h"
#include "inventory/entry.h"

struct hw_control;
struct hw_json;

/* Other letters than those of ASCII stay as they are. */
static inline char hw_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}
/* Whether the text contains `needle`, ignoring case. `needle` is in lower case, as by hw_lower(). */
bool hw_contains_lower(const char *text, size_t len, const char *needle, size_t needle_len);

/* Writes the members `name`, `labels` and `note`: what the device's entry has, and the labels of its group. */
void hw_write_labels(struct hw_json *j, const struct hw_control *c, struct hw_id id);

/* The filters `search` and `label` of a list. `search`: a text that the name, the note or the value of a label must
 * contain. `label`: a label that must match. All zero: no filter. */
struct hw_label_filter {
	char search[HW_ID_MAX + 1]; /* lower case; "": any */
	char quoted[6 * HW_ID_MAX + 3];
	size_t quoted_len;                                              /* the search as it is in JSON */
	char name[HW_LABEL_NAME_MAX + 1], glob[HW_LABEL_VALUE_MAX + 1]; /* "": any */
};
void hw_label_filter_search(struct hw_label_filter *f, const char *lower);
/* Parses NAME=GLOB. Returns 0 or -EINVAL. */
int hw_label_filter_label(struct hw_label_filter *f, const char *text);

/* Whether the device's entry or the labels of its group contain the text, and whether the device has the label. Cost:
 * a look-up and a scan of the entry. The entry is parsed only if the scan finds the text, if the filter has a label, or
 * if the group has labels. */
bool hw_label_filter_contains(const struct hw_label_filter *f, const struct hw_control *c, struct hw_id id);
bool hw_label_filter_has(const struct hw_label_filter *f, const struct hw_control *c, struct hw_id id);

#endif
