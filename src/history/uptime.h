/* SPDX-License-Identifier: MIT */
/*
 * How long devices were up and down, of what is known of them. A device is known from its first transition until it is
 * forgotten, and of that time only what a monitor saw counts: what nobody saw is neither up nor down.
 *
 *   known  what of the window the device was known for
 *   seen   what of that a monitor saw
 *   down   what of that lies between an offline transition and the next online one
 *
 * Uptime is (seen - down) / seen, the share of time seen is seen / known, the mean time between failures (seen - down)
 * / outages, to repair down / outages; an outage counts in the window in which it begins.
 *
 * Cost: a row a device; of a whole month a row a device that was down, and of any other window one an outage in it.
 * What nobody saw of a whole month costs a look at what was down then.
 */
#ifndef HW_HISTORY_UPTIME_H
#define HW_HISTORY_UPTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/sql.h"

struct hw_uptime_window {
	int64_t since_ms, until_ms;
	bool month;                 /* it begins with a month, and ends with it or now */
	const char *device, *group; /* "": all */
};

struct hw_uptime {
	int64_t dev;
	int64_t from_ms, to_ms; /* when the device was known, within the window */
	int64_t known_ms, seen_ms, down_ms, outages;
};

struct hw_uptimes {
	struct hw_uptime *at; /* by dev; owned */
	size_t n;
	struct hw_uptime all; /* sums */
	int64_t gaps, lost;   /* of the events, within the window; what they may hide is not in the sums */
};

/* 0; -ENOMEM; or -EIO if SQL failed. hw_uptimes_fini() in any case. */
int hw_uptimes_read(struct hw_sql *sql, const struct hw_uptime_window *w, struct hw_uptimes *out);
void hw_uptimes_fini(struct hw_uptimes *u);

#endif
