/* SPDX-License-Identifier: MIT */
/* Reloads the configuration. */
#ifndef HW_RELOAD_H
#define HW_RELOAD_H

#include "daemon/context.h"

struct evbuffer;

/* Reads the file again. Returns the HTTP status, with the answer in `body`. */
int hw_app_reload(struct hw_app *a, struct evbuffer *body);
void hw_app_reload_on_signal(struct hw_app *a);

#endif
