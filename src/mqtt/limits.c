/* SPDX-License-Identifier: MIT */
#include "mqtt/limits.h"

#include <stdio.h>

#include "heartwheel/time.h"

/* CONNACK reasons of MQTT 5 */
#define PACKET_TOO_LARGE 0x95
#define NO_RETAIN        0x9a
#define NO_QOS           0x9b

#define CALM       100 /* after this many acknowledged statuses in a row, statuses are no longer sent one at a time */
#define BAN_NS     (60 * HW_NS_PER_S)
#define BAN_SHIFTS 6 /* about an hour */

bool hw_limits_will(const struct hw_limits *l, bool *retain, int *qos)
{
	*retain = l->form != HW_FORM_NOT_RETAINED && l->form != HW_FORM_NEITHER;
	*qos = l->form != HW_FORM_QOS_0 && l->form != HW_FORM_NEITHER;
	return l->form != HW_FORM_ASK && l->form != HW_FORM_NO_WILL;
}

static bool next_form(struct hw_limits *l, enum hw_limits_form form)
{
	l->form = form;
	l->settled = false;
	return form != HW_FORM_WHOLE;
}

bool hw_limits_failed(struct hw_limits *l, int refusal)
{
	bool whole = l->form == HW_FORM_WHOLE || l->form == HW_FORM_AGAIN;
	if (refusal == NO_RETAIN && (whole || l->form == HW_FORM_QOS_0))
		return next_form(l, whole ? HW_FORM_NOT_RETAINED : HW_FORM_NEITHER);
	if (refusal == NO_QOS && (whole || l->form == HW_FORM_NOT_RETAINED))
		return next_form(l, whole ? HW_FORM_QOS_0 : HW_FORM_NEITHER);
	if (refusal == PACKET_TOO_LARGE && l->form != HW_FORM_NO_WILL)
		return next_form(l, HW_FORM_NO_WILL);
	if (refusal)
		return false;
	/* If the broker has answered a CONNECT of this form before, the form is not the cause of the close. */
	if (l->form == HW_FORM_ASK || l->form == HW_FORM_NO_WILL || (l->settled && l->form != HW_FORM_WHOLE))
		return next_form(l, HW_FORM_WHOLE);
	return next_form(l, l->form + 1);
}

bool hw_limits_answered(struct hw_limits *l, bool retain, int qos_max, size_t packet_max)
{
	bool will_retain;
	int will_qos;
	if (l->form == HW_FORM_ASK) {
		l->form = HW_FORM_AGAIN;
		return false;
	}
	bool will = hw_limits_will(l, &will_retain, &will_qos);
	if (l->form == HW_FORM_AGAIN)
		l->form = HW_FORM_WHOLE;
	l->settled = true;
	unsigned lasting = l->known & (HW_MISSING_PACKET | HW_MISSING_STATUS);
	l->known = (retain && will_retain ? 0 : HW_MISSING_RETAIN) |
	           (qos_max > 0 && will_qos > 0 ? 0 : HW_MISSING_QOS) | (will ? 0 : HW_MISSING_WILL) |
	           (packet_max ? HW_MISSING_PACKET : 0) | lasting;
	if (packet_max)
		l->packet_max = packet_max;
	l->reported &= l->known;
	return true;
}

void hw_limits_forget(struct hw_limits *l)
{
	*l = (struct hw_limits){.reported = l->reported};
}

bool hw_limits_too_long(const struct hw_limits *l, size_t bytes)
{
	return l->packet_max > 0 && bytes > l->packet_max;
}

bool hw_limits_takes(const struct hw_limits *l, size_t bytes, int64_t now_ns)
{
	return now_ns >= l->banned_until_ns && !hw_limits_too_long(l, bytes);
}

bool hw_limits_careful(const struct hw_limits *l)
{
	return l->thrown_out > 1 || l->banned > 0;
}

void hw_limits_taken(struct hw_limits *l, uint64_t subject, size_t bytes)
{
	if (subject == l->suspect)
		l->suspect = 0;
	if (bytes > l->taken)
		l->taken = bytes;
	if (++l->calm >= CALM)
		l->thrown_out = l->banned = 0;
}

/* Called when the broker closes the connection on this status. */
static void leave_out(struct hw_limits *l, size_t bytes, int64_t now_ns)
{
	l->suspect = 0;
	if (l->taken > 0 && bytes > l->taken) {
		l->packet_max = bytes - 1;
		l->known |= HW_MISSING_PACKET;
		return;
	}
	l->banned_until_ns = now_ns + (BAN_NS << (l->banned < BAN_SHIFTS ? l->banned : BAN_SHIFTS));
	l->banned++;
	l->known |= HW_MISSING_STATUS;
}

void hw_limits_closed(struct hw_limits *l, unsigned n, uint64_t subject, size_t bytes, int64_t now_ns)
{
	l->thrown_out++;
	l->calm = 0;
	if (n != 1)
		return;
	if (subject && l->suspect == subject)
		leave_out(l, bytes, now_ns);
	else
		l->suspect = subject;
}

enum hw_missing_feature hw_limits_news(struct hw_limits *l)
{
	unsigned news = l->known & ~l->reported, one = news & (~news + 1);
	l->reported |= one;
	return (enum hw_missing_feature)one;
}

void hw_limits_text(const struct hw_limits *l, enum hw_missing_feature which, char *to, size_t size)
{
	switch (which) {
	case HW_MISSING_RETAIN:
		snprintf(to, size,
		         "it keeps no retained messages: a status reaches only clients that are subscribed when it is "
		         "published; allow retained messages there (mosquitto: retain_available)");
		break;
	case HW_MISSING_QOS:
		snprintf(to, size,
		         "it accepts QoS 0 only: no status is acknowledged, and a lost status is published again only "
		         "at the next reconnect; allow QoS 1 there (mosquitto: max_qos)");
		break;
	case HW_MISSING_WILL:
		snprintf(to, size,
		         "it refuses this monitor's last will, so no message there will report a crash of the monitor: "
		         "is its limit on messages too small, or is the right to publish heartwheel/NODE_ID/status "
		         "missing?");
		break;
	case HW_MISSING_PACKET:
		snprintf(to, size,
		         "it accepts no message of more than %zu bytes: longer statuses are not published, and count "
		         "as refused; raise that limit there (mosquitto: max_packet_size)",
		         l->packet_max);
		break;
	case HW_MISSING_STATUS:
		snprintf(to, size,
		         "it closes the connection when a status is published: may this monitor publish retained "
		         "statuses, and are they within its limit on messages? Until then heartwheel publishes few "
		         "statuses at a time");
	}
}
