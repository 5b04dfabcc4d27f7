/* SPDX-License-Identifier: MIT */
/*
 * Statuses on their way: sent, and not acknowledged yet. Belongs to the publisher's thread.
 *
 * Invariant: at most `handover.window` are in flight, so that the library never queues one by itself (its queue is
 * unbounded, is scanned for each publish, and survives a reconnect). Every one that is handed over gets one answer, or
 * a DOWN.
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
 * How many wait for their acknowledgement at a time. More is no faster: mosquitto answers one packet a turn, and the
 * library walks the list of those in flight for each. MQTT 5 brokers may grant fewer (mosquitto: max_inflight_messages,
 * 20 by default).
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
		uint64_t token, subject;
		size_t bytes; /* of the whole packet */
		int64_t since_ns;
	} in_flight[HW_STATUSES_WINDOW]; /* oldest first */
};

/* How many may be in flight now. */
unsigned hw_statuses_window(const struct hw_statuses *s);
/* Sends one, if there is hw_outlet_room(). 0, or -1 when the connection is lost. */
int hw_statuses_send(struct hw_statuses *s, const struct hw_handover_status *status);
/* The broker's answer to the message with this id. False if that was no status. */
bool hw_statuses_answered(struct hw_statuses *s, int mid, int reason);
/* As hw_link_unanswered(). */
bool hw_statuses_overdue(struct hw_statuses *s, int64_t now_ns);

#endif
