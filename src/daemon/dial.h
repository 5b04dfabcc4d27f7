/* SPDX-License-Identifier: MIT */
/* The connections to the broker, made once. */
#ifndef HW_DIAL_H
#define HW_DIAL_H

#include "context.h"

/* Starts the publisher and the readers; what was made is freed by hw_app_free(), also after an error. 0 or -errno. */
int hw_app_dial(struct hw_app *a);
/* The same from within the loop, unless that is done; the daemon stops if it cannot. */
void hw_app_dial_late(struct hw_app *a);

#endif
