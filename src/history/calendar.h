/* SPDX-License-Identifier: MIT */
/* Months of UTC, as the number YYYYMM, and their bounds in milliseconds. Pure. */
#ifndef HW_HISTORY_CALENDAR_H
#define HW_HISTORY_CALENDAR_H

#include <stdint.h>

/* The month that contains the time. */
int hw_month_of(int64_t ms);
/* Returns the first millisecond of the month. A month ends where the next one begins. */
int64_t hw_month_begin(int month);
int hw_month_next(int month);
/* The first millisecond of the day. */
#define HW_DAY_MS INT64_C(86400000)
static inline int64_t hw_day_begin(int64_t ms)
{
	return ms - ms % HW_DAY_MS;
}
/* "2026-11" -> 202611, or -1. */
int hw_month_parse(const char *text);

#endif
