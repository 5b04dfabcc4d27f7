/* SPDX-License-Identifier: MIT */
/*
 * Watches the wall clock, and logs its errors: a jump (compared with the clock that counts from the boot), and a
 * difference from Redis' clock. No device goes offline or is forgotten by the wall clock.
 *
 * The age of a heartbeat (max_age) needs the right time. The core gets the earlier of two times: Redis' clock as last
 * read, and the wall clock without the jumps that Redis' clock has not confirmed.
 *
 * The time for which an id has been expected is measured by the trusted clock: Redis' clock without the jumps forward
 * that this machine's clock has not confirmed. With store = memory it is the wall clock: most of its jumps are those of
 * a machine that starts with a wrong clock, and the times in the file of the inventory are right.
 */
#ifndef HW_WALL_CLOCK_H
#define HW_WALL_CLOCK_H

#include "daemon/context.h"

/* Sets a->wall_clock, which the caller frees. Returns 0 or -ENOMEM. */
int hw_app_wall_clock_new(struct hw_app *a);
/* Called at the start, and each second. */
void hw_app_wall_clock_tick(struct hw_app *a);
/* Returns the time by the trusted clock. */
int64_t hw_app_trusted_ms(const struct hw_app *a);
/* Whether the trusted clock is known: Redis' clock was read, or there is no Redis. */
bool hw_app_trusted_is_known(const struct hw_app *a);

#endif
