/* SPDX-License-Identifier: MIT */
/* When a monitor saw, out of what the monitors have said of themselves (the table sight). */
#ifndef HW_HISTORY_SEEN_H
#define HW_HISTORY_SEEN_H

#include <stdint.h>

#include "history/spans.h"
#include "history/sql.h"

/*
 * Adds to `seen`, in order, what of [since, until) at least one of them saw. *sees_until, if it is not NULL: how far
 * the latest word goes, if it is that a monitor sees; else 0. 0; -ENOMEM; or -EIO if SQL failed.
 */
int hw_seen_read(struct hw_sql *sql, int64_t since_ms, int64_t until_ms, struct hw_spans *seen, int64_t *sees_until);

#endif
