/* SPDX-License-Identifier: MIT */
/* From a reader's ring into the core. */
#ifndef HW_FEED_H
#define HW_FEED_H

#include "context.h"

/* Of a reader that has its number. */
void hw_app_feed_init(struct hw_app_reader *r);
/* libevent's callback: a reader's descriptor is readable. `arg` is the struct hw_app_reader. */
void hw_app_on_reader(int fd, short what, void *arg);
/* The readers that were not done with in their part of the last turn, or slept too long. Whether there was one; a turn
 * has followed then. */
bool hw_app_read_on(struct hw_app *a);
/* Whether a reader has had its part of this turn. */
bool hw_app_feed_is_spent(const struct hw_app *a);

#endif
