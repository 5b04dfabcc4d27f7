/* SPDX-License-Identifier: MIT */
/*
 * Limits the descriptors that clients of an address may use. The kernel always assigns the lowest free descriptor, so
 * the number of the next descriptor shows how many are in use. The highest HW_CAPACITY_RESERVE descriptors below the
 * process's limit (at most a quarter of it) are not for clients. They are for other connections: control socket,
 * broker, Redis, log.
 */
#ifndef HW_HTTP_CAPACITY_H
#define HW_HTTP_CAPACITY_H

#include <stdbool.h>

#define HW_CAPACITY_RESERVE 128
#define HW_CAPACITY_CLOSE   32   /* most connections that one call closes */
#define HW_CAPACITY_IDLE_MS 1000 /* a client that got data within this time is not closed */

/* Whether all descriptors are in use. With `reserve`, also true if only the reserved descriptors are free. */
bool hw_capacity_is_full(bool reserve);
/*
 * Closes idle and slow connections of the listening socket `fd`: those that were sent no data for the longest time.
 * They are shut down: libevent, which owns them, sees the end and closes them. Returns their number. Cost: two system
 * calls for each descriptor in use.
 */
unsigned hw_capacity_make_room(int fd);

#endif
