/* SPDX-License-Identifier: MIT */
/*
 * Upstream: what must be up so that a group's devices can be heard, such as a bridge between two brokers. A group names
 * topics, each with the value that it has while all is well (`while = TOPIC VALUE`). Private to the core.
 *
 * Before the first value comes nothing is concluded; nor after an empty payload, which clears a retained value.
 *
 * Cost: nothing where no group names a topic; otherwise a comparison of lengths a message and topic.
 */
#ifndef HW_UPSTREAM_H
#define HW_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/group.h"

struct hw_upstream_value {
	uint16_t group, index; /* which `while` of which group */
	char *topic;           /* owned */
	size_t topic_len;
	char *last; /* owned; the last payload; NULL: none came yet */
	size_t last_len;
	bool differs; /* it is there, and not what it should be */
};

struct hw_upstream {
	struct hw_upstream_value *value; /* owned */
	size_t n;
};

/* Makes the table of these groups, with the last values of `old`. 0 or -ENOMEM. */
int hw_upstream_make(struct hw_upstream *u, const struct hw_upstream *old, const struct hw_groups *groups);
void hw_upstream_fini(struct hw_upstream *u);

/* Takes a message, if it is on one of the topics; whether it is. */
bool hw_upstream_take(struct hw_upstream *u, const struct hw_groups *groups, const char *topic, size_t len,
                      const void *payload, size_t payload_len);

/* Whether a value of this group differs; *index: the first that does. */
bool hw_upstream_is_away(const struct hw_upstream *u, uint16_t group, uint16_t *index);

#endif
