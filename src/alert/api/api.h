/* SPDX-License-Identifier: MIT */
/* HTTP on the socket: incidents, silences, receivers, health and metrics. See heartwheel-api(7). */
#ifndef HW_ALERT_API_H
#define HW_ALERT_API_H

#include "http/router.h"

struct hw_alert_app;
struct hw_alert_api;

/* The handlers get a struct hw_alert_app. */
extern const struct hw_http_table hw_alert_routes;

struct hw_alert_api *hw_alert_api_new(struct hw_alert_app *app);
/* Called after the server is freed, when all requests have ended. */
void hw_alert_api_free(struct hw_alert_api *api);
/* Called each second. */
void hw_alert_api_tick(struct hw_alert_api *api);
/* Called when a commit has been confirmed. Answers the requests that wait for it. */
void hw_alert_api_committed(struct hw_alert_api *api);
/* Called when the engine was freed. Refuses the requests that wait for a commit. */
void hw_alert_api_reset(struct hw_alert_api *api);

#endif
