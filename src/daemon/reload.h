/* SPDX-License-Identifier: MIT */
/* A reload of the configuration. */
#ifndef HW_RELOAD_H
#define HW_RELOAD_H

#include "context.h"

struct evbuffer;

/* Reads the file again. The HTTP status of the answer, which is in `body`. */
int hw_app_reload(struct hw_app *a, struct evbuffer *body);
void hw_app_reload_on_signal(struct hw_app *a);

#endif
