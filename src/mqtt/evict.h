/* SPDX-License-Identifier: MIT */
/*
 * An eviction: disconnects another node's publisher. The new owner of a partition starts it if the other node's
 * presence still claims the partition with a lesser fencing token. The eviction opens a connection with that
 * publisher's client id. So the broker ends the publisher's connection and discards the data on it that it has not
 * read. Then the eviction publishes `offline` as that node's presence, because not every broker publishes the will in
 * this case, and disconnects.
 *
 * Cost: one connection and one message, in a thread that ends by itself. The loop's side never blocks.
 */
#ifndef HW_MQTT_EVICT_H
#define HW_MQTT_EVICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/mqtt.h"

struct hw_evict; /* opaque */

enum hw_eviction {
	/* the publisher is disconnected, and the broker has acknowledged the presence. Before MQTT 5, the broker
	 * also acknowledges a message that it then discards */
	HW_EVICTION_TAKEN,
	HW_EVICTION_REFUSED, /* the broker refuses that client id, or the message */
	HW_EVICTION_FAILED   /* the broker is unreachable, does not answer, or has closed the connection: try again */
};

/*
 * Begins an eviction. `conf` has the client id of the other publisher; `topic` and `payload` are its presence, to be
 * retained. All are copied. The eviction ends within `timeout_ms`, or once a connect that blocks in name resolution
 * returns. 0 or -errno.
 */
int hw_evict_start(struct hw_evict **out, const struct hw_mqtt_conf *conf, const char *topic, const void *payload,
                   size_t len, int64_t timeout_ms);
/* Readable when the eviction has ended. */
int hw_evict_fd(const struct hw_evict *e);
/* Whether the eviction has ended, and its result. Unless the result is TAKEN, *why has the trouble and the remedy,
 * valid until hw_evict_end(). */
bool hw_evict_is_over(const struct hw_evict *e, enum hw_eviction *how, const char **why);
/* Frees it. If it has not ended, its message may still be published, or not. NULL is allowed. */
void hw_evict_end(struct hw_evict *e);

#endif
