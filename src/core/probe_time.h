/* SPDX-License-Identifier: MIT */
/*
 * When a device of a group with probes is asked. Private to the core.
 *
 * The window is what is left of its timeout after the group's probe_after (of a device with a timeout of its own the
 * same share of that one), and ends with its deadline. A hash of the id puts the first probe into the window's first
 * half; the others follow evenly up to the deadline. So all follows from the deadline, and nothing is kept.
 *
 * Cost: constant, but for the hash of an id. A group without probes never comes here.
 */
#ifndef HW_PROBE_TIME_H
#define HW_PROBE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/group.h"
#include "heartwheel/registry.h"
#include "heartwheel/time.h"

/* Of one silence, on the monitor's seeing clock. */
struct hw_probe_moments {
	int64_t first_ns, step_ns;
	unsigned n;
	int64_t after_ns; /* the silence before the first */
};

struct hw_probe_moments hw_probe_moments(const struct hw_group *g, const struct hw_device *d, int64_t timeout_ms,
                                         struct hw_seen deadline);
/* The last of them whose tick is at or before `now`, as that tick. False: none is. */
bool hw_probe_last(const struct hw_probe_moments *m, struct hw_tick now, struct hw_tick *at);

/*
 * Where an online device's entry belongs: at the next of its moments, or its deadline; but never later than where the
 * first moment would be if it were heard now, since a heartbeat leaves the entry where it is.
 */
struct hw_seen hw_probe_point(const struct hw_group *g, const struct hw_device *d, int64_t timeout_ms,
                              struct hw_seen deadline, struct hw_seen now);

#endif
