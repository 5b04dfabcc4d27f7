/* SPDX-License-Identifier: MIT */
/*
 * Protects the library from malformed packets, on MQTT 5 connections without TLS. Each packet is checked (properties.h)
 * while it is still in the socket, and the library reads only packets that passed. A message may have more properties
 * than the socket can hold. Such a message is discarded, and the library does not read it.
 *
 * Invariant: the next byte of the socket begins a packet, or belongs to a message that is being discarded, or the
 * library is reading the payload of a checked PUBLISH with QoS 0 or 1. The library has read that payload when it calls
 * a callback or returns an error.
 */
#ifndef HW_MQTT_GUARD_H
#define HW_MQTT_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "mqtt/why.h"

#define HW_GUARD_PROPERTIES_KIB 128 /* a message whose topic and properties are longer is discarded */
#define HW_TOO_LONG_TOPIC       124 /* a longer topic is cut, and "..." follows */

/* A message that is discarded. */
struct hw_too_long {
	char topic[HW_TOO_LONG_TOPIC + sizeof("...")];
	bool retained;
	size_t size; /* of the packet */
	size_t left; /* bytes that are not discarded yet; 0: no message is being discarded */
	unsigned id; /* of the packet, which must be acknowledged; 0: QoS 0 */
};

struct hw_guard {
	struct hw_too_long too_long;
	unsigned sound; /* number of checked whole packets at the start of the socket's data */
	bool midway;    /* the library is within a payload */
	bool awaits;    /* a packet is incomplete: the socket becomes readable only when enough bytes for the check
	                 * are here */
};

enum hw_guard_answer {
	HW_GUARD_PASS,    /* the library may read one packet */
	HW_GUARD_WAIT,    /* the library must wait: too few bytes are here, or none */
	HW_GUARD_STOP,    /* the library must never read this data; `why` has the reason */
	HW_GUARD_TOO_LONG /* the caller must discard a message: `too_long` */
};

/* Called before each read of the library, unless a message is being discarded. At the end of the stream, and after an
 * error, the library may read. */
enum hw_guard_answer hw_guard_check(struct hw_guard *g, int fd, struct hw_why *why);
/* Called after each read of the library. `progress`: a callback ran. */
void hw_guard_has_read(struct hw_guard *g, bool progress);

#endif
