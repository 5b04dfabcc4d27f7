/* SPDX-License-Identifier: MIT */
/* The notifier's place in the daemon. */
#ifndef HW_HOOKS_H
#define HW_HOOKS_H

#include "context.h"

struct hw_json;

/* What notify is told of the configuration. 0 or -ENOMEM. */
int hw_app_configure_notifier(struct hw_app *a, const struct hw_settings *c);
void hw_app_notify_trouble(void *arg, enum hw_notifier_kind kind, const char *text);

/* GET /v1/notify and POST /v1/notify/test: see struct hw_control_ops. `arg`: the app. */
void hw_app_show_notify(void *arg, struct hw_json *j);
int hw_app_test_notify(void *arg, const char *channel, struct hw_json *j);

#endif
