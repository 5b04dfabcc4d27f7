/* SPDX-License-Identifier: MIT */
/* See statuses.h. Cost: a scan of at most HW_STATUSES_WINDOW packet ids an acknowledgement. */
#include "mqtt/statuses.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <string.h>

#include "mqtt/clock.h"

#define EXPIRY_BYTES  5                  /* of a packet's properties */
#define UNANSWERED_NS (30 * HW_NS_PER_S) /* an acknowledgement that takes this long will not come */

unsigned hw_statuses_window(const struct hw_statuses *s)
{
	return hw_limits_careful(s->limits) ? 1 : s->handover->window;
}

/* Of the whole packet. */
static size_t bytes_of(const struct hw_statuses *s, const struct hw_handover_status *what)
{
	bool five = s->link->conf.protocol == 5;
	size_t bytes =
		2 + what->topic_size - 1 + 2 + what->payload_size + five + (five && what->expiry_s ? EXPIRY_BYTES : 0);
	for (size_t rest = bytes; rest > 0; rest /= 128)
		bytes++;
	return bytes + 1;
}

/*
 * What QoS 0 sends the library may acknowledge before it returns: so it is in flight before. What mosquitto_publish()
 * returned.
 */
static int publish(struct hw_statuses *s, const struct hw_handover_status *what, size_t bytes, int64_t now_ns)
{
	const char *topic = (const char *)(what + 1);
	unsigned known = s->limits->known, before = s->n;
	int *mid = &s->in_flight[s->n].mid;
	s->in_flight[s->n].token = what->token;
	s->in_flight[s->n].subject = what->subject;
	s->in_flight[s->n].bytes = bytes;
	s->in_flight[s->n++].since_ns = now_ns;
	mosquitto_property *properties = NULL;
	int rc = MOSQ_ERR_SUCCESS;
	if (what->expiry_s && s->link->conf.protocol == 5)
		rc = mosquitto_property_add_int32(&properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL, what->expiry_s);
	if (!rc)
		rc = mosquitto_publish_v5(s->link->m, mid, topic, (int)what->payload_size, topic + what->topic_size,
		                          known & HW_LACK_QOS ? 0 : what->qos,
		                          what->retain && !(known & HW_LACK_RETAIN), properties);
	mosquitto_property_free_all(&properties);
	if (rc && s->n > before)
		s->n = before;
	return rc;
}

static void refuse(struct hw_statuses *s, uint64_t token, int rc)
{
	char text[HW_WHY_TEXT];
	snprintf(text, sizeof(text), "cannot be published: %s", mosquitto_strerror(rc));
	hw_handover_answer(s->handover, HW_PUBLISHER_REFUSED, token, 0, text);
}

int hw_statuses_send(struct hw_statuses *s, const struct hw_handover_status *status)
{
	if (status->connection != s->handover->connection)
		return 0;
	if (!status->topic_size) {
		refuse(s, status->token, MOSQ_ERR_PAYLOAD_SIZE);
		return 0;
	}
	size_t bytes = bytes_of(s, status);
	int64_t now_ns = hw_mqtt_clock_ns();
	if (!hw_limits_takes(s->limits, bytes, now_ns)) {
		bool long_ = hw_limits_too_long(s->limits, bytes);
		hw_handover_answer(s->handover, HW_PUBLISHER_REFUSED, status->token,
		                   long_ ? MQTT_RC_PACKET_TOO_LARGE : 0, "");
		return 0;
	}
	errno = 0;
	int rc = publish(s, status, bytes, now_ns), err = errno;
	if (hw_link_is_of_message(rc)) {
		refuse(s, status->token, rc);
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
	uint64_t token = s->in_flight[i].token;
	hw_limits_taken(s->limits, s->in_flight[i].subject, s->in_flight[i].bytes);
	s->n--;
	memmove(&s->in_flight[i], &s->in_flight[i + 1], (s->n - i) * sizeof(s->in_flight[0]));
	if (reason < 0x80) { /* 0x10, nobody is subscribed, is as good as 0 */
		hw_handover_answer(s->handover, HW_PUBLISHER_ACKED, token, reason, "");
		return true;
	}
	char text[HW_WHY_TEXT];
	const char *user = s->link->conf.username[0] ? s->link->conf.username : "anonymous clients";
	snprintf(text, sizeof(text), "refused by the broker: %s: has %.64s the right to publish it, retained?",
	         mosquitto_reason_string(reason), user);
	hw_handover_answer(s->handover, HW_PUBLISHER_REFUSED, token, reason, text);
	return true;
}

bool hw_statuses_overdue(struct hw_statuses *s, int64_t now_ns)
{
	if (s->n == 0 || now_ns - s->in_flight[0].since_ns < UNANSWERED_NS)
		return false;
	hw_why_say(&s->link->why, "%s:%d has not acknowledged a message for %d s: connection closed",
	           s->link->conf.host, s->link->conf.port, (int)(UNANSWERED_NS / HW_NS_PER_S));
	return true;
}
