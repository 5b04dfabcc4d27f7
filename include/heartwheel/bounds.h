/* SPDX-License-Identifier: MIT */
/*
 * Bounds of values that are read from Redis. Other programs may write there, so every time, seq, text and JSON object
 * is checked here before its use. A time or a seq lies at most a day ahead of the clock. A text is valid UTF-8 and fits
 * its buffer. JSON is short and shallow.
 *
 * Cost: linear in the text.
 */
#ifndef HEARTWHEEL_BOUNDS_H
#define HEARTWHEEL_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_BOUNDS_AHEAD_MS  INT64_C(86400000) /* transition.lua has the same bound */
#define HW_BOUNDS_JSON_MAX  16384             /* bytes of a JSON object in Redis */
#define HW_BOUNDS_DEPTH_MAX 8                 /* maximum nesting of its arrays and objects */

/* Whether a wall-clock time in ms is from 0 to a day after now_ms. */
static inline bool hw_bounds_time(int64_t ms, int64_t now_ms)
{
	return ms >= 0 && ms - HW_BOUNDS_AHEAD_MS <= now_ms;
}

/* Whether a seq is from 1 to a day after now_ms. A seq is the wall clock in ms, or the device's previous seq + 1. */
static inline bool hw_bounds_seq(uint64_t seq, int64_t now_ms)
{
	return seq > 0 && seq <= INT64_MAX && hw_bounds_time((int64_t)seq, now_ms);
}

/* Copies the text, with a NUL, into cap > 0 bytes. Each invalid UTF-8 byte and each NUL becomes '?'. The copy ends
 * before the first character that does not fit. Returns false if the copy differs. */
bool hw_bounds_text(char *to, size_t cap, const char *from, size_t len);

/* Whether the text is no longer and no deeper nested than JSON in Redis may be. The text need not be JSON. */
bool hw_bounds_json(const char *text, size_t len);

#endif
