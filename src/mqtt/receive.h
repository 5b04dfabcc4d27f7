/* SPDX-License-Identifier: MIT */
/*
 * A reader's socket: how much it can hold, and how much it holds.
 */
#ifndef HW_MQTT_RECEIVE_H
#define HW_MQTT_RECEIVE_H

#include <stddef.h>

/* Makes the receive buffer as large as the system allows, 8 MiB at most. */
void hw_receive_widen(int fd);
/* Bytes that wait to be read; 0 when that cannot be told. */
size_t hw_receive_waiting(int fd);
/* How full the buffer is, in percent, when `waiting` bytes wait. */
unsigned hw_receive_percent(int fd, size_t waiting);

#endif
