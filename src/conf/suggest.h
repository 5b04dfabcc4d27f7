/* SPDX-License-Identifier: MIT */
/* Suggestions for an unknown key or section, taken from a table. Internal to src/conf. */
#ifndef HW_CONF_SUGGEST_H
#define HW_CONF_SUGGEST_H

#include <stddef.h>

#include "conf/table.h"

/* Write the error with a suggestion to `why`, for an unknown key of `section`, or for an unknown section. */
void hw_conf_unknown_key(const struct hw_conf_table *t, const char *section, const char *key, char *why, size_t cap);
void hw_conf_unknown_section(const struct hw_conf_table *t, const char *name, char *why, size_t cap);

/* Writes the names of the sections that have `key`, for a key before any section; "" if there are none. */
void hw_conf_sections_of(const struct hw_conf_table *t, const char *key, char *buf, size_t cap);

#endif
