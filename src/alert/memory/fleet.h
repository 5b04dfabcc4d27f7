/* SPDX-License-Identifier: MIT */
/*
 * [store] type = memory: copies from heartwheeld what heartwheel-alert reads in Redis otherwise. Follows /v1/events of
 * heartwheeld's socket, and writes the keys device:events, device:parent_heard, device:offline and device:state:ID.
 * Requests the state of the monitor and its groups, and writes device:monitor:NODE and device:groups.
 *
 * After a lost connection, it requests the transitions after the last one. If heartwheeld does not have them, as after
 * a restart of heartwheeld, the offline devices are listed again, and device:events begins with a new entry. The reader
 * of that stream notices this gap.
 */
#ifndef HW_ALERT_FLEET_H
#define HW_ALERT_FLEET_H

#include <stdbool.h>

struct hw_alert_app;
struct hw_alert_fleet;
struct hw_keys;

/* `keys` is borrowed. Returns NULL if there is no memory. */
struct hw_alert_fleet *hw_alert_fleet_new(struct hw_alert_app *app, struct hw_keys *keys);
/* `f` may be NULL. */
void hw_alert_fleet_free(struct hw_alert_fleet *f);
/* Called each second. */
void hw_alert_fleet_tick(struct hw_alert_fleet *f);
/* Whether the offline devices were ever listed. */
bool hw_alert_fleet_is_known(const struct hw_keys *keys, const struct hw_alert_app *app);

#endif
