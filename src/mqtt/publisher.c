/* SPDX-License-Identifier: MIT */
/*
 * The loop's side of the publisher. One thread (sender.h) sends the loop's statuses and receives the broker's
 * acknowledgements. The handover connects the loop and the thread.
 *
 * Invariant: the number of statuses in the handover is limited. Each gets one answer, or a DOWN.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mqtt/clock.h"
#include "mqtt/handover.h"
#include "mqtt/mqtt.h"
#include "mqtt/sender.h"
#include "mqtt/thread.h"

#define AHEAD      2 /* windows of statuses that may be handed over; at least AHEAD_MIN statuses */
#define AHEAD_MIN  512
#define STATUS_MAX (HW_HANDOVER_STATUS_BYTES / 4) /* size of the record with topic and payload */
#define LINGER_MS  2000

struct hw_publisher {
	atomic_int owners; /* the loop's side and the thread: the last owner frees */
	pthread_t thread;
	struct hw_handover handover;
	struct hw_sender sender; /* used by the thread only */

	/* used by the loop only */
	bool up, ends; /* ends: the thread was ordered to end */
	uint32_t up_connection;
	unsigned up_window, handed_over;
};

static void let_go(struct hw_publisher *p)
{
	if (atomic_fetch_sub(&p->owners, 1) > 1)
		return;
	hw_sender_fini(&p->sender);
	hw_handover_fini(&p->handover);
	free(p);
}

static void *run(void *arg)
{
	struct hw_publisher *p = arg;
	hw_sender_run(&p->sender);
	let_go(p);
	return NULL;
}

int hw_publisher_start(struct hw_publisher **out, const struct hw_mqtt_conf *conf, const char *will_topic,
                       const void *will_payload, size_t will_len)
{
	if (will_len > UINT16_MAX)
		return -EMSGSIZE;
	struct hw_publisher *p = calloc(1, sizeof(*p));
	if (!p || hw_sender_init(&p->sender, &p->handover, conf, will_topic, will_payload, will_len)) {
		free(p);
		return -ENOMEM;
	}
	atomic_init(&p->owners, 1);
	int rc = hw_handover_init(&p->handover);
	if (!rc) {
		atomic_store(&p->handover.lacks_qos, !will_topic);
		atomic_store(&p->owners, 2);
		rc = hw_thread_start(&p->thread, run, p, will_topic ? "hw-publisher" : "hw-barriers");
	}
	if (rc) {
		atomic_store(&p->owners, 1);
		let_go(p);
		return rc;
	}
	*out = p;
	return 0;
}

void hw_publisher_retry(struct hw_publisher *p)
{
	hw_orders_give(&p->handover.orders, HW_ORDER_RETRY);
}

void hw_publisher_reconnect(struct hw_publisher *p)
{
	hw_orders_give(&p->handover.orders, HW_ORDER_RECONNECT);
}

bool hw_publisher_is_without_qos(const struct hw_publisher *p)
{
	return atomic_load(&p->handover.lacks_qos);
}

void hw_publisher_set_broker(struct hw_publisher *p, bool lacks_qos)
{
	atomic_store(&p->handover.lacks_qos, lacks_qos);
	atomic_store(&p->handover.broker_answers, true);
}

int64_t hw_publisher_answered_ns(const struct hw_publisher *p)
{
	return atomic_load(&p->handover.answered_ns);
}

void hw_publisher_end(struct hw_publisher *p, int64_t timeout_ms)
{
	hw_publisher_flush(p);
	p->ends = true;
	atomic_store(&p->handover.stop_by_ns, hw_mqtt_clock_ns() + timeout_ms * HW_NS_PER_MS);
	hw_orders_give(&p->handover.orders, HW_ORDER_STOP);
}

bool hw_publisher_ended(struct hw_publisher *p)
{
	return atomic_load(&p->owners) == 1;
}

void hw_publisher_stop(struct hw_publisher *p, int64_t timeout_ms)
{
	if (!p)
		return;
	int64_t patience_ms = p->ends ? 0 : timeout_ms + LINGER_MS;
	if (!p->ends)
		hw_publisher_end(p, timeout_ms);
	hw_thread_end(p->thread, patience_ms);
	let_go(p);
}

int hw_publisher_fd(const struct hw_publisher *p)
{
	return hw_ring_fd(p->handover.answers);
}

bool hw_publisher_take(struct hw_publisher *p, struct hw_publisher_event *ev)
{
	size_t size;
	const struct hw_handover_answer *a = hw_ring_take(p->handover.answers, &size);
	while (!a) {
		if (hw_ring_rest(p->handover.answers))
			return false;
		a = hw_ring_take(p->handover.answers, &size);
	}
	ev->kind = (enum hw_publisher_event_kind)a->kind;
	ev->publish_id = a->publish_id;
	ev->reason = a->reason;
	snprintf(ev->text, sizeof(ev->text), "%s", a->text);
	if (ev->kind == HW_PUBLISHER_ACKED || ev->kind == HW_PUBLISHER_REFUSED) {
		p->handed_over--;
	} else if (ev->kind == HW_PUBLISHER_UP || ev->kind == HW_PUBLISHER_DOWN) {
		p->up = ev->kind == HW_PUBLISHER_UP;
		p->up_connection = a->connection;
		p->up_window = a->window;
		p->handed_over = 0;
	}
	hw_ring_release(p->handover.answers);
	return true;
}

unsigned hw_publisher_room(const struct hw_publisher *p)
{
	unsigned most = AHEAD * p->up_window > AHEAD_MIN ? AHEAD * p->up_window : AHEAD_MIN;
	return p->up && p->handed_over < most ? most - p->handed_over : 0;
}

bool hw_publisher_publish(struct hw_publisher *p, const struct hw_publication *what)
{
	size_t len = what->len;
	if (hw_publisher_room(p) == 0)
		return false;
	size_t topic_size = strlen(what->topic) + 1;
	bool fits = topic_size <= STATUS_MAX / 2 && len <= STATUS_MAX / 2 - sizeof(struct hw_handover_status);
	size_t size = sizeof(struct hw_handover_status) + (fits ? topic_size + len : 0);
	struct hw_handover_status *s = hw_ring_reserve(p->handover.statuses, size);
	if (!s)
		return false;
	*s = (struct hw_handover_status){.publish_id = what->publish_id,
	                                 .subject = what->subject,
	                                 .connection = p->up_connection,
	                                 .expiry_s = what->expiry_s,
	                                 .qos = what->qos > 0,
	                                 .retain = what->retain};
	if (fits) {
		s->topic_size = (uint32_t)topic_size;
		s->payload_size = (uint32_t)len;
		memcpy(s + 1, what->topic, topic_size);
		if (len)
			memcpy((char *)(s + 1) + topic_size, what->payload, len);
	}
	hw_ring_commit(p->handover.statuses, size);
	p->handed_over++;
	return true;
}

void hw_publisher_barrier(struct hw_publisher *p, uint64_t run_id, uint64_t number)
{
	struct hw_handover_barrier *b = p->up ? hw_ring_reserve(p->handover.barriers, sizeof(*b)) : NULL;
	if (!b)
		return;
	*b = (struct hw_handover_barrier){.barrier = {run_id, number}, .connection = p->up_connection};
	hw_ring_commit(p->handover.barriers, sizeof(*b));
}

void hw_publisher_share(struct hw_publisher *p, uint64_t run_id, uint64_t number)
{
	struct hw_handover_barrier *b = p->up ? hw_ring_reserve(p->handover.barriers, sizeof(*b)) : NULL;
	if (!b)
		return;
	*b = (struct hw_handover_barrier){.barrier = {run_id, number}, .connection = p->up_connection, .shared = true};
	hw_ring_commit(p->handover.barriers, sizeof(*b));
	hw_publisher_barrier(p, run_id, HW_FENCE + number);
}

bool hw_publisher_canary(struct hw_publisher *p, const char *topic, const void *payload, size_t len,
                         uint64_t publish_id)
{
	size_t topic_size = strlen(topic) + 1, size = sizeof(struct hw_handover_barrier) + topic_size + len;
	struct hw_handover_barrier *b =
		p->up && size <= HW_HANDOVER_BARRIER_BYTES / 4 ? hw_ring_reserve(p->handover.barriers, size) : NULL;
	if (!b)
		return false;
	*b = (struct hw_handover_barrier){.publish_id = publish_id,
	                                  .connection = p->up_connection,
	                                  .topic_size = (uint32_t)topic_size,
	                                  .payload_size = (uint32_t)len};
	memcpy(b + 1, topic, topic_size);
	memcpy((char *)(b + 1) + topic_size, payload, len);
	hw_ring_commit(p->handover.barriers, size);
	return true;
}

void hw_publisher_flush(struct hw_publisher *p)
{
	hw_ring_publish(p->handover.barriers);
	hw_ring_publish(p->handover.statuses);
}
