/* SPDX-License-Identifier: MIT */
/* The readers' and the publisher's connections to the broker, as far as one concerns the others. */
#ifndef HW_CONNECTIONS_H
#define HW_CONNECTIONS_H

#include "context.h"

/* One connection has found the broker: the others need not wait for their back-off to find it too. */
void hw_app_hurry(struct hw_app *a);
/* Logs why a connection to the broker is down, unless another one has said the same. `taken`: another client seems to
 * have the client id, which is an error. */
void hw_app_tell_broker(struct hw_app *a, const char *text, bool taken);
/* Whether a connection that is down has said just this. */
bool hw_app_is_told(const struct hw_app *a, const char *text);

#endif
