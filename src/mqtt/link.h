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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/backoff.h"
#include "mqtt/guard.h"
#include "mqtt/mqtt.h"
#include "mqtt/why.h"

struct mosquitto;

enum hw_link_read {
	HW_LINK_LOST = -1, /* `why` says why */
	HW_LINK_DRAINED,   /* nothing more to read now */
	HW_LINK_MORE,      /* the budget is used up */
	HW_LINK_NO_ROOM    /* `has_room` said no */
};

/* What the CONNACK says that the broker takes. MQTT 3.1.1 says none of it: then these are the most there is. */
struct hw_granted {
	unsigned receive_max; /* QoS 1 messages that wait for their acknowledgement */
	unsigned packet_max;  /* bytes; 0: no limit was told */
	int qos_max;
	bool retain;
	bool shared; /* subscriptions */
};

struct hw_link {
	struct hw_mqtt_conf conf; /* with strings of its own */
	void *owner;
	/* Sets the owner's callbacks and will on a new handle, whose user data is the link. 0, or not with
	 * hw_why_say() */
	int (*prepare)(struct hw_link *l);
	bool (*has_room)(void *owner); /* asked before each read; NULL: always */
	/* Whether what was sent last may be what the broker minds, if it closes the connection now. NULL: never. */
	bool (*is_suspect)(void *owner);
	/* Whether the last byte on the wire may be one within a packet that the owner writes past the library, which
	 * must then write none. NULL: never. */
	bool (*is_midway)(void *owner);

	struct mosquitto *m;
	enum hw_link_state state;
	struct hw_guard guard;
	struct hw_granted granted;
	uint64_t progress; /* counted up by every callback: tells a read that brought something from one that did not */
	int64_t opened_ns, up_ns; /* 0: not */
	int64_t misc_ns;          /* when the library last saw to the keepalive */

	struct hw_why why; /* of the last failure */
	struct hw_backoff backoff;
	int64_t retry_ns; /* when to open next */
};

/* Copies `conf`. 0 or -ENOMEM. */
int hw_link_init(struct hw_link *l, const struct hw_mqtt_conf *conf);
void hw_link_fini(struct hw_link *l);

/*
 * Whether the socket is all there is to the connection, so that packets may be read and written past the library: there
 * is no TLS, and the library reads no further than to the end of a packet (2.1 has a buffer of its own).
 */
bool hw_link_is_bare(const struct hw_link *l);

/* Resolves, connects (both may block) and sends CONNECT. 0, or -1 with `why`. */
int hw_link_open(struct hw_link *l);
int hw_link_socket(const struct hw_link *l);
bool hw_link_wants_write(const struct hw_link *l);
/* Reads about `budget` packets. Callbacks run in here. */
enum hw_link_read hw_link_read(struct hw_link *l, unsigned budget);
/* One packet, by the library, or as much of it as there is. Unlike hw_link_read() it may be mixed with reads past the
 * library. */
enum hw_link_read hw_link_read_one(struct hw_link *l);
/* 0, or -1 with `why`. */
int hw_link_write(struct hw_link *l);
/*
 * To be called at each wake-up while open, and at the latest when hw_link_rest_ms() is over. `drained`: everything that
 * had arrived has been read; only then the library may judge by a missing PINGRESP. Otherwise the link is kept alive in
 * another way. While the owner is midway it waits. 0, or -1 with `why`.
 */
int hw_link_tend(struct hw_link *l, int64_t now_ns, bool drained);
/* For how long an open link need not be tended: a quarter of the keepalive, since it was last. */
int hw_link_rest_ms(const struct hw_link *l, int64_t now_ns);
/* An acknowledgement that takes this long will not come, and would keep its place for ever: true, with `why`. */
bool hw_link_unanswered(struct hw_link *l, int64_t since_ns, int64_t now_ns);
/* A CONNACK or SUBACK that does not come: true, with `why`. */
bool hw_link_overdue(struct hw_link *l, int64_t now_ns);

/* Everything asked for was granted. */
void hw_link_up(struct hw_link *l, int64_t now_ns);
/* Closes without a DISCONNECT and plans the next attempt. True if `why` should be told. */
bool hw_link_down(struct hw_link *l, int64_t now_ns);
/* Closes one whose failure was an answer: it is opened again at once, and nothing need be said. */
void hw_link_again(struct hw_link *l, int64_t now_ns);
/* Says DISCONNECT (so that the broker drops the will), unless the owner is midway, and closes. */
void hw_link_leave(struct hw_link *l);

/* Whether what mosquitto_publish() returned means the message rather than the connection. */
bool hw_link_is_of_message(int rc);
/* Sets `why` from what a library call returned, with the errno it left. */
void hw_link_lost(struct hw_link *l, int rc, int err);
/* ... from the errno of a system call on its socket, as the library tells it. */
void hw_link_failed(struct hw_link *l, int err);

#endif
