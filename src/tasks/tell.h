/* SPDX-License-Identifier: MIT */
/*
 * Tells the submitters, over MQTT: consumer group `tell` of task:events, so that each transition is told by one of the
 * instances, at least once. An entry is acknowledged when the broker has the message; what an instance that died has
 * taken is taken over.
 */
#ifndef HW_TASKS_TELL_H
#define HW_TASKS_TELL_H

struct hw_tasks_app;
struct hw_tasks_tell;

struct hw_tasks_tell *hw_tasks_tell_new(struct hw_tasks_app *app);
void hw_tasks_tell_free(struct hw_tasks_tell *t);
/* Redis is up, or the broker is: what was taken and not told is told again. */
void hw_tasks_tell_up(struct hw_tasks_tell *t);
void hw_tasks_tell_tick(struct hw_tasks_tell *t);

#endif
