/* SPDX-License-Identifier: MIT */
/*
 * heartwheel's kinds of time. Each is a type of its own, so that a mix does not compile.
 *
 *   hw_mono  an instant of the machine's monotonic clock, nanoseconds
 *   hw_seen  an instant of the seeing clock: monotonic time less all time spent blind, nanoseconds
 *   hw_tick  a position on the wheel: 1/31 s steps of the seeing clock
 *   wall time is an int64_t in milliseconds since 1970 whose name ends in wall_ms or _ms; the wheel never uses it
 *
 * The core never reads a clock: its caller passes a struct hw_now.
 */
#ifndef HEARTWHEEL_TIME_H
#define HEARTWHEEL_TIME_H

#include <stdint.h>

#define HW_NS_PER_S    INT64_C(1000000000)
#define HW_NS_PER_MS   INT64_C(1000000)
#define HW_TICKS_PER_S 31

struct hw_mono {
	int64_t ns;
};

struct hw_seen {
	int64_t ns;
};

struct hw_tick {
	uint64_t n;
};

/* One reading of both clocks, taken once per turn of the loop. */
struct hw_now {
	struct hw_mono mono;
	int64_t wall_ms;
};

static inline struct hw_mono hw_mono_add(struct hw_mono t, int64_t ns)
{
	return (struct hw_mono){t.ns + ns};
}

/* After every instant. */
#define HW_MONO_NEVER ((struct hw_mono){INT64_MAX})

static inline struct hw_mono hw_mono_sooner(struct hw_mono a, struct hw_mono b)
{
	return a.ns < b.ns ? a : b;
}

static inline struct hw_mono hw_mono_later(struct hw_mono a, struct hw_mono b)
{
	return a.ns > b.ns ? a : b;
}

static inline struct hw_seen hw_seen_add(struct hw_seen t, int64_t ns)
{
	return (struct hw_seen){t.ns + ns};
}

/* Returns the first tick that is not before `t`. A deadline is armed there, so that it never fires early. Instants
 * before 0 give 0. */
static inline struct hw_tick hw_tick_ceil(struct hw_seen t)
{
	if (t.ns <= 0)
		return (struct hw_tick){0};
	uint64_t sec = (uint64_t)(t.ns / HW_NS_PER_S), rem = (uint64_t)(t.ns % HW_NS_PER_S);
	return (struct hw_tick){sec * HW_TICKS_PER_S + (rem * HW_TICKS_PER_S + HW_NS_PER_S - 1) / HW_NS_PER_S};
}

/* Returns the last tick that is not after `t`. At `t` the wheel may turn up to this tick. */
static inline struct hw_tick hw_tick_floor(struct hw_seen t)
{
	if (t.ns <= 0)
		return (struct hw_tick){0};
	uint64_t sec = (uint64_t)(t.ns / HW_NS_PER_S), rem = (uint64_t)(t.ns % HW_NS_PER_S);
	return (struct hw_tick){sec * HW_TICKS_PER_S + rem * HW_TICKS_PER_S / HW_NS_PER_S};
}

/* Returns the first nanosecond of a tick; hw_tick_floor() of it gives the tick again. A tick after 292 years, beyond
 * the range of nanoseconds, gives INT64_MAX. */
static inline struct hw_seen hw_tick_start(struct hw_tick t)
{
	uint64_t sec = t.n / HW_TICKS_PER_S, rem = t.n % HW_TICKS_PER_S;
	uint64_t ns = (rem * HW_NS_PER_S + HW_TICKS_PER_S - 1) / HW_TICKS_PER_S;
	if (sec > (INT64_MAX - ns) / HW_NS_PER_S)
		return (struct hw_seen){INT64_MAX};
	return (struct hw_seen){(int64_t)(sec * HW_NS_PER_S + ns)};
}

#endif
