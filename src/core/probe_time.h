/* SPDX-License-Identifier: MIT */
/*
 * The moments at which a device of a group with probes is probed. Private to the core.
 *
 * The window is the part of the timeout after the group's probe_after, and it ends at the deadline. If a device has its
 * own timeout, the window is the same fraction of that. A hash of the id places the first probe in the first half of
 * the window; the other probes follow at equal distances. So the deadline determines all moments, and nothing is
 * stored.
 *
 * Cost: constant, apart from hashing an id. A group without probes never calls this.
 */
#ifndef HW_PROBE_TIME_H
#define HW_PROBE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/group.h"
#include "heartwheel/registry.h"
#include "heartwheel/time.h"

/* The values from which the moments of one silence follow, on the monitor's seeing clock. */
struct hw_probe_moments {
	int64_t first_ns, step_ns;
	unsigned n;
	int64_t after_ns; /* silence before the first moment */
};

struct hw_probe_moments hw_probe_moments(const struct hw_group *g, const struct hw_device *d, int64_t timeout_ms,
                                         struct hw_seen deadline);
/* Finds the last moment whose tick is not after `now`; `*at` becomes its tick. Returns false if there is none yet. */
bool hw_probe_last(const struct hw_probe_moments *m, struct hw_tick now, struct hw_tick *at);

/*
 * Returns the instant for which an online device is armed: its next moment, or its deadline. A heartbeat does not move
 * the armed entry to a later tick. So the instant is not later than the first moment that the device would have if it
 * were heard now.
 */
struct hw_seen hw_probe_point(const struct hw_group *g, const struct hw_device *d, int64_t timeout_ms,
                              struct hw_seen deadline, struct hw_seen now);

#endif
