/* SPDX-License-Identifier: MIT */
/*
 * What the loop and the publisher's thread hand over to each other: statuses and barriers from the loop, answers back,
 * each in a ring of its own; and the loop's orders.
 *
 * A connection has a number, which the loop learns with UP and puts on whatever it hands over: what was meant for an
 * earlier connection is thrown away, and what was not acknowledged when the connection went needs no answer, since DOWN
 * says it of all at once.
 */
#ifndef HW_MQTT_HANDOVER_H
#define HW_MQTT_HANDOVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/barrier.h"
#include "mqtt/mqtt.h"
#include "mqtt/orders.h"
#include "mqtt/ring.h"

#define HW_HANDOVER_STATUS_BYTES  (2 << 20)
#define HW_HANDOVER_BARRIER_BYTES (1 << 16) /* canaries are in line with them */

struct hw_handover {
	struct hw_ring *statuses, *barriers, *answers;
	struct hw_orders orders;
	atomic_int_least64_t stop_by_ns;  /* monotonic; to be set before HW_ORDER_STOP is given */
	atomic_bool lacks_qos;            /* see hw_publisher_lacks_qos() */
	atomic_bool broker_answers;       /* the broker has answered another connection */
	atomic_int_least64_t answered_ns; /* see hw_publisher_answered_ns() */

	/* the thread's own: what goes with every answer */
	uint32_t connection; /* counts the times it was up */
	unsigned window;     /* statuses in flight that the broker grants */
	unsigned untold;     /* answers that the loop cannot see yet */
};

/* In `statuses`. Behind it stand the topic with its NUL and the payload. */
struct hw_handover_status {
	uint64_t token, subject;
	uint32_t connection;
	uint32_t topic_size; /* with its NUL. 0: too long, to be refused */
	uint32_t payload_size;
	uint32_t expiry_s;
	uint8_t qos;
	bool retain;
};

/* In `barriers`: one, or a canary, behind which its topic and payload stand. They share a line, so that no barrier
 * overtakes a canary. */
struct hw_handover_barrier {
	struct hw_barrier barrier;
	uint64_t token;
	uint32_t connection;
	bool shared;         /* on the share topic */
	uint32_t topic_size; /* of a canary, with its NUL; 0: it is a barrier */
	uint32_t payload_size;
};

/* In `answers`. */
struct hw_handover_answer {
	uint64_t token;
	uint32_t kind, connection, window, reason;
	char text[]; /* with its NUL */
};

/* Readies zeroed storage. 0 or -ENOMEM; hw_handover_fini() in either case. */
int hw_handover_init(struct hw_handover *h);
void hw_handover_fini(struct hw_handover *h);

/* The thread's side. An answer; the loop sees it after hw_handover_tell(). `reason`: the broker's, or 0. */
void hw_handover_answer(struct hw_handover *h, enum hw_publisher_event_kind kind, uint64_t token, int reason,
                        const char *text);
void hw_handover_tell(struct hw_handover *h);

#endif
