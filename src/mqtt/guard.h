/* SPDX-License-Identifier: MIT */
/*
 * What stands between the broker's packets and the library on a connection with MQTT 5 and without TLS: each packet is
 * checked (properties.h) while it lies in the socket, and the library reads only checked ones.
 *
 * Invariant: the socket stands at the beginning of a packet, or the library is within the payload of a checked PUBLISH
 * with QoS 0 or 1. A callback, or an error, ends each of those.
 */
#ifndef HW_MQTT_GUARD_H
#define HW_MQTT_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "mqtt/why.h"

struct hw_guard {
	unsigned sound; /* whole packets at the beginning of the socket's bytes that were checked */
	bool midway;    /* the library is within a payload */
	bool awaits;    /* the socket is not readable before a cut packet can be checked */
};

enum hw_guard_answer {
	HW_GUARD_PASS, /* the library may read one packet */
	HW_GUARD_WAIT, /* it must wait: no bytes have come, or too few */
	HW_GUARD_STOP  /* it must never read what lies there: `why` says why */
};

/* Before the library reads from this socket. At its end, and after an error, the library may read. */
enum hw_guard_answer hw_guard_check(struct hw_guard *g, int fd, struct hw_why *why);
/* After it did. `progress`: a callback ran. */
void hw_guard_has_read(struct hw_guard *g, bool progress);

#endif
