/* SPDX-License-Identifier: MIT */
/* See wake.h. */
#include "wake.h"

#include <event2/event.h>

#include "wall_clock.h"

static void was_suspended(struct hw_app *a, struct hw_now now, const struct hw_pace_woke *w)
{
	hw_log(a->log, HW_LOG_WARNING, "the machine was suspended for %.1f s", (double)w->slept_ns / 1e9);
	hw_monitor_suspended(a->monitor, now, w->since);
	hw_app_wall_clock_tick(a); /* the monotonic clock stood still */
}

static void has_stalled(struct hw_app *a, struct hw_now now, const struct hw_pace_woke *w)
{
	hw_monitor_stall(a->monitor, now, w->planned);
	for (unsigned i = 0; i < a->n_readers && a->reader[i].reader; i++) {
		a->reader[i].behind = a->reader[i].stalled = a->reader[i].unread = true;
		hw_reader_drain(a->reader[i].reader);
	}
}

/* A machine that slept has BOOTTIME run ahead of MONOTONIC. */
struct hw_now hw_app_woke(struct hw_app *a)
{
	struct hw_now now = hw_app_now();
	a->wakeups++;
	a->turn_began = now.mono;
	struct hw_pace_woke w = hw_pace_woke(&a->pace, now.mono, hw_app_booted_ns() - now.mono.ns,
	                                     a->start->stall_after_ms * HW_NS_PER_MS);
	if (w.suspended)
		was_suspended(a, now, &w);
	if (w.stalled)
		has_stalled(a, now, &w);
	return now;
}

void hw_app_soon(struct hw_app *a)
{
	event_active(a->due, EV_TIMEOUT, 0);
}
