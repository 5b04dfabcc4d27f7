/* SPDX-License-Identifier: MIT */
/*
 * Learned timeouts: how long a device may be silent, worked out from the gaps between its own heartbeats.
 *
 * The operator says how many mistakes a day are allowed: how often a device that works may be called offline. The
 * estimator keeps the largest gaps of two windows of time. Of these it takes the gap that is exceeded as often as
 * mistakes are allowed. docs/internals/learning.md has the method, what else was tried, and all figures.
 *
 * What holds:
 * - A gap of an online device is learned at once.
 * - A gap in which the device was called offline is an outage or a new habit. It is learned when a second gap like it
 *   follows (a third one, if it is over three timeouts long). So one outage is never learned.
 * - After such a gap the timeout is doubled until a usual gap comes. A device that sends half as often from now on is
 *   thus called offline only once.
 * - A gap that is two windows old is forgotten. A window is at most one day long, or 20 gaps if these take longer.
 * - If less than half a mistake a day is allowed, a habit is remembered longer: a gap that was learned after mistakes,
 *   at least twice, with a pause between.
 *
 * Cost: 24 bytes a device; no allocation; no floating point; a constant number of steps for each gap. Pure, private to
 * the core.
 */
#ifndef HW_LEARN_H
#define HW_LEARN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_LEARN_FIRST_GAPS     8  /* before so many gaps nothing is learned */
#define HW_LEARN_FIRST_TIMEOUTS 4  /* nor before they cover so many first timeouts */
#define HW_LEARN_COUNT_MAX      63 /* counts of gaps and mistakes stop here */

/* The gaps of one device. All zero: a new device. The fields are packed: learn.c. */
struct hw_gaps {
	uint64_t word[3];
};

/* The rules of a group for learning. hw_learn_rules_init() sets them; hw_learn_rules_first() sets two others. */
struct hw_learn_rules {
	int64_t timeout_min_ms, timeout_max_ms;
	int64_t timeout_first_ms; /* the timeout before the first estimate; hw_learn_rules_init() sets it to
	                             timeout_max_ms */
	int64_t followed_ms;      /* the gaps must cover this time before the first estimate; 0 after
	                           * hw_learn_rules_init() */
	int64_t unit_ms;          /* a 16th of a window */
	uint32_t allowed;         /* mistakes allowed in a window, in 1/65536 */
	unsigned rare; /* if less than one mistake is allowed in two windows: the time in which one is allowed, in units
	                  of learn.c; else 0 */
	unsigned habit_windows; /* for so many windows a habit is remembered */
	unsigned extra_step;    /* steps by which a mistake lengthens the timeout */
	unsigned extra_decay;   /* steps that each window takes back */
	unsigned medians;       /* the least timeout as a number of median gaps, in units of learn.c; 0: no such
	                         * limit */
	/* The present part of a window, and when that part began. They are kept, because a division for each gap would
	 * double the cost of a gap. */
	unsigned unit;
	int64_t unit_began_ms;
};

/*
 * Sets the rules. `mistakes` in each `per_ms` are allowed: 24 a day to 1 in ten years. A timeout is at least
 * `least_gaps` (1 .. 10) median gaps, and between `min_ms` and `max_ms`. All values must be within the bounds of
 * monitor.conf(5).
 */
void hw_learn_rules_init(struct hw_learn_rules *rules, int64_t min_ms, int64_t max_ms, unsigned mistakes,
                         int64_t per_ms, unsigned least_gaps);

/* Sets the timeout before the first estimate. The first estimate needs HW_LEARN_FIRST_GAPS gaps. A device often sends
 * many messages within a second, so these gaps must also cover HW_LEARN_FIRST_TIMEOUTS of these timeouts. A gap counts
 * for at most one timeout. */
void hw_learn_rules_first(struct hw_learn_rules *rules, int64_t timeout_ms);

/*
 * Learns a gap of `gap_ms` that ended at `now_ms` (wall clock; a step of the clock shortens or lengthens one window).
 * The device counts as offline in the gap if the gap is longer than the timeout that was in force. Returns the timeout
 * of the next gap in ms; before the first estimate, this is timeout_first_ms.
 */
int64_t hw_learn_gap(struct hw_gaps *gaps, struct hw_learn_rules *rules, int64_t now_ms, int64_t gap_ms);

/* Returns the timeout in ms; 0: there is no estimate yet. */
int64_t hw_learned_ms(const struct hw_gaps *gaps, const struct hw_learn_rules *rules);

/* The gaps as base64 of a version, the three words and the rules' unit_ms, little-endian, with a NUL. hw_learn_parse()
 * returns false for any other text, also one of another version. A text that ends with the words is older and names no
 * unit: `*unit_ms` is then 0. If `*unit_ms` is not that of the rules, the caller calls hw_learn_restart(). Any three
 * words are safe: a wrong text makes wrong timeouts, within their bounds. */
#define HW_LEARN_TEXT 41
void hw_learn_print(const struct hw_gaps *gaps, int64_t unit_ms, char text[HW_LEARN_TEXT]);
bool hw_learn_parse(struct hw_gaps *gaps, int64_t *unit_ms, const char *text, size_t len);

/* Returns a number that changes when the timeout before its limits changes. */
static inline uint64_t hw_learn_step(const struct hw_gaps *gaps)
{
	return (gaps->word[0] >> 48 & 0xfff) | (gaps->word[2] & 0xfff) << 12; /* TIMEOUT and BRIDGED of learn.c */
}

/* Begins a new window now, for rules with other windows than before. The gaps are kept. */
void hw_learn_restart(struct hw_gaps *gaps, struct hw_learn_rules *rules, int64_t now_ms);

/* Values for display. Times are in ms, rounded up by at most 1 %; 0: no gap was seen. */
unsigned hw_learn_seen(const struct hw_gaps *gaps);     /* number of gaps, up to HW_LEARN_COUNT_MAX */
unsigned hw_learn_mistakes(const struct hw_gaps *gaps); /* gaps longer than the timeout, up to HW_LEARN_COUNT_MAX */
int64_t hw_learn_median_ms(const struct hw_gaps *gaps);
int64_t hw_learn_largest_ms(const struct hw_gaps *gaps); /* of the last two windows */

#endif
