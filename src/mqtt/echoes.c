/* SPDX-License-Identifier: MIT */
#include "mqtt/echoes.h"

#include <errno.h>
#include <mosquitto.h>
#include <string.h>

#include "mqtt/barrier.h"
#include "mqtt/clock.h"

void hw_echoes_begin(struct hw_echoes *e)
{
	e->barriers = HW_BARRIERS_NOT_ANSWERED;
	e->asked = 0;
	e->canaries = (struct hw_canaries){0};
}

/* --- out */

/* Before MQTT 5 the broker says it of a last will alone, which another connection has. */
static bool lacks_qos(const struct hw_echoes *e)
{
	return e->limits->known & HW_LACK_QOS || (e->link->conf.protocol != 5 && atomic_load(&e->handover->lacks_qos));
}

/* The QoS of the next barrier: 1 unless one is unanswered. The broker acknowledges no other, and refuses no other. */
static int barrier_qos(const struct hw_echoes *e)
{
	if (lacks_qos(e))
		return 0;
	return e->asked ? e->link->conf.qos : 1;
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
	int mid = 0, rc = hw_outlet_publish(e->outlet, &m, &mid, hw_mqtt_clock_ns());
	if (!rc && m.qos > 0) /* that one with QoS 0 was sent says nothing of the broker */
		hw_canaries_add(&e->canaries, mid, b->token);
	else if (hw_link_is_of_message(rc))
		hw_handover_answer(e->handover, HW_PUBLISHER_CANARY, b->token, 0, mosquitto_strerror(rc));
	return rc;
}

int hw_echoes_send(struct hw_echoes *e, unsigned most)
{
	const struct hw_handover_barrier *b;
	size_t size;
	int rc = 0;
	while (!rc && hw_outlet_room(e->outlet) && e->outlet->unanswered < most &&
	       (b = hw_ring_take(e->handover->barriers, &size)) != NULL) {
		if (b->connection != e->handover->connection)
			continue;
		errno = 0;
		e->sent_ns = hw_mqtt_clock_ns();
		rc = b->topic_size ? send_canary(e, b) : send_barrier(e, b);
		int err = errno;
		if (hw_link_is_of_message(rc))
			rc = 0; /* it does not come back, which says it all */
		else if (rc)
			hw_link_lost(e->link, rc, err);
	}
	hw_ring_release(e->handover->barriers);
	return rc ? -1 : 0;
}

/* --- back */

/* Whether a barrier is taken. A broker may be told another ACL at any time. */
static void barrier_answered(struct hw_echoes *e, int mid, int reason)
{
	bool taken = reason < 0x80;
	if (mid == e->asked)
		e->asked = 0;
	if (e->link->conf.protocol != 5 || e->barriers == (taken ? HW_BARRIERS_ARE_TAKEN : HW_BARRIERS_NOT_TAKEN))
		return; /* before MQTT 5 a refusal looks like any other acknowledgement */
	e->barriers = taken ? HW_BARRIERS_ARE_TAKEN : HW_BARRIERS_NOT_TAKEN;
	hw_handover_answer(e->handover, HW_PUBLISHER_BARRIERS, taken, 0, "");
}

/* What is sent with QoS 0 is "acknowledged" too: by the library, when it is on its way. */
void hw_echoes_answered(struct hw_echoes *e, int mid, int reason)
{
	uint64_t token;
	if (hw_canaries_take(&e->canaries, mid, &token)) {
		if (e->link->conf.protocol == 5) /* before, the acknowledgement of a canary says nothing */
			hw_handover_answer(e->handover, HW_PUBLISHER_CANARY, token, reason,
			                   reason < 0x80 ? "" : mosquitto_reason_string(reason));
		return;
	}
	bool acknowledged = e->link->conf.qos > 0 && !lacks_qos(e) && mid != e->shared;
	if (acknowledged || mid == e->asked) {
		atomic_store(&e->handover->answered_ns, hw_mqtt_clock_ns());
		barrier_answered(e, mid, reason);
	}
}

/* Statuses alone are fewer than `most`: so an echo is unanswered, and none that is was sent later than the last. */
bool hw_echoes_overdue(struct hw_echoes *e, unsigned most, int64_t now_ns)
{
	return e->outlet->unanswered >= most && hw_link_unanswered(e->link, e->sent_ns, now_ns);
}
