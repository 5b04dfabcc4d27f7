/* SPDX-License-Identifier: MIT */
/* A bell: an eventfd by which one thread wakes another. Header only. */
#ifndef HW_MQTT_BELL_H
#define HW_MQTT_BELL_H

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The descriptor, or -1. The caller closes it. */
static inline int hw_bell_new(void)
{
	return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

/* Wakes the thread that polls `fd`. The write fails only if the counter is full, and then the eventfd is readable
 * already. */
static inline void hw_bell_ring(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));
	(void)n;
}

static inline void hw_bell_hush(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));
	(void)n;
}

#endif
