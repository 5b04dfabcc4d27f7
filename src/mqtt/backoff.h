/* SPDX-License-Identifier: MIT */
/*
 * When to try a connection again, by how the last one failed. A broker that is only away is looked for every second or
 * two, however long it is away and however often it restarts: a minute of back-off would be a minute without sight. A
 * client that is refused, or takes turns with another client of the same id, waits longer each time.
 *
 * A client that is thrown out by a successor of the same id is told so by some brokers in MQTT 5 (not by mosquitto
 * 2.0), and by none in 3.1.1. Else it is concluded: the connection was closed soon after it was up, KICKS times in a
 * row, and each time the broker took the next one at once. A broker that restarts is away in between.
 *
 * This is no proof: a proxy, or a broker that refuses what a client does, may close connections in the same way. So the
 * monitor logs the suspicion and waits longer, but never stops because of it.
 *
 * Pure: no clock and no random numbers of its own.
 */
#ifndef HW_MQTT_BACKOFF_H
#define HW_MQTT_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

enum hw_fault {
	HW_FAULT_AWAY,       /* nobody listens there, or an answer is overdue on a connection that had worked */
	HW_FAULT_CLOSED,     /* the broker closed a connection that it had accepted */
	HW_FAULT_UNREACHED,  /* names, the network, TLS, a server that says nothing */
	HW_FAULT_UNANSWERED, /* the connection was closed in the place of a CONNACK */
	HW_FAULT_REFUSED,    /* a CONNACK or a SUBACK that says no */
	HW_FAULT_TAKEN       /* another client has connected with the same id */
};

/* All zero at first. */
struct hw_backoff {
	unsigned tries;    /* that failed since the link was last up for a second */
	bool at_once;      /* the next one follows a loss at once: it tells whether the broker is still there */
	unsigned refusals; /* in a row */
	unsigned kicks;    /* in a row */
};

/* The broker has closed a connection that was up for `up_ns`, without a reason. True if another client with the same id
 * must have made it do so. */
bool hw_backoff_kicked(struct hw_backoff *b, int64_t up_ns);
/* How long to wait in ms, after a link that had been up for `up_ns` (0: it never was). `random`: any number. */
int64_t hw_backoff_ms(struct hw_backoff *b, enum hw_fault fault, int64_t up_ns, uint32_t random);

#endif
