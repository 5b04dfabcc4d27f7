/* SPDX-License-Identifier: MIT */
/* The monotonic clock: the core never reads it, what talks to Redis has to. */
#ifndef HW_REDIS_CLOCK_H
#define HW_REDIS_CLOCK_H

#include <time.h>

#include "heartwheel/time.h"

static inline struct hw_mono hw_clock_mono(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (struct hw_mono){(int64_t)t.tv_sec * HW_NS_PER_S + t.tv_nsec};
}

#endif
