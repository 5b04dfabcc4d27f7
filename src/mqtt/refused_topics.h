/* SPDX-License-Identifier: MIT */
/*
 * The topics on which the broker closes the connection when a canary is published there. aedes and RabbitMQ do so if
 * the right to write is missing; other brokers refuse the canary and keep the connection.
 *
 * If a connection is closed while canaries are unanswered, later messages are sent one at a time. A topic counts as
 * refused when a canary on it was the only unanswered message at two closes, and no canary on it was acknowledged
 * between them. Then no canary is sent there for a minute, and after each further close for twice as long, up to ten
 * minutes. An acknowledged canary ends this. One close is not enough, because it may have another cause: a restart of
 * the broker, or another client with the same id.
 *
 * Invariant: at most HW_REFUSED_TOPICS topics are kept. If all entries are in use, the last one stands for all other
 * topics.
 *
 * Pure: no clock, no connection, no library.
 */
#ifndef HW_MQTT_REFUSED_TOPICS_H
#define HW_MQTT_REFUSED_TOPICS_H

#include <stdbool.h>
#include <stdint.h>

#define HW_REFUSED_TOPICS 256

/* All zero at first. A topic is identified by a hash that is never 0. */
struct hw_refused_topics {
	struct {
		uint64_t topic;
		unsigned closes; /* closes since a canary was last acknowledged on this topic; at least 1 */
		int64_t until_ns;
	} all[HW_REFUSED_TOPICS];
	unsigned n;
	bool closed;   /* a connection was closed while canaries were unanswered */
	unsigned calm; /* canaries acknowledged since then */
};

/* Whether messages must be sent one at a time. */
bool hw_refused_topics_careful(const struct hw_refused_topics *r);
/* Whether a canary may be sent to this topic now. */
bool hw_refused_topics_allow(const struct hw_refused_topics *r, uint64_t topic, int64_t now_ns);
/* The broker has acknowledged a canary there. */
void hw_refused_topics_acknowledged(struct hw_refused_topics *r, uint64_t topic);
/* Called when the broker closed the connection while canaries were unanswered. `topic`: the topic of a canary that
 * was the only unanswered message; 0: there were several. Returns for how many ns no canary may be sent on that
 * topic. */
int64_t hw_refused_topics_closed(struct hw_refused_topics *r, uint64_t topic, int64_t now_ns);
/* Forgets earlier closes, because they had another cause: the broker was unreachable, or another client has the same
 * client id. */
void hw_refused_topics_forget(struct hw_refused_topics *r);

#endif
