/* SPDX-License-Identifier: MIT */
/* Receives the messages of a broker for a while, and publishes nothing. */
#ifndef HW_CTL_DISCOVER_LISTEN_H
#define HW_CTL_DISCOVER_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/discover_topics.h"
#include "mqtt/mqtt.h"

#define HW_LISTEN_FILTERS 32

struct hw_listen {
	struct hw_mqtt_conf conf; /* protocol: with 5, MQTT 3.1.1 is tried too if the broker does not accept 5 */
	const char *const *filters;
	size_t n_filters; /* 0: everything */
	int64_t lasts_ms;

	/* the result */
	const char *subscribed[HW_LISTEN_FILTERS]; /* static or borrowed */
	bool refused[HW_LISTEN_FILTERS];
	bool silent[HW_LISTEN_FILTERS]; /* brought no topic */
	size_t n_subscribed;
	bool all_refused; /* the broker refused '#', or closed the connection on it */
	int64_t listened_ms;
	bool failed; /* the connection could not be opened, or was lost: `why` */
	bool was_up;
	uint64_t too_long;        /* messages that were discarded because their MQTT 5 properties are too long ... */
	char too_long_topic[128]; /* ... and the topic of the last one */
	char why[256];
};

/* Receives messages until the time is over, the connection is lost, or a signal arrives. Returns 0 or -ENOMEM. */
int hw_listen_run(struct hw_listen *l, struct hw_topics *topics);

#endif
