/* SPDX-License-Identifier: MIT */
/*
 * Protects the library from malformed packets, on MQTT 5 connections without TLS. Each packet is checked (properties.h)
 * while it is still in the socket, and the library reads only packets that passed.
 *
 * Invariant: the next byte of the socket begins a packet, or the library is reading the payload of a checked PUBLISH
 * with QoS 0 or 1. The library has read that payload when it calls a callback or returns an error.
 */
#ifndef HW_MQTT_GUARD_H
#define HW_MQTT_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "mqtt/why.h"

struct hw_guard {
	unsigned sound; /* number of checked whole packets at the start of the socket's data */
	bool midway;    /* the library is within a payload */
	bool awaits;    /* a packet is incomplete: the socket becomes readable only when enough bytes for the check
	                 * are here */
};

enum hw_guard_answer {
	HW_GUARD_PASS, /* the library may read one packet */
	HW_GUARD_WAIT, /* the library must wait: too few bytes are here, or none */
	HW_GUARD_STOP  /* the library must never read this data; `why` has the reason */
};

/* Called before each read of the library. At the end of the stream, and after an error, the library may read. */
enum hw_guard_answer hw_guard_check(struct hw_guard *g, int fd, struct hw_why *why);
/* Called after each read of the library. `progress`: a callback ran. */
void hw_guard_has_read(struct hw_guard *g, bool progress);

#endif
