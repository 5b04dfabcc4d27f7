/* SPDX-License-Identifier: MIT */
/*
 * Rows that several reports read: outages that are over, and gaps of the event stream. An outage that lasts is in its
 * device's row (state, since_ms). Both are read within the caller's transaction; both return 0, or -EIO if SQL failed.
 */
#ifndef HW_HISTORY_OUTAGES_H
#define HW_HISTORY_OUTAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "history/sql.h"

struct hw_outage {
	int64_t dev, from_ms, to_ms;
	bool gone; /* no outage: the device was forgotten */
};

struct hw_outages_ops {
	bool (*wants)(const void *arg, int64_t dev); /* NULL: all. Before a query for this device alone */
	void (*take)(void *arg, const struct hw_outage *o);
	void *arg;
};

/*
 * Calls ops->take with each outage that is over and touches [from_ms, to_ms), in any order; `device`: of this id alone,
 * "": of all. ops->take may also get outages that ended earlier, and outages of devices that ops->wants refuses.
 *
 * Cost: a row for each outage that began in the time; a query for each device that was down in the month of `from_ms`.
 */
int hw_outages_read(struct hw_sql *sql, const char *device, int64_t from_ms, int64_t to_ms,
                    const struct hw_outages_ops *ops);

/* Of a gap: the times of the entries around it, and how many entries were lost. */
typedef void hw_gap_taker(void *arg, int64_t from_ms, int64_t to_ms, int64_t lost);

/* Calls `take` with each gap of device:events that touches [from_ms, to_ms). */
int hw_gaps_read(struct hw_sql *sql, int64_t from_ms, int64_t to_ms, hw_gap_taker *take, void *arg);

#endif
