/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * HW_NS_PER_S + t.tv_nsec;
}

struct hw_now hw_app_now(void)
{
	return (struct hw_now){.mono = {read_clock(CLOCK_MONOTONIC)},
	                       .wall_ms = read_clock(CLOCK_REALTIME) / HW_NS_PER_MS};
}

int64_t hw_app_booted_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}
