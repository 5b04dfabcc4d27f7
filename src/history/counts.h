/* SPDX-License-Identifier: MIT */
/*
 * How many devices were online, and how many offline, at moments at equal distances. A moment is not known if no
 * monitor saw then, if entries of the stream are missing around it, or if the database has not read up to it.
 *
 * Cost: a row for each device, and what outages.h says of the outages; whatever the number of moments.
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
	bool known; /* else both counts are 0 */
};

struct hw_counts {
	struct hw_count *at; /* owned */
	size_t n;
};

/*
 * At asked->since_ms, and each asked->step_ms after it, before asked->until_ms; of all devices. `as_of_ms`: the
 * database has all up to then. 0; -ENOMEM; or -EIO if SQL failed. hw_counts_fini() in any case.
 */
int hw_counts_read(struct hw_sql *sql, const struct hw_report_asked *asked, int64_t as_of_ms, struct hw_counts *out);
void hw_counts_fini(struct hw_counts *c);

#endif
