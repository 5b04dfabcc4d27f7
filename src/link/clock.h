/* SPDX-License-Identifier: MIT */
/* The clocks. The core never reads a clock; the code that talks to Redis does. */
#ifndef HW_LINK_CLOCK_H
#define HW_LINK_CLOCK_H

#include <time.h>

#include "heartwheel/time.h"

static inline struct hw_mono hw_clock_mono(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (struct hw_mono){(int64_t)t.tv_sec * HW_NS_PER_S + t.tv_nsec};
}

static inline struct hw_now hw_clock_now(void)
{
	struct timespec wall;
	clock_gettime(CLOCK_REALTIME, &wall);
	return (struct hw_now){hw_clock_mono(), (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / HW_NS_PER_MS};
}

#endif
