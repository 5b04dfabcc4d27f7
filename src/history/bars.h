/* SPDX-License-Identifier: MIT */
/*
 * A device's time in bars of equal length: for how long the device was known, seen, down and planned in each (terms of
 * uptime.h). The last bar ends with the window. Cost: sightings and outages are read once, whatever the number of bars.
 */
#ifndef HW_HISTORY_BARS_H
#define HW_HISTORY_BARS_H

#include <stddef.h>
#include <stdint.h>

#include "history/report.h"
#include "history/sql.h"

struct hw_bar {
	int64_t from_ms, to_ms, known_ms, seen_ms, down_ms, planned_ms, outages;
};

struct hw_bars {
	struct hw_bar *at; /* owned */
	size_t n;
};

/*
 * Reads the bars for asked->device, [since, until) and step_ms. A monitor that sees the fleet writes a sighting every
 * five minutes. With asked->live, the time since a monitor's last sighting also counts as seen, if that sighting is
 * recent enough. Returns 0, -ENOENT (no such device), -ENOMEM, or -EIO if SQL failed. hw_bars_fini() must be called in
 * any case.
 */
int hw_bars_read(struct hw_sql *sql, const struct hw_report_asked *asked, struct hw_bars *out);
void hw_bars_fini(struct hw_bars *b);

#endif
