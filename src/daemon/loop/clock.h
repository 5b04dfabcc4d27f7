/* SPDX-License-Identifier: MIT */
/* The machine's clocks. Only clock.c reads them; the simulation of nodes replaces it. */
#ifndef HW_DAEMON_CLOCK_H
#define HW_DAEMON_CLOCK_H

#include <stdint.h>

#include "heartwheel/time.h"

struct hw_now hw_app_now(void);
/* Nanoseconds since the machine booted, including time in which it was suspended. */
int64_t hw_app_booted_ns(void);

#endif
