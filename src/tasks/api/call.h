/* SPDX-License-Identifier: MIT */
/*
 * POST /v1/call: publishes a message, and answers with the next message on another topic. Any instance may receive that
 * message.
 *
 * Each waiting call is registered in Redis: as hash mqtt:callback:CB, and as member CB of the set mqtt:topic:TOPIC. An
 * instance that receives a message on one of [tasks] answers reads the set of its topic. For each other instance whose
 * client waits, it then publishes the message on mqtt:node:NODE_ID. A callback expires after three times its timeout.
 * So the callbacks of a crashed instance are skipped, and expire.
 */
#ifndef HW_TASKS_CALL_H
#define HW_TASKS_CALL_H

#include <stddef.h>
#include <stdint.h>

#define HW_CALLS_MAX        256
#define HW_CALL_TIMEOUT_MAX 50 /* in s; heartwheeld waits 60 s when it forwards the request, so this is less */
/* Limit of the look-ups in Redis that are under way. Beyond it, a message answers only calls of this instance. */
#define HW_CALL_LOOK_UPS_MAX 1024

struct hw_tasks_app;
struct hw_tasks_call;

/* Subscribes to [tasks] answers. Returns NULL if there is no memory. */
struct hw_tasks_call *hw_tasks_call_new(struct hw_tasks_app *app);
/* Called when all HTTP connections are closed, and the store and the broker are freed. NULL is allowed. */
void hw_tasks_call_free(struct hw_tasks_call *c);
/* Called each second. */
void hw_tasks_call_tick(struct hw_tasks_call *c);

struct hw_call_stats {
	uint64_t answered, timed_out, failed, heard, unlooked; /* unlooked: messages beyond HW_CALL_LOOK_UPS_MAX */
};
void hw_call_stats(const struct hw_tasks_call *c, struct hw_call_stats *out);
/* Returns the number of clients that wait now. */
unsigned hw_call_waiting(const struct hw_tasks_call *c);

#endif
