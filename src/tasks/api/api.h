/* SPDX-License-Identifier: MIT */
/* The API of heartwheel-tasks on its socket: the table of routes. Each handler's `arg` is the struct hw_tasks_app. */
#ifndef HW_TASKS_API_H
#define HW_TASKS_API_H

#include "http/router.h"

struct hw_tasks_api;
struct hw_tasks_app;

#define HW_API_BODY_MAX (4 * 1024 * 1024) /* maximum size of a request's body: 1,000 tasks of 4 KiB */

extern const struct hw_http_table hw_tasks_routes;

/* Opens its own connection to Redis, for reading. Returns NULL if there is no memory. */
struct hw_tasks_api *hw_tasks_api_new(struct hw_tasks_app *app);
/* Called when all HTTP connections are closed and the dispatcher is freed, because until then the dispatcher may answer
 * requests. NULL is allowed. */
void hw_tasks_api_free(struct hw_tasks_api *api);
/* Called each second. */
void hw_tasks_api_tick(struct hw_tasks_api *api);

#endif
