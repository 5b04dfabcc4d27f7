/* SPDX-License-Identifier: MIT */
/* Writes what heartwheelctl discover has found, as sections of monitor.conf. */
#ifndef HW_CTL_DISCOVER_WRITE_H
#define HW_CTL_DISCOVER_WRITE_H

#include <stdio.h>

#include "ctl/discover_find.h"
#include "ctl/discover_listen.h"

/* Writes the sections. Text from the broker is escaped, so that no topic ends a comment. `wall_ms`: now. */
void hw_discover_write(FILE *out, const struct hw_found *found, const struct hw_topics *topics,
                       const struct hw_listen *how, int64_t wall_ms);

/* Writes the text to a new file, which gets its name only when it is complete. An existing file is replaced only
 * with `force`. Returns 0 or -errno. */
int hw_discover_save(const char *path, bool force, const char *text, size_t len);

#endif
