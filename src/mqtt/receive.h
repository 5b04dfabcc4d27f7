/* SPDX-License-Identifier: MIT */
/*
 * The receive buffer of a socket: its size and its content.
 */
#ifndef HW_MQTT_RECEIVE_H
#define HW_MQTT_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Makes the buffer as large as the system allows, 8 MiB at most. */
void hw_receive_widen(int fd);
/* Bytes to be read; 0 if unknown. */
size_t hw_receive_waiting(int fd);
/* Returns how full the buffer is, in percent, with `waiting` bytes to be read. */
unsigned hw_receive_percent(int fd, size_t waiting);
/* Makes the socket readable only if it contains at least `bytes` bytes, or at the end of the stream. 1 is the default.
 */
void hw_receive_await(int fd, size_t bytes);
/* Whether the stream has ended, so that no more bytes follow those in the buffer. */
bool hw_receive_ended(int fd);

/* Acknowledges at once what was read, so that a broker without TCP_NODELAY sends its next packets. */
void hw_receive_acknowledge(int fd);

#define HW_RECEIVE_PEEK 4096 /* bytes that are inspected together before they are read (MSG_PEEK) */

/* Discards up to `bytes` bytes, at most HW_RECEIVE_PEEK, without waiting. Returns how many; 0 at the end of the stream;
 * -1 with errno set. */
ssize_t hw_receive_discard(int fd, size_t bytes);

#endif
