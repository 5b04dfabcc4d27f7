/* SPDX-License-Identifier: MIT */
/*
 * Held wills: a message that is published whenever its device goes offline, as heartwheeld sees it. Kept in s:w:{id},
 * JSON {"topic","payload","qos","retain"}, given by the device itself (action `will`) or by an operator (the API).
 *
 * Each offline transition is read from device:events behind the place in task:wills, which moves on when the broker has
 * all messages of what was read: so each is published at least once, whoever dies. With several instances one reads,
 * the first in rendezvous order.
 */
#ifndef HW_TASKS_WILLS_H
#define HW_TASKS_WILLS_H

#include "http/router.h"

struct hw_tasks_app;
struct hw_tasks_wills;

/* NULL without memory. Takes the action `will` from the inbox. */
struct hw_tasks_wills *hw_tasks_wills_new(struct hw_tasks_app *app);
/* After the store: nothing is under way any more. */
void hw_tasks_wills_free(struct hw_tasks_wills *w);
/* Each second. */
void hw_tasks_wills_tick(struct hw_tasks_wills *w);

/* PUT, DELETE and GET of /v1/devices/ID/will; `arg` is the struct hw_tasks_app. */
hw_http_handler hw_tasks_serve_will_put, hw_tasks_serve_will_delete, hw_tasks_serve_will;

#endif
