/* SPDX-License-Identifier: MIT */
/*
 * The turn: pulls what is due from the schedule, claims it in Redis, sends what was claimed, and hands the answers of
 * all calls back to the schedule. Nothing is pulled while Redis or the broker is away: a task that is claimed is sent.
 */
#ifndef HW_TASKS_TURN_H
#define HW_TASKS_TURN_H

#include "tasks/calls.h"

struct hw_tasks_app;
struct hw_tasks_turn;

struct hw_tasks_turn *hw_tasks_turn_new(struct hw_tasks_app *app);
void hw_tasks_turn_free(struct hw_tasks_turn *t);
/* Once, as soon as the loop is back. */
void hw_tasks_turn_soon(struct hw_tasks_turn *t);
/* Whether no claim is without an answer. */
bool hw_tasks_turn_is_idle(const struct hw_tasks_turn *t);
/* What every script's answer says besides: Redis' clock, and tasks to be looked at. */
void hw_tasks_turn_answered(struct hw_tasks_turn *t, const struct hw_tasks_reply *r);
/* A device has acknowledged: how long that took, if it was this instance that sent it. */
void hw_tasks_turn_acked(struct hw_tasks_turn *t, const struct hw_task_id *task);

#endif
