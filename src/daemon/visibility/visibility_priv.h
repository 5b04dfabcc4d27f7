/* SPDX-License-Identifier: MIT */
/* Shared by visibility.c, sightings.c and unjudged.c. */
#ifndef HW_VISIBILITY_PRIV_H
#define HW_VISIBILITY_PRIV_H

#include "daemon/context.h"

/* Used by sightings.c: the current period in which this node sees the fleet, or is blind to it. The period is
 * written to the stream device:sight. */
struct hw_sightings {
	int64_t from_ms;  /* wall clock */
	int64_t floor_ms; /* wall clock; no period begins earlier */
	bool blind;
	enum hw_cause cause; /* of the blindness */
	struct hw_mono next; /* the next time to write an unfinished period */
	int64_t pause_s;     /* seconds between the last write and the next */
	bool down_reported,
		ended; /* down_reported: the period before this run is written; ended: no more periods are written */
};

/* Used by unjudged.c: the groups whose unjudged devices were logged. */
struct hw_unjudged {
	bool *reported; /* owned; one element per group */
	size_t n;
	bool known; /* all devices were checked once since the load */
};

struct hw_app_visibility {
	bool fleet_blind; /* the core's last report about the fleet as a whole */
	enum hw_cause fleet_cause;
	bool blind; /* blindness of the fleet or of groups, as the presence shows it */
	enum hw_cause cause;
	bool upstream_reported; /* logged: no value has arrived for a `while` condition */
	struct hw_mono upstream_asked, upstream_renewed;
	struct hw_sightings sightings;
	struct hw_unjudged unjudged;
};

#endif
