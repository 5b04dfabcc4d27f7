/* SPDX-License-Identifier: MIT */
/*
 * Held wills: a message that is published when its device becomes offline, each time. Key s:w:{id} contains it as JSON
 * {"topic","payload","qos","retain"}. The device (action `will`) or an operator (the API) sets it.
 *
 * Offline transitions are read from device:events after the offset in task:wills. The offset advances when the broker
 * has all messages of a page. So each will is published at least once, even if an instance crashes. With several
 * instances, only the first one in rendezvous order reads.
 */
#ifndef HW_TASKS_WILLS_H
#define HW_TASKS_WILLS_H

#include "http/router.h"

struct hw_tasks_app;
struct hw_tasks_wills;

/* Registers with the inbox for the action `will`. Returns NULL if there is no memory. */
struct hw_tasks_wills *hw_tasks_wills_new(struct hw_tasks_app *app);
/* Frees the object. Called after the store is freed, when no call is open. */
void hw_tasks_wills_free(struct hw_tasks_wills *w);
/* Called each second. */
void hw_tasks_wills_tick(struct hw_tasks_wills *w);

/* PUT, DELETE and GET of /v1/devices/ID/will. `arg` is the struct hw_tasks_app. */
hw_http_handler hw_tasks_serve_will_put, hw_tasks_serve_will_delete, hw_tasks_serve_will;

#endif
