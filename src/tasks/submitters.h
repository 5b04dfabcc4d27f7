/* SPDX-License-Identifier: MIT */
/*
 * Tells the submitters, over MQTT: consumer group `tell` of task:events, so that each transition is told by one of the
 * instances, at least once. An entry is acknowledged when the broker has the message; what an instance that died has
 * taken is taken over.
 */
#ifndef HW_TASKS_SUBMITTERS_H
#define HW_TASKS_SUBMITTERS_H

#include <stdbool.h>

struct hw_tasks_app;
struct hw_submitters;

struct hw_submitters *hw_submitters_new(struct hw_tasks_app *app);
/* Later than the store, whose answers it awaits. */
void hw_submitters_free(struct hw_submitters *t);
/* Redis is up, or the broker is: what was taken and not told is told again. */
void hw_submitters_up(struct hw_submitters *t);
void hw_submitters_tick(struct hw_submitters *t);
/* Sends the acknowledgements that wait to Redis. An entry that is not acknowledged is told again after a start. */
void hw_submitters_flush(struct hw_submitters *t);
/* Redis has answered every acknowledgement, or is away. */
bool hw_submitters_is_idle(const struct hw_submitters *t);

#endif
