/* SPDX-License-Identifier: MIT */
/*
 * Detects copies. In MQTT 5 a broker may deliver a message once for each matching subscription, one copy directly after
 * the other (MQTT 5.0, 3.3.4). If filters overlap and none covers the other, all copies but the first are skipped.
 *
 * If a broker delivers a single copy, nothing is skipped, with one exception: two equal messages of a device, one
 * directly after the other within HW_COPIES_WITHIN_MS, count once. Messages longer than HW_COPIES_BYTES are not
 * compared.
 */
#ifndef HW_MQTT_COPIES_H
#define HW_MQTT_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/mqtt.h"

#define HW_COPIES_WITHIN_MS 250
#define HW_COPIES_BYTES     4096

/* The filters of all readers. All zero: no filters overlap. */
struct hw_copies {
	char **filters; /* owned */
	size_t n;       /* 0: nothing overlaps */
	bool wild;      /* true: two filters with wildcards overlap, so any message may have copies; false: a message
	                 * may have copies only if its topic equals a filter */
};

/* The last message of one reader, and how many copies of it may follow. */
struct hw_copies_of {
	char *last; /* owned: topic and payload; NULL: none yet */
	size_t topic_len, payload_len;
	size_t left;
	int64_t until_ms;
};

/* Copies the filters if at least two of them overlap. On -ENOMEM nothing changes. */
int hw_copies_set(struct hw_copies *c, const struct hw_mqtt_filter *filters, size_t n);
void hw_copies_fini(struct hw_copies *c);

/* Whether a message is a copy of the one before. `now_ms`: monotonic. If there is no memory, no message counts as a
 * copy. */
bool hw_copies_is_one(const struct hw_copies *c, struct hw_copies_of *of, const struct hw_reader_event *message,
                      int64_t now_ms);
/* Forgets the last message. Must be called before the broker delivers its retained messages again, because retained
 * messages are no copies of the messages before them. */
void hw_copies_of_forget(struct hw_copies_of *of);
void hw_copies_of_fini(struct hw_copies_of *of);

#endif
