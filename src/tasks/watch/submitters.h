/* SPDX-License-Identifier: MIT */
/*
 * Publishes notices to the submitters over MQTT. The consumer group `tell` of task:events gives each transition to one
 * instance, which publishes the notice at least once. The instance acknowledges an entry when the broker has its
 * message. If an instance crashes, another one takes over its pending entries.
 */
#ifndef HW_TASKS_SUBMITTERS_H
#define HW_TASKS_SUBMITTERS_H

#include <stdbool.h>

struct hw_tasks_app;
struct hw_submitters;

struct hw_submitters *hw_submitters_new(struct hw_tasks_app *app);
/* Frees the object. Called after the store is freed, because until then the store answers requests of this part. */
void hw_submitters_free(struct hw_submitters *t);
/* Called when Redis or the broker is up. Entries that were read but not published are read again. */
void hw_submitters_up(struct hw_submitters *t);
void hw_submitters_tick(struct hw_submitters *t);
/* Sends the gathered acknowledgements to Redis. If an entry is not acknowledged, its notice is published again after
 * a start. */
void hw_submitters_flush(struct hw_submitters *t);
/* Whether Redis has answered every acknowledgement, or cannot be reached. */
bool hw_submitters_is_idle(const struct hw_submitters *t);

#endif
