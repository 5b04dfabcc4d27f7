/* SPDX-License-Identifier: MIT */
/*
 * Reads acknowledgements from the socket past the library, many at a time. These acknowledgements are for messages that
 * were published past the library (outlet.h), so the library does not know these messages.
 *
 * The library must read neither such an acknowledgement nor a received message. If the library read a message, it would
 * answer the message, perhaps in the middle of a packet that heartwheel writes past the library. The library would then
 * also have a message in flight. This connection has no subscription, but some brokers subscribe their clients by
 * themselves. Messages from such a broker are discarded. The library reads every other packet.
 *
 * Invariant: the next byte of the socket begins a packet, or belongs to a packet whose rest is being skipped. The
 * library reads only when a whole packet of another kind is in the socket. It reads that packet alone, because it has
 * no message in flight.
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
	size_t skip;    /* remaining bytes of a packet that is being discarded */
	size_t awaited; /* how many bytes the socket must contain before the next read can succeed */
	unsigned char seen[HW_RECEIVE_PEEK];
};

/* A connection is up, or lost: resets the state. */
void hw_acks_begin(struct hw_acks *a);
/* Like hw_link_read(), for an open link. */
enum hw_link_read hw_acks_read(struct hw_acks *a);

#endif
