/* SPDX-License-Identifier: MIT */
/* A run of the simulation of incidents. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "incident_world.h"

const char *iw_lie_name(enum iw_lie lie)
{
	static const char *const names[IW_LIES] = {"honest", "swallow", "renumber", "forget", "wait",
	                                           "parent", "silence", "phantom",  "calm",   "blind"};
	return lie < IW_LIES ? names[lie] : "?";
}

void iw_init(struct iw_world *w, uint64_t seed)
{
	FILE *trace = w->trace, *tell = w->tell;
	enum iw_lie lie = w->lie;
	memset(w, 0, offsetof(struct iw_world, entries));
	w->n_entries = w->read = 0;
	w->lag_until = w->down_until = 0;
	memset(w->server_until, 0, sizeof(w->server_until));
	memset(w->taken, 0, sizeof(w->taken));
	memset((char *)&w->redis + offsetof(struct iw_redis, n_incidents), 0,
	       sizeof(w->redis) - offsetof(struct iw_redis, n_incidents));
	memset(w->finished, 0, sizeof(w->finished));
	w->trace = trace;
	w->tell = tell;
	w->lie = lie;
	w->seed = seed;
	w->random.state = seed;
	iw_plan(w);
}

void iw_run(struct iw_world *w)
{
	iw_host_start(w);
	for (w->now = 0; w->now < w->end && w->breaches == 0; w->now += IW_TICK_MS) {
		iw_fleet_tick(w);
		iw_host_tick(w);
		iw_oracle_tick(w);
	}
	if (w->breaches == 0)
		iw_oracle_end(w);
	w->count.planned = w->redis.planned;
	hw_incidents_free(w->engine);
	w->engine = NULL;
}
