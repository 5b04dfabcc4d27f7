/* SPDX-License-Identifier: MIT */
/*
 * A model of gateways. In a group of batches, all devices are heard by a few gateways, each of which is a device
 * itself, with one connection and one will. A gateway sends lists (JSON arrays): the devices that it hears; a device
 * that has left; and, in its will or when it leaves itself, goodbyes of all. A list is written once and kept until the
 * end of the run, so a packet only needs the number of its list.
 */
#ifndef SIM_GATEWAY_H
#define SIM_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim_fifo.h"

struct sim;

#define SIM_GATEWAYS_MAX 3

struct sim_element {
	int64_t timeout_ms; /* as in struct sim_packet */
	uint32_t device;
	uint32_t number; /* for the oracle: the number of a heartbeat that reached the broker */
	bool goodbye;
	size_t end; /* where it ends in the list's text */
};

struct sim_list {
	struct sim_element *element; /* owned */
	char *text;                  /* owned */
	size_t n, len;
};

struct sim_lists {
	struct sim_list *list; /* owned */
	size_t n, cap;
};

/* Determines for each device of a group of batches which gateway hears it. */
void sim_gateway_place(struct sim *s);
void sim_gateway_fini(struct sim *s);

/* Returns the packet in which a gateway lists the devices that it hears now. The list is a heartbeat of each of these
 * devices. */
struct sim_packet sim_gateway_heard(struct sim *s, uint32_t gateway);
/* Returns the packet with the goodbyes of the gateway and of all devices that it may hear. It is the gateway's will. */
struct sim_packet sim_gateway_goodbyes(struct sim *s, uint32_t gateway);
/* ... says goodbye for one of them. */
struct sim_packet sim_gateway_goodbye(struct sim *s, uint32_t device);

const struct sim_list *sim_list_of(const struct sim *s, const struct sim_packet *p);
/* The list has reached the broker: the heartbeats in it count as arrived. */
void sim_list_arrived(struct sim *s, const struct sim_packet *p);
void sim_list_lost(struct sim *s, const struct sim_packet *p, bool muted);

#endif
