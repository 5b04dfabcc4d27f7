/* SPDX-License-Identifier: MIT */
/*
 * A model of the devices. Each sends heartbeats at its interval, with jitter and loss. Now and then a device dies in
 * one of four ways, comes back, or loses its network for a while. Some devices are heard only by a gateway
 * (sim_gateway.h). Sleepers announce a longer timeout before a nap. If a device finds its connection closed, it
 * connects again with growing delays, and sends a heartbeat as soon as it is connected.
 */
#ifndef SIM_FLEET_H
#define SIM_FLEET_H

#include <stdbool.h>
#include <stdint.h>

#include "sim_gateway.h"
#include "sim_traffic.h"

struct sim;

enum sim_turn { SIM_CRASHES, SIM_LOSES_POWER, SIM_HANGS, SIM_SAYS_GOODBYE, SIM_RETURNS, SIM_LOSES_NET, SIM_GETS_NET };

struct sim_device {
	/* traits */
	int64_t interval_ns, delay_ns, keepalive_ns;
	int64_t nap_ns; /* 0: no sleeper */
	int64_t nap_spare_ms;
	double jitter, loss;
	struct sim_traffic traffic; /* in a fleet that learns */
	unsigned group;
	bool will;
	uint32_t gateway; /* the gateway that lists the device; the device's own number if it is a gateway or needs
	                   * none */
	bool speaks;      /* it is a gateway */

	/* its life */
	bool powered;   /* the machine runs, and answers pings */
	bool beating;   /* and its program works */
	bool reachable; /* its network works */
	bool connected; /* as far as it knows */
	uint32_t life;  /* grows whenever earlier plans for the device become invalid */
	uint32_t until_nap;
	int64_t naps_until; /* behind a gateway */
	int64_t backoff_ns;
	uint64_t beats; /* sent, lost ones included */
};

struct sim_fleet {
	struct sim_device *device; /* owned */
	struct sim_lists lists;
};

void sim_fleet_init(struct sim *s);
void sim_fleet_fini(struct sim *s);

/* It is time for a heartbeat, which may contain a timeout (-1: none). Returns when the next one is due. */
int64_t sim_fleet_says(struct sim *s, struct sim_device *d, int64_t *timeout_ms);

void sim_fleet_on_beat(struct sim *s, uint32_t device, uint32_t life);
void sim_fleet_on_dial(struct sim *s, uint32_t device, uint32_t life);
void sim_fleet_on_closed(struct sim *s, uint32_t device, uint32_t conn);
void sim_fleet_on_life(struct sim *s, uint32_t device, enum sim_turn turn);

#endif
