/* SPDX-License-Identifier: MIT */
/*
 * Rows that several reports read: outages that have ended, and gaps of the event stream. A current outage is in its
 * device's row (state, since_ms). Both functions run in the caller's transaction, and return 0, or -EIO if SQL failed.
 */
#ifndef HW_HISTORY_OUTAGES_H
#define HW_HISTORY_OUTAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "history/sql.h"

struct hw_outage {
	int64_t dev, from_ms, to_ms;
	bool gone; /* no outage: the device was forgotten in this time */
};

struct hw_outages_ops {
	bool (*wants)(const void *arg,
	              int64_t dev); /* returns false to skip the query for a device; NULL: all devices */
	void (*take)(void *arg, const struct hw_outage *o);
	void *arg;
};

/*
 * Calls ops->take for each ended outage that overlaps [from_ms, to_ms), in any order. `device`: only the outages of
 * this id; "": all. ops->take must also accept outages that ended before from_ms, and outages of devices for which
 * ops->wants returned false.
 *
 * Cost: one row for each outage that began in the window, and one query for each device that was down in the month of
 * `from_ms`.
 */
int hw_outages_read(struct hw_sql *sql, const char *device, int64_t from_ms, int64_t to_ms,
                    const struct hw_outages_ops *ops);

/* Calls ops->take for each planned part of an outage that overlaps the window, like hw_outages_read(). The parts do not
 * overlap each other. A current outage has only the parts whose silences have ended. Cost: the rows from the begin of
 * the day of `from_ms` on. */
int hw_planned_read(struct hw_sql *sql, const char *device, int64_t from_ms, int64_t to_ms,
                    const struct hw_outages_ops *ops);

/* Called with the times of the entries before and after a gap, and the number of lost entries. */
typedef void hw_gap_taker(void *arg, int64_t from_ms, int64_t to_ms, int64_t lost);

/* Calls `take` with each gap of device:events that overlaps or borders on [from_ms, to_ms). */
int hw_gaps_read(struct hw_sql *sql, int64_t from_ms, int64_t to_ms, hw_gap_taker *take, void *arg);

#endif
