/* SPDX-License-Identifier: MIT */
/* See calendar.h. The algorithm is from H. Hinnant, "chrono-compatible low-level date algorithms": years begin in
 * March, an era is 400 years. */
#include "history/calendar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)

static int64_t days_before(int64_t year, int month)
{
	year -= month <= 2;
	int64_t era = (year >= 0 ? year : year - 399) / 400;
	int64_t of_era = year - era * 400;
	int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int hw_month_of(int64_t ms)
{
	int64_t z = (ms >= 0 ? ms : ms - (DAY_MS - 1)) / DAY_MS + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t day = z - era * 146097;
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t of_year = day - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153;
	month += month < 10 ? 3 : -9;
	return (int)((year + era * 400 + (month <= 2)) * 100 + month);
}

int64_t hw_month_begin(int month)
{
	return days_before(month / 100, month % 100) * DAY_MS;
}

int hw_month_next(int month)
{
	return month % 100 == 12 ? month + 89 : month + 1;
}

int hw_month_parse(const char *text)
{
	if (strlen(text) != 7 || strspn(text, "0123456789") != 4 || text[4] != '-' ||
	    strspn(text + 5, "0123456789") != 2)
		return -1;
	int year = atoi(text), month = atoi(text + 5);
	return year >= 1970 && month >= 1 && month <= 12 ? year * 100 + month : -1;
}
