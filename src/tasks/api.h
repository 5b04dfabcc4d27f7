/* SPDX-License-Identifier: MIT */
/* What heartwheel-tasks answers on its socket: the table of routes. The handlers' argument is struct hw_tasks_app. */
#ifndef HW_TASKS_API_H
#define HW_TASKS_API_H

#include "http/router.h"

struct hw_tasks_api;
struct hw_tasks_app;

#define HW_API_BODY_MAX (4 * 1024 * 1024) /* bytes of a request's body: a thousand tasks of 4 KiB */

extern const struct hw_http_table hw_tasks_routes;

/* NULL without memory. It connects to Redis by itself, for what is only read. */
struct hw_tasks_api *hw_tasks_api_new(struct hw_tasks_app *app);
/* Once all connections are closed, and after the desk: what a client asked for may still be answered. NULL may be
 * given.
 */
void hw_tasks_api_free(struct hw_tasks_api *api);
/* Each second. */
void hw_tasks_api_tick(struct hw_tasks_api *api);

#endif
