/* SPDX-License-Identifier: MIT */
/*
 * For how long devices were up and down. A device is known from its first transition until it is forgotten. Only time
 * in which a monitor saw the fleet counts as up or down.
 *
 * - known: the part of the window in which the device was known
 * - seen: the part of `known` in which a monitor saw the fleet
 * - down: the part of `seen` between an offline transition and the next online transition
 * - planned: the part of `down` that a planned silence covered. The part under a silence that still lasts is added when
 *   that silence or the outage ends
 *
 * Uptime is (seen - down) / seen. The share of time that was seen is seen / known. The mean time between failures is
 * (seen - down) / outages. The mean time to repair is down / outages. An outage counts in the window in which it
 * begins.
 *
 * Cost: one row for each device. A whole month adds one row for each device that was down; any other window adds one
 * row for each outage. For each unseen span of a whole month, the outages in that span are also read.
 */
#ifndef HW_HISTORY_UPTIME_H
#define HW_HISTORY_UPTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/sql.h"

struct hw_uptime_window {
	int64_t since_ms, until_ms;
	bool month;                 /* the window is a month, or the part of the present month up to now */
	const char *device, *group; /* "": all devices, all groups */
};

struct hw_uptime {
	int64_t dev;
	int64_t from_ms, to_ms; /* when the device was known, within the window */
	int64_t known_ms, seen_ms, down_ms, planned_ms, outages;
};

struct hw_uptimes {
	struct hw_uptime *at; /* sorted by dev; owned */
	size_t n;
	struct hw_uptime all; /* sums */
	int64_t gaps, lost;   /* gaps of the events in the window, and transitions lost in them; the sums do not
	                       * include these */
};

/* Reads the times of all devices, or of one. Returns 0, -ENOMEM, or -EIO if SQL failed. hw_uptimes_fini() must be
 * called in any case. */
int hw_uptimes_read(struct hw_sql *sql, const struct hw_uptime_window *w, struct hw_uptimes *out);
void hw_uptimes_fini(struct hw_uptimes *u);

#endif
