/* SPDX-License-Identifier: MIT */
/*
 * A device's time in bars of one length: of each how long it was known, seen and down, by the words of uptime.h. The
 * last bar ends with the window. Cost: what was seen, and the device's outages, are read once, whatever the bars.
 */
#ifndef HW_HISTORY_BARS_H
#define HW_HISTORY_BARS_H

#include <stddef.h>
#include <stdint.h>

#include "history/report.h"
#include "history/sql.h"

struct hw_bar {
	int64_t from_ms, to_ms, known_ms, seen_ms, down_ms, outages;
};

struct hw_bars {
	struct hw_bar *at; /* owned */
	size_t n;
};

/*
 * Of asked->device, [since, until), step_ms. A monitor tells each five minutes that it sees: with asked->live, since
 * one does, what lies behind its last word counts as seen, if that is not older. 0; -ENOENT: no such device; -ENOMEM;
 * or -EIO if SQL failed. hw_bars_fini() in any case.
 */
int hw_bars_read(struct hw_sql *sql, const struct hw_report_asked *asked, struct hw_bars *out);
void hw_bars_fini(struct hw_bars *b);

#endif
