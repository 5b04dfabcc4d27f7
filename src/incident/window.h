/* SPDX-License-Identifier: MIT */
/*
 * The planned windows of a [silence] section: `Sun,Wed 02:00-04:00`, `* 22:00-06:00`. A window is in force while the
 * clock of its zone shows a time in it. So when the clock is set, an hour that the clock skips is not in force, and an
 * hour that it repeats is in force twice. A window over midnight belongs to the day on which it begins. A window whose
 * begin equals its end lasts for a whole day.
 */
#ifndef HW_INCIDENT_WINDOW_H
#define HW_INCIDENT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct hw_window {
	uint8_t days;      /* bit 0: Sunday */
	uint16_t from, to; /* minutes of the day; `to` is at most 1440 */
};

/* Writes what the clock of a zone reads at a wall time. */
typedef void hw_window_clock(int64_t wall_ms, bool utc, struct tm *out);
/* The clock of libc: localtime_r() or gmtime_r(). */
void hw_window_libc(int64_t wall_ms, bool utc, struct tm *out);

/* Returns 0 or -EINVAL. */
int hw_window_parse(const char *text, struct hw_window *out);
bool hw_window_is_in_force(const struct hw_window *w, const struct tm *reads);
/* Returns for how many ms the clock has shown a time in this window. The window must be in force, and the result is
 * right only if the clock was not set meanwhile. */
int64_t hw_window_age_ms(const struct hw_window *w, const struct tm *reads);

#endif
