/* SPDX-License-Identifier: MIT */
/* Back from the broker: what the publisher has to say, and what has become of what was published. */
#ifndef HW_BROKER_H
#define HW_BROKER_H

#include "context.h"

/* libevent's callback: the publisher's descriptor is readable. `arg` is the struct hw_app. */
void hw_app_on_publisher(int fd, short what, void *arg);
/* The same of the barriers' connection. */
void hw_app_on_barriers(int fd, short what, void *arg);
/* Both sinks' on_dropped(), and their on_published(). */
void hw_app_dropped(void *arg, struct hw_ref ref);
void hw_app_published(void *arg, struct hw_ref device, bool cleared);
void hw_app_discovered(void *arg, struct hw_ref device, bool cleared);

#endif
