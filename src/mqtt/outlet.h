/* SPDX-License-Identifier: MIT */
/*
 * Sends the publisher's messages. Used by the publisher's thread only.
 *
 * The library writes each message separately and keeps a copy. So if hw_link_is_bare(), this code encodes the messages
 * one after the other and writes them together, past the library. Their acknowledgements are also read past the library
 * (acks.h). The library still handles CONNECT, keepalive and DISCONNECT. Otherwise the library sends every message.
 *
 * Invariants past the library:
 *
 * - Either all messages of a connection go past the library, or none does. So the library has no message in flight and
 *   uses no packet id.
 * - A packet id is used again only after its message was acknowledged.
 * - At most as many messages are unacknowledged as the broker grants.
 * - The unwritten bytes are limited: see hw_outlet_room().
 * - No packet is written within another. The outlet waits while the library has something to write. While bytes wait
 *   here, the library must not write (the link's `is_midway`).
 */
#ifndef HW_MQTT_OUTLET_H
#define HW_MQTT_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/link.h"
#include "mqtt/packet.h"

#define HW_OUTLET_UNSENT 256   /* QoS 0 messages that may wait to be written */
#define HW_OUTLET_QUOTA  1000  /* messages that may be unacknowledged, if the broker grants as many */
#define HW_OUTLET_IDS    65536 /* all packet ids are smaller */

struct hw_outlet {
	struct hw_link *link; /* borrowed */
	bool past;            /* messages go past the library */

	/* the members below are used only then */
	void (*written)(void *owner, int mid); /* called with the link's owner when a message with QoS 0 was written */
	unsigned quota, unanswered;            /* messages with QoS 1: how many may be unanswered, and how many are */
	uint16_t id;                           /* the last packet id used */
	uint64_t used[HW_OUTLET_IDS / 64];     /* a bit per packet id in use */
	unsigned n_unsent;                     /* QoS 0 messages that are reported once all is written */
	unsigned char *bytes;                  /* bytes of unwritten packets; the first packet may be written in part */
	size_t waiting;                        /* bytes */
	int64_t moved_ns; /* when bytes were last written, or, if none were, when the first waiting byte was added */
};

/* Initialises storage that is all zero, for an initialised link. Returns 0 or -ENOMEM. The caller must call
 * hw_outlet_fini() in both cases. */
int hw_outlet_init(struct hw_outlet *o, struct hw_link *l, void (*written)(void *owner, int mid));
void hw_outlet_fini(struct hw_outlet *o);
/* A connection is up, or lost: clears all state. */
void hw_outlet_begin(struct hw_outlet *o);

/* Whether another message may be published now. Past the library, the number of unanswered messages and the
 * unwritten bytes are limited. */
bool hw_outlet_room(const struct hw_outlet *o);
/*
 * Publishes a message, or queues it for hw_outlet_write(). *mid identifies the message in its answer, which may come
 * before this function returns. Returns like mosquitto_publish().
 */
int hw_outlet_publish(struct hw_outlet *o, const struct hw_message *m, int *mid, int64_t now_ns);
/* Handles an acknowledgement: frees the packet id. Returns false if no message has this id. */
bool hw_outlet_answered(struct hw_outlet *o, uint16_t id);
/* Whether bytes wait to be written, perhaps from the middle of a packet. Where packets end is not stored, because soon
 * all bytes are written, or hw_outlet_overdue() ends the connection. */
bool hw_outlet_waits(const struct hw_outlet *o);
/* Writes as many bytes as possible. Calls `written` for messages with QoS 0; this callback must not publish. Returns -1
 * if the connection is lost. */
int hw_outlet_write(struct hw_outlet *o, int64_t now_ns);
/* Returns true, and sets the link's `why`, if the broker has accepted no byte for too long. */
bool hw_outlet_overdue(struct hw_outlet *o, int64_t now_ns);

#endif
