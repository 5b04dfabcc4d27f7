/* SPDX-License-Identifier: MIT */
/*
 * A transition: a change of a device's state, the only thing that is reported to the outside. Passed by value. A
 * transition names its device by index and generation, so that a late answer for a forgotten device is not applied to
 * the record's next device.
 */
#ifndef HEARTWHEEL_TRANSITION_H
#define HEARTWHEEL_TRANSITION_H

#include <stdint.h>

enum hw_state {
	HW_STATE_PROVISIONAL, /* a message arrived before the store was loaded; the device makes no transition yet */
	HW_STATE_ONLINE,
	HW_STATE_OFFLINE,
	HW_STATE_FORGOTTEN, /* kept until every sink has confirmed it */
	HW_STATE_UNSEEN     /* only of expected devices without a record, and of entries in the stream */
};

enum hw_reason {
	HW_REASON_HEARTBEAT,
	HW_REASON_TIMEOUT,
	HW_REASON_WILL, /* a goodbye, from the device or from its last will */
	HW_REASON_KEYSPACE,
	HW_REASON_OPERATOR,
	HW_REASON_FORGET_AFTER,
	HW_REASON_PARENT,    /* all its parents are offline (parent_death = take) */
	HW_REASON_NEVER_SEEN /* of HW_STATE_UNSEEN */
};

/* Names a device. The generation is needed because an index may be reused. */
struct hw_ref {
	uint32_t index;
	uint16_t gen;
};

struct hw_transition {
	struct hw_ref device;
	enum hw_state state;
	enum hw_reason reason;
	int64_t time_ms;      /* wall clock, time of the transition */
	int64_t last_seen_ms; /* wall clock, of the last heartbeat */
	uint64_t seq;         /* grows with each transition of a device */
	int64_t wait_ms;      /* offline while a parent is online: for how long the cause stays unknown; -1 in
	                       * all other cases */
	int64_t delay_ns;     /* monotonic time since the deadline; -1: no deadline was involved */
};

/* Returns "provisional", "online", "offline", "forgotten" or "unseen"; never NULL. */
const char *hw_state_name(enum hw_state s);
/* Returns "heartbeat", "timeout", "will", "keyspace", "operator", "forget_after", "parent" or
 * "never_seen"; never NULL. */
const char *hw_reason_name(enum hw_reason r);
/* The inverse of the two functions above. Each returns 0 and *out, or -EINVAL for an unknown name. */
int hw_state_parse(const char *name, enum hw_state *out);
int hw_reason_parse(const char *name, enum hw_reason *out);

#endif
