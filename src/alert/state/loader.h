/* SPDX-License-Identifier: MIT */
/*
 * Loads the state at a start: the committed incidents, and the devices that are offline now. After the load the engine
 * is complete. Each reader then continues after the committed offset of its stream. If there is none, it continues
 * after the entries that the stream had when the load began.
 */
#ifndef HW_ALERT_LOADER_H
#define HW_ALERT_LOADER_H

#include <stdbool.h>

struct hw_alert_app;
struct hw_alert_loader;
struct hw_alert_taken;

struct hw_alert_loader *hw_alert_loader_new(struct hw_alert_app *app);
void hw_alert_loader_free(struct hw_alert_loader *l);

/* Begins a load, and cancels a running one. Calls hw_alert_on_loaded() at the end. `skip`: entries were trimmed, so
 * the streams are read from their present end on. */
void hw_alert_loader_begin(struct hw_alert_loader *l, const struct hw_alert_taken *taken, bool skip);
/* Ends the load without hw_alert_on_loaded(). */
void hw_alert_loader_stop(struct hw_alert_loader *l);
bool hw_alert_loader_is_busy(const struct hw_alert_loader *l);
/* Called for each renewal of the lease. If the last load could not read device:unseen, checks whether the key can be
 * read now, and if so, sets hw_alert_app.reload. */
void hw_alert_loader_retry(struct hw_alert_loader *l);
/* Returns the key of another type because of which no load succeeds, or that the last load left out (device:unseen);
 * "": there is none. */
const char *hw_alert_loader_why(const struct hw_alert_loader *l);

#endif
