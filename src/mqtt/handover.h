/* SPDX-License-Identifier: MIT */
/*
 * The exchange between the loop and the publisher's thread. The loop hands over statuses and barriers, and the thread
 * returns answers. Each kind has its own ring. The loop also gives orders.
 *
 * Each connection has a number. The loop gets the number with the event UP, and puts it on each message that it hands
 * over. The thread discards messages for an earlier connection. When a connection is lost, the event DOWN stands for
 * the answers to all its unacknowledged messages.
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
#define HW_HANDOVER_BARRIER_BYTES (1 << 16) /* shared with the canaries */

struct hw_handover {
	struct hw_ring *statuses, *barriers, *answers;
	struct hw_orders orders;
	atomic_int_least64_t stop_by_ns;  /* deadline of the stop, monotonic; set before HW_ORDER_STOP is given */
	atomic_bool lacks_qos;            /* see hw_publisher_is_without_qos() */
	atomic_bool broker_answers;       /* the broker has answered on another connection */
	atomic_int_least64_t answered_ns; /* see hw_publisher_answered_ns() */

	/* Used by the thread only. The thread copies these values into each answer. */
	uint32_t connection;  /* number of the connection */
	unsigned window;      /* statuses that may be in flight, as the broker grants */
	unsigned unannounced; /* answers that are not visible to the loop yet */
};

/* An entry of `statuses`. The topic with its NUL and the payload follow it. */
struct hw_handover_status {
	uint64_t publish_id, subject;
	uint32_t connection;
	uint32_t topic_size; /* size of the topic with its NUL; 0: the status is too long, and the thread refuses it */
	uint32_t payload_size;
	uint32_t expiry_s;
	uint8_t qos;
	bool retain;
};

/* An entry of `barriers`: a barrier, or a canary, which is followed by its topic and payload. Both kinds share a ring,
 * so that they are sent in order. */
struct hw_handover_barrier {
	struct hw_barrier barrier;
	uint64_t publish_id;
	uint32_t connection;
	bool shared;         /* to be sent on the share topic */
	uint32_t topic_size; /* of a canary, with its NUL; 0: this is a barrier */
	uint32_t payload_size;
};

/* An entry of `answers`. */
struct hw_handover_answer {
	uint64_t publish_id;
	uint32_t kind, connection, window, reason;
	char text[]; /* with its NUL */
};

/* Initialises storage that is all zero. Returns 0 or -ENOMEM. The caller must call hw_handover_fini() in both cases. */
int hw_handover_init(struct hw_handover *h);
void hw_handover_fini(struct hw_handover *h);

/* For the thread: adds an answer. The loop can read it after hw_handover_notify(). `reason`: the broker's reason code,
 * or 0. */
void hw_handover_answer(struct hw_handover *h, enum hw_publisher_event_kind kind, uint64_t publish_id, int reason,
                        const char *text);
void hw_handover_notify(struct hw_handover *h);

#endif
