/* SPDX-License-Identifier: MIT */
/*
 * The turn takes due tasks from the schedule, claims them in Redis, sends the claimed tasks, and passes the answers of
 * all calls to the schedule. While Redis or the broker cannot be reached, it takes no task, because a claimed task must
 * be sent.
 */
#ifndef HW_TASKS_TURN_H
#define HW_TASKS_TURN_H

#include "tasks/queue/calls.h"

struct hw_tasks_app;
struct hw_tasks_turn;

struct hw_tasks_turn *hw_tasks_turn_new(struct hw_tasks_app *app);
void hw_tasks_turn_free(struct hw_tasks_turn *t);
/* Each second: logs whether Redis' clock is trusted. */
void hw_tasks_turn_tick(struct hw_tasks_turn *t);
/* Schedules one turn, as soon as the loop runs again. */
void hw_tasks_turn_schedule(struct hw_tasks_turn *t);
/* Whether each order has its answer. */
bool hw_tasks_turn_is_idle(const struct hw_tasks_turn *t);
/* Handles what the answers of all scripts contain: Redis' clock, wakes, unusable values. */
void hw_tasks_turn_answered(struct hw_tasks_turn *t, const struct hw_tasks_reply *r);
/* Called when a device has acknowledged a task. If this instance has sent the task, records how long the ack took. */
void hw_tasks_turn_acked(struct hw_tasks_turn *t, const struct hw_task_id *task);

#endif
