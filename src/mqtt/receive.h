/* SPDX-License-Identifier: MIT */
/*
 * A reader's socket: how much it can hold, and how much it holds.
 */
#ifndef HW_MQTT_RECEIVE_H
#define HW_MQTT_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Makes the receive buffer as large as the system allows, 8 MiB at most. */
void hw_receive_widen(int fd);
/* Bytes that wait to be read; 0 when that cannot be told. */
size_t hw_receive_waiting(int fd);
/* How full the buffer is, in percent, when `waiting` bytes wait. */
unsigned hw_receive_percent(int fd, size_t waiting);
/* From now on the socket is readable only when it holds that many bytes, or has ended; 1: as usual. */
void hw_receive_await(int fd, size_t bytes);
/* Whether what it holds is all that will ever come. */
bool hw_receive_ended(int fd);

#define HW_RECEIVE_LOOK 4096 /* bytes that are looked at together, before they are read (MSG_PEEK) */

/* Throws away up to `bytes` of what it holds, HW_RECEIVE_LOOK at most. How many they were; 0: it has ended; -1 with
 * errno. Does not wait. */
ssize_t hw_receive_throw_away(int fd, size_t bytes);

#endif
