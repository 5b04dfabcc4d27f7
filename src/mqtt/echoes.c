/* SPDX-License-Identifier: MIT */
#include "mqtt/echoes.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/fnv.h"
#include "heartwheel/time.h"
#include "mqtt/barrier.h"
#include "mqtt/clock.h"

#define ALONE_NS HW_NS_PER_S /* limits the wait for an answer: a broker may discard a message and send no answer */

void hw_echoes_begin(struct hw_echoes *e)
{
	e->alone = 0;
	e->barriers = HW_BARRIERS_NOT_ANSWERED;
	e->asked = 0;
	e->canaries = (struct hw_open_canaries){0};
}

/* --- sending */

/* Whether the broker lacks QoS 1. Before MQTT 5, only a connection with a last will finds this out. */
static bool lacks_qos(const struct hw_echoes *e)
{
	return e->limits->known & HW_MISSING_QOS ||
	       (e->link->conf.protocol != 5 && atomic_load(&e->handover->lacks_qos));
}

/* Returns the QoS of the next barrier: 1, unless a barrier with QoS 1 is unanswered. The broker acknowledges or
 * refuses only messages with QoS 1. */
static int barrier_qos(const struct hw_echoes *e)
{
	if (lacks_qos(e))
		return 0;
	return e->asked ? e->link->conf.qos : 1;
}

int hw_echoes_held_ms(const struct hw_echoes *e, int64_t now_ns)
{
	int64_t ns = e->alone ? e->alone_until_ns - now_ns : 0;
	return ns > 0 ? (int)(ns / HW_NS_PER_MS) + 1 : 0;
}

/* If messages are sent one at a time, makes the next messages wait for the answer to this one. `topic`: hash of a
 * canary's topic; 0: the message is no canary. */
static void hold(struct hw_echoes *e, int mid, uint64_t topic)
{
	if (!hw_refused_topics_careful(&e->refused))
		return;
	e->alone_topic = e->alone ? 0 : topic; /* an earlier message may be unanswered, too */
	e->alone = mid;
	e->alone_until_ns = e->sent_ns + ALONE_NS;
}

bool hw_echoes_closed(struct hw_echoes *e, int64_t now_ns, char why[HW_WHY_TEXT])
{
	if (!hw_open_canaries_any(&e->canaries))
		return false;
	uint64_t topic = e->alone ? e->alone_topic : 0;
	int64_t ns = hw_refused_topics_closed(&e->refused, topic, now_ns);
	if (ns)
		snprintf(why, HW_WHY_TEXT,
		         "the broker closes the connection when this monitor publishes on %s: no canary is sent there "
		         "for %d min",
		         e->canary, (int)(ns / (60 * HW_NS_PER_S)));
	return topic != 0;
}

static int send_barrier(struct hw_echoes *e, const struct hw_handover_barrier *b)
{
	const struct hw_mqtt_conf *c = &e->link->conf;
	char text[HW_BARRIER_MAX];
	struct hw_message m = {.topic = b->shared ? c->share_topic : c->barrier_topic,
	                       .payload = text,
	                       .payload_len = hw_barrier_print(&b->barrier, text),
	                       .qos = b->shared && c->qos == 0 ? 0 : barrier_qos(e)};
	m.topic_len = strlen(m.topic);
	int mid = 0, rc = hw_outlet_publish(e->outlet, &m, b->shared ? &e->shared : &mid, hw_mqtt_clock_ns());
	if (!rc && m.qos > c->qos)
		e->asked = mid;
	if (!rc && m.qos > 0)
		hold(e, b->shared ? e->shared : mid, 0);
	return rc;
}

static int send_canary(struct hw_echoes *e, const struct hw_handover_barrier *b)
{
	const char *topic = (const char *)(b + 1);
	struct hw_message m = {.topic = topic,
	                       .topic_len = b->topic_size - 1,
	                       .payload = topic + b->topic_size,
	                       .payload_len = b->payload_size,
	                       .qos = lacks_qos(e) ? 0 : 1};
	uint64_t id = hw_fnv64(HW_FNV64_BEGIN, topic, m.topic_len) | 1;
	if (!hw_refused_topics_allow(&e->refused, id, e->sent_ns)) {
		hw_handover_answer(e->handover, HW_PUBLISHER_CANARY, b->publish_id, MQTT_RC_NOT_AUTHORIZED,
		                   mosquitto_reason_string(MQTT_RC_NOT_AUTHORIZED));
		return 0;
	}
	int mid = 0, rc = hw_outlet_publish(e->outlet, &m, &mid, hw_mqtt_clock_ns());
	if (!rc && m.qos > 0) { /* a canary sent with QoS 0 proves nothing about the broker */
		hw_open_canaries_add(&e->canaries, mid, b->publish_id, id);
		hold(e, mid, id);
		snprintf(e->canary, sizeof(e->canary), "%s", topic);
	} else if (hw_link_is_of_message(rc))
		hw_handover_answer(e->handover, HW_PUBLISHER_CANARY, b->publish_id, 0, mosquitto_strerror(rc));
	return rc;
}

int hw_echoes_send(struct hw_echoes *e, unsigned most)
{
	const struct hw_handover_barrier *b;
	size_t size;
	int rc = 0;
	while (!rc && !hw_echoes_held_ms(e, hw_mqtt_clock_ns()) && hw_outlet_room(e->outlet) &&
	       e->outlet->unanswered < most && (b = hw_ring_take(e->handover->barriers, &size)) != NULL) {
		if (b->connection != e->handover->connection)
			continue;
		errno = 0;
		e->sent_ns = hw_mqtt_clock_ns();
		rc = b->topic_size ? send_canary(e, b) : send_barrier(e, b);
		int err = errno;
		if (hw_link_is_of_message(rc))
			rc = 0; /* the barrier will be missing, which is noticed */
		else if (rc)
			hw_link_lost(e->link, rc, err);
	}
	hw_ring_release(e->handover->barriers);
	return rc ? -1 : 0;
}

/* --- answers */

/* Records whether the broker accepts barriers. Its access rules may change at any time. */
static void barrier_answered(struct hw_echoes *e, int mid, int reason)
{
	bool taken = reason < 0x80;
	if (mid == e->asked)
		e->asked = 0;
	if (e->link->conf.protocol != 5 || e->barriers == (taken ? HW_BARRIERS_ARE_TAKEN : HW_BARRIERS_NOT_TAKEN))
		return; /* before MQTT 5, a broker may also acknowledge a message that it refuses */
	e->barriers = taken ? HW_BARRIERS_ARE_TAKEN : HW_BARRIERS_NOT_TAKEN;
	hw_handover_answer(e->handover, HW_PUBLISHER_BARRIERS, taken, 0, "");
}

/* Handles the end of a message's delivery. With QoS 1, this is the broker's answer. With QoS 0 the broker does not
 * answer: the library or the outlet calls this function when it has written the message. */
void hw_echoes_answered(struct hw_echoes *e, int mid, int reason)
{
	uint64_t publish_id, topic;
	if (mid == e->alone)
		e->alone = 0;
	if (hw_open_canaries_take(&e->canaries, mid, &publish_id, &topic)) {
		hw_refused_topics_acknowledged(&e->refused, topic);
		if (e->link->conf.protocol == 5) /* before MQTT 5, a broker may also acknowledge a message that it
		                                  * refuses */
			/* A canary that is longer than the broker's limit counts as not sent, because changing access
			 * rights would not help. */
			hw_handover_answer(e->handover, HW_PUBLISHER_CANARY, publish_id,
			                   reason == MQTT_RC_PACKET_TOO_LARGE ? 0 : reason,
			                   reason < 0x80 ? "" : mosquitto_reason_string(reason));
		return;
	}
	bool acknowledged = e->link->conf.qos > 0 && !lacks_qos(e) && mid != e->shared;
	if (acknowledged || mid == e->asked) {
		atomic_store(&e->handover->answered_ns, hw_mqtt_clock_ns());
		barrier_answered(e, mid, reason);
	}
}

/* Whether an echo is unanswered for too long. Called when at least `most` messages are unanswered, and fewer than
 * `most` of them are statuses. So at least one unanswered message is an echo. The newest unanswered message was sent at
 * `sent_ns` or earlier. */
bool hw_echoes_overdue(struct hw_echoes *e, unsigned most, int64_t now_ns)
{
	return e->outlet->unanswered >= most && hw_link_unanswered(e->link, e->sent_ns, now_ns);
}
