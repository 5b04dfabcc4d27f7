/* SPDX-License-Identifier: MIT */
/*
 * What readers and publisher share: one connection to the broker with its options, credentials and TLS; when to try
 * again; and why it failed, in words that say what to do.
 *
 * A link belongs to one thread and is used by it alone. Every attempt makes a new library handle, so that nothing of a
 * lost connection (packets half sent, messages the library would send again by itself) reaches the next one.
 */
#ifndef HW_MQTT_LINK_H
#define HW_MQTT_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/mqtt.h"

struct hw_ahead;
struct hw_packet;
struct mosquitto;

#define HW_LINK_WHY 256

enum hw_link_state {
	HW_LINK_CLOSED,
	HW_LINK_OPENING, /* connected, waiting for CONNACK */
	HW_LINK_OPEN
};

enum hw_link_read {
	HW_LINK_LOST = -1, /* `why` says why */
	HW_LINK_DRAINED,   /* nothing more to read now */
	HW_LINK_MORE,      /* the budget is used up */
	HW_LINK_NO_ROOM    /* `has_room` said no */
};

struct hw_link {
	struct hw_mqtt_conf conf; /* with strings of its own */
	void *owner;
	/* Sets the owner's callbacks and will on a new handle, whose user data is the link. 0, or not with
	 * hw_link_say() */
	int (*prepare)(struct hw_link *l);
	bool (*has_room)(void *owner); /* asked before each read; NULL: always */
	/* Takes a message that did not come through the library, or has no room: see ahead.h. NULL: none is to. */
	bool (*take)(void *owner, const struct hw_packet *message);

	struct mosquitto *m;
	struct hw_ahead *ahead; /* NULL: the library reads everything */
	enum hw_link_state state;
	unsigned receive_max; /* of CONNACK: how many QoS 1 messages the broker takes unacknowledged */
	uint64_t progress; /* counted up by every callback: tells a read that brought something from one that did not */
	int64_t opened_ns, up_ns; /* 0: not */
	int64_t misc_ns;          /* when the library last saw to the keepalive */

	bool explained;         /* `why` was set by who knew best */
	char why[HW_LINK_WHY];  /* of the last failure */
	char said[HW_LINK_WHY]; /* what was told of it */
	char tls[128];          /* what TLS minded first during the handshake */
	long tls_verdict;       /* on the broker's certificate; 0: none */
	unsigned failures;      /* since the last good connection */
	bool closed_soon;       /* by the broker: the last connection that it closed */
	int64_t retry_ns;       /* when to open next */
};

/* Copies `conf`. 0 or -ENOMEM. */
int hw_link_init(struct hw_link *l, const struct hw_mqtt_conf *conf);
void hw_link_fini(struct hw_link *l);

/* Resolves, connects (both may block) and sends CONNECT. 0, or -1 with `why`. */
int hw_link_open(struct hw_link *l);
int hw_link_socket(const struct hw_link *l);
bool hw_link_wants_write(const struct hw_link *l);
/* Reads about `budget` packets, messages ahead of the library where that can be: see ahead.h. Callbacks run in here. */
enum hw_link_read hw_link_read(struct hw_link *l, unsigned budget);
/* One packet, by the library, or as much of it as there is. */
enum hw_link_read hw_link_read_one(struct hw_link *l);
/* 0, or -1 with `why`. */
int hw_link_write(struct hw_link *l);
/*
 * To be called at each wake-up while open, and at the latest when hw_link_rest_ms() is over. `drained`: everything that
 * had arrived has been read; only then the library may judge by a missing PINGRESP. Otherwise the link is kept alive in
 * another way. 0, or -1 with `why`.
 */
int hw_link_tend(struct hw_link *l, int64_t now_ns, bool drained);
/* For how long an open link need not be tended: a quarter of the keepalive, since it was last. */
int hw_link_rest_ms(const struct hw_link *l, int64_t now_ns);
/* A CONNACK or SUBACK that does not come: true, with `why`. */
bool hw_link_overdue(struct hw_link *l, int64_t now_ns);

/* Everything asked for was granted. */
void hw_link_up(struct hw_link *l, int64_t now_ns);
/* Closes without a DISCONNECT and plans the next attempt. True if `why` should be told. */
bool hw_link_down(struct hw_link *l, int64_t now_ns);
/* Says DISCONNECT (so that the broker drops the will) and closes. */
void hw_link_leave(struct hw_link *l);

/* Sets `why`, unless the reason is known already. */
void hw_link_say(struct hw_link *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets `why` from what a library call returned, with the errno it left. */
void hw_link_lost(struct hw_link *l, int rc, int err);

int64_t hw_link_clock(void); /* CLOCK_MONOTONIC, ns */

/* Starts a thread that blocks all signals. 0 or -errno. */
int hw_thread_start(pthread_t *t, void *(*main)(void *), void *arg, const char *name);
/* Joins, or leaves the thread to itself when it has not ended after `timeout_ms`: then -ETIMEDOUT. */
int hw_thread_end(pthread_t t, int64_t timeout_ms);

#endif
