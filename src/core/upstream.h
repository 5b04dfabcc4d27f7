/* SPDX-License-Identifier: MIT */
/*
 * Upstream: the bridge or program that passes a group's messages to the broker. A group names topics, each with its
 * value while the upstream works (`while = TOPIC VALUE`). Private to the core.
 *
 * A topic without a value shows nothing about the upstream. A topic has no value before the first message, after an
 * empty payload (which clears a retained value), and after a connection on which the broker had no retained value.
 *
 * A retired group has the conditions of the groups of the file that have one of its heartbeat filters: the retired
 * group's devices are still judged, because these groups hear them.
 *
 * Cost: none if no group names a topic; otherwise a comparison of lengths for each message and topic, or a look-up in
 * an index if there are many topics.
 */
#ifndef HW_UPSTREAM_H
#define HW_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/filter_index.h"
#include "heartwheel/group.h"
#include "heartwheel/monitor.h"

struct hw_upstream_value {
	uint16_t group;
	uint16_t of, index; /* `while` number `index` of the group `of` */
	char *topic;        /* owned */
	size_t topic_len;
	char *last; /* owned; the last payload; NULL: none */
	size_t last_len;
	bool differs; /* a value arrived, and it is not the configured one */
	bool is_old;  /* the topic's value has not arrived since the retained values were last requested */
	bool is_live; /* the value came without the retain flag, so the broker may retain another one */
	bool renewed; /* the broker has sent the value again at a renewal */
	bool missed;  /* the last renewal did not bring the value */
};

/* The values of a group stand together. */
struct hw_upstream_part {
	uint32_t first, n;
};

struct hw_upstream {
	struct hw_upstream_value *value; /* owned */
	size_t n, cap;
	struct hw_upstream_part *part; /* owned; by group */
	size_t n_parts;
	struct hw_filter_index topics; /* of the values; empty if they are few */
	bool asking;                   /* the retained values were requested, and some may not have arrived yet */
	bool renewing;                 /* asking: by a renewal */
	bool in_doubt;  /* a value changed while asking; some brokers may have sent the older value last */
	uint64_t after; /* while asking: the retained values arrive before any barrier above this one; UINT64_MAX: no
	                 * request is granted yet */
};

/* Creates the table for these groups, with the last values of `old`. Returns 0 or -ENOMEM. */
int hw_upstream_make(struct hw_upstream *u, const struct hw_upstream *old, const struct hw_groups *groups);
void hw_upstream_fini(struct hw_upstream *u);

/* Applies a message if its topic is one of the topics of `while`. Returns whether it is. *awaited: whether it may be
 * the retained value that was requested. */
bool hw_upstream_take(struct hw_upstream *u, const struct hw_groups *groups, const struct hw_message *msg,
                      bool *awaited);

/* Called when the retained values were requested. Until the broker sends a value again, it counts as old. */
void hw_upstream_ask(struct hw_upstream *u);
/*
 * Called when a renewal was requested: it shows whether this monitor may still read the topics. Returns false if there
 * is no topic, or if a request is in progress.
 *
 * A broker that sends no retained value again, or sends it late, must not lose the value here. So a value becomes
 * unknown only after two renewals without the value, and only if an earlier renewal has brought the value. A renewal
 * does not replace a value that was published without the retain flag.
 */
bool hw_upstream_renew(struct hw_upstream *u);
/* Called when the broker has granted the request. `sent` is the last barrier that was sent before that. */
void hw_upstream_granted(struct hw_upstream *u, uint64_t sent);
/* Called when a barrier is back. After the first barrier that follows the retained values, a topic whose value is
 * still old has no value at the broker; its value becomes unknown. Returns whether there was such a topic, with
 * `is_old` set until the next request. */
bool hw_upstream_barrier(struct hw_upstream *u, const struct hw_groups *groups, uint64_t number);

/* Returns the first value of this group that differs from the value that `while` requires, or NULL. */
const struct hw_upstream_value *hw_upstream_away(const struct hw_upstream *u, size_t group);
/* Whether the group has a condition. */
bool hw_upstream_has(const struct hw_upstream *u, size_t group);
/* hw_upstream_is_unknown(): whether a value of this group is unknown. hw_upstream_any_unknown(): whether a value of
 * any group is. Cost: linear in the values. */
bool hw_upstream_is_unknown(const struct hw_upstream *u, size_t group);
bool hw_upstream_any_unknown(const struct hw_upstream *u);

#endif
