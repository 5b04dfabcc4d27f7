/* SPDX-License-Identifier: MIT */
/*
 * A loop around the monitor: how long the loop may sleep, and what the loop must do if it wakes late. If the loop wakes
 * much later than planned, no input was read meanwhile (a stall). If the clock that also counts during suspend has
 * advanced further than the monotonic clock, the machine was suspended. At the start of each turn the loop calls
 *
 *     struct hw_pace_woke w = hw_pace_woke(&pace, now, ahead_ns, stall_after_ns);
 *     if (w.suspended) hw_monitor_suspended(m, now, w.since);      before any device is judged
 *     if (w.stalled) hw_monitor_stall(m, now, w.planned);          then it drains every reader
 *
 * and at the end, when the monitor is drained,
 *
 *     wait_ns = hw_pace_wait_ns(m, now);                            or less
 *     hw_pace_sleeps(&pace, now, wait_ns);
 *
 * As pure as the rest of the core. Cost: O(1), and that of hw_monitor_due().
 */
#ifndef HEARTWHEEL_PACE_H
#define HEARTWHEEL_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/monitor.h"
#include "heartwheel/time.h"

/* Owned by the caller; all zero before the first wake-up. */
struct hw_pace {
	struct hw_mono planned;  /* latest time at which the loop should wake; 0: unknown */
	struct hw_mono compared; /* time of the last comparison of the clocks; 0: never */
	int64_t ahead_ns;        /* lead of the clock that includes suspend, at that time */
};

struct hw_pace_woke {
	bool suspended, stalled;
	struct hw_mono since;   /* the suspend came after this */
	struct hw_mono planned; /* the stall began at this */
	int64_t slept_ns;       /* length of the suspend */
};

struct hw_pace_woke hw_pace_woke(struct hw_pace *p, struct hw_mono now, int64_t ahead_ns, int64_t stall_after_ns);

/* Returns how long the loop may sleep: at most a minute; 0 if the monitor has work now. */
int64_t hw_pace_wait_ns(const struct hw_monitor *m, struct hw_now now);
#define HW_PACE_WAIT_MAX_NS (60 * HW_NS_PER_S)

/* Called before the loop sleeps for at most `wait_ns`. */
void hw_pace_sleeps(struct hw_pace *p, struct hw_mono now, int64_t wait_ns);

#endif
