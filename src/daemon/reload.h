/* SPDX-License-Identifier: MIT */
/* From a configuration to what the parts want to know, at the start and at a reload. */
#ifndef HW_RELOAD_H
#define HW_RELOAD_H

#include "context.h"

struct evbuffer;

/* Reads the file again. The HTTP status of the answer, which is in `body`. */
int hw_app_reload(struct hw_app *a, struct evbuffer *body);
void hw_app_reload_on_signal(struct hw_app *a);
/* The groups, on the heap; NULL without memory. Their texts are the configuration's. */
struct hw_group_spec *hw_app_group_specs(const struct hw_settings *c);
struct hw_monitor_conf hw_app_monitor_conf(const struct hw_settings *c);

#endif
