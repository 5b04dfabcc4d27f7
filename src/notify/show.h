/* SPDX-License-Identifier: MIT */
/* A daemon's notifier by its [notify], and what its API and its metrics tell of it. */
#ifndef HW_NOTIFY_SHOW_H
#define HW_NOTIFY_SHOW_H

#include "notify/notify.h"
#include "notify/settings.h"

struct evbuffer;
struct hw_json;

/* As hw_notifier_configure(). */
int hw_notify_configure(struct hw_notifier *n, const struct hw_notify_settings *c, const char *node_id);

void hw_notify_metrics(const struct hw_notifier *n, struct evbuffer *b);

/* Members `channels` and `notifications` of an object that is open. Of a URL no more is shown than the host. */
void hw_notify_show(const struct hw_notifier *n, const struct hw_notify_settings *c, struct hw_json *j);
/* Sends a test to a channel, "": to all, and puts `tests`. The HTTP status: 200, or 404: there is no such channel. */
int hw_notify_test(struct hw_notifier *n, const struct hw_notify_settings *c, const char *channel, struct hw_json *j);

#endif
