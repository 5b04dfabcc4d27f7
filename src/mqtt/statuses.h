/* SPDX-License-Identifier: MIT */
/*
 * The statuses in flight: sent, but not acknowledged yet. Used by the publisher's thread only.
 *
 * Invariant: at most `handover.window` statuses are in flight. So the library never queues a status. (The library's
 * queue has no limit, is scanned for each publish, and survives a reconnect.) Each status that is handed over gets one
 * answer, or the event DOWN.
 */
#ifndef HW_MQTT_STATUSES_H
#define HW_MQTT_STATUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt/handover.h"
#include "mqtt/limits.h"
#include "mqtt/link.h"
#include "mqtt/outlet.h"

/*
 * How many statuses may be in flight. More would not be faster: mosquitto answers one packet in a turn, and the library
 * scans its list of messages in flight for each. MQTT 5 brokers may allow fewer (mosquitto: max_inflight_messages, 20
 * by default).
 */
#define HW_STATUSES_WINDOW 100

struct hw_statuses {
	struct hw_link *link; /* all four are borrowed */
	struct hw_outlet *outlet;
	struct hw_limits *limits;
	struct hw_handover *handover;
	unsigned n;
	struct {
		int mid;
		uint64_t publish_id, subject;
		size_t bytes; /* of the whole packet */
		int64_t since_ns;
	} in_flight[HW_STATUSES_WINDOW]; /* oldest first */
};

/* How many may be in flight now. */
unsigned hw_statuses_window(const struct hw_statuses *s);
/* Sends a status. hw_outlet_room() must be true before. Returns -1 if the connection is lost. */
int hw_statuses_send(struct hw_statuses *s, const struct hw_handover_status *status);
/* Called when the broker has answered message `mid`. Returns false if that is no status. */
bool hw_statuses_answered(struct hw_statuses *s, int mid, int reason);
/* As hw_link_unanswered(). */
bool hw_statuses_overdue(struct hw_statuses *s, int64_t now_ns);

#endif
