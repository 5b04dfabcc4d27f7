/* SPDX-License-Identifier: MIT */
/* Checks each value of an entry and stores it in its field. Internal to src/inventory. */
#ifndef HW_INVENTORY_VALUE_H
#define HW_INVENTORY_VALUE_H

#include "inventory/entry.h"

#define HW_SHOWN_MAX 64

/* Writes a value for an error message: shortened, and with escapes. Returns `shown`. */
const char *hw_inventory_show(const char *text, size_t len, char shown[HW_SHOWN_MAX]);

/*
 * Set a field of the entry. White space around the text is removed. If nothing is left, the field becomes empty.
 * `column`: the name for the error message. Return 0, or -EINVAL with `*error`.
 */
int hw_entry_set_text(struct hw_expected_entry *e, enum hw_column column, const char *text, size_t len,
                      struct hw_entry_error *error);
int hw_entry_set_timeout(struct hw_expected_entry *e, const char *text, size_t len, struct hw_entry_error *error);
int hw_entry_set_timeout_ms(struct hw_expected_entry *e, int64_t ms, struct hw_entry_error *error);
int hw_entry_add_parent(struct hw_expected_entry *e, const char *text, size_t len, struct hw_entry_error *error);
/* Sets or replaces a label whose name is valid; an empty value removes it. */
int hw_entry_set_label(struct hw_expected_entry *e, const char *name, const char *text, size_t len,
                       struct hw_entry_error *error);

/* The text without the white space around it. */
void hw_inventory_trim(const char **text, size_t *len);

#endif
