/* SPDX-License-Identifier: MIT */
/*
 * An eviction: cuts another node's publisher off (design 10.5, rule 4). A connection of its own with that publisher's
 * client id makes the broker end that publisher's connection, with all of it that the broker has not read yet; then it
 * says in that node's place that it is offline, since not every broker publishes a will then, and disconnects.
 *
 * One connection and one message, in a thread of its own that ends by itself; the loop's side never blocks.
 */
#ifndef HW_MQTT_EVICT_H
#define HW_MQTT_EVICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/mqtt.h"

struct hw_evict; /* opaque */

enum hw_eviction {
	HW_EVICTION_TAKEN,   /* it is cut off, and the broker has acknowledged that it is offline: before MQTT 5 it
	                        acknowledges also what it then throws away */
	HW_EVICTION_REFUSED, /* the broker lets us not connect with that id, or not publish that */
	HW_EVICTION_FAILED   /* it is away, does not answer, or has closed the connection: worth another try */
};

/*
 * Begins. `conf` with the client id of whoever is cut off; `topic`, `payload`: its presence, to be retained. All is
 * copied. It is over within `timeout_ms`, or as soon as a connect that blocks in name resolution ends. 0 or -errno.
 */
int hw_evict_start(struct hw_evict **out, const struct hw_mqtt_conf *conf, const char *topic, const void *payload,
                   size_t len, int64_t timeout_ms);
/* Readable once it is over. */
int hw_evict_fd(const struct hw_evict *e);
/* Whether it is over, and how; *why says what to do where it was not taken, and is good until hw_evict_end(). */
bool hw_evict_is_over(const struct hw_evict *e, enum hw_eviction *how, const char **why);
/* Frees it, also before it is over: then what it was about to do may happen, or not. NULL is allowed. */
void hw_evict_end(struct hw_evict *e);

#endif
