/* SPDX-License-Identifier: MIT */
/*
 * Calculates the delay before the next connection attempt from the reason of the last failure. If the broker is only
 * unreachable, the delay is always one or two seconds, because the monitor is blind meanwhile. The delay grows if the
 * broker refuses the client, or if another client with the same id disconnects it again and again.
 *
 * Not every broker reports that another client with the same id has connected: MQTT 3.1.1 has no such report, and
 * mosquitto 2.0 does not send that of MQTT 5. So the monitor assumes another client if this happens TAKEOVERS times in
 * a row: the connection was closed soon after it was up, and the broker accepted the next one at once. A broker that
 * restarts would be unreachable in between.
 *
 * Such closes are no proof: a proxy, or a broker that forbids something that the client does, may close connections in
 * the same way. So the monitor logs the suspicion and waits longer, but never stops trying.
 *
 * Pure: no clock and no random numbers.
 */
#ifndef HW_MQTT_BACKOFF_H
#define HW_MQTT_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

enum hw_fault {
	HW_FAULT_AWAY,      /* no process listens on the broker's port, or a connection that had worked got no answer in
	                     * time */
	HW_FAULT_CLOSED,    /* the broker closed a connection that it had accepted */
	HW_FAULT_UNREACHED, /* name resolution, the network or TLS failed, or the server is silent */
	HW_FAULT_UNANSWERED, /* the connection was closed instead of a CONNACK */
	HW_FAULT_REFUSED,    /* a CONNACK or a SUBACK with a refusal */
	HW_FAULT_TAKEN       /* another client with the same id has connected */
};

/* All zero at first. */
struct hw_backoff {
	unsigned tries;     /* failed attempts since the last connection that was up for a second */
	bool at_once;       /* the next attempt follows at once after a loss, and shows whether the broker is still
	                     * there */
	unsigned refusals;  /* in a row */
	unsigned takeovers; /* in a row */
};

/* Called when the broker has closed a connection without a reason after `up_ns`. Returns true if another client with
 * the same id is the likely cause. */
bool hw_backoff_taken_over(struct hw_backoff *b, int64_t up_ns);
/* Returns the delay in ms before the next attempt, after a link that was up for `up_ns` (0: never). `random`: any
 * number. */
int64_t hw_backoff_ms(struct hw_backoff *b, enum hw_fault fault, int64_t up_ns, uint32_t random);

#endif
