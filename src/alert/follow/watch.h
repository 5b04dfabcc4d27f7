/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether the monitors see the fleet. Reads the sight record of each monitor (device:monitor:NODE) each
 * second, and device:groups each 2 s. A monitor is blind while its record does not grow.
 */
#ifndef HW_ALERT_WATCH_H
#define HW_ALERT_WATCH_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

struct hw_alert_app;
struct hw_alert_watch;
struct hw_incidents;

struct hw_alert_watch *hw_alert_watch_new(struct hw_alert_app *app);
void hw_alert_watch_free(struct hw_alert_watch *w);
/* Called when a monitor has written an entry of a stream. `node` may be NULL. */
void hw_alert_watch_node(struct hw_alert_watch *w, const char *node);
void hw_alert_watch_store(struct hw_alert_watch *w, bool up);
/* Called each second. */
void hw_alert_watch_tick(struct hw_alert_watch *w);

/* Passes the answer to HGETALL device:groups to `engine`. Returns 0 or -ENOMEM. */
int hw_alert_watch_groups(struct hw_alert_app *app, struct hw_incidents *engine, const redisReply *r);

#endif
