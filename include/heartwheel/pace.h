/* SPDX-License-Identifier: MIT */
/*
 * A loop around the monitor: how long it may sleep, and what it finds out when it wakes late. The loop says when it
 * should be back; if it is back later by much, nobody has read what came meanwhile (a stall), and if the machine's
 * clock that runs on while it sleeps is ahead, it was suspended. Whoever runs a loop calls first, in whatever it is
 * woken by,
 *
 *     struct hw_pace_woke w = hw_pace_woke(&pace, now, ahead_ns, stall_after_ns);
 *     if (w.suspended) hw_monitor_suspended(m, now, w.since);      before anybody is judged
 *     if (w.stalled) hw_monitor_stall(m, now, w.planned);          and then every reader is read empty
 *
 * and last, when the monitor was drained,
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

/* The caller's; all zero before the first wake-up. */
struct hw_pace {
	struct hw_mono planned;  /* when the loop should be back at the latest; 0: not known */
	struct hw_mono compared; /* when the clocks were compared last; 0: never */
	int64_t ahead_ns;        /* by how much the clock that runs on in a suspended machine was ahead then */
};

struct hw_pace_woke {
	bool suspended, stalled;
	struct hw_mono since;   /* suspended after this */
	struct hw_mono planned; /* stalled since then */
	int64_t slept_ns;       /* how long it was suspended */
};

struct hw_pace_woke hw_pace_woke(struct hw_pace *p, struct hw_mono now, int64_t ahead_ns, int64_t stall_after_ns);

/* How long the monitor can do without being woken: at most a minute, 0 if it has work now. */
int64_t hw_pace_wait_ns(const struct hw_monitor *m, struct hw_now now);
#define HW_PACE_WAIT_MAX_NS (60 * HW_NS_PER_S)

/* The loop sleeps for at most so long. */
void hw_pace_sleeps(struct hw_pace *p, struct hw_mono now, int64_t wait_ns);

#endif
