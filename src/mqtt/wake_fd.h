/* SPDX-License-Identifier: MIT */
/* An eventfd by which one thread wakes another. Header only. */
#ifndef HW_MQTT_WAKE_FD_H
#define HW_MQTT_WAKE_FD_H

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Returns a new descriptor, which the caller closes; -1: there is none. */
static inline int hw_wake_fd_new(void)
{
	return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

/* Wakes the thread that polls `fd`. The write fails only if the counter is full, and then the eventfd is readable
 * already. */
static inline void hw_wake_fd_signal(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));
	(void)n;
}

static inline void hw_wake_fd_clear(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));
	(void)n;
}

#endif
