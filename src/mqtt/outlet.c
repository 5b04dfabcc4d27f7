/* SPDX-License-Identifier: MIT */
/* See outlet.h. Cost past the library: one copy of each message, and one system call for all messages that wait. */
#include "mqtt/outlet.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "heartwheel/time.h"
#include "mqtt/handover.h"

#define HEAD     64                                    /* the most bytes of a packet besides its topic and payload */
#define LONGEST  (HW_HANDOVER_STATUS_BYTES / 4 + HEAD) /* longest packet of the handover */
#define CAPACITY (2 * LONGEST)                         /* untouched pages cost nothing */
#define STUCK_NS (30 * HW_NS_PER_S)

int hw_outlet_init(struct hw_outlet *o, struct hw_link *l, void (*written)(void *owner, int mid))
{
	o->link = l;
	o->written = written;
	o->past = hw_link_is_bare(l);
	o->bytes = o->past ? malloc(CAPACITY) : NULL;
	return o->past && !o->bytes ? -ENOMEM : 0;
}

void hw_outlet_fini(struct hw_outlet *o)
{
	free(o->bytes);
}

void hw_outlet_begin(struct hw_outlet *o)
{
	unsigned granted = o->link->granted.receive_max;
	o->quota = granted < HW_OUTLET_QUOTA ? granted : HW_OUTLET_QUOTA;
	o->unanswered = o->n_unsent = 0;
	o->waiting = 0;
	o->id = 0;
	memset(o->used, 0, sizeof(o->used));
}

/* --- ids */

static uint64_t bit_of(uint16_t id)
{
	return UINT64_C(1) << (id % 64);
}

static bool is_used(const struct hw_outlet *o, uint16_t id)
{
	return o->used[id / 64] & bit_of(id);
}

/* Returns a free packet id. There is always one, because fewer messages are allowed than there are ids. */
static uint16_t use_id(struct hw_outlet *o)
{
	do
		o->id++;
	while (o->id == 0 || is_used(o, o->id));
	o->used[o->id / 64] |= bit_of(o->id);
	return o->id;
}

bool hw_outlet_answered(struct hw_outlet *o, uint16_t id)
{
	if (!is_used(o, id))
		return false;
	o->used[id / 64] &= ~bit_of(id);
	o->unanswered--;
	return true;
}

/* --- adding */

bool hw_outlet_room(const struct hw_outlet *o)
{
	return !o->past ||
	       (o->unanswered < o->quota && o->n_unsent < HW_OUTLET_UNSENT && CAPACITY - o->waiting >= LONGEST);
}

static int by_library(struct hw_outlet *o, const struct hw_message *m, int *mid)
{
	mosquitto_property *properties = NULL;
	int rc = MOSQ_ERR_SUCCESS;
	if (m->expiry_s && o->link->conf.protocol == 5)
		rc = mosquitto_property_add_int32(&properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL, m->expiry_s);
	if (!rc)
		rc = mosquitto_publish_v5(o->link->m, mid, m->topic, (int)m->payload_len, m->payload, m->qos, m->retain,
		                          properties);
	int err = errno;
	mosquitto_property_free_all(&properties);
	errno = err;
	return rc;
}

/* Returns the fault for which the library would refuse the message too; 0: none. */
static int fault_of(const struct hw_outlet *o, const struct hw_message *m, size_t size)
{
	const struct hw_granted *g = &o->link->granted;
	if (mosquitto_pub_topic_check2(m->topic, m->topic_len) || m->topic_len == 0)
		return MOSQ_ERR_INVAL;
	if (mosquitto_validate_utf8(m->topic, (int)m->topic_len))
		return MOSQ_ERR_MALFORMED_UTF8;
	if (size > LONGEST)
		return MOSQ_ERR_PAYLOAD_SIZE;
	if (g->packet_max && size > g->packet_max)
		return MOSQ_ERR_OVERSIZE_PACKET;
	return m->qos > g->qos_max ? MOSQ_ERR_QOS_NOT_SUPPORTED : MOSQ_ERR_SUCCESS;
}

static int past_library(struct hw_outlet *o, const struct hw_message *m, int *mid, int64_t now_ns)
{
	bool v5 = o->link->conf.protocol == 5;
	size_t size = hw_packet_publish_size(m, v5);
	int rc = fault_of(o, m, size);
	if (rc)
		return rc;
	if (o->waiting == 0)
		o->moved_ns = now_ns;
	if (m->qos > 0) {
		o->unanswered++;
		*mid = use_id(o);
	} else {
		*mid = HW_OUTLET_IDS + (int)o->n_unsent++; /* not a packet id: QoS 0 has none on the wire */
	}
	hw_packet_publish(o->bytes + o->waiting, m, v5, (uint16_t)*mid);
	o->waiting += size;
	return MOSQ_ERR_SUCCESS;
}

int hw_outlet_publish(struct hw_outlet *o, const struct hw_message *m, int *mid, int64_t now_ns)
{
	return o->past ? past_library(o, m, mid, now_ns) : by_library(o, m, mid);
}

/* --- writing */

bool hw_outlet_waits(const struct hw_outlet *o)
{
	return o->waiting > 0;
}

static void report_written(struct hw_outlet *o)
{
	for (unsigned i = 0; i < o->n_unsent; i++)
		o->written(o->link->owner, HW_OUTLET_IDS + (int)i);
	o->n_unsent = 0;
}

int hw_outlet_write(struct hw_outlet *o, int64_t now_ns)
{
	if (o->waiting == 0 || hw_link_wants_write(o->link))
		return 0;
	ssize_t n = send(hw_link_socket(o->link), o->bytes, o->waiting, MSG_NOSIGNAL | MSG_DONTWAIT);
	int err = errno;
	if (n < 0 && (err == EAGAIN || err == EINTR))
		return 0;
	if (n < 0) {
		hw_link_failed(o->link, err);
		return -1;
	}
	o->moved_ns = now_ns;
	o->waiting -= (size_t)n;
	memmove(o->bytes, o->bytes + n, o->waiting);
	if (o->waiting == 0)
		report_written(o);
	return 0;
}

bool hw_outlet_overdue(struct hw_outlet *o, int64_t now_ns)
{
	const struct hw_mqtt_conf *c = &o->link->conf;
	if (o->waiting == 0 || now_ns - o->moved_ns < STUCK_NS)
		return false;
	hw_why_set(&o->link->why, "%s:%d has read nothing for %d s: connection closed", c->host, c->port,
	           (int)(STUCK_NS / HW_NS_PER_S));
	return true;
}
