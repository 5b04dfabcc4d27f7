/* SPDX-License-Identifier: MIT */
/* An eventfd that one thread rings and another one polls: it stays readable until it is hushed. Header only. */
#ifndef HW_MQTT_BELL_H
#define HW_MQTT_BELL_H

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The descriptor, or -1. close() ends it. */
static inline int hw_bell_new(void)
{
	return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

/* An eventfd can only refuse a write when its counter is full, and then it is readable already. */
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
