/* SPDX-License-Identifier: MIT */
/*
 * POST /v1/call: publishes a message, and answers with the next one on another topic, whichever instance hears that.
 *
 * Who waits is registered in Redis: mqtt:callback:CB, and CB in mqtt:topic:TOPIC. An instance that hears a message on
 * one of [tasks] answers looks there who waits for it, and tells each one's instance on mqtt:node:NODE_ID. A callback
 * lives for three times its timeout: what an instance leaves behind that has died is passed over, and goes by itself.
 */
#ifndef HW_TASKS_CALL_H
#define HW_TASKS_CALL_H

#include <stddef.h>
#include <stdint.h>

#define HW_CALLS_MAX         256
#define HW_CALL_TIMEOUT_MAX  50   /* s; a client that passes requests on is patient for 60 s */
#define HW_CALL_LOOK_UPS_MAX 1024 /* messages for whose waiters Redis is asked; beyond, only those here are told */

struct hw_tasks_app;
struct hw_tasks_call;

/* Subscribes to [tasks] answers. NULL without memory. */
struct hw_tasks_call *hw_tasks_call_new(struct hw_tasks_app *app);
/* Once all connections are closed, and after store and broker. NULL may be given. */
void hw_tasks_call_free(struct hw_tasks_call *c);
/* Each second. */
void hw_tasks_call_tick(struct hw_tasks_call *c);

struct hw_call_stats {
	uint64_t answered, timed_out, failed, heard, unlooked; /* unlooked: HW_CALL_LOOK_UPS_MAX */
};
void hw_call_stats(const struct hw_tasks_call *c, struct hw_call_stats *out);
/* Clients that wait now. */
unsigned hw_call_waiting(const struct hw_tasks_call *c);

#endif
