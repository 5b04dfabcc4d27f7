/* SPDX-License-Identifier: MIT */
/*
 * Acknowledgements taken from the socket ahead of the library, many at a time: of messages that were published past it
 * (outlet.h), of which it knows nothing. It throws away an acknowledgement of what it does not know, so that it must
 * never be given one. Nor a message: it would answer at once, perhaps within a packet that goes past it, or have one in
 * flight of its own. This connection has subscribed to nothing, but some brokers subscribe their clients by themselves;
 * what comes so is thrown away. Every other packet is left to it.
 *
 * Invariant: the socket stands at the beginning of a packet, except within one whose rest is skipped. The library reads
 * only while a whole packet lies there that is neither of the two, and then reads that one alone, since it has no
 * message in flight of its own.
 */
#ifndef HW_MQTT_ACKS_H
#define HW_MQTT_ACKS_H

#include <stddef.h>
#include <stdint.h>

#include "mqtt/link.h"
#include "mqtt/receive.h"

struct hw_acks {
	struct hw_link *link;                                   /* borrowed, and hw_link_is_bare() */
	void (*take)(void *owner, uint16_t id, uint8_t reason); /* one acknowledgement, with the link's owner */
	size_t skip;    /* bytes of a packet that are of no interest: what matters of it was taken */
	size_t awaited; /* bytes that must wait in the socket before there is anything to do */
	unsigned char seen[HW_RECEIVE_LOOK];
};

/* A connection is up, or gone: nothing is awaited. */
void hw_acks_begin(struct hw_acks *a);
/* As hw_link_read(), once the link is open. */
enum hw_link_read hw_acks_read(struct hw_acks *a);

#endif
