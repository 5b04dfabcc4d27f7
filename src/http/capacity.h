/* SPDX-License-Identifier: MIT */
/*
 * Limits the descriptors that clients of an address may use. The kernel always assigns the lowest free descriptor, so
 * the number of the next one shows how many are in use. The last HW_CAPACITY_RESERVE below the process's limit (at most
 * a quarter of it) are reserved for other purposes: control socket, broker, Redis, log.
 */
#ifndef HW_HTTP_CAPACITY_H
#define HW_HTTP_CAPACITY_H

#include <stdbool.h>

#define HW_CAPACITY_RESERVE 128
#define HW_CAPACITY_CLOSE   32   /* most connections that one call closes */
#define HW_CAPACITY_IDLE_MS 1000 /* a client that got data within this time is not closed */

/* Whether no descriptor is free. With `reserve`, also returns true if only reserved ones are free. */
bool hw_capacity_is_full(bool reserve);
/*
 * Ends those connections of the listening socket `fd` that were sent no data for the longest time, because they are
 * idle or slow. They are shut down, so that their owner sees the end and closes them. Returns their number. Cost: two
 * system calls for each descriptor in use.
 */
unsigned hw_capacity_make_room(int fd);

#endif
