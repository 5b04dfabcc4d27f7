/* SPDX-License-Identifier: MIT */
/*
 * Copies: in MQTT 5 a broker may deliver a message once for each subscription that it matches, one copy right behind
 * the other (MQTT 5.0, 3.3.4). Where filters overlap and none covers the other, what follows the first copy is passed
 * over.
 *
 * A broker that delivers one copy alone makes no difference, unless a device says the very same twice in a row within
 * HW_COPIES_WITHIN_MS: that counts once then. Messages longer than HW_COPIES_BYTES are not compared.
 */
#ifndef HW_MQTT_COPIES_H
#define HW_MQTT_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/mqtt.h"

#define HW_COPIES_WITHIN_MS 250
#define HW_COPIES_BYTES     4096

/* What is subscribed to, for all readers. All zero: nothing overlaps. */
struct hw_copies {
	char **filters; /* owned */
	size_t n;       /* 0: nothing overlaps */
};

/* Of one reader: the message that was taken last, and how many copies of it may follow. */
struct hw_copies_of {
	char *last; /* owned: topic and payload; NULL: none yet */
	size_t topic_len, payload_len;
	size_t left;
	int64_t until_ms;
};

/* Copies the filters if any two of them overlap. 0, or -ENOMEM with all as it was. */
int hw_copies_set(struct hw_copies *c, const struct hw_mqtt_filter *filters, size_t n);
void hw_copies_fini(struct hw_copies *c);

/* Whether a message is a copy of the one before. `now_ms`: monotonic. Without memory none is. */
bool hw_copies_is_one(const struct hw_copies *c, struct hw_copies_of *of, const struct hw_reader_event *message,
                      int64_t now_ms);
void hw_copies_of_fini(struct hw_copies_of *of);

#endif
