/* SPDX-License-Identifier: MIT */
/* The loop, a turn at a time: see turn.c. */
#ifndef HW_TURN_H
#define HW_TURN_H

#include "context.h"

/* Runs the loop until a signal stops it. Returns the exit status. */
int hw_app_run(struct hw_app *a);
/* The loop's: what a turn may spend, and what it has spent. */
void hw_app_turn_begins(void *arg);
void hw_app_turned(void *arg, double cpu_s);
/* Called last by every callback of the loop that changed anything: pulls, pumps, plans. */
void hw_app_turn(struct hw_app *a);
/*
 * Pulls what the core has to say, and hands it on; for that it may look at `budget` devices, with 0 it says what it was
 * caused to say by what was put in. Returns what is left of the budget.
 */
unsigned hw_app_drain(struct hw_app *a, struct hw_now now, unsigned budget);

#endif
