/* SPDX-License-Identifier: MIT */
/*
 * Echoes: messages that the monitor sends to itself, which are barriers, messages on the share topic, and canaries. The
 * broker's answers to them show whether the monitor's user may publish them. Used by the publisher's thread only.
 */
#ifndef HW_MQTT_ECHOES_H
#define HW_MQTT_ECHOES_H

#include <stdbool.h>
#include <stdint.h>

#include "mqtt/handover.h"
#include "mqtt/limits.h"
#include "mqtt/link.h"
#include "mqtt/open_canaries.h"
#include "mqtt/outlet.h"
#include "mqtt/refused_topics.h"
#include "mqtt/why.h"

struct hw_echoes {
	struct hw_link *link; /* all four are borrowed */
	struct hw_outlet *outlet;
	const struct hw_limits *limits;
	struct hw_handover *handover;
	enum { HW_BARRIERS_NOT_ANSWERED, HW_BARRIERS_NOT_TAKEN, HW_BARRIERS_ARE_TAKEN } barriers;
	int shared;      /* mid of the last message on the share topic; its answer proves nothing about barriers */
	int asked;       /* mid of the last barrier that was sent with QoS 1 although conf.qos is 0, so that the broker
	                    acknowledges it; 0: there is none */
	int64_t sent_ns; /* when the last message was sent */
	struct hw_open_canaries canaries;
	struct hw_refused_topics refused; /* kept across connections */
	int alone; /* mid of the message that must be answered before any other is sent; 0: there is none */
	int64_t alone_until_ns; /* the end of that wait */
	uint64_t alone_topic;   /* hash of that message's topic if it is a canary, else 0 */
	char canary[128];       /* topic of the last canary */
};

/* A new connection. */
void hw_echoes_begin(struct hw_echoes *e);
/* Called when the broker has closed the connection. Returns true if a canary was the only unanswered message: the
 * next attempt may follow at once, and will show whether the canary was the cause. If the canary is known to be the
 * cause, changes `why`. */
bool hw_echoes_closed(struct hw_echoes *e, int64_t now_ns, char why[HW_WHY_TEXT]);
/* Returns for how many more ms all messages wait for the answer to one message; 0: they do not wait. */
int hw_echoes_held_ms(const struct hw_echoes *e, int64_t now_ns);
/* Sends messages from the handover, as long as hw_outlet_room() is true and fewer than `most` messages in all are
 * unanswered. Returns -1 if the connection is lost. */
int hw_echoes_send(struct hw_echoes *e, unsigned most);
/* Called with the broker's answer to message `mid`, which is not a status. */
void hw_echoes_answered(struct hw_echoes *e, int mid, int reason);
/* Like hw_link_unanswered(). Returns true if so many messages have been unanswered for so long that no barrier can
 * be sent. */
bool hw_echoes_overdue(struct hw_echoes *e, unsigned most, int64_t now_ns);

#endif
