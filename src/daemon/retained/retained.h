/* SPDX-License-Identifier: MIT */
/* The daemon's retained messages about devices. There are two sinks (retained_sink.h): one of statuses, one of Home
 * Assistant's discovery. presence.h is about the monitor's own message. */
#ifndef HW_DAEMON_RETAINED_H
#define HW_DAEMON_RETAINED_H

#include "daemon/context.h"
#include "retained_sink.h"

/* Sets a->retained. Called when the core exists. Returns 0 or -ENOMEM. */
int hw_app_retained_new(struct hw_app *a);
void hw_app_retained_free(struct hw_app *a);

struct hw_retained_sink *hw_app_status_sink(const struct hw_app *a);
struct hw_retained_sink *hw_app_discovery_sink(const struct hw_app *a);

/* hw_app_retained_connect(): from now on messages are published. hw_app_retained_down(): the connection is lost, and
 * messages in flight wait again. */
void hw_app_retained_connect(struct hw_app *a, struct hw_publisher *p);
void hw_app_retained_down(struct hw_app *a);
/* The publisher's answers. */
void hw_app_retained_acked(struct hw_app *a, uint64_t publish_id);
void hw_app_retained_refused(struct hw_app *a, struct hw_now now, const struct hw_publisher_event *ev);

/* Makes a device's retained status pending again, because it may have been replaced at the broker. */
void hw_app_set_status_pending(struct hw_app *a, struct hw_now now, struct hw_ref ref);
/* Makes a device's discovery pending: once for a new device, and once when it is forgotten. */
void hw_app_discover(struct hw_app *a, struct hw_now now, struct hw_ref ref, struct hw_device *d);
/* Makes the retained messages of all devices pending again. */
void hw_app_republish(struct hw_app *a, struct hw_now now);
/* Frees the record of a forgotten device if nothing of the device is pending at any sink. */
void hw_app_reap_if_done(struct hw_app *a, struct hw_ref ref, const struct hw_device *d);

/* See hw_retained_pump() and hw_retained_wait_ms(). */
bool hw_app_retained_pump(struct hw_app *a, struct hw_now now, unsigned *budget);
int64_t hw_app_retained_wait_ms(const struct hw_app *a);
/* Called each second. Messages that the broker refused are tried again each minute. */
void hw_app_retained_tick(struct hw_app *a, struct hw_now now);
/* hw_app_retained_end(): a stop begins, and only pending messages are sent. hw_app_retained_idle(): whether no
 * message is pending and no presence is due. */
void hw_app_retained_end(struct hw_app *a);
bool hw_app_retained_idle(const struct hw_app *a);

#endif
