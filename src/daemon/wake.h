/* SPDX-License-Identifier: MIT */
/* The time, and what the loop is woken by. */
#ifndef HW_WAKE_H
#define HW_WAKE_H

#include "context.h"

struct hw_now hw_app_now(void);
/* The clock that runs on while the machine is suspended, in ns. */
int64_t hw_app_booted_ns(void);
/* Called first by every callback of the loop: counts the wake-up, and notices a stall and a suspended machine. */
struct hw_now hw_app_woke(struct hw_app *a);
/*
 * A turn follows in this pass of the loop, once for all that asks for one: for a callback that is called many times in
 * a row. What is to go on only after everything readable was looked at says so by struct hw_app_reader.unread, or to
 * hw_app_turn(): then the timer is set for at once.
 */
void hw_app_soon(struct hw_app *a);

#endif
