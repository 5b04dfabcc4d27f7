/* SPDX-License-Identifier: MIT */
/* Reads from table `sight` the times in which at least one monitor was not blind. */
#ifndef HW_HISTORY_SEEN_H
#define HW_HISTORY_SEEN_H

#include <stdint.h>

#include "history/spans.h"
#include "history/sql.h"

/*
 * Adds to `seen`, in order, the parts of [since, until) in which at least one monitor saw the fleet. *sees_until (may
 * be NULL): the end of the newest time in which a monitor saw the fleet; 0: there is none. Returns 0, -ENOMEM, or -EIO
 * if SQL failed.
 */
int hw_seen_read(struct hw_sql *sql, int64_t since_ms, int64_t until_ms, struct hw_spans *seen, int64_t *sees_until);

#endif
