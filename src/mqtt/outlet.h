/* SPDX-License-Identifier: MIT */
/*
 * Where the publisher's messages go out. Belongs to the publisher's thread.
 *
 * The library writes each message by itself and keeps a copy of it. So where hw_link_is_bare(), messages are put into
 * packets here, one behind the other, and all of them are written together, past the library; their acknowledgements
 * are read past it as well (acks.h). CONNECT, keepalive and DISCONNECT stay the library's own. Elsewhere every message
 * is the library's.
 *
 * Invariants, past the library: either all messages of a connection go past it, or none, so that it has none in flight
 * and no packet id is anybody else's. An id is used again only when its message was acknowledged. No more are
 * unacknowledged than the broker grants. What is not written yet is bounded: see hw_outlet_room(). And no packet is
 * written within another: this waits while the library has something to write, and while something waits here the
 * library must not begin (the link's `is_midway`).
 */
#ifndef HW_MQTT_OUTLET_H
#define HW_MQTT_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/link.h"
#include "mqtt/packet.h"

#define HW_OUTLET_UNSENT 256   /* messages with QoS 0 that may wait to be written */
#define HW_OUTLET_QUOTA  1000  /* that may wait for their acknowledgement, if the broker grants them */
#define HW_OUTLET_IDS    65536 /* there are none above */

struct hw_outlet {
	struct hw_link *link; /* borrowed */
	bool past;            /* past the library */

	/* all that follows only past the library */
	void (*written)(void *owner, int mid); /* a message with QoS 0 is on its way; with the link's owner */
	unsigned quota, unanswered;            /* messages with QoS 1: how many may be, and are */
	uint16_t id;                           /* the last that was given */
	uint64_t used[HW_OUTLET_IDS / 64];     /* a bit for each id */
	unsigned n_unsent;                     /* messages with QoS 0 that are told when all is written */
	unsigned char *bytes; /* whole packets, but for the beginning of the first that is written already */
	size_t waiting;       /* bytes */
	int64_t moved_ns;     /* when some were written last, or the first began to wait */
};

/* Readies zeroed storage for a link that has been readied. 0 or -ENOMEM; hw_outlet_fini() in either case. */
int hw_outlet_init(struct hw_outlet *o, struct hw_link *l, void (*written)(void *owner, int mid));
void hw_outlet_fini(struct hw_outlet *o);
/* A connection is up, or gone: nothing waits, nothing is unanswered. */
void hw_outlet_begin(struct hw_outlet *o);

/* Whether one more message may be published now, of any size and kind. */
bool hw_outlet_room(const struct hw_outlet *o);
/*
 * Publishes one, or has it wait for hw_outlet_write(). `mid` is what its answer will name; it may come before this
 * returns. As mosquitto_publish().
 */
int hw_outlet_publish(struct hw_outlet *o, const struct hw_message *m, int *mid, int64_t now_ns);
/* The broker has acknowledged this id. Whether it had been asked to. */
bool hw_outlet_answered(struct hw_outlet *o, uint16_t id);
/* Whether something waits to be written. Part of its first packet may be written already: where packets begin in it is
 * not known, nor is it needed, since soon all of it is written, or hw_outlet_overdue(). */
bool hw_outlet_waits(const struct hw_outlet *o);
/* Writes as much as can be. Calls `written`, which must not publish. 0, or -1 when the connection is lost. */
int hw_outlet_write(struct hw_outlet *o, int64_t now_ns);
/* The broker takes nothing: true, with the link's `why`. */
bool hw_outlet_overdue(struct hw_outlet *o, int64_t now_ns);

#endif
