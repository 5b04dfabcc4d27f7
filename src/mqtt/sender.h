/* SPDX-License-Identifier: MIT */
/*
 * The publisher's thread: it has the connection to the broker, and sends statuses, barriers and canaries on it. Only
 * that thread uses this struct. The loop communicates with the thread only through the handover.
 */
#ifndef HW_MQTT_SENDER_H
#define HW_MQTT_SENDER_H

#include <stdbool.h>
#include <stddef.h>

#include "mqtt/acks.h"
#include "mqtt/echoes.h"
#include "mqtt/handover.h"
#include "mqtt/limits.h"
#include "mqtt/link.h"
#include "mqtt/low_water.h"
#include "mqtt/outlet.h"
#include "mqtt/statuses.h"

struct hw_sender {
	struct hw_handover *handover; /* borrowed */
	struct hw_link link;
	struct hw_limits limits;
	struct hw_outlet outlet;
	struct hw_acks acks; /* of messages sent past the library */
	struct hw_statuses statuses;
	struct hw_echoes echoes;
	struct hw_low_water low_water;
	char *will_topic;
	void *will_payload;
	size_t will_len;
	bool waited; /* the last turn began with wait_briefly() */
	bool more;   /* there may be more data than poll() reports */
};

/* Initialises storage that is all zero, in the loop's thread. Copies all arguments except the handover. Returns 0 or
 * -ENOMEM. Call hw_sender_fini() only after 0. */
int hw_sender_init(struct hw_sender *s, struct hw_handover *handover, const struct hw_mqtt_conf *conf,
                   const char *will_topic, const void *will_payload, size_t will_len);
void hw_sender_fini(struct hw_sender *s);
/* Runs until HW_ORDER_STOP is given. Then ends when all messages are acknowledged, or when the time for that is
 * over. */
void hw_sender_run(struct hw_sender *s);

#endif
