/* SPDX-License-Identifier: MIT */
/*
 * A transition: a change of a device's state, the only thing that the outside is told about. Passed by value; it names
 * its device by index and generation, so that a late answer about a forgotten device is not taken for its successor's.
 */
#ifndef HEARTWHEEL_TRANSITION_H
#define HEARTWHEEL_TRANSITION_H

#include <stdint.h>

enum hw_state {
	HW_STATE_PROVISIONAL, /* heard while the store was still being loaded: makes no transition yet */
	HW_STATE_ONLINE,
	HW_STATE_OFFLINE,
	HW_STATE_FORGOTTEN /* kept only until every sink has confirmed it */
};

enum hw_reason {
	HW_REASON_HEARTBEAT,
	HW_REASON_TIMEOUT,
	HW_REASON_WILL, /* a goodbye, from the device or from its last will */
	HW_REASON_KEYSPACE,
	HW_REASON_OPERATOR,
	HW_REASON_FORGET_AFTER
};

/* Names a device over time: the index alone may be reused. */
struct hw_ref {
	uint32_t index;
	uint16_t gen;
};

struct hw_transition {
	struct hw_ref device;
	enum hw_state state;
	enum hw_reason reason;
	int64_t time_ms;      /* wall clock, when it happened */
	int64_t last_seen_ms; /* wall clock, of the last heartbeat */
	uint64_t seq;         /* strictly grows with each transition of one device */
	int64_t delay_ns;     /* how long after the deadline, in monotonic time; -1 if no deadline was involved */
};

/* "provisional", "online", "offline", "forgotten"; never NULL. */
const char *hw_state_name(enum hw_state s);
/* "heartbeat", "timeout", "will", "keyspace", "operator", "forget_after"; never NULL. */
const char *hw_reason_name(enum hw_reason r);
/* The inverse of the two above: 0 and *out, or -EINVAL for an unknown name. */
int hw_state_parse(const char *name, enum hw_state *out);
int hw_reason_parse(const char *name, enum hw_reason *out);

#endif
