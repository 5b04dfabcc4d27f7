/* SPDX-License-Identifier: MIT */
/* See statuses.h. Cost: a scan of at most HW_STATUSES_WINDOW packet ids for each acknowledgement. */
#include "mqtt/statuses.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <string.h>

#include "mqtt/clock.h"

unsigned hw_statuses_window(const struct hw_statuses *s)
{
	return hw_limits_careful(s->limits) ? 1 : s->handover->window;
}

/* The message as the broker accepts it. */
static struct hw_message message_of(const struct hw_statuses *s, const struct hw_handover_status *what)
{
	const char *topic = (const char *)(what + 1);
	unsigned known = s->limits->known;
	return (struct hw_message){.topic = topic,
	                           .topic_len = what->topic_size - 1,
	                           .payload = topic + what->topic_size,
	                           .payload_len = what->payload_size,
	                           .expiry_s = what->expiry_s,
	                           .qos = known & HW_MISSING_QOS ? 0 : what->qos,
	                           .retain = what->retain && !(known & HW_MISSING_RETAIN)};
}

/* Publishes a status. The library may report a QoS 0 message as sent before this call returns, so the message counts
 * as in flight before the call. Returns like mosquitto_publish(). */
static int publish(struct hw_statuses *s, const struct hw_handover_status *what, const struct hw_message *m,
                   size_t bytes, int64_t now_ns)
{
	unsigned before = s->n;
	int *mid = &s->in_flight[s->n].mid;
	s->in_flight[s->n].publish_id = what->publish_id;
	s->in_flight[s->n].subject = what->subject;
	s->in_flight[s->n].bytes = bytes;
	s->in_flight[s->n++].since_ns = now_ns;
	int rc = hw_outlet_publish(s->outlet, m, mid, now_ns);
	if (rc && s->n > before)
		s->n = before;
	return rc;
}

static void refuse(struct hw_statuses *s, uint64_t publish_id, int rc)
{
	char text[HW_WHY_TEXT];
	snprintf(text, sizeof(text), "cannot be published: %s", mosquitto_strerror(rc));
	hw_handover_answer(s->handover, HW_PUBLISHER_REFUSED, publish_id, 0, text);
}

int hw_statuses_send(struct hw_statuses *s, const struct hw_handover_status *status)
{
	if (status->connection != s->handover->connection)
		return 0;
	if (!status->topic_size) {
		refuse(s, status->publish_id, MOSQ_ERR_PAYLOAD_SIZE);
		return 0;
	}
	struct hw_message m = message_of(s, status);
	size_t bytes = hw_packet_publish_size(&m, s->link->conf.protocol == 5);
	int64_t now_ns = hw_mqtt_clock_ns();
	if (!hw_limits_takes(s->limits, bytes, now_ns)) {
		bool long_ = hw_limits_too_long(s->limits, bytes);
		hw_handover_answer(s->handover, HW_PUBLISHER_REFUSED, status->publish_id,
		                   long_ ? MQTT_RC_PACKET_TOO_LARGE : 0, "");
		return 0;
	}
	errno = 0;
	int rc = publish(s, status, &m, bytes, now_ns), err = errno;
	if (hw_link_is_of_message(rc)) {
		refuse(s, status->publish_id, rc);
		return 0;
	}
	if (rc)
		hw_link_lost(s->link, rc, err);
	return rc ? -1 : 0;
}

bool hw_statuses_answered(struct hw_statuses *s, int mid, int reason)
{
	unsigned i = 0;
	while (i < s->n && s->in_flight[i].mid != mid)
		i++;
	if (i == s->n)
		return false;
	uint64_t publish_id = s->in_flight[i].publish_id;
	hw_limits_taken(s->limits, s->in_flight[i].subject, s->in_flight[i].bytes);
	s->n--;
	memmove(&s->in_flight[i], &s->in_flight[i + 1], (s->n - i) * sizeof(s->in_flight[0]));
	if (reason < 0x80) { /* 0x10 (no subscribers) is a success like 0 */
		hw_handover_answer(s->handover, HW_PUBLISHER_ACKED, publish_id, reason, "");
		return true;
	}
	char text[HW_WHY_TEXT];
	const char *user = s->link->conf.username[0] ? s->link->conf.username : "anonymous clients";
	if (reason == MQTT_RC_PACKET_TOO_LARGE)
		snprintf(text, sizeof(text), "%s: raise the broker's limit on messages (mosquitto: message_size_limit)",
		         mosquitto_reason_string(reason));
	else
		snprintf(text, sizeof(text), "%s: give %.64s the right to write that topic with the retain flag",
		         mosquitto_reason_string(reason), user);
	hw_handover_answer(s->handover, HW_PUBLISHER_REFUSED, publish_id, reason, text);
	return true;
}

bool hw_statuses_overdue(struct hw_statuses *s, int64_t now_ns)
{
	return s->n > 0 && hw_link_unanswered(s->link, s->in_flight[0].since_ns, now_ns);
}
