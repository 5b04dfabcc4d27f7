/* SPDX-License-Identifier: MIT */
/* What the author of an unknown key or section may have meant, by a table. Internal to src/conf. */
#ifndef HW_CONF_SUGGEST_H
#define HW_CONF_SUGGEST_H

#include <stddef.h>

#include "conf/table.h"

/* Says of a key that `section` does not know what its author may have meant; of a section likewise. `why` is filled. */
void hw_conf_unknown_key(const struct hw_conf_table *t, const char *section, const char *key, char *why, size_t cap);
void hw_conf_unknown_section(const struct hw_conf_table *t, const char *name, char *why, size_t cap);

/* Writes where a key that stands before every section belongs; "" if nowhere. */
void hw_conf_sections_of(const struct hw_conf_table *t, const char *key, char *buf, size_t cap);

#endif
