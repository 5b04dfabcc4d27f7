/* SPDX-License-Identifier: MIT */
/* Configures a daemon's notifier from [notify], and writes its part of the API and the metrics. */
#ifndef HW_NOTIFY_SHOW_H
#define HW_NOTIFY_SHOW_H

#include "notify/notify.h"
#include "notify/settings.h"

struct evbuffer;
struct hw_json;

/* See hw_notifier_configure(). */
int hw_notify_configure(struct hw_notifier *n, const struct hw_notify_settings *c, const char *node_id);

void hw_notify_metrics(const struct hw_notifier *n, struct evbuffer *b);

/* Writes the members `channels` and `notifications` to an open object. Of a URL, only the origin is shown. */
void hw_notify_show(const struct hw_notifier *n, const struct hw_notify_settings *c, struct hw_json *j);
/* Sends a test to a channel ("": to all), and writes the member `tests`. Returns the HTTP status: 200, or 404 if there
 * is no such channel. */
int hw_notify_test(struct hw_notifier *n, const struct hw_notify_settings *c, const char *channel, struct hw_json *j);

#endif
