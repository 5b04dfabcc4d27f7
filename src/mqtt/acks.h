/* SPDX-License-Identifier: MIT */
/*
 * Reads acknowledgements from the socket past the library, many at a time. They belong to messages that were published
 * past the library (outlet.h), so the library does not know these messages. It must not be given such an
 * acknowledgement. It must not be given a received message either: its answer could be written within a packet that
 * goes past it, and it would have a message in flight. This connection has subscribed to nothing, but some brokers
 * subscribe their clients by themselves; such messages are discarded. Every other packet is left to the library.
 *
 * Invariant: the socket stands at the start of a packet, or within a packet whose rest is being skipped. The library
 * reads only when a whole packet of another kind is there. It then reads that packet alone, because it has no message
 * in flight itself.
 */
#ifndef HW_MQTT_ACKS_H
#define HW_MQTT_ACKS_H

#include <stddef.h>
#include <stdint.h>

#include "mqtt/link.h"
#include "mqtt/receive.h"

struct hw_acks {
	struct hw_link *link; /* borrowed; hw_link_is_bare() must be true */
	/* called for each acknowledgement, with the owner of the link */
	void (*take)(void *owner, uint16_t id, uint8_t reason);
	size_t skip;    /* bytes that are left of a packet whose content is of no further use */
	size_t awaited; /* bytes that must be in the socket before the next read can make progress */
	unsigned char seen[HW_RECEIVE_PEEK];
};

/* A connection is up, or lost: resets the state. */
void hw_acks_begin(struct hw_acks *a);
/* Like hw_link_read(), for an open link. */
enum hw_link_read hw_acks_read(struct hw_acks *a);

#endif
