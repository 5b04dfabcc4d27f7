/* SPDX-License-Identifier: MIT */
/*
 * A link: one connection to the broker, with its options, credentials and TLS, the time of the next attempt, and the
 * reason of the last failure with its remedy. Readers and the publisher use it.
 *
 * A link is used by one thread only. Every attempt makes a new library handle. So no state of a lost connection, such
 * as half-sent packets or messages to be resent, affects the next one.
 */
#ifndef HW_MQTT_LINK_H
#define HW_MQTT_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/backoff.h"
#include "mqtt/guard.h"
#include "mqtt/mqtt.h"
#include "mqtt/why.h"

struct mosquitto;

enum hw_link_read {
	HW_LINK_LOST = -1, /* `why` has the reason */
	HW_LINK_DRAINED,   /* no more data for now */
	HW_LINK_MORE,      /* the budget is used up */
	HW_LINK_NO_ROOM    /* `has_room` returned false */
};

/* The limits that the CONNACK reports. MQTT 3.1.1 reports no limits, so each has its maximum. */
struct hw_granted {
	int keepalive_s;      /* the configured keepalive, or that of the broker if the broker prescribes one */
	unsigned receive_max; /* QoS 1 messages that may be unacknowledged */
	unsigned packet_max;  /* bytes; 0: not reported */
	int qos_max;
	bool retain;
	bool shared; /* shared subscriptions are available */
};

struct hw_link {
	struct hw_mqtt_conf conf; /* its strings are copies */
	void *owner;
	/* Sets the owner's callbacks and will on a new handle; the handle's user data is the link. Returns 0, or
	 * non-zero after hw_why_set() */
	int (*prepare)(struct hw_link *l);
	bool (*has_room)(void *owner); /* called before each read; NULL: there is always room */
	/* Whether a message that was just sent may be the reason if the broker closes the connection now. NULL: never.
	 */
	bool (*is_suspect)(void *owner);
	/* Whether the owner may have written only a part of a packet, past the library. The library must not write
	 * then. NULL: never. */
	bool (*is_midway)(void *owner);
	/* Called when the link begins to discard a message that is too long for the guard. NULL: no call. */
	void (*on_too_long)(void *owner, const struct hw_too_long *message);

	struct mosquitto *m;
	enum hw_link_state state;
	struct hw_guard guard;
	struct hw_granted granted;
	uint64_t progress;        /* Each callback adds 1. So the owner can see whether a read has called a callback. */
	int64_t opened_ns, up_ns; /* when the connection was opened, and when it was up; 0: not yet */
	int64_t misc_ns;          /* when the library last checked the keepalive */

	struct hw_why why; /* of the last failure */
	struct hw_backoff backoff;
	int64_t retry_ns; /* when to open next */
};

/* Copies `conf`. 0 or -ENOMEM. */
int hw_link_init(struct hw_link *l, const struct hw_mqtt_conf *conf);
void hw_link_fini(struct hw_link *l);

/*
 * Whether packets may be read and written past the library: nothing between the socket and this code may hold bytes
 * back. So there must be no TLS, and the library must read only to the end of a packet (2.1 has a buffer of its own).
 * hw_link_layer() returns what holds bytes back, or NULL.
 */
bool hw_link_is_bare(const struct hw_link *l);
const char *hw_link_layer(const struct hw_mqtt_conf *conf);

/* Resolves the name, connects (both may block) and sends CONNECT. Returns -1 on failure, with the reason in `why`. */
int hw_link_open(struct hw_link *l);
int hw_link_socket(const struct hw_link *l);
bool hw_link_wants_write(const struct hw_link *l);
/* Reads about `budget` packets; calls callbacks. */
enum hw_link_read hw_link_read(struct hw_link *l, unsigned budget);
/* Lets the library read one packet, or the part of it that is in the socket. Between two calls of this function, the
 * owner may read past the library; with hw_link_read() it must not. */
enum hw_link_read hw_link_read_one(struct hw_link *l);
/* 0, or -1 with `why`. */
int hw_link_write(struct hw_link *l);
/*
 * Keeps the connection alive. Called at each wake-up while it is open, and at the latest after hw_link_rest_ms().
 * `drained`: all data in the socket has been read. Only then may the library check for a missing PINGRESP; otherwise
 * another packet keeps the connection alive. While the owner has written a part of a packet, nothing is sent. Returns
 * -1 if the connection is lost, with the reason in `why`.
 */
int hw_link_tend(struct hw_link *l, int64_t now_ns, bool drained);
/* Returns how long an open connection does not need hw_link_tend(): a quarter of the keepalive after the last call. */
int hw_link_rest_ms(const struct hw_link *l, int64_t now_ns);
/* Returns true, and sets `why`, if an acknowledgement is overdue. The broker will not send it any more, and its message
 * would keep a place in the window. */
bool hw_link_unanswered(struct hw_link *l, int64_t since_ns, int64_t now_ns);
/* True, with `why`, if a CONNACK or SUBACK is overdue. */
bool hw_link_overdue(struct hw_link *l, int64_t now_ns);

/* All subscriptions that were requested are granted. */
void hw_link_up(struct hw_link *l, int64_t now_ns);
/* Closes without a DISCONNECT and schedules the next attempt. Returns true if `why` should be reported. */
bool hw_link_down(struct hw_link *l, int64_t now_ns);
/* Closes a connection that failed as a test. It is opened again at once, without a report. */
void hw_link_again(struct hw_link *l, int64_t now_ns);
/* Sends DISCONNECT, so that the broker discards the will, and closes. If the owner has written a part of a packet, no
 * DISCONNECT is sent. */
void hw_link_leave(struct hw_link *l);

/* Whether a result of mosquitto_publish() concerns the message and not the connection. */
bool hw_link_is_of_message(int rc);
/* Sets `why` from the result of a library call and from errno. */
void hw_link_lost(struct hw_link *l, int rc, int err);
/* Sets `why` from the errno of a system call on the link's socket, as the library would report it. */
void hw_link_failed(struct hw_link *l, int err);

#endif
