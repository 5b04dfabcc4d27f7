/* SPDX-License-Identifier: MIT */
/*
 * The topics that heartwheelctl discover has received, what was seen on each, and when each message came.
 *
 * Pure: times are given by the caller. All memory is bounded (the limits below): at most about 150 MB, of which the
 * texts of the topics, their records and the log of messages take a third each. Messages beyond a limit are only
 * counted.
 */
#ifndef HW_CTL_DISCOVER_TOPICS_H
#define HW_CTL_DISCOVER_TOPICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/discover_payload.h"

#define HW_TOPICS_MAX   100000
#define HW_TOPIC_LEVELS 32
#define HW_TOPIC_KEPT   1024       /* bytes of a topic */
#define HW_TOPICS_BYTES (40 << 20) /* of all topics */
#define HW_TOPICS_LOG   6000000    /* messages whose time is kept */
#define HW_TOPICS_PATHS 255        /* different paths of fields */

struct hw_seen_topic {
	const char *text; /* with a NUL; owned by the table */
	uint64_t shape;   /* of the first payload; see discover_payload.h */
	const char *member;
	uint32_t words, member_words; /* of all payloads */
	uint32_t live; /* number of live messages, without goodbyes; a message is live if it is not an old retained one
	                  that the broker sent after a subscription */
	uint32_t retained; /* number of these old retained messages */
	uint16_t len;
	uint8_t levels, parsed;
	uint8_t path[HW_FOUND_FIELDS]; /* the number of a field's path, for hw_topics_path(); 0: none */
	bool own_timeout;
	bool flagged; /* its live messages have the retain flag */
};

struct hw_topics_counts {
	uint64_t messages, retained, monitors; /* `monitors`: messages of monitors */
	uint64_t past_log;                     /* live messages whose time is not kept */
	uint64_t many, deep, long_; /* messages that were left out, because there are too many topics or bytes
	                             * (many), levels (deep), or bytes in the topic (long_) */
};

/* A message that came live. */
struct hw_topics_beat {
	uint32_t topic, at_ms;
};

struct hw_topics;

/* Returns NULL if there is no memory. `seed`: a random number, so that no client can choose topics with equal hashes.
 */
struct hw_topics *hw_topics_new(uint64_t seed);
void hw_topics_free(struct hw_topics *t);
/* Sets how often the broker may send the retained message of one topic after our subscriptions; initially 1. Each
 * further message with the retain flag counts as published with that flag. */
void hw_topics_replays(struct hw_topics *t, unsigned n);
/* Handles a message. `at_ms`: a monotonic time. Returns 0 or -ENOMEM. */
int hw_topics_add(struct hw_topics *t, const char *topic, size_t len, const void *payload, size_t payload_len,
                  bool retained, uint32_t at_ms);

size_t hw_topics_n(const struct hw_topics *t);
const struct hw_seen_topic *hw_topics_at(const struct hw_topics *t, size_t i);
const char *hw_topics_path(const struct hw_topics *t, unsigned number);
size_t hw_topics_n_beats(const struct hw_topics *t);
struct hw_topics_beat hw_topics_beat(const struct hw_topics *t, size_t i);
struct hw_topics_counts hw_topics_counts(const struct hw_topics *t);

#endif
