/* SPDX-License-Identifier: MIT */
/*
 * An eviction disconnects another node's publisher from the broker. The new owner of a partition starts it if the other
 * node's presence still claims the partition with a lesser fencing token. The eviction opens a connection with that
 * publisher's client id. So the broker closes the publisher's connection, and discards the unread data of that
 * connection. The eviction then publishes `offline` as that node's presence, because not every broker publishes the
 * will in this case. Then it disconnects.
 *
 * Cost: one connection and one message, in a thread that ends by itself. The loop never blocks.
 */
#ifndef HW_MQTT_EVICT_H
#define HW_MQTT_EVICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/mqtt.h"

struct hw_evict; /* opaque */

enum hw_eviction {
	/* The publisher is disconnected, and the broker has acknowledged the presence. Before MQTT 5, a broker may
	 * acknowledge a message that it discards */
	HW_EVICTION_TAKEN,
	HW_EVICTION_REFUSED, /* the broker refuses that client id, or the message */
	HW_EVICTION_FAILED   /* the broker is unreachable, does not answer, or has closed the connection: try again */
};

/*
 * Begins an eviction. `conf` has the client id of the other publisher. `topic` and `payload` are that publisher's
 * presence, which is published with the retain flag. All are copied. The eviction ends within `timeout_ms`, or later if
 * the connect blocks in name resolution until then. Returns 0 or -errno.
 */
int hw_evict_start(struct hw_evict **out, const struct hw_mqtt_conf *conf, const char *topic, const void *payload,
                   size_t len, int64_t timeout_ms);
/* Readable when the eviction has ended. */
int hw_evict_fd(const struct hw_evict *e);
/* Returns whether the eviction has ended, and its result. Unless the result is TAKEN, *why contains the reason and the
 * remedy. It is valid until hw_evict_end(). */
bool hw_evict_is_over(const struct hw_evict *e, enum hw_eviction *how, const char **why);
/* Frees the eviction. If it has not ended, it may still publish its message. NULL is allowed. */
void hw_evict_end(struct hw_evict *e);

#endif
