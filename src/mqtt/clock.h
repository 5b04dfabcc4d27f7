/* SPDX-License-Identifier: MIT */
/* The monotonic clock of the threads that talk to the broker, in ns. Header only. */
#ifndef HW_MQTT_CLOCK_H
#define HW_MQTT_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "heartwheel/time.h"

static inline int64_t hw_mqtt_clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * HW_NS_PER_S + t.tv_nsec;
}

#endif
