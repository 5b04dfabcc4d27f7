/* SPDX-License-Identifier: MIT */
/* Twelve kinds of traffic of devices that work: the times between two heartbeats. */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include <stdint.h>

#include "sim_random.h"

enum sim_traffic_kind {
	SIM_REGULAR,
	SIM_JITTER,
	SIM_POISSON,
	SIM_LOSSY,
	SIM_DIURNAL,
	SIM_BURST_THEN_SLEEP,
	SIM_TWO_MODES,
	SIM_GATEWAY_BACKLOG,
	SIM_DRIFT,
	SIM_RARE,
	SIM_RECONNECTS,
	SIM_FIRMWARE,
	SIM_TRAFFIC_KINDS
};

struct sim_traffic {
	enum sim_traffic_kind kind;
	uint32_t left;   /* heartbeats until the next change */
	uint32_t n;      /* so far */
	double mode, at; /* present interval, or factor; seconds since the begin */
};

const char *sim_traffic_name(enum sim_traffic_kind kind);
/* The time until the next heartbeat. */
int64_t sim_traffic_gap_ns(struct sim_traffic *t, struct sim_random *r);

#endif
