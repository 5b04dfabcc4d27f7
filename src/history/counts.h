/* SPDX-License-Identifier: MIT */
/*
 * How many devices were online and offline at equally spaced times. A count is unknown in three cases: no monitor saw
 * the fleet at that time; entries around that time are missing; the database does not reach that time yet.
 *
 * Cost: one row for each device, and the cost of hw_outages_read(), whatever the number of counts.
 */
#ifndef HW_HISTORY_COUNTS_H
#define HW_HISTORY_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/report.h"
#include "history/sql.h"

struct hw_count {
	int64_t time_ms, online, offline;
	bool known; /* false: both counts are 0 */
};

struct hw_counts {
	struct hw_count *at; /* owned */
	size_t n;
};

/*
 * Counts all devices at asked->since_ms, and each asked->step_ms later, up to asked->until_ms. `as_of_ms`: the time up
 * to which the database is complete. Returns 0, -ENOMEM, or -EIO if SQL failed. hw_counts_fini() must be called in any
 * case.
 */
int hw_counts_read(struct hw_sql *sql, const struct hw_report_asked *asked, int64_t as_of_ms, struct hw_counts *out);
void hw_counts_fini(struct hw_counts *c);

#endif
