/* SPDX-License-Identifier: MIT */
/*
 * Publishes notices to the submitters over MQTT. Consumer group `tell` of task:events gives each transition to one
 * instance, which publishes it at least once. An entry is acknowledged when the broker has the message. Entries that a
 * crashed instance has left pending are taken over by another instance.
 */
#ifndef HW_TASKS_SUBMITTERS_H
#define HW_TASKS_SUBMITTERS_H

#include <stdbool.h>

struct hw_tasks_app;
struct hw_submitters;

struct hw_submitters *hw_submitters_new(struct hw_tasks_app *app);
/* Call it after the store is freed: until then the store answers its requests. */
void hw_submitters_free(struct hw_submitters *t);
/* Redis or the broker is up: entries that were read but not published are read again. */
void hw_submitters_up(struct hw_submitters *t);
void hw_submitters_tick(struct hw_submitters *t);
/* Sends the collected acknowledgements to Redis. An entry without one is published again after a start. */
void hw_submitters_flush(struct hw_submitters *t);
/* Whether Redis has answered every acknowledgement, or is away. */
bool hw_submitters_is_idle(const struct hw_submitters *t);

#endif
