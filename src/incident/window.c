/* SPDX-License-Identifier: MIT */
#include "incident/window.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define DAY_MINUTES 1440

void hw_window_libc(int64_t wall_ms, bool utc, struct tm *out)
{
	time_t s = (time_t)(wall_ms / 1000);
	if ((utc ? gmtime_r(&s, out) : localtime_r(&s, out)) == NULL)
		*out = (struct tm){0};
}

static int read_days(const char *text, size_t len, uint8_t *out)
{
	static const char *const names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
	*out = 0;
	if (len == 1 && *text == '*') {
		*out = 0x7f;
		return 0;
	}
	for (const char *end = text + len; text <= end; text += 4) {
		size_t day = 0;
		while (day < 7 && (end - text < 3 || strncasecmp(text, names[day], 3) != 0))
			day++;
		if (day == 7 || (text + 3 != end && text[3] != ','))
			return -EINVAL;
		*out |= (uint8_t)(1U << day);
		if (text + 3 == end)
			return 0;
	}
	return -EINVAL;
}

/* Reads "HH:MM", 24:00 included. */
static int read_minute(const char *t, uint16_t *out)
{
	for (int k = 0; k < 5; k++)
		if (k == 2 ? t[k] != ':' : t[k] < '0' || t[k] > '9')
			return -EINVAL;
	int hour = (t[0] - '0') * 10 + t[1] - '0', minute = (t[3] - '0') * 10 + t[4] - '0';
	if (minute > 59 || hour * 60 + minute > DAY_MINUTES)
		return -EINVAL;
	*out = (uint16_t)(hour * 60 + minute);
	return 0;
}

int hw_window_parse(const char *text, struct hw_window *out)
{
	size_t days = strcspn(text, " ");
	const char *times = text + days + strspn(text + days, " ");
	struct hw_window w;
	if (read_days(text, days, &w.days) != 0 || strlen(times) != 11 || times[5] != '-' ||
	    read_minute(times, &w.from) != 0 || read_minute(times + 6, &w.to) != 0 || w.from == DAY_MINUTES)
		return -EINVAL;
	*out = w;
	return 0;
}

static bool is_on(const struct hw_window *w, int day)
{
	return w->days >> ((day + 7) % 7) & 1;
}

static int minute_of(const struct tm *reads)
{
	return reads->tm_hour * 60 + reads->tm_min;
}

bool hw_window_is_in_force(const struct hw_window *w, const struct tm *reads)
{
	int minute = minute_of(reads);
	if (w->from < w->to)
		return is_on(w, reads->tm_wday) && minute >= w->from && minute < w->to;
	return (is_on(w, reads->tm_wday) && minute >= w->from) || (is_on(w, reads->tm_wday - 1) && minute < w->to);
}

int64_t hw_window_age_ms(const struct hw_window *w, const struct tm *reads)
{
	int minutes = minute_of(reads) - w->from;
	if (minutes < 0)
		minutes += DAY_MINUTES;
	return ((int64_t)minutes * 60 + reads->tm_sec) * 1000;
}
