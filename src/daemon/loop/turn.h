/* SPDX-License-Identifier: MIT */
/* The turns of the loop: see turn.c. */
#ifndef HW_TURN_H
#define HW_TURN_H

#include <event2/event.h>

#include "clock.h"
#include "daemon/context.h"
#include "http/metrics.h"

struct hw_app_turn_metrics {
	uint64_t wakeups;
	struct hw_histogram detection; /* from a device's deadline to its offline transition */
	struct hw_histogram turn, cpu; /* of a turn: the time, and the CPU time of the thread */
};

/* Sets a->turn. `on_due` is called when the core or a sink has work to do, with argument `a`. Returns 0 or -ENOMEM. */
int hw_app_turn_new(struct hw_app *a, event_callback_fn on_due);
void hw_app_turn_free(struct hw_app *a);

/* Runs the loop until a signal stops it. Returns the exit status. */
int hw_app_run(struct hw_app *a);
/* Callbacks of the loop. hw_app_turn_begins(): a turn begins, with new budgets. hw_app_turned(): a turn has
 * ended, which took this CPU time. */
void hw_app_turn_begins(void *arg);
void hw_app_turned(void *arg, double cpu_s);
/* Drains the core, pumps the sinks, and plans the next wake-up. Each callback of the loop that has changed anything
 * calls this last. */
void hw_app_turn(struct hw_app *a);
/* Takes the core's output and passes it on. The core may check `budget` devices; with 0 it returns only the results of
 * earlier input. Returns what is left of the budget. */
unsigned hw_app_drain(struct hw_app *a, struct hw_now now, unsigned budget);

/* Counts the wake-up, and detects whether the process stood still or was suspended. Each callback of the loop calls
 * this first. */
struct hw_now hw_app_woke(struct hw_app *a);
/*
 * Schedules one turn in the present pass of the loop, however often it is called. For callbacks that run many times in
 * a row. If work should continue only after the next poll for events, use struct hw_app_reader.unread, or
 * hw_app_turn(), which sets the timer to zero.
 */
void hw_app_schedule_turn(struct hw_app *a);

const struct hw_app_turn_metrics *hw_app_turn_metrics(const struct hw_app *a);
/* A device went offline, so long after its deadline. */
void hw_app_turn_detected(struct hw_app *a, int64_t delay_ns);

#endif
