/* SPDX-License-Identifier: MIT */
/*
 * Messages of the monitor's to itself: barriers, what goes to the share topic, and canaries; and what the broker
 * answers to them, which tells whether their user may publish them. Belongs to the publisher's thread.
 */
#ifndef HW_MQTT_ECHOES_H
#define HW_MQTT_ECHOES_H

#include <stdbool.h>
#include <stdint.h>

#include "mqtt/canaries.h"
#include "mqtt/handover.h"
#include "mqtt/limits.h"
#include "mqtt/link.h"
#include "mqtt/outlet.h"

struct hw_echoes {
	struct hw_link *link; /* all four are borrowed */
	struct hw_outlet *outlet;
	const struct hw_limits *limits;
	struct hw_handover *handover;
	enum { HW_BARRIERS_NOT_ANSWERED, HW_BARRIERS_NOT_TAKEN, HW_BARRIERS_ARE_TAKEN } barriers;
	int shared;      /* mid of the last message on the share topic: its answer says nothing of barriers */
	int asked;       /* mid of the barrier that is out with QoS 1 only in order to be answered; 0: none */
	int64_t sent_ns; /* the last of all */
	struct hw_canaries canaries;
};

/* A new connection. */
void hw_echoes_begin(struct hw_echoes *e);
/* Sends what was handed over, while there is hw_outlet_room() and fewer than `most` messages in all are unanswered. 0,
 * or -1 when the connection is lost. */
int hw_echoes_send(struct hw_echoes *e, unsigned most);
/* The broker's answer to the message with this id, which is no status. */
void hw_echoes_answered(struct hw_echoes *e, int mid, int reason);
/* What is unanswered lets no more of them go out, so that no barrier would ever again: as hw_link_unanswered(). */
bool hw_echoes_overdue(struct hw_echoes *e, unsigned most, int64_t now_ns);

#endif
