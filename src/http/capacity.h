/* SPDX-License-Identifier: MIT */
/*
 * How many descriptors the clients of an address may take. Descriptors are numbered from the lowest free one on, so the
 * number of the next one tells how many are in use. The last HW_CAPACITY_RESERVE of the process's limit (a quarter of
 * it, if that is less) are for everything else: the control socket, the broker, Redis, the log.
 */
#ifndef HW_HTTP_CAPACITY_H
#define HW_HTTP_CAPACITY_H

#include <stdbool.h>

#define HW_CAPACITY_RESERVE 128
#define HW_CAPACITY_CLOSE   32   /* connections that one call closes at most */
#define HW_CAPACITY_IDLE_MS 1000 /* a client that was answered within this time is not closed */

/* Whether there is no further descriptor; `reserve`: nor if it would be one of the reserve. */
bool hw_capacity_is_full(bool reserve);
/*
 * Makes room: ends the connections of the listening socket `fd` that have been answered nothing for longest, be they
 * idle or slow. They are shut down, so that their owner sees the end and closes them. Returns how many there were.
 * Cost: two system calls for each descriptor in use.
 */
unsigned hw_capacity_make_room(int fd);

#endif
